"""The designs by level of each factor: shares beyond thresholds and mean sizes, with and without some levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from secondorder._labels._results import Table
from secondorder.errors import InputError
from secondorder.studies._design_grid import Grid
from secondorder.studies._disagreement import Array
from secondorder.studies._layout import as_names, group_labels

__all__ = ["FALSE_DISCOVERY", "LARGE_BIAS", "LARGE_ERROR", "MEDIUM", "Row", "level_tables", "stars"]

Row = tuple[str | int | float | None, ...]

MEDIUM, LARGE_BIAS, LARGE_ERROR, FALSE_DISCOVERY = 0.30, 0.2, 0.5, 0.05
"""Thresholds of the design-choices study, on a 1-7 scale."""

STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
DIFFERS_SHARE, DIFFERS_BIAS = 0.15, 0.05


def stars(qvalue: float) -> str:
    """Significance as the papers print it; empty where there is no test."""
    return "" if np.isnan(qvalue) else next((text for limit, text in STARS if qvalue < limit), " ns")


def level_tables(grid: Grid, points: Array, qvalue: Array, without: Mapping[str, str | Sequence[str]]) -> list[Table]:
    """Shares and mean sizes by level of each factor, for each group and in total; again without some levels."""
    rows: list[Row] = []
    less: list[Row] = []
    kept = _kept(grid, without)
    groups = [" / ".join(group) for group in group_labels(grid.by)]
    everything = [(name, [g]) for g, name in enumerate(groups)]
    if len(groups) > 1:
        everything.append(("total", list(range(len(groups)))))
    for f, (factor, levels) in enumerate(grid.factors):
        for k, label in enumerate(levels):
            for name, chosen in everything:
                lead = (factor, label, *([name] if len(groups) > 1 else []))
                inside = grid.codes[:, f] == k
                whole = _summary(points[chosen][:, inside], qvalue[chosen][:, inside])
                rows.append((*lead, *whole))
                if without and (inside & kept).any():
                    part = _summary(points[chosen][:, inside & kept], qvalue[chosen][:, inside & kept])
                    shares = (whole[0], part[0], whole[2], part[2], whole[5], part[5])
                    moved = max(abs(a - b) for a, b in ((shares[0], shares[1]), (shares[2], shares[3])))
                    far = moved >= DIFFERS_SHARE or abs(shares[4] - shares[5]) >= DIFFERS_BIAS
                    less.append((*lead, *shares, "changes" if far else ""))
    lead_columns = ("factor", "level", *(["group"] if len(groups) > 1 else []))
    at = len(lead_columns)
    shares_of, sizes_of = ("sig.", "|RBC|≥.3", "|bias|>.2", "MAE>.5"), ("|RBC|", "|bias|", "min", "max", "MAE")
    cut = at + len(shares_of)
    note = "Sig.: q < .05. The thresholds of |bias| and MAE were set for points of a 1–7 scale."
    tables = [
        Table("Share of designs, by level", (*lead_columns, *shares_of), tuple(row[:cut] for row in rows), (note,)),
        Table(
            "Mean over designs, by level",
            (*lead_columns, *sizes_of),
            tuple(row[:at] + row[cut:] for row in rows),
            ("Min, max: smallest and largest |bias| of a design.",),
        ),
    ]
    if without:
        told = ", ".join(f"{name} {' and '.join(as_names(levels))}" for name, levels in without.items())
        again = ("sig.", "less", "|bias|>.2", "less", "|bias|", "less", "")
        note = f"Less: without {told}. Changes: by {DIFFERS_SHARE:g} of the designs, or {DIFFERS_BIAS:g} points."
        tables.append(Table(f"Are the results driven by {told}?", (*lead_columns, *again), tuple(less), (note,)))
    return tables


def _kept(grid: Grid, without: Mapping[str, str | Sequence[str]]) -> NDArray[np.bool_]:
    kept = np.ones(len(grid.codes), dtype=bool)
    names = [name for name, _ in grid.factors]
    for factor, levels in without.items():
        if factor not in names:
            raise InputError(f"there is no factor {factor!r}", place="without", remedy=f"factors: {', '.join(names)}")
        f = names.index(factor)
        for label in as_names(levels):
            if label not in grid.factors[f][1]:
                raise InputError(
                    f"{factor} has no level {label!r}", place="without", remedy=", ".join(grid.factors[f][1])
                )
            kept &= grid.codes[:, f] != grid.factors[f][1].index(label)
    return kept


def _summary(points: Array, qvalue: Array) -> tuple[float, ...]:
    """Shares beyond the thresholds and mean sizes of (groups, designs)."""
    bias, mae, rbc = np.abs(points[..., 0]), points[..., 1], np.abs(points[..., 3])
    there = ~np.isnan(bias + mae)
    if not there.any():
        return (float("nan"),) * 9
    held = [one[there] for one in (qvalue < FALSE_DISCOVERY, rbc >= MEDIUM, bias > LARGE_BIAS, mae > LARGE_ERROR)]
    size = bias[there]
    shares = tuple(float(one.mean()) for one in held)
    return (*shares, *map(float, (rbc[there].mean(), size.mean(), size.min(), size.max(), mae[there].mean())))
