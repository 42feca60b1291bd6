"""The truth at a law: array code against the definition, and laws made to have a wanted truth."""

from __future__ import annotations

from collections.abc import Iterator

import secondorder as so
from secondorder.simulate import Claim, Finding, laws
from secondorder.testing import as_floats, oracle_truth, standard_experiments


def check(quick: bool) -> Iterator[Finding]:
    """Definition in fractions, then component values that were dialled in."""
    for name, experiment in standard_experiments().items():
        if not experiment.design.all_fixed:
            continue
        components = so.standard_components(experiment.design.names)
        law, kernel = experiment.law.astype(float), experiment.kernel.astype(float)
        found = so.core.at_law(law, as_floats(experiment.design), components, kernel)
        expected = oracle_truth(experiment.law, experiment.design, experiment.kernel)
        for (component, value), number in zip(expected.items(), found, strict=True):
            yield Finding.close(f"{name}: {component}", float(number), float(value), 1e-14)
    facets = {"prompt": 6, "order": 2}
    wanted = {"prompt": 0.02, "order": 0.01, "prompt:order": 0.005}
    made = {
        "effects": laws.effects([0.4, 0.3, 0.2, 0.1], facets, wanted),
        "dialled": laws.dial(
            laws.dirichlet([0.5, 0.3, 0.2], 30, facets, over=["prompt", "order"], items=20, seed=3),
            {name: value / 10 for name, value in wanted.items()},
        ),
    }
    for name, law in made.items():
        truth = so.decompose_law(law).value
        for component, value in wanted.items():
            goal = value if name == "effects" else value / 10
            yield Finding.close(f"{name}: {component}", float(truth.sel(component=component)), goal, 1e-14)


CLAIM = Claim(
    name="truth_at_law",
    statement="The truth at a law is the definition's, and laws can be made with exactly the wanted components.",
    check=check,
    detectable="1e-14",
)
