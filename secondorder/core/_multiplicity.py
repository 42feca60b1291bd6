"""P values adjusted for the number of tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["benjamini_hochberg", "holm"]

Floats = NDArray[np.float64]


def benjamini_hochberg(pvalues: ArrayLike) -> Floats:
    """P values adjusted for the false discovery rate: reject those at or below the wanted rate.

    Parameters
    ----------
    pvalues : array, shape (N,)
        NaN values (undefined tests) are no tests: they stay NaN and do not count.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03, np.nan]).round(3).tolist()
    [0.03, 0.04, 0.04, nan]
    """
    values = np.asarray(pvalues, dtype=np.float64)
    adjusted = np.full(values.shape, np.nan)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    steps = values[order] * len(order) / np.arange(1, len(order) + 1)
    adjusted[order] = np.minimum.accumulate(steps[::-1])[::-1]
    return adjusted


def holm(pvalues: ArrayLike) -> Floats:
    """P values adjusted for the family-wise error rate, whatever their dependence: reject those at or below the rate.

    Parameters
    ----------
    pvalues : array, shape (N,)
        NaN values (undefined tests) are no tests: they stay NaN and do not count.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03, np.nan]).round(3).tolist()
    [0.03, 0.06, 0.06, nan]
    """
    values = np.asarray(pvalues, dtype=np.float64)
    adjusted = np.full(values.shape, np.nan)
    known = np.flatnonzero(~np.isnan(values))
    order = known[np.argsort(values[known], kind="stable")]
    steps = values[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
