"""Pearson, Spearman and Kendall correlations of weighted rows: one weight vector for each bootstrap draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondorder.studies._disagreement import Array

__all__ = ["CORRELATIONS", "Points", "make_points", "weighted"]

FEW = 512  # so many different (x, y) points at most are worth merging
BLOCK = 1024  # rows of the concordance matrix that are formed at a time


class Points(NamedTuple):
    """Different (x, y) points, and how often each cluster holds each of them.

    Attributes
    ----------
    x, y : array, shape (points,)
    clusters : array, shape (clusters, points), or None
        None: a point is a row of the cluster in `row_cluster`.
    row_cluster : int array, shape (points,)
    """

    x: Array
    y: Array
    clusters: Array | None
    row_cluster: NDArray[np.int64]


def make_points(x: Array, y: Array, cluster: NDArray[np.int64], n_clusters: int) -> Points:
    """Rows with both values; equal rows are merged where that makes them few (as scores on short scales do)."""
    there = ~(np.isnan(x) | np.isnan(y))
    x, y, cluster = x[there], y[there], cluster[there]
    pairs, inverse = np.unique(np.stack([x, y]), axis=1, return_inverse=True)
    if pairs.shape[1] > FEW:
        return Points(x, y, None, cluster)
    held = np.zeros((n_clusters, pairs.shape[1]))
    np.add.at(held, (cluster, inverse.ravel()), 1.0)
    return Points(pairs[0], pairs[1], held, np.zeros(0, dtype=np.int64))


def _pearson(x: Array, y: Array, weights: Array) -> Array:
    # x, y: (points,) or (draws, points)
    n = weights.sum(-1)
    x = x - ((weights * x).sum(-1) / n)[:, None]
    y = y - ((weights * y).sum(-1) / n)[:, None]
    both = (weights * x * y).sum(-1)
    scale = np.sqrt((weights * x * x).sum(-1) * (weights * y * y).sum(-1))
    flat = scale <= 1e-12 * n * max(1.0, float(np.abs(x).max(initial=0.0)) * float(np.abs(y).max(initial=0.0)))
    return np.asarray(np.divide(both, scale, out=np.full(len(n), np.nan), where=~flat))


def _levels(values: Array, weights: Array) -> tuple[NDArray[np.int64], Array]:
    # Position of each point's value among the sorted values, and the weight that each value has: (draws, levels).
    levels, position = np.unique(values, return_inverse=True)
    order = np.argsort(position, kind="stable")
    starts = np.searchsorted(position[order], np.arange(len(levels)))
    return position, np.add.reduceat(weights[:, order], starts, axis=1)


def _mid_ranks(values: Array, weights: Array) -> Array:
    position, held = _levels(values, weights)
    return np.asarray((np.cumsum(held, axis=1) - held / 2 + 0.5)[:, position])


def _spearman(x: Array, y: Array, weights: Array) -> Array:
    return _pearson(_mid_ranks(x, weights), _mid_ranks(y, weights), weights)


def _kendall(x: Array, y: Array, weights: Array) -> Array:
    # tau-b; a row drawn twice is tied with itself in both. The cost is quadratic in the number of points.
    n = weights.sum(-1)
    balance = np.zeros(len(weights))
    for start in range(0, len(x), BLOCK):
        rows = slice(start, start + BLOCK)
        concordance = np.sign(x[rows, None] - x) * np.sign(y[rows, None] - y)
        balance += (weights[:, rows] * (weights @ concordance.T)).sum(-1)
    untied = [n * n - (_levels(values, weights)[1] ** 2).sum(-1) for values in (x, y)]
    scale = np.sqrt(untied[0] * untied[1])
    return np.asarray(np.divide(balance, scale, out=np.full(len(n), np.nan), where=scale > 0))


CORRELATIONS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "pearson": _pearson,
    "spearman": _spearman,
    "kendall": _kendall,
}
"""Every correlation by name."""


def weighted(points: Points, draws: Array, names: Sequence[str]) -> Array:
    """Correlations for each draw, (names, draws); NaN where a variable does not vary or there is no point.

    Parameters
    ----------
    points : Points
    draws : array, shape (draws, clusters)
        How often each cluster was drawn.
    names : sequence of str
        Keys of ``CORRELATIONS``.
    """
    if not len(points.x):
        return np.full((len(names), len(draws)), np.nan)
    weights = draws[:, points.row_cluster] if points.clusters is None else draws @ points.clusters
    some = weights.sum(-1) > 0
    found = np.full((len(names), len(draws)), np.nan)
    for index, name in enumerate(names):
        found[index, some] = CORRELATIONS[name](points.x, points.y, weights[some])
    return found
