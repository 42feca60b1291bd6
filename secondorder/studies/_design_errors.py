"""Bias, absolute error and Krippendorff's alpha of designs against human scores, as functions of sums over items."""

from __future__ import annotations

import numpy as np

from secondorder.studies._disagreement import Array
from secondorder.studies._parts import quotient

__all__ = ["MEASURES", "error_columns", "read_errors"]

MEASURES = ("bias", "mae", "alpha")
WIDTH = 6


def error_columns(values: Array, human: Array) -> Array:
    """What an item adds to: n, difference, |difference|, its square, and sum and square sum of both scores.

    Parameters
    ----------
    values : array, shape (..., items, designs)
    human : array, shape (items,)

    Returns
    -------
    array, shape (..., items, designs, 6)
        0 where there is no pair.
    """
    people = human[:, None]
    there = ~np.isnan(values + people)
    score = np.where(there, values, 0.0)
    right = np.where(there, people, 0.0)
    gap = score - right
    return np.stack([there.astype(float), gap, np.abs(gap), gap**2, score + right, score**2 + right**2], axis=-1)


def read_errors(sums: Array) -> Array:
    """Bias, mean absolute error and alpha (interval, two raters): (..., designs, 3).

    Parameters
    ----------
    sums : array, shape (..., designs, 6)

    Notes
    -----
    For two raters without missing ratings alpha is one minus the mean squared difference over twice the variance of all
    ratings pooled (n - 1).
    """
    n, gap, size, square, total, squares = (sums[..., k] for k in range(WIDTH))
    bias, mae, observed = quotient(gap, n), quotient(size, n), quotient(square, n)
    mean = quotient(total, 2 * n)
    spread = quotient(squares - 2 * n * mean**2, 2 * n - 1)
    flat = spread <= 1e-12 * (1 + mean**2)
    return np.stack([bias, mae, 1 - quotient(observed, np.where(flat, 0.0, 2 * spread))], axis=-1)
