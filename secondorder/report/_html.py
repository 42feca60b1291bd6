"""Sections to one HTML file: everything inside, nothing fetched, every text escaped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import xarray as xr

from secondorder._labels._results import Section, Table, format_number
from secondorder._visible import visible
from secondorder.report._asked import asked_title, headline
from secondorder.report._sections import sections

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["report_html", "sections_html"]

LONGEST_LABEL = 120
LONGEST_CELL = 300
LONGEST_FACT = 4000  # in a table without headings, where prompts stand
OPEN_ROWS = 30
SENTENCE = 24
OPEN_TABLES = 3

_NUMERIC = re.compile(r"[-+]?\d[\d.,]*( %)?|–|")
_BANDED = re.compile(r"(±?[-\d.]+)\n(\[.+, .+\])")


def report_html(tree: xr.DataTree) -> str:
    """The report of an estimates tree as one HTML document.

    Names of audits, judges, items, strata and wordings are untrusted text: the template escapes all of them, and cuts
    a cell after some hundred characters with the number left out.

    Parameters
    ----------
    tree : DataTree
        Schema ``secondorder.estimates/1``.

    Returns
    -------
    str
    """
    return sections_html(asked_title(tree), headline(tree), sections(tree))


def sections_html(name: str, said: str, parts: Mapping[str, Section]) -> str:
    """Any sections as one HTML document.

    Parameters
    ----------
    name, said : str
        Heading, and one line below it.
    parts : mapping of str to Section
        By anchor.
    """
    page = _environment().get_template("report.html.j2").render(name=cut(name), headline=cut(said), sections=parts)
    # Autoescape guards against markup; here characters that would hide, or turn around, what stands in the page.
    return visible(page, keep="\t\n\r")


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("secondorder.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(lines=_lines, kinds=_kinds, cut=cut)
    environment.tests["headed"] = _headed
    environment.globals.update(
        open_rows=OPEN_ROWS, open_tables=OPEN_TABLES, label=LONGEST_LABEL, cell=LONGEST_CELL, fact=LONGEST_FACT
    )
    return environment


def cut(text: str, longest: int = LONGEST_CELL) -> str:
    """A text that a page can bear: whole, or its beginning with the number of characters left out."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text) - longest} characters more)"


def _lines(value: Any, longest: int) -> tuple[str, str]:
    """A cell's text, and the band that stands below it (else empty)."""
    text = format_number(value)
    banded = _BANDED.fullmatch(text)
    return (banded[1], banded[2]) if banded else (cut(text, longest), "")


def _headed(table: Table) -> bool:
    """Whether a table has headings; without them it is a list of facts."""
    return any(table.columns)


def _kinds(table: Table) -> list[str]:
    """What each column holds: ``n`` numbers alone, ``w`` sentences, else labels, as the first does."""
    columns = [[format_number(row[k]) for row in table.rows] for k in range(len(table.columns))]
    return ["" if k == 0 or not table.rows else _kind(column) for k, column in enumerate(columns)]


def _kind(column: list[str]) -> str:
    if all(_NUMERIC.fullmatch(text) or _BANDED.fullmatch(text) for text in column):
        return "n"
    return "w" if max(map(len, column)) >= SENTENCE else ""
