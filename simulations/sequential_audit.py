"""Certificates of a whole audit: how often they are false, and how many of its items they take.

419 items of one benchmark in random order, threshold .02 on the prompt component. The target is the value that the
audit reports on all of its items: a certificate is false when that very value lies on the other side. ``early`` counts
the audits that are decided before their last item, ``items`` those looked at.
"""

from __future__ import annotations

import numpy as np

from secondorder import core, standard_components
from secondorder.simulate import Draw, Estimate, Mechanism, Method, Study, laws

FACETS = {"prompt": 6, "order": 2}
BASE = [0.4, 0.4, 0.1, 0.1]
TAU, ALPHA = 0.02, 0.05
ITEMS = 419


def mechanism(U: float, R: int) -> Mechanism:
    """Every item has the same prompt component."""
    law = laws.effects(BASE, FACETS, {"prompt": U})
    return Mechanism(law, repeats=R, items=ITEMS, truth={"false": 0.0, "early": 1.0, "items": 0.0})


def certificates(draw: Draw) -> Estimate:
    """Both sides at once, until the first of them decides."""
    cells = core.cells_from_counts(draw.counts)
    place = draw.design.names.index("prompt")
    prompt = next(c for c in standard_components(draw.design.names) if c.name == "prompt")
    values = np.asarray(core.complete_pairs(cells, draw.design, (prompt,), draw.kernel))[..., 0]
    calls = int(np.asarray(draw.counts)[0, 0].sum(-1).flat[place])
    bounds = core.item_bounds(draw.design, prompt, draw.kernel, calls)
    paths = {side: core.log_e_process(values, TAU, bounds, side, n_items=ITEMS) for side in ("below", "above")}
    stops = {side: core.first_crossing(path, ALPHA) for side, path in paths.items()}
    # A side that never decides comes after all items.
    when = {side: np.where(stop > 0, stop, ITEMS + 1) for side, stop in stops.items()}
    first = np.minimum(when["below"], when["above"])
    reported = values.mean(1)
    wrong = ((when["below"] == first) & (reported >= TAU)) | ((when["above"] == first) & (reported < TAU))
    false, early = (wrong & (first <= ITEMS)).astype(float), (first < ITEMS).astype(float)
    return Estimate(
        np.stack([false, early, np.minimum(first, ITEMS)], axis=1),
        reject=np.stack([false, early, np.full(len(first), np.nan)], axis=1),
    )


STUDY = Study(
    name="sequential_audit",
    aims="How often is the certificate of an audit false under optional stopping, and how many items does it save?",
    factors={"U": (0.0, 0.01, 0.02, 0.05, 0.1), "R": (2, 4)},
    mechanism=mechanism,
    methods=(Method("betting", certificates),),
    replicates=4_000,
    seed=20261205,
    estimands=("false", "early", "items"),
    measures=("size", "power", "bias", "empirical_se"),
)
