"""Figures of the studies; colours that colour-blind readers can tell apart, and never colour alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from secondorder.studies._result import Drawn

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "MARKERS", "draw_measures", "drawn_measures"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
"""Okabe and Ito's palette without its yellow, which is too light on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")


def draw_measures(
    data: xr.Dataset, labels: Mapping[str, str], *, lines: Mapping[str, float] | None = None
) -> Figure:
    """Estimates with bands: one row for each measure, one mark for each group."""
    from matplotlib.figure import Figure

    measures = [str(name) for name in data["measure"].to_numpy()]
    groups = [str(dim) for dim in data["estimate"].dims if dim != "measure"]
    stacked = data[["estimate", "lower", "upper"]]
    stacked = stacked.stack(group=groups) if groups else stacked.expand_dims(group=["all"])
    names = [" / ".join(map(str, key)) if isinstance(key, tuple) else str(key) for key in stacked["group"].to_numpy()]
    rows = len(measures) * (len(names) + 1)
    figure = Figure(figsize=(6.4, 1.1 + 0.17 * rows), layout="constrained")
    axes = figure.subplots()
    for index, name in enumerate(names):
        one = stacked.isel(group=index)
        middle, low, high = (one[key].to_numpy().astype(float) for key in ("estimate", "lower", "upper"))
        height = -(np.arange(len(measures)) * (len(names) + 1) + index)
        colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
        axes.hlines(height, low, high, color=colour, linewidth=1.5)
        axes.plot(middle, height, marker, color=colour, markersize=5, label=name)
    for height in (lines or {}).values():
        axes.axvline(height, color="#555555", linestyle="--", linewidth=0.8)
    axes.axvline(0, color="#999999", linewidth=0.6)
    centre = (len(names) - 1) / 2
    axes.set_yticks([-(i * (len(names) + 1) + centre) for i in range(len(measures))])
    axes.set_yticklabels([labels.get(name, name) for name in measures])
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    if len(names) > 1:
        figure.legend(loc="outside lower center", ncols=min(len(names), 3), frameon=False, fontsize=8)
    return figure


def drawn_measures(
    data: xr.Dataset, labels: Mapping[str, str], *, title: str, lines: Mapping[str, float] | None = None
) -> Drawn:
    """The same figure, drawn when it is asked for."""
    caption = f"Bars: {100 * float(data.attrs['level']):g} % percentile bands over items."
    if lines:
        caption += f" Dashed: {', '.join(f'{name} {height:g}' for name, height in lines.items())}."
    return Drawn(title, caption, lambda: draw_measures(data, labels, lines=lines))
