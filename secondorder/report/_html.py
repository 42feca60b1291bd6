"""Sections to one HTML file: everything inside, nothing fetched, every text escaped."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from secondorder._labels._results import Section, format_number
from secondorder.errors import StorageError
from secondorder.report._sections import sections

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["report_html", "write_report"]

LONGEST_CELL = 400
OPEN_ROWS = 30


def report_html(tree: xr.DataTree) -> str:
    """The report of an estimates tree as one HTML document.

    Judges' replies, item labels and wordings are untrusted text: the template escapes all of them, and cuts a cell
    after 400 characters with the number left out.

    Parameters
    ----------
    tree : DataTree
        Schema ``secondorder.estimates/1``.

    Returns
    -------
    str
    """
    asked = json.loads(tree["/provenance"].attrs.get("asked", "null"))
    name = asked["spec"]["name"] if asked else json.loads(tree["/provenance"].attrs["source"])["name"]
    parts = list(sections(tree))
    return _environment().get_template("report.html.j2").render(name=name, sections=parts, anchors=_anchors(parts))


def write_report(tree: xr.DataTree, path: str | os.PathLike[str]) -> None:
    """Write the report of an estimates tree to a file.

    Raises
    ------
    StorageError
        When the disk refuses.
    """
    try:
        Path(path).write_text(report_html(tree), encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"it cannot be written ({error.strerror})", place=str(path), remedy="make room or choose another place"
        ) from error


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("secondorder.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = _cell
    environment.filters["is_number"] = lambda value: isinstance(value, int | float)
    environment.globals["open_rows"] = OPEN_ROWS
    return environment


def _cell(value: Any) -> str:
    text = format_number(value)
    if len(text) <= LONGEST_CELL:
        return text
    return f"{text[:LONGEST_CELL]}… ({len(text) - LONGEST_CELL} characters more)"


def _anchors(parts: list[Section]) -> list[str]:
    return [f"section-{k}" for k in range(len(parts))]
