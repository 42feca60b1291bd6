"""A table as a frame: for what is no verdict, such as scores, traits and ratings."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pandas as pd

from secondorder._labels._columns import as_numbers
from secondorder._labels._roles import conditions
from secondorder._labels._rows import filtered
from secondorder._labels._sources import read_rows
from secondorder.errors import TableError

__all__ = ["read_frame", "read_side_table"]


def read_frame(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None, *, where: Sequence[str] = ()
) -> pd.DataFrame:
    """Columns of a table as text, exactly as it stands there.

    Parameters
    ----------
    path, where
        As for :func:`secondorder.read_table`.
    columns : sequence of str, optional
        Default: all.

    Raises
    ------
    InputError, TableError
        As for :func:`secondorder.read_table`.
    """
    kept = conditions(where)
    wanted = None if columns is None else list(dict.fromkeys([*columns, *(one.column for one in kept)]))
    rows = filtered(read_rows(path, wanted), kept)
    names = rows.columns if columns is None else dict.fromkeys(columns)
    return pd.DataFrame({name: _texts(rows.columns[name].labels, rows.columns[name].codes.tolist()) for name in names})


def _texts(labels: Sequence[str], codes: Sequence[int]) -> list[str]:
    return [labels[code] for code in codes]


def read_side_table(path: str | os.PathLike[str], *, index: str | None = None, numbers: bool = True) -> pd.DataFrame:
    """A small table beside the data with all its columns; those of numbers alone are numbers.

    Parameters
    ----------
    path : path
        As for :func:`secondorder.read_table`.
    index : str, optional
        Column that becomes the index, as text. Default: the first.
    numbers : bool
        Without them every column stays text.

    Raises
    ------
    InputError, TableError
        When it cannot be read, or the index is not there or repeats.
    """
    frame = read_frame(path)
    name = str(frame.columns[0]) if index is None else index
    if name not in frame.columns:
        raise TableError(f"there is no column {name!r}", place=str(path), remedy=f"columns: {', '.join(frame.columns)}")
    if frame[name].duplicated().any():
        twice = frame[name][frame[name].duplicated()].iloc[0]
        raise TableError(f"{name} {twice!r} stands twice", place=str(path), remedy="give one row each")
    frame = frame.set_index(name)
    return frame.assign(**{str(column): as_numbers(frame[column].tolist()) for column in frame if numbers})
