"""The cases that a gate is trained and judged on: first verdict, full decision, what full aggregation costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._schema import BOTTOM, CLASS, ITEM
from secondorder.errors import CubeError, InputError
from secondorder.studies._disagreement import Array
from secondorder.studies._layout import as_names, lay_out, levels_of
from secondorder.studies._panel import make_panel
from secondorder.studies._parts import Codes
from secondorder.studies._ratings import Invalid, check_cube
from secondorder.studies._stopping import Stop, check_stop, stop_times
from secondorder.studies._votes import Ties, check_ties, chosen, decision_weights, tied, uniforms

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Cases", "make_cases"]

VERDICT, SOFT = "verdict", "soft"


@dataclass(frozen=True)
class Cases:
    """Cases in which every voter voted; a case is an item under one combination of the other dimensions.

    Attributes
    ----------
    item : int array, shape (cases,)
        Position among `items`.
    items : tuple of str
    first, full, right : int array, shape (cases,)
        First verdict; decision of all voters, -1 where it is tied; right class, -1 where there is none.
    majority : bool array, shape (cases,)
        Whether a class has more than half of the votes.
    cost : array, shape (cases,)
        Votes that full aggregation asks for, the first included.
    values : mapping of str to array, shape (cases,)
        Signals.
    group : array of str, shape (cases,)
        Label of the data set that the split keeps apart; the item's own label without one.
    voters : tuple of str
        First voter first.
    classes : tuple of str
    left_out : int
        Events in which a voter gave no vote.
    strata : int array, shape (items,), or None
    """

    item: NDArray[np.int64]
    items: tuple[str, ...]
    first: Codes
    full: Codes
    right: Codes
    majority: NDArray[np.bool_]
    cost: Array
    values: dict[str, NDArray[Any]]
    group: NDArray[np.object_]
    voters: tuple[str, ...]
    classes: tuple[str, ...]
    left_out: int
    strata: NDArray[np.int64] | None

    @property
    def needs(self) -> NDArray[np.bool_]:
        """Whether the first verdict is not that of the plurality."""
        return np.asarray(self.first != self.full)


def make_cases(
    data: xr.Dataset | xr.DataArray,
    *,
    voters: str,
    first: str | None,
    signals: Sequence[str],
    features: pd.DataFrame | None,
    split: str,
    stop: Stop | None,
    ties: Ties,
    gold: str,
    invalid: Invalid,
    seed: int,
) -> Cases:
    """Lay a cube out as cases.

    Raises
    ------
    CubeError, InputError
        When a signal or the split is not there, or no case is complete.
    """
    if stop is not None:
        check_stop(stop)
    cube = check_cube(data)
    if len(as_names(voters)) != 1:
        raise InputError(f"voters={voters!r}", place="voters", remedy="a gate stands before one dimension")
    panel = make_panel(cube, voters=voters, default=first, by=(), gold=gold, scores=None, invalid=invalid)
    check_ties(ties, ranked=panel.laid.ranked)
    codes, counts = panel.laid.codes[0], panel.counts[0]
    order = [panel.default, *(k for k in range(len(panel.voters)) if k != panel.default)]
    complete: NDArray[np.bool_] = np.asarray((codes >= 0).all(-1))
    item, event = np.nonzero(complete)
    if not len(item):
        raise CubeError("no case has a vote of every voter", place="cube", remedy="give complete items")
    votes, held = codes[complete][:, order], counts[complete]
    weights = decision_weights(held, rule="plurality", ties=ties, n_voters=len(order))
    split_ties = tied(counts) & complete & (ties == "random")
    draws = uniforms(split_ties, [panel.laid.items, [f"/{e}" for e in range(codes.shape[1])]], seed)
    full = chosen(weights, draws[complete])
    if stop is None:
        cost = np.full(len(item), float(len(order)))
    else:
        one_hot = (votes[..., None] == np.arange(held.shape[1])).astype(float)
        cost = stop_times(one_hot, rule=stop) @ np.array([*range(1, len(order) + 1), len(order)], dtype=float)
    there = _There(
        cube,
        features,
        voters,
        panel.voters[panel.default],
        item,
        complete,
        said=np.array(panel.laid.classes, dtype=object)[votes[:, 0]],
        rest=_rest_labels(cube, panel.laid.rest, event),
    )
    values: dict[str, NDArray[Any]] = {}
    for name in _asked(signals, features):
        values |= _signal(there, name)
    items = np.array(panel.laid.items, dtype=object)
    return Cases(
        item=item,
        items=panel.laid.items,
        first=votes[:, 0],
        full=full,
        right=np.full(len(item), -1) if panel.right is None else panel.right[item],
        majority=held.max(-1) > len(order) // 2,
        cost=cost,
        values=values,
        group=items[item] if split == ITEM else _labels(cube, split, item),
        voters=tuple(panel.voters[k] for k in order),
        classes=panel.laid.classes,
        left_out=int((panel.voted[0] & ~complete).sum()),
        strata=panel.laid.strata,
    )


def _asked(signals: Sequence[str], features: pd.DataFrame | None) -> list[str]:
    names = [*as_names(signals), *(map(str, features.columns) if features is not None else ())]
    if not names or len(set(names)) < len(names):
        raise InputError(f"signals {names}", place="signals", remedy="name each signal once")
    return names


def _rest_labels(cube: xr.Dataset, rest: Sequence[str], event: NDArray[np.int64]) -> dict[str, NDArray[np.object_]]:
    """Level of every other dimension for each case."""
    if not rest:
        return {}
    places = np.unravel_index(event, [cube.sizes[dim] for dim in rest])
    return {dim: np.array(levels_of(cube, dim), dtype=object)[place] for dim, place in zip(rest, places, strict=True)}


def _labels(cube: xr.Dataset, name: str, item: NDArray[np.int64]) -> NDArray[np.object_]:
    if name not in cube.coords or cube[name].dims != (ITEM,):
        raise CubeError(f"{name!r} is no coordinate of the items", place="split", remedy="'item', or a coordinate")
    return np.array([str(value) for value in cube[name].to_numpy()], dtype=object)[item]


class _There(NamedTuple):
    """What signals can be read from."""

    cube: xr.Dataset
    features: pd.DataFrame | None
    voters: str
    first: str
    item: NDArray[np.int64]
    complete: NDArray[np.bool_]
    said: NDArray[np.object_]
    rest: Mapping[str, NDArray[np.object_]]


def _signal(there: _There, name: str) -> dict[str, NDArray[Any]]:
    """One signal as columns over the cases."""
    cube, features, item = there.cube, there.features, there.item
    if features is not None and name in map(str, features.columns):
        return {name: _feature(cube, features, name)[item]}
    if name == VERDICT:
        return {name: there.said}
    if name == SOFT:
        return _soft(there)
    if name in there.rest:
        return {name: there.rest[name]}
    if name in cube.coords and cube[name].dims == (ITEM,):
        column = cube[name].to_numpy()
        return {name: (column if column.dtype.kind in "iufb" else column.astype(str).astype(object))[item]}
    known = [VERDICT, *([SOFT] if SOFT in cube else []), *there.rest]
    known += [str(key) for key, coord in cube.coords.items() if coord.dims == (ITEM,) and key != ITEM]
    raise InputError(f"there is no signal {name!r}", place="signals", remedy=f"there are {', '.join(known)}")


def _feature(cube: xr.Dataset, features: pd.DataFrame, name: str) -> NDArray[Any]:
    rows = features.copy()
    rows.index = rows.index.map(str)
    rows.columns = rows.columns.map(str)
    items = levels_of(cube, ITEM)
    if lost := [label for label in items if label not in rows.index]:
        raise InputError(f"item {lost[0]!r} has no row", place="features", remedy="index them by item, one row each")
    column = rows.loc[list(items), name]
    if len(column) != len(items):
        raise InputError("an item has several rows", place="features", remedy="index them by item, one row each")
    values = column.to_numpy()
    return values if values.dtype.kind in "iufb" else values.astype(str).astype(object)


def _soft(there: _There) -> dict[str, NDArray[Any]]:
    """Probabilities of the first verdict's classes; that of ⊥ is left out, as what the others lack to 1."""
    cube = there.cube
    if SOFT not in cube:
        raise InputError("the cube has no soft verdicts", place="signals", remedy="leave 'soft' out")
    laid = lay_out(cube, SOFT, inner=[there.voters, CLASS], by=(), fill=np.nan).values[0]
    row = laid[:, :, levels_of(cube, there.voters).index(there.first)][there.complete]
    labels = [label for label in levels_of(cube, CLASS) if label != BOTTOM]
    return {f"soft {label}": row[:, k] for k, label in enumerate(labels)}
