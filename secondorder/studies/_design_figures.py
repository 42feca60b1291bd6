"""Figures of the design studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from secondorder.plot._style import plain
from secondorder.studies._design_grid import Grid
from secondorder.studies._disagreement import Array
from secondorder.studies._figures import COLOURS, MARKERS, WIDTH
from secondorder.studies._layout import group_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MOST_GROUPS", "draw_ensembles", "draw_impacts", "draw_levels", "draw_shares"]

MOST_GROUPS = 4


def _plain(axes: Axes, axis: str = "x") -> None:
    axes.grid(axis=axis, color="#dddddd", linewidth=0.6)  # type: ignore[arg-type]
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def draw_levels(grid: Grid, points: Array) -> Figure:
    """Bias and mean absolute error of the designs of every level of every factor."""
    from matplotlib.figure import Figure

    rows = [(f, k, label) for f, (_, levels) in enumerate(grid.factors) for k, label in enumerate(levels)]
    height = {row[:2]: -(i + 0.8 * row[0]) for i, row in enumerate(rows)}
    groups = group_labels(grid.by)[:MOST_GROUPS]
    figure = Figure(figsize=(7.4, 0.9 + 0.26 * (len(rows) + len(grid.factors))), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, measure, lines, title in zip(
        panels, (0, 1), ((-0.2, 0.0, 0.2), (0.0, 0.5)), ("bias (judge − human)", "mean absolute error"), strict=True
    ):
        for line in lines:
            axes.axvline(line, color="#999999", linewidth=0.7, linestyle="--" if line else "-")
        for g, group in enumerate(groups):
            for f, k, _ in rows:
                held = points[g, grid.codes[:, f] == k, measure]
                held = held[~np.isnan(held)]
                if not len(held):
                    continue
                y = height[f, k] + 0.22 * (g - (len(groups) - 1) / 2)
                axes.plot(held, np.full(len(held), y), MARKERS[g], color=COLOURS[g], alpha=0.35, markersize=3)
                name = plain(" / ".join(group)) if f == k == measure == 0 else None
                axes.plot([held.mean()] * 2, [y - 0.2, y + 0.2], color=COLOURS[g], linewidth=2.2, label=name or None)
        axes.set_title(title, fontsize=9)
        _plain(axes)
        axes.tick_params(axis="y", length=0)
    panels[0].set_yticks(
        [height[f, k] for f, k, _ in rows], [plain(f"{grid.factors[f][0]} {label}") for f, _, label in rows]
    )
    if len(groups) > 1:
        figure.legend(loc="outside lower center", ncols=len(groups), frameon=False, fontsize=8)
    return figure


def draw_impacts(names: Sequence[str], values: Mapping[str, Array], nulls: Mapping[str, Array]) -> Figure:
    """One panel for each measure: a bar for each factor, a tick where no effect at all would put it on average."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(WIDTH, 2.4 * len(values) + 1.0), 0.9 + 0.36 * len(names)), layout="constrained")
    panels = figure.subplots(1, len(values), sharey=True, squeeze=False)[0]
    place = -np.arange(float(len(names)))
    for axes, (title, held) in zip(panels, values.items(), strict=True):
        axes.barh(place, np.nan_to_num(held), height=0.55, color=COLOURS[0])
        if title in nulls:
            null = nulls[title]
            axes.vlines(null, place - 0.38, place + 0.38, color=COLOURS[1], linewidth=2)
        axes.set_title(title, fontsize=9)
        _plain(axes)
        axes.tick_params(axis="y", length=0, labelsize=8)
    panels[0].set_yticks(place, [plain(name) for name in names])
    return figure


def draw_shares(names: Sequence[str], groups: Sequence[str], shares: Array, lower: Array, upper: Array) -> Figure:
    """Variance shares of the components (groups x components) with their bands, one row of bars for each group."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 0.9 + 0.24 * len(names) * max(1, len(groups))), layout="constrained")
    axes = figure.subplots()
    for g, group in enumerate(groups):
        place = -(np.arange(float(len(names))) * (len(groups) + 0.6) + g)
        axes.barh(
            place, np.nan_to_num(shares[g]), height=0.8, color=COLOURS[g % len(COLOURS)], label=plain(group) or None
        )
        axes.hlines(place, lower[g], upper[g], color="#222222", linewidth=1)
    centre = -(np.arange(float(len(names))) * (len(groups) + 0.6) + (len(groups) - 1) / 2)
    axes.set_yticks(centre, [plain(name) for name in names])
    axes.axvline(0, color="#999999", linewidth=0.7)
    axes.set_xlabel("share of the variance")
    _plain(axes)
    axes.tick_params(axis="y", length=0, labelsize=8)
    if len(groups) > 1:
        figure.legend(loc="outside lower center", ncols=min(4, len(groups)), frameon=False, fontsize=8)
    return figure


def draw_ensembles(sizes: Sequence[int], lines: Mapping[str, Array]) -> Figure:
    """Mean absolute bias against the number of judges that are averaged."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    axes = figure.subplots()
    for index, (name, values) in enumerate(lines.items()):
        axes.plot(
            sizes, values, MARKERS[index % len(MARKERS)], ls="-", color=COLOURS[index % len(COLOURS)], label=plain(name)
        )
    axes.set_xticks(list(sizes))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("judges averaged")
    axes.set_ylabel("mean |bias|")
    _plain(axes, "both")
    axes.spines["left"].set_visible(True)
    axes.legend(frameon=False, fontsize=8)
    return figure
