"""Plain data that every result can turn into: tables for a terminal, sections for a report.

A result object stays small and frozen; how it looks is decided here once. Nothing in this module computes.
"""

from __future__ import annotations

import math
import re
import textwrap
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TypeVar

from secondorder._visible import visible

__all__ = ["Figure", "Section", "Table", "format_number", "plain", "printed", "render_table"]

Cell = str | int | float | None
LEAST_TEXT_WIDTH = 8
T = TypeVar("T")


def printed(result: type[T]) -> type[T]:
    """Class decorator: objects are shown as they print, so that a notebook's last line reads like ``print`` of it.

    Without it a dataclass shows every array that it holds.
    """

    def shown(self: T) -> str:
        return str(self)

    result.__repr__ = shown  # type: ignore[assignment,method-assign]
    return result


@printed
@dataclass(frozen=True)
class Table:
    """A table of text and numbers.

    Attributes
    ----------
    title : str
        One line above the table; may be empty.
    columns : tuple of str
        Headings.
    rows : tuple of tuple
        Cells: text, whole numbers, floats (NaN and None show as ``–``).
    notes : tuple of str
        Lines below the table.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return render_table(self)


@dataclass(frozen=True)
class Figure:
    """A drawn figure for the report.

    Attributes
    ----------
    title : str
    svg : str
        One ``<svg>`` element.
    caption : str
        What is shown, and which randomness its bars cover.
    """

    title: str
    svg: str
    caption: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the report as plain data: the report lays it out and computes nothing."""

    title: str
    text: str = ""
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = field(default=())


def plain(value: float) -> float | None:
    """A number as JSON has it: None where it is undefined."""
    return None if math.isnan(value) else value


def format_number(value: Cell, digits: int = 4) -> str:
    """A cell as text: whole numbers as they are, floats with `digits` decimals, ``–`` where undefined.

    Examples
    --------
    >>> format_number(0.0277193), format_number(float("nan")), format_number(12), format_number(-0.00001)
    ('0.0277', '–', '12', '0.0000')
    """
    if value is None:
        return "–"
    if isinstance(value, float):
        if math.isnan(value):
            return "–"
        if math.isinf(value):
            return "∞" if value > 0 else "-∞"
        text = f"{value:.{digits}f}"
        # A minus sign before zeros alone says nothing that the digits shown can support.
        return text[1:] if text.startswith("-") and not text.strip("-0.") else text
    return str(value)


def render_table(table: Table, *, width: int = 80, digits: int = 4, wrap: bool = False) -> str:
    """A table as aligned text that fits `width` columns where its numbers allow it.

    When the table is too wide, text columns are cut with an ellipsis, or with `wrap` go on on the next line; numbers,
    with their errors or without, are never cut.

    Examples
    --------
    >>> print(render_table(Table("", ("component", "estimate"), (("call", 0.25), ("prompt", -0.0012)))))
    component  estimate
    call         0.2500
    prompt      -0.0012
    """
    body = [[_shown(format_number(cell, digits)) for cell in row] for row in table.rows]
    columns = [_shown(name) for name in table.columns]
    numeric = [bool(table.rows) and all(not isinstance(row[j], str) for row in table.rows) for j in range(len(columns))]
    firm = [numeric[j] or all(_NUMBER.fullmatch(row[j]) for row in body) for j in range(len(columns))]
    widths = [max([_width(name), *(_width(row[j]) for row in body)]) for j, name in enumerate(columns)]
    excess = sum(widths) + 2 * (len(widths) - 1) - width
    # The widest text column gives way first, one character at a time, so that several end up equally wide.
    while excess > 0:
        widest = max((j for j in range(len(widths)) if not firm[j]), key=lambda j: widths[j], default=None)
        if widest is None or widths[widest] <= LEAST_TEXT_WIDTH:
            break
        widths[widest] -= 1
        excess -= 1
    lines = [visible(table.title, keep="\n")] if table.title else []
    lines.append(_line(columns, widths, numeric))
    for row in body:
        parts = [textwrap.wrap(cell, at) if wrap else [cell] for cell, at in zip(row, widths, strict=True)]
        lines.extend(_line(cells, widths, numeric) for cells in zip_longest(*parts, fillvalue=""))
    for note in table.notes:
        lines.extend(textwrap.wrap(_shown(note), width, subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(lines)


_NUMBER = re.compile(r"(?:[+±−-]?[\d.,]+(?:e[+-]?\d+)?(?:\(\d+\))?|–)?")


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    shown = []
    for cell, width, right in zip(cells, widths, numeric, strict=True):
        text = _cut(cell, width)
        pad = " " * (width - _width(text))
        shown.append(pad + text if right else text + pad)
    return "  ".join(shown).rstrip()


def _shown(text: str) -> str:
    """A text on one line, without characters that act on a terminal."""
    return visible(" ".join(text.split()) if "\n" in text or "\t" in text else text)


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    while text and _width(text) > width - 1:
        text = text[:-1]
    return text + "…"


def _width(text: str) -> int:
    """Terminal columns of a text: wide East Asian characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
