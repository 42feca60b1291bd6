"""The response-law cube: how it is laid out, made, and split into groups.

Dimensions are ``[group,] item, facets ..., repeat``, where the group dimension is ``judge`` or the columns of ``by``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._canon import join_key
from secondorder._design import Facet
from secondorder._labels._attributes import attribute, group_dim, load
from secondorder._labels._checks import INVALID, NO_COMPLETION, NOT_CALLED, VALID, check_cube
from secondorder._labels._columns import split_key
from secondorder._schema import BOTTOM, CLASS, CODE_MISSING, CUBE_SCHEMA, ITEM, JUDGE, REASONS, REPEAT, STATUS
from secondorder.errors import CubeError

__all__ = ["RESERVED_NAMES", "by_text", "groups", "new_cube", "smallest_int", "with_labels"]

RESERVED_NAMES = frozenset(
    {ITEM, REPEAT, CLASS, "verdict", "status", "reason", "soft", "unlisted", "stratum", "gold"}
    | {"attempts", "send_rank", "sent", "latency_ms", "regime", "cached", "response_key", "logprob"}
)
"""Names that a group or a facet cannot have in a cube, because a dimension or a variable has them."""


def smallest_int(largest: int) -> np.dtype[np.signedinteger[Any]]:
    """Smallest signed whole-number type that holds -1 ... `largest`."""
    return np.dtype(np.min_scalar_type(-max(largest, 0) - 1))


def labels_array(labels: Sequence[str]) -> NDArray[np.object_]:
    """Labels as an array of Python texts: one long label does not widen all the others."""
    array = np.empty(len(labels), dtype=object)
    array[:] = list(labels)
    return array


def new_cube(
    verdict: NDArray[np.integer[Any]],
    *,
    labels: Mapping[str, Sequence[str]],
    classes: Sequence[str],
    facets: Sequence[Facet],
    status: NDArray[np.integer[Any]] | None = None,
    reason: NDArray[np.integer[Any]] | None = None,
    stratum: Sequence[str] | None = None,
    gold: Sequence[str] | None = None,
    coords: Mapping[str, NDArray[Any]] | None = None,
    calls: Mapping[str, NDArray[Any]] | None = None,
    soft: NDArray[np.floating[Any]] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Assemble a cube from arrays.

    Parameters
    ----------
    verdict : array of int, shape of `labels`
        Class codes; -1 is a call without verdict.
    labels : mapping of str to sequence of str
        Dimensions in order (``[group,] item, facets ..., repeat``) with their labels.
    classes : sequence of str
        Verdict classes, ``⊥`` last where it can occur.
    facets : sequence of Facet
        Declarations of the facet dimensions, in their order.
    status, reason : array of int, optional
        Codes of :data:`secondorder._schema.STATUS` and :data:`~secondorder._schema.REASONS`. Default: what the verdict
        codes say (valid, ⊥ as ``declared``, no completion as ``absent``).
    stratum, gold : sequence of str, optional
        One per item.
    coords : mapping of str to array, optional
        Further properties of the items, labels or numbers.
    calls : mapping of str to array, optional
        Further variables of the shape of `verdict`, such as ``latency_ms``.
    soft : array of float, optional
        Soft verdicts, the shape of `verdict` with one more axis over the classes.
    attributes : mapping, optional
        Further attributes; what is not text is written as JSON.

    Raises
    ------
    CubeError
        When the parts do not fit together.

    Examples
    --------
    >>> cube = new_cube(
    ...     np.array([[[0, 1], [0, -1]]]),
    ...     labels={"item": ["q1"], "prompt": ["a", "b"], "repeat": ["0", "1"]},
    ...     classes=["yes", "no"],
    ...     facets=[Facet("prompt")],
    ... )
    >>> cube["verdict"].dims, cube["status"].values.tolist()
    (('item', 'prompt', 'repeat'), [[[0, 0], [0, 2]]])
    """
    dims = tuple(labels)
    bottom = len(classes) - 1 if classes and classes[-1] == BOTTOM else None
    if status is None:
        status = np.full(verdict.shape, VALID, dtype=np.int8)
        status[verdict == CODE_MISSING] = NO_COMPLETION
        if bottom is not None:
            status[verdict == bottom] = INVALID
    if reason is None:
        reason = np.zeros(verdict.shape, dtype=np.int8)
        reason[status == INVALID] = REASONS.index("declared")
        reason[status == NO_COMPLETION] = REASONS.index("absent")
    variables: dict[str, Any] = {
        "verdict": (
            dims,
            verdict.astype(smallest_int(len(classes) - 1), copy=False),
            {"long_name": f"class code; {CODE_MISSING}: no verdict"},
        ),
        "status": (dims, status.astype(np.int8, copy=False), _flags(STATUS)),
        "reason": (dims, reason.astype(np.int8, copy=False), _flags(["none", *REASONS[1:]])),
    }
    for name, values in (calls or {}).items():
        variables[name] = (dims, values)
    if soft is not None:
        variables["soft"] = ((*dims, CLASS), soft.astype(np.float64, copy=False))
    named = {name: (name, labels_array(names)) for name, names in labels.items()}
    named[CLASS] = (CLASS, labels_array(classes))
    for name, of_items in (("stratum", stratum), ("gold", gold)):
        if of_items is not None:
            named[name] = (ITEM, labels_array(of_items))
    named.update({name: (ITEM, values) for name, values in (coords or {}).items()})
    attrs = {
        "schema": CUBE_SCHEMA,
        "facets": {facet.name: _without_name(facet) for facet in facets},
        **(attributes or {}),
    }
    attrs = {name: value if isinstance(value, str) else _as_json(value) for name, value in attrs.items()}
    try:
        cube = xr.Dataset(variables, coords=named, attrs=attrs)
    except ValueError as fault:
        raise CubeError(
            f"the parts do not fit together ({fault})",
            place="new_cube",
            remedy="give one label per position of an axis",
        ) from None
    return check_cube(cube)


def _flags(words: Sequence[str]) -> dict[str, Any]:
    return {"flag_values": np.arange(len(words), dtype=np.int8), "flag_meanings": " ".join(words)}


def _without_name(facet: Facet) -> dict[str, Any]:
    weights = None if facet.weights is None else dict(facet.weights)
    return {"kind": facet.kind, "weights": weights, "population": facet.population}


def _as_json(value: Any) -> str:
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False, allow_nan=False)


def by_text(by: Mapping[str, str]) -> str:
    """Labels of a group as words."""
    return ", ".join(f"{name} = {value}" for name, value in by.items())


def with_labels(data: xr.Dataset, groups: Sequence[Mapping[str, str]]) -> xr.Dataset:
    """A dataset over ``group`` that is selected by the groups' own labels too: ``data.sel(judge="a")``.

    A name that the dataset has for something else stays what it is there.
    """
    for name in groups[0]:
        if name not in data.variables and name not in data.dims:
            data = data.assign_coords({name: ("group", [by[name] for by in groups])}).set_xindex(name)
    return data


def groups(cube: xr.Dataset, facets: Sequence[str] | None = None) -> Iterator[tuple[dict[str, str], xr.Dataset]]:
    """One cube per group, each with the items and repeats that the group has rows for.

    Parameters
    ----------
    cube : Dataset
    facets : sequence of str, optional
        Names of the facets of this analysis; a group dimension that is named among them is not split.

    Yields
    ------
    by : dict of str to str
        Label of the group for each column of `by`; that of the judge for a cube of one judge that was selected from
        several; empty for a cube without groups.
    cube : Dataset
        Without the group dimension.
    """
    dim = group_dim(cube, facets)
    if dim is None:
        yield _selected(cube), cube
        return
    names = attribute(cube, "by", [dim])
    for position, label in enumerate(cube[dim].values.tolist()):
        part = cube.isel({dim: position}, drop=True)
        part.attrs = {name: value for name, value in part.attrs.items() if name != "by"}
        if "status" in part and "reason" in part:
            # A call that a stop rule withheld was planned; only what the group has no row for is not called and absent.
            foreign = (load(part["status"]) == NOT_CALLED) & (load(part["reason"]) == REASONS.index("absent"))
            if foreign.any():
                part = part.isel({axis: _anywhere(part["status"].dims, ~foreign, axis) for axis in (ITEM, REPEAT)})
        yield dict(zip(names, split_key(label, len(names)), strict=True)), part


def _selected(cube: xr.Dataset) -> dict[str, str]:
    """Name of the one group that was selected from a cube, as ``cube.sel(judge="a")`` leaves it."""
    names = attribute(cube, "by", [JUDGE])
    dim = join_key(names)
    if dim not in cube.coords or cube[dim].ndim or dim in attribute(cube, "facets", {}):
        return {}
    return dict(zip(names, split_key(str(cube[dim].values), len(names)), strict=True))


def _anywhere(dims: Sequence[Any], flags: NDArray[np.bool_], kept: str) -> NDArray[np.integer[Any]]:
    """Positions along one dimension at which any flag is set."""
    return np.flatnonzero(flags.any(axis=tuple(axis for axis, dim in enumerate(dims) if dim != kept)))
