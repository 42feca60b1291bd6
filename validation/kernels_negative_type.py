"""Kernels of negative type give non-negative components; others are refused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import secondorder as so
from secondorder.simulate import Claim, Finding
from secondorder.testing import as_fractions, oracle_negative_component


def check(quick: bool) -> Iterator[Finding]:
    """Eigenvalues, an exhaustive search for a counterexample, and the smallest component at random laws."""
    kernels = {
        "nominal": so.core.nominal_kernel(3),
        "ordinal": so.core.ordinal_kernel(4),
        "ordinal with invalid": so.core.ordinal_kernel(3, bottom=True),
        "ordinal, invalid at 1/4": so.core.ordinal_kernel(3, bottom=True, bottom_distance=0.25),
        "interval": so.core.interval_kernel([1.0, 2.0, 4.0]),
        "interval with invalid": so.core.interval_with_invalid([0.0, 3.0], 1.0, 0.5),
    }
    rng = np.random.default_rng(3)
    design = so.Design.balanced({"prompt": 3, "order": 2})
    components = so.standard_components(design.names)
    for name, kernel in kernels.items():
        gap = so.core.negative_type_gap(kernel)
        yield Finding.at_least(f"{name}: smallest eigenvalue of -JDJ/2", gap, -1e-12 * kernel.max())
        denominator = 3 if quick else 4
        witness = oracle_negative_component(as_fractions(kernel), denominator=denominator)
        yield Finding.equal(f"{name}: laws with a negative component", witness is None, True)
        law = rng.dirichlet(np.full(len(kernel), 0.5), size=(2000, *design.shape))
        smallest = float(np.asarray(so.core.at_law(law, design, components, kernel)).min())
        yield Finding.at_least(f"{name}: smallest component at 2000 laws", smallest, -1e-12)
    grid = np.arange(4.0)
    refused = {
        "tolerance of one": (np.abs(grid[:, None] - grid) > 1).astype(float),
        "truncated square": np.minimum((grid[:, None] - grid) ** 2, 4.0),
        "fourth power": (grid[:, None] - grid) ** 4,
        "constant distance of invalid from scores": np.block(
            [[so.core.interval_kernel([1.0, 4.0, 7.0]), np.ones((3, 1))], [np.ones((1, 3)), np.zeros((1, 1))]]
        ),
    }
    for name, kernel in refused.items():
        try:
            so.core.check_kernel(kernel, len(kernel))
            answer = "accepted"
        except so.errors.KernelError:
            answer = "refused"
        yield Finding.equal(f"{name}", answer, "refused")
        witness = oracle_negative_component(as_fractions(kernel), denominator=2)
        yield Finding.equal(f"{name}: a negative component exists", witness is not None, True)


CLAIM = Claim(
    name="kernels_negative_type",
    statement="The offered kernels are of negative type, so true components are never negative; others are refused.",
    check=check,
    detectable="an eigenvalue below -1e-12 of the largest distance; a negative component on the searched grid of laws",
)
