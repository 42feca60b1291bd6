"""Scores of several rating scales on one common scale, with their bounds checked."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondorder.errors import InputError
from secondorder.studies._disagreement import Array

__all__ = ["check_bounds", "map_scale", "mapped", "named_bounds"]

Bounds = tuple[float, float]
Scales = Mapping[str, Bounds] | Bounds
"""Bounds of every level of a scale factor, or of all scores."""

NAMED = re.compile(r"(-?\d+(?:\.\d+)?)-(-?\d+(?:\.\d+)?)")


def named_bounds(level: str) -> Bounds | None:
    """Bounds that a level such as ``1-5`` or ``-3-3`` names; None for any other name.

    Examples
    --------
    >>> named_bounds("0-100"), named_bounds("-3-3"), named_bounds("stars")
    ((0.0, 100.0), (-3.0, 3.0), None)
    """
    found = NAMED.fullmatch(level)
    return None if found is None else (float(found[1]), float(found[2]))


def check_bounds(bounds: Bounds, place: str) -> None:
    """Refuse bounds that are not (lowest, highest)."""
    low, high = bounds
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InputError(f"({low:g}, {high:g})", place=place, remedy="give (lowest, highest) of the scale")


def mapped(values: Array, bounds: Bounds, to: Bounds) -> tuple[Array, NDArray[np.bool_]]:
    """Linear map of a scale onto another; NaN where a value lies outside, and where that is."""
    (low, high), (first, last) = bounds, to
    outside = (values < low) | (values > high)
    share = (values - low) / (high - low)
    return np.where(outside, np.nan, first + share * (last - first)), outside


def map_scale(values: ArrayLike, bounds: Bounds, *, to: Bounds = (1, 7)) -> Array:
    """Map scores of one scale linearly to a common one.

    Parameters
    ----------
    values : array
        NaN stays.
    bounds : (lowest, highest)
        Of the scale that the scores are on.
    to : (lowest, highest)

    Returns
    -------
    array

    Raises
    ------
    InputError
        When a score lies outside its scale: it is no score of it, and is never moved to the end.

    Examples
    --------
    >>> map_scale([-3, 0, 3], (-3, 3)).tolist(), map_scale([0, 25, 100], (0, 100)).tolist()
    ([1.0, 4.0, 7.0], [1.0, 2.5, 7.0])
    """
    check_bounds(bounds, "bounds")
    check_bounds(to, "to")
    array = np.asarray(values, dtype=float)
    found, outside = mapped(array, bounds, to)
    if outside.any():
        raise InputError(
            f"{int(outside.sum())} scores lie outside [{bounds[0]:g}, {bounds[1]:g}], the first is "
            f"{array[outside].ravel()[0]:g}",
            place="values",
            remedy="declare the scale that they are on, or set them aside as invalid",
        )
    return found
