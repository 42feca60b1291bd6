"""Which of two judges is steadier under a change of wording: the order that plug-in and debiased values give.

The *noisy* judge gives other answers from call to call (call component .19), and wording hardly matters to it (prompt
component .002). The *steady* judge repeats itself, but one item in ten depends on the wording (prompt component .006).
The plug-in counts call noise as prompt effect, and puts the noisy judge on top until there are enough repeats.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from secondorder import Design, core, standard_components
from secondorder.simulate import Draw, Estimate, Mechanism, Method, Study, StudyResult, laws

FACETS = {"prompt": 6, "order": 2}
WRONG = "noisy judge on top"


def mechanism(R: int, N: int) -> Mechanism:
    """N items of two kinds, seen by both judges."""
    import xarray as xr

    noisy = laws.effects([0.895, 0.07, 0.035], FACETS, {"prompt": 0.002})
    steady = laws.exchangeable([0.97, 0.02, 0.01], FACETS)
    affected = laws.effects([0.5, 0.4, 0.1], FACETS, {"prompt": 0.06})
    both = {
        name: xr.concat([noisy, other], xr.Variable("judge", ["noisy", "steady"])).transpose("item", "judge", ...)
        for name, other in (("affected", affected), ("other", steady))
    }
    return Mechanism(laws.population(both, [0.1, 0.9]), repeats=R, items=N, truth={WRONG: 0.0})


def ordering(draw: Draw, estimator: Any) -> Estimate:
    """1 where the noisy judge has the larger prompt component, ties half."""
    counts = np.asarray(draw.counts)
    design = Design.balanced(FACETS)
    values = np.asarray(
        estimator(core.cells_from_counts(counts), design, standard_components(design.names), core.nominal_kernel(3))
    )
    prompt = values[..., 1].mean(1)
    top = np.where(prompt[:, 0] == prompt[:, 1], 0.5, prompt[:, 0] > prompt[:, 1])
    return Estimate(top[:, None])


def by_plugin(draw: Draw) -> Estimate:
    """Order by the plug-in."""
    return ordering(draw, core.plugin)


def by_debiased(draw: Draw) -> Estimate:
    """Order by the debiased component."""
    return ordering(draw, core.complete_pairs)


def figure(result: StudyResult) -> Any:
    """Share of data sets in which the wrong judge is on top."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = result.data.sel(estimand=WRONG)
    drawn = Figure(figsize=(6.4, 3.2), layout="constrained")
    FigureCanvasAgg(drawn)
    place = np.arange(data.sizes["R"], dtype=float)
    for ax, N in zip(drawn.subplots(1, data.sizes["N"], sharey=True), data["N"].values, strict=True):
        for method, colour, marker in (("plug-in", "#D55E00", "s"), ("debiased", "#0072B2", "o")):
            cell = data.sel(N=N, estimator=method)
            ax.errorbar(
                place, 100 * cell["bias"], 196 * cell["bias_mcse"], fmt=f"{marker}-", color=colour, markersize=5,
                linewidth=1, capsize=2, label=f"by {method}",
            )  # fmt: skip
        ax.set_xticks(place, [f"{r:g}" for r in data["R"].values])
        ax.set_xlabel("calls per cell, R")
        ax.set_title(f"{N} items", fontsize=10)
        ax.set_ylim(-3, 103)
        ax.spines[["top", "right"]].set_visible(False)
    drawn.axes[0].set_ylabel("% of audits that put the\nnoisy judge on top (wrong)")
    handles, names = drawn.axes[0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    return drawn


STUDY = Study(
    name="judge_ordering",
    aims="How often do plug-in and debiased prompt components put the wrong one of two judges on top?",
    factors={"R": (2, 4, 8, 16), "N": (50, 200)},
    mechanism=mechanism,
    methods=(Method("debiased", by_debiased), Method("plug-in", by_plugin)),
    estimands=(WRONG,),
    replicates=10_000,
    seed=20261203,
    measures=("bias", "failure"),
    figure=figure,
)
