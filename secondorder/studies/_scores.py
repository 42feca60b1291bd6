"""Scores of answers under several wordings: rows of answers, prompts and calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._schema import BOTTOM, CLASS, CODE_MISSING, ITEM, REPEAT
from secondorder.errors import CubeError, InputError
from secondorder.studies._disagreement import Array, class_scores, label_scores
from secondorder.studies._layout import By, item_levels, lay_out, withheld
from secondorder.studies._ratings import check_cube

__all__ = ["Incomplete", "ScoreRows", "prompt_means", "score_rows", "scored"]

Incomplete = Literal["common", "available"]


@dataclass(frozen=True)
class ScoreRows:
    """Scores with named axes; a row is one answer (an item of one system).

    Attributes
    ----------
    values : array, shape (groups, rows, cells, prompts, calls)
        NaN where there is no valid score.
    system : int array, shape (rows,)
        Position of each row's system.
    cluster : int array, shape (rows,)
        What is resampled: an item that several systems answered is one cluster.
    strata : int array, shape (clusters,), or None
    gold : array, shape (rows,), or None
    by : grouping
    systems, prompts, clusters : tuple of str
    n_invalid, n_missing : int array, shape (groups,)
    """

    values: Array
    system: NDArray[np.int64]
    cluster: NDArray[np.int64]
    strata: NDArray[np.int64] | None
    gold: Array | None
    by: By
    systems: tuple[str, ...]
    prompts: tuple[str, ...]
    clusters: tuple[str, ...]
    n_invalid: NDArray[np.int64]
    n_missing: NDArray[np.int64]


def scored(
    data: xr.Dataset | xr.DataArray, *, scores: Mapping[str, float] | None, valid: tuple[float, float] | None
) -> tuple[xr.Dataset, NDArray[np.bool_]]:
    """The data with a float ``score``, and where a score was set aside as invalid.

    Raises
    ------
    InputError
        When the valid range is empty or the data hold neither scores nor verdicts.
    """
    if isinstance(data, xr.Dataset) and "score" in data and "verdict" not in data:
        values = data["score"].to_numpy().astype(float)
        cube = data
    else:
        cube = check_cube(data)
        classes = [str(label) for label in cube[CLASS].to_numpy()]
        table = np.append(class_scores(classes, scores), np.nan)
        codes = cube["verdict"].to_numpy().astype(np.int64)
        values = table[codes]  # -1 picks the appended NaN
        bottom = len(classes) - 1 if classes and classes[-1] == BOTTOM else len(classes)
        cube = cube.assign(score=(cube["verdict"].dims, values)).drop_vars("verdict")
        return _within(cube, values, valid, (codes == bottom) & np.isnan(values))
    if ITEM not in cube["score"].dims:
        raise CubeError(f"dimensions {cube['score'].dims}", place="score", remedy="name the item dimension `item`")
    return _within(cube, values, valid, np.zeros(values.shape, dtype=bool))


def _within(
    cube: xr.Dataset, values: Array, valid: tuple[float, float] | None, invalid: NDArray[np.bool_]
) -> tuple[xr.Dataset, NDArray[np.bool_]]:
    if valid is None:
        return cube, invalid
    low, high = valid
    if not low < high:
        raise InputError(f"valid=({low:g}, {high:g})", place="valid", remedy="give (lowest, highest) of the scale")
    outside = (values < low) | (values > high)
    kept = np.where(outside, np.nan, values)
    return cube.assign(score=(cube["score"].dims, kept)), invalid | outside


def score_rows(
    data: xr.Dataset | xr.DataArray,
    *,
    prompt: str,
    by: str | Sequence[str] | None,
    system: str | None = None,
    match: str | None = None,
    gold: str | None = None,
    scores: Mapping[str, float] | None = None,
    valid: tuple[float, float] | None = None,
    repeat: str = REPEAT,
) -> ScoreRows:
    """Lay scores out as groups, rows, cells, prompts, calls.

    Parameters
    ----------
    data : Dataset or DataArray
        A verdict cube, or scores (:func:`make_scores`).
    prompt, by, repeat
        Dimensions of the wording, the grouping, and the calls of a cell.
    system : str, optional
        A dimension, or a coordinate of the items.
    match : str, optional
        Where `system` is a coordinate of the items: the coordinate that says which items of different systems are
        answers to the same thing; these are resampled together.
    gold : str, optional
        Variable or coordinate of the human scores.
    scores, valid
        Scores of the classes; range outside of which a score is invalid.

    Raises
    ------
    CubeError, InputError, KernelError
        When a dimension, coordinate or score is not there.
    """
    cube, invalid = scored(data, scores=scores, valid=valid)
    cube = cube.assign(invalid=(cube["score"].dims, invalid.astype(float)))
    own = system is not None and system in cube["score"].dims
    inner: list[str | Sequence[str]] = [(system,) if own and system else (), prompt]
    inner.append((repeat,) if repeat in cube["score"].dims else ())
    laid = lay_out(cube, "score", inner=inner, by=by, fill=np.nan)
    bad = lay_out(cube, "invalid", inner=inner, by=by, fill=0.0).values
    values = laid.values  # (groups, items, cells, systems, prompts, calls)
    n_items, n_systems = values.shape[1], values.shape[3]
    n_invalid = bad.sum((1, 2, 3, 4, 5)).astype(np.int64)
    n_missing = (np.isnan(values) & laid.inside[:, :, None, None, None, None]).sum((1, 2, 3, 4, 5)) - n_invalid
    n_missing -= withheld(cube, inner=inner, by=by)
    rows = values.transpose(0, 1, 3, 2, 4, 5).reshape(len(values), -1, *values.shape[2:3], *values.shape[4:])
    codes = np.tile(np.arange(n_systems), n_items)
    clusters, cluster, strata = laid.items, np.repeat(np.arange(n_items), n_systems), laid.strata
    systems: tuple[str, ...] = laid.inner[0]
    if system is not None and not own:
        systems, codes = _coordinate(cube, system)
        if match is None:  # every system has items of its own: keep their numbers
            strata = codes if strata is None else strata * len(systems) + codes
        else:
            clusters, cluster = _coordinate(cube, match)
            strata = None if strata is None else _constant(strata, cluster, len(clusters), match)
    return ScoreRows(
        values=rows,
        system=codes.astype(np.int64),
        cluster=cluster.astype(np.int64),
        strata=strata,
        gold=None if gold is None else _gold(cube, gold, system if own else None, scores),
        by=laid.by,
        systems=systems,
        prompts=laid.inner[1],
        clusters=clusters,
        n_invalid=n_invalid,
        n_missing=n_missing,
    )


def _coordinate(cube: xr.Dataset, name: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    if name not in cube.coords or cube[name].dims != (ITEM,):
        raise CubeError(
            f"{name!r} is neither a dimension nor a coordinate of the items",
            place="cube",
            remedy=f"dimensions: {', '.join(map(str, cube['score'].dims))}; --coord {name} "
            f"(assign_coords({name}=('item', …)))",
        )
    return item_levels(cube, name)


def _constant(strata: NDArray[np.int64], cluster: NDArray[np.int64], size: int, name: str) -> NDArray[np.int64]:
    found = np.full(size, CODE_MISSING, dtype=np.int64)
    found[cluster] = strata
    if (found[cluster] != strata).any():
        raise CubeError("items that belong together lie in different strata", place=name, remedy="drop the stratum")
    return found


def _gold(cube: xr.Dataset, name: str, system: str | None, scores: Mapping[str, float] | None) -> Array:
    if name not in cube.variables:
        raise CubeError(
            f"no human scores {name!r}", place="gold", remedy="name their column: --gold COL (a variable over `item`)"
        )
    variable = cube[name]
    if variable.dtype.kind in "OUS":
        found = label_scores(variable.to_numpy().ravel().tolist(), scores)
        variable = variable.copy(data=found.reshape(variable.shape))
    wanted = (ITEM,) if system is None else (ITEM, system)
    if set(variable.dims) - set(wanted):
        raise CubeError(f"gold has dimensions {variable.dims}", place="gold", remedy=f"at most {wanted}")
    sizes = {dim: cube.sizes[dim] for dim in wanted}
    full = variable.drop_vars(list(variable.coords)).broadcast_like(
        xr.DataArray(np.zeros(tuple(sizes.values())), dims=wanted)
    )
    return np.asarray(full.transpose(*wanted).to_numpy(), dtype=float).ravel()


def prompt_means(rows: ScoreRows, *, incomplete: Incomplete, values: Array | None = None) -> Array:
    """Mean score of each row under each prompt, (groups, rows, prompts), cells of a row weighing alike.

    NaN where a cell has no valid call. With ``common``, a row without a mean under some prompt has none under any, so
    that prompts are compared on the same answers.
    """
    if incomplete not in ("common", "available"):
        raise InputError(f"incomplete={incomplete!r}", place="incomplete", remedy="say 'common' or 'available'")
    calls = rows.values if values is None else values
    there = ~np.isnan(calls)
    n = there.sum(-1)
    cells = np.where(n > 0, np.where(there, calls, 0.0).sum(-1) / np.maximum(n, 1), np.nan)
    means = cells.mean(2)
    if incomplete == "common":
        means = np.where(np.isnan(means).any(-1, keepdims=True), np.nan, means)
    return np.asarray(means)
