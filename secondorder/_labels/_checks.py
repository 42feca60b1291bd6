"""Checks of a dataset that somebody else may have made: its form without reading it, its values when they are used."""

from __future__ import annotations

from collections import Counter

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._attributes import class_labels, cube_name, facets_of, load
from secondorder._labels._columns import shown
from secondorder._schema import BOTTOM, CLASS, CODE_MISSING, CUBE_SCHEMA, ITEM, REPEAT, STATUS, check_schema
from secondorder.errors import CubeError

__all__ = ["INVALID", "NOT_CALLED", "NO_COMPLETION", "VALID", "check_cube", "check_values"]

VALID, INVALID, NO_COMPLETION, NOT_CALLED = range(len(STATUS))


def check_cube(cube: xr.Dataset) -> xr.Dataset:
    """Refuse a dataset that has not the form of a cube; the values of its cells are not read.

    Raises
    ------
    CubeError
        Naming the dimension, variable or attribute at fault.
    SchemaError
        When the schema is another one, or newer than this version reads.
    """
    if not isinstance(cube, xr.Dataset):
        raise CubeError(
            f"a cube is an xarray.Dataset, not a {type(cube).__name__}",
            place="cube",
            remedy="make one with read_table, make_cube or open_cube",
        )
    name = cube_name(cube)
    if "schema" not in cube.attrs:
        raise CubeError(
            "the dataset has no attribute 'schema'",
            place=name,
            remedy=f"make it with read_table or make_cube, or set attrs['schema'] = {CUBE_SCHEMA!r}",
        )
    check_schema(cube.attrs["schema"], CUBE_SCHEMA, place=name)
    if "verdict" not in cube:
        raise CubeError("there is no variable 'verdict'", place=name, remedy="a cube holds a class code for every call")
    verdict = cube["verdict"]
    for dim in (ITEM, REPEAT):
        if dim not in verdict.dims:
            raise CubeError(
                f"verdict has no dimension {dim!r}, only {list(verdict.dims)}", place=name, remedy="rename or expand it"
            )
    if not np.issubdtype(verdict.dtype, np.signedinteger):
        raise CubeError(
            f"verdict is of type {verdict.dtype}", place=name, remedy=f"give class codes, {CODE_MISSING} for no verdict"
        )
    for axis in (*verdict.dims, CLASS):
        _check_labels(cube, str(axis), name)
    classes = class_labels(cube)
    if BOTTOM in classes[:-1]:
        raise CubeError(f"class {BOTTOM!r} is not the last of {list(classes)}", place=name, remedy="put it last")
    for variable in ("status", "reason"):
        if variable in cube and (
            cube[variable].dims != verdict.dims or not np.issubdtype(cube[variable].dtype, np.integer)
        ):
            raise CubeError(
                f"{variable!r} has dimensions {list(cube[variable].dims)} and type {cube[variable].dtype}",
                place=name,
                remedy=f"give one code per call, dimensions {list(verdict.dims)}",
            )
    for variable in ("stratum", "gold"):
        if variable in cube and cube[variable].dims != (ITEM,):
            raise CubeError(
                f"{variable!r} has dimensions {list(cube[variable].dims)}", place=name, remedy="give one per item"
            )
    facets_of(cube)
    return cube


def _check_labels(cube: xr.Dataset, dim: str, place: str) -> None:
    if dim not in cube.coords or cube[dim].dims != (dim,):
        raise CubeError(f"dimension {dim!r} has no labels", place=place, remedy=f"assign a coordinate {dim!r}")
    labels = cube[dim].values.tolist()
    if not labels:
        raise CubeError(f"dimension {dim!r} is empty", place=place, remedy="keep at least one label")
    if not set(map(type, labels)) <= {str, np.str_}:
        odd = next(label for label in labels if not isinstance(label, str))
        raise CubeError(
            f"label {odd!r} of dimension {dim!r} is not text", place=place, remedy="write labels as text: '7', not 7"
        )
    if len(set(labels)) < len(labels):
        ((twice, _),) = Counter(labels).most_common(1)
        raise CubeError(f"label {twice!r} of dimension {dim!r} stands twice", place=place, remedy="rename one of them")


def check_values(cube: xr.Dataset) -> xr.Dataset:
    """Refuse class codes outside the classes, and statuses that contradict them; reads the values of all cells.

    Raises
    ------
    CubeError
        Naming the first call at fault.
    """
    codes = load(cube["verdict"])
    classes = class_labels(cube)
    if codes.min() < CODE_MISSING or codes.max() >= len(classes):
        _refuse_calls(cube, (codes < CODE_MISSING) | (codes >= len(classes)), "has a class code outside the classes")
    if "status" not in cube:
        return cube
    status = load(cube["status"])
    if status.min() < VALID or status.max() > NOT_CALLED:
        _refuse_calls(cube, (status < VALID) | (status > NOT_CALLED), "has an unknown status")
    bottom = codes == len(classes) - 1 if classes[-1] == BOTTOM else np.zeros_like(codes, dtype=bool)
    # An invalid call without a class code is one that an analysis counts as missing.
    _refuse_calls(cube, bottom & (status != INVALID), f"is {BOTTOM} and its status is not invalid")
    _refuse_calls(cube, (codes >= 0) & ~bottom & (status != VALID), "has a class and its status is not valid")
    _refuse_calls(cube, (codes == CODE_MISSING) & (status == VALID), "has no verdict and its status is valid")
    return cube


def _refuse_calls(cube: xr.Dataset, wrong: NDArray[np.bool_], what: str) -> None:
    if not wrong.any():
        return
    position = np.unravel_index(int(wrong.argmax()), wrong.shape)
    labels = [
        f"{dim}={shown(str(cube[dim].values[at]))}" for dim, at in zip(cube["verdict"].dims, position, strict=True)
    ]
    raise CubeError(
        f"the call {', '.join(labels)} {what} (one of {int(wrong.sum())} such calls)",
        place=cube_name(cube),
        remedy="make the cube with read_table, make_cube or an audit",
    )
