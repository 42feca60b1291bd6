"""The agreement coefficients by name, and their values on plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from secondorder.core._kernels import nominal_kernel
from secondorder.errors import TableError
from secondorder.studies._disagreement import Array, alpha_metric, disagreement
from secondorder.studies._parts import (
    Codes,
    Part,
    Value,
    fleiss,
    gwet,
    krippendorff,
    overlap,
    pairs,
    pairwise,
    point,
    shares,
    unit_counts,
)

__all__ = ["COEFFICIENTS", "coefficient", "make_parts"]


class Declared(NamedTuple):
    """What tables say of a coefficient."""

    label: str
    needs_raters: bool
    convention: str


COEFFICIENTS: dict[str, Declared] = {
    "overlap": Declared("overlap", False, "share of agreeing pairs of ratings, mean over items; always exact match"),
    "cohen": Declared("Cohen κ", True, "each rater's own class shares; mean over the pairs of raters with a value"),
    "fleiss": Declared("Fleiss κ", False, "pooled class shares; where ratings are missing, every item counts once"),
    "krippendorff": Declared("Krippendorff α", False, "coincidences; items with a single rating are left out"),
    "gwet": Declared("Gwet AC", False, "AC1 (nominal) or AC2; chance over the declared classes, and ⊥ where it occurs"),
    "scott": Declared("Scott π", True, "the pair's pooled class shares; mean over the pairs of raters with a value"),
}
"""Every coefficient: the only list of their names."""


def make_parts(
    names: Sequence[str], *, codes: Codes | None, counts: Array, weights: Array, metric: Array | None
) -> list[Part]:
    """Columns of each coefficient and how it is read off their sums; equal columns are one array.

    Parameters
    ----------
    names : sequence of str
        Keys of ``COEFFICIENTS``.
    codes : int array, shape (items, units, raters), or None
        Class codes, -1 missing; None when only counts are known.
    counts : array, shape (items, units, classes)
    weights : array, shape (classes, classes)
        Disagreement of kappa, pi and AC.
    metric : array, shape (classes, classes), or None
        Disagreement of alpha; None is Krippendorff's ordinal metric.

    Raises
    ------
    TableError
        When a name is unknown, or needs to know the raters of counts.
    """
    for name in names:
        if name not in COEFFICIENTS:
            raise TableError(
                f"unknown coefficient {name!r}", place="coefficients", remedy=f"one of {', '.join(COEFFICIENTS)}"
            )
        if COEFFICIENTS[name].needs_raters and codes is None:
            raise TableError(
                f"{name} needs to know who gave which rating", place="counts", remedy="give ratings= (item x rater)"
            )
    by_pair = pairs(codes, weights) if codes is not None and {"cohen", "scott"} & set(names) else None
    by_share = shares(counts, weights) if {"fleiss", "gwet"} & set(names) else None
    parts = []
    for name in names:
        if by_pair is not None and COEFFICIENTS[name].needs_raters:
            parts.append(pairwise(by_pair, weights, pooled=name == "scott"))
        elif by_share is not None and name in ("fleiss", "gwet"):
            parts.append((fleiss if name == "fleiss" else gwet)(by_share, weights))
        elif name == "overlap":
            parts.append(overlap(counts, nominal_kernel(counts.shape[-1])))
        else:
            parts.append(krippendorff(counts, metric))
    return parts


def _check_codes(ratings: ArrayLike, n_classes: int | None) -> tuple[Codes, int]:
    array = np.asarray(ratings)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer):
        raise TableError(
            f"ratings have shape {array.shape} and type {array.dtype}",
            place="ratings",
            remedy="give whole-number class codes, item x rater, -1 for missing",
        )
    codes = array.astype(np.int64)
    top = int(codes.max(initial=-1))
    if codes.min(initial=0) < -1:
        raise TableError(f"code {codes.min()}", place="ratings", remedy="codes start at 0; only -1 means missing")
    if n_classes is not None and top >= n_classes:
        raise TableError(f"code {top} with n_classes={n_classes}", place="ratings", remedy="codes are 0..n_classes-1")
    return codes[:, None, :], top + 1 if n_classes is None else n_classes


def _check_counts(counts: ArrayLike) -> Array:
    table = np.asarray(counts, dtype=float)
    if table.ndim != 2 or not np.isfinite(table).all() or (table < 0).any() or (table != np.round(table)).any():
        raise TableError("not a table of counts", place="counts", remedy="give item x class, whole numbers >= 0")
    return table[:, None, :]


def coefficient(
    name: str,
    *,
    ratings: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    n_classes: int | None = None,
    weights: str | ArrayLike = "nominal",
    metric: str | ArrayLike = "nominal",
    scores: Sequence[float] | None = None,
) -> Value:
    """One agreement coefficient of an array of class codes, or of a table of counts.

    A bare array could be either, and gives another answer as either: it must be named.

    Parameters
    ----------
    name : {"overlap", "cohen", "fleiss", "krippendorff", "gwet", "scott"}
    ratings : int array, shape (items, raters)
        Class codes from 0; -1 for missing.
    counts : array, shape (items, classes)
        How many raters chose each class.
    n_classes : int, optional
        Declared number of classes of `ratings`; default: the largest code + 1. It changes AC1, AC2 and the linear and
        quadratic weights.
    weights : {"nominal", "linear", "quadratic", "interval", "ratio"} or array, shape (classes, classes)
        Disagreement for kappa, pi and AC (not for overlap, which is exact match).
    metric : {"nominal", "ordinal", "interval", "ratio"} or array, shape (classes, classes)
        Disagreement for alpha; ``ordinal`` is Krippendorff's, on the ranks within the sample.
    scores : sequence of float, optional
        Score of each class for ``interval`` and ``ratio``; default: the codes.

    Returns
    -------
    Value
        ``(estimate, reason)``; the estimate is NaN where the coefficient is undefined, and the reason says why.

    Raises
    ------
    TableError
        When neither or both of `ratings` and `counts` are given, or their values are no codes or counts.

    References
    ----------
    Cohen 1960 and 1968; Scott 1955; Fleiss 1971; Krippendorff 2011; Gwet 2008 and 2014.

    Examples
    --------
    >>> round(coefficient("krippendorff", ratings=[[0, 0], [0, 1], [0, 0], [1, 1], [0, 0]]).estimate, 5)
    0.57143
    >>> coefficient("cohen", ratings=[[0, 0], [0, 0]])
    Value(estimate=nan, reason='only one class occurs: expected disagreement is 0')
    """
    codes: Codes | None = None
    if ratings is not None and counts is None:
        codes, size = _check_codes(ratings, n_classes)
        table = unit_counts(codes, size)
        n_raters = codes.shape[-1]
    elif counts is not None and ratings is None:
        table = _check_counts(counts)
        size = table.shape[-1]
        n_raters = int(table.sum(-1).max(initial=0))
    else:
        raise TableError(
            "give exactly one of ratings= and counts=",
            place="coefficient",
            remedy="ratings: item x rater class codes; counts: item x class numbers of raters",
        )
    labels = [str(code) for code in range(size)]
    given: Any = None if scores is None else dict(zip(labels, scores, strict=True))
    parts = make_parts(
        [name],
        codes=codes,
        counts=table,
        weights=disagreement(weights, labels, scores=given),
        metric=alpha_metric(metric, labels, scores=given),
    )
    return point(parts[0], n_raters=n_raters)[0]
