"""What a study reads: verdicts as a cube, or scores that are no classes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondorder.cli import STDIN
from secondorder.cli._columns import Columns
from secondorder.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["mapping_of", "open_data"]


def open_data(source: str, columns: Columns, score: str | None) -> xr.Dataset:
    """The input as a cube; with `score`, as scores over the facets and groups.

    Raises
    ------
    InputError, TableError
        When a needed flag is absent, or does not fit.
    """
    if score is None:
        return columns.open(source)
    if columns.verdict:
        raise InputError("--score and --verdict exclude each other", place=source, remedy="give one of them")
    if source == STDIN or Path(source).is_dir() or Path(source).suffix in (".nc", ".zarr", ".toml"):
        raise InputError("--score reads a table", place=source, remedy="give a .csv, .tsv, .jsonl or .parquet file")
    for name, given in (("--item", columns.item), ("--facet", [*(columns.facet or ()), *(columns.by or ())])):
        if not given:
            raise InputError(f"{name} is missing", place=source, remedy=f"name the column: {name} COL")
    for flag, value in (("--number-repeats", columns.number_repeats), ("--classes", columns.classes),
                        ("--weight", columns.weight), ("--random", columns.random), ("--invalid", columns.invalid),
                        ("--missing", columns.missing)):  # fmt: skip
        if value:
            raise InputError(f"{flag} stands beside --score", place=source, remedy="it belongs to --verdict")
    return _scores(source, columns, score)


def _scores(source: str, columns: Columns, score: str) -> xr.Dataset:
    from secondorder._canon import join_key
    from secondorder._labels._plain import read_frame
    from secondorder.studies import make_scores

    items = columns.item or []
    facets = [*(columns.by or ()), *(columns.facet or ())]
    coords = [*(columns.coord or ()), *([columns.stratum] if columns.stratum else [])]
    wanted: list[str] = [*items, *facets, *coords, score]
    wanted += [name for name in (columns.repeat, columns.gold) if name]
    frame = read_frame(source, wanted, where=columns.where or ())
    key = "item" if len(items) > 1 else items[0]
    if len(items) > 1:
        frame = frame.assign(item=[join_key(row) for row in frame[items].to_numpy().tolist()])
    data = make_scores(
        frame, item=key, score=score, facets=facets, repeat=columns.repeat, gold=columns.gold, coords=coords
    )
    # As in a cube: what is neither facet, item nor repeat is a group.
    data.attrs["facets"] = json.dumps({name: {} for name in columns.facet or ()})
    return data.rename({columns.stratum: "stratum"}) if columns.stratum and columns.stratum != "stratum" else data


def mapping_of(path: Path, *, value: str | None = None) -> dict[str, Any]:
    """First column to another one of a small table beside the data."""
    from secondorder._labels._plain import read_side_table

    frame = read_side_table(path)
    name = str(frame.columns[0]) if value is None and len(frame.columns) else value
    if name not in frame.columns:
        raise InputError(f"there is no column {name!r}", place=str(path), remedy=", ".join(map(str, frame.columns)))
    return {str(key): item for key, item in frame[name].items()}
