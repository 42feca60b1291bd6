"""Certificates of a whole audit: how often they are false, and how many of its items they take.

All items of a benchmark in random order, threshold .02 on the prompt component, which is U on average over the items of
``sequential_population``, from which the benchmark is drawn. The target is the value that the audit reports on all of
its items: a certificate is ``false`` when that very value lies on the other side. ``at its value`` puts the threshold
where it is hardest: at the value that this audit will report, where "below" is false whenever it is ever certified.
``by n`` counts the audits that are decided after n items at most.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from secondorder import core, standard_components
from secondorder.simulate import Draw, Estimate, Mechanism, Method, Study, StudyResult, load_declared

SOURCE = load_declared(Path(__file__).with_name("sequential_population.py"), "STUDY", Study)
TAU, ALPHA = 0.02, 0.05
# After how many items to look: steps of 4 %.
LOOKS = tuple(sorted({round(4 * 1.04**step) for step in range(120)}))
NAMES = ("false", "at its value", "items", *(f"by {n}" for n in LOOKS))


def mechanism(effect: str, U: float, N: int, R: int) -> Mechanism:
    """Items whose prompt component is U on average."""
    law = SOURCE.mechanism(effect=effect, U=U, R=R).law
    truth = dict.fromkeys(NAMES, 1.0) | {"false": 0.0, "at its value": 0.0, "items": 0.0}
    return Mechanism(law, repeats=R, items=N, truth=truth)


def certificates(draw: Draw) -> Estimate:
    """Both sides at once; the first of them decides, but a later false one counts as false too."""
    cells = core.cells_from_counts(draw.counts)
    place = draw.design.names.index("prompt")
    prompt = next(c for c in standard_components(draw.design.names) if c.name == "prompt")
    values = np.asarray(core.complete_pairs(cells, draw.design, (prompt,), draw.kernel))[..., 0]
    items = values.shape[1]
    calls = int(np.asarray(draw.counts)[0, 0].sum(-1).flat[place])
    bounds = core.item_bounds(draw.design, prompt, draw.kernel, calls)
    reported = values.mean(1)

    def stops(threshold: object, side: str) -> np.ndarray:
        stop = core.first_crossing(core.log_e_process(values, threshold, bounds, side, n_items=items), ALPHA)
        # A side that never decides comes after all items.
        return np.where(stop > 0, stop, items + 1)

    below, above = stops(TAU, "below"), stops(TAU, "above")
    first = np.minimum(np.minimum(below, above), items)
    false = ((below <= items) & (reported >= TAU)) | ((above <= items) & (reported < TAU))
    events = np.stack([false, stops(reported, "below") <= items], axis=1).astype(float)
    decided = (first[:, None] <= np.array(LOOKS)).astype(float)
    nothing = np.full((len(first), 1), np.nan)
    return Estimate(
        np.concatenate([events, first[:, None], np.full(decided.shape, np.nan)], axis=1),
        reject=np.concatenate([events, nothing, decided], axis=1),
    )


def figure(result: StudyResult) -> Any:
    """Share of audits that are decided, against the items looked at."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = result.data.sel(estimator="betting", estimand=[f"by {n}" for n in LOOKS])
    colours = ("#0072B2", "#56B4E9", "#222222", "#E69F00", "#D55E00")
    drawn = Figure(figsize=(9.4, 9), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots(data.sizes["effect"], data.sizes["N"], sharey=True, sharex="col", squeeze=False)
    for (row, column), ax in np.ndenumerate(axes):
        effect, N = data["effect"].values[row], int(data["N"].values[column])
        for U, colour in zip(data["U"].values, colours, strict=False):
            for R, line in zip(data["R"].values, ("-", "--"), strict=False):
                share = 100 * data["power"].sel(effect=effect, U=U, N=N, R=R)
                ax.plot(LOOKS, share, line, color=colour, linewidth=1.4, label=f"U = {U:g}, R = {R}")
        ax.set_xscale("log")
        ticks = [tick for tick in (5, 10, 20, 50, 100, 200, 419) if tick <= N]
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
        ax.minorticks_off()
        ax.set_xlim(LOOKS[0], N)
        ax.spines[["top", "right"]].set_visible(False)
        if row == 0:
            ax.set_title(f"benchmark of {N} items", fontsize=10)
        if row == len(axes) - 1:
            ax.set_xlabel("items looked at")
        if column == 0:
            ax.set_ylabel(f"{effect}\n% of audits decided")
    handles, names = axes[0, 0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside right center", frameon=False, fontsize=8)
    return drawn


STUDY = Study(
    name="sequential_audit",
    aims="How often is the certificate of an audit false under optional stopping, and how many items does it take?",
    factors={
        "effect": SOURCE.factors["effect"],
        "U": SOURCE.factors["U"],
        "N": (50, 100, 419),
        "R": SOURCE.factors["R"],
    },
    mechanism=mechanism,
    methods=(Method("betting", certificates),),
    replicates=4_000,
    seed=20261205,
    estimands=NAMES,
    measures=("size", "power", "bias", "empirical_se"),
    figure=figure,
)
