"""Which calls of a judge come next: the ledger's pending ones in send order, as far as they are wanted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import groupby

from secondorder.acquire._admission import LATER, UNDECIDED
from secondorder.acquire._ledger import Ledger
from secondorder.acquire._ledger_read import LedgerReader, PendingCall

__all__ = ["PAGE", "Job", "Jobs"]

PAGE = 256

Job = list[PendingCall]
"""Calls that one worker makes one after the other: a single one, or those of a cell."""


class Jobs:
    """Jobs of one judge in send order; those that wait for a decision come first once it is taken.

    Parameters
    ----------
    name : str
        The judge.
    reader : LedgerReader
        Of the ledger with its calls.
    ledger : Ledger
        Its writer, which is waited for from page to page.
    admit : callable
        Says of a call ``""`` to send it, :data:`~secondorder.acquire._admission.UNDECIDED`,
        :data:`~secondorder.acquire._admission.LATER`, or why not: then the call has ended. With True, not the third.
    halted : asyncio.Event
        Once set, there are no further jobs.
    sequential : bool
        Whether the calls of a cell follow each other (``send = "by-cell"``).
    """

    def __init__(
        self,
        name: str,
        reader: LedgerReader,
        ledger: Ledger,
        admit: Callable[[PendingCall, bool], str],
        halted: asyncio.Event,
        *,
        sequential: bool,
    ) -> None:
        self.waiting: list[Job] = []
        self._name = name
        self._reader = reader
        self._ledger = ledger
        self._admit = admit
        self._halted = halted
        self._sequential = sequential
        self.later = False
        self._new = self._pending()

    async def portion(self, size: int, *, now: bool = False) -> list[Job]:
        """Up to `size` wanted jobs: first those that have waited for a decision, then new ones.

        ``later`` says afterwards whether a policy holds everything else back; with `now` it is not asked to.
        """
        waiting, self.waiting = self.waiting, []
        portion: list[Job] = []
        self.later = False
        for position, held in enumerate(waiting):
            if len(portion) >= size or self.later:
                self.waiting += waiting[position:]
                break
            if self._keep(held, now):
                portion.append(held)
        while len(portion) < size and not self.later and (job := await anext(self._new, None)) is not None:
            if self._keep(job, now):
                portion.append(job)
        return portion

    async def _pending(self) -> AsyncIterator[Job]:
        after, kept = -1, list[PendingCall]()
        while not self._halted.is_set():
            page = await asyncio.to_thread(self._reader.pending, self._name, after=after, limit=PAGE)
            jobs = [list(group) for _, group in groupby(kept + page, key=self._cell)]
            # The last cell may go on on the next page.
            kept = jobs.pop() if page and self._sequential else []
            for job in jobs:
                if self._halted.is_set():
                    return
                yield job
            if not page:
                return
            after = page[-1].call.rank
            await asyncio.wrap_future(self._ledger.intend(()))  # a long row of not_called must not pile up

    def _cell(self, pending: PendingCall) -> object:
        call = pending.call
        return (call.item, call.prompt, call.order) if self._sequential else call.rank

    def _keep(self, job: Job, now: bool) -> bool:
        """Whether a job is to be done now: calls that are not wanted end, one to ask again makes its job wait."""
        while job:
            reason = self._admit(job[0], now)
            if not reason:
                return True
            if reason in (UNDECIDED, LATER):
                self.later = reason == LATER
                self.waiting.append(job)
                return False
            del job[0]
        return False
