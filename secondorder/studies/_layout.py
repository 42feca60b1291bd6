"""Labelled arrays laid out for array code: groups, items, the rest, and named inner axes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._attributes import attribute
from secondorder._labels._columns import natural_order
from secondorder._schema import ITEM, JUDGE, REASONS, REPEAT, STATUS
from secondorder.errors import CubeError

__all__ = ["By", "Layout", "as_names", "group_labels", "in_order", "item_levels", "lay_out", "levels_of", "withheld"]

By = tuple[tuple[str, tuple[str, ...]], ...]
"""Names and levels of a grouping; the groups run over their product in row-major order."""


@dataclass(frozen=True)
class Layout:
    """An array with its axes in a known order.

    Attributes
    ----------
    values : array, shape (groups, items, rest, *inner)
        `rest` runs over every dimension that was asked for nowhere.
    inside : bool array, shape (groups, items)
        Whether an item belongs to a group.
    by : grouping
    items : tuple of str
    rest : tuple of str
        Dimensions that `rest` runs over.
    inner : tuple of tuple of str
        Levels of the inner axes.
    strata : int array, shape (items,), or None
        Items are resampled within these.
    """

    values: NDArray[Any]
    inside: NDArray[np.bool_]
    by: By
    items: tuple[str, ...]
    rest: tuple[str, ...]
    inner: tuple[tuple[str, ...], ...]
    strata: NDArray[np.int64] | None


def as_names(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def in_order(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels in natural order: ``p2`` before ``p10``."""
    listed = list(labels)
    return tuple(listed[index] for index in natural_order(listed))


def levels_of(array: xr.Dataset | xr.DataArray, dim: str) -> tuple[str, ...]:
    """Level names of a dimension; positions where it has no coordinate."""
    if dim in array.coords:
        return tuple(str(value) for value in array[dim].to_numpy())
    return tuple(str(index) for index in range(array.sizes[dim]))


def group_labels(by: By) -> list[tuple[str, ...]]:
    """Labels of the groups; one empty label without grouping."""
    return list(product(*(levels for _, levels in by)))


def item_levels(cube: xr.Dataset, name: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Levels of an item coordinate in natural order, and the position of each item's level."""
    text = [str(value) for value in cube[name].to_numpy()]
    levels = in_order(set(text))
    position = {level: code for code, level in enumerate(levels)}
    return levels, np.array([position[label] for label in text], dtype=np.int64)


def _grouping(
    cube: xr.Dataset, array: xr.DataArray, by: str | Sequence[str] | None, taken: Sequence[str]
) -> tuple[str, ...]:
    if by is None:
        # The judges of a cube are groups unless they are what is compared; an imported cube names its facets, and
        # what is neither facet, item nor repeat is its group.
        declared = attribute(cube, "facets")
        free = [str(dim) for dim in array.dims if dim not in (ITEM, REPEAT, *taken)]
        return tuple(dim for dim in free if dim == JUDGE or (declared is not None and dim not in declared))
    names = as_names(by)
    for name in names:
        known = name in array.dims or (name in cube.coords and cube[name].dims == (ITEM,))
        if not known or name in taken or name == ITEM or names.count(name) > 1:
            raise CubeError(
                f"cannot group by {name!r}",
                place="by (--group)",
                remedy=f"dimensions: {', '.join(map(str, array.dims))}; or a coordinate of the items",
            )
    return names


def lay_out(
    cube: xr.Dataset,
    variable: str,
    *,
    inner: Sequence[str | Sequence[str]],
    by: str | Sequence[str] | None,
    fill: float,
) -> Layout:
    """Lay a variable out as groups, items, the rest, and one inner axis for each entry of `inner`.

    Parameters
    ----------
    cube : Dataset
    variable : str
    inner : sequence of (str or sequence of str)
        Dimensions of each inner axis; several make a composite axis, none an axis of length 1.
    by : str or sequence of str, optional
        Dimensions or item coordinates to group by. Default: the cube's own group dimension, ``judge``.
    fill : number
        What stands for an item outside its group.

    Raises
    ------
    CubeError
        When a dimension is not there, or is asked for twice.
    """
    array = xr.DataArray(cube[variable].to_numpy(), dims=cube[variable].dims)
    axes = [as_names(names) for names in inner]
    taken = [name for names in axes for name in names]
    for name in taken:
        if name not in array.dims or name == ITEM or taken.count(name) > 1:
            raise CubeError(
                f"{name!r} is no dimension of its own",
                place="cube",
                remedy=f"dimensions: {', '.join(map(str, array.dims))}",
            )
    groups = _grouping(cube, array, by, taken)
    levels = {name: levels_of(cube, name) for name in groups if name in array.dims}
    rest = tuple(str(dim) for dim in array.dims if dim not in (*groups, *taken, ITEM))
    strata = item_levels(cube, "stratum")[1] if "stratum" in cube.coords else None
    inside = xr.DataArray(np.ones(array.sizes[ITEM], dtype=bool), dims=ITEM)
    for name in groups:
        if name not in array.dims:  # an attribute of the items: every group keeps its own items
            levels[name], position = item_levels(cube, name)
            mask = position[None, :] == np.arange(len(levels[name]))[:, None]
            inside = inside & xr.DataArray(mask, dims=(name, ITEM))
            strata = position if strata is None else strata * len(levels[name]) + position
    array = array.where(inside, fill) if inside.ndim > 1 else array
    groups_by = tuple((name, levels[name]) for name in groups)
    lead = math.prod(len(names) for _, names in groups_by)
    sizes = [math.prod(array.sizes[name] for name in names) for names in axes]
    shaped = array.transpose(*groups, ITEM, *rest, *taken).to_numpy()
    held = inside.expand_dims({name: len(levels[name]) for name in groups if name not in inside.dims})
    return Layout(
        values=shaped.reshape(lead, array.sizes[ITEM], -1, *sizes),
        inside=held.transpose(*groups, ITEM).to_numpy().reshape(lead, -1),
        by=groups_by,
        items=levels_of(cube, ITEM),
        rest=rest,
        inner=tuple(tuple(":".join(row) for row in product(*(levels_of(cube, n) for n in names))) for names in axes),
        strata=strata,
    )


def withheld(cube: xr.Dataset, *, inner: Sequence[str | Sequence[str]], by: str | Sequence[str] | None) -> Any:
    """Calls of each group that nobody wanted: after a stop rule, behind a gate, or of another group's items.

    They have no verdict, and are not missing. A call that a limit withheld is.

    Returns
    -------
    int array, shape (groups,), or 0
        0 where the cube does not say what became of its calls.
    """
    if "status" not in cube or "reason" not in cube:
        return 0
    reasons = [REASONS.index(reason) for reason in ("stop_rule", "gate", "absent")]
    status, reason = cube["status"].to_numpy(), cube["reason"].to_numpy()
    unwanted = (status == STATUS.index("not_called")) & np.isin(reason, reasons)
    if not unwanted.any():
        return 0
    found = lay_out(cube.assign(withheld=(cube["status"].dims, unwanted)), "withheld", inner=inner, by=by, fill=False)
    return found.values.sum(tuple(range(1, found.values.ndim))).astype(np.int64)
