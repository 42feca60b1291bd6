"""Bands over items as methods of a study: percentile, BCa and studentised, from one set of bootstrap weights.

A study runs thousands of data sets: their whole-item resamples are one matrix product, ``weights @ values``, with the
weights (how often each item is drawn, stratum by stratum) shared by the data sets of a block. The formulas are those
of :func:`secondorder.core.percentile_interval` and its neighbours; a test holds them together.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondorder.core._cells import cells_from_counts
from secondorder.core._estimates import complete_pairs
from secondorder.simulate._methods import Draw, Estimate, Method

__all__ = ["band_methods"]

Floats = NDArray[np.float64]

DRAWS = 999
ROUNDING = 1e-12
# Different sets of weights, so that data sets do not all share the luck of one.
SETS = 8


class _Resamples(NamedTuple):
    """Sorted bootstrap deviations of the means of many columns, and of their studentised form."""

    mean: Floats
    se: Floats
    deviations: Floats
    sorted: Floats
    ratios: Floats
    skewness: Floats
    flat: NDArray[np.bool_]


def band_methods() -> tuple[Method, Method, Method]:
    """Methods ``percentile``, ``bca`` and ``studentised``: bands over items of the debiased estimates, 999 draws.

    The default interval t needs no method of its own: it is what ``debiased`` answers.

    Examples
    --------
    >>> [method.name for method in band_methods()]
    ['percentile', 'bca', 'studentised']
    """
    return (
        Method("percentile", percentile_band),
        Method("bca", bca_band),
        Method("studentised", studentised_band),
    )


def percentile_band(draw: Draw) -> Estimate:
    """Quantiles of the draws."""
    found = _resamples(draw)
    tails = _tails(draw.level)
    lower, upper = (found.mean + _quantile(found.sorted, np.full(len(found.mean), tail)) for tail in tails)
    return _estimate(draw, found, lower, upper)


def bca_band(draw: Draw) -> Estimate:
    """Quantiles at levels shifted by the bias of the draws' median and the skewness of the items."""
    from scipy.special import ndtr, ndtri

    found = _resamples(draw)
    tie = ROUNDING * float(np.max(draw.kernel))
    below = ((found.sorted < -tie).mean(-1) + (found.sorted <= tie).mean(-1)) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        bias = ndtri(np.where((below <= 0) | (below >= 1), np.nan, below))
        ends = []
        for tail in _tails(draw.level):
            z = bias + ndtri(tail)
            ends.append(ndtr(bias + z / (1 - found.skewness * z)))
    lower, upper = (found.mean + _quantile(found.sorted, end) for end in ends)
    return _estimate(draw, found, lower, upper)


def studentised_band(draw: Draw) -> Estimate:
    """Quantiles of deviations in units of each resample's own standard error, in the place of t quantiles."""
    found = _resamples(draw)
    lost = np.isnan(found.ratios).sum(-1)
    # NaN sorts last: quantiles are those of the draws with a value, undefined when the others outweigh a tail.
    undefined = 2 * lost >= (1 - draw.level) * DRAWS
    low, high = (
        _quantile(found.ratios, np.full(len(lost), tail), DRAWS - lost) * found.se for tail in _tails(draw.level)
    )
    lower, upper = (np.where(undefined, np.nan, found.mean - end) for end in (high, low))
    return _estimate(draw, found, lower, upper)


def _tails(level: float) -> tuple[float, float]:
    return (1 - level) / 2, (1 + level) / 2


def _estimate(draw: Draw, found: _Resamples, lower: Floats, upper: Floats) -> Estimate:
    size = len(draw.components)

    def shaped(column: Floats) -> Floats:
        table = column.reshape(-1, size)
        return np.pad(table, ((0, 0), (0, len(draw.names) - size)), constant_values=np.nan)

    undefined = found.flat | np.isnan(lower) | np.isnan(upper)
    limits = (shaped(np.where(undefined, np.nan, end)) for end in (lower, upper))
    return Estimate(shaped(found.mean), *limits)


@lru_cache(maxsize=1)  # the three methods of a block share its resamples
def _resamples(draw: Draw) -> _Resamples:
    cells = cells_from_counts(draw.counts)
    values = np.asarray(complete_pairs(cells, draw.design, draw.components, draw.kernel))
    items = values.shape[1]
    columns = values.transpose(0, 2, 1).reshape(-1, items)
    strata = np.asarray(draw.strata)
    sizes = np.bincount(strata)
    order = np.argsort(strata, kind="stable")
    columns = np.ascontiguousarray(columns[:, order])
    starts = np.cumsum(sizes) - sizes
    centres = np.add.reduceat(columns, starts, axis=1) / sizes
    centred = columns - np.repeat(centres, sizes, axis=1)
    choice = zlib.crc32(np.asarray(draw.counts_last[0][..., 0]).tobytes()) % SETS
    weights = _weights(tuple(sizes.tolist()), choice)
    share = (sizes / items) ** 2 / (sizes * np.maximum(sizes - 1, 1))
    variance = np.add.reduceat(centred**2, starts, axis=1) @ share
    flat = np.abs(centred).max(1) <= ROUNDING * float(np.max(draw.kernel))
    deviations = centred @ weights.T / items
    squares = np.zeros(deviations.shape)
    for start, size, factor in zip(starts, sizes, share, strict=True):
        part = slice(int(start), int(start + size))
        first = centred[:, part] @ weights[:, part].T
        second = centred[:, part] ** 2 @ weights[:, part].T
        spread = second - first**2 / size
        squares += factor * np.where(spread > ROUNDING * second, spread, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = deviations / np.sqrt(np.where(squares > 0, squares, np.nan))
        skewness = (centred**3).sum(1) / (6 * (centred**2).sum(1) ** 1.5)
    ratios.sort(axis=1)
    return _Resamples(
        columns.mean(1), np.sqrt(variance), deviations, np.sort(deviations, axis=1), ratios, skewness, flat
    )


@lru_cache(maxsize=SETS)
def _weights(sizes: tuple[int, ...], choice: int) -> Floats:
    """How often each item is drawn, shape (draws, N): with replacement within strata."""
    random = np.random.Generator(np.random.Philox(key=[choice, sum(sizes)]))
    parts = [random.multinomial(size, np.full(size, 1 / size), size=DRAWS) for size in sizes]
    return np.concatenate(parts, axis=1).astype(np.float64)


def _quantile(ordered: Floats, level: Floats, count: Any = None) -> Floats:
    """Quantile of each sorted row at a level of its own, by linear interpolation; NaN where the level is NaN."""
    size = ordered.shape[1] if count is None else count
    place = np.where(np.isnan(level), 0.0, level) * np.maximum(np.asarray(size) - 1, 0)
    below = np.floor(place).astype(np.int64)
    rows = np.arange(len(ordered))
    low = ordered[rows, below]
    high = ordered[rows, np.minimum(below + 1, ordered.shape[1] - 1)]
    rest = place - below
    value = np.where(rest > 0, low + rest * (high - low), low)
    return np.where(np.isnan(level), np.nan, value)
