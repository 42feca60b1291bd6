"""What the calls of a group say of where their answers came from, where a cube carries it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from secondorder._labels._attributes import attribute, load

__all__ = ["NAMED", "origin_notes", "regimes_of", "repeated_ids"]

NAMED = ("model", "fingerprint", "tier", "provider")
SHOWN = 3


def repeated_ids(cube: xr.Dataset) -> int | None:
    """Calls whose response id another call has too; None where the cube carries no ids."""
    if "response_key" not in cube:
        return None
    keys = load(cube["response_key"])
    _, counts = np.unique(keys[keys != 0], return_counts=True)
    return int(counts[counts > 1].sum())


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
    if copies := repeated_ids(cube):
        notes.append(f"{copies} calls share a response id with another: they are copies of an answer, not calls")
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
