"""A table as a frame: for what is no verdict, such as scores, traits and ratings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from secondorder._labels._columns import as_numbers
from secondorder._labels._roles import conditions
from secondorder._labels._rows import filtered
from secondorder._labels._sources import read_rows
from secondorder.errors import InputError, TableError

__all__ = ["read_frame", "read_side_table"]


def read_frame(path: str | os.PathLike[str], columns: Sequence[str], *, where: Sequence[str] = ()) -> pd.DataFrame:
    """Columns of a table as text, exactly as it stands there.

    Parameters
    ----------
    path, where
        As for :func:`secondorder.read_table`.
    columns : sequence of str

    Raises
    ------
    InputError, TableError
        As for :func:`secondorder.read_table`.
    """
    wanted = list(dict.fromkeys(columns))
    kept = conditions(where)
    rows = filtered(read_rows(path, [*wanted, *(one.column for one in kept if one.column not in wanted)]), kept)
    return pd.DataFrame({name: _texts(rows.columns[name].labels, rows.columns[name].codes.tolist()) for name in wanted})


def _texts(labels: Sequence[str], codes: Sequence[int]) -> list[str]:
    return [labels[code] for code in codes]


def read_side_table(path: str | os.PathLike[str], *, index: str | None = None) -> pd.DataFrame:
    """A small table beside the data (.csv, .tsv, .jsonl) with all its columns; those of numbers alone are numbers.

    Parameters
    ----------
    path : path
    index : str, optional
        Column that becomes the index, as text. Default: the first.

    Raises
    ------
    InputError, TableError
        When it cannot be read, or the index is not there or repeats.
    """
    file = Path(path)
    readers = {".csv": ",", ".tsv": "\t", ".jsonl": None}
    if file.suffix not in readers:
        raise InputError(f"suffix {file.suffix!r}", place=str(file), remedy="give a .csv, .tsv or .jsonl file")
    try:
        if file.suffix == ".jsonl":
            frame = (
                pd.read_json(file, lines=True, dtype=False).astype(object).where(lambda x: x.notna(), "").astype(str)
            )
        else:
            frame = pd.read_csv(file, sep=readers[file.suffix], dtype=str, keep_default_na=False)
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", place=str(file), remedy="check the path") from None
    except (ValueError, pd.errors.ParserError) as error:
        raise TableError(f"it is no such table ({error})", place=str(file), remedy="export it again") from None
    frame.columns = frame.columns.map(str)
    name = str(frame.columns[0]) if index is None else index
    if name not in frame.columns:
        raise TableError(f"there is no column {name!r}", place=str(file), remedy=f"columns: {', '.join(frame.columns)}")
    if frame[name].duplicated().any():
        twice = frame[name][frame[name].duplicated()].iloc[0]
        raise TableError(f"{name} {twice!r} stands twice", place=str(file), remedy="give one row each")
    rest = {column: as_numbers(frame[column].tolist()) for column in frame.columns if column != name}
    return pd.DataFrame(rest, index=pd.Index(frame[name], name=name))
