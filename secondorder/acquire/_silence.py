"""Whether a judge is away, or only calls fail: calls without answer have ended once the judge answers another one."""

from __future__ import annotations

from typing import NamedTuple

from secondorder.acquire._reading import Failure
from secondorder.acquire._types import Call

__all__ = ["Silence", "Unanswered"]

SILENT = 10
"""Calls in a row without answer after which a judge is away."""

SILENT_ITEMS = 3
"""Where the server answers with errors, an item may be what it stumbles over: then calls of this many items."""

SILENCE = frozenset({"connection", "http_error", "rate_limited"})


class Unanswered(NamedTuple):
    """A call whose attempts are used up."""

    call: Call
    number: int
    failure: Failure


class Silence:
    """Calls that a judge has left without answer since its last one.

    Calls that show a judge to be away are not at fault: they stay pending, and the next run asks them again. An item's
    own fault shows as an error of the server; refused connections and rate limits do not look at the item.

    Examples
    --------
    >>> silence = Silence()
    >>> silence.covers(Failure("connection", "retry", "refused")), silence.covers(Failure("timeout", "retry", ""))
    (True, False)
    """

    def __init__(self) -> None:
        self._calls: list[Unanswered] = []

    def __len__(self) -> int:
        return len(self._calls)

    def covers(self, failure: Failure) -> bool:
        """Whether a failure of this kind may be the judge's and not the call's."""
        return failure.reason in SILENCE

    def add(self, unanswered: Unanswered) -> bool:
        """Count one more; whether the judge is away."""
        self._calls.append(unanswered)
        unrelated = all(each.failure.reason != "http_error" for each in self._calls)
        items = {each.call.item for each in self._calls}
        return len(self) >= SILENT and (unrelated or len(items) >= SILENT_ITEMS)

    def end(self) -> list[Unanswered]:
        """The judge is there: the calls that have ended by that."""
        ended, self._calls = self._calls, []
        return ended
