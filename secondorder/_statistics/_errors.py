"""Standard errors for each randomness: calls at fixed items, levels of a random facet, items and levels together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from secondorder._statistics._settings import Covers
from secondorder.core._call_variance import call_variance
from secondorder.core._cells import Cells, cells_from_codes
from secondorder.core._clusters import cluster_parts, level_errors, two_way_errors
from secondorder.core._estimates import panel_values
from secondorder.core._intervals import ItemErrors
from secondorder.core._precision import double_precision
from secondorder.core._repeat_blocks import block_variance

if TYPE_CHECKING:
    from secondorder._statistics._group import Group

__all__ = ["call_note", "group_errors", "item_call_variance"]

UPPER_BOUND_NOTE = (
    "se_calls is the standard error over items, an upper bound: call variance has no unbiased estimate with fewer than "
    "four calls in a cell"
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
            "no facet is random: its levels are the whole target"
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
    parts = cluster_parts(_cells(group), group.design, group.components, group.calls.kernel, random[0])
    same, distinct = np.asarray(parts.same), np.asarray(parts.distinct)
    if covers == "prompts":
        return level_errors(same.mean(0), distinct.mean(0), group.scale).errors
    return two_way_errors(same, distinct, group.strata_codes, group.scale).errors


def item_call_variance(group: Group) -> NDArray[np.float64]:
    """Unbiased estimate of each item's call variance, raw (it can be negative); NaN where none exists.

    Returns
    -------
    array, shape (n_items, n_components)
    """
    codes, kernel = group.calls.codes, group.calls.kernel
    if group.settings.pairs == "complete":
        return np.asarray(call_variance(_cells(group), group.design, group.components, kernel))
    vectors = _one_hot(codes, len(kernel))
    if group.settings.pairs == "across-repeats":
        if codes.shape[-1] < 4:
            return np.full(group.values.shape, np.nan)
        found = block_variance(vectors, group.design, group.components, kernel, across=True)
        return np.asarray(np.diagonal(np.asarray(found.covariance), axis1=-2, axis2=-1))
    panels = np.asarray(panel_values(vectors, group.design, group.components, kernel))
    pairs = panels.shape[-2]
    if pairs < 2:
        return np.full(group.values.shape, np.nan)
    return np.asarray(panels.var(axis=-2, ddof=1) / pairs)


def _call_errors(group: Group) -> ItemErrors:
    if any(group.reasons):
        return _undefined(group, next(filter(None, group.reasons)))
    variance = item_call_variance(group)
    n_items = len(variance)
    total = variance.sum(0) / n_items**2
    if np.isnan(total).all():
        # Items as a sample carry call noise too, so their standard error bounds that of the calls from above.
        return group.item_errors
    negative = total < 0
    reasons = tuple(
        "the unbiased estimate of the call variance is negative: too few calls to tell it from zero" if flag else ""
        for flag in negative
    )
    se = np.sqrt(np.where(negative, np.nan, total))
    return ItemErrors(group.values.mean(0), se, np.where(negative, np.nan, np.inf), reasons)


def call_note(group: Group) -> str | None:
    """What a reader of a call error has to know, when it is the item error in its place."""
    fewest = group.repeats[0]
    return UPPER_BOUND_NOTE if not any(group.reasons) and fewest < 4 else None


def _undefined(group: Group, reason: str) -> ItemErrors:
    nothing = np.full(len(group.components), np.nan)
    return ItemErrors(group.values.mean(0), nothing, nothing, (reason,) * len(group.components))


def _cells(group: Group) -> Cells:
    with double_precision():
        return cells_from_codes(group.calls.codes, len(group.calls.kernel))


def _one_hot(codes: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    table = np.vstack([np.eye(n_classes), np.full(n_classes, np.nan)])
    return np.asarray(table[codes])
