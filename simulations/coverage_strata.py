"""Bands over a stratified sample of items: how many items a stratum needs.

Four strata, each a population of its own: one nearly without noise, one without effects, two with effects of different
size.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from secondorder.simulate import Mechanism, Study, StudyResult, band_methods, laws

BASE = [0.4, 0.3, 0.2, 0.1]
CLASSES = ["a", "b", "c", "d"]
FACETS = {"prompt": 6, "order": 2}


@cache
def strata() -> Any:
    """The law that items are drawn from, stratum by stratum."""
    parts = {
        "steady": laws.rare_flips(0.02, FACETS, classes=CLASSES),
        "noisy": laws.exchangeable(BASE, FACETS, classes=CLASSES),
        "moderate": laws.dirichlet(BASE, 20, FACETS, over=["prompt", "order"], items=60, seed=1, classes=CLASSES),
        "wild": laws.dirichlet(BASE, 2, FACETS, over=["prompt"], items=60, seed=2, classes=CLASSES),
    }
    law = laws.population(parts)
    return law.rename(part="stratum")


def mechanism(items: int, R: int) -> Mechanism:
    """The same number of items in every stratum."""
    return Mechanism(strata(), repeats=R, items=dict.fromkeys(("steady", "noisy", "moderate", "wild"), items))


def figure(result: StudyResult) -> Any:
    """Misses below and above the truth of every method against the items of a stratum."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = ("call", "prompt", "order", "prompt:order")
    names = {"debiased": "t", "percentile": "percentile", "bca": "BCa", "studentised": "studentised"}
    drawn = Figure(figsize=(8.2, 4.6), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots(result.data.sizes["R"], len(shown), sharex=True, sharey=True, squeeze=False)
    place = np.arange(result.data.sizes["items"], dtype=float)
    styles = zip(names.items(), ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), ("o", "s", "^", "D"), strict=True)
    for number, ((method, label), colour, marker) in enumerate(styles):
        for (row, column), ax in np.ndenumerate(axes):
            R = result.data["R"].values[row]
            cell = result.data.sel(R=R, estimand=shown[column], estimator=method)
            for measure, sign in (("missed_low", -1), ("missed_high", 1)):
                value, error = 100 * cell[measure].values, 196 * cell[f"{measure}_mcse"].values
                ax.errorbar(
                    place + 0.14 * (number - 1.5), sign * value, error, fmt=marker, color=colour, markersize=4,
                    capsize=1.5, linewidth=1, label=label if sign > 0 else None,
                )  # fmt: skip
            if row == 0:
                ax.set_title(shown[column], fontsize=10)
            if column == 0:
                ax.set_ylabel(f"R = {R}\n% below | above", fontsize=9)
    for ax in axes.flat:
        for level in (-2.5, 0, 2.5):
            ax.axhline(level, color="#222222", linewidth=0.6, linestyle=":" if level else "-", zorder=0)
        ax.spines[["top", "right"]].set_visible(False)
        ax.set_ylim(-25, 25)
        ax.set_yticks([-20, -10, 0, 10, 20], ["20", "10", "0", "10", "20"])
    for ax in axes[-1]:
        ax.set_xticks(place, [f"{n:g}" for n in result.data["items"].values])
        ax.set_xlabel("items per stratum")
    drawn.suptitle("Bands that lie below (down) or above (up) the truth; dotted: 2.5 %", fontsize=10)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return drawn


STUDY = Study(
    name="coverage_strata",
    aims="How many items does a stratum need for 95 % bands over a stratified sample?",
    factors={"items": (2, 3, 5, 10, 50), "R": (2, 4)},
    mechanism=mechanism,
    methods=("debiased", *band_methods()),
    replicates=4_000,
    seed=20261202,
    measures=("coverage", "missed_low", "missed_high", "width", "interval_failure"),
    figure=figure,
)
