"""Variance of a degree-2 U-statistic over exchangeable units: levels of a random facet, blocks of repeats."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["FEWER_THAN_FOUR_UNITS", "GramVariance", "gram_variance"]

Floats = NDArray[np.float64]

FEWER_THAN_FOUR_UNITS = "an unbiased estimate of the variance needs at least four units; with fewer none exists"


class GramVariance(NamedTuple):
    """Mean over pairs of units of each component, and the unbiased estimate of the means' covariance.

    Attributes
    ----------
    estimate : array, shape (*batch, M)
    covariance : array, shape (*batch, M, M)
        Raw: a variance may be negative. NaN, for the reason :data:`FEWER_THAN_FOUR_UNITS`, below four units.
    """

    estimate: Floats
    covariance: Floats


def gram_variance(tables: ArrayLike) -> GramVariance:
    """Means of symmetric pair functions of independent units with the unbiased estimate of their covariance.

    ``Cov(T, T') = E[T T'] - E[T] E[T']``, and the last term is the mean of ``H_ab H'_cd`` over four distinct units;
    no other symmetric estimator is unbiased.

    Parameters
    ----------
    tables : array, shape (*batch, M, m, m)
        Per component the values of all pairs of m units, symmetric; the diagonal is not read.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([1.0, 2.0, 4.0, 7.0])
    >>> result = gram_variance((x[:, None] - x) ** 2 / 2 * np.ones((1, 1, 1)))
    >>> float(result.estimate[0]), x.var(ddof=1).item()
    (7.0, 7.0)
    """
    values = np.array(tables, dtype=np.float64)
    units = values.shape[-1]
    values[..., np.arange(units), np.arange(units)] = 0.0
    rows = values.sum(-1)
    sums = rows.sum(-1)
    estimate: Floats = sums / (units * (units - 1))
    size = values.shape[-3]
    if units < 4:
        return GramVariance(estimate, np.full((*estimate.shape, size), np.nan))
    flat = values.reshape(*values.shape[:-2], units * units)
    inner = flat @ np.swapaxes(flat, -1, -2)
    chained = rows @ np.swapaxes(rows, -1, -2)
    outer = sums[..., :, None] * sums[..., None, :]
    four = (outer - 4 * chained + 2 * inner) / (units * (units - 1) * (units - 2) * (units - 3))
    return GramVariance(estimate, estimate[..., :, None] * estimate[..., None, :] - four)
