"""The frozen law of retries, and the pace of sending. Pure functions of numbers: no clock, no sleep, no generator."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import NamedTuple

from secondorder._canon import blake2b_64

__all__ = ["Backoff", "Pace", "retry_after_s"]


class Backoff(NamedTuple):
    """Exponential backoff with jitter from the audit seed.

    Attributes
    ----------
    base_s : float
        Middle of the first wait is three quarters of this.
    cap_s : float
        No wait is longer, except where the server asks for more.
    """

    base_s: float = 1.0
    cap_s: float = 60.0

    def wait_s(self, seed: int, call: str, attempt: int, asked_s: float | None = None) -> float:
        """Seconds to wait after failed attempt number `attempt` of a call.

        Between half of and all of ``min(cap, base · 2^(attempt − 1))``, by a hash of (seed, call, attempt): a rerun
        waits the same, and calls that failed together do not come back together. Where the server asked for a time,
        that time and a jitter of at most `base_s`.

        Examples
        --------
        >>> law = Backoff()
        >>> [round(law.wait_s(1, "call", attempt), 2) for attempt in (1, 2, 3)]
        [0.83, 1.27, 2.08]
        >>> 5.0 <= law.wait_s(1, "call", 1, asked_s=5.0) <= 6.0
        True
        """
        share = blake2b_64(["backoff", seed, call, attempt]) / 2**64
        if asked_s is not None:
            return asked_s + self.base_s * share
        longest = min(self.cap_s, self.base_s * 2.0 ** min(attempt - 1, 60))
        return longest * (1.0 + share) / 2.0


class Pace:
    """Spacing of sends under ``requests_per_minute``, by the generic cell rate algorithm.

    Sends are spread evenly; after a pause at most one second's worth may follow at once, so that no window of a minute
    holds more than the minute's number plus that burst.

    Parameters
    ----------
    per_minute : float or None
        Rate; None for no limit.
    """

    def __init__(self, per_minute: float | None) -> None:
        self._step = 0.0 if per_minute is None else 60.0 / per_minute
        self._slack = max(0.0, 1.0 - self._step)
        self._next = float("-inf")
        self._not_before = float("-inf")

    def reserve(self, now: float) -> float:
        """Take the next place; returns the seconds to wait before sending."""
        at = max(now, self._next - self._slack, self._not_before)
        self._next = max(self._next, at) + self._step
        return at - now

    def hold(self, until: float) -> None:
        """Send nothing before `until`: the server asked for it."""
        self._not_before = max(self._not_before, until)


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that the server asks to wait, from ``Retry-After`` (seconds or HTTP date) or ``retry-after-ms``.

    A date is counted from the response's own ``Date`` where there is one, so that a wrong clock here does no harm.

    Parameters
    ----------
    headers : mapping
        Response headers, looked up without regard to case by the mapping itself.
    now : float
        Unix time.

    Returns
    -------
    float or None
        Never negative; None without a readable header.

    Examples
    --------
    >>> retry_after_s({"Retry-After": "2"}, 0.0), retry_after_s({"Retry-After": "soon"}, 0.0)
    (2.0, None)
    >>> retry_after_s({"Retry-After": "Thu, 01 Jan 1970 00:01:30 GMT", "Date": "Thu, 01 Jan 1970 00:01:00 GMT"}, 7.0)
    30.0
    """
    asked = _number(headers.get("retry-after-ms") or headers.get("Retry-After-Ms"))
    if asked is not None:
        return max(0.0, asked / 1000.0)
    written = headers.get("Retry-After")
    asked = _number(written)
    if asked is not None:
        return max(0.0, asked)
    at = _date(written)
    if at is None:
        return None
    sent = _date(headers.get("Date"))
    return max(0.0, at - (now if sent is None else sent))


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if isfinite(value) else None


def _date(text: str | None) -> float | None:
    try:
        at = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
