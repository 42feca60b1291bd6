"""Accuracy, correlation and stability of the three sources of calls by number of calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from secondorder.plot._style import plain
from secondorder.studies._figures import COLOURS, MARKERS, WIDTH
from secondorder.studies._layout import By, group_labels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MOST_GROUPS", "draw_budgets"]

MOST_GROUPS = 3  # rows of panels

PANELS = {
    "accuracy": "accuracy",
    "pearson": "Pearson with human scores",
    "stability_shared": "two aggregates agree,\nsame prompts or judges",
    "stability_fresh": "two aggregates agree,\nfresh prompts or judges",
    "reliability_shared": "two aggregates correlate,\nsame prompts or judges",
    "reliability_fresh": "two aggregates correlate,\nfresh prompts or judges",
}


def draw_budgets(found: xr.Dataset, by: By) -> Figure:
    """One row of panels for each group (some at most); a panel for each measure that is there."""
    from matplotlib.figure import Figure

    groups = group_labels(by)[:MOST_GROUPS]
    shown = [name for name in PANELS if bool(found["estimate"].sel(measure=name).notnull().any())]
    figure = Figure(figsize=(max(WIDTH, 2.5 * len(shown)), 2.6 * len(groups) + 0.4), layout="constrained")
    panels = figure.subplots(len(groups), max(len(shown), 1), squeeze=False, sharey="col")
    calls = found["calls"].to_numpy().astype(float)
    shift = 0.06 * (np.ptp(calls) or 1.0)
    for group, row in zip(groups, panels, strict=True):
        here = found.sel({name: label for (name, _), label in zip(by, group, strict=True)})
        for name, axes in zip(shown, row, strict=False):
            for index, source in enumerate(found["source"].to_numpy()):
                one = here.sel(source=source, measure=name)
                value, lower, upper = (one[key].to_numpy().astype(float) for key in ("estimate", "lower", "upper"))
                if np.isnan(value).all():
                    continue
                place = calls + shift * (index - 1) / 2
                axes.vlines(place, lower, upper, color=COLOURS[index], linewidth=1)
                axes.plot(place, value, MARKERS[index], color=COLOURS[index], ls="-", markersize=5, label=str(source))
            axes.set_title("\n".join((*([plain("/".join(group))] if any(group) else []), PANELS[name])), fontsize=8)
            axes.set_xticks(calls)
            axes.set_xlabel("calls", fontsize=8)
            axes.grid(color="#dddddd", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.tick_params(labelsize=8)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
    handles = {str(line.get_label()): line for axes in panels.ravel() for line in axes.get_lines()}
    if handles:
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=3, frameon=False)
    return figure
