"""What calls that are not independent do to estimates: shared seeds, caches, duplicated rows, drift.

The law of a single call is the same in every trap but the drift; only what calls share differs.
"""

from __future__ import annotations

from typing import Any

from secondorder.simulate import Dependence, Mechanism, Study, StudyResult, laws

FACETS = {"prompt": 6, "order": 2}
VALUES = {"prompt": 0.02, "order": 0.01}
BASE = [0.45, 0.35, 0.2]
TRAPS = {
    "none": "independent calls",
    "seed": "seed shared in an item and repeat",
    "seed-all": "seed shared by all items",
    "cache": "half of the repeats from a cache",
    "duplicate": "half of the rows twice",
    "drift": "law drifts from repeat to repeat",
}


def mechanism(trap: str, R: int) -> Mechanism:
    """Ten items with equal effects; traps touch all calls, cache and duplicates half of them."""
    law = laws.population({str(i): laws.effects(BASE, FACETS, VALUES) for i in range(10)})
    if trap == "none":
        return Mechanism(law, repeats=R)
    if trap == "drift":
        later = laws.population({str(i): laws.effects([0.25, 0.55, 0.2], FACETS, VALUES) for i in range(10)})
        return Mechanism(law, repeats=R, drift_to=later)
    return Mechanism(law, repeats=R, dependence=Dependence(trap, 0.5 if trap in ("cache", "duplicate") else 1.0))


def figure(result: StudyResult) -> Any:
    """Bias of three estimators under each trap, for every component, at R = 4."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = result.data.sel(R=4)
    names = list(data["estimand"].values)
    drawn = Figure(figsize=(10.5, 3.9), layout="constrained")
    FigureCanvasAgg(drawn)
    place = np.arange(len(TRAPS), dtype=float)[::-1]
    styles = {"plugin": ("#D55E00", "s"), "debiased": ("#0072B2", "o"), "across-repeats": ("#009E73", "^")}
    axes = drawn.subplots(1, len(names), sharey=True)
    for ax, name in zip(axes, names, strict=True):
        for number, (method, (colour, marker)) in enumerate(styles.items()):
            cell = data.sel(estimand=name, estimator=method, trap=list(TRAPS))
            error = 1.96 * cell["bias_mcse"].values
            label = {"plugin": "plug-in", "debiased": "debiased, complete pairs"}.get(method, method)
            y = place + 0.22 * (1 - number)
            ax.errorbar(
                cell["bias"].values, y, xerr=error, fmt=marker, color=colour, markersize=4.5, capsize=2, label=label
            )
        ax.axvline(0, color="#222222", linewidth=0.6, zorder=0)
        ax.set_title(name, fontsize=10)
        ax.set_xlabel("bias")
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="#eeeeee")
    axes[0].set_yticks(place, list(TRAPS.values()))
    handles, labels = axes[0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return drawn


STUDY = Study(
    name="dependence_traps",
    aims="How wrong are estimates when calls share seeds, come from caches, are counted twice, or drift?",
    factors={"trap": tuple(TRAPS), "R": (2, 4, 8)},
    mechanism=mechanism,
    methods=("debiased", "across-repeats", "plugin"),
    replicates=20_000,
    seed=20261204,
    measures=("bias", "empirical_se", "coverage"),
    figure=figure,
)
