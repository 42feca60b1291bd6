"""How far one factor of a design moves bias, error and ranking: over all pairs of designs that differ in it alone."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondorder.studies._design_errors import error_columns, read_errors
from secondorder.studies._design_grid import Grid
from secondorder.studies._disagreement import Array

__all__ = ["IMPACTS", "Contrast", "contrast_of", "impacts", "largest_changes", "null_errors"]

IMPACTS = ("direction", "size", "error", "best")


class Contrast(NamedTuple):
    """Where a factor's pairs and settings stand among the designs.

    Attributes
    ----------
    first, second : int array, shape (pairs,)
        Designs that differ in the factor alone.
    levels : int array, shape (pairs, 2)
    setting : int array, shape (pairs,)
        Setting of the other factors that a pair shares.
    table : int array, shape (levels, settings)
        Design at each level of each setting; -1 where there is none.
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    levels: NDArray[np.int64]
    setting: NDArray[np.int64]
    table: NDArray[np.int64]


def contrast_of(grid: Grid, factor: int) -> Contrast:
    """Pairs of designs and settings of one factor."""
    own = grid.codes[:, factor]
    _, setting = np.unique(np.delete(grid.codes, factor, axis=1), axis=0, return_inverse=True)
    table = np.full((int(own.max()) + 1, int(setting.max()) + 1), -1, dtype=np.int64)
    table[own, setting.ravel()] = np.arange(len(own))
    found = [
        (int(column[i]), int(column[k]), i, k, s)
        for s, column in enumerate(table.T)
        for i, k in combinations(np.flatnonzero(column >= 0).tolist(), 2)
    ]
    pairs = np.array(found, dtype=np.int64).reshape(-1, 5)
    return Contrast(pairs[:, 0], pairs[:, 1], pairs[:, 2:4], pairs[:, 4], table)


def impacts(errors: Array, contrast: Contrast) -> Array:
    """Impacts of a factor on the designs' errors, (..., 4).

    *Direction*: share of pairs whose biases have opposite signs; *size*: mean change of the signed bias; *error*: mean
    change of the mean absolute error; *best*: mean change of rank, where the settings of the other factors are ranked
    by alpha under either level.

    Parameters
    ----------
    errors : array, shape (..., designs, 3)
        Bias, mean absolute error, alpha.
    contrast : Contrast
    """
    if not len(contrast.first):
        return np.full((*errors.shape[:-2], len(IMPACTS)), np.nan)
    one, other = errors[..., contrast.first, :], errors[..., contrast.second, :]
    product = one[..., 0] * other[..., 0]
    turned = np.where(np.isnan(product), np.nan, product < 0).mean(-1)
    size, error = (np.abs(one[..., k] - other[..., k]).mean(-1) for k in (0, 1))
    return np.stack([turned, size, error, _rank_change(errors[..., 2], contrast.table)], axis=-1)


def _rank_change(alpha: Array, table: NDArray[np.int64]) -> Array:
    """Mean absolute change of rank between two levels, over the settings that both have."""
    from scipy.stats import rankdata

    changes = []
    for i, k in combinations(range(len(table)), 2):
        both = (table[i] >= 0) & (table[k] >= 0)
        if both.sum() > 1:
            first, second = (rankdata(-alpha[..., table[level, both]], axis=-1) for level in (i, k))
            changes.append(np.abs(first - second).mean(-1))
    return np.mean(changes, axis=0) if changes else np.full(alpha.shape[:-1], np.nan)


def largest_changes(errors: Array, contrast: Contrast) -> Array:
    """For bias and error: mean over settings of the largest change, and the largest of all, (2, 2)."""
    if not len(contrast.first):
        return np.full((2, 2), np.nan)
    moves = np.abs(errors[contrast.first, :2] - errors[contrast.second, :2])
    each = np.stack([moves[contrast.setting == s].max(0) for s in np.unique(contrast.setting)])
    return np.stack([each.mean(0), each.max(0)], axis=-1)


def null_errors(
    values: Array, human: Array, contrast: Contrast, *, permutations: int, rng: np.random.Generator
) -> Array:
    """Errors when a factor's levels are relabelled at random inside every item and setting: (permutations, designs, 3).

    If a factor does nothing, the scores at its levels are exchangeable inside an item and a setting of the other
    factors. An item that lacks a score in some design stays as it is.

    Parameters
    ----------
    values : array, shape (items, designs)
    human : array, shape (items,)
    """
    whole = ~np.isnan(values).any(1) & ~np.isnan(human)
    fixed = error_columns(values[~whole], human[~whole]).sum(0)
    gap, people = values[whole] - human[whole, None], human[whole, None]
    blocks = [column[column >= 0] for column in contrast.table.T]
    # Settings with the same number of levels are shuffled in one call.
    widths = sorted({len(block) for block in blocks})
    stacks = [np.stack([block for block in blocks if len(block) == width]) for width in widths]
    n, doubled = len(gap), 2 * float((people**2).sum())
    found = np.empty((permutations, values.shape[1], 3))
    shuffled = gap.copy()
    for row in range(permutations):
        for stack in stacks:
            shuffled[:, stack] = rng.permuted(gap[:, stack], axis=-1)
        total, square = shuffled.sum(0), (shuffled**2).sum(0)
        both = square + 2 * (shuffled * people).sum(0) + doubled  # of squared scores, the judge's and the person's
        sums = (np.full(len(total), n), total, np.abs(shuffled).sum(0), square, total + 2 * people.sum(), both)
        found[row] = read_errors(fixed + np.stack(sums, axis=-1))
    return found
