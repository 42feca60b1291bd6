"""Certificates about a source of items: how often they are false, and how many items they take.

Items come from an endless source and are looked at until 1,000; threshold .02 on the prompt component. A certificate's
truth is 0 where it is false: "below" for a component of .02 or more, "above" (at least) for one below it.
"""

from __future__ import annotations

import numpy as np

from secondorder import core, standard_components
from secondorder.simulate import Draw, Estimate, Mechanism, Method, Study, laws

FACETS = {"prompt": 6, "order": 2}
BASE = [0.4, 0.4, 0.1, 0.1]
TAU, ALPHA = 0.02, 0.05
ITEMS = 1000


def mechanism(U: float, R: int) -> Mechanism:
    """Every item has the same prompt component."""
    truth = {"below": float(U < TAU), "above": float(U >= TAU), "items": 0.0}
    law = laws.effects(BASE, FACETS, {"prompt": U})
    return Mechanism(law, repeats=R, items=ITEMS, truth=truth)


def certificates(draw: Draw) -> Estimate:
    """Both sides at once, until the first of them decides."""
    cells = core.cells_from_counts(draw.counts)
    place = draw.design.names.index("prompt")
    prompt = next(c for c in standard_components(draw.design.names) if c.name == "prompt")
    values = np.asarray(core.complete_pairs(cells, draw.design, (prompt,), draw.kernel))[..., 0]
    calls = int(np.asarray(draw.counts)[0, 0].sum(-1).flat[place])
    bounds = core.item_bounds(draw.design, prompt, draw.kernel, calls)
    paths = {side: core.log_e_process(values, TAU, bounds, side) for side in ("below", "above")}
    stops = {side: core.first_crossing(path, ALPHA) for side, path in paths.items()}
    # A side that never decides comes after all items.
    when = {side: np.where(stop > 0, stop, ITEMS + 1) for side, stop in stops.items()}
    first = np.minimum(when["below"], when["above"])
    below, above = (((when[side] == first) & (first <= ITEMS)).astype(float) for side in ("below", "above"))
    return Estimate(
        np.stack([below, above, np.minimum(first, ITEMS)], axis=1),
        reject=np.stack([below, above, np.full(len(first), np.nan)], axis=1),
    )


STUDY = Study(
    name="sequential_population",
    aims="How often is a certificate false under optional stopping, and how many items does it take?",
    factors={"U": (0.0, 0.01, 0.02, 0.05, 0.1), "R": (2, 4)},
    mechanism=mechanism,
    methods=(Method("betting", certificates),),
    replicates=4_000,
    seed=20261207,
    estimands=("below", "above", "items"),
    measures=("size", "power", "bias", "empirical_se"),
)
