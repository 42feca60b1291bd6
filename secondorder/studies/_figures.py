"""Figures of the studies; colours that colour-blind readers can tell apart, and never colour alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from secondorder.studies._disagreement import Array
from secondorder.studies._result import Drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "MARKERS", "draw_measures", "drawn_measures"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""Okabe and Ito's palette without its yellow, which is too light on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LARGEST_LEGEND = 3  # groups that one panel can hold and a reader can still tell apart


def draw_measures(data: xr.Dataset, labels: Mapping[str, str], *, lines: Mapping[str, float] | None = None) -> Figure:
    """Estimates with bands; up to three groups in one panel, more with a panel for each measure."""
    from matplotlib.figure import Figure

    measures = [str(name) for name in data["measure"].to_numpy()]
    dims = [str(dim) for dim in data["estimate"].dims if dim != "measure"]
    names = [" / ".join(map(str, key)) for key in product(*(data[dim].to_numpy() for dim in dims))]
    values = {
        key: data[key].transpose(*dims, "measure").to_numpy().astype(float).reshape(len(names), len(measures))
        for key in ("estimate", "lower", "upper")
    }
    if len(names) > LARGEST_LEGEND:
        across = min(4, len(measures))
        down = math.ceil(len(measures) / across)
        figure = Figure(figsize=(1.6 + 2.1 * across, down * (0.9 + 0.22 * len(names))), layout="constrained")
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
    figure = Figure(figsize=(6.4, 1.1 + 0.17 * len(measures) * step), layout="constrained")
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
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)


def drawn_measures(
    data: xr.Dataset, labels: Mapping[str, str], *, title: str, lines: Mapping[str, float] | None = None
) -> Drawn:
    """The same figure, drawn when it is asked for."""
    caption = f"Bars: {100 * float(data.attrs['level']):g} % percentile bands over items."
    if lines:
        caption += f" Dashed: {', '.join(f'{name} {height:g}' for name, height in lines.items())}."
    return Drawn(title, caption, lambda: draw_measures(data, labels, lines=lines))
