"""Scores over named dimensions from a long table of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._columns import as_numbers
from secondorder._schema import ITEM, REPEAT
from secondorder.errors import TableError
from secondorder.studies._disagreement import Array
from secondorder.studies._layout import as_names, in_order

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["make_scores"]


def make_scores(
    rows: pd.DataFrame | Iterable[Mapping[str, Any]],
    *,
    item: str,
    score: str,
    facets: str | Sequence[str],
    repeat: str | None = None,
    gold: str | None = None,
    coords: str | Sequence[str] = (),
) -> xr.Dataset:
    """Scores over named dimensions from a long table of numbers.

    Use it for scores that are no classes (means of calls, 0-100 scales, metrics); verdicts make a cube.

    Parameters
    ----------
    rows : DataFrame or records
    item, score : str
        Columns of the item and of its score; an empty cell, None or NaN is a missing score.
    facets : str or sequence of str
        Columns that become dimensions: judge, prompt, system, …
    repeat : str, optional
        Column of the call within a cell.
    gold : str, optional
        Column of the human score, one per item (and system, where ``system`` is a facet).
    coords : str or sequence of str
        Columns that are constant within an item, which become coordinates of the items: a task, a length, a system.

    Returns
    -------
    Dataset
        ``score`` over the facets, ``item`` and ``repeat``; ``gold`` where it was given.

    Raises
    ------
    TableError
        When a column is missing, a cell comes twice, a score is no number, or gold is not constant.

    Examples
    --------
    >>> rows = [{"q": q, "prompt": p, "score": s} for q, p, s in [("a", 1, 4), ("a", 2, 5), ("b", 1, 2)]]
    >>> make_scores(rows, item="q", score="score", facets=["prompt"])["score"].to_numpy().tolist()
    [[4.0, 2.0], [5.0, nan]]
    """
    import pandas as pd

    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame.from_records(list(rows))
    facets, coords = as_names(facets), as_names(coords)
    keys = [*facets, item, *((repeat,) if repeat else ())]
    for name in (*keys, score, *((gold,) if gold else ()), *coords):
        if name not in frame.columns:
            raise TableError(
                f"no column {name!r}", place="rows", remedy=f"columns: {', '.join(map(str, frame.columns))}"
            )
    dims = [*facets, ITEM, *((REPEAT,) if repeat else ())]
    labels = {dim: frame[key].map(str).to_numpy() for dim, key in zip(dims, keys, strict=True)}
    levels = {dim: in_order(set(found.tolist())) for dim, found in labels.items()}
    codes = tuple(pd.Index(levels[dim], dtype=object).get_indexer(labels[dim]) for dim in dims)
    shape = tuple(len(levels[dim]) for dim in dims)
    flat = np.ravel_multi_index(codes, shape)
    if len(np.unique(flat)) < len(flat):
        again = frame[pd.Series(flat, index=frame.index).duplicated()].iloc[0]
        where = ", ".join(f"{key} {again[key]}" for key in keys)
        raise TableError(
            f"more than one row for {where}", place="rows", remedy="name the column of repeats, or average"
        )
    values = np.full(shape, np.nan)
    values.flat[flat] = _numbers(frame[score], score)
    data = xr.Dataset({"score": (dims, values)}, coords={dim: list(levels[dim]) for dim in dims})
    data = data.assign_coords({name: (ITEM, _constant(frame, name, labels[ITEM], levels[ITEM])) for name in coords})
    if gold is None:
        return data
    across = [dim for dim in ("system", ITEM) if dim in dims]
    held = frame.assign(**{dim: labels[dim] for dim in across}, gold=_numbers(frame[gold], gold))
    once = held.groupby(across)["gold"]
    if (once.nunique(dropna=False) > 1).any():
        first = once.nunique(dropna=False).gt(1).idxmax()
        raise TableError(f"{gold} is not constant within {first}", place="rows", remedy="give one human score for each")
    table = once.first().to_xarray().reindex({dim: list(levels[dim]) for dim in across})
    return data.assign(gold=(across, table.to_numpy()))


def _constant(frame: pd.DataFrame, name: str, items: NDArray[Any], levels: Sequence[str]) -> NDArray[Any]:
    """Value of a column for every item; refused where an item has two."""
    once = frame[name].groupby(items)
    if (several := once.nunique(dropna=False) > 1).any():
        raise TableError(
            f"{name} is not constant within item {several.idxmax()}",
            place="rows",
            remedy="give one value for each item, or make it part of the item's key",
        )
    column = once.first().reindex(list(levels))
    if column.dtype.kind in "iufb":
        return column.to_numpy()
    return as_numbers(["" if value is None or value != value else str(value) for value in column])


def _numbers(column: pd.Series[Any], name: str) -> Array:
    import pandas as pd

    values = pd.to_numeric(column.replace("", None), errors="coerce").to_numpy(dtype=float)
    wrong = ~np.isfinite(values) & ~(column.isna() | (column == "")).to_numpy()
    if wrong.any():
        raise TableError(
            f"{column.to_numpy()[wrong][0]!r} is no number", place=f"rows, column {name}", remedy="map labels to scores"
        )
    return values
