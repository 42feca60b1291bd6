"""The items behind a mean: a strip of per-item values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from secondorder._statistics._decomposition import Decomposition
from secondorder.plot._style import PLUGIN_GREY, colours, new_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["items"]


def items(decomposition: Decomposition, *, components: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Debiased value of every item per component, with the mean: who carries the instability.

    Values below zero are sampling noise of items near zero, shown as they are. Items with equal values are spread
    vertically so that each is seen.

    Parameters
    ----------
    decomposition : Decomposition
        With one group.
    components : sequence of str, optional
        Default: all but total.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    group = decomposition._only
    names = [name for name in group.names if name != "total"] if components is None else list(components)
    ax = new_axes(ax, (7.0, 1.0 + 0.6 * len(names)))
    palette = colours(group.names)
    for row, name in enumerate(names):
        values = group.values[:, group.index(name)]
        ax.scatter(values, row + _spread(values), s=14, color=palette[name], alpha=0.55, linewidths=0)
        ax.plot([values.mean()] * 2, [row - 0.36, row + 0.36], color="#222222", linewidth=1.6)
    ax.axvline(0, color=PLUGIN_GREY, linewidth=0.8)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(f"debiased value of each of {len(group.items)} items; black mark: mean over items")
    tidy(ax)
    return ax


def _spread(
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Vertical offsets that keep apart the items of one narrow bin, in a fixed order (no random jitter)."""
    width = np.ptp(values) / 60 or 1.0
    bins = np.floor((values - values.min()) / width).astype(int)
    offsets = np.zeros(len(values))
    for bin_ in np.unique(bins):
        members = np.flatnonzero(bins == bin_)
        place = (np.arange(len(members)) + 1) // 2 * np.where(np.arange(len(members)) % 2, 1, -1)
        offsets[members] = place * min(0.07, 0.6 / max(len(members), 1))
    return offsets
