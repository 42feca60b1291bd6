"""Joint bootstrap draws of the macroaverages: whole items, drawn with replacement within strata.

One set of draws serves every column (components, plug-in, judges on shared items), so a difference or a ratio of
columns is the difference or ratio of their draws. Draws come in blocks with a random stream each: the result depends
on the seed alone, not on threads, memory or the number of draws asked for (the first thousand of twenty thousand draws
are the thousand draws of the same seed).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondorder.core._intervals import ItemErrors, errors_from_influence, item_influence, stratum_sizes

__all__ = ["Resampled", "contrasts", "ratios", "resample"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Items drawn by one block: small enough for the processor's cache, large enough to forget the cost of starting it.
BLOCK = 1 << 16
ROUNDING = 1e-12


class Resampled(NamedTuple):
    """Estimates of M columns with their joint draws.

    Attributes
    ----------
    errors : ItemErrors
        Estimate, item SE, degrees of freedom and reasons.
    draws : array, shape (B, M)
        NaN where a draw has no value.
    influence : array, shape (N, M)
        Deviations of the items, as of :func:`secondorder.core._intervals.item_influence`.
    strata : array, shape (N,)
    scale : array, shape (M,)
        Unit of each column; differences below ``1e-12`` of it are rounding.
    se_draws : array, shape (B, M), or None
        Item SE of each resample (NaN where it has no spread), when asked for.
    """

    errors: ItemErrors
    draws: Floats
    influence: Floats
    strata: Ints
    scale: Floats
    se_draws: Floats | None


def resample(
    values: ArrayLike,
    strata: ArrayLike | None = None,
    *,
    seed: int,
    n_draws: int = 20_000,
    scale: ArrayLike = 1.0,
    studentised: bool = False,
    workers: int | None = None,
) -> Resampled:
    """Draw the macroaverages of all columns jointly.

    Parameters
    ----------
    values : array, shape (N, M)
        Value of each item in each column, without NaN. A difference to be studentised is a column of its own.
    strata : array, shape (N,), optional
        Stratum code of each item; stratum sizes are kept.
    seed : int
        Not negative.
    n_draws : int
    scale : float or array, shape (M,)
        Unit of each column (the kernel's largest disagreement).
    studentised : bool
        Also keep the item SE of every resample.
    workers : int, optional
        Threads; they change the time alone.

    Returns
    -------
    Resampled
        Memory beside the ``(B, M)`` results is a few megabytes per thread, whatever the number of draws and items.

    Examples
    --------
    >>> result = resample([[0.0, 1.0], [0.2, 0.0], [0.4, 0.5]], seed=0, n_draws=1000)
    >>> result.draws.shape, float(abs(result.draws.mean(0) - result.errors.estimate).max()) < 0.05
    ((1000, 2), True)
    """
    table = np.asarray(values, dtype=np.float64)
    n_items, n_columns = table.shape
    index, sizes = stratum_sizes(strata, n_items)
    unit = np.broadcast_to(np.asarray(scale, dtype=np.float64), (n_columns,)).copy()
    influence = item_influence(table, strata)
    errors = errors_from_influence(table.mean(0), influence, strata, unit)

    pool = influence[np.argsort(index, kind="stable")]
    rows = max(1, BLOCK // n_items)
    draws = np.empty((n_draws, n_columns))
    se_draws = np.empty((n_draws, n_columns)) if studentised else None

    def fill(number: int) -> None:
        part = slice(number * rows, min((number + 1) * rows, n_draws))
        length = part.stop - part.start
        picked = _picks(sizes, rows, seed, number)
        draws[part] = errors.estimate + (_sums(picked, pool, [n_items]) / n_items)[:length, 0]
        if se_draws is not None:
            first = _sums(picked, pool, sizes)
            second = _sums(picked, pool**2, sizes)
            se_draws[part] = _standard_errors(first, second, sizes)[:length]

    n_blocks = -(-n_draws // rows)
    threads = min(workers or os.cpu_count() or 1, n_blocks)
    if threads > 1:
        with ThreadPoolExecutor(threads) as executor:
            list(executor.map(fill, range(n_blocks)))
    else:
        for number in range(n_blocks):
            fill(number)
    return Resampled(errors, draws, influence, index, unit, se_draws)


def contrasts(base: Resampled, weights: ArrayLike) -> Resampled:
    """Linear combinations of columns, as draws on their own: differences of components or of judges.

    Parameters
    ----------
    weights : array, shape (M, D)
        One contrast a column, e.g. ``[1, -1, 0]`` for the first column minus the second.

    Returns
    -------
    Resampled
        D columns, without ``se_draws`` (they do not follow from those of the parts).

    Examples
    --------
    >>> both = resample([[0.0, 1.0], [0.2, 0.0], [0.4, 0.5]], seed=0, n_draws=10)
    >>> float(contrasts(both, [[1.0], [-1.0]]).errors.estimate[0].round(3))
    -0.3
    """
    matrix = np.asarray(weights, dtype=np.float64)
    scale = base.scale @ np.abs(matrix)
    influence = base.influence @ matrix
    errors = errors_from_influence(base.errors.estimate @ matrix, influence, base.strata, scale)
    return Resampled(errors, base.draws @ matrix, influence, base.strata, scale, None)


def ratios(base: Resampled, numerators: Sequence[int], denominators: Sequence[int]) -> Resampled:
    """Ratios of columns: shares of the total, inflation factors.

    The SE is that of the linearised ratio. A draw whose denominator is at or below 0 has no ratio: it is NaN, the bands
    count it, and they are undefined when such draws outweigh a tail. With a denominator at or below 0 in the sample
    itself the ratio is undefined.

    Parameters
    ----------
    numerators, denominators : sequence of int, length D
        Column numbers.
    """
    top, bottom = list(numerators), list(denominators)
    estimate, scale, draws = base.errors.estimate, base.scale, base.draws
    positive = estimate[bottom] > ROUNDING * scale[bottom]
    below = np.where(positive, estimate[bottom], np.nan)
    ratio = estimate[top] / below
    influence = (base.influence[:, top] - ratio * base.influence[:, bottom]) / below
    unit = np.where(positive, np.maximum(scale[top], np.abs(ratio) * scale[bottom]) / below, 1.0)
    errors = errors_from_influence(ratio, np.where(positive, influence, 0.0), base.strata, unit)
    reason = tuple(
        text if defined else f"the denominator is {estimate[column]:.3g}: not positive"
        for text, defined, column in zip(errors.reason, positive, bottom, strict=True)
    )
    defined = draws[:, bottom] > ROUNDING * scale[bottom]
    quotient = draws[:, top] / np.where(defined, draws[:, bottom], np.nan)
    return Resampled(errors._replace(reason=reason), quotient, influence, base.strata, unit, None)


def _picks(sizes: Ints, rows: int, seed: int, number: int) -> NDArray[np.int32]:
    """Positions of the drawn items, ``(rows, N)``, stratum after stratum."""
    random = np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, number])))
    picked = np.empty((rows, int(sizes.sum())), dtype=np.int32)
    start = 0
    for size in sizes.tolist():
        stop = start + size
        picked[:, start:stop] = start + random.integers(size, size=(rows, size), dtype=np.int32)
        start = stop
    return picked


def _sums(picked: NDArray[np.int32], pool: Floats, sizes: Sequence[int] | Ints) -> Floats:
    """Sums of the pool's rows over consecutive runs of drawn items: ``(rows, G, M)``."""
    from scipy.sparse import csr_array

    rows, n_items = picked.shape
    ends = np.cumsum(sizes)
    starts = (np.arange(rows)[:, None] * n_items + np.concatenate([[0], ends[:-1]])).ravel()
    pointers = np.append(starts, rows * n_items).astype(np.int32)
    # A sparse matrix of ones, an item drawn twice standing twice: one pass over the draws serves all columns.
    chosen = csr_array((np.ones(picked.size), picked.ravel(), pointers), shape=(len(pointers) - 1, n_items))
    sums: Floats = (chosen @ pool).reshape(rows, len(ends), pool.shape[1])
    return sums


def _standard_errors(first: Floats, second: Floats, sizes: Ints) -> Floats:
    size = sizes[:, None].astype(np.float64)
    squares = second - first**2 / size
    # Equal items leave rounding of the order of their squares, not zero.
    squares = np.where(squares > ROUNDING * second, squares, 0.0)
    variance = (size / size.sum() ** 2 * squares / np.maximum(size - 1, 1)).sum(1)
    return np.sqrt(np.where(variance > 0, variance, np.nan))
