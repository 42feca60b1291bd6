"""Disagreement matrices of the agreement coefficients: nominal, linear, quadratic, interval, ratio, or the user's own.

Every matrix here is scaled to a largest entry of 1, so that ``1 - D`` are the agreement weights of weighted kappa.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondorder._schema import BOTTOM
from secondorder.core._kernels import check_kernel, interval_kernel, nominal_kernel, ordinal_kernel
from secondorder.errors import KernelError

__all__ = ["WEIGHTS", "Array", "alpha_metric", "class_scores", "disagreement", "label_scores", "to_one"]

Array = NDArray[np.float64]

WEIGHTS = {
    "nominal": "equal or not",
    "linear": "|i - j| / (m - 1) on the declared order",
    "quadratic": "(i - j)^2 / (m - 1)^2 on the declared order",
    "interval": "squared difference of the scores over the squared range",
    "ratio": "((a - b) / (a + b))^2 of the scores",
}


def class_scores(classes: Sequence[str], scores: Any = None) -> Array:
    """Score of each class: the mapping given, or the label read as a number; ⊥ has none (NaN).

    Raises
    ------
    KernelError
        When a label is no number and has no declared score.
    """
    found = []
    for label in classes:
        given = label if scores is None else scores.get(label, label)
        if label == BOTTOM and given == BOTTOM:
            found.append(np.nan)
        else:
            try:
                found.append(float(given))
            except (TypeError, ValueError):
                raise KernelError(
                    f"class {label!r} has no score" if given == label else f"{given!r} of class {label!r} is no number",
                    place="scores",
                    remedy="score every class (scores={class: number}), or choose nominal",
                ) from None
    return np.array(found, dtype=float)


def label_scores(labels: Iterable[object], scores: Any = None) -> Array:
    """Score of each label as :func:`class_scores` has it; None and the empty label have none (NaN).

    Raises
    ------
    KernelError
        When a label is no number and has no declared score.
    """
    texts = ["" if label is None else str(label) for label in labels]
    known = [label for label in dict.fromkeys(texts) if label]
    table = dict(zip(known, class_scores(known, scores).tolist(), strict=True))
    return np.array([table.get(text, np.nan) for text in texts], dtype=float)


def disagreement(
    kind: str | ArrayLike,
    classes: Sequence[str],
    *,
    scores: Any = None,
    ranked: bool = True,
    argument: str = "weights",
) -> Array:
    """Disagreement of every two classes, between 0 and 1.

    Parameters
    ----------
    kind : {"nominal", "linear", "quadratic", "interval", "ratio"} or array, shape (C, C)
        A user's matrix need not be of negative type; it is scaled to a largest entry of 1.
    classes : sequence of str
        Classes in their declared order, ⊥ (if it occurs) last.
    scores : mapping of class to float, optional
        For ``interval`` and ``ratio``; default: the labels as numbers.
    ranked : bool
        Whether somebody ranked the classes, which ``linear`` and ``quadratic`` need.
    argument : str
        What the caller calls the kind, for messages.

    Raises
    ------
    KernelError
        When the kind is unknown, needs ranks or scores that are not there, or gives ⊥ a position that it does not have.

    Examples
    --------
    >>> disagreement("linear", ["low", "mid", "high"]).tolist()[0]
    [0.0, 0.5, 1.0]
    """
    size = len(classes)
    if not isinstance(kind, str):
        return to_one(check_kernel(np.asarray(kind, dtype=float), size, allow_indefinite=True))
    if kind not in WEIGHTS:
        known = (*WEIGHTS, "ordinal") if argument == "metric" else WEIGHTS
        raise KernelError(f"unknown {argument} {kind!r}", place=argument, remedy=f"one of {', '.join(known)}")
    place = f"{argument}={kind!r}"
    if kind in ("linear", "quadratic"):
        _refuse_unranked(classes, ranked, place)
    bottom = size > 0 and classes[-1] == BOTTOM
    if kind in ("quadratic", "interval", "ratio") and not (scores is not None and BOTTOM in scores):
        _refuse_bottom(classes, place)
    if size < 2 or kind == "nominal":
        return nominal_kernel(size)
    if kind == "linear":
        if size - bottom < 2:
            return nominal_kernel(size)
        return ordinal_kernel(size - bottom, bottom=bottom)
    if kind == "quadratic":
        return interval_kernel(np.arange(size, dtype=float).tolist(), standardise=True)
    values = class_scores(classes, scores)
    if kind == "interval":
        return interval_kernel(values.tolist(), standardise=True)
    if (values < 0).any():
        raise KernelError(f"score {values.min():g} is negative", place=place, remedy="a ratio scale has a true zero")
    total = values[:, None] + values[None, :]
    return to_one(((values[:, None] - values[None, :]) / np.where(total > 0, total, 1.0)) ** 2)


def to_one(matrix: Array) -> Array:
    """A disagreement scaled to a largest entry of 1."""
    return matrix / matrix.max() if matrix.any() else matrix


def alpha_metric(
    metric: str | ArrayLike, classes: Sequence[str], *, scores: Any = None, ranked: bool = True
) -> Array | None:
    """Disagreement matrix of alpha; None stands for Krippendorff's ordinal metric, which depends on the sample."""
    if isinstance(metric, str) and metric == "ordinal":
        _refuse_unranked(classes, ranked, "metric='ordinal'")
        _refuse_bottom(classes, "metric='ordinal'")
        return None
    return disagreement(metric, classes, scores=scores, ranked=ranked, argument="metric")


def _refuse_unranked(classes: Sequence[str], ranked: bool, place: str) -> None:
    if not ranked:
        known = [label for label in classes if label != BOTTOM]
        raise KernelError(
            f"the classes were found in the data, so nobody has ranked them ({', '.join(known[:8])})",
            place=place,
            remedy="give classes= from the lowest to the highest",
        )


def _refuse_bottom(classes: Sequence[str], place: str) -> None:
    if BOTTOM in classes:
        raise KernelError(
            f"invalid verdicts ({BOTTOM}) occur and have no place on a scale",
            place=place,
            remedy="say invalid='missing', or choose a nominal coefficient",
        )
