"""Sections of the judge studies: text in the estimates tree, written beside their numbers and read by the report."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import xarray as xr

from secondorder._labels._results import Figure, Section, Table, plain
from secondorder.report._read import dataset

__all__ = ["section_text", "studies_sections"]

STUDIES = "studies"
PLACE = "place"
SECTION = "section"


def section_text(section: Section) -> str:
    """A section as JSON text; numbers that are undefined are null."""
    tables = [
        {**asdict(table), "rows": [[plain(x) if isinstance(x, float) else x for x in row] for row in table.rows]}
        for table in section.tables
    ]
    whole = {**asdict(section), "tables": tables}
    return json.dumps(whole, ensure_ascii=False, allow_nan=False)


def studies_sections(tree: xr.DataTree) -> dict[str, Section]:
    """The sections below ``/studies`` in reading order, by anchor."""
    if STUDIES not in tree.children:
        return {}
    found = {name: dataset(tree, f"{STUDIES}/{name}") for name in tree[STUDIES].children}
    held = {name: data for name, data in found.items() if data is not None and SECTION in data}
    return {name: _section(held[name]) for name in sorted(held, key=lambda name: int(held[name].attrs[PLACE]))}


def _section(data: xr.Dataset) -> Section:
    whole: dict[str, Any] = json.loads(str(data[SECTION].values))
    tables = tuple(
        Table(one["title"], tuple(one["columns"]), tuple(tuple(row) for row in one["rows"]), tuple(one["notes"]))
        for one in whole["tables"]
    )
    figures = tuple(Figure(**one) for one in whole["figures"])
    return Section(whole["title"], whole["text"], tables, figures)
