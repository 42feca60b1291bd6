"""Agreement coefficients as sums over items: every one is ``1 - observed / expected`` disagreement.

A coefficient is declared by two things: the columns that each item adds to (so that an item bootstrap is one matrix
product of draw counts and columns), and how observed and expected disagreement are read off the sums of the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondorder.studies._disagreement import Array

__all__ = [
    "Codes",
    "Part",
    "Value",
    "combine",
    "fleiss",
    "gwet",
    "krippendorff",
    "overlap",
    "pairs",
    "pairwise",
    "point",
    "quotient",
    "shares",
    "unit_counts",
]

Codes = NDArray[np.int64]
Split = tuple[Array, Array, Array]

SMALLEST_EXPECTED = 1e-12  # shares are ratios of counts: an expected disagreement below this is a zero

NO_PAIR = "no item has two ratings"
ONE_RATER = "one rater: agreement needs two"
ONE_CLASS = "only one class occurs: expected disagreement is 0"
NO_CLASSES = "fewer than two classes are declared"


class Value(NamedTuple):
    """An estimate, or NaN with the reason why there is none."""

    estimate: float
    reason: str = ""


class Part(NamedTuple):
    """One coefficient on one set of ratings.

    Attributes
    ----------
    columns : array, shape (items, S)
        What each item adds to.
    split : callable
        Sums of columns ``(..., S)`` to observed disagreement, expected disagreement and support, each ``(..., P)``:
        P pairs of raters in the order of ``itertools.combinations``, or 1.
    """

    columns: Array
    split: Callable[[Array], Split]


def quotient(above: Array, below: Array) -> Array:
    """``above / below``, NaN where `below` is not positive."""
    shape = np.broadcast_shapes(above.shape, below.shape)
    return np.asarray(np.divide(above, below, out=np.full(shape, np.nan), where=np.broadcast_to(below, shape) > 0))


def unit_counts(codes: Codes, n_classes: int) -> Array:
    """Counts ``(items, units, classes)`` of codes ``(items, units, raters)``; -1 counts nowhere."""
    return np.stack([(codes == code).sum(-1) for code in range(n_classes)], axis=-1).astype(float)


def _mean_of_pairs(counts: Array, matrix: Array) -> tuple[Array, Array, Array]:
    # Per unit: mean disagreement of its ordered pairs of distinct ratings (0 without a pair), has a pair, ratings.
    size = counts.sum(-1)
    total = ((counts @ matrix) * counts).sum(-1)
    return total / np.maximum(size * (size - 1), 1), (size >= 2).astype(float), size


def overlap(counts: Array, matrix: Array) -> Part:
    """Observed disagreement alone: its expected value is taken as 1."""
    mean, paired, _ = _mean_of_pairs(counts, matrix)

    def split(sums: Array) -> Split:
        observed = quotient(sums[..., :1], sums[..., 1:])
        return observed, np.ones_like(observed), sums[..., 1:]

    return Part(np.stack([mean.sum(1), paired.sum(1)], axis=-1), split)


def shares(counts: Array, matrix: Array) -> Array:
    """Columns of Fleiss and Gwet: observed over units with two ratings, class shares over every rated unit.

    Each unit has equal weight in both.
    """
    mean, paired, size = _mean_of_pairs(counts, matrix)
    by_class = (counts / np.maximum(size, 1)[..., None]).sum(1)
    sizes = np.stack([mean.sum(1), paired.sum(1), (size > 0).sum(1).astype(float)], axis=-1)
    return np.concatenate([sizes, by_class], axis=1)


def _with_shares(columns: Array, expected: Callable[[Array], Array]) -> Part:
    def split(sums: Array) -> Split:
        observed = quotient(sums[..., :1], sums[..., 1:2])
        return observed, expected(quotient(sums[..., 3:], sums[..., 2:3]))[..., None], sums[..., 1:2]

    return Part(columns, split)


def fleiss(columns: Array, matrix: Array) -> Part:
    """Expected: two ratings drawn from the pooled class shares; `columns` from :func:`shares`."""
    return _with_shares(columns, lambda share: ((share @ matrix) * share).sum(-1))


def gwet(columns: Array, matrix: Array) -> Part:
    """Expected: one minus Gwet's chance agreement, which spreads ``share * (1 - share)`` over all classes."""
    size = len(matrix)
    chance = (1 - matrix).sum() / (size * (size - 1)) if size > 1 else np.nan
    return _with_shares(columns, lambda share: 1 - chance * (share * (1 - share)).sum(-1))


def krippendorff(counts: Array, matrix: Array | None) -> Part:
    """Coincidences of the units with two ratings; `matrix` None is the ordinal metric."""
    size = counts.sum(-1)
    paired = np.where((size >= 2)[..., None], counts, 0.0)
    if matrix is None:
        return _krippendorff_ordinal(paired / np.maximum(size - 1, 1)[..., None], paired)
    within = (((paired @ matrix) * paired).sum(-1) / np.maximum(size - 1, 1)).sum(1)

    def split(sums: Array) -> Split:
        totals = sums[..., 1:]
        n = totals.sum(-1, keepdims=True)
        expected = ((totals @ matrix) * totals).sum(-1, keepdims=True)
        return quotient(sums[..., :1], n), quotient(expected, n * (n - 1)), n

    return Part(np.concatenate([within[:, None], paired.sum(1)], axis=1), split)


def _krippendorff_ordinal(scaled: Array, paired: Array) -> Part:
    # The distance of two classes is the squared difference of their mid-ranks among all pairable ratings of the
    # sample at hand, so a draw has its own distances: the coincidences themselves must be carried.
    first, second = np.triu_indices(paired.shape[-1], 1)
    coincidences = 2 * np.einsum("iup,iup->ip", scaled[..., first], paired[..., second])

    def split(sums: Array) -> Split:
        held, totals = sums[..., : len(first)], sums[..., len(first) :]
        n = totals.sum(-1, keepdims=True)
        middle = quotient(np.cumsum(totals, axis=-1) - totals / 2, n)
        distance = (middle[..., first] - middle[..., second]) ** 2
        expected = 2 * (totals[..., first] * totals[..., second] * distance).sum(-1, keepdims=True)
        return quotient((held * distance).sum(-1, keepdims=True), n), quotient(expected, n * (n - 1)), n

    return Part(np.concatenate([coincidences, paired.sum(1)], axis=1), split)


class PairColumns(NamedTuple):
    """Columns of Cohen and Scott, and where each pair of raters finds its own.

    Attributes
    ----------
    columns : array, shape (items, S)
    held : int array, shape (P, 2)
        Number of units that both rated, and their disagreement.
    first, second : int array, shape (P, classes)
        Class counts of either rater on these units.
    """

    columns: Array
    held: Codes
    first: Codes
    second: Codes


def pairs(codes: Codes, matrix: Array) -> PairColumns:
    """Every pair of raters on the units that both rated.

    Without a missing rating a rater's class counts are the same in all its pairs, and are held once.
    """
    size, n_raters = len(matrix), codes.shape[-1]
    named = list(combinations(range(n_raters), 2))
    everywhere = bool((codes >= 0).all())
    own = [_class_counts(codes[..., rater], size) for rater in range(n_raters if everywhere else 0)]
    blocks, by_pair = [np.zeros((len(codes), 0)), *own], []
    for a, b in named:
        x, y = codes[..., a], codes[..., b]
        both = (x >= 0) & (y >= 0)
        gap = matrix.ravel()[np.where(both, x * size + y, 0)]  # D[0, 0] = 0 where one did not rate
        blocks.append(np.stack([both.sum(1), gap.sum(1)], axis=-1))
        if not everywhere:
            by_pair += [_class_counts(np.where(both, side, -1), size) for side in (x, y)]
    start = len(own) * size
    held = start + np.arange(2 * len(named)).reshape(-1, 2)
    block = np.arange(size)
    if everywhere:
        first, second = (
            np.array([pair[side] for pair in named], dtype=np.int64)[:, None] * size + block for side in (0, 1)
        )
    else:
        offset = 2 * len(named) + 2 * size * np.arange(len(named))[:, None]
        first, second = offset + block, offset + size + block
    return PairColumns(np.concatenate([*blocks, *by_pair], axis=1), held, first, second)


def pairwise(found: PairColumns, matrix: Array, *, pooled: bool) -> Part:
    """Each rater's own class shares (Cohen), or the pair's pooled ones (Scott)."""

    def split(sums: Array) -> Split:
        n, gap = sums[..., found.held[:, 0]], sums[..., found.held[:, 1]]
        first, second = sums[..., found.first], sums[..., found.second]
        if pooled:
            first = second = (first + second) / 2
        return quotient(gap, n), quotient(((first @ matrix) * second).sum(-1), n * n), n

    return Part(found.columns, split)


def _class_counts(codes: Codes, size: int) -> Array:
    return np.stack([(codes == code).sum(1) for code in range(size)], axis=-1).astype(float)


def combine(part: Part, sums: Array, *, among: NDArray[np.bool_] | None = None) -> Array:
    """Values at sums of columns: per pair ``(..., P)``, or the mean over the pairs in `among`, shape ``(...)``.

    The mean is NaN as soon as one of its pairs is undefined, so that every draw of a bootstrap means the same thing.
    """
    observed, expected, support = part.split(sums)
    defined = (support > 0) & (expected > SMALLEST_EXPECTED)
    values = 1 - np.divide(observed, expected, out=np.full(observed.shape, np.nan), where=defined)
    if among is None:
        return np.asarray(values)
    if not among.any():
        return np.full(values.shape[:-1], np.nan)
    return np.asarray(values[..., among].mean(-1))


def point(part: Part, *, n_raters: int) -> tuple[Value, Array]:
    """The coefficient on all items, and its value for every pair of raters (or the one value)."""
    sums = part.columns.sum(0)
    each = combine(part, sums)
    value = float(combine(part, sums, among=~np.isnan(each)))
    if not np.isnan(value):
        return Value(value), each
    _, expected, support = part.split(sums)
    if n_raters < 2:
        return Value(value, ONE_RATER), each
    if not (support > 0).any():
        return Value(value, NO_PAIR), each
    return Value(value, NO_CLASSES if np.isnan(expected).all() else ONE_CLASS), each
