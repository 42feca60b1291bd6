"""The calibration of the defining paper: twelve designs, a million data sets each.

Laws, designs and numbers: estimated bias of plug-in and debiased prompt components at item level, for a null law and
one whose prompt component is exactly .03.
"""

from __future__ import annotations

from typing import Any

from secondorder.simulate import Mechanism, Published, Study, StudyResult, laws

BASE = [0.4, 0.3, 0.2, 0.1]
PAPER = "printed in the paper"
EXACT = "exact item-level variance"


def mechanism(K: int, R: int, law: str) -> Mechanism:
    """Null: one law in every cell. Nonzero: prompts move probability from the second class to the first."""
    facets = {"prompt": K, "order": 2}
    made = laws.exchangeable(BASE, facets) if law == "null" else laws.effects(BASE, facets, {"prompt": 0.03})
    return Mechanism(made, repeats=R)


def published() -> list[Published]:
    """The paper's bias curve at K = 6, and the ratios and shares that follow from exact variances."""
    bias = {(6, 2): 0.1459, (6, 4): 0.0730, (6, 8): 0.0365}
    ratio = {
        ("null", 5): (4.27, 5.35, 5.78),
        ("null", 6): (5.13, 6.46, 6.99),
        ("nonzero", 5): (3.27, 3.18, 2.56),
        ("nonzero", 6): (3.93, 3.83, 3.03),
    }
    negative = {5: (0.529, 0.553, 0.559), 6: (0.527, 0.550, 0.553)}
    rows = []
    for (law, K), values in ratio.items():
        for R, value in zip((2, 4, 8), values, strict=True):
            point: dict[str, str | int | float | bool] = {"K": K, "R": R, "law": law}
            rows.append(Published(point, "plugin", "prompt", "mse_ratio", value, EXACT))
            if law == "null":
                share = negative[K][(2, 4, 8).index(R)]
                rows.append(Published(point, "debiased", "prompt", "negative", share, EXACT))
                if (K, R) in bias:
                    rows.append(Published(point, "plugin", "prompt", "bias", bias[K, R], PAPER))
    return rows


def figure(result: StudyResult) -> Any:
    """Bias against R, simulated beside closed form: the form of the paper's Figure 3."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = result.data.sel(estimand="prompt")
    drawn = Figure(figsize=(7.2, 3.4), layout="constrained")
    FigureCanvasAgg(drawn)
    R = data["R"].values.astype(float)
    curve = np.linspace(1.8, 8.6, 200)
    for ax, K in zip(drawn.subplots(1, 2, sharey=True), data["K"].values, strict=True):
        for law, colour, marker in (("null", "#0072B2", "o"), ("nonzero", "#D55E00", "s")):
            cell = data.sel(K=K, law=law)
            scale = float(cell["plugin_bias"].sel(R=2)) * 2
            ax.plot(curve, scale / curve, color=colour, linewidth=1, label=f"plug-in, closed form, {law}")
            for name, face in (("plugin", colour), ("debiased", "white")):
                bias = cell["bias"].sel(estimator=name).values
                error = 1.96 * cell["bias_mcse"].sel(estimator=name).values
                label = f"{'plug-in' if name == 'plugin' else 'debiased'}, simulated, {law}"
                style = {"fmt": marker, "color": colour, "mfc": face, "markersize": 5, "capsize": 2}
                ax.errorbar(R + (0.08 if law == "nonzero" else -0.08), bias, error, label=label, **style)
        ax.axhline(0, color="#222222", linewidth=0.6)
        ax.set_xticks(R, [f"{r:g}" for r in R])
        ax.set_xlabel("calls per cell, R")
        ax.set_title(f"K = {K} prompts, two orders", fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    drawn.axes[0].set_ylabel("bias of the prompt component")
    handles, names = drawn.axes[0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return drawn


STUDY = Study(
    name="paper_calibration",
    aims="How large are bias and mean squared error of plug-in and debiased prompt components at the paper's designs?",
    factors={"K": (5, 6), "R": (2, 4, 8), "law": ("null", "nonzero")},
    mechanism=mechanism,
    replicates=1_000_000,
    seed=20261130,
    measures=("bias", "empirical_se", "mse", "mse_ratio", "negative"),
    published=published(),
    figure=figure,
)
