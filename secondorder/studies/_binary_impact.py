"""What the levels of one design choice change on a binary task: accuracy, leniency, and which way verdicts switch."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondorder.studies._binary_grid import BinaryGrid
from secondorder.studies._disagreement import Array
from secondorder.studies._paired_tests import mcnemar
from secondorder.studies._parts import quotient

__all__ = ["Choice", "Impact", "choice_of", "impact_of", "mcnemar_pairs", "pooled", "rates", "switches"]


class Choice(NamedTuple):
    """One factor of the designs.

    Attributes
    ----------
    name : str
    labels : tuple of str
    table : int array, shape (levels, settings)
        Design at each level in each setting of the other factors that has all levels.
    reference : int
        Level that the others are compared with.
    """

    name: str
    labels: tuple[str, ...]
    table: NDArray[np.int64]
    reference: int


class Impact(NamedTuple):
    """Differences between two levels, over all pairs of levels: accuracy, switch rate, leniency.

    Attributes
    ----------
    average, largest : array, shape (3,)
    null, pvalue : array, shape (3,)
        Average with the levels relabelled inside items and settings, and the share of relabellings with as large a one;
        NaN for the switch rate, which relabelling does not change.
    """

    average: Array
    largest: Array
    null: Array
    pvalue: Array


def choice_of(grid: BinaryGrid, factor: int, reference: int) -> Choice:
    """Levels and complete settings of a factor."""
    name, labels = grid.factors[factor]
    own = grid.codes[:, factor]
    _, setting = np.unique(np.delete(grid.codes, factor, axis=1), axis=0, return_inverse=True)
    table = np.full((len(labels), int(setting.max()) + 1), -1, dtype=np.int64)
    table[own, setting.ravel()] = np.arange(len(own))
    return Choice(name, labels, table[:, (table >= 0).all(0)], reference)


def rates(sums: Array) -> Array:
    """Accuracy and leniency of sums of (right, false accepts, false rejects, invalid): (..., 2)."""
    return np.stack(
        [quotient(sums[..., 0], sums[..., :4].sum(-1)), quotient(sums[..., 1], sums[..., 1:3].sum(-1))], axis=-1
    )


def pooled(outcome: Array, choice: Choice) -> Array:
    """Sums of outcomes by level, all settings and items together: (levels, 4)."""
    return np.asarray(np.nansum(outcome[:, choice.table], axis=(0, 2)))


def switches(said: Array, first: NDArray[np.int64], second: NDArray[np.int64]) -> Array:
    """Mean share of verdicts that differ, that go from reject to accept, and from accept to reject.

    Parameters
    ----------
    said : array, shape (items, designs, 3)
    first, second : int array, shape (settings,)
        Designs that are compared, setting by setting.
    """
    before, after = said[:, first], said[:, second]
    there = ~np.isnan(before[..., 0] + after[..., 0])
    if not there.any():
        return np.full(3, np.nan)
    one, other = before[there], after[there]
    return np.array(
        [1 - (one * other).sum(-1).mean(), (one[:, 1] * other[:, 0]).mean(), (one[:, 0] * other[:, 1]).mean()]
    )


def impact_of(grid: BinaryGrid, g: int, choice: Choice, *, permutations: int, rng: np.random.Generator) -> Impact:
    """Average and largest difference between two levels of a factor in one group."""
    nothing = np.full(3, np.nan)
    pairs = list(combinations(range(len(choice.labels)), 2))
    if not pairs or not choice.table.size:
        return Impact(nothing, nothing, nothing, nothing)
    moved = _moved(pooled(grid.outcome[g], choice), pairs)
    switched = np.array([switches(grid.said[g], choice.table[i], choice.table[k])[0] for i, k in pairs])
    every = np.stack([moved[0], switched, moved[1]])
    average, largest = every.mean(1), every.max(1)
    if not permutations:
        return Impact(average, largest, nothing, nothing)
    null = np.stack([_moved(sums, pairs).mean(1) for sums in _relabelled(grid.outcome[g], choice, permutations, rng)])
    # A relabelling without errors at some level has no leniency: it counts as one that moves as much.
    pvalue = (1 + permutations - (null < average[[0, 2]] - 1e-9).sum(0)) / (1 + permutations)
    pvalue = np.where(np.isnan(average[[0, 2]]), np.nan, pvalue)
    mean = np.array([column[~np.isnan(column)].mean() if not np.isnan(column).all() else np.nan for column in null.T])
    return Impact(average, largest, np.array([mean[0], np.nan, mean[1]]), np.array([pvalue[0], np.nan, pvalue[1]]))


def _moved(sums: Array, pairs: list[tuple[int, int]]) -> Array:
    """Absolute differences of accuracy and leniency between levels, (2, pairs)."""
    found = rates(sums)
    return np.stack([np.abs(found[i] - found[k]) for i, k in pairs], axis=-1)


def _relabelled(outcome: Array, choice: Choice, permutations: int, rng: np.random.Generator) -> list[Array]:
    """Sums by level after relabelling inside items and settings that have every level."""
    held = outcome[:, choice.table].transpose(0, 2, 1, 3)  # items, settings, levels, 4
    whole = np.asarray(~np.isnan(held).any(axis=(2, 3)))
    fixed = np.nansum(np.where(whole[..., None, None], 0.0, held), axis=(0, 1))
    rows = held[whole]
    found = []
    for _ in range(permutations):
        order = rng.random(rows.shape[:2]).argsort(axis=1)
        found.append(fixed + np.take_along_axis(rows, order[..., None], axis=1).sum(0))
    return found


def mcnemar_pairs(grid: BinaryGrid, g: int, choice: Choice) -> tuple[Array, Array]:
    """Exact p-values of all pairs of designs that differ in a factor alone: of being right, and of accepting.

    A cell of several calls stands for its most frequent verdict; cells without one are left out.
    """
    right, accepts = (_clear(array) for array in (grid.outcome[g][..., 0], grid.said[g][..., 0]))
    found = []
    for source in (right, accepts):
        values = []
        for column in choice.table.T:
            for i, k in combinations(column.tolist(), 2):
                gained = int(((source[:, i] == 0) & (source[:, k] == 1)).sum())
                lost = int(((source[:, i] == 1) & (source[:, k] == 0)).sum())
                values.append(mcnemar(gained, lost))
        found.append(np.array(values))
    return found[0], found[1]


def _clear(share: Array) -> Array:
    """1, 0, or NaN at one half."""
    return np.where(np.isnan(share) | (share == 0.5), np.nan, (share > 0.5).astype(float))
