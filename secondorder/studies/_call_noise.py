"""Reversals that call noise alone gives: a prompt against itself on disjoint calls, beside two prompts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from secondorder.studies._disagreement import Array
from secondorder.studies._ranks import signs, system_means

__all__ = ["noise_reversals", "split_calls"]


def split_calls(values: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Mean score of each row and prompt from two random disjoint halves of the calls of every cell.

    Parameters
    ----------
    values : array, shape (rows, cells, prompts, calls)
        NaN is no valid call. A cell with n valid calls gives two halves of ``n // 2``.

    Returns
    -------
    two arrays, shape (rows, prompts)
        NaN where a cell has fewer than two valid calls.
    """
    keys = np.where(np.isnan(values), np.inf, rng.random(values.shape))
    place = np.argsort(np.argsort(keys, axis=-1), axis=-1)
    half = (~np.isnan(values)).sum(-1, keepdims=True) // 2
    filled = np.nan_to_num(values)
    halves = []
    for low in (0, 1):
        mine = (place >= low * half) & (place < (low + 1) * half)
        size = half[..., 0]
        cells = np.divide((filled * mine).sum(-1), size, out=np.full(size.shape, np.nan), where=size > 0)
        halves.append(cells.mean(1))
    return halves[0], halves[1]


def noise_reversals(
    values: Array, weights: Array, members: Array, *, splits: int, seed: int
) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """Share of pairs of systems in opposite order, at half of the calls, over random splits within cells.

    Parameters
    ----------
    values : array, shape (rows, cells, prompts, calls)
    weights : array, shape (draws, rows)
    members : array, shape (systems, rows)
    splits : int
    seed : int

    Returns
    -------
    across, within : array, shape (draws,)
        Different prompts, and the same prompt twice; both from disjoint calls, of the same number. Rows count where
        every cell has two valid calls.
    spread : array, shape (2,)
        Monte Carlo standard errors of across and within over splits, of the first draw.
    sizes : int array
        Least and largest number of calls in a half.
    """
    rng = np.random.default_rng(seed)
    n = (~np.isnan(values)).sum(-1)
    fit = (n >= 2).all((1, 2))
    sizes = np.array([n[fit].min() // 2, n[fit].max() // 2]) if fit.any() else np.zeros(2, dtype=np.int64)
    k, other = np.triu_indices(values.shape[2], 1)
    found = []
    for _ in range(splits):
        halves = [signs(_means(half, fit, weights, members)) for half in split_calls(values, rng)]
        within = (halves[0] * halves[1] < 0).mean((-1, -2))
        undefined = np.isnan(halves[0]).any((-1, -2)) | np.isnan(halves[1]).any((-1, -2))
        found.append(np.where(undefined, np.nan, np.stack([_opposite(*halves)[:, k, other].mean(-1), within])))
    stacked = np.stack(found)  # (splits, 2, draws)
    spread = stacked[:, :, 0].std(0, ddof=1) / np.sqrt(splits) if splits > 1 else np.full(2, np.nan)
    mean = stacked.mean(0)
    return mean[0], mean[1], spread, sizes


def _opposite(first: Array, second: Array) -> Array:
    """Share of pairs in opposite order under every two prompts, the mean over either half of both: (draws, K, K).

    Of two signs that are not 0 the product is -1 or 1, so that the sum over pairs of 1 less the product is twice the
    number of opposite ones; either half of one prompt with either half of the other is one product of sums.
    """
    sign, decided = first + second, np.abs(first) + np.abs(second)
    gap = np.swapaxes(decided, -1, -2) @ decided - np.swapaxes(sign, -1, -2) @ sign
    return np.asarray(gap / (8 * first.shape[-2]))


def _means(half: Array, fit: NDArray[np.bool_], weights: Array, members: Array) -> Array:
    return system_means(np.where(fit[:, None], half, np.nan), weights, members)
