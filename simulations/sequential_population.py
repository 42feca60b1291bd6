"""Certificates about a source of items: how often they are false, and how many items they take.

Items come from an endless source and are looked at until 1,000; threshold .02 on the prompt component, which is U on
average. ``even``: every item has the same noisy law, and U. ``uneven``: 400 items with laws and effects of their own,
some nearly certain. ``rare``: .4 on few items and 0 on the others, 85 % of which always get one answer, the rest being
noisy; ``rare-noisy``: the same with all others noisy. A certificate's truth is 0 where it is false: "below" for a
component of .02 or more, "above" (at least) for one below it. ``by n`` counts the audits that are decided after n items
at most.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from secondorder import core, standard_components
from secondorder.simulate import Draw, Estimate, Mechanism, Method, Study, StudyResult, laws

FACETS = {"prompt": 6, "order": 2}
BASE = [0.4, 0.3, 0.2, 0.1]
CLASSES = ["a", "b", "c", "d"]
LARGE, STEADY = 0.4, 0.85
TAU, ALPHA = 0.02, 0.05
ITEMS = 1000
# After how many items to look: steps of 4 %.
LOOKS = (*sorted({round(4 * 1.04**step) for step in range(141)}), ITEMS)
NAMES = ("below", "above", "items", *(f"by {n}" for n in LOOKS))


@cache
def uneven() -> Any:
    """Items with laws of their own, whose prompts differ a lot."""
    centres = laws.dirichlet([0.5, 0.25, 0.15, 0.1], 1, {"prompt": 1}, over=["prompt"], items=400, seed=5).values[:, 0]
    parts = {
        str(i): laws.dirichlet(centre, 1.5, FACETS, over=["prompt"], seed=i, classes=CLASSES)
        for i, centre in enumerate(centres)
    }
    return laws.population(parts)


@cache
def items_with(effect: str, U: float) -> Any:
    """The law that items are drawn from."""
    if effect == "even":
        # Every other prompt leans one way, the rest the other way.
        leaning = {"prompt": [1 if k % 2 else -1 for k in range(FACETS["prompt"])]}
        return laws.effects(BASE, FACETS, {"prompt": U}, level_scores=leaning, classes=CLASSES)
    if effect == "uneven":
        return laws.dial(uneven(), {"prompt": U})
    split = [[["a" if k % 2 else "b"] for k in range(FACETS["prompt"])]]
    affected, steady = U / LARGE, STEADY if effect == "rare" else 0.0
    kinds = {
        "affected": (laws.dial(laws.deterministic(split, FACETS, CLASSES), {"prompt": LARGE}), affected),
        "steady": (laws.deterministic("a", FACETS, CLASSES), (1 - affected) * steady),
        "noisy": (laws.exchangeable(BASE, FACETS, classes=CLASSES), (1 - affected) * (1 - steady)),
    }
    there = {name: kind for name, kind in kinds.items() if kind[1] > 0}
    return laws.population({name: law for name, (law, _) in there.items()}, [share for _, share in there.values()])


def mechanism(effect: str, U: float, R: int) -> Mechanism:
    """Items whose prompt component is U on average."""
    truth = dict.fromkeys(NAMES, 1.0) | {"below": float(U < TAU), "above": float(U >= TAU), "items": 0.0}
    law = items_with(effect, U)
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
    drawn = Figure(figsize=(8.4, 5.6), layout="constrained")
    FigureCanvasAgg(drawn)
    axes = drawn.subplots(2, 2, sharex=True, sharey=True)
    for ax, effect in zip(axes.flat, data["effect"].values, strict=True):
        for U, colour in zip(data["U"].values, colours, strict=False):
            for R, line in zip(data["R"].values, ("-", "--"), strict=False):
                share = 100 * data["power"].sel(effect=effect, U=U, R=R)
                ax.plot(LOOKS, share, line, color=colour, linewidth=1.4, label=f"U = {U:g}, R = {R}")
        ax.set_xscale("log")
        ax.set_xticks(ticks := [5, 10, 20, 50, 100, 200, 500, 1000], [str(tick) for tick in ticks])
        ax.minorticks_off()
        ax.set_xlim(LOOKS[0], ITEMS)
        ax.set_title(effect, fontsize=10)
        ax.spines[["top", "right"]].set_visible(False)
    for ax in axes[-1]:
        ax.set_xlabel("items looked at")
    for ax in axes[:, 0]:
        ax.set_ylabel("% of audits decided")
    handles, names = axes[0, 0].get_legend_handles_labels()
    drawn.legend(handles, names, loc="outside right center", frameon=False, fontsize=8)
    return drawn


STUDY = Study(
    name="sequential_population",
    aims="How often is a certificate false under optional stopping, and how many items does it take?",
    factors={"effect": ("even", "uneven", "rare", "rare-noisy"), "U": (0.0, 0.01, 0.02, 0.05, 0.1), "R": (2, 4)},
    mechanism=mechanism,
    methods=(Method("betting", certificates),),
    replicates=4_000,
    seed=20261207,
    estimands=NAMES,
    measures=("size", "power", "bias", "empirical_se"),
    figure=figure,
)
