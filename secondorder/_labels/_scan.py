"""Delimited text to columns: one strict definition, and a fast reader that agrees with it.

The definition is Python's ``csv`` module in strict mode: fields may be quoted, a quoted field may hold delimiters,
line ends and doubled quotes, nothing is stripped, blank lines are skipped, every row has as many fields as the header.
The fast reader finds all separators of a block with NumPy and compares fields eight bytes at a time, about ten times as
fast. It takes only text whose reading is beyond doubt (rectangular, quotes only where they belong); at anything else
it gives up, and the definition decides, with the line at fault.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from secondorder._labels._columns import Column, IntArray, column_of_texts
from secondorder.errors import TableError

__all__ = ["lines_of_rows", "read_exactly", "read_fast", "read_header"]

LF, CR, QUOTE = 10, 13, 34
BLOCK = 1 << 23
PADDING = b"\0" * 8
MOST_WORDS = 16
"""Fields beyond 16 words of 8 bytes are compared as Python bytes: labels are short, texts are rarely asked for."""

_KEEP = np.array([(1 << (8 * size)) - 1 for size in range(9)], dtype=np.uint64)
"""Bits of a word that belong to a field with 0 ... 8 bytes left (little-endian: the first byte is the lowest)."""


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
    start, end = data.find(b"\n") + 1, len(data.rstrip(b"\r\n"))
    head = data[:start].rstrip(b"\r\n")
    if start >= end or b"\r" in head or _only_row(head, delimiter) != list(header):
        return None
    width = len(header)
    padded = data[:end] + b"\n" + PADDING
    builders = [_Builder() for _ in wanted]
    for begin, stop in _blocks(padded, start, end + 1):
        separators = _separators(padded, begin, stop, ord(delimiter), width)
        if separators is None:
            return None
        for builder, position in zip(builders, wanted, strict=True):
            builder.add(padded, *_field(padded, begin, stop, separators, position))
    return [builder.column() for builder in builders]


def _only_row(line: bytes, delimiter: str) -> list[str] | None:
    """Fields of a line that is a complete row by itself."""
    try:
        (fields,) = csv.reader([line.decode("utf-8")], delimiter=delimiter, strict=True)
    except (csv.Error, ValueError):
        return None
    return fields


def _blocks(data: bytes, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Ranges of some megabytes that end with a row."""
    while start < end:
        stop = data.rfind(b"\n", start, min(start + BLOCK, end)) + 1 or data.find(b"\n", start, end) + 1
        inside = data.count(b'"', start, stop) % 2
        while inside and stop < end:
            further = data.find(b"\n", stop, end) + 1
            inside ^= data.count(b'"', stop, further) % 2
            stop = further
        yield start, stop
        start = stop


def _separators(data: bytes, begin: int, stop: int, delimiter: int, width: int) -> IntArray | None:
    """Position of the separator after every field, shape (rows, width); None unless all rows have `width` fields."""
    text = np.frombuffer(data, dtype=np.uint8, count=stop - begin, offset=begin)
    ends = text == LF
    ends |= text == delimiter
    if data.find(b'"', begin, stop) >= 0:
        quotes = text == QUOTE
        inside = (np.cumsum(quotes, dtype=np.uint8) & 1).astype(bool)
        ends &= ~inside
        if inside[-1] or not _quotes_belong(text, np.flatnonzero(quotes), delimiter):
            return None
    else:
        inside = None
    if data.find(b"\r", begin, stop) >= 0:
        returns = np.flatnonzero(text == CR)
        if inside is not None:
            returns = returns[~inside[returns]]
        # A carriage return that is not part of a line end may itself end a line.
        if (text[returns + 1] != LF).any():
            return None
    positions = np.flatnonzero(ends)
    if positions.size % width:
        return None
    table = positions.reshape(-1, width)
    if (text[table[:, -1]] != LF).any() or (text[table[:, :-1]] != delimiter).any():
        return None
    return table


def _quotes_belong(text: NDArray[np.uint8], quotes: IntArray, delimiter: int) -> bool:
    """Whether quotes open only at the start of a field, close only at its end, and are doubled within."""
    opening, closing = quotes[::2], quotes[1::2]
    before = text[np.maximum(opening - 1, 0)]
    after = text[closing + 1]
    opens = (opening == 0) | (before == LF) | (before == delimiter) | (before == QUOTE)
    closes = (after == LF) | (after == delimiter) | (after == QUOTE) | (after == CR)
    return bool(opens.all() and closes.all())


def _field(
    data: bytes, begin: int, stop: int, separators: IntArray, position: int
) -> tuple[int, int, IntArray, IntArray]:
    """Start and length of one field in every row, without line end and quotes."""
    text = np.frombuffer(data, dtype=np.uint8, count=stop - begin, offset=begin)
    ends = separators[:, position]
    if position:
        starts = separators[:, position - 1] + 1
    else:
        starts = np.empty(len(separators), dtype=np.int64)
        starts[0] = 0
        starts[1:] = separators[:-1, -1] + 1
    if position == separators.shape[1] - 1 and data.find(b"\r", begin, stop) >= 0:
        ends = ends - (text[np.maximum(ends - 1, 0)] == CR)
    if data.find(b'"', begin, stop) >= 0:
        quoted = text[starts] == QUOTE
        starts, ends = starts + quoted, ends - quoted
    return begin, stop, starts, ends - starts


class _Builder:
    """Codes of a column, block by block, with one dictionary of its labels."""

    def __init__(self) -> None:
        self.codes: list[IntArray] = []
        self.known: dict[bytes, int] = {}

    def add(self, data: bytes, begin: int, stop: int, starts: IntArray, lengths: IntArray) -> None:
        codes, first = _distinct(data, begin, stop, starts, lengths)
        places = (begin + starts[first]).tolist()
        sizes = lengths[first].tolist()
        known = self.known
        labels = [data[place : place + size] for place, size in zip(places, sizes, strict=True)]
        numbers = np.array([known.setdefault(label, len(known)) for label in labels], dtype=np.int32)
        self.codes.append(numbers[codes])

    def column(self) -> Column:
        # Quotes stand in a label only when its field was quoted, and there all are doubled: labels stay distinct.
        labels = tuple(label.replace(b'""', b'"').decode("utf-8") for label in self.known)
        return Column(np.concatenate(self.codes), labels)


def _distinct(data: bytes, begin: int, stop: int, starts: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Codes of byte strings in a block, and the first row of each code."""
    words_per_field = -(-int(lengths.max()) // 8)
    if words_per_field > MOST_WORDS:
        return _distinct_by_object(data, begin, starts, lengths)
    # Every position of the block as the start of an unaligned 8-byte word.
    words = np.ndarray(shape=(stop - begin,), dtype="<u8", buffer=data, offset=begin, strides=(1,))
    keys = words[starts] & _KEEP[np.minimum(lengths, 8)]
    for word in range(1, words_per_field):
        rows = np.flatnonzero(lengths > 8 * word)
        mixed = keys[rows]
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        keys[rows] = mixed ^ _word(words, starts[rows], lengths[rows], word)
    codes, found = pd.factorize(keys)
    first = np.empty(len(found), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    # Keys of longer fields are hashes: every field is compared with the one that it stands for.
    same = words_per_field <= 1 or bool((lengths == lengths[first][codes]).all())
    for word in range(words_per_field if words_per_field > 1 else 0):
        rows = np.flatnonzero(lengths > 8 * word)
        if same:
            alike = first[codes[rows]]
            same = bool(
                (
                    _word(words, starts[rows], lengths[rows], word) == _word(words, starts[alike], lengths[alike], word)
                ).all()
            )
    return (codes, first) if same else _distinct_by_object(data, begin, starts, lengths)


def _word(words: NDArray[np.uint64], starts: IntArray, lengths: IntArray, word: int) -> NDArray[np.uint64]:
    return words[starts + 8 * word] & _KEEP[np.minimum(lengths - 8 * word, 8)]


def _distinct_by_object(data: bytes, begin: int, starts: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    fields = np.empty(len(starts), dtype=object)
    fields[:] = [
        data[begin + start : begin + start + size]
        for start, size in zip(starts.tolist(), lengths.tolist(), strict=True)
    ]
    codes, found = pd.factorize(fields)
    first = np.empty(len(found), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return codes, first
