"""Word overlap of wordings against the cosine of their embeddings, with the controls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from secondorder.studies._figures import COLOURS, WIDTH

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw_overlap"]


def draw_overlap(found: xr.Dataset) -> Figure:
    """Pairs of wordings by Jaccard index and cosine; without an embedding, a strip of Jaccard indices."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    axes = figure.subplots()
    k, other = np.triu_indices(found.sizes["prompt"], 1)
    overlap, similarity = (found[key].to_numpy()[k, other] for key in ("overlap", "similarity"))
    control = found["control"].to_numpy()
    embedded = bool(np.isfinite(similarity).any())
    axes.plot(overlap, similarity if embedded else np.zeros(len(overlap)), "o", color=COLOURS[0], alpha=0.7)
    axes.set_xlabel("words in common (Jaccard)")
    axes.set_xlim(-0.03, 1.03)
    if embedded:
        axes.set_ylabel("cosine of embeddings")
    else:
        axes.set_yticks([])
    for index, height in enumerate(control[np.isfinite(control)]):
        axes.axhline(height, color=COLOURS[1], linestyle=":", linewidth=1, label=None if index else "a control")
    if np.isfinite(control).any():
        axes.legend(frameon=False, fontsize=8)
    axes.grid(color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure
