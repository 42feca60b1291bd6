"""Figures of the studies; colours that colour-blind readers can tell apart, and never colour alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from secondorder.plot._style import plain
from secondorder.studies._disagreement import Array
from secondorder.studies._layout import By, group_labels
from secondorder.studies._result import Drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "MARKERS",
    "WIDTH",
    "draw_measures",
    "draw_ranks",
    "drawn_measures",
    "drawn_pairs",
    "drawn_ranks",
    "part_shown",
]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""Okabe and Ito's palette without its yellow, which is too light on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST_COLOURS = 4  # lines that stand out in one bump chart
GREY = "#B0B0B0"
MOST_PANELS = 12
WIDTH = 6.4  # inches: a page scales figures to its width, and text should come out alike
LARGEST_LEGEND = 3  # groups that one panel can hold and a reader can still tell apart


def draw_measures(data: xr.Dataset, labels: Mapping[str, str], *, lines: Mapping[str, float] | None = None) -> Figure:
    """Estimates with bands; up to three groups in one panel, more with a panel for each measure."""
    from matplotlib.figure import Figure

    there = data["estimate"].notnull().any([dim for dim in data["estimate"].dims if dim != "measure"])
    data = data.isel(measure=np.flatnonzero(there)) if bool(there.any()) else data
    measures = [str(name) for name in data["measure"].to_numpy()]
    dims = [str(dim) for dim in data["estimate"].dims if dim != "measure"]
    told = [dim for dim in dims if data.sizes[dim] > 1]  # what there is one of names nothing
    names = [plain(" / ".join(map(str, key))) for key in product(*(data[dim].to_numpy() for dim in told))]
    values = {
        key: data[key].transpose(*dims, "measure").to_numpy().astype(float).reshape(len(names), len(measures))
        for key in ("estimate", "lower", "upper")
    }
    if len(names) > LARGEST_LEGEND:
        across = min(4, len(measures))
        down = math.ceil(len(measures) / across)
        width = max(WIDTH, 1.6 + 2.1 * across)
        figure = Figure(figsize=(width, down * (0.9 + 0.22 * len(names))), layout="constrained")
        panels = figure.subplots(down, across, sharey=True, squeeze=False).ravel()
        for index, axes in enumerate(panels):
            if index >= len(measures):
                axes.set_visible(False)
                continue
            _bars(axes, values, np.s_[:, index], -np.arange(float(len(names))), COLOURS[0], MARKERS[0])
            axes.set_title(labels.get(measures[index], measures[index]), fontsize=9)
            _rows(axes, -np.arange(float(len(names))), names, lines)
        return figure
    step = len(names) + 1
    figure = Figure(figsize=(WIDTH, 1.1 + 0.17 * len(measures) * step), layout="constrained")
    axes = figure.subplots()
    for index, name in enumerate(names):
        height = -(np.arange(float(len(measures))) * step + index)
        _bars(axes, values, np.s_[index], height, COLOURS[index], MARKERS[index], name)
    centres = -(np.arange(float(len(measures))) * step + (len(names) - 1) / 2)
    _rows(axes, centres, [labels.get(name, name) for name in measures], lines)
    if len(names) > 1:
        figure.legend(loc="outside lower center", ncols=len(names), frameon=False, fontsize=8)
    return figure


def _bars(
    axes: Axes, values: Mapping[str, Array], part: Any, height: Array, colour: str, marker: str, name: str = ""
) -> None:
    axes.hlines(height, values["lower"][part], values["upper"][part], color=colour, linewidth=1.5)
    axes.plot(values["estimate"][part], height, marker, color=colour, markersize=5, label=name or None)


def _rows(axes: Axes, heights: Array, names: Sequence[str], lines: Mapping[str, float] | None) -> None:
    for height in (lines or {}).values():
        axes.axvline(height, color="#555555", linestyle="--", linewidth=0.8)
    axes.axvline(0, color="#999999", linewidth=0.6)
    axes.set_yticks(heights, names)
    axes.margins(y=0.6 / len(heights))
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)


def drawn_measures(
    data: xr.Dataset,
    labels: Mapping[str, str],
    *,
    title: str,
    lines: Mapping[str, float] | None = None,
    source: str = "",
) -> Drawn:
    """The same figure, drawn when it is asked for; `source` says where the lines come from."""
    caption = f"Bars: {100 * float(data.attrs['level']):g} % percentile bands over items."
    if lines:
        caption += f" Dashed: {', '.join(f'{name} {height:g}' for name, height in lines.items())} ({source})."
    return Drawn(title, caption, lambda: draw_measures(data, labels, lines=lines))


def part_shown(by: By, most: int) -> str:
    """What a caption adds where a figure has no room for all groups; empty where it has."""
    size = len(group_labels(by))
    return f" The first {most} of {size} groups." if size > most else ""


def draw_ranks(data: xr.Dataset, *, prompt: str, by: By) -> Figure:
    """Bump chart: rank of every system under each prompt; the systems that move most have colours."""
    from matplotlib.figure import Figure

    names = [name for name, _ in by]
    groups = group_labels(by)[:MOST_PANELS]
    systems = [str(name) for name in data["system"].to_numpy()]
    prompts = [str(name) for name in data[prompt].to_numpy()]
    across = min(3, len(groups))
    down = math.ceil(len(groups) / across)
    width, height = 1.9 + 0.55 * len(prompts), 0.8 + 0.2 * len(systems)
    figure = Figure(figsize=(max(WIDTH, across * width + 0.6), down * height + 0.3), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for axes in panels[len(groups) :]:
        axes.set_visible(False)
    for axes, group in zip(panels, groups, strict=False):
        ranks = data["rank"].sel(dict(zip(names, group, strict=True))).transpose("system", prompt).to_numpy()
        spread = np.ptp(ranks, axis=1)
        moving = [int(s) for s in np.argsort(-spread, kind="stable")[:MOST_COLOURS] if spread[s] > 0]
        for s in range(len(systems)):
            place = moving.index(s) if s in moving else None
            colour = GREY if place is None else COLOURS[place]
            marker = "o" if place is None else MARKERS[place]
            axes.plot(
                ranks[s],
                color=colour,
                marker=marker,
                markersize=4,
                linewidth=1.0 if place is None else 1.8,
                zorder=1 if place is None else 2,
            )
        for rank in np.unique(ranks[:, -1][~np.isnan(ranks[:, -1])]):
            shared = [s for s in range(len(systems)) if ranks[s, -1] == rank]
            for place, s in enumerate(shared):  # one below the other, each in its colour
                axes.annotate(
                    plain(systems[s]),
                    (len(prompts) - 1, rank),
                    (6, 7 * ((len(shared) - 1) / 2 - place)),
                    textcoords="offset points",
                    va="center",
                    fontsize=7,
                    color=COLOURS[moving.index(s)] if s in moving else "#444444",
                )
        axes.set_xlim(-0.2, len(prompts) - 1 + 0.2 + 0.012 * len(prompts) * max(map(len, systems)) ** 1.2)
        axes.set_ylim(len(systems) + 0.5, 0.5)
        axes.set_xticks(range(len(prompts)), [plain(name) for name in prompts], fontsize=7)
        axes.set_yticks(range(1, len(systems) + 1))
        axes.tick_params(length=0, labelsize=7)
        axes.set_title(plain(" / ".join(group)), fontsize=9)
        for side in axes.spines.values():
            side.set_visible(False)
    return figure


def drawn_ranks(data: xr.Dataset, *, prompt: str, by: By) -> Drawn:
    """The bump chart, drawn when it is asked for."""
    caption = "Rank of every system under each prompt; 1 is the highest mean score; tied systems share a rank."
    return Drawn(
        "Rank trajectories", caption + part_shown(by, MOST_PANELS), lambda: draw_ranks(data, prompt=prompt, by=by)
    )


def drawn_pairs(data: xr.Dataset, *, prompt: str, by: By) -> Drawn:
    """Agreement of every two prompts against their similarity."""

    def draw() -> Figure:
        from matplotlib.figure import Figure

        names = [name for name, _ in by]
        figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
        axes = figure.subplots()
        k, other = np.triu_indices(data.sizes[prompt], 1)
        groups = group_labels(by)
        for index, group in enumerate(groups):
            agreement = data["agreement"].sel(dict(zip(names, group, strict=True))).transpose(prompt, "other")
            axes.plot(
                data["similarity"].to_numpy()[k, other],
                agreement.to_numpy()[k, other],
                MARKERS[index % len(MARKERS)],
                color=COLOURS[index % len(COLOURS)],
                markersize=5,
                label=plain(" / ".join(group)) or None,
            )
        axes.set_xlabel("similarity of two prompts")
        axes.set_ylabel("agreement of their verdicts")
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        if 1 < len(groups) <= len(MARKERS):
            figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
        return figure

    return Drawn("Similarity and agreement", "One mark for each pair of prompts.", draw)
