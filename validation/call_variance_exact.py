"""Call variance: the exact formula at a law, and its unbiased estimate from four calls, over every outcome."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import secondorder as so
from secondorder.simulate import Claim, Finding
from secondorder.testing import Experiment, as_floats, exact_design

NOMINAL = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
ORDINAL = [[0, "1/2", 1], ["1/2", 0, "1/2"], [1, "1/2", 0]]
LAWS = [["1/2", "1/3", "1/6"], ["1/5", "1/5", "3/5"]]


def experiments(quick: bool) -> dict[str, Experiment]:
    """Two prompts, equal and unequal weights, four and five calls; two facets of binary verdicts."""
    found = {
        "equal weights, nominal, n = 4": Experiment(exact_design({"prompt": 2}), LAWS, NOMINAL, 4),
        "unequal weights, ordinal, n = 4": Experiment(exact_design({"prompt": ["1/4", "3/4"]}), LAWS, ORDINAL, 4),
        "unequal n": Experiment(exact_design({"prompt": 2}), LAWS, NOMINAL, [4, 5]),
    }
    if not quick:
        binary = [[["1/2", "1/2"], ["1/3", "2/3"]], [["4/5", "1/5"], ["1/7", "6/7"]]]
        design = exact_design({"prompt": 2, "order": 2})
        found["two facets"] = Experiment(design, binary, [[0, 1], [1, 0]], 4)
    return found


def check(quick: bool) -> Iterator[Finding]:
    """Variance of the debiased components over all outcomes; mean of the estimated covariance over all outcomes."""
    for name, experiment in experiments(quick).items():
        design, kernel = as_floats(experiment.design), experiment.kernel.astype(float)
        components = so.standard_components(design.names)
        outcomes = experiment.outcomes()
        weight = np.array([float(p) for p in outcomes.probabilities])
        cells = so.core.cells_from_counts(outcomes.values)
        values = np.asarray(so.core.complete_pairs(cells, design, components, kernel))
        centred = values - weight @ values
        truth = (weight[:, None, None] * centred[:, :, None] * centred[:, None, :]).sum(0)
        formula = so.core.call_covariance_at(
            experiment.law.astype(float), np.asarray(experiment.calls), design, components, kernel
        )
        estimate = np.asarray(so.core.call_covariance(cells, design, components, kernel))
        mean = (weight[:, None, None] * estimate).sum(0)
        for i, j in zip(*np.triu_indices(len(components)), strict=True):
            pair = f"{name}: {components[i].name}, {components[j].name}"
            yield Finding.close(f"exact at the law, {pair}", float(formula[i, j]), float(truth[i, j]), 1e-13)
            yield Finding.close(f"mean of the estimate, {pair}", float(mean[i, j]), float(truth[i, j]), 1e-12)


CLAIM = Claim(
    name="call_variance_exact",
    statement="Covariances over repeated calls are exact at a law, and estimated without bias from four calls a cell.",
    check=check,
    detectable="1e-12 over all outcomes, for every pair of components",
)
