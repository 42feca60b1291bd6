"""Share of events that are settled after so many votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from secondorder.plot._style import plain
from secondorder.studies._figures import COLOURS, MARKERS, WIDTH
from secondorder.studies._layout import By, group_labels
from secondorder.studies._stopping import STOPS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MOST_GROUPS", "draw_convergence"]

MOST_GROUPS = 6


def draw_convergence(found: xr.Dataset, by: By) -> Figure:
    """Cumulated shares by number of votes, one colour for each group."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    axes = figure.subplots()
    last = int(found.attrs["n_voters"])
    times = np.arange(last // 2 + 1, last + 1)
    several = len(group_labels(by)) > 1
    for index, group in enumerate(group_labels(by)[:MOST_GROUPS]):
        one = found["estimate"].sel({name: label for (name, _), label in zip(by, group, strict=True)})
        for rule, style in zip(STOPS, ("-", "--"), strict=True):
            share = np.cumsum([float(one.sel(measure=f"{rule}_stop_{m}")) for m in times])
            label = plain(" / ".join((*(group if several else ()), rule)))
            axes.plot(times, share, style, marker=MARKERS[index], color=COLOURS[index], markersize=5, label=label)
    axes.set_xlabel("votes")
    axes.set_ylabel("share of events settled")
    axes.set_xticks(times)
    axes.set_ylim(-0.02, 1.02)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return figure
