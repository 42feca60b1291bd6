"""What the sections share: parts of the estimates tree, names of groups, numbers as text."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from math import isclose
from typing import Any

import numpy as np
import xarray as xr

from secondorder._labels._cube import by_text
from secondorder._labels._results import format_number

__all__ = [
    "ALL",
    "Cell",
    "Row",
    "banded",
    "dataset",
    "facets",
    "groups",
    "number",
    "ordering",
    "percent",
    "provenance",
    "short",
    "source",
    "value",
]

Cell = str | int | float | None
Row = tuple[Cell, ...]
ALL = "all calls"
LONGEST_NAME = 80


def dataset(tree: xr.DataTree, name: str) -> xr.Dataset | None:
    """A part of the tree; None where it is absent or empty."""
    try:
        data: xr.Dataset = tree[f"/{name}"].to_dataset()
    except KeyError:
        return None
    return data if data.variables or data.attrs else None


def provenance(tree: xr.DataTree, name: str) -> Any:
    """One of the JSON texts of ``/provenance``; None where it is absent."""
    return json.loads(tree["/provenance"].attrs.get(name, "null"))


def names(tree: xr.DataTree) -> dict[str, str]:
    """What the report calls each group: its value alone where groups come from one column, else the whole label."""
    found = {}
    for group in provenance(tree, "groups"):
        label = by_text(group["by"])
        found[label] = short(label if len(group["by"]) > 1 else "".join(group["by"].values())) or ALL
    return found


def groups(tree: xr.DataTree, data: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    """Every group of a part of the tree, with its name."""
    called = names(tree)
    for k, label in enumerate(data.group.values.tolist()):
        yield called.get(label, short(label)), data.isel(group=k)


def short(name: str) -> str:
    """A name that a sentence or a heading can bear."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def facets(tree: xr.DataTree) -> list[str]:
    """Main effects, in the order of the components."""
    names = [str(name) for name in tree["/components"].component.values]
    return [name for name in names if name not in ("call", "total") and ":" not in name]


def value(row: xr.Dataset, component: str, field: str = "estimate") -> float:
    """A field of one component; NaN where estimates of an earlier version have none."""
    return float(row[field].sel(component=component)) if field in row else math.nan


def number(x: Any, digits: int = 4) -> str:
    """A number as text; ``–`` where it is undefined."""
    return format_number(float(x), digits)


def ordering(labels: Sequence[str], values: Sequence[float]) -> str:
    """Labels from the largest value to the smallest: ``a > b = c``; ``–`` where values are undefined."""
    if np.isnan(values).any():
        return "–"
    text = labels[0]
    for k in range(1, len(labels)):
        text += f" {'=' if isclose(values[k], values[k - 1], rel_tol=1e-9, abs_tol=1e-12) else '>'} {labels[k]}"
    return text


def percent(x: Any, digits: int = 1) -> str:
    """A share as text."""
    return "–" if np.isnan(float(x)) else f"{round(100 * float(x), digits) + 0.0:.{digits}f} %"


def banded(row: xr.Dataset, *, apart: str = "\n", digits: int = 4) -> str:
    """Estimate with its band; in a table cell the band stands below (`apart` is a new line)."""
    text = number(row.estimate, digits)
    if np.isnan(float(row.lower)) or np.isnan(float(row.upper)):
        return text
    return f"{text}{apart}[{number(row.lower, digits)}, {number(row.upper, digits)}]"


def source(component: str) -> str:
    """A component in running text."""
    return "call noise" if component == "call" else short(component)
