"""Bands over a stratified sample of items: how many items a stratum needs.

Four strata, each a population of its own: one without noise, one without effects, two with effects of different size.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from secondorder.simulate import Mechanism, Study, band_methods, laws

BASE = [0.4, 0.3, 0.2, 0.1]
CLASSES = ["a", "b", "c", "d"]
FACETS = {"prompt": 6, "order": 2}


@cache
def strata() -> Any:
    """The law that items are drawn from, stratum by stratum."""
    parts = {
        "steady": laws.rare_flips(0.02, FACETS, classes=CLASSES),
        "noisy": laws.exchangeable(BASE, FACETS, classes=CLASSES),
        "moderate": laws.dirichlet(BASE, 20, FACETS, over=["prompt", "order"], items=60, seed=1, classes=CLASSES),
        "wild": laws.dirichlet(BASE, 2, FACETS, over=["prompt"], items=60, seed=2, classes=CLASSES),
    }
    law = laws.population(parts)
    return law.rename(part="stratum")


def mechanism(items: int, R: int) -> Mechanism:
    """The same number of items in every stratum."""
    return Mechanism(strata(), repeats=R, items=dict.fromkeys(("steady", "noisy", "moderate", "wild"), items))


STUDY = Study(
    name="coverage_strata",
    aims="How many items does a stratum need for 95 % bands over a stratified sample?",
    factors={"items": (2, 3, 5, 10, 50), "R": (2, 4)},
    mechanism=mechanism,
    methods=("debiased", *band_methods()),
    replicates=4_000,
    seed=20261202,
    measures=("coverage", "missed_low", "missed_high", "width", "interval_failure"),
)
