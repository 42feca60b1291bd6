"""Delimited text to columns: one strict definition, and pandas where the two cannot differ.

The definition is Python's ``csv`` module in strict mode: fields may be quoted, a quoted field may hold delimiters,
line ends and doubled quotes, nothing is stripped, blank lines are skipped, every row has as many fields as the header.
pandas reads several times as fast, but fills short rows and takes quotes that do not belong: it gets the tables without
quotes, and its reading stands when the number of delimiters proves that every row was complete. At anything else the
definition decides, with the line at fault.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pandas as pd

from secondorder._labels._columns import Column, column_of_texts
from secondorder.errors import TableError

__all__ = ["lines_of_rows", "read_exactly", "read_fast", "read_header"]


@contextmanager
def _fields_of_any_size(size: int) -> Iterator[None]:
    before = csv.field_size_limit(max(size, csv.field_size_limit()))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _records(data: bytes, delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Every row that is not blank, with the number of the line on which it begins."""
    reader = csv.reader(
        io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline=""), delimiter=delimiter, strict=True
    )
    while True:
        line = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as fault:
            raise TableError(
                f"the quotes do not close ({fault})",
                place=f"{name} line {line}",
                remedy='double a quote inside a quoted field ("") and end the field with a quote',
            ) from None
        if fields:
            yield line, fields


def read_header(data: bytes, delimiter: str, name: str) -> list[str]:
    """Names in the first row that is not blank."""
    with _fields_of_any_size(len(data)):
        for _, fields in _records(data, delimiter, name):
            return fields
    raise TableError("the table is empty", place=name, remedy="give a header line and one row per call")


def read_exactly(data: bytes, delimiter: str, wanted: Sequence[int], name: str) -> list[Column]:
    """Columns at the positions `wanted`, by the definition.

    Raises
    ------
    TableError
        At a row with too few or too many fields, or with quotes that do not close.
    """
    texts: list[list[str]] = [[] for _ in wanted]
    with _fields_of_any_size(len(data)):
        records = _records(data, delimiter, name)
        _, header = next(records)
        for line, fields in records:
            if len(fields) != len(header):
                raise TableError(
                    f"{len(fields)} field{'s' * (len(fields) != 1)} where the header has {len(header)}",
                    place=f"{name} line {line}",
                    remedy=f"complete the row, or quote the fields that hold {delimiter!r}",
                )
            for column, position in zip(texts, wanted, strict=True):
                column.append(fields[position])
    return [column_of_texts(column) for column in texts]


def lines_of_rows(data: bytes, delimiter: str, rows: Sequence[int], name: str) -> list[int]:
    """Line on which each of some rows begins (the header is line 1 unless blank lines precede it)."""
    wanted, lines = set(rows), dict[int, int]()
    with _fields_of_any_size(len(data)):
        for row, (line, _) in enumerate(_records(data, delimiter, name), start=-1):
            if row in wanted:
                lines[row] = line
                if len(lines) == len(wanted):
                    break
    return [lines[row] for row in rows]


def read_fast(data: bytes, delimiter: str, header: Sequence[str], wanted: Sequence[int]) -> list[Column] | None:
    """Columns at the positions `wanted` of a table with this header; None where the definition has to decide."""
    # A quote, a NUL, or a carriage return that may itself end a line: pandas and the definition can differ.
    if b'"' in data or b"\0" in data or data.count(b"\r") != data.count(b"\r\n"):
        return None
    try:
        table = pd.read_csv(
            io.BytesIO(data),
            sep=delimiter,
            # The header is read as a row: it sets the width, and a longer row is an error.
            header=None,
            dtype=str,
            na_filter=False,
            quoting=csv.QUOTE_NONE,
            skip_blank_lines=False,
            encoding="utf-8",
        )
    except (ValueError, pd.errors.ParserError):
        return None
    # No row is longer than the header, so the number of delimiters shows that none is shorter.
    if table.shape[1] != len(header) or data.count(delimiter.encode()) != len(table) * (len(header) - 1):
        return None
    return [_column(table[position].iloc[1:]) for position in wanted]


def _column(series: pd.Series[str]) -> Column:
    codes, labels = pd.factorize(series)
    return Column(codes.astype(np.int32), tuple(map(str, labels.tolist())))
