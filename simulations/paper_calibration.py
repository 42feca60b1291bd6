"""The calibration of the defining paper: twelve designs, four million data sets each.

Laws, designs and numbers: estimated bias of plug-in and debiased prompt components at item level, for a null law and
one whose prompt component is exactly .03.
"""

from __future__ import annotations

from typing import Any

from secondorder.simulate import Mechanism, Published, Study, StudyResult, laws

BASE = [0.4, 0.3, 0.2, 0.1]
PAPER = "printed in the paper"
EXACT = "exact item-level variance"
EARLIER = "an earlier simulation, to about .002"


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
                rows.append(Published(point, "debiased", "prompt", "negative", share, EARLIER))
                if (K, R) in bias:
                    rows.append(Published(point, "plugin", "prompt", "bias", bias[K, R], PAPER))
    return rows


def figure(result: StudyResult) -> Any:
    """Bias against R beside its closed form, as in the paper's Figure 3, and below it what is left between the two."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = result.data.sel(estimand="prompt")
    drawn = Figure(figsize=(7.4, 5.2), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots(2, 2, sharex=True, sharey="row", height_ratios=(2, 1.2))
    R = data["R"].values.astype(float)
    curve = np.linspace(1.8, 8.6, 200)
    for column, K in enumerate(data["K"].values):
        top, below = axes[:, column]
        for law, colour, marker, shift in (("null", "#0072B2", "o", -0.1), ("nonzero", "#D55E00", "s", 0.1)):
            cell = data.sel(K=K, law=law)
            exact = cell["plugin_bias"].values
            top.plot(curve, exact[0] * R[0] / curve, color=colour, linewidth=1, label=f"closed form, {law}")
            for name, face, nudge, closed in (("plugin", colour, 0, exact), ("debiased", "white", 0.06, 0 * exact)):
                bias = cell["bias"].sel(estimator=name).values
                error = 1.96 * cell["bias_mcse"].sel(estimator=name).values
                shown = "plug-in" if name == "plugin" else "debiased"
                style: dict[str, Any] = {"color": colour, "mfc": face, "markersize": 5}
                top.plot(R, bias, marker, label=f"{shown}, simulated, {law}", **style)
                place = R + shift + (nudge if shift > 0 else -nudge) * 3
                below.errorbar(place, 1e4 * (bias - closed), 1e4 * error, fmt=marker, capsize=2, **style)
        top.axhline(0, color="#222222", linewidth=0.6)
        below.axhline(0, color="#222222", linewidth=0.6)
        top.set_title(f"K = {K} prompts, two orders", fontsize=10)
        below.set_xticks(R, [f"{r:g}" for r in R])
        below.set_xlabel("calls per cell, R")
        for ax in (top, below):
            ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("bias of the prompt component")
    axes[1, 0].set_ylabel("simulated − closed form\n(×10⁻⁴, 95 %)")
    handles, names = axes[0, 0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    return drawn


STUDY = Study(
    name="paper_calibration",
    aims="How large are bias and mean squared error of plug-in and debiased prompt components at the paper's designs?",
    factors={"K": (5, 6), "R": (2, 4, 8), "law": ("null", "nonzero")},
    mechanism=mechanism,
    replicates=4_000_000,
    seed=20261130,
    measures=("bias", "empirical_se", "mse", "mse_ratio", "negative"),
    published=published(),
    figure=figure,
)
