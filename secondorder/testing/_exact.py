"""Exact numbers: arrays of fractions, and designs whose weights are fractions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from secondorder._design import Design
from secondorder.errors import DesignError, InputError

__all__ = ["as_floats", "as_fractions", "exact_design"]


def as_fractions(values: Any) -> np.ndarray:
    """Numbers as an object array of :class:`fractions.Fraction`, each taken exactly as it is.

    Parameters
    ----------
    values : array_like of (str, int, float or Fraction)
        Text is read as people write it: ``"1/3"``, ``"0.1"``. A float stands for the binary number that it is, so 0.1
        is not one tenth: write ``"0.1"`` where that matters.

    Raises
    ------
    InputError
        When an entry is not a finite number.

    Examples
    --------
    >>> as_fractions(["1/3", 0.5, 2])
    array([Fraction(1, 3), Fraction(1, 2), Fraction(2, 1)], dtype=object)
    """
    array = np.asarray(values, dtype=object)
    result = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        result[index] = exact_number(array[index])
    return result


def exact_number(value: Any) -> Fraction:
    """One number as a fraction."""
    if isinstance(value, Fraction):
        return value
    try:
        if isinstance(value, str | int | float):
            return Fraction(value)
        # Scalars of numpy, jax and relatives: whole numbers stay whole, everything else is a binary float.
        return Fraction(int(value)) if np.issubdtype(np.asarray(value).dtype, np.integer) else Fraction(float(value))
    except (ValueError, OverflowError, TypeError, ZeroDivisionError) as error:
        raise InputError(f"{value!r} is not a finite number") from error


def exact_design(
    facets: Mapping[str, int | Sequence[Any]],
    *,
    random: Iterable[str] = (),
    populations: Mapping[str, int] | None = None,
) -> Design:
    """Design with weights in fractions, for exact checks.

    Parameters
    ----------
    facets : mapping of name to (int or sequence)
        Number of equally weighted levels, or the weights (anything that :func:`as_fractions` reads; sum exactly 1).
    random : iterable of str, optional
        Facets whose levels are a sample from a policy.
    populations : mapping of name to int, optional
        For random facets drawn without replacement: the length of the list they were drawn from.

    Raises
    ------
    DesignError
        When weights do not sum to exactly 1, or are declared for a random facet.

    Examples
    --------
    >>> exact_design({"prompt": ["1/2", "1/3", "1/6"], "order": 2}).weights[1]
    (Fraction(1, 2), Fraction(1, 2))
    """
    sampled, lists = set(random), dict(populations or {})
    unknown = sorted((sampled | set(lists)) - set(facets))
    if unknown or set(lists) - sampled:
        raise DesignError(
            f"{', '.join(unknown) or ', '.join(sorted(set(lists) - sampled))}: not a random facet of this design",
            place="exact_design",
            remedy="name only facets that are declared, and a population only for random ones",
        )
    weights: list[tuple[Fraction, ...]] = []
    for name, levels in facets.items():
        if isinstance(levels, int):
            weights.append((Fraction(1, levels),) * levels)
            continue
        values = tuple(as_fractions(levels))
        if name in sampled:
            raise DesignError(
                "weights are declared for a random facet", place=f"facet {name}", remedy="give its number of levels"
            )
        if sum(values) != 1 or min(values) <= 0:
            raise DesignError(
                f"weights {[str(value) for value in values]} are not positive with sum exactly 1",
                place=f"facet {name}",
                remedy='write weights as text or fractions, e.g. ["1/3", "2/3"]',
            )
        weights.append(values)
    kinds = tuple(lists.get(name, math.inf) if name in sampled else None for name in facets)
    return Design(tuple(facets), tuple(weights), kinds)


def as_floats(design: Design) -> Design:
    """The same design with floating-point weights, as array code wants them.

    Examples
    --------
    >>> as_floats(exact_design({"prompt": 4})).weights
    ((0.25, 0.25, 0.25, 0.25),)
    """
    weights = tuple(tuple(float(weight) for weight in facet) for facet in design.weights)
    return Design(design.names, weights, design.populations)
