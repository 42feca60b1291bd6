"""Matched-pairs rank-biserial correlation under a declared rule for zero differences."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from secondorder.errors import InputError
from secondorder.studies._parts import Value

__all__ = ["rank_biserial"]

Zeros = Literal["drop", "pratt", "split"]


def rank_biserial(differences: ArrayLike, *, zeros: Zeros) -> Value:
    """Rank-biserial correlation of paired differences: ``(W+ - W-) / (W+ + W-)``.

    Programs differ on zero differences, and the answers differ widely where ties are common, as they are on short
    scales: the rule must be said.

    Parameters
    ----------
    differences : array, shape (pairs,)
        NaN is refused; leave missing pairs out, and count them.
    zeros : {"drop", "pratt", "split"}
        ``drop``: zeros leave before ranking (Wilcoxon). ``pratt``: they are ranked, then their ranks leave.
        ``split``: they are ranked, and half of their ranks counts for either sign.

    Returns
    -------
    Value
        Between -1 and 1; NaN with the reason when no difference is other than zero (``split``: 0).

    References
    ----------
    Kerby 2014; Pratt 1959.

    Examples
    --------
    >>> differences = [-1, *[0] * 9, 1, 2]
    >>> [round(rank_biserial(differences, zeros=rule).estimate, 4) for rule in ("drop", "pratt", "split")]
    [0.5, 0.3636, 0.1538]
    """
    from scipy.stats import rankdata

    if zeros not in ("drop", "pratt", "split"):
        raise InputError(f"zeros={zeros!r}", place="rank_biserial", remedy="say 'drop', 'pratt' or 'split'")
    values = np.asarray(differences, dtype=float)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise InputError("differences must be finite numbers in one row", place="rank_biserial")
    if not len(values):
        return Value(float("nan"), "no pairs")
    kept = values[values != 0] if zeros == "drop" else values
    ranks = rankdata(np.abs(kept))
    above, below = float(ranks[kept > 0].sum()), float(ranks[kept < 0].sum())
    total = above + below + (float(ranks[kept == 0].sum()) if zeros == "split" else 0.0)
    if total == 0:
        return Value(float("nan"), "every difference is zero")
    return Value((above - below) / total)
