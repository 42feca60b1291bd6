"""Cells of a cube: their codes and counts, the views that people ask for, and which cells have too few calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._attributes import class_labels, cube_name, load
from secondorder._labels._checks import check_cube, check_values
from secondorder._labels._columns import shown
from secondorder._schema import CLASS, ITEM, REPEAT
from secondorder.errors import CubeError

__all__ = ["cell_counts", "codes", "count", "estimate_law", "incomplete_cells", "one_hot", "require_cells"]

SHOWN = 5
"""Cells that a message lists before it counts the rest."""


def codes(cube: xr.Dataset, facets: Sequence[str]) -> NDArray[np.signedinteger[Any]]:
    """Class codes of a cube without groups, as the array code wants them.

    Parameters
    ----------
    cube : Dataset
    facets : sequence of str
        Facets in the order of the cell axes. A facet of one level that is not named is left out.

    Returns
    -------
    array of int, shape (items, L_1, ..., L_J, repeats)
        -1 is a call without verdict. C-contiguous; not a copy when the cube already lies so.

    Raises
    ------
    CubeError
        When a facet is unknown, one with several levels is not named, or a code is outside the classes.
    """
    verdict = check_values(cube)["verdict"]
    unknown = [name for name in facets if name not in verdict.dims]
    if unknown:
        raise CubeError(
            f"there is no facet {unknown[0]!r}",
            place=cube_name(cube),
            remedy=f"its dimensions: {', '.join(map(str, verdict.dims))}",
        )
    others = [dim for dim in verdict.dims if dim not in (ITEM, REPEAT, *facets)]
    wide = [dim for dim in others if verdict.sizes[dim] > 1]
    if wide:
        raise CubeError(
            f"dimension {wide[0]!r} has {verdict.sizes[wide[0]]} levels and is not named as a facet",
            place=cube_name(cube),
            remedy="name it, or select one of its levels",
        )
    single = verdict.isel(dict.fromkeys(others, 0))
    return np.ascontiguousarray(load(single.transpose(ITEM, *facets, REPEAT)))


def cell_counts(cube: xr.Dataset) -> xr.DataArray:
    """Number of calls with a verdict (⊥ included) in every cell."""
    verdict = cube["verdict"]
    values, axis = load(verdict), verdict.dims.index(REPEAT)
    if values.min(initial=0) >= 0:
        # The common case, without a pass over an axis of a few calls.
        calls = np.full(np.delete(values.shape, axis), values.shape[axis], dtype=np.int64)
    else:
        calls = (values >= 0).sum(axis, dtype=np.int64)
    return verdict.isel({REPEAT: 0}, drop=True).copy(data=calls).rename("calls").drop_attrs()


def count(cube: xr.Dataset) -> xr.DataArray:
    """Verdict counts of every cell, the sufficient statistic of hard verdicts.

    Parameters
    ----------
    cube : Dataset
        A response-law cube with hard verdicts.

    Returns
    -------
    DataArray of int64, dims ``([group,] item, facets ..., class)``
        ⊥ is a class, a call without verdict is counted nowhere.

    Raises
    ------
    CubeError
        When the dataset is no cube, or its verdicts are soft.

    Examples
    --------
    >>> from secondorder._labels._read import make_cube
    >>> runs = {"a": "YYN", "b": "NNN"}
    >>> rows = [{"q": "1", "prompt": p, "run": r, "v": v} for p, said in runs.items() for r, v in enumerate(said)]
    >>> count(make_cube(rows, item="q", facets="prompt", repeat="run", verdict="v")).values.tolist()
    [[[1, 2], [3, 0]]]
    """
    check_values(check_cube(cube))
    if "soft" in cube:
        raise CubeError(
            "soft verdicts have no counts", place=cube_name(cube), remedy="use estimate_law, the mean verdict vector"
        )
    verdict = cube["verdict"].transpose(..., REPEAT)
    values, size = load(verdict), len(class_labels(cube))
    cells = values.reshape(-1, values.shape[-1])
    # One bin for "no verdict" before the classes, cut off afterwards.
    bins = np.arange(len(cells), dtype=np.int64)[:, None] * (size + 1) + 1 + cells
    counts = np.bincount(bins.ravel(), minlength=len(cells) * (size + 1)).reshape(*values.shape[:-1], size + 1)[..., 1:]
    return _per_cell(cube, verdict.dims[:-1], np.ascontiguousarray(counts, dtype=np.int64), "count")


def estimate_law(cube: xr.Dataset) -> xr.DataArray:
    """Empirical response law of every cell: the mean verdict vector; its mean over a facet is the barycentre.

    Parameters
    ----------
    cube : Dataset
        A response-law cube, with hard or soft verdicts.

    Returns
    -------
    DataArray of float64, dims ``([group,] item, facets ..., class)``
        Shares of the classes among the calls with a verdict, sum 1; NaN in a cell without any.

    Raises
    ------
    CubeError
        When the dataset is no cube.

    Examples
    --------
    >>> from secondorder._labels._read import make_cube
    >>> runs = {"a": "YN", "b": "NN"}
    >>> rows = [{"q": "1", "prompt": p, "run": r, "v": v} for p, said in runs.items() for r, v in enumerate(said)]
    >>> estimate_law(make_cube(rows, item="q", facets="prompt", repeat="run", verdict="v")).values.tolist()
    [[[0.5, 0.5], [1.0, 0.0]]]
    """
    check_cube(cube)
    if "soft" in cube:
        vectors = one_hot(cube)
        present = vectors.notnull().all(CLASS)
        return (vectors.where(present, 0.0).sum(REPEAT) / present.sum(REPEAT).where(lambda n: n > 0)).rename("law")
    counts = count(cube)
    calls = counts.sum(CLASS)
    return (counts / calls.where(calls > 0)).rename("law")


def one_hot(cube: xr.Dataset) -> xr.DataArray:
    """The ``(item, prompt, order, repeat, class)`` view: every verdict as a vector over the classes.

    Parameters
    ----------
    cube : Dataset
        A response-law cube; soft verdicts are given back as they are.

    Returns
    -------
    DataArray of float64, dims ``([group,] item, facets ..., repeat, class)``
        1 in the class of the verdict, 0 elsewhere; NaN for a call without verdict, which is no class, so that means
        over `repeat` are the empirical laws.

    Raises
    ------
    CubeError
        When the dataset is no cube.

    Examples
    --------
    >>> from secondorder._labels._read import make_cube
    >>> rows = [{"q": "1", "prompt": "a", "run": r, "v": v} for r, v in enumerate(["Y", "N", ""])]
    >>> cube = make_cube(rows, item="q", facets="prompt", repeat="run", verdict="v", missing=[""])
    >>> one_hot(cube).sel(item="1", prompt="a").values.tolist()
    [[0.0, 1.0], [1.0, 0.0], [nan, nan]]
    """
    check_values(check_cube(cube))
    verdict = cube["verdict"]
    if "soft" in cube:
        return cube["soft"].transpose(*verdict.dims, CLASS)
    values = load(verdict)
    vectors = np.eye(len(class_labels(cube)))[values]
    vectors[values < 0] = np.nan
    return _per_cell(cube, verdict.dims, vectors, "one_hot")


def _per_cell(cube: xr.Dataset, dims: Sequence[Any], values: NDArray[Any], name: str) -> xr.DataArray:
    """An array over the given dimensions and the classes, with the labels of the cube."""
    dims = (*dims, CLASS)
    coords = {key: coord for key, coord in cube.coords.items() if set(coord.dims) <= set(dims)}
    return xr.DataArray(values, dims=dims, coords=coords, name=name)


def incomplete_cells(cube: xr.Dataset, *, need: int = 2) -> pd.DataFrame:
    """Cells with fewer than `need` calls that have a verdict.

    Returns
    -------
    DataFrame
        One row per cell: its labels, and ``calls``.
    """
    calls = cell_counts(cube)
    short = np.argwhere(calls.values < need)
    table = {
        str(dim): calls[dim].values[short[:, axis]] if dim in calls.coords else short[:, axis]
        for axis, dim in enumerate(calls.dims)
    }
    return pd.DataFrame({**table, "calls": calls.values[tuple(short.T)]})


def require_cells(
    cube: xr.Dataset, *, need: int, incomplete: str = "refuse"
) -> tuple[xr.Dataset, tuple[dict[str, str], ...]]:
    """Refuse a cube with cells of fewer than `need` calls, or leave their items out and say which.

    Parameters
    ----------
    cube : Dataset
        Without groups.
    need : int
        Calls with a verdict that every cell has to have.
    incomplete : {"refuse", "drop-item"}

    Returns
    -------
    cube : Dataset
        The complete items.
    dropped : tuple of dict
        ``item`` and ``reason`` of every item left out.

    Raises
    ------
    CubeError
        When cells are incomplete and are to be refused (the first are listed), or when no item is complete.
    """
    if incomplete not in ("refuse", "drop-item"):
        raise CubeError(f"{incomplete!r} is unknown", place="incomplete", remedy="say 'refuse' or 'drop-item'")
    short = incomplete_cells(cube, need=need)
    if short.empty:
        return cube, ()
    if incomplete == "refuse" or short[ITEM].nunique() == cube.sizes[ITEM]:
        raise _too_few(cube, short, need, incomplete)
    dropped = tuple(
        {"item": str(item), "reason": _reason(cells, need)} for item, cells in short.groupby(ITEM, sort=False)
    )
    gone = {entry["item"] for entry in dropped}
    kept = np.flatnonzero([label not in gone for label in cube[ITEM].values.tolist()])
    return cube.isel({ITEM: kept}), dropped


def _reason(cells: pd.DataFrame, need: int) -> str:
    first = next(iter(cells.to_dict("records")))
    more = f" (and {len(cells) - 1} more cell{'s' * (len(cells) > 2)})" if len(cells) > 1 else ""
    return f"cell {_cell(first, ITEM)} has {first['calls']} of {need} calls{more}"


def _cell(record: dict[Any, Any], *without: str) -> str:
    return ", ".join(f"{name}={shown(str(label))}" for name, label in record.items() if name not in (*without, "calls"))


def _too_few(cube: xr.Dataset, short: pd.DataFrame, need: int, incomplete: str) -> CubeError:
    listed = "; ".join(f"{_cell(record)} has {record['calls']}" for record in short.head(SHOWN).to_dict("records"))
    more = f"; and {len(short) - SHOWN} more" if len(short) > SHOWN else ""
    items = short[ITEM].nunique()
    single = need == 2 and int(cell_counts(cube).max()) < 2
    why = " (with one call per cell, call noise is not identifiable)" if single else ""
    remedy = "repeat the calls" if single else "add the calls"
    if items == cube.sizes[ITEM]:
        remedy += ": no item is complete"
    elif incomplete == "refuse":
        remedy += ", or leave those items out, counted: incomplete='drop-item'"
    return CubeError(
        f"{len(short)} cell{'s' * (len(short) > 1)} of {items} item{'s' * (items > 1)} (of {cube.sizes[ITEM]}) "
        f"{'have' if len(short) > 1 else 'has'} fewer than {need} call{'s' * (need != 1)}{why}: {listed}{more}",
        place=cube_name(cube),
        remedy=remedy,
    )
