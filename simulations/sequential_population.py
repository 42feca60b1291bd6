"""Certificates about a source of items: how often they are false, and how many items they take.

Items come from an endless source and are looked at until 1,000; threshold .02 on the prompt component. A certificate's
truth is 0 where it is false: "below" for a component of .02 or more, "above" (at least) for one below it. ``by n``
counts the audits that are decided after n items at most.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from secondorder import core, standard_components
from secondorder.simulate import Draw, Estimate, Mechanism, Method, Study, StudyResult, laws

FACETS = {"prompt": 6, "order": 2}
BASE = [0.4, 0.4, 0.1, 0.1]
TAU, ALPHA = 0.02, 0.05
ITEMS = 1000
# After how many items to look: steps of 6 %.
LOOKS = tuple(sorted({round(10 * 1.06**step) for step in range(80)}))
NAMES = ("below", "above", "items", *(f"by {n}" for n in LOOKS))


def mechanism(U: float, R: int) -> Mechanism:
    """Every item has the same prompt component."""
    truth = dict.fromkeys(NAMES, 1.0) | {"below": float(U < TAU), "above": float(U >= TAU), "items": 0.0}
    law = laws.effects(BASE, FACETS, {"prompt": U})
    return Mechanism(law, repeats=R, items=ITEMS, truth=truth)


def certificates(draw: Draw) -> Estimate:
    """Both sides at once; the first of them decides, but each counts whenever it ever certifies."""
    cells = core.cells_from_counts(draw.counts)
    place = draw.design.names.index("prompt")
    prompt = next(c for c in standard_components(draw.design.names) if c.name == "prompt")
    values = np.asarray(core.complete_pairs(cells, draw.design, (prompt,), draw.kernel))[..., 0]
    calls = int(np.asarray(draw.counts)[0, 0].sum(-1).flat[place])
    bounds = core.item_bounds(draw.design, prompt, draw.kernel, calls)

    def stops(side: str) -> np.ndarray:
        stop = core.first_crossing(core.log_e_process(values, TAU, bounds, side), ALPHA)
        # A side that never decides comes after all items.
        return np.where(stop > 0, stop, ITEMS + 1)

    below, above = stops("below"), stops("above")
    first = np.minimum(below, above)
    events = np.stack([below <= ITEMS, above <= ITEMS], axis=1).astype(float)
    decided = (first[:, None] <= np.array(LOOKS)).astype(float)
    nothing = np.full((len(first), 1), np.nan)
    return Estimate(
        np.concatenate([events, np.minimum(first, ITEMS)[:, None], np.full(decided.shape, np.nan)], axis=1),
        reject=np.concatenate([events, nothing, decided], axis=1),
    )


def figure(result: StudyResult) -> Any:
    """Share of audits that are decided, against the items looked at."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = result.data.sel(estimator="betting", estimand=[f"by {n}" for n in LOOKS])
    colours = ("#0072B2", "#56B4E9", "#222222", "#E69F00", "#D55E00")
    drawn = Figure(figsize=(6.6, 3.4), layout="constrained")
    FigureCanvasAgg(drawn)
    ax = drawn.subplots()
    for U, colour in zip(data["U"].values, colours, strict=True):
        for R, line in zip(data["R"].values, ("-", "--"), strict=True):
            share = 100 * data["power"].sel(U=U, R=R)
            ax.plot(LOOKS, share, line, color=colour, linewidth=1.4, label=f"U = {U:g}, R = {R}")
    ax.set_xscale("log")
    ax.set_xticks(ticks := [10, 20, 50, 100, 200, 500, 1000], [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_xlim(10, ITEMS)
    ax.set_xlabel("items looked at")
    ax.spines[["top", "right"]].set_visible(False)
    drawn.axes[0].set_ylabel("% of audits decided")
    handles, names = drawn.axes[0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside right center", frameon=False, fontsize=8)
    return drawn


STUDY = Study(
    name="sequential_population",
    aims="How often is a certificate false under optional stopping, and how many items does it take?",
    factors={"U": (0.0, 0.01, 0.02, 0.05, 0.1), "R": (2, 4)},
    mechanism=mechanism,
    methods=(Method("betting", certificates),),
    replicates=4_000,
    seed=20261207,
    estimands=NAMES,
    measures=("size", "power", "bias", "empirical_se"),
    figure=figure,
)
