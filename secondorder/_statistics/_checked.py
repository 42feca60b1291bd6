"""Numbers that a caller gives, refused before any work: one wording for flags, arguments and declarations."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from secondorder.errors import InputError

__all__ = ["MOST_DRAWS", "check_draws", "finite", "whole"]

MOST_DRAWS = 1_000_000
"""Draws and shuffles beyond these change no printed digit, and their table outgrows memory."""


def whole(value: Any, place: str, *, least: int = 0, most: int | None = None, remedy: str = "") -> int:
    """A whole number within bounds.

    Raises
    ------
    InputError
        Naming the value and what it can be.
    """
    span = f">= {least}" if most is None else f"from {least:,} to {most:,}"
    if isinstance(value, bool) or not isinstance(value, Integral) or not least <= int(value) <= (most or int(value)):
        raise InputError(
            f"{_said(value)} is not a whole number {span}", place=place, remedy=remedy or "give one that is"
        )
    return int(value)


def check_draws(draws: Any, place: str = "draws", *, least: int) -> int:
    """A number of draws or shuffles that means something and fits into memory."""
    return whole(draws, place, least=least, most=MOST_DRAWS)


def finite(value: Any, place: str, *, positive: bool = False) -> float:
    """A finite number that is not negative; with `positive`, nor 0.

    Raises
    ------
    InputError
        Naming the value and what it can be.
    """
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and (value > 0 or (value == 0 and not positive))):
        span = "> 0" if positive else ">= 0"
        raise InputError(f"{_said(value)} is not a finite number {span}", place=place, remedy="give for instance 0.02")
    return float(value)


def _said(value: Any) -> str:
    return str(value) if isinstance(value, Real) else repr(value)
