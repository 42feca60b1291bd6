"""Repeat indices that mean something: which statistics need them, and what is said where there are none."""

from __future__ import annotations

import xarray as xr

from secondorder._labels._attributes import attribute
from secondorder.errors import InputError

__all__ = ["has_named_repeats", "require_named_repeats"]


def has_named_repeats(cube: xr.Dataset) -> bool:
    """Whether the repeats of different cells can be told apart by index; not when rows were numbered."""
    return not attribute(cube, "repeats_numbered", False)


def require_named_repeats(cube: xr.Dataset, what: str) -> None:
    """Refuse what compares calls by repeat index when the index is only a row's place in a table.

    Raises
    ------
    InputError
    """
    if not has_named_repeats(cube):
        raise InputError(
            f"{what} compares calls by repeat index, and the repeats of this cube are numbered by row",
            place="repeats",
            remedy="name the column of the repeat index (repeat=), or use pairs='complete'",
        )
