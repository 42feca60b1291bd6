"""Paired tests of two designs on the same items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondorder.studies._disagreement import Array
from secondorder.studies._rank_biserial import rank_biserial

__all__ = ["Signed", "mcnemar", "signed_rank"]


MOST_EXACT = 50


class Signed(NamedTuple):
    """Matched-pairs rank-biserial correlation and the p-value of Wilcoxon's signed-rank test."""

    correlation: float
    pvalue: float


def signed_rank(differences: Array) -> Signed:
    """Wilcoxon's test of paired differences, zeros dropped; (0, 1) where every difference is zero, NaN without pairs.

    Differences count to nine decimals: a score mapped from another scale differs from an equal one by rounding alone,
    which is a zero, and two equal differences are tied. Up to 50 differences the p-value is exact, ties or not.

    Examples
    --------
    >>> signed_rank(np.array([1.0, 2.0, -3.0, 4.0, 5.0, 6.0, 0.0]))
    Signed(correlation=0.7142857142857143, pvalue=0.15625)
    """
    from scipy.stats import rankdata, wilcoxon

    kept = np.round(differences[~np.isnan(differences)], 9)
    if not len(kept):
        return Signed(float("nan"), float("nan"))
    moved = kept[kept != 0]
    if not len(moved):
        return Signed(0.0, 1.0)
    correlation = rank_biserial(moved, zeros="drop").estimate
    if len(moved) > MOST_EXACT:
        return Signed(correlation, float(wilcoxon(moved, method="asymptotic").pvalue))
    twice = np.rint(2 * rankdata(np.abs(moved))).astype(np.int64)  # tied ranks are halves
    return Signed(correlation, _exact(twice, int(twice[moved > 0].sum())))


def _exact(ranks: NDArray[np.int64], above: int) -> float:
    """Two-sided p-value of the sum of the positive ranks over all signs, ties included.

    With few differences, all of one size, the normal approximation finds what no sign pattern can show.
    """
    law = np.ones(1)
    for rank in ranks.tolist():
        padded = np.concatenate([law, np.zeros(rank)])
        law = (padded + np.roll(padded, rank)) / 2
    return float(min(1.0, 2 * min(law[: above + 1].sum(), law[above:].sum())))


def mcnemar(gained: int, lost: int) -> float:
    """Exact two-sided p-value that gains and losses among discordant pairs are equally likely; 1 without any.

    Examples
    --------
    >>> round(mcnemar(1, 8), 5), mcnemar(0, 0)
    (0.03906, 1.0)
    """
    from scipy.stats import binomtest

    total = gained + lost
    return float(binomtest(gained, total).pvalue) if total else 1.0
