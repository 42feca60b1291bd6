"""What a run reports while it goes, and when it has ended."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

import msgspec

from secondorder._schema import STATUS
from secondorder.acquire._ledger_read import OutcomeCount
from secondorder.acquire._types import Outcome

__all__ = ["Progress", "Summary", "Tally"]

WINDOW_S = 10.0


class Progress(msgspec.Struct, frozen=True):
    """State of a run at one moment; handed to the progress callback.

    Attributes
    ----------
    done, total : int
        Calls with a terminal outcome (earlier runs included), and planned calls; warm-ups apart.
    valid, invalid, no_completion, not_called : int
        `done` by status.
    retries : int
        Further attempts in this run.
    in_flight : int
        Calls sent and not yet answered.
    rate : float
        Calls per second that ended in the last ten seconds.
    eta_s : float or None
        Seconds left at that rate; None while nothing has ended.
    stopping : bool
        True once the run only waits for the calls in flight.
    """

    done: int
    total: int
    valid: int
    invalid: int
    no_completion: int
    not_called: int
    retries: int
    in_flight: int
    rate: float
    eta_s: float | None
    stopping: bool


class Tally:
    """Running counts of a run; what :class:`Progress` is a snapshot of."""

    def __init__(self, counts: Sequence[OutcomeCount]) -> None:
        self.total = sum(row.count for row in counts)
        self.ended = dict.fromkeys(STATUS, 0)
        for row in counts:
            if row.status is not None:
                self.ended[row.status] += row.count
        self.retries = 0
        self.in_flight = 0
        self.stopping = False
        self._marks: deque[tuple[float, int]] = deque([(time.monotonic(), sum(self.ended.values()))])

    def end(self, outcome: Outcome) -> None:
        """Count a terminal outcome of a call inside the design."""
        self.ended[outcome.status] += 1

    def snapshot(self) -> Progress:
        """State now; the rate is taken between snapshots."""
        now, done = time.monotonic(), sum(self.ended.values())
        self._marks.append((now, done))
        while len(self._marks) > 2 and self._marks[1][0] <= now - WINDOW_S:
            self._marks.popleft()
        since, before = self._marks[0]
        rate = (done - before) / (now - since) if now > since else 0.0
        eta_s = (self.total - done) / rate if rate > 0 else None
        return Progress(
            done=done,
            total=self.total,
            **self.ended,
            retries=self.retries,
            in_flight=self.in_flight,
            rate=rate,
            eta_s=eta_s,
            stopping=self.stopping,
        )


class Summary(msgspec.Struct, frozen=True):
    """How a ledger stands after a run.

    Attributes
    ----------
    counts : tuple of OutcomeCount
        Planned calls by judge, status and reason, over all runs; warm-ups apart.
    attempts : dict
        Attempts by (judge, result), over all runs; warm-ups included.
    seconds : float
        Duration of this run.
    interrupted : bool
        True when this run was asked to stop before its end.
    """

    counts: tuple[OutcomeCount, ...]
    attempts: dict[tuple[str, str], int]
    seconds: float
    interrupted: bool = False

    @property
    def planned(self) -> int:
        """Planned calls."""
        return sum(row.count for row in self.counts)

    @property
    def open(self) -> int:
        """Planned calls without terminal outcome: what a resumed run will call."""
        return sum(row.count for row in self.counts if row.status is None)

    @property
    def missing(self) -> int:
        """Calls that ended without completion."""
        return sum(row.count for row in self.counts if row.status == "no_completion")

    def __str__(self) -> str:
        width = max((len(row.judge) for row in self.counts), default=5)
        lines = [f"{'judge':<{width}}  {'outcome':<13}  {'reason':<13}  {'calls':>9}"]
        lines += [
            f"{row.judge:<{width}}  {row.status or 'open':<13}  {row.reason or '–':<13}  {row.count:>9,}"
            for row in self.counts
        ]
        total = sum(self.attempts.values())
        lines.append(f"{self.planned:,} calls planned, {self.open:,} open, {total:,} attempts, {self.seconds:.1f} s")
        return "\n".join(lines)
