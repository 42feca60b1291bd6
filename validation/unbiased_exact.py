"""Unbiasedness without tolerance: every outcome of small experiments is listed, expectations are taken in fractions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import secondorder as so
from secondorder.simulate import Claim, Finding
from secondorder.testing import Experiment, as_floats, as_fractions, exact_mean, standard_experiments

# Enumeration call by call grows faster than by counts.
MOST_CALL_OUTCOMES = 5_000


def complete_in_fractions(experiment: Experiment, counts: Any) -> dict[str, Any]:
    """The estimator's own formula, run on fractions."""
    components = so.standard_components(experiment.design.names)
    exact = as_fractions(counts)
    n = exact.sum(-1)
    values = so.core.complete_pairs_from(
        n, exact / n[..., None], n * 0, experiment.design, components, experiment.kernel
    )
    return {component.name: value for component, value in zip(components, values, strict=True)}


def call_by_call(experiment: Experiment, estimator: Any) -> dict[str, Any]:
    """Expectation of a compiled estimator over every sequence of verdicts."""
    design, kernel = as_floats(experiment.design), experiment.kernel.astype(float)
    components = so.standard_components(design.names)
    outcomes = experiment.outcomes("codes")
    verdicts = np.eye(len(kernel))[outcomes.values]
    verdicts[outcomes.values < 0] = np.nan
    values = np.asarray(estimator(verdicts, design, components, kernel))
    found = {component.name: values[:, i] for i, component in enumerate(components)}
    return dict(exact_mean(lambda _: found, outcomes, batched=True))


def check(quick: bool) -> Iterator[Finding]:
    """Complete pairs exactly; across repeats and panel to the rounding of the compiled code."""
    for name, experiment in standard_experiments().items():
        truth, outcomes = experiment.truth(), experiment.outcomes()
        complete = complete_in_fractions(experiment, outcomes.values)
        mean = exact_mean(lambda _, complete=complete: complete, outcomes, batched=True)
        for component, value in truth.items():
            yield Finding.equal(f"complete pairs, {name}: {component}", mean[component], value)
        sizes = set(np.asarray(experiment.calls).ravel().tolist())
        if len(experiment.outcomes()) > (300 if quick else MOST_CALL_OUTCOMES) or sizes != {2}:
            continue
        for label, estimator in (("across repeats", so.core.across_repeats), ("panel", so.core.panel)):
            found = call_by_call(experiment, estimator)
            for component, value in truth.items():
                what = f"{label}, {name}: {component}"
                yield Finding.close(what, float(found[component]), float(value), 1e-13)


CLAIM = Claim(
    name="unbiased_exact",
    statement="Debiased components have exactly the true expectation: any facets, weights, kernels, unequal calls.",
    check=check,
    detectable="any difference of fractions (complete pairs), 1e-13 (across repeats, panel)",
)
