"""Decisions recovered against calls, as the threshold of a gate moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from secondorder.studies._figures import COLOURS, WIDTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_curve"]


def draw_curve(found: xr.Dataset) -> Figure:
    """Cost curve with the gate, the first voter alone, and full aggregation."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    axes = figure.subplots()
    one = found["estimate"]
    axes.plot(found["curve_calls"], found["curve_recovered"], "-", color=COLOURS[0], linewidth=1.5)
    calls, recovered = (float(one.sel(measure=name)) for name in ("calls", "recovered"))
    low, high = (float(found[key].sel(measure="recovered")) for key in ("lower", "upper"))
    axes.vlines(calls, low, high, color=COLOURS[1], linewidth=1.2)
    axes.plot(calls, recovered, "o", color=COLOURS[1], markersize=7)
    axes.annotate("gate", (calls, recovered), (8, -10), textcoords="offset points", fontsize=8, color=COLOURS[1])
    alone, full = float(one.sel(measure="recovered_alone")), float(one.sel(measure="calls_full"))
    axes.plot([1, full], [alone, 1], "s", color=COLOURS[6], markersize=5)
    axes.annotate("first voter alone", (1, alone), (8, -3), textcoords="offset points", fontsize=8)
    axes.annotate("full aggregation", (full, 1), (-8, 6), textcoords="offset points", fontsize=8, ha="right")
    axes.margins(y=0.09)
    axes.set_xlabel("calls per case")
    axes.set_ylabel("full decisions recovered")
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure
