"""Across-repeats pairs stay unbiased when calls of one repeat depend on each other; complete pairs do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import secondorder as so
from secondorder.simulate import Claim, Finding
from secondorder.testing import Experiment, Outcomes, as_floats, as_fractions, exact_design, exact_mean

NOMINAL = as_fractions([[0, 1], [1, 0]])


def blocks() -> dict[str, Experiment]:
    """Repeat blocks with joint laws of several kinds."""
    one = exact_design({"prompt": 2})
    weighted = exact_design({"prompt": ["1/3", "2/3"]})
    two = exact_design({"prompt": 2, "order": 2})
    coin = Outcomes(np.array([[0, 0], [1, 1]]), as_fractions(["1/2", "1/2"]))
    # One uniform number decides both prompts, whose laws differ: .3 and .7 of the first class.
    seed = Outcomes(np.array([[0, 0], [1, 0], [1, 1]]), as_fractions(["3/10", "4/10", "3/10"]))
    opposite = Outcomes(np.array([[0, 1], [1, 0], [1, 1]]), as_fractions(["1/4", "1/4", "1/2"]))
    orders = Outcomes(
        np.array([[[0, 0], [1, 1]], [[1, 1], [0, 0]], [[0, 1], [0, 1]]]), as_fractions(["1/2", "1/4", "1/4"])
    )
    return {
        "one coin for all prompts": Experiment.of_blocks(one, coin, NOMINAL, 2),
        "one seed, different laws": Experiment.of_blocks(one, seed, NOMINAL, 3),
        "weighted prompts, one seed": Experiment.of_blocks(weighted, seed, NOMINAL, 2),
        "opposite answers": Experiment.of_blocks(one, opposite, NOMINAL, 2),
        "two facets": Experiment.of_blocks(two, orders, NOMINAL, 2),
    }


def mean(experiment: Experiment, estimator: Any, view: Any) -> dict[str, float]:
    """Expectation over every outcome."""
    design = as_floats(experiment.design)
    components = so.standard_components(design.names)
    outcomes = experiment.outcomes(view)
    data = np.eye(2)[outcomes.values] if view == "codes" else so.core.cells_from_counts(outcomes.values)
    values = np.asarray(estimator(data, design, components, NOMINAL.astype(float)))
    found = {component.name: values[:, i] for i, component in enumerate(components)}
    exact = exact_mean(lambda _: found, outcomes, batched=True)
    return {name: float(value) for name, value in exact.items()}


def check(quick: bool) -> Iterator[Finding]:
    """Across repeats hits the truth; complete pairs miss it by the known amount in the first case."""
    for name, experiment in blocks().items():
        found = mean(experiment, so.core.across_repeats, "codes")
        for component, value in experiment.truth().items():
            yield Finding.close(f"across repeats, {name}: {component}", found[component], float(value), 1e-13)
    trap = mean(blocks()["one coin for all prompts"], so.core.complete_pairs, "counts")
    yield Finding.close("complete pairs, one coin for all prompts: prompt (truth 0)", trap["prompt"], -0.125, 1e-13)


CLAIM = Claim(
    name="shared_seeds",
    statement="Pairs of different repeats stay unbiased under any dependence inside a repeat, such as a shared seed.",
    check=check,
    detectable="1e-13 over all outcomes of five joint laws",
)
