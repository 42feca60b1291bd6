"""Text columns as whole numbers: what stands in a table, exactly as it stands there.

A column is its distinct labels and one code per row. Everything after reading works on codes, so the cost of text is
paid once per distinct label.
"""

from __future__ import annotations

import datetime
import decimal
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from secondorder._canon import join_key

__all__ = [
    "Column",
    "Rows",
    "as_numbers",
    "column_of_texts",
    "column_of_values",
    "natural_order",
    "plain_text",
    "shown",
    "split_key",
    "stack",
]

IntArray = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Column:
    """Distinct labels of a column, and the label of every row as a position among them.

    Attributes
    ----------
    codes : array of int, shape (rows,)
    labels : tuple of str
        Distinct, in any order; each occurs in some row.
    """

    codes: IntArray
    labels: tuple[str, ...]

    def sorted(self) -> Column:
        """The same column with its labels in natural order."""
        order = natural_order(self.labels)
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        return Column(rank[self.codes], tuple(self.labels[position] for position in order))

    def used(self) -> Column:
        """The same column without labels that occur in no row."""
        kept = np.flatnonzero(np.bincount(self.codes, minlength=len(self.labels)))
        rank = np.zeros(len(self.labels), dtype=np.int32)
        rank[kept] = np.arange(len(kept), dtype=np.int32)
        return Column(rank[self.codes], tuple(self.labels[position] for position in kept))

    def take(self, rows: IntArray) -> Column:
        """The column of some of the rows."""
        return Column(self.codes[rows], self.labels).used()


@dataclass(frozen=True)
class Rows:
    """The columns that were asked for, and how to name a row to the person who has to repair it.

    Attributes
    ----------
    name : str
        Name of the file or object.
    sha256 : str or None
        Hash of the file's bytes; None for rows in memory.
    size : int
        Number of rows.
    columns : mapping of str to Column
    place : callable
        Positions of rows (from 0) to the words that name them, such as ``line 7``.
    """

    name: str
    sha256: str | None
    size: int
    columns: Mapping[str, Column]
    place: Callable[[Sequence[int]], list[str]]


_DIGITS = re.compile("([0-9]+)")
_WHOLE = re.compile("0|-?[1-9][0-9]{0,17}")
# A float keeps whole numbers of 15 digits; of more it would lose some.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _natural_key(label: str) -> tuple[list[Any], str]:
    # Text and digit runs alternate, so that equal positions compare like with like; digits compare by length first,
    # which is the order of whole numbers of any size.
    parts: list[Any] = _DIGITS.split(label)
    for position in range(1, len(parts), 2):
        digits = parts[position].lstrip("0")
        parts[position] = (len(digits), digits)
    return parts, label


def as_numbers(labels: Sequence[str]) -> NDArray[Any]:
    """Texts as whole numbers or floats where every one is a number as programs write it; else as they are.

    An empty text among numbers is NaN. ``007`` is no number: it is not what ``str(7)`` writes. Different texts stay
    different: where two of them are one number (``1.1`` and ``1.10``), none is a number.

    Examples
    --------
    >>> as_numbers(["12", "-3"]), as_numbers(["1.5", ""]), as_numbers(["007", "8"])
    (array([12, -3]), array([1.5, nan]), array(['007', '8'], dtype=object))
    """
    if labels and all(_WHOLE.fullmatch(label) for label in labels):
        return np.array([int(label) for label in labels], dtype=np.int64)
    if any(labels) and all(not label or _NUMBER.fullmatch(label) for label in labels):
        values = {label: float(label) if label else np.nan for label in labels}
        if len(set(values.values())) == len(values) and not any(map(np.isinf, values.values())):
            return np.array([values[label] for label in labels], dtype=np.float64)
    array = np.empty(len(labels), dtype=object)
    array[:] = list(labels)
    return array


def natural_order(labels: Sequence[str]) -> IntArray:
    """Positions of distinct labels in natural order: runs of digits compare as numbers, the rest as text.

    Examples
    --------
    >>> labels = ["q10", "q9", "q09", "Q1"]
    >>> [labels[i] for i in natural_order(labels)]
    ['Q1', 'q09', 'q9', 'q10']
    """
    fast = _order_by_number(labels)
    if fast is not None:
        return fast
    return np.array(sorted(range(len(labels)), key=lambda position: _natural_key(labels[position])), dtype=np.int64)


def _order_by_number(labels: Sequence[str]) -> IntArray | None:
    """Natural order of labels that differ in one final number only (item_1, item_2, ...), else None."""
    if not labels:
        return np.empty(0, dtype=np.int64)
    first, last = min(labels), max(labels)
    common = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    start = len(first[:common].rstrip("0123456789"))
    tails = [label[start:] for label in labels]
    joined = "".join(tails)
    if not all(tails) or not (joined.isascii() and joined.isdigit()) or max(map(len, tails)) > 18:
        return None
    values = np.array(tails).astype(np.int64)
    order = np.argsort(values, kind="stable")
    same = np.diff(values[order]) == 0
    return None if same.any() else order


def stack(columns: Sequence[Column]) -> Column:
    r"""One column from the parts of a composite key, sorted part by part in natural order.

    Examples
    --------
    >>> first, second = Column(np.array([0, 1]), ("b", "a")), Column(np.array([0, 0]), ("x:1",))
    >>> stack([first, second])
    Column(codes=array([1, 0]), labels=('a:x\\:1', 'b:x\\:1'))
    """
    if len(columns) == 1:
        return columns[0].sorted()
    parts = [column.sorted() for column in columns]
    codes: IntArray = parts[0].codes.astype(np.int64)
    keys: list[tuple[str, ...]] = [(label,) for label in parts[0].labels]
    for part in parts[1:]:
        size = len(part.labels)
        codes, found = pd.factorize(codes * size + part.codes, sort=True)
        keys = [(*keys[value // size], part.labels[value % size]) for value in found.tolist()]
    return Column(codes, tuple(join_key(key) for key in keys))


def split_key(key: str, parts: int) -> tuple[str, ...]:
    r"""The parts of a composite key: the inverse of :func:`secondorder._canon.join_key`.

    Examples
    --------
    >>> split_key(join_key(["a:b", "c\\"]), 2)
    ('a:b', 'c\\')
    """
    if parts == 1:
        return (key,)
    found = [""]
    letters = iter(key)
    for letter in letters:
        if letter == "\\":
            found[-1] += next(letters, "")
        elif letter == ":":
            found.append("")
        else:
            found[-1] += letter
    return tuple(found)


def shown(label: str, most: int = 60) -> str:
    """A label as a message may hold it: short, on one line, without control characters.

    Examples
    --------
    >>> shown("q1"), shown(""), shown(" A"), shown("a" * 100, most=10)
    ('q1', "''", "' A'", "'aaaaaaaaaa'... (100 characters)")
    """
    if label and label == label.strip() and label.isprintable() and len(label) <= most:
        return label
    return repr(label) if len(label) <= most else f"{label[:most]!r}... ({len(label)} characters)"


def plain_text(value: Any) -> str | None:
    """A single value as the text that ``DataFrame.to_csv`` writes for it; None for a value with parts.

    Missing values (None, NaN, NaT, NA) are the empty string.

    Examples
    --------
    >>> [plain_text(value) for value in ("007", 7, 7.0, True, None, float("nan"), [1])]
    ['007', '7', '7.0', 'True', '', '', None]
    """
    if isinstance(value, str):
        return str(value)
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, numbers.Number | np.generic | decimal.Decimal | datetime.date | datetime.time):
        if isinstance(value, np.void | np.bytes_):
            return None
        # Only a missing value differs from itself.
        return "" if value != value else str(value)
    return None


def column_of_values(values: Iterable[Any]) -> Column | int:
    """Column of plain values; the position of the first value that has parts, if there is one."""
    texts: list[str] = []
    for position, value in enumerate(values):
        text = plain_text(value)
        if text is None:
            return position
        texts.append(text)
    return column_of_texts(texts)


def column_of_texts(texts: Sequence[str] | NDArray[np.object_]) -> Column:
    """Column of texts."""
    # One value that is no text keeps pandas 2 from its table of C strings, to which "A" and "A\0" are the same.
    array = np.empty(len(texts) + 1, dtype=object)
    array[:-1] = texts
    codes, labels = pd.factorize(array)
    return Column(codes[:-1].astype(np.int32), tuple(map(str, labels.tolist())))
