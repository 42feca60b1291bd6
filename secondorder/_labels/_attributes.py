"""What a cube says about itself: its attributes, classes, facets, group dimension and provenance.

Every attribute is text, so that a cube in memory and a cube in a file are the same; whatever has parts is JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._design import Facet
from secondorder._schema import CLASS, ITEM, JUDGE, REPEAT
from secondorder.errors import CorruptFileError, CubeError

__all__ = ["Parent", "attribute", "class_labels", "cube_name", "facets_of", "group_dim", "load", "parent_of"]


class Parent(msgspec.Struct, frozen=True, forbid_unknown_fields=False, kw_only=True):
    """Where a cube comes from: provenance, not identity.

    Attributes
    ----------
    name : str
        Name of the file or object.
    sha256 : str or None
        Hash of the file's bytes, None for rows in memory.
    rows, rows_used : int
        Rows read, and rows left by `where`.
    where : tuple of str
        Conditions on rows.
    columns : mapping
        Role to column, or columns: ``item``, ``facets``, ``repeat``, ``verdict``, ``by``, ``stratum``, ``gold``.
    """

    name: str
    sha256: str | None = None
    rows: int | None = None
    rows_used: int | None = None
    where: tuple[str, ...] = ()
    columns: dict[str, Any] = {}


def attribute(cube: xr.Dataset, name: str, default: Any = None) -> Any:
    """An attribute stored as JSON, such as ``invalid`` or ``classes_declared``; `default` where it is absent."""
    stored = cube.attrs.get(name)
    if stored is None:
        return default
    try:
        return json.loads(stored)
    except (TypeError, ValueError):
        raise CubeError(
            f"attribute {name!r} is {stored!r}, not JSON text", place=cube_name(cube), remedy="write it with json.dumps"
        ) from None


def parent_of(cube: xr.Dataset) -> Parent:
    """Provenance of a cube; its name is ``cube`` where nothing is known."""
    try:
        return msgspec.convert(attribute(cube, "parent", {"name": "cube"}), Parent)
    except msgspec.ValidationError as fault:
        raise CubeError(
            f"attribute 'parent' is {cube.attrs['parent']!r} ({fault})", place="cube", remedy="leave it out"
        ) from None


def cube_name(cube: xr.Dataset) -> str:
    try:
        return str(json.loads(cube.attrs["parent"])["name"])
    except (KeyError, TypeError, ValueError):
        return "cube"


def class_labels(cube: xr.Dataset) -> tuple[str, ...]:
    """Verdict classes in order, ``⊥`` last where it can occur."""
    return tuple(cube[CLASS].values.tolist())


def group_dim(cube: xr.Dataset, facets: Sequence[str] | None = None) -> str | None:
    """Dimension whose labels get one decomposition each: the one that is neither item, repeat nor a facet.

    Parameters
    ----------
    cube : Dataset
    facets : sequence of str, optional
        Names of the facets of this analysis. A group dimension that is named among them is a facet.
    """
    declared = attribute(cube, "facets")
    others = [dim for dim in cube["verdict"].dims if dim not in (ITEM, REPEAT)]
    if declared is None:
        found = [str(dim) for dim in others if dim == JUDGE]
    else:
        found = [str(dim) for dim in others if dim not in declared]
    if len(found) > 1:
        raise CubeError(
            f"dimensions {found} are not declared as facets",
            place=cube_name(cube),
            remedy="at most one can be the group",
        )
    return found[0] if found and found[0] not in (facets or ()) else None


def facets_of(cube: xr.Dataset) -> tuple[Facet, ...]:
    """Declarations of the facet dimensions in the order of the verdict's dimensions."""
    group = group_dim(cube)
    dims = [str(dim) for dim in cube["verdict"].dims if dim not in (ITEM, REPEAT, group)]
    declared = attribute(cube, "facets", {})
    try:
        known = {dim: declared.get(dim, {}) for dim in dims}
        # Keys that a later version may add are passed over.
        return tuple(
            Facet(dim, **{key: value for key, value in keys.items() if key in ("kind", "weights", "population")})
            for dim, keys in known.items()
        )
    except (TypeError, AttributeError):
        raise CubeError(
            f"attribute 'facets' is {cube.attrs['facets']!r}",
            place=cube_name(cube),
            remedy="write {name: {kind, weights, population}} as JSON",
        ) from None


def load(variable: xr.DataArray) -> NDArray[Any]:
    """Values of a variable that may still be in a file.

    Raises
    ------
    CorruptFileError
        When the file does not give them back.
    """
    try:
        return np.asarray(variable.values)
    except (OSError, RuntimeError, ValueError) as fault:
        raise CorruptFileError(
            f"the values of {variable.name!r} cannot be read ({fault})",
            place=str(variable.encoding.get("source", "cube")),
            remedy="make the cube again from its table or ledger",
        ) from None
