"""Rows in memory to text columns: a DataFrame, or records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from secondorder._labels._columns import Column, Rows, column_of_texts, column_of_values
from secondorder._labels._sources import refuse_unknown_columns
from secondorder.errors import TableError

__all__ = ["rows_in_memory"]


def rows_in_memory(rows: pd.DataFrame | Iterable[Mapping[str, Any]], wanted: Sequence[str]) -> Rows:
    """Columns of a DataFrame or of records, every value as the text that ``DataFrame.to_csv`` writes for it.

    Raises
    ------
    TableError
        When a column is absent, a value has parts (a list, an object), or the rows are not rows.
    """
    if isinstance(rows, pd.DataFrame):
        return _rows_of_frame(rows, wanted)
    return _rows_of_records(rows, wanted)


def _rows_of_frame(frame: pd.DataFrame, wanted: Sequence[str]) -> Rows:
    name = "DataFrame"
    refuse_unknown_columns(wanted, [str(column) for column in frame.columns], name)
    by_name = {str(column): frame.iloc[:, position] for position, column in enumerate(frame.columns)}
    columns = {column: _column_of_series(by_name[column], column) for column in wanted}

    def place(positions: Sequence[int]) -> list[str]:
        return [f"row {position} (from 0)" for position in positions]

    return Rows(name, None, len(frame), columns, place)


def _column_of_series(series: pd.Series[Any], name: str) -> Column:
    """Distinct values are turned into text once each, unless values of different text compare as equal."""
    kind = series.dtype
    if isinstance(kind, pd.CategoricalDtype):
        codes, values = series.cat.codes.to_numpy(), series.cat.categories.tolist()
        codes = np.where(codes < 0, len(values), codes)
    elif isinstance(kind, np.dtype) and kind in (np.float64, np.float32, np.float16):
        # By bit pattern: 0.0 and -0.0 are equal and have different texts.
        codes, bits = pd.factorize(np.ascontiguousarray(series.to_numpy()).view(f"i{kind.itemsize}"))
        values = list(bits.view(kind))
    elif getattr(kind, "storage", "") == "pyarrow" or _inferred(series) in ("integer", "boolean"):
        codes, found = pd.factorize(series, use_na_sentinel=False)
        values = list(found)
    elif _inferred(series) == "string" and not series.hasnans:
        return column_of_texts(series.to_numpy(dtype=object))
    else:
        codes, values = np.arange(len(series)), list(series)
    labels = column_of_values([*values, None])
    if isinstance(labels, int):
        row = int(np.flatnonzero(codes == labels)[0])
        raise TableError(
            f"column {name!r} holds a {type(values[labels]).__name__}",
            place=f"DataFrame row {row} (from 0)",
            remedy="give a single value: text, a number, true, false or a missing value",
        )
    return Column(labels.codes[codes], labels.labels).used()


def _inferred(series: pd.Series[Any]) -> str:
    return str(pd.api.types.infer_dtype(series, skipna=True))


def _rows_of_records(rows: Iterable[Mapping[str, Any]], wanted: Sequence[str]) -> Rows:
    if isinstance(rows, str | bytes | Mapping) or not isinstance(rows, Iterable):
        raise TableError(
            f"rows cannot be taken from {type(rows).__name__}",
            place="rows",
            remedy="give a DataFrame or an iterable of mappings; for a file use read_table",
        )
    values: list[list[Any]] = [[] for _ in wanted]
    size = 0
    for size, record in enumerate(rows, start=1):
        if not isinstance(record, Mapping):
            raise TableError(
                f"this is a {type(record).__name__}, not a mapping",
                place=f"record {size - 1} (from 0)",
                remedy="give one mapping of column to value per call",
            )
        for column, key in zip(values, wanted, strict=True):
            if key not in record:
                refuse_unknown_columns([key], [str(name) for name in record], f"record {size - 1} (from 0)")
            column.append(record[key])
    columns = {key: _column_of_records(column, key) for key, column in zip(wanted, values, strict=True)}
    return Rows("records", None, size, columns, lambda positions: [f"record {row} (from 0)" for row in positions])


def _column_of_records(values: list[Any], name: str) -> Column:
    column = column_of_values(values)
    if isinstance(column, int):
        raise TableError(
            f"column {name!r} holds a {type(values[column]).__name__}",
            place=f"record {column} (from 0)",
            remedy="give a single value: text, a number, True, False or None",
        )
    return column
