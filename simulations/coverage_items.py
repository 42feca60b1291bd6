"""How often bands over items hold the truth: four kinds of band, five populations of items, by size and design.

Items are drawn from a population; the truth is the population's. ``one-law``: every item has the same law and no
effect. ``half-steady`` and ``mostly-steady``: 50 and 85 % of the items always get the same answer, the others are as
before. ``moderate``: 200 items with laws and effects of their own. ``sparse``: 5 % of the items have a prompt component
of .4, the others none.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from secondorder.simulate import Mechanism, Study, StudyResult, band_methods, laws

BASE = [0.4, 0.3, 0.2, 0.1]
CLASSES = ["a", "b", "c", "d"]


@cache
def population(items: str, K: int) -> Any:
    """The law that items are drawn from."""
    facets = {"prompt": K, "order": 2}
    plain = laws.exchangeable(BASE, facets, classes=CLASSES)
    steady = laws.deterministic("a", facets, CLASSES)
    if items == "one-law":
        return plain
    if items in ("half-steady", "mostly-steady"):
        share = 0.5 if items == "half-steady" else 0.85
        return laws.population({"steady": steady, "noisy": plain}, [share, 1 - share])
    if items == "sparse":
        split = [[["a" if k % 2 else "b"] for k in range(K)]]
        affected = laws.dial(laws.deterministic(split, facets, CLASSES), {"prompt": 0.4})
        return laws.population({"affected": affected, "other": plain}, [0.05, 0.95])
    centres = laws.dirichlet([0.5, 0.25, 0.15, 0.1], 2, {"prompt": 1}, over=["prompt"], items=200, seed=5).values[:, 0]
    parts = {
        str(i): laws.dirichlet(centre, 10, facets, over=["prompt", "order"], seed=i, classes=CLASSES)
        for i, centre in enumerate(centres)
    }
    return laws.population(parts)


def mechanism(items: str, N: int, R: int, K: int) -> Mechanism:
    """N items from a population, R calls in each of K x 2 cells."""
    return Mechanism(population(items, K), repeats=R, items=N)


def figure(result: StudyResult) -> Any:
    """Misses below and above the truth of every method against N, at K = 6 and R = 4, for call, prompt and order."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = result.data.sel(K=6, R=4, method="nearest")
    kinds, shown = list(data["items"].values), ("call", "prompt", "order")
    drawn = Figure(figsize=(8.2, 10), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots(len(kinds), len(shown), sharex=True, sharey=True)
    names = {"debiased": "t", "percentile": "percentile", "bca": "BCa", "studentised": "studentised"}
    styles = zip(names.items(), ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), ("o", "s", "^", "D"), strict=True)
    place = np.arange(data.sizes["N"], dtype=float)
    for number, ((method, label), colour, marker) in enumerate(styles):
        for row, items in enumerate(kinds):
            for column, component in enumerate(shown):
                cell = data.sel(items=items, estimand=component, estimator=method)
                # The band ends below the truth: drawn downwards. It begins above it: drawn upwards.
                x = place + 0.14 * (number - 1.5)
                for measure, sign in (("missed_low", -1), ("missed_high", 1)):
                    value, error = 100 * cell[measure].values, 196 * cell[f"{measure}_mcse"].values
                    axes[row, column].errorbar(
                        x, sign * value, error, fmt=marker, color=colour, markersize=4, capsize=1.5, linewidth=1,
                        label=label if sign > 0 else None,
                    )  # fmt: skip
                    for at, share in zip(x, value, strict=True):
                        if share > 14:
                            axes[row, column].annotate(
                                f"{share:.0f}", (at, 13 * sign), color=colour, fontsize=5.5, ha="center", va="center"
                            )
    for row, items in enumerate(kinds):
        for column, component in enumerate(shown):
            ax = axes[row, column]
            for level in (-2.5, 0, 2.5):
                ax.axhline(level, color="#222222", linewidth=0.6, linestyle=":" if level else "-", zorder=0)
            ax.spines[["top", "right"]].set_visible(False)
            ax.set_ylim(-14, 14)
            ax.set_yticks([-10, -5, 0, 5, 10], ["10", "5", "0", "5", "10"])
            if row == 0:
                ax.set_title(component, fontsize=10)
            if column == 0:
                ax.set_ylabel(f"{items}\n% below | above", fontsize=9)
            if row == len(kinds) - 1:
                ax.set_xticks(place, [f"{n:g}" for n in data["N"].values])
                ax.set_xlabel("items, N")
    drawn.suptitle(
        "Bands that lie below (down) or above (up) the truth; dotted: 2.5 %; numbers: beyond the axis", fontsize=10
    )
    handles, labels = axes[0, 0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return drawn


STUDY = Study(
    name="coverage_items",
    aims="How often do 95 % bands over items hold the truth, and in which tail do they fail?",
    factors={
        "items": ("one-law", "half-steady", "mostly-steady", "moderate", "sparse"),
        "N": (25, 50, 200, 1000),
        "R": (2, 4, 8),
        "K": (5, 6, 20),
    },
    mechanism=mechanism,
    methods=("debiased", *band_methods()),
    replicates=4_000,
    seed=20261201,
    measures=("coverage", "missed_low", "missed_high", "width", "interval_failure"),
    figure=figure,
)
