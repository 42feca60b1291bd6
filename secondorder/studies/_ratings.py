"""Verdict cubes and labelled arrays of ratings, laid out for the studies: groups, items, other axes, inner axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._schema import BOTTOM, CLASS, CODE_MISSING, ITEM, JUDGE
from secondorder.errors import CubeError
from secondorder.studies._parts import Codes

__all__ = ["Arranged", "Invalid", "arrange", "as_names", "group_labels", "item_levels", "levels_of", "make_ratings"]

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
    by : tuple of (str, tuple of str)
        Names and levels of the grouping; the groups run over their product in row-major order.
    items : tuple of str
    inner : tuple of tuple of str
        Levels of the inner axes.
    rest : tuple of str
        Dimensions that `rest` runs over.
    strata : int array, shape (items,), or None
        Items are resampled within these.
    n_invalid, n_missing : int array, shape (groups,)
        Calls that completed without a valid verdict, and that have no verdict.
    """

    codes: Codes
    classes: tuple[str, ...]
    by: tuple[tuple[str, tuple[str, ...]], ...]
    items: tuple[str, ...]
    inner: tuple[tuple[str, ...], ...]
    rest: tuple[str, ...]
    strata: NDArray[np.int64] | None
    n_invalid: NDArray[np.int64]
    n_missing: NDArray[np.int64]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each grouping."""
        return tuple(len(levels) for _, levels in self.by)


def as_names(names: str | Sequence[str] | None) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def levels_of(cube: xr.Dataset | xr.DataArray, dim: str) -> tuple[str, ...]:
    """Level names of a dimension; positions where it has no coordinate."""
    if dim in cube.coords:
        return tuple(str(value) for value in cube[dim].to_numpy())
    return tuple(str(index) for index in range(cube.sizes[dim]))


def group_labels(by: Sequence[tuple[str, tuple[str, ...]]]) -> list[tuple[str, ...]]:
    """Labels of the groups in row-major order; one empty label without grouping."""
    return list(product(*(levels for _, levels in by)))


def item_levels(cube: xr.Dataset, name: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Sorted levels of an item coordinate, and the position of each item's level."""
    text = np.array([str(value) for value in cube[name].to_numpy()])
    levels, codes = np.unique(text, return_inverse=True)
    return tuple(str(level) for level in levels), codes.astype(np.int64)


def check_cube(cube: object) -> xr.Dataset:
    """The data as a Dataset with ``verdict``, ``class`` and ``item``; anything else is refused by name."""
    if isinstance(cube, xr.DataArray):
        return make_ratings(cube)
    if not isinstance(cube, xr.Dataset):
        raise CubeError(
            f"got {type(cube).__name__}",
            place="data",
            remedy="give a verdict cube (make_cube, read_table, open_cube), or a DataArray with named dimensions: "
            "a bare array could be ratings or counts",
        )
    if "verdict" not in cube or CLASS not in cube.coords or ITEM not in cube["verdict"].dims:
        raise CubeError(
            f"variables {sorted(map(str, cube.variables))}",
            place="cube",
            remedy="a verdict cube holds `verdict` over `item` and the coordinate `class`",
        )
    return cube


def make_ratings(ratings: xr.DataArray, *, classes: Sequence[str] | None = None) -> xr.Dataset:
    """A cube from an array of labels or numbers with named dimensions, one of them ``item``.

    Parameters
    ----------
    ratings : DataArray
        Text or numbers; NaN, None and the empty string mean that there is no rating.
    classes : sequence of str, optional
        Labels in their order; any other value is ⊥. Default: the values found, numbers by size.

    Examples
    --------
    >>> humans = xr.DataArray([[5, 4], [2, np.nan]], dims=("item", "annotator"))
    >>> make_ratings(humans)["verdict"].to_numpy().tolist()
    [[2, 1], [0, -1]]
    """
    if ITEM not in ratings.dims:
        raise CubeError(f"dimensions {ratings.dims}", place="ratings", remedy="name the item dimension `item`")
    raw = ratings.to_numpy()
    flat = [None if _is_absent(value) else _label(value) for value in raw.ravel().tolist()]
    found = sorted({label for label in flat if label is not None}, key=_by_size)
    labels = [*(found if classes is None else classes), BOTTOM]
    position = {label: code for code, label in enumerate(labels)}
    codes = [CODE_MISSING if label is None else position.get(label, len(labels) - 1) for label in flat]
    array = ratings.copy(data=np.array(codes, dtype=np.int64).reshape(raw.shape))
    return xr.Dataset({"verdict": array}, coords={CLASS: labels})


def _is_absent(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _label(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _by_size(label: str) -> tuple[float, str]:
    try:
        return float(label), label
    except ValueError:
        return math.inf, label


def _grouping(cube: xr.Dataset, by: str | Sequence[str] | None, taken: Sequence[str]) -> tuple[str, ...]:
    names = as_names(by)
    if by is None and JUDGE in cube["verdict"].dims and JUDGE not in taken:
        return (JUDGE,)  # an acquired cube's judges are groups unless they are what is compared
    for name in names:
        known = name in cube["verdict"].dims or (name in cube.coords and cube[name].dims == (ITEM,))
        if not known or name in taken or name == ITEM:
            raise CubeError(
                f"cannot group by {name!r}",
                place="by",
                remedy=f"dimensions: {', '.join(map(str, cube['verdict'].dims))}; or a coordinate of the items",
            )
    return names


def arrange(
    data: xr.Dataset | xr.DataArray,
    *,
    inner: Sequence[str | Sequence[str]],
    by: str | Sequence[str] | None = None,
    invalid: Invalid = "class",
) -> Arranged:
    """Lay a cube out as groups, items, the rest, and one inner axis for each entry of `inner`.

    Parameters
    ----------
    data : Dataset or DataArray
    inner : sequence of (str or sequence of str)
        Dimensions of each inner axis; several make a composite axis.
    by : str or sequence of str, optional
        Dimensions or item coordinates to group by; default: ``judge`` where it is a dimension of its own.
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
    axes = [as_names(names) for names in inner]
    taken = [name for names in axes for name in names]
    for name in taken:
        if name not in cube["verdict"].dims or name == ITEM or taken.count(name) > 1:
            raise CubeError(
                f"{name!r} is no dimension of its own",
                place="cube",
                remedy=f"dimensions: {', '.join(map(str, cube['verdict'].dims))}",
            )
    groups = _grouping(cube, by, taken)
    verdict = xr.DataArray(cube["verdict"].to_numpy(), dims=cube["verdict"].dims)
    by_levels = {name: levels_of(cube, name) for name in groups if name in verdict.dims}
    rest = tuple(str(dim) for dim in verdict.dims if dim not in (*groups, *taken, ITEM))
    strata = item_levels(cube, "stratum")[1] if "stratum" in cube.coords else None
    inside = xr.DataArray(np.ones(verdict.sizes[ITEM], dtype=bool), dims=ITEM)
    for name in groups:
        if name not in verdict.dims:  # an attribute of the items: every group keeps its own items
            by_levels[name], position = item_levels(cube, name)
            mask = position[None, :] == np.arange(len(by_levels[name]))[:, None]
            inside = inside & xr.DataArray(mask, dims=(name, ITEM))
            strata = position if strata is None else strata * len(by_levels[name]) + position
    verdict = verdict.where(inside, CODE_MISSING) if inside.ndim > 1 else verdict
    sizes = [math.prod(verdict.sizes[name] for name in names) for names in axes]
    lead = math.prod(len(by_levels[name]) for name in groups)
    codes = verdict.transpose(*groups, ITEM, *rest, *taken).to_numpy().astype(np.int64)
    codes = codes.reshape(lead, verdict.sizes[ITEM], -1, *sizes)

    classes = [str(label) for label in cube[CLASS].to_numpy()]
    bottom = len(classes) - 1 if classes and classes[-1] == BOTTOM else len(classes)
    over = tuple(range(1, codes.ndim))
    missing = (codes == CODE_MISSING).sum(over)
    if inside.ndim > 1:
        here = inside.broadcast_like(verdict).transpose(*groups, ITEM, *rest, *taken).to_numpy()
        missing -= (~here.reshape(lead, -1)).sum(1)
    n_invalid = (codes == bottom).sum(over)
    if invalid == "missing":
        codes = np.where(codes == bottom, CODE_MISSING, codes)
    if bottom < len(classes) and not (codes == bottom).any():
        classes = classes[:-1]
    return Arranged(
        codes=codes,
        classes=tuple(classes),
        by=tuple((name, by_levels[name]) for name in groups),
        items=levels_of(cube, ITEM),
        inner=tuple(tuple(":".join(row) for row in product(*(levels_of(cube, n) for n in names))) for names in axes),
        rest=rest,
        strata=strata,
        n_invalid=n_invalid,
        n_missing=missing,
    )
