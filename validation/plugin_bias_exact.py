"""The closed form of the plug-in's bias, against its expectation over every outcome."""

from __future__ import annotations

from collections.abc import Iterator

import secondorder as so
from secondorder.simulate import Claim, Finding
from secondorder.testing import as_floats, as_fractions, exact_mean, standard_experiments

# Bias of the plug-in prompt component of the law (.4, .3, .2, .1) in every cell, two orders, by (K, R).
PRINTED = {(6, 2): 0.14583, (6, 4): 0.07292, (6, 8): 0.03646, (5, 2): 0.14, (5, 4): 0.07, (5, 8): 0.035}


def check(quick: bool) -> Iterator[Finding]:
    """E[plug-in] - truth by enumeration, beside the formula."""
    for name, experiment in standard_experiments().items():
        if not experiment.design.all_fixed:
            continue
        components = so.standard_components(experiment.design.names)
        counts = as_fractions(experiment.outcomes().values)
        shares = counts / counts.sum(-1)[..., None]
        values = so.core.plugin_from(shares, experiment.design, components, experiment.kernel)
        found = {component.name: value for component, value in zip(components, values, strict=True)}
        mean = exact_mean(lambda _, found=found: found, experiment.outcomes(), batched=True)
        closed = so.core.plugin_bias_at(
            experiment.law.astype(float),
            as_fractions(experiment.calls).astype(float),
            as_floats(experiment.design),
            components,
            experiment.kernel.astype(float),
        )
        for (component, truth), formula in zip(experiment.truth().items(), closed, strict=True):
            bias = float(mean[component] - truth)
            yield Finding.close(f"{name}: {component}", bias, float(formula), 1e-13)
    for (K, R), expected in PRINTED.items():
        law = so.simulate.laws.exchangeable([0.4, 0.3, 0.2, 0.1], {"prompt": K, "order": 2})
        bias = float(so.plugin_bias(law, repeats=R).bias.sel(component="prompt"))
        yield Finding.close(f"null law, K={K}, R={R}: prompt", bias, expected, 5e-6)


CLAIM = Claim(
    name="plugin_bias_exact",
    statement="The plug-in's bias has the closed form -sum_f B_ff u_f / n_f, for any facets, weights and kernels.",
    check=check,
    detectable="1e-13 against enumeration; the last printed digit of the paper's null law",
)
