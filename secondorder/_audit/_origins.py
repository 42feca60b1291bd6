"""Where the answers of a run came from: which regime of a judge, and whether they say that a cache gave them."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from secondorder.acquire import AuditSpec, Record, reread
from secondorder.acquire._cache_signs import cache_signs

__all__ = ["NO_ORIGIN", "Origin", "Origins"]


class Origin(NamedTuple):
    """Code of the regime that answered a call, and whether the answer says that it comes from a cache."""

    regime: int
    cached: bool


NO_ORIGIN = Origin(-1, False)


class _Regime(NamedTuple):
    judge: str
    asked: str
    model: str
    fingerprint: str
    tier: str
    provider: str


class Origins:
    """Regimes in the order in which they first answer, over the calls of one cube.

    A regime is what the server says of itself: model, fingerprint, service tier and provider. Different ones are
    different response laws.

    Parameters
    ----------
    spec : AuditSpec
        The run's.
    """

    def __init__(self, spec: AuditSpec) -> None:
        self._spec = spec
        self._codes: dict[_Regime, int] = {}
        self._calls: Counter[_Regime] = Counter()

    def add(self, record: Record) -> Origin:
        """Where the answer to a call came from (its record read with the response)."""
        name = record.call.judge
        judge = self._spec.judges[name]
        completion = reread(record, judge)
        if completion is None:
            return NO_ORIGIN
        said = (completion.model, completion.fingerprint, completion.tier, completion.provider)
        regime = _Regime(name, judge.model, *said)
        self._calls[regime] += 1
        code = self._codes.setdefault(regime, len(self._codes))
        return Origin(code, bool(cache_signs(completion, record.headers)))

    @property
    def regimes(self) -> list[dict[str, str | int]]:
        """What every code stands for, and its number of calls."""
        return [{**regime._asdict(), "calls": self._calls[regime]} for regime in self._codes]
