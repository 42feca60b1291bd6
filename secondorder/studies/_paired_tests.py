"""Paired tests of two designs on the same items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from secondorder.studies._disagreement import Array
from secondorder.studies._rank_biserial import rank_biserial

__all__ = ["Signed", "mcnemar", "signed_rank"]


class Signed(NamedTuple):
    """Matched-pairs rank-biserial correlation and the p-value of Wilcoxon's signed-rank test."""

    correlation: float
    pvalue: float


def signed_rank(differences: Array) -> Signed:
    """Wilcoxon's test of paired differences, zeros dropped; (0, 1) where every difference is zero, NaN without pairs.

    Differences count to nine decimals: a score mapped from another scale differs from an equal one by rounding alone,
    which is a zero, and two equal differences are tied.

    Examples
    --------
    >>> signed_rank(np.array([1.0, 2.0, -3.0, 4.0, 5.0, 6.0, 0.0]))
    Signed(correlation=0.7142857142857143, pvalue=0.15625)
    """
    from scipy.stats import wilcoxon

    kept = np.round(differences[~np.isnan(differences)], 9)
    if not len(kept):
        return Signed(float("nan"), float("nan"))
    moved = kept[kept != 0]
    if not len(moved):
        return Signed(0.0, 1.0)
    # Exact where nothing is tied and there are few; scipy's own rule asks for the same.
    few = len(moved) <= 50 and len(np.unique(np.abs(moved))) == len(moved)
    found = wilcoxon(moved, method="exact" if few else "asymptotic")
    return Signed(rank_biserial(moved, zeros="drop").estimate, float(found.pvalue))


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
