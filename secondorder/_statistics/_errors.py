"""Standard errors for each randomness: calls at fixed items, levels of a random facet, items and levels together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from secondorder._statistics._settings import Covers
from secondorder.core._call_variance import Planning, call_variance, planning
from secondorder.core._clusters import cluster_parts, level_errors, two_way_errors
from secondorder.core._estimates import panel_values
from secondorder.core._intervals import ItemErrors
from secondorder.core._repeat_blocks import block_variance
from secondorder.errors import UndefinedError

if TYPE_CHECKING:
    from secondorder._statistics._group import Group

__all__ = ["call_note", "fixed_note", "group_errors", "item_call_coefficients", "item_call_variance", "require_levels"]

ROUNDING = 1e-13
NOT_POSITIVE = (
    "the unbiased estimate of the call variance is not positive: the calls are too few, or too much alike, to tell it "
    "from zero"
)
SAME_LISTS = "all calls of a cell give the same soft verdict: they have no noise"
UPPER_BOUND_NOTE = (
    "se_calls is the standard error over items, an upper bound in expectation: call variance has no unbiased estimate "
    "{why}"
)


def require_levels(group: Group, covers: Covers | None) -> None:
    """Refuse a band over levels that is asked for by name where no facet is random.

    Raises
    ------
    UndefinedError
        Naming the facets that could be declared random.
    """
    if covers == "prompts" and group.design.all_fixed:
        facets = group.design.names or tuple(group.facets)
        first = facets[0] if facets else "prompt"
        raise UndefinedError(
            "no facet is random, so the levels are the whole target and are never drawn anew",
            place="covers='prompts'",
            remedy=f"declare a facet whose levels are a sample: --random {first}, Facet({first!r}, 'random')",
        )


def fixed_note(group: Group) -> str | None:
    """What a reader of a band over items and prompts has to know where no facet is random."""
    if group.settings.covers != "items+prompts" or not group.design.all_fixed:
        return None
    return (
        "no facet is random, so the levels are the whole target: this band covers items alone (a sample of levels is "
        "declared with --random)"
    )


def group_errors(group: Group, covers: Covers) -> ItemErrors:
    """Errors of every component of a group for the randomness `covers`.

    ``calls``: the items and levels are given, the calls are repeated; the variance of the macroaverage is the sum of
    the items' over N squared. ``prompts``: the levels of the one random facet are a sample, shared by all items.
    ``items+prompts``: both. With no random facet the levels are the whole target: nothing is added to items.
    """
    if covers == "items":
        return group.item_errors
    if covers == "calls":
        return _call_errors(group)
    random = [name for name, size in zip(group.design.names, group.design.populations, strict=True) if size is not None]
    if len(random) != 1:
        reason = (
            "no facet is random, so the levels are the whole target (declare a sample of levels with --random)"
            if not random
            else f"facets {', '.join(random)} are random: errors over levels are known for one random facet"
        )
        if not random and covers == "items+prompts":
            return group.item_errors
        return _undefined(group, reason)
    if group.settings.pairs != "complete":
        return _undefined(group, "errors over levels are known for complete pairs")
    if any(group.reasons):
        return _undefined(group, next(filter(None, group.reasons)))
    parts = cluster_parts(group.calls.cells(), group.design, group.components, group.calls.kernel, random[0])
    same, distinct = np.asarray(parts.same), np.asarray(parts.distinct)
    if covers == "prompts":
        return level_errors(same.mean(0), distinct.mean(0), group.scale).errors
    return two_way_errors(same, distinct, group.strata_codes, group.scale).errors


def item_call_variance(group: Group) -> NDArray[np.float64]:
    """Unbiased estimate of each item's call variance, raw (it can be negative); NaN where none exists.

    Complete pairs of hard verdicts: exact and linear in the cells. Across-repeats pairs and soft verdicts: from blocks
    of repeats, whatever happens inside a block. Panels: the spread of their values.

    Returns
    -------
    array, shape (n_items, n_components)
    """
    calls, design, components = group.calls, group.design, group.components
    if _no_call_variance(group):
        return np.full(group.values.shape, np.nan)
    if group.settings.pairs == "panel":
        panels = np.asarray(panel_values(calls.vectors(), design, components, calls.kernel))
        return np.asarray(panels.var(axis=-2, ddof=1) / panels.shape[-2])
    if group.settings.pairs == "complete" and calls.soft is None:
        return np.asarray(call_variance(calls.cells(), design, components, calls.kernel))
    across = group.settings.pairs == "across-repeats"
    found = block_variance(calls.vectors(), design, components, calls.kernel, across=across)
    return np.asarray(np.diagonal(np.asarray(found.covariance), axis1=-2, axis2=-1))


def item_call_coefficients(group: Group) -> Planning:
    """Each item's alpha, beta and gamma, from which its call variance follows at any number of repeats and any pairs.

    Unbiased and raw: they can be negative. NaN where none exists: soft verdicts, or fewer than four calls in a cell.

    Returns
    -------
    Planning
        Arrays of shape (n_items, n_components).
    """
    if group.repeats[0] < 4 or group.calls.soft is not None:
        nothing = np.full(group.values.shape, np.nan)
        return Planning(nothing, nothing, nothing)
    found = planning(group.calls.cells(), group.design, group.components, group.calls.kernel)
    return Planning(*map(np.asarray, found))


def call_note(group: Group) -> str | None:
    """What a reader of a call error has to know, when it is the item error in its place."""
    why = _no_call_variance(group)
    shown = why and not any(group.reasons) and not all(group.item_errors.reason)
    return UPPER_BOUND_NOTE.format(why=why) if shown else None


def _no_call_variance(group: Group) -> str:
    """Why the call variance of a group's macroaverages cannot be estimated; empty where it can."""
    if group.repeats[0] < 4:
        return "with fewer than four calls in a cell"
    blocks = group.settings.pairs == "across-repeats" or group.calls.soft is not None
    missing = bool((group.calls.codes < 0).any())
    return "from blocks of repeats when calls are missing" if blocks and missing else ""


def _call_errors(group: Group) -> ItemErrors:
    if any(group.reasons):
        return _undefined(group, next(filter(None, group.reasons)))
    why = _no_call_variance(group)
    if why:
        # Items as a sample carry call noise too, so their standard error bounds that of the calls from above.
        bound = group.item_errors
        reasons = tuple(
            text and f"call variance has no unbiased estimate {why}, and items give no bound: {text}"
            for text in bound.reason
        )
        return bound._replace(reason=reasons)
    variance = item_call_variance(group)
    # Cells that repeat one verdict leave rounding of either sign, which would pass for a band of no width.
    noise = np.where(np.abs(variance) <= ROUNDING * group.scale**2, 0.0, variance)
    total = noise.sum(0) / len(variance) ** 2
    defined = total > 0
    se = np.sqrt(np.where(defined, total, np.nan))
    why = SAME_LISTS if group.calls.soft is not None and not noise.any() else NOT_POSITIVE
    return ItemErrors(
        group.values.mean(0),
        se,
        np.where(defined, np.inf, np.nan),
        tuple("" if flag else why for flag in defined),
    )


def _undefined(group: Group, reason: str) -> ItemErrors:
    nothing = np.full(len(group.components), np.nan)
    return ItemErrors(group.values.mean(0), nothing, nothing, (reason,) * len(group.components))
