"""The items behind a mean: a strip of per-item values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._design import listed
from secondorder.errors import InputError
from secondorder.plot._style import PLUGIN_GREY, colours, new_axes, plain, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from secondorder._statistics._decomposition import Decomposition

__all__ = ["items"]


def items(
    result: Decomposition | xr.Dataset, *, components: str | Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Debiased value of every item per component, with the mean: who carries the instability.

    Values below zero are sampling noise of items near zero, shown as they are. Items with nearly equal values are
    spread vertically so that each is seen.

    Parameters
    ----------
    result : Decomposition or Dataset
        With one group; or a dataset with ``value (item, component)``, such as the decomposition's
        :meth:`~secondorder.Decomposition.items_dataset`.
    components : str or sequence of str, optional
        Default: all but total.
    ax : Axes, optional

    Returns
    -------
    Axes
    """
    data = result if isinstance(result, xr.Dataset) else result.items_dataset()
    if "component" not in data.dims:
        raise InputError("this is no decomposition", place="plot.items", remedy="decompose the cube first")
    if "group" in data.dims:
        if data.sizes["group"] != 1:
            raise InputError(
                f"there are {data.sizes['group']} groups", place="plot.items", remedy="select one of them first"
            )
        data = data.isel(group=0)
    every = data.component.values.tolist()
    names = [name for name in every if name != "total"] if components is None else list(listed(components))
    ax = new_axes(ax, (7.0, 1.0 + 0.6 * len(names)))
    palette = colours(every)
    for row, name in enumerate(names):
        values = np.asarray(data.value.sel(component=name).values)
        values = values[~np.isnan(values)]
        ax.scatter(values, row + _spread(values), s=14, color=palette[name], alpha=0.55, linewidths=0)
        if len(values):
            ax.plot([values.mean()] * 2, [row - 0.36, row + 0.36], color="#222222", linewidth=1.6)
    ax.axvline(0, color=PLUGIN_GREY, linewidth=0.8)
    ax.set_yticks(range(len(names)), [plain(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(f"debiased value of each of {data.sizes['item']} items; black mark: their mean")
    tidy(ax)
    return ax


def _spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Vertical offsets that keep apart the items of one narrow bin, in a fixed order (no random jitter)."""
    offsets = np.zeros(len(values))
    if not len(values):
        return offsets
    width = np.ptp(values) / 60 or 1.0
    bins = np.floor((values - values.min()) / width).astype(int)
    for bin_ in np.unique(bins):
        members = np.flatnonzero(bins == bin_)
        step = (np.arange(len(members)) + 1) // 2 * np.where(np.arange(len(members)) % 2, 1, -1)
        offsets[members] = step * min(0.07, 0.6 / len(members))
    return offsets
