"""Components per judge: stacked shares of the total, and bands."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from secondorder.errors import InputError, UndefinedError
from secondorder.plot._style import PLUGIN_GREY, colours, legend_columns, new_axes, plain, short_label, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from secondorder._statistics._decomposition import Decomposition

__all__ = ["bands", "components"]


def components(result: Decomposition | xr.Dataset, *, ax: Axes | None = None) -> Axes:
    """Stacked components per judge: the debiased stack above, the plug-in stack (hatched) below it.

    Negative estimates are drawn to the left of zero; the total is a black mark.

    Parameters
    ----------
    result : Decomposition or Dataset
        A decomposition, or its :meth:`~secondorder.Decomposition.to_dataset`.
    ax : Axes, optional
        Default: those of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    UndefinedError
        When a debiased component does not exist (one call per cell).
    """
    data = _dataset(result, "plot.components")
    parts = [name for name in data.component.values[data.standard.values].tolist() if name != "total"]
    if np.isnan(data.estimate.sel(component=parts)).any():
        raise UndefinedError("a debiased component is undefined", place="plot.components", remedy="see its reason")
    groups = data.group.values.tolist()
    labels = [short_label(label) or "all calls" for label in groups]
    columns = legend_columns([*map(plain, parts), "total"], beside=max(map(len, labels)))
    ax = new_axes(ax, (7.0, 1.0 + 0.2 * math.ceil((len(parts) + 1) / columns) + 0.75 * len(groups)))
    palette = colours(parts)
    for row in range(len(groups)):
        group = data.isel(group=row)
        _stack(ax, row - 0.19, group.estimate, parts, palette, hatched=False)
        _stack(ax, row + 0.19, group.plugin, parts, palette, hatched=True)
    ax.set_yticks(range(len(groups)), labels)
    ax.invert_yaxis()
    ax.axvline(0, color="#222222", linewidth=0.8)
    ax.set_xlabel(
        f"disagreement of two calls ({data.attrs['kernel']} kernel)\nplain bar: debiased; hatched bar: plug-in"
    )
    _legend(ax, parts, palette, columns)
    tidy(ax)
    return ax


def _dataset(result: Decomposition | xr.Dataset, place: str) -> xr.Dataset:
    data = result if isinstance(result, xr.Dataset) else result.to_dataset()
    if "component" not in data.dims:
        raise InputError("this is no decomposition", place=place, remedy="decompose the cube first")
    return data


def _stack(
    ax: Axes, y: float, values: xr.DataArray, parts: list[str], palette: dict[str, str], *, hatched: bool
) -> None:
    right = left = 0.0
    style: dict[str, Any] = {"hatch": "////", "alpha": 0.75} if hatched else {}
    for name in parts:
        value = float(values.sel(component=name))
        start = right if value >= 0 else left
        ax.barh(y, value, left=start, height=0.34, color=palette[name], edgecolor="white", linewidth=0.5, **style)
        if value >= 0:
            right += value
        else:
            left += value
    total = float(values.sel(component="total"))
    ax.plot([total] * 2, [y - 0.17, y + 0.17], color="#222222", linewidth=1.6, solid_capstyle="butt")


def _legend(ax: Axes, parts: list[str], palette: dict[str, str], columns: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [Patch(facecolor=palette[name], label=plain(name)) for name in parts]
    handles.append(Line2D([], [], color="#222222", linewidth=1.6, label="total"))
    ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns, frameon=False)


def bands(result: Decomposition | xr.Dataset, *, component: str | None = None, ax: Axes | None = None) -> Axes:
    """Debiased estimates with their bands, and the plug-in as a hollow grey mark.

    Parameters
    ----------
    result : Decomposition or Dataset
    component : str, optional
        One component over all groups; default: every component of every group.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    data = _dataset(result, "plot.bands")
    known = data.component.values.tolist()
    if component is not None and component not in known:
        raise InputError(
            f"there is no component {component!r}", place="plot.bands", remedy=f"choose {', '.join(known)}"
        )
    names = known if component is None else [component]
    several = data.sizes["group"] > 1
    rows = [(group, name) for group in range(data.sizes["group"]) for name in names]
    ax = new_axes(ax, (7.0, 1.0 + 0.32 * len(rows)))
    palette = colours(known)
    labels = []
    for y, (group, name) in enumerate(rows):
        row = data.isel(group=group).sel(component=name)
        label = short_label(str(data.group.values[group]))
        labels.append(label if component is not None else f"{label}, {plain(name)}" if several else plain(name))
        if not np.isnan(row.lower):
            ax.plot([float(row.lower), float(row.upper)], [y, y], color=palette[name], linewidth=2)
        ax.plot(float(row.estimate), y, "o", color=palette[name], markersize=6)
        ax.plot(float(row.plugin), y, "D", markerfacecolor="none", markeredgecolor=PLUGIN_GREY, markersize=6)
    ax.set_yticks(range(len(rows)), labels)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.locator_params(axis="x", nbins=7)
    ax.axvline(0, color="#222222", linewidth=0.8)
    attrs = data.attrs
    ax.set_xlabel(
        f"{plain(component or 'component')} (diamond: plug-in)\n"
        f"dot: debiased, with {100 * attrs['level']:g}% {attrs['interval']} band over {attrs['covers']}"
    )
    tidy(ax)
    return ax
