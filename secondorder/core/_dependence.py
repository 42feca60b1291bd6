"""Exact tests of what breaks independence between calls: shuffles of repeats that leave everything else alone.

=============================  ======================================  =================================================
test                           shuffled                                rejects when
=============================  ======================================  =================================================
repeat alignment               repeats of each cell                    cells of an item agree at equal repeat index
repeat alignment, items        repeats of an item, all cells together  items agree at equal repeat index
first repeat, copies of the    repeats of an item, all cells together  repeats of a cell are not alike
first, halves, neighbours,
drift, change
=============================  ======================================  =================================================

The second shuffle asks what happens along the repeats of a cell, whatever couples the cells of an item at one repeat:
seeds that cells share do not make it reject. Statistics are differences of mean disagreements; ties are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondorder.core._permutation import shuffles

__all__ = ["IndependenceTest", "independence_tests"]

Floats = NDArray[np.float64]
Codes = NDArray[Any]

TIES = 1e-9
# Numbers held at once by a block of shuffles.
WORKING_SET = 1 << 22


class IndependenceTest(NamedTuple):
    """One test: its name, the statistic (large values reject), and the exact permutation p value."""

    name: str
    statistic: float
    pvalue: float


def independence_tests(
    codes: ArrayLike, kernel: ArrayLike, *, seed: int, n_draws: int = 999, when: Mapping[str, ArrayLike] | None = None
) -> tuple[IndependenceTest, ...]:
    """All tests that the shape of the data allows.

    Parameters
    ----------
    codes : array of int, shape (N, F, R)
        Class of every call of N items in F cells; -1 is a call without verdict.
    kernel : array, shape (C, C)
    seed : int
        Not negative.
    n_draws : int
        Shuffles.
    when : mapping of name to array, shape (N, F, R)
        Position of every call in the run, from 0 to 1; NaN where unknown.

    Returns
    -------
    tuple of IndependenceTest
        ``repeat alignment`` needs two cells, ``repeat alignment, items`` two items, ``first repeat``, ``copies of the
        first`` and ``neighbours`` three repeats, ``halves`` four; ``drift by NAME`` and ``change by NAME`` a `when`.

    Examples
    --------
    Two cells that always get the same answer at the same repeat:

    >>> calls = np.random.default_rng(0).integers(2, size=(30, 1, 4))
    >>> found = independence_tests(np.repeat(calls, 2, axis=1), 1 - np.eye(2), seed=0, n_draws=199)
    >>> [test.name for test in found if test.pvalue <= 0.01]
    ['repeat alignment']
    """
    data = np.asarray(codes)
    matrix = np.asarray(kernel, dtype=np.float64)
    found = []
    if data.shape[1] > 1:
        found.append(_alignment(data, matrix, seed, n_draws))
    found.extend(_along(data, matrix, seed, n_draws, dict(when or {})))
    return tuple(found)


# -- cells at equal repeat index --------------------------------------------------------------------------------------


def _alignment(codes: Codes, kernel: Floats, seed: int, n_draws: int) -> IndependenceTest:
    """Mean disagreement of distinct cells of an item at unequal repeat index, minus that at equal index."""
    items, cells, repeats = codes.shape
    # Missing calls keep their places, so numbers of pairs and the sum over all pairs are the same in every shuffle.
    by_cell, by_repeat = _counts(codes, len(kernel), 2), _counts(codes, len(kernel), 1)
    whole = by_cell.sum(1)
    n = by_repeat.sum(-1)
    equal_pairs = float((n * (n - 1)).sum())
    pairs = float((whole.sum(-1) ** 2).sum() - (by_cell.sum(-1) ** 2).sum())
    every = _form(whole, kernel).sum() - _form(by_cell, kernel).sum()
    equal = float(_form(by_repeat, kernel).sum())
    statistic = (every - equal) / max(pairs - equal_pairs, 1.0) - equal / max(equal_pairs, 1.0)
    exceed, most = 1, equal + TIES * kernel.max(initial=0.0) * max(equal_pairs, 1.0)
    # Cells first: sums over them then run along long rows of memory.
    rows = np.ascontiguousarray(codes.swapaxes(0, 1)).reshape(items * cells, repeats).astype(np.int16)
    for start, block in shuffles(rows, seed, n_draws, wide=len(kernel)):
        drawn = block[: n_draws - start].reshape(-1, cells, items, repeats)
        # The statistic falls with the disagreement at equal index, and depends on nothing else.
        exceed += int((_form(_counts(drawn, len(kernel), 1), kernel).sum((1, 2)) <= most).sum())
    return IndependenceTest("repeat alignment", float(statistic), exceed / (n_draws + 1))


def _counts(codes: Codes, n_classes: int, axis: int) -> Floats:
    short = np.int16 if codes.shape[axis] < 1 << 15 else np.int64
    return np.stack([(codes == code).sum(axis, dtype=short) for code in range(n_classes)], axis=-1).astype(np.float64)


def _form(counts: Floats, kernel: Floats) -> Floats:
    values: Floats = ((counts @ kernel) * counts).sum(-1)
    return values


# -- along the repeats of a cell --------------------------------------------------------------------------------------

# From orders of the repeats, shape (draws, N, R), to a statistic per draw.
Statistic = Callable[[NDArray[np.int64]], Floats]


def _along(
    codes: Codes, kernel: Floats, seed: int, n_draws: int, when: Mapping[str, ArrayLike]
) -> Iterator[IndependenceTest]:
    items, _, repeats = codes.shape
    statistics = _statistics(codes, kernel, when)
    if not statistics:
        return
    own = np.broadcast_to(np.arange(repeats), (1, items, repeats))
    observed = {name: float(function(own)[0]) for name, function in statistics.items()}
    exceed = dict.fromkeys(statistics, 1)
    tie = TIES * kernel.max(initial=0.0)
    rows = np.ascontiguousarray(own[0])
    for start, block in shuffles(rows, seed + 1, n_draws, wide=max(1, codes.shape[1] * len(kernel) // 8)):
        drawn = block[: n_draws - start]
        for name, function in statistics.items():
            exceed[name] += int((function(drawn) >= observed[name] - tie).sum())
    for name, value in observed.items():
        yield IndependenceTest(name, value, exceed[name] / (n_draws + 1))


def _statistics(codes: Codes, kernel: Floats, when: Mapping[str, ArrayLike]) -> dict[str, Statistic]:
    items, repeats = len(codes), codes.shape[-1]
    found: dict[str, Statistic] = {}
    index = np.arange(repeats)
    if items > 1:
        found["repeat alignment, items"] = _across_items(codes, kernel)
    # Sums over an item's cells for every pair of repeats: all that statistics of pairs inside cells need.
    table = np.pad(kernel, (0, 1))  # code -1, the call without verdict, reads the last row: 0
    disagreement = np.stack([table[codes[:, :, [r]], codes].sum(1) for r in index], axis=1)
    present = (codes >= 0).astype(np.float64)
    pairs = np.einsum("ifr,ifq->irq", present, present)
    for name, near in _contrasts(repeats).items():
        found[name] = _of_pairs(disagreement, pairs, near)
    for name, values in when.items():
        place = np.asarray(values, dtype=np.float64)
        found[f"drift by {name}"] = _drift(codes, kernel, place)
        found[f"change by {name}"] = _change(codes, kernel, place)
    return found


def _contrasts(repeats: int) -> dict[str, NDArray[np.bool_]]:
    """Pairs of repeats that a test holds against all others: true for those expected to be less alike."""
    index = np.arange(repeats)
    sides = {}
    if repeats >= 3:
        sides["first repeat"] = index == 0
    if repeats >= 4:
        sides["halves, contiguous"] = index < repeats // 2
        sides["halves, interleaved"] = index % 2 == 0
    found = {name: side[:, None] != side[None, :] for name, side in sides.items()}
    if repeats >= 3:
        found["copies of the first"] = ~found["first repeat"]
        found["neighbours"] = np.abs(index[:, None] - index[None, :]) > 1
    return found


def _of_pairs(disagreement: Floats, pairs: Floats, apart: NDArray[np.bool_]) -> Statistic:
    """Mean disagreement inside cells of the pairs of repeats `apart`, minus that of all other pairs."""
    upper = np.triu(np.ones(apart.shape, dtype=bool), 1)
    # Sums over all pairs are the same in every order: it is enough to add up the side with fewer of them.
    fewer = (upper & apart).sum() <= (upper & ~apart).sum()
    first, second = np.nonzero(upper & (apart if fewer else ~apart))
    every, number = float(disagreement[:, upper].sum()), float(pairs[:, upper].sum())
    complete = bool((pairs == pairs[:1, :1, :1]).all())
    fixed = float(pairs[:, first, second].sum())
    rows = np.arange(len(disagreement))[None, :, None]

    def statistic(order: NDArray[np.int64]) -> Floats:
        left, right = order[..., first], order[..., second]
        inside = disagreement[rows, left, right].sum((1, 2))
        n = fixed if complete else pairs[rows, left, right].sum((1, 2))
        difference: Floats = inside / np.maximum(n, 1.0) - (every - inside) / np.maximum(number - n, 1.0)
        return difference if fewer else -difference

    return statistic


def _across_items(codes: Codes, kernel: Floats) -> Statistic:
    """Mean disagreement of distinct items in one cell at unequal repeat index, minus that at equal index."""
    from scipy.sparse import csr_array

    items, cells, repeats = codes.shape
    classes = len(kernel)
    # One row per item and repeat, so that an order of repeats selects rows.
    vectors = (codes.transpose(0, 2, 1)[..., None] == np.arange(classes)).reshape(items * repeats, -1)
    pool = vectors.astype(np.float64)
    own = pool.reshape(items, repeats, cells, classes)
    within = float(_form(own, kernel).sum())
    single = float((own.sum(-1) ** 2).sum())
    each = own.sum(1)
    whole = each.sum(0)
    every = float(_form(whole, kernel).sum() - _form(each, kernel).sum())
    all_pairs = float((whole.sum(-1) ** 2).sum() - (each.sum(-1) ** 2).sum())

    def statistic(order: NDArray[np.int64]) -> Floats:
        draws = len(order)
        chosen = (order + repeats * np.arange(items)[:, None]).swapaxes(1, 2).reshape(-1)
        pointers = np.arange(0, len(chosen) + 1, items)
        select = csr_array((np.ones(len(chosen)), chosen, pointers), shape=(draws * repeats, len(pool)))
        sums = (select @ pool).reshape(draws, repeats, cells, classes)
        equal = _form(sums, kernel).sum((1, 2)) - within
        pairs = (sums.sum(-1) ** 2).sum((1, 2)) - single
        values: Floats = (every - equal) / np.maximum(all_pairs - pairs, 1.0) - equal / np.maximum(pairs, 1.0)
        return values

    return statistic


def _drift(codes: Codes, kernel: Floats, place: Floats) -> Statistic:
    """Change of the law over the run, by the kernel: slopes of the classes within cells, common to all of them."""
    items, _, repeats = codes.shape
    known = np.isfinite(place)
    mean = np.where(known, place, 0.0).sum(-1, keepdims=True) / np.maximum(known.sum(-1, keepdims=True), 1)
    centred = np.where(known, place - mean, 0.0)
    weight = float((centred**2).sum())
    # What the calls of repeat s of an item would add to the slopes in the place of repeat r.
    shifts = np.stack(
        [np.einsum("ifr,ifs->irs", centred, (codes == code).astype(np.float64)) for code in range(len(kernel))], axis=-1
    )
    rows, target = np.arange(items)[None, :, None], np.arange(repeats)[None, None, :]

    def statistic(order: NDArray[np.int64]) -> Floats:
        slope = shifts[rows, target, order].sum((1, 2))
        # For slopes that sum to zero, -s' D s / 2 is the squared length of the change.
        length: Floats = np.sqrt(np.maximum(-0.5 * _form(slope, kernel), 0.0)) / (weight or 1.0)
        return length

    return statistic


def _change(codes: Codes, kernel: Floats, place: Floats) -> Statistic:
    """Slope of the disagreement inside cells on the distance of two calls in the run: any change, in any direction."""
    items, cells, repeats = codes.shape
    table = np.pad(kernel, (0, 1))
    left, right = np.triu_indices(repeats, 1)
    distance = np.abs(place[..., left] - place[..., right])
    known = np.isfinite(distance)
    mean = float(distance[known].mean()) if known.any() else 0.0
    centred = np.where(known, distance - mean, 0.0).reshape(items, -1)
    weight = float((centred**2).sum()) or 1.0
    # Disagreement of every pair of repeats, cell by cell: an order of the repeats picks its pairs.
    all_pairs = np.stack([table[codes[..., [r]], codes] for r in range(repeats)], axis=1).transpose(0, 1, 3, 2)
    rows = np.arange(items)[None, :, None]
    if items * len(left) * repeats**2 <= WORKING_SET:
        # Cells added up once, for every pair of places and every pair of repeats that may come to stand there.
        added = np.einsum("iabf,ifp->ipab", all_pairs, centred.reshape(items, cells, -1))
        pair = np.arange(len(left))
        return lambda order: added[rows, pair, order[..., left], order[..., right]].sum((1, 2)) / weight

    def statistic(order: NDArray[np.int64]) -> Floats:
        values = np.empty(len(order))
        step = max(1, WORKING_SET // max(1, items * cells * len(left)))
        for start in range(0, len(order), step):
            some = order[start : start + step]
            picked = all_pairs[rows, some[..., left], some[..., right]]
            moved = picked.swapaxes(2, 3).reshape(len(some), items, -1)
            values[start : start + step] = np.einsum("bij,ij->b", moved, centred)
        return values / weight

    return statistic
