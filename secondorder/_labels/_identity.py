"""The identity of a cube: SHA-256 of its canonical content, whatever wrote it and however it lies on the disk."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._canon import canonical_json
from secondorder._labels._attributes import load
from secondorder._labels._checks import check_cube
from secondorder._schema import CLASS, ITEM, REPEAT
from secondorder.errors import CubeError

__all__ = ["cube_digest"]

BLOCK = 1 << 20


def cube_digest(cube: xr.Dataset) -> str:
    """SHA-256 of the values, labels and attributes of a cube, as 64 hex digits.

    Whole numbers count as 64-bit whole numbers, floats as 64-bit floats, times as nanoseconds, labels as text, so the
    digest does not depend on types, encoding or the library that wrote the file. Where the cube comes from
    (``parent``) is provenance, not identity: the same calls from a table in another order are the same cube.

    Raises
    ------
    CubeError
        When the dataset is no cube, or holds values that have no canonical form.

    Examples
    --------
    >>> from secondorder._labels._read import make_cube
    >>> rows = [{"q": "1", "prompt": "a", "run": r, "v": v} for r, v in enumerate("YNN")]
    >>> ways = {"item": "q", "facets": "prompt", "repeat": "run", "verdict": "v"}
    >>> cube_digest(make_cube(rows, **ways)) == cube_digest(make_cube(rows[::-1], **ways))
    True
    """
    check_cube(cube)
    dims = [dim for dim in cube["verdict"].dims if dim not in (ITEM, REPEAT)]
    groups_first = [dim for dim in cube["verdict"].dims if dim in dims or dim == ITEM]
    order = [*groups_first, REPEAT, CLASS]
    digest = hashlib.sha256()
    _add(digest, {"attributes": {name: _parsed(value) for name, value in cube.attrs.items() if name != "parent"}})
    for name in sorted(map(str, cube.variables)):
        variable = cube[name]
        ordered = variable.transpose(*(dim for dim in order if dim in variable.dims), ...)
        values = load(ordered)
        _add(digest, {"variable": name, "dims": list(map(str, ordered.dims)), "shape": list(values.shape)})
        _add_values(digest, name, values)
    return digest.hexdigest()


def _parsed(value: Any) -> Any:
    """An attribute without the spelling of its JSON."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    try:
        return json.loads(value)
    except (TypeError, ValueError):
        return value


def _add(digest: Any, value: Any) -> None:
    digest.update(canonical_json(value) + b"\n")


def _add_values(digest: Any, name: str, values: NDArray[Any]) -> None:
    flat = values.reshape(-1)
    if values.dtype.kind in "OUT":
        _add(digest, ["text", [str(value) for value in flat.tolist()]])
        return
    kinds = {"i": "<i8", "u": "<i8", "b": "<i8", "f": "<f8", "M": "datetime64[ns]"}
    if values.dtype.kind not in kinds:
        raise CubeError(
            f"variable {name!r} of type {values.dtype} has no canonical form",
            place="cube",
            remedy="store text, whole numbers, floats or times",
        )
    _add(digest, kinds[values.dtype.kind])
    for start in range(0, flat.size, BLOCK):
        block = flat[start : start + BLOCK].astype(kinds[values.dtype.kind])
        if block.dtype.kind == "f":
            # One NaN and one zero.
            block = np.where(np.isnan(block), np.nan, block) + 0.0
        digest.update(block.astype(block.dtype.newbyteorder("<"), copy=False).tobytes())
