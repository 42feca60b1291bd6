"""One judge's part of a run: announce, send, retry by the frozen law, and end every call exactly once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from secondorder._canon import sha256_hex
from secondorder.acquire._admission import LATER, UNDECIDED, Admission
from secondorder.acquire._http import Exchange, JudgeLine
from secondorder.acquire._jobs import PAGE, Job, Jobs
from secondorder.acquire._ledger import Ledger
from secondorder.acquire._ledger_read import LedgerReader, PendingCall, read_ledger
from secondorder.acquire._outcome import Parser, attempt_of, outcome_of
from secondorder.acquire._progress import Tally
from secondorder.acquire._reading import Completion, Failure
from secondorder.acquire._refusals import place_of, refusal
from secondorder.acquire._retry import Backoff, Pace
from secondorder.acquire._silence import Silence, Unanswered
from secondorder.acquire._spec import JudgeSpec, RetrySpec
from secondorder.acquire._types import Call, Outcome
from secondorder.errors import (
    CorruptFileError,
    EndpointError,
    SecondOrderError,
    SpecError,
    StorageError,
)

__all__ = ["JudgeRun", "Shared"]

AHEAD_S = 0.1
MOST_AHEAD = 64
"""Calls are announced this long before they are sent, so that no send waits for the disk, but few are announced when
a crash comes."""

GRACE_S = 10.0


class Shared(NamedTuple):
    """What all judges of a run share."""

    ledger: Ledger
    tally: Tally
    admission: Admission
    parse: Parser
    retry: RetrySpec
    backoff: Backoff
    seed: int
    halt_all: Callable[[], None]


class JudgeRun:
    """Calls of one judge in one run.

    Parameters
    ----------
    name, judge : str, JudgeSpec
        Which judge.
    shared : Shared
        Ledger, tally, law and policy of the run.
    answered : bool
        Whether the judge completed a call in an earlier run.
    sequential : bool
        Whether the calls of a cell follow each other (``send = "by-cell"``).
    """

    def __init__(self, name: str, judge: JudgeSpec, shared: Shared, *, answered: bool, sequential: bool) -> None:
        self.name = name
        self._judge = judge
        self._shared = shared
        self._sequential = sequential
        self._line = JudgeLine(name, judge)
        self._pace = Pace(judge.requests_per_minute)
        self._ready: asyncio.Queue[Job | None] = asyncio.Queue()
        self._taken = asyncio.Event()
        self._heard = asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []
        self._idle = 0
        self._loop = asyncio.get_running_loop()
        self._halted = asyncio.Event()
        self._error: SecondOrderError | None = None
        self._silence = Silence(answered=answered)
        self._sent = 0
        self._began = self._loop.time()

    def halt(self) -> None:
        """Send nothing more; calls in flight may still end."""
        self._halted.set()
        self._taken.set()
        self._heard.set()

    async def run(self) -> None:
        """Call what is pending, until everything has ended or the run is halted.

        Raises
        ------
        EndpointError
            When this judge had to be stopped; its other calls stay pending.
        StorageError, CorruptFileError, SpecError
            When the ledger or the parser failed; all judges are halted.
        """
        async with self._line, asyncio.TaskGroup() as group:
            try:
                await self._line.reach()
                with read_ledger(self._shared.ledger.path) as reader:
                    await self._feed(reader, group)
            except SecondOrderError as error:
                self._fail(error)
            for _ in self._workers:
                self._ready.put_nowait(None)
        while not self._ready.empty():
            if job := self._ready.get_nowait():
                self._unsent(job[0])
        if not self._halted.is_set() and self._silence:
            if self._silence.answered:
                self._end_unanswered()
            else:
                self._error = self._useless(str(self._silence))
        if self._error is not None:
            raise self._error

    def _cancel(self) -> None:
        for worker in self._workers:
            worker.cancel()

    def _fail(self, error: SecondOrderError) -> None:
        """Stop this judge; stop all when the cause is not the judge's alone."""
        if self._error is None:
            self._error = error
        self.halt()
        if not isinstance(error, EndpointError):
            self._shared.halt_all()
        # What still comes in could not be stored where the ledger failed; else it is worth a short wait.
        self._loop.call_later(0.0 if isinstance(error, (StorageError, CorruptFileError)) else GRACE_S, self._cancel)

    # -- which calls, and in what portions ----------------------------------------------------------------------------

    async def _feed(self, reader: LedgerReader, group: asyncio.TaskGroup) -> None:
        """Keep announced jobs ready, so that a worker goes from one call to the next without waiting for the disk."""
        jobs = Jobs(self.name, reader, self._shared.ledger, self._admit, self._halted, sequential=self._sequential)
        while True:
            ahead = self._ahead()
            while 2 * self._ready.qsize() >= ahead and not self._halted.is_set():
                self._taken.clear()
                await self._taken.wait()
            free = self._judge.concurrency - len(self._workers) + self._idle
            self._heard.clear()
            portion = await jobs.portion(ahead + min(PAGE, free))
            if not portion and jobs.later and not self._heard.is_set() and self._nothing_is_out():
                # What is waited for has no answer: only further calls can tell whether the judge is away.
                portion = await jobs.portion(1, now=True)
            if not portion:
                if not jobs.waiting or self._halted.is_set():
                    return
                if not self._heard.is_set() and self._nothing_is_out():
                    self._refuse_endless_wait(jobs.waiting[0][0].call)
                await self._heard.wait()
                continue
            await self._announce(portion)
            for job in portion:
                self._ready.put_nowait(job)
            while self._idle < self._ready.qsize() and len(self._workers) < self._judge.concurrency:
                self._idle += 1
                self._workers.append(group.create_task(self._work()))

    def _ahead(self) -> int:
        elapsed = max(self._loop.time() - self._began, AHEAD_S)
        return min(MOST_AHEAD, 1 + int(AHEAD_S * self._sent / elapsed))

    def _announce(self, batch: list[Job]) -> asyncio.Future[None]:
        first = [(job[0].call.rank, job[0].announced + 1) for job in batch]
        return asyncio.wrap_future(self._shared.ledger.intend(first))

    def _nothing_is_out(self) -> bool:
        return self._ready.empty() and self._idle == len(self._workers)

    def _refuse_endless_wait(self, call: Call) -> None:
        """A policy that waits while nothing is out would wait for ever, unless it is for calls without answer."""
        if self._silence.answered and self._silence:
            return self._end_unanswered()
        if self._silence:
            raise self._useless(str(self._silence))
        raise SpecError(
            f"the policy does not decide on call {call.id}, and no call is out that could tell",
            place=f"judge {self.name!r}",
            remedy="a policy may wait for planned calls of the same judge alone",
        )

    def _admit(self, pending: PendingCall, now: bool = False) -> str:
        """``""`` to send, ``"undecided"``, ``"later"``, or why not: then the call has ended."""
        reason = self._shared.admission.admit(pending.call, sent_before=pending.announced > 0, now=now)
        if reason in ("", UNDECIDED, LATER):
            return reason
        tried = pending.announced if pending.used else 0  # in an earlier run, without completion
        self._record(pending.call, tried, "not_called", outcome=Outcome("not_called", reason))
        return reason

    # -- one call -----------------------------------------------------------------------------------------------------

    async def _work(self) -> None:
        while True:
            job = await self._ready.get()
            self._idle -= 1
            self._taken.set()
            if job is None:
                return
            try:
                await self._do(job)
            except SecondOrderError as error:
                self._fail(error)
            self._idle += 1
            self._heard.set()  # a call without answer has ended nothing, and yet nothing may be out any more

    async def _do(self, job: Job) -> None:
        if self._halted.is_set():
            return self._unsent(job[0])
        await self._call(job[0])
        for pending in job[1:]:
            if self._halted.is_set():
                break
            reason = self._admit(pending)
            if reason in (UNDECIDED, LATER):
                raise SpecError(
                    "the policy waits inside a cell whose calls follow each other",
                    place=f"judge {self.name!r}",
                    remedy='say send = "by-item" in [design]',
                )
            if not reason:
                await self._announce([[pending]])
                await self._call(pending)
        return None

    async def _call(self, pending: PendingCall) -> None:
        """Attempts of one call, by the frozen law; the first is announced already."""
        call, law = pending.call, self._shared.retry
        if sha256_hex(call.request) != call.request_sha256:
            raise CorruptFileError(
                f"the stored request of call {call.id} has changed",
                place=str(self._shared.ledger.path),
                remedy="restore a copy of the ledger, or give a new --out",
            )
        if not await self._turn():
            return self._unsent(pending)
        began, used, number = self._loop.time(), pending.used, pending.announced
        while True:
            used, number = used + 1, number + 1
            exchange = await self._exchange(call, number, last=used >= law.attempts)
            reading = exchange.reading
            if isinstance(reading, Completion):
                return self._complete(call, number, exchange, reading)
            if reading.remedy == "fatal":
                self._record(call, number, "refused", exchange)
                raise refusal(self.name, self._judge, reading, exchange.status, then=_AGAIN)
            if reading.remedy == "rejected":
                return self._give_up(call, number, exchange, reading)
            wait_s = self._shared.backoff.wait_s(self._shared.seed, call.id, used, exchange.asked_s)
            if exchange.asked_s is not None:
                self._pace.hold(self._loop.time() + min(exchange.asked_s, law.give_up_after_s))
            if used >= law.attempts or self._loop.time() - began + wait_s > law.give_up_after_s:
                return self._give_up(call, number, exchange, reading)
            self._record(call, number, reading.reason, exchange)
            if not (await self._pause(wait_s) and await self._turn()):
                return None
            self._shared.tally.retries += 1
            await asyncio.wrap_future(self._shared.ledger.intend([(call.rank, number + 1)]))

    async def _exchange(self, call: Call, number: int, *, last: bool) -> Exchange:
        tally = self._shared.tally
        tally.in_flight += 1
        self._sent += 1
        try:
            return await self._line.send(call.request)
        except asyncio.CancelledError:
            # Sent, and we hung up: unknown outcome, as after a crash.
            with suppress(SecondOrderError):
                outcome = Outcome("no_completion", "interrupted") if last else None
                self._record(call, number, "interrupted", outcome=outcome)
            raise
        finally:
            tally.in_flight -= 1

    def _complete(self, call: Call, number: int, exchange: Exchange, completion: Completion) -> None:
        self._silence.answered = True
        if not self._halted.is_set():  # an answer from before the judge went away ends nothing
            self._end_unanswered()
        self._shared.admission.pay(self.name, completion)
        try:
            outcome = outcome_of(completion, self._shared.parse, call)
        except SecondOrderError:
            self._record(call, number, "completed", exchange)
            raise
        self._record(call, number, "completed", exchange, outcome)

    def _record(
        self,
        call: Call,
        number: int,
        result: str,
        exchange: Exchange | None = None,
        outcome: Outcome | None = None,
        error: str = "",
    ) -> None:
        self._shared.ledger.record(attempt_of(call, number, result, exchange, outcome, error))
        if outcome is not None:
            if not call.warmup:
                self._shared.tally.end(outcome)
            self._shared.admission.observe(call, outcome)
            self._heard.set()

    def _unsent(self, pending: PendingCall) -> None:
        with suppress(StorageError):
            self._record(pending.call, pending.announced + 1, "unsent")

    async def _turn(self) -> bool:
        """Wait for a place under the rate limit; False when the run was halted meanwhile."""
        return await self._pause(self._pace.reserve(self._loop.time()))

    async def _pause(self, seconds: float) -> bool:
        if seconds > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._halted.wait(), seconds)
        return not self._halted.is_set()

    # -- when the judge as a whole fails ------------------------------------------------------------------------------

    def _give_up(self, call: Call, number: int, exchange: Exchange, failure: Failure) -> None:
        """The attempts are used up. Whether that ends the call is known once the judge answers, or is away."""
        if not self._silence.covers(failure):
            return self._record(call, number, failure.reason, exchange, Outcome("no_completion", failure.reason))
        self._record(call, number, failure.reason, exchange)
        if self._silence.add(Unanswered(call, number, failure)):
            raise self._useless(str(self._silence))
        return None

    def _end_unanswered(self) -> None:
        for call, number, failure in self._silence.end():
            outcome = Outcome("no_completion", failure.reason)
            self._record(call, number, "not_called", outcome=outcome, error=failure.detail)

    def _useless(self, problem: str) -> EndpointError:
        return EndpointError(
            problem,
            place=place_of(self.name, self._judge),
            remedy=f"mend the server or the judge's settings, then {_AGAIN}",
        )


_AGAIN = "give the same command again: what is stored is kept"
