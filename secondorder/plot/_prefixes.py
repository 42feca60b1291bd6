"""How the two measures move with the number of repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from secondorder.plot._style import PLUGIN_GREY, colours, new_axes, plain, short_label, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["prefixes"]

MARKERS = "os^vDPX*"
ROUNDING = 1e-12
NOTHING = 0.01


def prefixes(data: xr.Dataset, component: str, *, ax: Axes | None = None) -> Axes:
    """A component from the first 2, 4, 8 … repeats: debiased (solid) beside plug-in (dashed grey), per judge.

    Parameters
    ----------
    data : Dataset, dims (group, depth, component)
        ``estimate`` and ``plugin``, as in ``/prefixes`` of the estimates; with ``lower`` and ``upper`` a single judge's
        band is shaded.
    component : str
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    ax = new_axes(ax, (5.0, 3.0))
    colour = colours(data.component.values.tolist())[component]
    depths = data.depth.values
    chosen = data.sel(component=component)
    several = data.sizes["group"] > 1
    for k, label in enumerate(data.group.values.tolist()):
        marker = MARKERS[k % len(MARKERS)]
        row = chosen.isel(group=k)
        if not several and "lower" in row:
            ax.fill_between(depths, row.lower, row.upper, color=colour, alpha=0.15, linewidth=0)
        ax.plot(depths, row.estimate, marker=marker, color=colour, label=short_label(label) if several else "debiased")
        ax.plot(
            depths, row.plugin, marker=marker, color=PLUGIN_GREY, linestyle="--", markerfacecolor="none",
            label="plug-in" if k == data.sizes["group"] - 1 else None,
        )  # fmt: skip
    ax.axhline(0, color="#222222", linewidth=0.8)
    if np.nan_to_num(np.abs(chosen[["estimate", "plugin"]].to_array().values)).max() <= ROUNDING:
        ax.set_ylim(-NOTHING, NOTHING)  # else rounding would fill the panel
    ax.set_xscale("log", base=2)
    ax.set_xticks(depths, [f"{depth:g}" for depth in depths])
    ax.minorticks_off()
    ax.set_xlim(np.min(depths) / 1.15, np.max(depths) * 1.15)
    ax.set_xlabel("repeats per cell")
    ax.set_title(plain(component), fontsize="medium")
    tidy(ax)
    ax.legend(frameon=False, fontsize="small")
    return ax
