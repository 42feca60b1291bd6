"""Bias of every component against the number of calls per cell, for three kinds of law and their kernels."""

from __future__ import annotations

from typing import Any

from secondorder.simulate import Mechanism, Study, StudyResult, laws

FACETS = {"prompt": 6, "order": 2}


def mechanism(R: int, law: str) -> Mechanism:
    """Nominal classes with every effect; scores 1 to 5; an ordered scale with invalid verdicts."""
    if law == "classes":
        values = {"prompt": 0.02, "order": 0.01, "prompt:order": 0.005}
        return Mechanism(laws.effects([0.4, 0.3, 0.2, 0.1], FACETS, values), repeats=R)
    shifts = {"prompt": [-0.3, -0.1, 0.0, 0.0, 0.1, 0.3], "order": [-0.1, 0.1]}
    made = laws.scores([1, 2, 3, 4, 5], FACETS, location=3.4, spread=0.4, shifts=shifts)
    if law == "scores":
        return Mechanism(made, repeats=R, kernel="interval")
    return Mechanism(laws.with_invalid(made, 0.05), repeats=R, kernel="ordinal")


def figure(result: StudyResult) -> Any:
    """One panel per component and law; curves are closed forms, points are simulated."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = result.data
    R = data["R"].values.astype(float)
    curve = np.linspace(R.min(), R.max(), 200)
    titles = {"classes": "classes, nominal", "scores": "scores, interval", "ordinal": "scores with ⊥, ordinal"}
    names = list(data["estimand"].values)
    drawn = Figure(figsize=(10, 5.6), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots(len(titles), len(names), sharex=True, sharey="row")
    for row, (law, title) in enumerate(titles.items()):
        for column, name in enumerate(names):
            ax, cell = axes[row, column], data.sel(law=law, estimand=name)
            exact = cell["plugin_bias"].values
            ax.plot(curve, exact[0] * R[0] / curve, color="#D55E00", linewidth=1, label="plug-in, closed form")
            for method, colour, marker in (("plugin", "#D55E00", "s"), ("debiased", "#0072B2", "o")):
                label = f"{'plug-in' if method == 'plugin' else 'debiased'}, simulated"
                ax.plot(R, cell["bias"].sel(estimator=method), marker, color=colour, markersize=4, label=label)
            ax.axhline(0, color="#222222", linewidth=0.6, zorder=0)
            ax.spines[["top", "right"]].set_visible(False)
            if row == 0:
                ax.set_title(name, fontsize=10)
            if row == len(titles) - 1:
                ax.set_xticks(R, [f"{r:g}" for r in R])
                ax.set_xlabel("calls per cell, R")
        axes[row, 0].set_ylabel(f"{title}\nbias", fontsize=9)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return drawn


STUDY = Study(
    name="bias_by_repeats",
    aims="How does the bias of each component fall with calls per cell, and is debiased unbiased at every R?",
    factors={"R": (2, 4, 8, 16), "law": ("classes", "scores", "ordinal")},
    mechanism=mechanism,
    replicates=400_000,
    seed=20261202,
    measures=("bias", "empirical_se", "mse_ratio"),
    figure=figure,
)
