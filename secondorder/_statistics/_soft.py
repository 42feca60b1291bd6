"""Acquired soft verdicts: how much of their mass stands on verdicts, and whether sampled verdicts follow them.

A cube of a run with soft verdicts holds in ``verdict`` what the same calls sampled. Imported soft verdicts have no such
twin: nothing can be tested there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._attributes import attribute, class_labels, load
from secondorder._labels._cube import by_text, groups
from secondorder._schema import CLASS, JUDGE, REASONS, REPEAT, SOFT_REASONS
from secondorder.core._concordance import Concordance, concordance

__all__ = ["SoftSummary", "has_sampled", "is_soft", "sampled_verdicts", "soft_notes", "soft_part", "summarise"]

Floats = NDArray[np.float64]
LEVEL = 0.05
ROUNDING = 1e-12


class SoftSummary(NamedTuple):
    """Soft verdicts of one judge.

    Attributes
    ----------
    n_calls : int
        Calls with a soft verdict.
    undefined : mapping of str to int
        Completed calls without one, by reason.
    listed, other, unlisted : float
        Mean mass on tokens that say a verdict; on what says none, be it another listed token or an answer that is ⊥
        as a whole; and on no listed token.
    shares : array, shape (C,)
        Mean vector.
    found : Concordance
    pvalue : float
        Of the whole test: half its level for all calls together, half for the cells (Holm).
    """

    n_calls: int
    undefined: Mapping[str, int]
    listed: float
    other: float
    unlisted: float
    shares: Floats
    found: Concordance
    pvalue: float


def has_sampled(cube: xr.Dataset) -> bool:
    """Whether sampled verdicts stand beside the soft ones."""
    return "soft" in cube and attribute(cube, "soft") is not None


def sampled_verdicts(cube: xr.Dataset) -> xr.Dataset:
    """The same calls with the verdicts that they sampled."""
    return cube.drop_vars(["soft", "unlisted"], errors="ignore")


def summarise(cube: xr.Dataset, seed: int = 0) -> SoftSummary:
    """Soft verdicts of a cube without groups against those that its calls sampled."""
    cells = [dim for dim in cube["verdict"].dims if dim != REPEAT]
    codes = load(cube["verdict"].transpose(*cells, REPEAT))
    size = codes.shape[-1]
    vectors = load(cube["soft"].transpose(*cells, REPEAT, CLASS)).reshape(-1, size, cube.sizes[CLASS])
    unlisted: Floats = np.zeros((len(vectors), size))
    if "unlisted" in cube:
        unlisted = load(cube["unlisted"].transpose(*cells, REPEAT)).reshape(-1, size)
    there = ~np.isnan(vectors).any(-1)
    found = concordance(vectors, codes.reshape(-1, size), unlisted=unlisted, seed=seed)
    mean = vectors[there].mean(0) if there.any() else np.full(vectors.shape[-1], np.nan)
    none = float(unlisted[there].mean()) if there.any() else np.nan
    listed = float(mean[:-1].sum())
    smallest = float(np.nanmin(found.adjusted, initial=1.0))
    return SoftSummary(
        int(there.sum()),
        _undefined(cube),
        listed,
        other if (other := 1.0 - listed - none) > ROUNDING else 0.0,
        none,
        mean,
        found,
        float(np.fmin(1.0, 2.0 * np.fmin(found.total_pvalue, smallest))),
    )


def _undefined(cube: xr.Dataset) -> dict[str, int]:
    if "reason" not in cube:
        return {}
    reason = load(cube["reason"])
    counts = {word: int((reason == REASONS.index(word)).sum()) for word in SOFT_REASONS}
    return {word: count for word, count in counts.items() if count}


def soft_notes(cube: xr.Dataset, by: Mapping[str, str], seed: int) -> tuple[str, ...]:
    """What a reader of a group's numbers has to know of its soft verdicts; nothing where it has none of a run."""
    if not is_soft(cube, by):
        return ()
    soft = summarise(cube, seed)
    notes = []
    if soft.undefined:
        why = ", ".join(f"{word} {count:,}" for word, count in soft.undefined.items())
        total = sum(soft.undefined.values())
        calls, are = ("call has", "is") if total == 1 else ("calls have", "are")
        notes.append(
            f"{total:,} completed {calls} no soft verdict ({why}) and {are} left out: what is left out may depend on "
            "the verdict"
        )
    if soft.n_calls:
        notes.append(
            f"soft verdicts: {_percent(soft.listed)} of the probability is on tokens that say a verdict; "
            f"{_percent(soft.other)} on what says none and {_percent(soft.unlisted)} unlisted count as ⊥"
        )
        notes.append(_agreement(soft))
    return tuple(notes)


def is_soft(cube: xr.Dataset, by: Mapping[str, str]) -> bool:
    """Whether the group `by` of a run has soft verdicts beside sampled ones."""
    if not has_sampled(cube):
        return False
    judges = attribute(cube, "soft")
    alone = JUDGE in cube.coords and cube[JUDGE].ndim == 0
    judge = by.get(JUDGE, str(cube[JUDGE].values) if alone else None)
    return judge is None or judge in judges


def _agreement(soft: SoftSummary) -> str:
    cells = int(np.isfinite(soft.found.pvalue).sum())
    smallest = float(np.nanmin(soft.found.adjusted, initial=1.0))
    tests = f"all calls p = {soft.found.total_pvalue:.2g}, smallest of {cells:,} cells p = {smallest:.2g} (Holm)"
    if soft.pvalue <= LEVEL:
        return (
            f"the verdicts sampled by the same calls contradict their soft verdicts ({tests}): these are not the "
            "numbers of the judge's answers"
        )
    return f"the verdicts sampled by the same calls do not contradict their soft verdicts ({tests})"


def soft_part(cube: xr.Dataset, seed: int = 0) -> xr.Dataset:
    """Soft verdicts of every judge that has them, for the report.

    Returns
    -------
    Dataset, dims (group, class, reason)
        ``sampled`` and ``soft`` shares of the classes; ``n_calls``, ``listed``, ``other``, ``unlisted``,
        ``total_pvalue``, ``cell_pvalue`` (the smallest, Holm), ``n_cells``, ``n_rejected``, ``pvalue``; ``undefined``
        calls by reason. Empty where no judge has any.
    """
    found = {by_text(by): summarise(part, seed) for by, part in groups(cube) if is_soft(part, by)}
    if not found:
        return xr.Dataset()
    rows = list(found.values())
    fields: dict[str, list[Any]] = {
        "n_calls": [row.n_calls for row in rows],
        "listed": [row.listed for row in rows],
        "other": [row.other for row in rows],
        "unlisted": [row.unlisted for row in rows],
        "total_pvalue": [row.found.total_pvalue for row in rows],
        "cell_pvalue": [float(np.nanmin(row.found.adjusted, initial=1.0)) for row in rows],
        "n_cells": [int(np.isfinite(row.found.pvalue).sum()) for row in rows],
        "n_rejected": [int((row.found.adjusted <= LEVEL / 2).sum()) for row in rows],
        "pvalue": [row.pvalue for row in rows],
    }
    reasons = [word for word in SOFT_REASONS if any(word in row.undefined for row in rows)]
    shares = {
        "sampled": [row.found.sampled / max(row.n_calls, 1) for row in rows],
        "soft": [row.shares for row in rows],
    }
    return xr.Dataset(
        {name: ("group", values) for name, values in fields.items()}
        | {name: (("group", CLASS), values) for name, values in shares.items()}
        | {"undefined": (("group", "reason"), [[row.undefined.get(word, 0) for word in reasons] for row in rows])},
        coords={"group": list(found), CLASS: list(class_labels(cube)), "reason": reasons},
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if 0 < share < 0.01 else f"{100 * share:.1f} %"
