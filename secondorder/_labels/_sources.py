"""Files to bytes, and bytes to text columns: CSV, TSV, JSON lines and Parquet, plain or gzipped, or standard input."""

from __future__ import annotations

import difflib
import gzip
import hashlib
import io
import json
import os
import sys
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from secondorder._labels._columns import Column, Rows, column_of_texts, column_of_values, shown
from secondorder._labels._scan import lines_of_rows, read_exactly, read_fast, read_header
from secondorder.errors import InputError, TableError

__all__ = ["read_rows", "refuse_unknown_columns"]

FORMATS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".parquet": "parquet"}
READABLE = ".csv .tsv .jsonl .parquet, each also .gz, or - for CSV on standard input"
NEAR = 0.65
WIDE = 4096
PIECE = 1 << 24
# Rows of calls pack to a tenth or a hundredth of their size; what packs further is made to fill the memory.
LARGE, MOST_PACKED = 1 << 28, 300
DELIMITERS = {"csv": ",", "tsv": "\t"}
MAGIC = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "a zip archive (perhaps a spreadsheet)",
    b"PAR1": "Parquet",
    b"\x89HDF": "HDF5 (perhaps a cube)",
    b"CDF": "NetCDF (perhaps a cube)",
    b"\xff\xfe\0\0": "UTF-32 text",
    b"\0\0\xfe\xff": "UTF-32 text",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}


def read_rows(path: str | os.PathLike[str] | IO[Any], wanted: Sequence[str] | None) -> Rows:
    """Read the columns `wanted` (None: all of them) as text, exactly as it stands in the file.

    Raises
    ------
    InputError
        When there is no such file, it cannot be opened, or its format is none of those that are read.
    TableError
        When it is not a table of that format, or lacks a column.
    """
    name, kind, stored = _fetch(path)
    digest = hashlib.sha256(stored).hexdigest()
    data, kind = _decompressed(stored, kind, name)
    if kind == "parquet":
        return _read_parquet(data, wanted, name, digest)
    data = _checked_text(data, kind, name)
    if kind == "jsonl":
        return _read_json_lines(data, wanted, name, digest)
    return _read_delimited(data, wanted, DELIMITERS[kind], name, digest)


def refuse_unknown_columns(wanted: Sequence[str], columns: Sequence[str], name: str) -> None:
    """Refuse a column that the table lacks or has twice."""
    for column in wanted:
        if column not in columns:
            near = difflib.get_close_matches(column, columns, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            other = next((mark for mark in (";", "\t", ",", "|") if len(columns) == 1 and mark in columns[0]), None)
            if other is not None:
                hint = f"the header looks separated by {other!r}: .csv means ',' and .tsv means a tab; "
            raise TableError(
                f"there is no column {column!r}", place=name, remedy=f"{hint}its columns: {_listed(columns)}"
            )
        if list(columns).count(column) > 1:
            raise TableError(
                f"two columns are called {column!r}", place=name, remedy="rename one of them in the header"
            )


def _listed(names: Sequence[str], most: int = 20) -> str:
    listed = ", ".join(shown(name) for name in names[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


def _fetch(path: str | os.PathLike[str] | IO[Any]) -> tuple[str, str, bytes]:
    """Name, suffixes and bytes of the input."""
    if not isinstance(path, str | os.PathLike):
        return _fetch_stream(path)
    if path == "-":
        stream = getattr(sys.stdin, "buffer", None)
        if stream is None:
            raise InputError("there is nothing to read from", place="stdin", remedy="pipe a CSV in, or name a file")
        return "stdin", ".csv", stream.read()
    file = Path(path)
    kind = _kind_of(file.name)
    try:
        return file.name, kind, file.read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file", place=str(file), remedy=_nearest(file)) from None
    except IsADirectoryError:
        raise InputError("this is a folder", place=str(file), remedy=f"give a file: {READABLE}") from None
    except OSError as fault:
        raise InputError(
            f"the file cannot be read ({fault.strerror})", place=str(file), remedy="check its permissions"
        ) from None


def _nearest(file: Path) -> str:
    """A file beside `file` that may be meant. What all names share, the suffix, says nothing of how near they are."""
    try:
        beside = {name.partition(".")[0]: name for name in sorted(os.listdir(file.parent))}
    except OSError:
        return "check the path"
    near = difflib.get_close_matches(file.name.partition(".")[0], beside, n=1, cutoff=NEAR)
    return f"did you mean {beside[near[0]]!r}?" if near else "check the path"


def _fetch_stream(stream: Any) -> tuple[str, str, bytes]:
    if not hasattr(stream, "read"):
        raise InputError(
            f"a table cannot be read from {type(stream).__name__}",
            place="path",
            remedy="give a path or an open file; for rows in memory use make_cube",
        )
    label = getattr(stream, "name", None)
    name = Path(label).name if isinstance(label, str) else "stream"
    kind = _kind_of(name) if isinstance(label, str) and Path(label).suffix else ".csv"
    content = stream.read()
    return name, kind, content.encode("utf-8", "surrogatepass") if isinstance(content, str) else bytes(content)


def _kind_of(name: str) -> str:
    lower = name.lower()
    stem, zipped = (lower[:-3], ".gz") if lower.endswith(".gz") else (lower, "")
    suffix = os.path.splitext(stem)[1]
    if suffix not in FORMATS:
        hint = "save it as CSV" if suffix in (".xlsx", ".xls", ".ods") else "rename or convert it"
        if suffix == ".json":
            hint = "write one JSON object per line and name it .jsonl"
        raise InputError(
            f"tables are not read from {suffix + zipped or 'files without a suffix'}",
            place=name,
            remedy=f"{hint}; read are {READABLE}",
        )
    return suffix + zipped


def _decompressed(stored: bytes, kind: str, name: str) -> tuple[bytes, str]:
    suffix, zipped, _ = kind.partition(".gz")
    if not zipped:
        return stored, FORMATS[suffix]
    try:
        return _unpacked(stored, name), FORMATS[suffix]
    except EOFError:
        problem, remedy = "the gzip stream ends early: the file is cut short", "copy or export it again"
    except (OSError, zlib.error) as fault:
        zipped_at_all = stored.startswith(b"\x1f\x8b")
        problem = f"the gzip stream is damaged ({fault})" if zipped_at_all else "this is not a gzip file"
        remedy = "copy or export it again" if zipped_at_all else "drop .gz from its name, or compress it with gzip"
    raise TableError(problem, place=name, remedy=remedy)


def _unpacked(stored: bytes, name: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    with gzip.GzipFile(fileobj=io.BytesIO(stored)) as stream:
        while part := stream.read(PIECE):
            parts.append(part)
            size += len(part)
            if size > LARGE and size > MOST_PACKED * len(stored):
                raise TableError(
                    f"{len(stored):,} bytes unpack to more than {size:,}",
                    place=name,
                    remedy="no table packs so well; unpack it first if it is one",
                )
    return b"".join(parts)


def _checked_text(data: bytes, kind: str, name: str) -> bytes:
    """The bytes of UTF-8 text without its byte order mark."""
    for magic, what in MAGIC.items():
        if data.startswith(magic):
            remedy = "save it as UTF-8" if "text" in what else "give the file the suffix of its real format"
            raise TableError(f"this is {what}, not {kind.upper()}", place=name, remedy=remedy)
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.isascii():
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as fault:
            line = data.count(b"\n", 0, fault.start) + 1
            raise TableError(
                f"byte {fault.start} (0x{data[fault.start]:02x}) is not UTF-8",
                place=f"{name} line {line}",
                remedy="save the file as UTF-8",
            ) from None
    null = data.find(b"\0")
    if null >= 0:
        line = data.count(b"\n", 0, null) + 1
        # Latin letters in UTF-16 have a NUL on one side each: then most of the beginning is such pairs.
        wide = 4 * data[:WIDE].count(b"\0") >= len(data[:WIDE])
        remedy = "it looks like UTF-16 or UTF-32: save it as UTF-8" if wide else "remove the NUL bytes; text has none"
        raise TableError(f"byte {null} is NUL (0x00)", place=f"{name} line {line}", remedy=remedy)
    if not data or data.isspace():
        raise TableError("the file is empty", place=name, remedy="give one row per call")
    return data


def _read_delimited(data: bytes, wanted: Sequence[str] | None, delimiter: str, name: str, digest: str) -> Rows:
    header = read_header(data, delimiter, name)
    wanted = header if wanted is None else wanted
    refuse_unknown_columns(wanted, header, name)
    positions = [header.index(column) for column in wanted]
    columns = read_fast(data, delimiter, header, positions)
    if columns is None:
        columns = read_exactly(data, delimiter, positions, name)

    def place(rows: Sequence[int]) -> list[str]:
        return [f"line {line}" for line in lines_of_rows(data, delimiter, rows, name)]

    return _rows(name, digest, dict(zip(wanted, columns, strict=True)), place)


def _rows(name: str, digest: str | None, columns: dict[str, Column], place: Any) -> Rows:
    size = len(next(iter(columns.values())).codes)
    return Rows(name, digest, size, columns, place)


def _read_json_lines(data: bytes, wanted: Sequence[str] | None, name: str, digest: str) -> Rows:
    decoder = json.JSONDecoder(
        parse_int=str, parse_float=str, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys
    )
    # Without names asked for, the first row has them all: a table, not a list of what each row happens to have.
    texts = dict[str, list[str]]()
    lines: list[int] = []
    for number, raw in enumerate(data.split(b"\n"), start=1):
        if not raw.strip():
            continue
        place = f"{name} line {number}"
        try:
            record = decoder.decode(raw.decode("utf-8"))
        except (ValueError, RecursionError) as fault:
            why = f"{fault.msg} at column {fault.colno}" if isinstance(fault, json.JSONDecodeError) else str(fault)
            raise TableError(
                f"this is not JSON ({why})", place=place, remedy="write one complete JSON object per line"
            ) from None
        if not isinstance(record, dict):
            raise TableError(
                f"this is a {'list' if isinstance(record, list) else 'single value'}, not an object",
                place=place,
                remedy='write one object per line: {"column": "value", ...}',
            )
        if not lines:
            names = list(record) if wanted is None else wanted
            if not names:
                raise TableError("the object is empty", place=place, remedy="write one object per row")
            refuse_unknown_columns(names, list(record), place)
            texts = {key: [] for key in names}
        lines.append(number)
        for key, column in texts.items():
            column.append(_json_text(record, key, place))
        if wanted is None and len(record) > len(texts):
            late = next(key for key in record if key not in texts)
            raise TableError(f"{late!r} is not in the rows before", place=place, remedy="write null in them")
    columns = {key: column_of_texts(column) for key, column in texts.items()}
    return _rows(name, digest, columns, lambda rows: [f"line {lines[row]}" for row in rows])


_JSON_WORDS = {None: "", True: "true", False: "false"}


def _json_text(record: dict[str, Any], key: str, place: str) -> str:
    if key not in record:
        raise TableError(f"there is no {key!r}", place=place, remedy="write null where there is no value")
    value = record[key]
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        kind = "an object" if isinstance(value, dict) else "a list"
        raise TableError(
            f"{key!r} holds {kind}", place=place, remedy="write a single value: text, a number, true, false or null"
        )
    return _JSON_WORDS[value]


def _refuse_constant(word: str) -> str:
    raise ValueError(f"{word} is not a JSON value")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {twice!r} stands twice")
    return record


def _read_parquet(data: bytes, wanted: Sequence[str] | None, name: str, digest: str) -> Rows:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise InputError(
            "reading Parquet needs pyarrow", place=name, remedy="pip install 'secondorder[parquet]'"
        ) from None
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        wanted = file.schema_arrow.names if wanted is None else wanted
        refuse_unknown_columns(wanted, file.schema_arrow.names, name)
        table = file.read(columns=list(dict.fromkeys(wanted)))
    except (pa.ArrowException, OSError) as fault:
        raise TableError(
            f"this is not a readable Parquet file ({fault})", place=name, remedy="export it again"
        ) from None
    columns = {column: _parquet_column(table.column(column), f"{name} column {column}") for column in wanted}
    return _rows(name, digest, columns, lambda rows: [f"row {row + 1}" for row in rows])


def _parquet_column(values: Any, place: str) -> Column:
    import numpy as np
    import pyarrow as pa

    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise TableError(f"values of type {kind} are not text", place=place, remedy="write a single value per cell")
    encoded = values.combine_chunks().dictionary_encode() if not pa.types.is_dictionary(values.type) else values
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    words = encoded.dictionary
    # Single-precision numbers are written with the digits that they have, as DataFrame.to_csv writes them.
    plain = words.to_numpy(zero_copy_only=False) if pa.types.is_floating(kind) else words.to_pylist()
    labels = column_of_values([*plain, None])
    if isinstance(labels, int):
        raise TableError(f"values of type {kind} are not text", place=place, remedy="write a single value per cell")
    codes = encoded.indices.fill_null(len(plain)).to_numpy(zero_copy_only=False).astype(np.int64)
    return Column(labels.codes[codes], labels.labels).used()
