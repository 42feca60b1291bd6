"""Acquire what a ledger still lacks: all judges at once, resumable at any moment, each call ended exactly once."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from secondorder.acquire._admission import Admission, Policy
from secondorder.acquire._http import check_judge
from secondorder.acquire._judge_run import JudgeRun, Shared
from secondorder.acquire._ledger import Attempt, Ledger
from secondorder.acquire._ledger_read import LedgerReader, read_ledger
from secondorder.acquire._outcome import Parser, outcome_of, reread
from secondorder.acquire._progress import Progress, Summary, Tally
from secondorder.acquire._retry import Backoff
from secondorder.acquire._spec import JudgeSpec, LimitsSpec, RetrySpec
from secondorder.acquire._types import Outcome
from secondorder.errors import EndpointError, SpecError

__all__ = ["acquire", "run_calls"]

TICK_S = 0.1


def run_calls(
    path: str | Path,
    judges: Mapping[str, JudgeSpec],
    *,
    parse: Parser,
    seed: int,
    retry: RetrySpec | None = None,
    limits: LimitsSpec | None = None,
    policy: Policy | None = None,
    progress: Callable[[Progress], None] | None = None,
    backoff: Backoff | None = None,
) -> Summary:
    """Call every planned call of a ledger that has no terminal outcome; the same call again resumes.

    Works inside and outside a running event loop (a notebook). ``KeyboardInterrupt`` (Ctrl-C) or SIGTERM once: nothing
    more is sent, the calls in flight may end and are stored; twice: they are hung up. Either way the ledger is whole.

    Parameters
    ----------
    path : path
        A ledger made by :func:`create_ledger`.
    judges : mapping of str to JudgeSpec
        Every judge that the ledger's calls name.
    parse : callable
        ``(text, finish_reason, call) -> Outcome`` of a completed call.
    seed : int
        Audit seed: the jitter of waits is a function of it.
    retry, limits : RetrySpec, LimitsSpec, optional
        Of the spec.
    policy : Policy, optional
        Stop rule or gate.
    progress : callable, optional
        Called with a :class:`Progress` about ten times a second, in the calling thread.
    backoff : Backoff, optional
        Waits between attempts.

    Returns
    -------
    Summary
        How the ledger stands.

    Raises
    ------
    LockedError, InputError, SpecError
        Before anything is sent.
    EndpointError, KeyRefusedError
        A judge had to be stopped; what the others had to do is done, everything is stored.
    StorageError, CorruptFileError
        The disk or the file failed; what was stored is kept.
    KeyboardInterrupt
        After storing what had come in.
    """
    latest: list[Progress] = []
    result: list[Summary | BaseException] = []
    ended = threading.Event()
    brake = _Brake()

    async def main() -> Summary:
        stop = asyncio.Event()
        with Ledger(path) as ledger:
            task = asyncio.create_task(
                acquire(
                    ledger,
                    judges,
                    parse=parse,
                    seed=seed,
                    retry=retry,
                    limits=limits,
                    policy=policy,
                    progress=latest.append if progress is not None else None,
                    backoff=backoff,
                    stop=stop,
                )
            )
            brake.attach(asyncio.get_running_loop(), stop, task)
            return await task

    def work() -> None:
        try:
            result.append(asyncio.run(main()))
        except BaseException as error:
            result.append(error)
        finally:
            ended.set()

    # A thread of its own: the calling thread stays free for Ctrl-C and for the progress callback, and a loop that
    # already runs there (a notebook's) is no obstacle.
    thread = threading.Thread(target=work, name="acquire")
    with brake:
        thread.start()
        try:
            while not ended.wait(TICK_S):
                if progress is not None and latest:
                    progress(latest[-1])
                    del latest[:-1]
            if progress is not None and latest:
                progress(latest[-1])
        except BaseException:
            brake.press(hard=True)
            raise
        finally:
            thread.join()
    end = result[0]
    if isinstance(end, Exception):
        raise end
    if brake.pressed or isinstance(end, BaseException):
        raise KeyboardInterrupt
    return end


class _Brake:
    """Ctrl-C while a run goes: the first press halts it, the second hangs up. Active inside a ``with`` block.

    A polite kill (SIGTERM: a batch system's time is over) is a press too.
    """

    def __init__(self) -> None:
        self.pressed = 0
        self._actions: list[Callable[[], object]] = []

    def attach(self, loop: asyncio.AbstractEventLoop, stop: asyncio.Event, task: asyncio.Task[Summary]) -> None:
        """Tell the brake what to stop; what was pressed before counts."""
        self._actions = [
            lambda: loop.call_soon_threadsafe(stop.set),
            lambda: loop.call_soon_threadsafe(task.cancel),
        ]
        if self.pressed:
            self._act(hard=self.pressed > 1)

    def press(self, *, hard: bool = False) -> None:
        """Press once more."""
        self.pressed += 1
        self._act(hard=hard or self.pressed > 1)

    def _act(self, *, hard: bool) -> None:
        with suppress(RuntimeError, IndexError):  # the loop has just closed, or has not begun
            self._actions[hard]()

    def __enter__(self) -> None:
        # A handler, not the exception: that could strike anywhere, also between two statements of the clean-up.
        self._previous: dict[signal.Signals, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, lambda *_: self.press())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)


async def acquire(
    ledger: Ledger,
    judges: Mapping[str, JudgeSpec],
    *,
    parse: Parser,
    seed: int,
    retry: RetrySpec | None = None,
    limits: LimitsSpec | None = None,
    policy: Policy | None = None,
    progress: Callable[[Progress], None] | None = None,
    backoff: Backoff | None = None,
    stop: asyncio.Event | None = None,
) -> Summary:
    """Coroutine behind :func:`run_calls`, on an open ledger; `stop`, once set, ends the run softly."""
    began = time.monotonic()
    retry = retry or RetrySpec()
    with read_ledger(ledger.path) as reader:
        planned = reader.judges()
        if unknown := sorted(planned.keys() - judges.keys()):
            raise SpecError(
                f"the ledger has calls of judge {unknown[0]!r}", remedy=f"judges given: {', '.join(judges)}"
            )
        _recover(reader, ledger, judges, parse, retry)
        waiting = [] if reader.complete() else [name for name in planned if reader.pending(name, after=-1, limit=1)]
        for name in waiting:
            check_judge(name, judges[name])
        tally = Tally(reader.counts())
        admission = Admission(judges, limits or LimitsSpec(), policy, reader.usage())
        if policy is not None:
            for record in reader.outcomes():
                if record.outcome is not None:
                    admission.observe(record.call, record.outcome)
        answered = {judge for judge, result in reader.attempt_counts() if result == "completed"}

    def halt_all() -> None:
        tally.stopping = True
        for run in runs:
            run.halt()

    shared = Shared(ledger, tally, admission, parse, retry, backoff or Backoff(), seed, halt_all)
    runs = [
        JudgeRun(name, judges[name], shared, answered=name in answered, sequential=planned[name] > 0)
        for name in waiting
    ]
    helpers = [asyncio.create_task(_when(stop, halt_all))] if stop is not None else []
    if progress is not None:
        helpers.append(asyncio.create_task(_report(tally, progress)))
    try:
        ends = await asyncio.gather(*(run.run() for run in runs), return_exceptions=True)
    finally:
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
    await asyncio.wrap_future(ledger.intend(()))
    if progress is not None:
        progress(tally.snapshot())
    _raise_first([end for end in ends if isinstance(end, BaseException)])
    with read_ledger(ledger.path) as reader:
        if "outcomes_sha256" not in ledger.meta and reader.complete():
            ledger.set_meta("outcomes_sha256", reader.digest())
        return Summary(
            tuple(reader.counts()),
            reader.attempt_counts(),
            time.monotonic() - began,
            interrupted=stop is not None and stop.is_set(),
        )


def _recover(
    reader: LedgerReader, ledger: Ledger, judges: Mapping[str, JudgeSpec], parse: Parser, retry: RetrySpec
) -> None:
    """Close what a crash left open: unknown outcomes are no completions, stored answers are parsed."""
    for rank, number, used in reader.unknown():
        outcome = Outcome("no_completion", "interrupted") if used + 1 >= retry.attempts else None
        error = "its process ended before the outcome was stored"
        ledger.record(Attempt(call=rank, number=number, result="interrupted", outcome=outcome, error=error))
    for record in reader.unparsed():
        completion = reread(record, judges[record.call.judge])
        if completion is not None:
            outcome = outcome_of(completion, parse, record.call)
            kept = {name: getattr(record, name) for name in Attempt.__struct_fields__ if hasattr(record, name)}
            ledger.record(Attempt(**kept | {"call": record.call.rank, "result": "reparsed", "outcome": outcome}))
    ledger.flush()


async def _when(event: asyncio.Event, action: Callable[[], None]) -> None:
    await event.wait()
    action()


async def _report(tally: Tally, progress: Callable[[Progress], None]) -> None:
    while True:
        progress(tally.snapshot())
        await asyncio.sleep(TICK_S)


def _raise_first(errors: list[BaseException]) -> None:
    """Raise what concerns the whole run before what concerns one judge; several judges' refusals in one line."""
    for error in errors:
        if not isinstance(error, EndpointError):
            raise error
    refusals = [error for error in errors if isinstance(error, EndpointError)]
    if len(refusals) == 1:
        raise refusals[0]
    if refusals:
        raise EndpointError(f"{len(refusals)} judges were stopped: " + " | ".join(str(error) for error in refusals))
