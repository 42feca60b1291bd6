"""What the calls of a group say of where their answers came from, where a cube carries it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from secondorder._labels._attributes import attribute, load
from secondorder._schema import CODE_MISSING

__all__ = ["NAMED", "SharedIds", "origin_notes", "regimes_of", "shared_ids"]

NAMED = ("model", "fingerprint", "tier", "provider")
SHOWN = 3


class SharedIds(NamedTuple):
    """Response ids that stand at several calls.

    Attributes
    ----------
    calls : int
        Calls whose response id another call has too.
    groups : int
        Such ids.
    varied : int
        Those of them whose calls have different verdicts: no copies of one answer. Where there is one, the server's
        ids are not unique, and equal ids prove no copy.
    """

    calls: int
    groups: int
    varied: int

    def __str__(self) -> str:
        if not self.varied:
            return (
                f"{self.calls} calls share a response id with another, and its verdict: copies of an answer, not calls"
            )
        rest = "" if self.varied == self.groups else "; where they do not, the calls may be copies or not"
        return (
            f"{self.calls} calls share a response id with another, but under {self.varied} of these {self.groups} ids "
            f"the verdicts differ: the server's ids are not unique{rest}"
        )


def shared_ids(cube: xr.Dataset) -> SharedIds | None:
    """Response ids that stand at several calls, and whether one answer can stand behind them; None without ids."""
    if "response_key" not in cube:
        return None
    verdict = cube["verdict"]
    keys, codes = load(cube["response_key"].transpose(*verdict.dims)).ravel(), load(verdict).ravel()
    known = (keys != 0) & (codes != CODE_MISSING)
    pairs, calls = np.unique(np.stack([keys[known], codes[known].astype(np.int64)]), axis=1, return_counts=True)
    _, place, verdicts = np.unique(pairs[0], return_inverse=True, return_counts=True)
    total = np.bincount(place, weights=calls).astype(np.int64)
    shared = total > 1
    return SharedIds(int(total[shared].sum()), int(shared.sum()), int((verdicts > 1).sum()))


def regimes_of(cube: xr.Dataset) -> list[Mapping[str, Any]]:
    """Regimes that answered the calls of a cube, with their numbers of calls there, the most frequent first."""
    if "regime" not in cube:
        return []
    known = attribute(cube, "regimes", [])
    codes = load(cube["regime"])
    codes, counts = np.unique(codes[codes >= 0], return_counts=True)
    found = [{**_named(known, int(code)), "calls": int(count)} for code, count in zip(codes, counts, strict=True)]
    return sorted(found, key=lambda regime: -regime["calls"])


def _named(known: list[Mapping[str, Any]], code: int) -> Mapping[str, Any]:
    """A regime by its code; a cube from elsewhere may have codes without names."""
    if code < len(known):
        return known[code]
    return {"asked": "", **dict.fromkeys(NAMED, ""), "fingerprint": f"regime {code}"}


def origin_notes(cube: xr.Dataset) -> tuple[str, ...]:
    """What a reader of a group's numbers has to know of its answers: copies, caches, several servers, another model."""
    notes = []
    if (shared := shared_ids(cube)) is not None and shared.calls:
        notes.append(str(shared))
    if "cached" in cube and (cached := int(load(cube["cached"]).sum())) > 0:
        notes.append(f"{cached} answers say that they come from a cache: they are no calls of their own")
    regimes = regimes_of(cube)
    if len(regimes) > 1:
        varied = [name for name in NAMED if len({regime[name] for regime in regimes}) > 1]
        said = [f"{' '.join(regime[name] or '–' for name in varied)} ({regime['calls']})" for regime in regimes]
        more = f" and {len(said) - SHOWN} more" if len(said) > SHOWN else ""
        changed = f"{', '.join(varied)} changed: {', '.join(said[:SHOWN])}{more}"
        notes.append(f"{changed}; calls of different servers are not one judge")
    for asked, served in sorted({(regime["asked"], regime["model"]) for regime in regimes}):
        if served and served != asked:
            notes.append(f"asked for the model {asked}, answered by {served}")
    return tuple(notes)
