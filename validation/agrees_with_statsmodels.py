"""Fleiss' kappa and the analysis of variance: components against statsmodels."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import secondorder as so
from secondorder.simulate import Claim, Finding
from secondorder.studies import coefficient

COUNTS = np.array([[4, 0, 0], [3, 1, 0], [1, 1, 2], [0, 4, 0], [2, 2, 0], [0, 1, 3]])
SCORES = [1.0, 2.0, 4.0]
# Verdict codes of one item: three prompts, two orders, four calls.
CODES = np.array([[[0, 1, 0, 0], [1, 1, 2, 1]], [[2, 2, 1, 2], [2, 1, 2, 2]], [[0, 0, 0, 1], [0, 2, 0, 1]]])
# statsmodels 0.15.0, 30 November 2026: fleiss_kappa(COUNTS, method="fleiss"), and the column mean_sq of
# anova_lm(ols("y ~ C(prompt, Sum) * C(order, Sum)").fit(), typ=2) on the scores of CODES.
RECORDED_KAPPA = 0.351351351351
RECORDED_MEAN_SQUARES = {
    "prompt": 8.291666666667,
    "order": 2.666666666667,
    "prompt:order": 0.791666666667,
    "call": 0.916666666667,
}


def call_component(counts: Any) -> float:
    """Mean disagreement of two distinct ratings of an item."""
    design = so.Design.balanced({"prompt": 1})
    cells = so.core.cells_from_counts(counts[:, None, :])
    kernel = so.core.nominal_kernel(counts.shape[1])
    values = np.asarray(so.core.complete_pairs(cells, design, so.standard_components(design.names), kernel))
    return float(values[:, 0].mean())


def kappa_from_components(counts: Any) -> float:
    """Fleiss' kappa: one minus observed over expected disagreement."""
    shares = counts.sum(0) / counts.sum()
    return 1 - call_component(counts) / float(1 - (shares**2).sum())


def components_of(codes: Any) -> dict[str, float]:
    """Debiased components of one item under the interval kernel."""
    K, L = codes.shape[:2]
    design = so.Design.balanced({"prompt": K, "order": L})
    components = so.standard_components(design.names)
    cells = so.core.cells_from_counts((codes[..., None] == np.arange(len(SCORES))).sum(-2))
    values = np.asarray(so.core.complete_pairs(cells, design, components, so.core.interval_kernel(SCORES)))
    return {component.name: float(value) for component, value in zip(components, values, strict=True)}


def from_mean_squares(squares: dict[str, float], shape: tuple[int, int, int]) -> dict[str, float]:
    """What the expected mean squares of a balanced two-way table say: effects over a census of levels."""
    K, L, R = shape
    call = squares["call"]
    scale = {"prompt": K - 1, "order": L - 1, "prompt:order": (K - 1) * (L - 1)}
    effects = {name: factor / (K * L * R) * (squares[name] - call) for name, factor in scale.items()}
    return {"call": call, **effects, "total": call + sum(effects.values())}


def mean_squares(codes: Any) -> dict[str, float]:
    """The analysis of variance by statsmodels."""
    import pandas as pd
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    index = np.array(list(np.ndindex(codes.shape)))
    frame = pd.DataFrame({"prompt": index[:, 0], "order": index[:, 1], "y": np.asarray(SCORES)[codes].ravel()})
    table = anova_lm(ols("y ~ C(prompt, Sum) * C(order, Sum)", frame).fit(), typ=2)
    squares = (table["sum_sq"] / table["df"]).tolist()
    return dict(zip(("prompt", "order", "prompt:order", "call"), squares, strict=True))


def check(quick: bool) -> Iterator[Finding]:
    """Recorded values always; the program itself on random tables where it is installed."""
    yield Finding.close("Fleiss' kappa, recorded", kappa_from_components(COUNTS), RECORDED_KAPPA, 1e-9)
    expected = from_mean_squares(RECORDED_MEAN_SQUARES, CODES.shape)
    for name, value in components_of(CODES).items():
        yield Finding.close(f"analysis of variance, recorded: {name}", value, expected[name], 1e-9)
    if find_spec("statsmodels") is None:
        return
    from statsmodels.stats.inter_rater import fleiss_kappa

    rng = np.random.default_rng(6)
    for table in range(2 if quick else 10):
        counts = rng.multinomial(5, rng.dirichlet(np.ones(3), 40))
        kappa = float(fleiss_kappa(counts, method="fleiss"))
        yield Finding.close(f"random table {table}: Fleiss' kappa", kappa_from_components(counts), kappa, 1e-12)
        found = float(coefficient("fleiss", counts=counts).estimate)
        yield Finding.close(f"random table {table}: Fleiss' kappa of studies", found, kappa, 1e-12)
        codes = rng.integers(0, 3, (4, 2, 3))
        expected = from_mean_squares(mean_squares(codes), codes.shape)
        for name, value in components_of(codes).items():
            yield Finding.close(f"random table {table}: {name}", value, expected[name], 1e-12)


CLAIM = Claim(
    name="agrees_with_statsmodels",
    statement="Components give statsmodels' Fleiss kappa, and under the interval kernel its analysis of variance.",
    check=check,
    detectable="1e-9 of recorded values; 1e-12 where statsmodels is installed",
)
