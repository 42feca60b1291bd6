"""Bands over prompts, and over items and prompts, hold the policy's value."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from secondorder import Facet, core
from secondorder.simulate import Claim, Draw, Estimate, Expect, Mechanism, Method, Study, laws

LISTED = 200
SHOWN = ("call", "prompt", "total")


@cache
def law() -> Any:
    """Prompts with an effect on all items alike, and one on each item of its own."""
    generator = np.random.default_rng(3)
    weight = np.exp(
        np.log([0.5, 0.3, 0.2])
        + generator.normal(0, 0.4, (1, LISTED, 3))
        + generator.normal(0, 0.4, (120, LISTED, 3))
        + generator.normal(0, 1.0, (120, 1, 3))
    )
    plain = laws.exchangeable([0.5, 0.3, 0.2], {"prompt": LISTED}).isel(item=[0] * 120)
    values = weight / weight.sum(-1, keepdims=True)
    return plain.assign_coords(item=[str(i) for i in range(120)]).copy(data=values)


def mechanism(K: int) -> Mechanism:
    """Fifty items and K prompts, both drawn."""
    return Mechanism(law(), repeats=2, facets=[Facet("prompt", "random")], levels={"prompt": K}, items=50)


def two_way(draw: Draw) -> Estimate:
    """Bands by t of the two-way standard error."""
    parts = core.cluster_parts(core.cells_from_counts(draw.counts), draw.design, draw.components, draw.kernel, "prompt")
    same, distinct = (np.moveaxis(np.asarray(part), 1, 0).reshape(part.shape[1], -1, part.shape[3]) for part in parts)
    errors = core.two_way_errors(same, distinct).errors
    band = core.t_interval(errors, draw.level)
    size = len(draw.components)
    return Estimate(*(np.asarray(part).reshape(-1, size) for part in (errors.estimate, band.lower, band.upper)))


STUDY = Study(
    name="two_way_interval",
    aims="Does the band over items and prompts hold the policy's value?",
    factors={"K": (6, 40)},
    mechanism=mechanism,
    methods=(Method("two-way", two_way),),
    estimands=SHOWN,
    replicates=20_000,
    seed=17,
)

CLAIM = Claim(
    name="two_way_interval",
    statement="The 95 % band over 50 items and 40 prompts covers at 93.5 % or more, with 6 prompts at 93 % or more.",
    study=STUDY,
    expects=(
        Expect("coverage", "two-way", at_least=0.935, where={"K": 40}, estimands=SHOWN),
        Expect("coverage", "two-way", at_least=0.93, where={"K": 6}, estimands=SHOWN),
    ),
    false_alarm=1e-6,
    quick_replicates=1_500,
)
