"""Where the answers of a run came from: regimes of every judge, and answers that a cache says it gave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from secondorder.acquire import AuditSpec, Record, reread
from secondorder.acquire._cache_signs import cache_signs

__all__ = ["NO_REGIME", "Origins"]

NO_REGIME = -1


class _Regime(NamedTuple):
    judge: str
    asked: str
    model: str
    fingerprint: str
    tier: str
    provider: str


class Origins:
    """Regimes in the order in which they first answer, and counts of cached answers, over the calls of one cube.

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
        self._cached: Counter[str] = Counter()

    def add(self, record: Record) -> int:
        """Code of the regime that answered a call (its record read with bodies); -1 without an answer."""
        name = record.call.judge
        judge = self._spec.judges[name]
        completion = reread(record, judge)
        if completion is None:
            return NO_REGIME
        said = (completion.model, completion.fingerprint, completion.tier, completion.provider)
        regime = _Regime(name, judge.model, *said)
        self._calls[regime] += 1
        self._cached[name] += bool(cache_signs(completion, record.headers))
        return self._codes.setdefault(regime, len(self._codes))

    @property
    def regimes(self) -> list[dict[str, str | int]]:
        """What every code stands for, and its number of calls."""
        return [{**regime._asdict(), "calls": self._calls[regime]} for regime in self._codes]

    @property
    def cached(self) -> Mapping[str, int]:
        """Answers of each judge whose headers or usage say that they come from a cache."""
        return dict(self._cached)

    @property
    def attributes(self) -> dict[str, Any]:
        """Both, as a cube carries them."""
        return {"regimes": self.regimes, "cached": self.cached}
