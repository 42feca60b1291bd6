"""The figure that a study gets when it draws none of its own: bias along one factor, simulated beside closed form."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from secondorder._atomic import replacing
from secondorder.simulate._files import make_folder
from secondorder.simulate._result import StudyResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["bias_figure", "save_figure"]

# Okabe and Ito's palette, with a marker each, so that neither colour nor shape carries the reading alone.
METHOD_STYLE = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#56B4E9", "v"))
MOST_ROWS = 6
MOST_COLUMNS = 5


def bias_figure(result: StudyResult) -> Figure:
    """Bias of every method along the first factor that has several levels; lines are closed forms where they exist.

    Rows are combinations of the other factors (the first six), columns are estimands (the first five); a title says if
    there are more. Bars are 95 % Monte Carlo intervals.
    """
    data = result.data
    along = next((name for name in result.factors if data.sizes[name] > 1), result.factors[0])
    others = [name for name in result.factors if name != along]
    combinations, estimands = list(product(*(data[name].values for name in others))), list(data["estimand"].values)
    rows, columns = combinations[:MOST_ROWS], estimands[:MOST_COLUMNS]
    figure = new_figure((2.6 * len(columns) + 0.8, 2.0 * len(rows) + 1.0))
    axes = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True)
    x, labels = positions(data[along].values)
    # Between levels that are no numbers there is nothing for a line to go through.
    exact_style = "-" if np.issubdtype(data[along].dtype, np.number) else "_"
    if len(rows) < len(combinations) or len(columns) < len(estimands):
        shown = f"{len(rows)} of {len(combinations)} combinations, {len(columns)} of {len(estimands)} estimands"
        figure.suptitle(f"{shown}; all are in summary.csv", fontsize=9)
    for row, levels in enumerate(rows):
        place = dict(zip(others, levels, strict=True))
        for column, estimand in enumerate(columns):
            ax = axes[row, column]
            cell = data.sel(estimand=estimand, **place)
            exact = cell["plugin_bias"].values
            if "plugin" in data["estimator"].values and np.isfinite(exact).all():
                ax.plot(x, exact, exact_style, color="#767676", linewidth=1, markersize=16, zorder=1)
            draw_methods(ax, x, cell, "bias")
            ax.axhline(0, color="#222222", linewidth=0.6, zorder=0)
            if row == 0:
                ax.set_title(str(estimand), fontsize=10)
            if row == len(rows) - 1:
                ax.set_xlabel(along)
                ax.set_xticks(x, labels)
        axes[row, 0].set_ylabel("\n".join(["bias", *(f"{k}={v}" for k, v in place.items())]), fontsize=9)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names), frameon=False)
    return figure


def new_figure(size: tuple[float, float]) -> Figure:
    """A figure that belongs to no window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def positions(levels: Any) -> tuple[np.ndarray[Any, Any], list[str]]:
    """Places of factor levels on an axis: their values where they are numbers, else one after the other."""
    labels = [f"{level:g}" if isinstance(level, int | float | np.number) else str(level) for level in levels]
    if np.issubdtype(np.asarray(levels).dtype, np.number):
        return np.asarray(levels, dtype=float), labels
    return np.arange(len(labels), dtype=float), labels


def draw_methods(ax: Any, x: Any, cell: Any, measure: str) -> None:
    """Points with 95 % Monte Carlo intervals, one style per method, side by side."""
    methods = list(cell["estimator"].values)
    step = 0.02 * (np.ptp(x) if len(x) > 1 else 1.0)
    for index, method in enumerate(methods):
        colour, marker = METHOD_STYLE[index % len(METHOD_STYLE)]
        values = cell[measure].sel(estimator=method).values
        error = 1.96 * cell[f"{measure}_mcse"].sel(estimator=method).values
        shift = step * (index - (len(methods) - 1) / 2)
        ax.errorbar(x + shift, values, error, fmt=marker, color=colour, markersize=4.5, capsize=2, label=str(method))
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a PNG whole or not at all, the same bytes for the same figure."""
    make_folder(path.parent)
    with replacing(path) as fresh:
        figure.savefig(fresh, dpi=130, metadata={"Software": None})
    return path
