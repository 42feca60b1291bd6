"""Ratings of the agreement studies: verdict cubes and labelled arrays as class codes."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._attributes import attribute
from secondorder._schema import BOTTOM, CLASS, CODE_MISSING, ITEM
from secondorder._statistics._kernel import is_number
from secondorder.errors import CubeError, InputError
from secondorder.studies._layout import By, group_labels, in_order, lay_out, withheld
from secondorder.studies._parts import Codes

__all__ = ["Arranged", "Incomplete", "Invalid", "arrange", "check_cube", "complete_items", "make_ratings"]

Incomplete = Literal["refuse", "drop-item"]
Invalid = Literal["class", "missing"]


@dataclass(frozen=True)
class Arranged:
    """Class codes with named axes.

    Attributes
    ----------
    codes : int array, shape (groups, items, rest, *inner)
        Class codes, -1 where there is no rating; `rest` runs over every dimension that was asked for nowhere.
    classes : tuple of str
        Labels of the codes; ⊥ last, and only where it occurs.
    by : grouping
    items : tuple of str
    inner : tuple of tuple of str
        Levels of the inner axes.
    rest : tuple of str
        Dimensions that `rest` runs over.
    strata : int array, shape (items,), or None
        Items are resampled within these.
    n_invalid, n_missing : int array, shape (groups,)
        Calls that completed without a valid verdict, and calls without any verdict.
    ranked : bool
        Whether somebody ranked the classes: they are numbers, or were declared in an order.
    """

    codes: Codes
    classes: tuple[str, ...]
    by: By
    items: tuple[str, ...]
    inner: tuple[tuple[str, ...], ...]
    rest: tuple[str, ...]
    strata: NDArray[np.int64] | None
    n_invalid: NDArray[np.int64]
    n_missing: NDArray[np.int64]
    ranked: bool


def check_cube(data: object) -> xr.Dataset:
    """The data as a Dataset with ``verdict``, ``class`` and ``item``; anything else is refused by name."""
    if isinstance(data, xr.DataArray):
        return make_ratings(data)
    if not isinstance(data, xr.Dataset):
        raise CubeError(
            f"got {type(data).__name__}",
            place="data",
            remedy="give a verdict cube (make_cube, read_table, open_cube) or a DataArray with named dimensions; "
            "a bare array could be ratings or counts",
        )
    if "verdict" not in data or CLASS not in data.coords or ITEM not in data["verdict"].dims:
        raise CubeError(
            f"variables {sorted(map(str, data.variables))}",
            place="cube",
            remedy="a verdict cube holds `verdict` over `item` and the coordinate `class`",
        )
    return data


def make_ratings(ratings: xr.DataArray, *, classes: Sequence[str] | None = None) -> xr.Dataset:
    """A cube from an array of labels or numbers with named dimensions, one of them ``item``.

    Parameters
    ----------
    ratings : DataArray
        Text or numbers; NaN, None and the empty string mean that there is no rating.
    classes : sequence of str, optional
        Labels in their order; any other value is ⊥. Default: the values found, in natural order.

    Raises
    ------
    CubeError
        When no dimension is called ``item``, or a class is declared twice.

    Examples
    --------
    >>> humans = xr.DataArray([[5, 4], [2, np.nan]], dims=("item", "annotator"))
    >>> make_ratings(humans)["verdict"].to_numpy().tolist()
    [[2, 1], [0, -1]]
    """
    if ITEM not in ratings.dims:
        raise CubeError(f"dimensions {ratings.dims}", place="ratings", remedy="name the item dimension `item`")
    raw = ratings.to_numpy()
    values, position = np.unique(raw, return_inverse=True) if raw.dtype != object else _distinct(raw)
    texts = [None if _is_absent(value) else _label(value) for value in values.tolist()]
    named = in_order({text for text in texts if text is not None}) if classes is None else tuple(map(str, classes))
    if len(set(named)) < len(named) or BOTTOM in named:
        raise CubeError(f"classes {list(named)}", place="classes", remedy=f"name each once, and leave {BOTTOM} out")
    code = {label: index for index, label in enumerate(named)} | {None: CODE_MISSING}
    codes = np.array([code.get(text, len(named)) for text in texts], dtype=np.int64)[position.ravel()]
    return xr.Dataset(
        {"verdict": ratings.copy(data=codes.reshape(raw.shape))},
        coords={CLASS: [*named, BOTTOM]},
        attrs={"classes_declared": json.dumps(classes is not None)},
    )


def _distinct(raw: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    # Objects of several types (text, numbers, None) have no common order: keep the order of appearance.
    seen: dict[Any, int] = {}
    flat = [(type(value).__name__, str(value)) for value in raw.ravel().tolist()]
    position = np.array([seen.setdefault(key, len(seen)) for key in flat], dtype=np.int64)
    values = np.empty(len(seen), dtype=object)
    values[position] = raw.ravel()
    return values, position


def _is_absent(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _label(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def arrange(
    data: xr.Dataset | xr.DataArray,
    *,
    inner: Sequence[str | Sequence[str]],
    by: str | Sequence[str] | None = None,
    invalid: Invalid = "class",
) -> Arranged:
    """Class codes of a cube, laid out with the inner axes asked for (see :func:`lay_out`).

    Parameters
    ----------
    data : Dataset or DataArray
    inner, by
        Dimensions of the inner axes; dimensions or item coordinates to group by.
    invalid : {"class", "missing"}
        Whether ⊥ is a class, or is set aside like a missing call (counted either way).

    Raises
    ------
    CubeError
        When a dimension is not there, or is asked for twice.
    """
    if invalid not in ("class", "missing"):
        raise CubeError(f"invalid={invalid!r}", place="invalid", remedy="say 'class' or 'missing'")
    cube = check_cube(data)
    laid = lay_out(cube, "verdict", inner=inner, by=by, fill=CODE_MISSING)
    codes = laid.values.astype(np.int64)
    classes = [str(label) for label in cube[CLASS].to_numpy()]
    bottom = len(classes) - 1 if classes and classes[-1] == BOTTOM else len(classes)
    per_item = tuple(range(2, codes.ndim))
    n_missing = ((codes == CODE_MISSING).sum(per_item) * laid.inside).sum(1) - withheld(cube, inner=inner, by=by)
    n_invalid = (codes == bottom).sum((1, *per_item))
    if invalid == "missing":
        codes = np.where(codes == bottom, CODE_MISSING, codes)
    if bottom < len(classes) and not (codes == bottom).any():
        classes = classes[:-1]
    ranked = bool(attribute(cube, "classes_declared", True)) or all(map(is_number, classes[:bottom]))
    return Arranged(
        codes, tuple(classes), laid.by, laid.items, laid.inner, laid.rest, laid.strata, n_invalid, n_missing, ranked
    )


def complete_items(
    laid: Arranged, n: NDArray[np.float64], *, need: int, incomplete: Incomplete, facet: str
) -> NDArray[np.bool_]:
    """Which items of each group have `need` calls in all their cells, (groups, items).

    Parameters
    ----------
    laid : Arranged
        With the facet as first inner axis.
    n : array, shape (groups, items, rest, levels)
        Calls in each cell.
    need : int
    incomplete : {"refuse", "drop-item"}
    facet : str

    Raises
    ------
    CubeError
        Under ``refuse``, naming the first cell that falls short.
    """
    if incomplete not in ("refuse", "drop-item"):
        raise InputError(f"incomplete={incomplete!r}", place="incomplete", remedy="say 'refuse' or 'drop-item'")
    present = np.asarray((n > 0).any(axis=(2, 3)))
    short = np.argwhere((n < need) & present[:, :, None, None])
    if len(short) and incomplete == "refuse":
        g, s, _, k = short[0]
        where = ", ".join((*group_labels(laid.by)[g], f"item {laid.items[s]}", f"{facet} {laid.inner[0][k]}"))
        raise CubeError(
            f"{len(short)} cells have fewer than {need} calls, the first at {where}",
            place="cube",
            remedy="leave these items out, counted: incomplete='drop-item'",
        )
    return np.asarray((n >= need).all(axis=(2, 3)))
