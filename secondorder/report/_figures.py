"""Figures that are laid out for the report; each is drawn by :mod:`secondorder.plot`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import xarray as xr

from secondorder import plot
from secondorder._labels._results import Figure
from secondorder.plot._style import INK, legend_columns

__all__ = ["prefix_figure"]

BESIDE = 3


def prefix_figure(data: xr.Dataset, components: Sequence[str]) -> Figure:
    """Components by number of repeats, up to three panels side by side."""
    from matplotlib.figure import Figure as Canvas

    columns = min(BESIDE, len(components))
    rows = math.ceil(len(components) / columns)
    canvas = Canvas(layout="constrained")
    panels = canvas.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax, component in zip(panels, components, strict=False):
        own = plot.prefixes(data, component, ax=ax).get_legend()
        if own is not None:
            own.remove()
    for ax in panels[len(components) :]:
        ax.set_axis_off()
    handles, labels = panels[0].get_legend_handles_labels()
    beside = legend_columns(labels)
    legend = canvas.legend(handles, labels, loc="outside upper left", ncols=beside, frameon=False)
    for handle in filter(None, legend.legend_handles[:-1]):
        handle.set(color=INK)  # a judge has the colour of the component in each panel
    canvas.set_size_inches(7.0, 0.4 + 2.3 * rows + 0.2 * math.ceil(len(labels) / beside))
    return Figure("With fewer repeats", plot.to_svg(canvas, identity="prefixes"))
