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

AWAY = frozenset({"connection", "rate_limited"})
ERRORS = frozenset({"http_error"})
"""Reasons that do not look at the call, and those that may: both can be the judge's own."""


class Unanswered(NamedTuple):
    """A call whose attempts are used up."""

    call: Call
    number: int
    failure: Failure


class Silence:
    """Calls that a judge has left without answer since its last one.

    Calls that show a judge to be away are not at fault: they stay pending, and the next run asks them again. Until a
    judge has answered for the first time, nothing that comes back instead of an answer is the call's fault: it may be a
    page of a proxy, or a request that the server does not take in this form.

    Parameters
    ----------
    answered : bool
        Whether the judge has ever answered.

    Examples
    --------
    >>> silence = Silence(answered=True)
    >>> silence.covers(Failure("connection", "retry", "refused")), silence.covers(Failure("timeout", "retry", ""))
    (True, False)
    """

    def __init__(self, *, answered: bool) -> None:
        self.answered = answered
        self._calls: list[Unanswered] = []
        self._items: set[str] = set()
        self._errors = 0

    def __len__(self) -> int:
        return len(self._calls)

    def covers(self, failure: Failure) -> bool:
        """Whether a failure of this kind may be the judge's and not the call's."""
        return not self.answered or failure.reason in AWAY | ERRORS

    def add(self, unanswered: Unanswered) -> bool:
        """Count one more; whether the judge is away."""
        self._calls.append(unanswered)
        self._items.add(unanswered.call.item)
        self._errors += unanswered.failure.reason in ERRORS
        return len(self) >= SILENT and (not self._errors or len(self._items) >= SILENT_ITEMS)

    def __str__(self) -> str:
        """What happened, with the latest detail."""
        rejected = all(each.failure.remedy == "rejected" for each in self._calls)
        what = "were all rejected" if rejected else "got no answer"
        if len(self) == 1:
            what = what.replace("were all", "was")
        return f"{len(self)} call{'s in a row' * (len(self) > 1)} {what} ({self._calls[-1].failure.detail})"

    def end(self) -> list[Unanswered]:
        """The judge is there: the calls that have ended by that."""
        self.answered = True
        ended, self._calls, self._items, self._errors = self._calls, [], set(), 0
        return ended
