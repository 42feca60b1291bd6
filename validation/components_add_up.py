"""Total = call + all effects, for every estimator and every realised sample."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import secondorder as so
from secondorder.simulate import Claim, Finding


def check(quick: bool) -> Iterator[Finding]:
    """The largest gap over random samples, for fixed and random facets, two and three of them."""
    rng = np.random.default_rng(2)
    designs = [
        so.Design.balanced({"prompt": 4, "order": 2}),
        so.Design.balanced({"prompt": 4, "order": 2}, random=["prompt"]),
        so.Design.balanced({"prompt": 3, "order": 2, "judge": 2}, random=["judge"], populations={"judge": 5}),
        so.Design(("prompt", "order"), ((0.5, 0.3, 0.2), (0.9, 0.1)), (None, None)),
    ]
    kernel = so.core.ordinal_kernel(3, bottom=True)
    for design in designs:
        components = so.standard_components(design.names)
        law = rng.dirichlet(np.ones(4), size=(200, *design.shape))
        codes = (rng.random((*law.shape[:-1], 4, 1)) > np.cumsum(law, -1)[..., None, :-1]).sum(-1)
        verdicts = np.eye(4)[codes]
        cells = so.core.cells_from_counts(verdicts.sum(-2))
        estimates = {
            "truth": so.core.at_law(law, design, components, kernel),
            "plug-in": so.core.plugin(cells, design, components, kernel),
            "complete pairs": so.core.complete_pairs(cells, design, components, kernel),
            "across repeats": so.core.across_repeats(verdicts, design, components, kernel),
            "panel": so.core.panel(verdicts, design, components, kernel),
        }
        for name, values in estimates.items():
            table = np.asarray(values)
            gap = float(np.abs(table[:, :-1].sum(-1) - table[:, -1]).max())
            label = ", ".join(f"{facet} {size}" for facet, size in zip(design.names, design.shape, strict=True))
            yield Finding.at_most(f"{name}; {label}; populations {design.populations}", gap, 1e-12)


CLAIM = Claim(
    name="components_add_up",
    statement="Call, facets and interactions add up to the total: in truth, and in every sample under every estimator.",
    check=check,
    detectable="1e-12 in any of 200 samples per design and estimator",
)
