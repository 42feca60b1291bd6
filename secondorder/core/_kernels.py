"""Disagreement kernels: how far apart two verdicts are, as a (class, class) matrix.

A kernel is symmetric with a zero diagonal. When it is of *negative type*, every component is non-negative in truth: it
is the expected squared distance of some embedding of the classes. Kernels that are not are refused unless the caller
accepts them by declaration.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from secondorder.errors import KernelError

__all__ = [
    "check_kernel",
    "interval_kernel",
    "interval_with_invalid",
    "is_negative_type",
    "krippendorff_ordinal_kernel",
    "midpoint_invalid",
    "negative_type_gap",
    "nominal_kernel",
    "ordinal_kernel",
]

Matrix = NDArray[np.float64]
RELATIVE_TOLERANCE = 1e-12
# Disagreements are multiplied and squared on the way to standard errors, which must neither overflow nor vanish.
LARGEST, SMALLEST = 1e100, 1e-100


def nominal_kernel(n_classes: int) -> Matrix:
    """``1`` for different classes, ``0`` for equal ones.

    Examples
    --------
    >>> nominal_kernel(2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    return 1.0 - np.eye(n_classes)


def ordinal_kernel(n_ordered: int, *, bottom: bool = False, bottom_distance: float = 1.0) -> Matrix:
    """``|i - j| / (m - 1)`` on m ordered classes: the share of the scale's cut points on which two calls differ.

    These are the linear weights of weighted kappa. With `bottom` a last class ⊥ stands at the constant distance
    `bottom_distance` from every ordered class; it is of negative type from 1/4 on.

    Examples
    --------
    >>> ordinal_kernel(3, bottom=True).tolist()[0]
    [0.0, 0.5, 1.0, 1.0]
    """
    if n_ordered < 2:
        raise KernelError(
            f"{n_ordered} ordered class", place="kernel ordinal", remedy="declare at least two classes, in order"
        )
    rank = np.arange(n_ordered, dtype=float)
    inner = np.abs(rank[:, None] - rank[None, :]) / (n_ordered - 1)
    if not bottom:
        return np.asarray(inner)
    matrix = np.full((n_ordered + 1, n_ordered + 1), float(bottom_distance))
    matrix[:-1, :-1] = inner
    matrix[-1, -1] = 0.0
    return matrix


def interval_kernel(scores: Sequence[float], *, standardise: bool = False) -> Matrix:
    """``(a - b)**2 / 2`` on scores: components are variances, in squared score units.

    With `standardise` it is divided by half the squared range, which gives the quadratic weights of weighted kappa.

    Examples
    --------
    >>> interval_kernel([1, 2, 4]).tolist()[0]
    [0.0, 0.5, 4.5]
    """
    values = np.asarray(scores, dtype=float)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise KernelError(
            f"scores {values.tolist()} are not finite numbers", place="kernel interval", remedy="give a score per class"
        )
    with np.errstate(over="ignore"):
        apart = values[:, None] - values[None, :]
    _check_range(apart, "kernel interval, differences of scores", root=True)
    matrix: Matrix = 0.5 * apart**2
    if standardise:
        spread = np.ptp(values)
        if spread == 0:
            raise KernelError("all scores are equal", place="kernel interval", remedy="give different scores")
        matrix = matrix / (0.5 * spread**2)
    return matrix


def interval_with_invalid(scores: Sequence[float], score: float, penalty: float) -> Matrix:
    """Interval kernel with ⊥ as a last class at a declared score and penalty.

    ``D(⊥, c) = (a_c - score)**2 / 2 + penalty``. Every component is exactly the component of the score with ⊥ at
    `score`, plus `penalty` times the nominal component of valid-or-not.

    Examples
    --------
    >>> interval_with_invalid([1, 3], score=2, penalty=0.5).tolist()[-1]
    [1.0, 1.0, 0.0]
    """
    if not penalty >= 0:
        raise KernelError(
            f"penalty {penalty} is negative",
            place="kernel interval, invalid",
            remedy="give a penalty >= 0; below that the kernel is not of negative type",
        )
    matrix = interval_kernel([*scores, score])
    matrix[-1, :-1] += penalty
    matrix[:-1, -1] += penalty
    _check_range(matrix, "kernel interval, penalty")
    return matrix


def midpoint_invalid(scores: Sequence[float]) -> tuple[float, float]:
    """Score and penalty that ``invalid = midpoint`` stands for: the middle of the scale, and range**2 / 8.

    Examples
    --------
    >>> midpoint_invalid([1, 2, 7])
    (4.0, 4.5)
    """
    low, high = float(min(scores)), float(max(scores))
    return (low + high) / 2, (high - low) ** 2 / 8


def krippendorff_ordinal_kernel(class_totals: Sequence[float]) -> Matrix:
    """Krippendorff's ordinal metric, ``(sum of totals between - half of both ends)**2 / 2`` from sample ranks.

    It depends on the very verdicts that it measures, so components are no longer exactly unbiased: offered by this
    name only.
    """
    totals = np.asarray(class_totals, dtype=float)
    middle = np.cumsum(totals) - totals / 2
    return np.asarray(0.5 * (middle[:, None] - middle[None, :]) ** 2)


def negative_type_gap(matrix: Matrix) -> float:
    """Smallest eigenvalue of ``-J D J / 2``: at least ``-1e-12 * max D`` for a kernel of negative type."""
    size = len(matrix)
    centre = np.eye(size) - 1.0 / size
    return float(np.linalg.eigvalsh(-0.5 * centre @ matrix @ centre)[0])


def is_negative_type(matrix: Matrix) -> bool:
    """Whether a kernel is of negative type, up to rounding.

    Examples
    --------
    >>> is_negative_type(nominal_kernel(3)), is_negative_type(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]]))
    (True, False)
    """
    return negative_type_gap(matrix) >= -RELATIVE_TOLERANCE * float(np.max(matrix, initial=0.0))


def _check_range(values: Matrix, place: str, *, root: bool = False) -> None:
    """Refuse entries that are not finite, or whose products (or those of their squares, `root`) would not be."""
    power = 0.5 if root else 1.0
    if not np.isfinite(values).all():
        raise KernelError("they hold NaN or infinity", place=place, remedy="give finite numbers, not too far apart")
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest and not SMALLEST**power <= largest <= LARGEST**power:
        raise KernelError(
            f"the largest is {largest:.3g}",
            place=place,
            remedy=f"rescale them: it has to lie between {SMALLEST**power:g} and {LARGEST**power:g}",
        )


def check_kernel(matrix: Matrix, n_classes: int, *, allow_indefinite: bool = False) -> Matrix:
    """The matrix as float64, checked: shape, symmetry, zero diagonal, finite, non-negative, of negative type.

    Parameters
    ----------
    matrix : array, shape (C, C)
    n_classes : int
    allow_indefinite : bool
        Accept a kernel that is not of negative type; its components can then be negative in truth.

    Raises
    ------
    KernelError
        Naming the first rule that is broken, with the entry that breaks it.
    """
    values = np.array(matrix, dtype=float)
    if values.shape != (n_classes, n_classes):
        raise KernelError(
            f"shape {values.shape} for {n_classes} classes",
            place="kernel",
            remedy=f"give a {n_classes} x {n_classes} matrix in the order of the cube's classes (⊥ is the last)",
        )
    _check_range(values, "kernel")
    scale = float(values.max(initial=0.0))
    row, column = np.unravel_index(int(np.argmax(np.abs(values - values.T))), values.shape)
    if abs(values[row, column] - values[column, row]) > RELATIVE_TOLERANCE * scale:
        raise KernelError(
            f"D[{row},{column}] = {values[row, column]:g} but D[{column},{row}] = {values[column, row]:g}",
            place="kernel",
            remedy="make it symmetric",
        )
    if np.diag(values).any():
        index = int(np.flatnonzero(np.diag(values))[0])
        raise KernelError(
            f"D[{index},{index}] = {values[index, index]:g}", place="kernel", remedy="equal verdicts must disagree by 0"
        )
    if values.min(initial=0.0) < 0:
        row, column = np.unravel_index(int(np.argmin(values)), values.shape)
        raise KernelError(
            f"D[{row},{column}] = {values[row, column]:g}", place="kernel", remedy="disagreements are at least 0"
        )
    if not allow_indefinite and not is_negative_type(values):
        raise KernelError(
            f"it is not of negative type (smallest eigenvalue of -JDJ/2 is {negative_type_gap(values):.3g})",
            place="kernel",
            remedy="components could be negative in truth; choose nominal, ordinal or interval, "
            "or accept it by declaring allow_indefinite=True",
        )
    return values
