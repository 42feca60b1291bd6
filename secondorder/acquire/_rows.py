"""Rows of ``.jsonl``, ``.csv``, ``.tsv`` and ``.parquet`` files as text, exactly as it stands.

Nothing is stripped or cast: a number keeps its digits, JSON null and an empty cell are the empty string.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from secondorder.errors import TableError

__all__ = ["read_rows"]

Row = tuple[int, Mapping[str, str]]
"""Row number, as an editor or a spreadsheet counts (a header is row 1), and the fields."""


def read_rows(path: Path) -> Iterator[Row]:
    """Rows of a file, by its suffix.

    Fields of JSON and Parquet that hold lists or tables have no text: they are left out, so naming one reads as a
    missing field.

    Raises
    ------
    TableError
        When the file cannot be read; on a broken, ragged or repeated row or column. The message names the row.
    """
    readers = {".jsonl": _jsonl, ".csv": _csv, ".tsv": _tsv, ".parquet": _parquet}
    try:
        yield from readers[path.suffix.lower()](path)
    except OSError as error:
        raise TableError(
            f"cannot be read: {(error.strerror or str(error)).lower()}",
            place=str(path),
            remedy="items.file is relative to the folder of audit.toml",
        ) from None


def _decode(line: bytes, place: str) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise TableError(f"byte {error.start} is not UTF-8", place=place, remedy="save the file as UTF-8") from None


def _jsonl(path: Path) -> Iterator[Row]:
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            place = f"{path} row {number}"
            text = _decode(line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line, place)
            if text.strip():
                yield number, _object(text, place)


def _object(text: str, place: str) -> dict[str, str]:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(found)
        if len(table) < len(found):
            names = [name for name, _ in found]
            again = next(name for name in names if names.count(name) > 1)
            raise TableError(f"field '{again}' stands twice", place=place, remedy="name each field once")
        return table

    try:
        row = json.loads(text, object_pairs_hook=pairs, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"is not JSON: {error}", place=place, remedy="write one JSON object per line") from None
    if not isinstance(row, dict):
        raise TableError("is not a JSON object", place=place, remedy='write {"id": …} on every line')
    fields = {name: _text(value) for name, value in row.items() if not isinstance(value, list | dict)}
    for name, value in fields.items():
        if any("\ud800" <= char <= "\udfff" for char in value):
            raise TableError(f"field '{name}' holds half of a surrogate pair", place=place, remedy="mend the escape")
    return fields


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _csv(path: Path) -> Iterator[Row]:
    return _delimited(path, ",")


def _tsv(path: Path) -> Iterator[Row]:
    return _delimited(path, "\t")


def _delimited(path: Path, delimiter: str) -> Iterator[Row]:
    before = csv.field_size_limit(2**31 - 1)
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            yield from _records(csv.reader(lines, delimiter=delimiter, strict=True), str(path))
    except UnicodeDecodeError as error:
        raise TableError(f"byte {error.start} is not UTF-8", place=str(path), remedy="save the file as UTF-8") from None
    finally:
        csv.field_size_limit(before)


def _records(reader: Any, path: str) -> Iterator[Row]:
    header: list[str] | None = None
    number = 0
    while True:
        number += 1
        place = f"{path} row {number}"
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise TableError(f"is not a table row: {error}", place=place, remedy="check its quotation marks") from None
        if header is None:
            header = record
            for name in header:
                if header.count(name) > 1:
                    raise TableError(f"column '{name}' stands twice", place=place, remedy="name each column once")
        elif record:
            if len(record) != len(header):
                raise TableError(
                    f"has {len(record)} cells, the header has {len(header)}",
                    place=place,
                    remedy="check its separators and quotation marks",
                )
            yield number, dict(zip(header, record, strict=True))


def _parquet(path: Path) -> Iterator[Row]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise TableError(
            "reading Parquet needs pyarrow", place=str(path), remedy="pip install 'secondorder[parquet]'"
        ) from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    number += 1
                    yield (
                        number,
                        {name: _text(value) for name, value in row.items() if not isinstance(value, list | dict)},
                    )
    except pyarrow.ArrowException as error:
        raise TableError(f"is not a Parquet file: {error}", place=str(path), remedy="check the file") from None
