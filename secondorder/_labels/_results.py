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

__all__ = ["Figure", "Section", "Table", "format_number", "plain", "printed", "render_table", "wrapped_lines"]

Cell = str | int | float | None
LEAST_TEXT_WIDTH = 8
MOST_LINES = 24
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


def render_table(table: Table, *, width: int = 80, digits: int = 4) -> str:
    """A table as aligned text that fits `width` columns where its numbers allow it.

    When the table is too wide, headings and text go on on the next line: between words first, then after ``: / _ -``,
    and inside a word only where nothing else is left. Numbers, with their errors or without, are never broken.

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
    widths = _fitted([[name, *(row[j] for row in body)] for j, name in enumerate(columns)], numeric, width)
    lines = wrapped_lines(visible(table.title, keep="\n"), width) if table.title else []
    heads = [_broken(name, at) for name, at in zip(columns, widths, strict=True)]
    tallest = max(map(len, heads), default=1)
    # Headings stand on the line above the rows.
    lines.extend(_rows([[""] * (tallest - len(head)) + head for head in heads], widths, numeric))
    for row in body:
        lines.extend(_rows([_broken(cell, at) for cell, at in zip(row, widths, strict=True)], widths, numeric))
    lines.extend(line for note in table.notes for line in wrapped_lines(_shown(note), width))
    return "\n".join(lines)


def wrapped_lines(text: str, width: int = 80) -> list[str]:
    """A title or a note as lines of at most `width` columns, all but the first indented."""
    return [
        line
        for part in text.split("\n")
        for line in textwrap.wrap(part, width, subsequent_indent="  ", break_on_hyphens=False) or [""]
    ]


_NUMBER = re.compile(r"(?:[+±−-]?[\d.,]+(?:e[+-]?\d+)?(?:\(\d+\))?|–)?")
_PIECE = re.compile(r"[^:/_-]*[:/_-]+|[^:/_-]+")


def _fitted(columns: Sequence[Sequence[str]], numeric: Sequence[bool], width: int) -> list[int]:
    """Widths of columns, heading first in each: what is too wide gives way, the widest first, down to whole words."""
    widths = [max(map(_width, column)) for column in columns]
    firm = [number or all(map(_NUMBER.fullmatch, column[1:])) for column, number in zip(columns, numeric, strict=True)]
    whole = [max([0, *map(_width, column[1:])]) if kept else 0 for column, kept in zip(columns, firm, strict=True)]
    words = [max(map(_width, " ".join(column).split()), default=0) for column in columns]
    pieces = [max(map(_width, _PIECE.findall(" ".join(column).replace(" ", "-"))), default=0) for column in columns]
    excess = sum(widths) + 2 * (len(widths) - 1) - width
    for floors in (words, pieces, [LEAST_TEXT_WIDTH] * len(columns)):
        least = [max(pair) for pair in zip(floors, whole, strict=True)]
        while excess > 0:
            # One character at a time, so that several end up equally wide.
            widest = max((j for j in range(len(widths)) if widths[j] > least[j]), key=widths.__getitem__, default=None)
            if widest is None:
                break
            widths[widest] -= 1
            excess -= 1
    return widths


def _broken(text: str, width: int) -> list[str]:
    """A cell as lines of at most `width` columns; what is longer than a screen ends with an ellipsis."""
    lines = [""]
    for word in text.split(" ") if _width(text) > width else []:
        parts = (
            [word]
            if _width(word) <= width
            else [part for piece in _PIECE.findall(word) for part in _hard(piece, width)]
        )
        for k, part in enumerate(parts):
            space = " " if k == 0 and lines[-1] else ""
            if _width(lines[-1] + space + part) <= width:
                lines[-1] += space + part
            else:
                lines.append(part)
    found = [line for line in lines if line] or [text]
    return found if len(found) <= MOST_LINES else [*found[: MOST_LINES - 1], "…"]


def _hard(text: str, width: int) -> list[str]:
    """A piece without a place to break it, broken where the line ends."""
    parts = [""]
    for character in text:
        if _width(parts[-1] + character) > width:
            parts.append("")
        parts[-1] += character
    return parts


def _rows(cells: Sequence[Sequence[str]], widths: Sequence[int], numeric: Sequence[bool]) -> list[str]:
    return [_line(line, widths, numeric) for line in zip_longest(*cells, fillvalue="")]


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    shown = []
    for text, width, right in zip(cells, widths, numeric, strict=True):
        pad = " " * (width - _width(text))
        shown.append(pad + text if right else text + pad)
    return "  ".join(shown).rstrip()


def _shown(text: str) -> str:
    """A text on one line, without characters that act on a terminal."""
    return visible(" ".join(text.split()) if "\n" in text or "\t" in text else text)


def _width(text: str) -> int:
    """Terminal columns of a text: wide East Asian characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
