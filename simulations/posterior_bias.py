"""The Bayesian companion as an estimator: bias and coverage beside the debiased estimate and the plug-in.

50 items at hand; the target is their mean. ``one-law``: no effects. ``own-prior``: laws drawn once from the prior of
the companion. ``moderate``: every item has effects of its own. Values are posterior means, limits are the central 95 %
of 200 draws.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from secondorder import core
from secondorder.simulate import Draw, Estimate, Mechanism, Method, Study, laws

FACETS = {"prompt": 6, "order": 2}
BASE = [0.4, 0.3, 0.2, 0.1]
ITEMS = 50


@cache
def law(items: str) -> Any:
    """Fifty items."""
    if items == "moderate":
        return laws.dirichlet(BASE, 30, FACETS, over=["prompt", "order"], items=ITEMS, seed=1)
    plain = laws.exchangeable(BASE, FACETS).isel(item=[0] * ITEMS).assign_coords(item=[str(i) for i in range(ITEMS)])
    if items == "one-law":
        return plain
    generator = np.random.default_rng(2)
    mean = generator.dirichlet([0.5] * 4, ITEMS)
    weight = generator.gamma(1.0, 10.0, ITEMS)[:, None] * mean
    drawn = generator.standard_gamma(np.maximum(weight, 1e-9)[:, None, None, :], (ITEMS, 6, 2, 4)) + 1e-300
    return plain.copy(data=drawn / drawn.sum(-1, keepdims=True))


def mechanism(items: str, R: int) -> Mechanism:
    """The same items in every replicate."""
    return Mechanism(law(items), repeats=R)


def companion(draw: Draw) -> Estimate:
    """Posterior mean and central 95 %; items of different replicates know nothing of each other."""
    counts = np.asarray(draw.counts)
    values, _ = core.posterior_components(
        counts.reshape(-1, *counts.shape[2:]), draw.design, draw.components, draw.kernel,
        seed=int(counts[..., 0].sum()), draws=200, tune=100, chains=1,
    )  # fmt: skip
    means = values[0].reshape(200, *counts.shape[:2], -1).mean(2)
    lower, upper = np.quantile(means, [(1 - draw.level) / 2, (1 + draw.level) / 2], axis=0)
    return Estimate(means.mean(0), lower, upper)


STUDY = Study(
    name="posterior_bias",
    aims="How far is the Bayesian companion from the truth, and how often do its intervals hold it?",
    factors={"items": ("one-law", "own-prior", "moderate"), "R": (2, 4, 8)},
    mechanism=mechanism,
    methods=("debiased", "plugin", Method("posterior", companion)),
    replicates=128,
    seed=20261206,
    measures=("bias", "empirical_se", "mse_ratio", "coverage"),
)
