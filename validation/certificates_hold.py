"""Certificates are false with probability alpha at most, at the threshold itself and under optional stopping."""

from __future__ import annotations

import numpy as np

from secondorder import core, standard_components
from secondorder.simulate import Claim, Draw, Estimate, Expect, Mechanism, Method, Study, laws

FACETS = {"prompt": 6, "order": 2}
BASE = [0.4, 0.3, 0.2, 0.1]
TAU, ALPHA, ITEMS = 0.02, 0.05, 300


def mechanism(target: str, R: int) -> Mechanism:
    """A prompt component that is the threshold: "below" is false."""
    law = laws.effects(BASE, FACETS, {"prompt": TAU})
    # One item more tells the method which target it is about.
    items = ITEMS + (target == "full-audit")
    return Mechanism(law, repeats=R, items=items, truth={"below": 0.0})


def below(draw: Draw) -> Estimate:
    """Whether "below" is ever certified; of a whole audit, although its own value is not."""
    cells = core.cells_from_counts(draw.counts)
    prompt = next(c for c in standard_components(draw.design.names) if c.name == "prompt")
    values = np.asarray(core.complete_pairs(cells, draw.design, (prompt,), draw.kernel))[..., 0]
    bounds = core.item_bounds(draw.design, prompt, draw.kernel, int(np.asarray(draw.counts)[0, 0, 0, 0].sum()))
    whole = None if values.shape[1] == ITEMS else values.shape[1]
    stops = core.first_crossing(core.log_e_process(values, TAU, bounds, "below", n_items=whole), ALPHA)
    false = (stops > 0) & ((values.mean(1) >= TAU) if whole else True)
    return Estimate(false[:, None].astype(float), reject=false[:, None].astype(float))


STUDY = Study(
    name="certificates_hold",
    aims="How often is a component that is exactly .02 certified to be below .02?",
    factors={"target": ("population", "full-audit"), "R": (2, 4)},
    mechanism=mechanism,
    methods=(Method("betting", below),),
    estimands=("below",),
    replicates=40_000,
    seed=16,
)

CLAIM = Claim(
    name="certificates_hold",
    statement="A component of .02 is certified below .02 in at most 5 % of audits, whenever one stops.",
    study=STUDY,
    expects=(Expect("size", "betting", at_most=0.05, estimands=("below",)),),
    false_alarm=1e-6,
    quick_replicates=2_000,
)
