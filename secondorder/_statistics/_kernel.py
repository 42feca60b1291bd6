"""Choosing the disagreement kernel for labelled classes, and what ⊥ means under it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._schema import BOTTOM, CLASS
from secondorder.core._kernels import (
    check_kernel,
    interval_kernel,
    interval_with_invalid,
    is_negative_type,
    midpoint_invalid,
    nominal_kernel,
    ordinal_kernel,
)
from secondorder.errors import KernelError

__all__ = [
    "INDEFINITE",
    "ChosenKernel",
    "InvalidAs",
    "check_order",
    "choose_kernel",
    "is_number",
    "kernel",
    "parse_invalid_as",
]

OTHER = "other_class"
InvalidAs = Literal["class", "missing", "midpoint"] | tuple[float, float]
NAMES = ("nominal", "ordinal", "interval")
INDEFINITE = "the kernel is not of negative type: a component can be negative in truth"


@dataclass(frozen=True)
class ChosenKernel:
    """A kernel bound to the classes of a cube.

    Attributes
    ----------
    name : str
        ``nominal``, ``ordinal``, ``interval`` or ``user``.
    matrix : array, shape (C, C)
        In the order of the cube's classes.
    drop_invalid : bool
        Whether ⊥ calls are taken out (``invalid="missing"``).
    parts : tuple of (str, array), optional
        The interval kernel with a declared ⊥ is a sum of two kernels: the score's and the penalty's.
    """

    name: str
    matrix: NDArray[np.float64]
    drop_invalid: bool
    invalid_as: InvalidAs
    parts: tuple[tuple[str, NDArray[np.float64]], ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of numbers under this kernel has to know."""
        return () if is_negative_type(self.matrix) else (INDEFINITE,)


def kernel(
    name: str,
    classes: Sequence[str],
    scores: Mapping[str, float] | Sequence[float] | None = None,
    *,
    invalid: InvalidAs = "class",
    standardise: bool = False,
) -> xr.DataArray:
    """A (class, class) disagreement matrix by name.

    Parameters
    ----------
    name : {"nominal", "ordinal", "interval"}
        ``nominal``: 1 for different classes. ``ordinal``: ``|i - j| / (m - 1)`` on the order of `classes`.
        ``interval``: ``(a - b)**2 / 2`` on scores.
    classes : sequence of str
        Class labels in order; a last class ``⊥`` stands for invalid verdicts.
    scores : mapping or sequence of float, optional
        Scores of the valid classes for ``interval``; default: the labels as numbers.
    invalid : "class", "midpoint" or (score, penalty)
        What ⊥ means. Under ``nominal`` and ``ordinal`` it is a class; under ``interval`` it has no score and needs a
        declaration: ``midpoint``, or a score and a penalty ``>= 0``.
    standardise : bool
        Divide ``interval`` by half the squared range of the scores; the penalty of ⊥ is divided too.

    Returns
    -------
    DataArray, dims (class, other_class)

    Raises
    ------
    KernelError
        For an unknown name, labels that are no numbers, or an undeclared ⊥ under ``interval``.

    Examples
    --------
    >>> kernel("ordinal", ["bad", "fair", "good"]).values.tolist()[0]
    [0.0, 0.5, 1.0]
    """
    if invalid == "missing":
        raise KernelError(
            "invalid is 'missing', which is about calls", place="kernel", remedy=f"leave {BOTTOM} out of the classes"
        )
    chosen = choose_kernel(name, classes, scores=scores, invalid_as=invalid, standardise=standardise)
    labels = list(classes)
    return xr.DataArray(
        chosen.matrix,
        dims=(CLASS, OTHER),
        coords={CLASS: labels, OTHER: labels},
        name="kernel",
        attrs={"kernel": chosen.name, "long_name": "disagreement of two verdicts"},
    )


def choose_kernel(
    declared: Any,
    classes: Sequence[str],
    *,
    scores: Mapping[str, float] | Sequence[float] | None = None,
    invalid_as: InvalidAs = "class",
    bottom_occurs: bool = True,
    standardise: bool = False,
    allow_indefinite: bool = False,
) -> ChosenKernel:
    """Resolve a kernel name, matrix or labelled matrix against the classes; refuse what is not declared.

    Raises
    ------
    KernelError
        When numeric classes come without a kernel, when ⊥ occurs under ``interval`` without a declaration, when a
        matrix does not fit, when something is declared that the kernel has no use for.
    """
    _check_invalid_as(invalid_as)
    labels = list(classes)
    valid = [label for label in labels if label != BOTTOM]
    has_bottom = len(valid) < len(labels)
    drop = invalid_as == "missing"
    if declared is None:
        if valid and all(is_number(label) for label in valid):
            raise KernelError(
                f"every class is a number ({', '.join(valid[:8])}) and no kernel is named",
                place="kernel",
                remedy="say nominal (labels), ordinal (ranks) or interval (scores): the answer depends on it",
            )
        declared = "nominal"
    if isinstance(declared, str) and declared not in NAMES:
        raise KernelError(f"{declared!r} is not a kernel", place="kernel", remedy=f"choose {', '.join(NAMES)}")
    if not isinstance(declared, str) or declared != "interval":
        _refuse_scores(declared if isinstance(declared, str) else "user's", invalid_as, scores, standardise)
    if isinstance(declared, str):
        if declared == "nominal":
            return ChosenKernel("nominal", nominal_kernel(len(labels)), drop, invalid_as)
        if declared == "ordinal":
            _check_ranks(valid)
            return ChosenKernel("ordinal", ordinal_kernel(len(valid), bottom=has_bottom), drop, invalid_as)
        return _interval(valid, has_bottom, scores, invalid_as, bottom_occurs, standardise)
    matrix = _aligned(declared, labels)
    return ChosenKernel("user", check_kernel(matrix, len(labels), allow_indefinite=allow_indefinite), drop, invalid_as)


def check_order(chosen: ChosenKernel, classes: Sequence[str], *, classes_declared: bool) -> None:
    """Refuse ranks nobody declared: words that were found in a table are in alphabetical order.

    Raises
    ------
    KernelError
        For the ordinal kernel on classes that were found and are not all numbers.
    """
    valid = [label for label in classes if label != BOTTOM]
    if chosen.name == "ordinal" and not classes_declared and not all(is_number(label) for label in valid):
        raise KernelError(
            f"the classes were found in the data, so nobody has ranked them ({', '.join(valid[:8])})",
            place="kernel='ordinal'",
            remedy="give classes= from the lowest to the highest",
        )


def _check_ranks(valid: Sequence[str]) -> None:
    """Numbers rank themselves: declared in another order, they are in it by mistake."""
    if not valid or not all(is_number(label) for label in valid):
        return
    steps = np.diff([float(label) for label in valid])
    if not ((steps > 0).all() or (steps < 0).all()):
        raise KernelError(
            f"the classes are numbers, and neither rise nor fall ({', '.join(valid[:8])})",
            place="kernel='ordinal'",
            remedy=f"give classes= as {','.join(sorted(valid, key=float)[:8])}",
        )


def _check_invalid_as(invalid_as: Any) -> None:
    known = isinstance(invalid_as, str) and invalid_as in ("class", "missing", "midpoint")
    if known or (
        isinstance(invalid_as, tuple | list)
        and len(invalid_as) == 2
        and all(isinstance(part, Real) and np.isfinite(float(part)) for part in invalid_as)
    ):
        return
    raise KernelError(
        f"{invalid_as!r} is none of the choices",
        place="invalid",
        remedy="say class, missing, midpoint, or a finite score and penalty",
    )


def _refuse_scores(name: str, invalid_as: InvalidAs, scores: Any, standardise: bool) -> None:
    """A kernel without scores takes nothing that speaks of them: it would be recorded and have no effect."""
    if invalid_as not in ("class", "missing"):
        raise KernelError(
            f"invalid={invalid_as!r} is declared under the {name} kernel",
            place="invalid",
            remedy="⊥ is a class there: say class (or missing, which conditions on validity)",
        )
    if scores is not None or standardise:
        raise KernelError(
            f"{'scores are' if scores is not None else 'standardise is'} declared under the {name} kernel",
            place="kernel",
            remedy="they belong to the interval kernel",
        )


def _interval(
    valid: list[str],
    has_bottom: bool,
    scores: Mapping[str, float] | Sequence[float] | None,
    invalid_as: InvalidAs,
    bottom_occurs: bool,
    standardise: bool,
) -> ChosenKernel:
    values = _scores(valid, scores)
    plain = interval_kernel(values)
    unit = 0.5 * (max(values) - min(values)) ** 2 if standardise else 1.0
    if standardise and unit == 0:
        raise KernelError("all scores are equal", place="kernel='interval'", remedy="give different scores")
    if not has_bottom:
        return ChosenKernel("interval", plain / unit, False, invalid_as)
    if invalid_as == "class":
        if bottom_occurs:
            raise KernelError(
                "⊥ occurs and has no score",
                place="kernel='interval'",
                remedy="declare what it is: invalid='missing', invalid='midpoint' or invalid=(score, penalty)",
            )
        # ⊥ is declared but never seen: any score for it gives the same numbers.
        score, penalty = midpoint_invalid(values)
        return ChosenKernel("interval", interval_with_invalid(values, score, penalty) / unit, False, invalid_as)
    if invalid_as == "missing":
        score, penalty = midpoint_invalid(values)
        return ChosenKernel("interval", interval_with_invalid(values, score, penalty) / unit, True, invalid_as)
    score, penalty = midpoint_invalid(values) if invalid_as == "midpoint" else (invalid_as[0], invalid_as[1])
    whole = interval_with_invalid(values, score, penalty) / unit
    score_part = interval_with_invalid(values, score, 0.0) / unit
    return ChosenKernel("interval", whole, False, invalid_as, (("score", score_part), ("validity", whole - score_part)))


def _scores(valid: list[str], scores: Mapping[str, float] | Sequence[float] | None) -> list[float]:
    if scores is None:
        wrong = [label for label in valid if not is_number(label)]
        if wrong:
            raise KernelError(
                f"class {wrong[0]!r} is not a number",
                place="kernel='interval'",
                remedy="give scores for every class, or choose nominal or ordinal",
            )
        return [float(label) for label in valid]
    if isinstance(scores, Mapping):
        absent = [label for label in valid if label not in scores]
        unknown = [label for label in scores if label not in valid]
        if absent or unknown:
            wrong_text = f"no score for {absent}" if absent else f"scores for unknown classes {unknown}"
            raise KernelError(wrong_text, place="scores", remedy=f"give one score to each of {valid}")
        return [float(scores[label]) for label in valid]
    if len(scores) != len(valid):
        raise KernelError(
            f"{len(scores)} scores for {len(valid)} classes", place="scores", remedy=f"one score for each of {valid}"
        )
    return [float(score) for score in scores]


def _aligned(declared: Any, labels: list[str]) -> NDArray[np.float64]:
    if not isinstance(declared, xr.DataArray):
        return np.asarray(declared, dtype=float)
    if declared.dims != (CLASS, OTHER):
        raise KernelError(
            f"dimensions {declared.dims}", place="kernel", remedy=f"use ({CLASS}, {OTHER}), as secondorder.kernel does"
        )
    known = [str(label) for label in declared[CLASS].values]
    if sorted(known) != sorted(labels):
        raise KernelError(f"it names the classes {known}", place="kernel", remedy=f"the cube's classes are {labels}")
    return np.asarray(declared.sel({CLASS: labels, OTHER: labels}).values, dtype=float)


def is_number(label: str) -> bool:
    """Whether a class label reads as a finite number."""
    try:
        return bool(np.isfinite(float(label)))
    except ValueError:
        return False


def parse_invalid_as(text: str) -> InvalidAs:
    """``class``, ``missing``, ``midpoint`` or ``SCORE,PENALTY`` from the command line.

    Raises
    ------
    KernelError
        Naming the text.
    """
    if text in ("class", "missing", "midpoint"):
        return text  # type: ignore[return-value]
    score, comma, penalty = text.partition(",")
    if comma and is_number(score) and is_number(penalty):
        return float(score), float(penalty)
    raise KernelError(
        f"{text!r} is none of the choices", place="invalid", remedy="say class, missing, midpoint or SCORE,PENALTY"
    )
