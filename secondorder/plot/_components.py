"""Components per judge: stacked shares of the total, and bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from secondorder._statistics._decomposition import Decomposition
from secondorder._statistics._group import Group
from secondorder.errors import UndefinedError
from secondorder.plot._style import PLUGIN_GREY, colours, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bands", "components"]


def components(decomposition: Decomposition, *, ax: Axes | None = None) -> Axes:
    """Stacked components per judge: the debiased stack above, the plug-in stack (hatched) below it.

    Negative estimates are drawn to the left of zero; the total is a black mark.

    Parameters
    ----------
    decomposition : Decomposition
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
    groups = decomposition.groups
    undefined = next((reason for group in groups for reason in group.reasons if reason), "")
    if undefined:
        raise UndefinedError(f"there is nothing to stack: {undefined}", place="plot.components")
    ax = new_axes(ax, (7.0, 1.2 + 0.75 * len(groups)))
    palette = colours(groups[0].names)
    parts = _stacked_names(groups[0])
    for row, group in enumerate(groups):
        for offset, values, hatched in (
            (0.19, group.values.mean(0), False),
            (-0.19, group.plugin_values.mean(0), True),
        ):
            _stack(ax, row + offset, dict(zip(group.names, values, strict=True)), parts, palette, hatched)
    ax.set_yticks(range(len(groups)), [", ".join(group.by.values()) or "all calls" for group in groups])
    ax.invert_yaxis()
    ax.axvline(0, color="#222222", linewidth=0.8)
    ax.set_xlabel(
        f"disagreement of two calls ({decomposition.settings.kernel} kernel); upper bar debiased, "
        "lower hatched bar plug-in"
    )
    _legend(ax, parts, palette)
    tidy(ax)
    return ax


def _stacked_names(group: Group) -> list[str]:
    standard = {component.name for component in group.components if ":" in component.name}
    return [name for name in group.names if name == "call" or name in standard or name in group.design.names]


def _stack(
    ax: Axes, y: float, values: dict[str, float], parts: list[str], palette: dict[str, str], hatched: bool
) -> None:
    right = left = 0.0
    for name in parts:
        value = float(values[name])
        start = right if value >= 0 else left
        ax.barh(
            y,
            value,
            left=start,
            height=0.34,
            color=palette[name],
            edgecolor="white",
            linewidth=0.5,
            hatch="////" if hatched else None,
            alpha=0.75 if hatched else 1.0,
        )
        if value >= 0:
            right += value
        else:
            left += value
    ax.plot([values["total"]] * 2, [y - 0.17, y + 0.17], color="#222222", linewidth=1.6, solid_capstyle="butt")


def _legend(ax: Axes, parts: list[str], palette: dict[str, str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [Patch(facecolor=palette[name], label=name) for name in parts]
    handles.append(Line2D([], [], color="#222222", linewidth=1.6, label="total"))
    ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(handles), frameon=False)


def bands(decomposition: Decomposition, *, component: str | None = None, ax: Axes | None = None) -> Axes:
    """Debiased estimates with their bands, and the plug-in as a hollow grey mark.

    Parameters
    ----------
    decomposition : Decomposition
    component : str, optional
        One component over all groups; default: every component of every group.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    groups = decomposition.groups
    rows = [
        (
            ", ".join(filter(None, [", ".join(group.by.values()), estimate.component if component is None else ""])),
            estimate,
        )
        for group in groups
        for estimate in group.estimates
        if component in (None, estimate.component)
    ]
    ax = new_axes(ax, (7.0, 1.0 + 0.32 * len(rows)))
    palette = colours(groups[0].names)
    for y, (_, estimate) in enumerate(rows):
        colour = palette.get(estimate.component, "#0072B2")
        if not np.isnan(estimate.lower):
            ax.plot([estimate.lower, estimate.upper], [y, y], color=colour, linewidth=2)
        ax.plot(estimate.estimate, y, "o", color=colour, markersize=6)
        ax.plot(estimate.plugin, y, "D", markerfacecolor="none", markeredgecolor=PLUGIN_GREY, markersize=6)
    ax.set_yticks(range(len(rows)), [label or estimate.component for label, estimate in rows])
    ax.invert_yaxis()
    ax.axvline(0, color="#222222", linewidth=0.8)
    settings = decomposition.settings
    ax.set_xlabel(
        f"{component or 'component'}: debiased (dot) with {100 * settings.level:g}% {settings.interval} band over "
        f"{settings.covers}, plug-in (diamond)"
    )
    tidy(ax)
    return ax
