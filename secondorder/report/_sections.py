"""The sections of the report in reading order. Each is read off the estimates tree; none computes a number."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import xarray as xr

from secondorder._labels._results import Section
from secondorder.report import _asked, _calls, _effects, _inference, _studies

__all__ = ["sections"]

# The key is the section's anchor: links to a report stay valid.
FINDINGS: dict[str, Callable[[xr.DataTree], Section | None]] = {
    "answer": _effects.answer_section,
    "asked": _asked.asked_section,
    "stop": _inference.stop_section,
    "components": _effects.components_section,
    "errors": _inference.errors_section,
    "tests": _inference.tests_section,
    "prefixes": _effects.prefixes_section,
    "comparison": _effects.comparison_section,
    "strata": _effects.strata_section,
    "items": _effects.items_section,
    "gold": _calls.gold_section,
}
RECORD: dict[str, Callable[[xr.DataTree], Section | None]] = {
    "outcomes": _calls.outcomes_section,
    "soft": _calls.soft_section,
    "sensitivity": _calls.sensitivity_section,
    "null": _calls.null_section,
    "independence": _inference.independence_section,
    "integrity": _calls.integrity_section,
    "provenance": _asked.provenance_section,
}


def sections(tree: xr.DataTree) -> dict[str, Section]:
    """Every section that the tree has something for, by anchor."""
    return {**_made(FINDINGS, tree), **_studies.studies_sections(tree), **_made(RECORD, tree)}


def _made(makers: Mapping[str, Callable[[xr.DataTree], Section | None]], tree: xr.DataTree) -> dict[str, Section]:
    made = {name: make(tree) for name, make in makers.items()}
    return {name: section for name, section in made.items() if section is not None}
