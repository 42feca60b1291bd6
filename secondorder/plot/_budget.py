"""Standard errors over designs, with the designs that cost the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from secondorder.plot._style import INK, PALETTE, PLUGIN_GREY, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from secondorder._statistics._budget import Budget

__all__ = ["budget"]

STEPS = 60


def budget(plan: Budget, component: str, *, levels: int | None = None, ax: Axes | None = None) -> Axes:
    """Contours of a component's predicted standard error over items and repeats; dashed: designs of equal cost.

    Parameters
    ----------
    plan : Budget
    component : str
    levels : int, optional
        Of the random facet; default: those of the pilot.
    ax : Axes, optional

    Returns
    -------
    Axes
        Diamonds are the plans for this component (at these levels).
    """
    ax = new_axes(ax, (7.0, 4.4))
    ax.set_xscale("log")
    ax.set_yscale("log", base=2)
    depths = np.array(plan.depths(), dtype=float)
    top = 800 if plan.population is None else min(800, plan.population)
    top = max([top, *(p.items for p in plan.plans if p.component == component)])
    items = np.unique(np.round(np.geomspace(5, top, STEPS)).astype(int))
    se = np.array([[plan.se(component, items=int(n), repeats=int(r), levels=levels) for n in items] for r in depths])
    drawn = ax.contour(items, depths, se, levels=_steps(se), colors=INK, linewidths=0.9)
    ax.clabel(drawn, fmt=lambda value: f"{value:.3g}", fontsize=7, inline_spacing=2)
    cost = np.array([[plan.calls(int(n), int(r), levels) for n in items] for r in depths], dtype=float)
    powers = np.arange(np.floor(np.log10(cost.min())), np.ceil(np.log10(cost.max())) + 1)
    equal = ax.contour(items, depths, cost, levels=10.0**powers, colors=PLUGIN_GREY, linestyles="--", linewidths=0.7)
    ax.clabel(equal, fmt=lambda value: f"{value:,.0f} calls", fontsize=7, inline_spacing=2)
    size = levels if levels is not None else (plan.levels if plan.facet is not None else None)
    for chosen in plan.plans:
        if chosen.component == component and chosen.levels == size:
            ax.plot(chosen.items, chosen.repeats, "D", color=PALETTE[4], markersize=6)
            ax.annotate(
                chosen.goal, (chosen.items, chosen.repeats), textcoords="offset points", xytext=(7, -3), fontsize=8,
                color=PALETTE[4],
            )  # fmt: skip
    ax.set_ylim(depths[0] / 1.05, depths[-1] * 1.18)
    ax.set_xlim(items[0], items[-1] * 1.1)
    ax.set_yticks(depths, [f"{r:g}" for r in depths])
    ax.minorticks_off()
    ticks = [n for n in (5, 10, 25, 50, 100, 200, 400, 800, 1600, 3200) if n <= items.max()]
    ax.set_xticks(ticks, [f"{n:g}" for n in ticks])
    ax.set_xlabel("items" if size is None else f"items, {size} levels of {plan.facet}")
    ax.set_ylabel("repeats per cell")
    ax.set_title(f"predicted SE of {component}", fontsize=10)
    tidy(ax)
    return ax


def _steps(values: np.ndarray) -> list[float]:
    """Round numbers across the range: 1, 2, 3, 5 and 7 of every power of ten."""
    low, high = np.floor(np.log10(values.min())), np.ceil(np.log10(values.max()))
    steps = [digit * 10.0**power for power in np.arange(low, high + 1) for digit in (1, 2, 3, 5, 7)]
    return [step for step in steps if values.min() < step < values.max()]
