"""Bands that cover the draw of prompts: over levels at fixed items, and over items and levels together.

Prompts are a sample from a policy and serve all items. With *fixed* items the target is the policy's value on these
items, and the band over levels has to hold it; with *drawn* items it is that of the population too, and the two-way
band has to. The band over items alone stands beside them: it takes the prompts at hand for all there are.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from secondorder import Facet, core
from secondorder.simulate import Draw, Estimate, Mechanism, Method, Study, StudyResult, laws

LISTED = 300
CLASSES = ["a", "b", "c"]


@cache
def law(items: int) -> Any:
    """A shared effect of every prompt, one of its own on every item, an effect of order on items."""
    generator = np.random.default_rng(3)
    logits = np.log([0.5, 0.3, 0.2])
    shared = generator.normal(0, 0.4, (1, LISTED, 1, 3))
    own = generator.normal(0, 0.4, (items, LISTED, 1, 3))
    order = generator.normal(0, 0.3, (items, 1, 2, 3))
    item = generator.normal(0, 1.0, (items, 1, 1, 3))
    weight = np.exp(logits + shared + own + order + item)
    plain = laws.exchangeable([0.5, 0.3, 0.2], {"prompt": LISTED, "order": 2}, classes=CLASSES)
    values = weight / weight.sum(-1, keepdims=True)
    return plain.isel(item=[0] * items).assign_coords(item=[str(i) for i in range(items)]).copy(data=values)


def mechanism(items: str, N: int, K: int) -> Mechanism:
    """K prompts drawn from the policy, two calls in each of the K x 2 cells of N items."""
    listed = law(300) if items == "drawn" else law(300).isel(item=slice(N))
    number = N if items == "drawn" else None
    facets = [Facet("prompt", "random"), "order"]
    return Mechanism(listed, repeats=2, facets=facets, levels={"prompt": K}, items=number)


def _parts(draw: Draw) -> tuple[Any, Any]:
    cells = core.cells_from_counts(draw.counts)
    parts = core.cluster_parts(cells, draw.design, draw.components, draw.kernel, "prompt")
    # (B, N, components, K) to (N, B x components, K)
    return tuple(np.moveaxis(np.asarray(part), 1, 0).reshape(part.shape[1], -1, part.shape[3]) for part in parts)


def _banded(draw: Draw, errors: core.ItemErrors) -> Estimate:
    band = core.t_interval(errors, draw.level)
    size = len(draw.components)
    return Estimate(*(np.asarray(part).reshape(-1, size) for part in (errors.estimate, band.lower, band.upper)))


def over_levels(draw: Draw) -> Estimate:
    """Delete-one jackknife over prompts, at the items at hand."""
    same, distinct = _parts(draw)
    return _banded(draw, core.level_errors(same.mean(0), distinct.mean(0)).errors)


def two_way(draw: Draw) -> Estimate:
    """Items and prompts both as samples."""
    return _banded(draw, core.two_way_errors(*_parts(draw)).errors)


def figure(result: StudyResult) -> Any:
    """Coverage of every band against the number of prompts."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    names = {"debiased": "over items", "levels": "over prompts", "two-way": "over items and prompts"}
    rows = [(items, N) for items in result.data["items"].values for N in result.data["N"].values]
    drawn = Figure(figsize=(9.2, 1.2 + 1.55 * len(rows)), layout="constrained")
    FigureCanvasAgg(drawn)
    components = [str(name) for name in result.data["estimand"].values]
    axes = drawn.subplots(len(rows), len(components), sharex=True, sharey=True, squeeze=False)
    place = np.arange(result.data.sizes["K"], dtype=float)
    for (row, column), ax in np.ndenumerate(axes):
        items, N = rows[row]
        styles = zip(names.items(), ("#767676", "#D55E00", "#0072B2"), ("x", "s", "o"), strict=True)
        for number, ((method, label), colour, marker) in enumerate(styles):
            cell = result.data.sel(items=items, N=N, estimand=components[column], estimator=method)
            value, error = 100 * cell["coverage"].values, 196 * cell["coverage_mcse"].values
            ax.errorbar(
                place + 0.1 * (number - 1), value, error, fmt=marker, color=colour, markersize=4.5, capsize=1.5,
                linewidth=1, label=label,
            )  # fmt: skip
        ax.axhspan(93.5, 96.5, color="#222222", alpha=0.08, linewidth=0)
        ax.axhline(95, color="#222222", linewidth=0.6, linestyle=":", zorder=0)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_ylim(38, 102)
        if row == 0:
            ax.set_title(components[column], fontsize=10)
        if row == len(rows) - 1:
            ax.set_xticks(place, [f"{k:g}" for k in result.data["K"].values])
            ax.set_xlabel("prompts, K")
        if column == 0:
            ax.set_ylabel(f"{N} {items} items", fontsize=9)
    drawn.suptitle("Coverage of nominal 95 % bands when prompts are a sample; shaded: within 1.5 points", fontsize=10)
    drawn.supylabel("% of bands that hold", fontsize=10)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return drawn


STUDY = Study(
    name="coverage_levels",
    aims="How often do 95 % bands hold the policy's value, when prompts are a sample?",
    factors={"items": ("fixed", "drawn"), "N": (25, 50, 200), "K": (6, 20, 40)},
    mechanism=mechanism,
    methods=("debiased", Method("levels", over_levels), Method("two-way", two_way)),
    replicates=20_000,
    seed=20261203,
    measures=("coverage", "missed_low", "missed_high", "width", "interval_failure"),
    figure=figure,
)
