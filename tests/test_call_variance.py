"""Call noise: exact variances against enumeration in fractions, unbiased estimates by their exact expectation."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from secondorder._design import Component, Design, standard_components
from secondorder.core._call_variance import (
    call_covariance,
    call_covariance_at,
    call_variance,
    planning,
    planning_at,
    variance_at_depth,
)
from secondorder.core._cells import Cells, cells_from_counts, cells_from_soft
from secondorder.core._estimates import complete_pairs, plugin
from secondorder.core._kernels import interval_kernel, nominal_kernel, ordinal_kernel
from secondorder.core._products import apply, dense, diagonal, hadamard, pair_factor, pair_form

F = Fraction
CUSTOM = Component("a sum of three", ((("order",), 1), (("prompt", "order"), -0.5), ((), 0.25)))


def pair_weights(component: Component, design: Design) -> list[list[Fraction]]:
    """Weight of every ordered pair of cells, from the definition of ``D_S`` alone."""
    cells = list(product(*map(range, design.shape)))

    def weight(first: tuple[int, ...], second: tuple[int, ...], shared: tuple[str, ...]) -> Fraction:
        total = F(1)
        for j, name in enumerate(design.names):
            same, size = first[j] == second[j], design.shape[j]
            w, v = F(design.weights[j][first[j]]), F(design.weights[j][second[j]])
            if name in shared:
                total *= w if same else 0
            elif design.populations[j] is None:
                total *= w * v
            else:
                twice = F(0) if math.isinf(design.populations[j]) else 1 / F(design.populations[j])
                total *= twice / size if same else (1 - twice) / (size * (size - 1))
        return total

    return [[sum((F(c) * weight(a, b, shared) for shared, c in component.terms), F(0)) for b in cells] for a in cells]


def compositions(calls: int, classes: int) -> list[tuple[int, ...]]:
    return [y for y in product(range(calls + 1), repeat=classes) if sum(y) == calls]


def probability(counts: tuple[int, ...], law: tuple[Fraction, ...]) -> Fraction:
    result = F(math.factorial(sum(counts)))
    for count, share in zip(counts, law, strict=True):
        result *= share**count / math.factorial(count)
    return result


class Enumeration:
    """Every outcome of one item's calls with its probability and its estimates, in fractions."""

    def __init__(self, design: Design, components: tuple[Component, ...], laws: Any, calls: Any, kernel: Any) -> None:
        self.design, self.components, self.laws, self.calls = design, components, laws, calls
        classes = len(laws[0])
        self.kernel = [[F(value).limit_denominator(1000) for value in row] for row in kernel.tolist()]
        self.outcomes = list(product(*(compositions(n, classes) for n in calls)))
        self.mass = [
            math.prod((probability(y, law) for y, law in zip(outcome, laws, strict=True)), start=F(1))
            for outcome in self.outcomes
        ]
        assert sum(self.mass) == 1
        self.weights = [pair_weights(component, design) for component in components]
        self.debiased = [self.values(outcome, distinct=True) for outcome in self.outcomes]
        self.plugin = [self.values(outcome, distinct=False) for outcome in self.outcomes]

    def values(self, outcome: tuple[tuple[int, ...], ...], *, distinct: bool) -> list[Fraction]:
        size = range(len(outcome))
        d = [[F(0)] * len(outcome) for _ in size]
        for f, g in product(size, size):
            pairs = sum(a * b * self.kernel[i][k] for i, a in enumerate(outcome[f]) for k, b in enumerate(outcome[g]))
            n, m = self.calls[f], self.calls[g]
            d[f][g] = pairs / F(n * (n - 1) if f == g and distinct else n * m)
        return [sum((b[f][g] * d[f][g] for f, g in product(size, size)), F(0)) for b in self.weights]

    def covariance(self, table: list[list[Fraction]]) -> list[list[Fraction]]:
        size = range(len(self.components))
        means = [sum(p * row[i] for p, row in zip(self.mass, table, strict=True)) for i in size]
        return [
            [
                sum(p * row[i] * row[j] for p, row in zip(self.mass, table, strict=True)) - means[i] * means[j]
                for j in size
            ]
            for i in size
        ]

    def cells(self) -> Cells:
        counts = np.array(self.outcomes).reshape(len(self.outcomes), *self.design.shape, -1)
        return cells_from_counts(counts)

    def law(self) -> np.ndarray:
        return np.array(self.laws, dtype=float).reshape(*self.design.shape, -1)

    def n(self) -> np.ndarray:
        return np.array(self.calls).reshape(self.design.shape)

    def expectation(self, values: Any) -> np.ndarray:
        return np.tensordot(np.array(self.mass, dtype=float), np.asarray(values), axes=1)


LAWS3 = ((F(1, 2), F(1, 3), F(1, 6)), (F(1, 4), F(1, 4), F(1, 2)))
LAWS2 = ((F(1, 2), F(1, 2)), (F(1, 4), F(3, 4)), (F(1), F(0)), (F(2, 3), F(1, 3)))
ONE = Design(("prompt",), ((0.25, 0.75),), (None,))
SAMPLED = Design.balanced({"prompt": 2, "order": 2}, random=["prompt"], populations={"prompt": 8})


@pytest.fixture(scope="module")
def one_facet() -> Enumeration:
    """Two cells of unequal weight with 4 and 5 calls, three ordered classes: 315 outcomes."""
    return Enumeration(ONE, standard_components(ONE.names), LAWS3, (4, 5), ordinal_kernel(3))


@pytest.fixture(scope="module")
def two_facets() -> Enumeration:
    """A prompt list sampled without replacement, crossed with orders, one cell certain: 625 outcomes."""
    components = (*standard_components(SAMPLED.names), CUSTOM)
    return Enumeration(SAMPLED, components, LAWS2, (4, 4, 4, 4), nominal_kernel(2))


@pytest.fixture(params=["one_facet", "two_facets"])
def enumeration(request: pytest.FixtureRequest) -> Enumeration:
    return request.getfixturevalue(request.param)


def test_estimates_of_the_enumeration_are_those_of_the_core(enumeration: Enumeration) -> None:
    e = enumeration
    got = complete_pairs(e.cells(), e.design, e.components, np.array(e.kernel, dtype=float))
    np.testing.assert_allclose(got, np.array(e.debiased, dtype=float), atol=1e-15)


@pytest.mark.parametrize("statistic", ["debiased", "plugin"])
def test_exact_covariance_is_that_of_all_outcomes_in_fractions(enumeration: Enumeration, statistic: str) -> None:
    e = enumeration
    table = e.plugin if statistic == "plugin" else e.debiased
    if statistic == "plugin" and not e.design.all_fixed:
        observed = plugin(e.cells(), e.design, e.components, np.array(e.kernel, dtype=float))
        np.testing.assert_allclose(observed, np.array(table, dtype=float), atol=1e-15)
    kernel = np.array(e.kernel, dtype=float)
    got = call_covariance_at(e.law(), e.n(), e.design, e.components, kernel, plugin=statistic == "plugin")
    np.testing.assert_allclose(got, np.array(e.covariance(table), dtype=float), atol=1e-15)


@pytest.mark.parametrize("statistic", ["debiased", "plugin"])
def test_estimated_covariance_has_exactly_the_right_expectation(enumeration: Enumeration, statistic: str) -> None:
    """All pairs of components; the planted faults (+2 for -2, n for n - 1, A3 for A4) move it by 1e-4 and more."""
    e = enumeration
    kernel = np.array(e.kernel, dtype=float)
    got = call_covariance(e.cells(), e.design, e.components, kernel, plugin=statistic == "plugin")
    wanted = e.covariance(e.plugin if statistic == "plugin" else e.debiased)
    np.testing.assert_allclose(e.expectation(got), np.array(wanted, dtype=float), atol=1e-15)
    if statistic == "debiased" and e.design is ONE:
        variance = call_variance(e.cells(), e.design, e.components, kernel)
        np.testing.assert_allclose(variance, np.diagonal(got, axis1=1, axis2=2), atol=1e-16)
        assert (np.asarray(variance) < -1e-6).any(), "an unbiased estimate of a small variance is sometimes negative"


def test_planning_coefficients_are_unbiased_and_exact_at_any_depth(one_facet: Enumeration) -> None:
    e = one_facet
    kernel = np.array(e.kernel, dtype=float)
    exact = planning_at(e.law(), e.design, e.components, kernel)
    pilot = planning(e.cells(), e.design, e.components, kernel)
    for wanted, estimate in zip(exact, pilot, strict=True):
        np.testing.assert_allclose(e.expectation(estimate), wanted, atol=1e-15)
    for repeats in (2, 3, 7):
        covariance = call_covariance_at(e.law(), np.full(2, repeats), e.design, e.components, kernel)
        np.testing.assert_allclose(variance_at_depth(exact, repeats), np.diagonal(covariance), atol=1e-16)
    # Two panels of two repeats: the mean of two independent estimates at depth two.
    np.testing.assert_allclose(variance_at_depth(exact, 4, pairs="panel"), variance_at_depth(exact, 2) / 2, atol=1e-16)
    assert (variance_at_depth(exact, 4, pairs="across") >= variance_at_depth(exact, 4)).all()
    balanced = cells_from_counts(np.full((315, 2, 3), 2))
    np.testing.assert_allclose(
        variance_at_depth(planning(balanced, e.design, e.components, kernel), 6),
        call_variance(balanced, e.design, e.components, kernel),
        atol=1e-16,
    )


def test_undefined_below_four_calls_and_for_soft_verdicts() -> None:
    counts = np.full((315, 2, 3), 2)
    counts[7, 1] = [2, 0, 1]
    components = standard_components(ONE.names)
    got = np.asarray(call_variance(cells_from_counts(counts), ONE, components, ordinal_kernel(3)))
    assert np.flatnonzero(np.isnan(got).any(1)).tolist() == [7]
    assert np.isnan(got[7]).all()
    soft = cells_from_soft(np.full((315, 2, 5, 3), 1 / 3), ordinal_kernel(3))
    assert np.isnan(call_variance(soft, ONE, components, ordinal_kernel(3))).all()


def test_few_and_many_classes_take_different_roads_to_one_value() -> None:
    """24 cells of 3 classes (outer products of classes) and the same laws with two empty classes (tables of cells)."""
    design = Design.balanced({"prompt": 12, "order": 2}, random=["prompt"])
    components = standard_components(design.names)
    law = np.random.default_rng(2).dirichlet([0.5, 0.5, 0.5], size=(12, 2))
    kernel = interval_kernel([0, 1, 3, 4, 9])
    wide = np.concatenate([law, np.zeros((12, 2, 2))], -1)
    few = call_covariance_at(law, 3, design, components, kernel[:3, :3])
    many = call_covariance_at(wide, 3, design, components, kernel)
    np.testing.assert_allclose(few, many, rtol=1e-12, atol=1e-16)


def test_items_in_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from secondorder.core import _batches

    design = Design.balanced({"prompt": 3})
    components = standard_components(design.names)
    counts = np.random.default_rng(1).multinomial(6, [0.5, 0.3, 0.2], size=(2, 5, 3))
    whole = call_covariance(cells_from_counts(counts), design, components, nominal_kernel(3))
    assert whole.shape == (2, 5, 3, 3)
    monkeypatch.setattr(_batches, "WORKING_SET", 4 * 27)
    parts = call_covariance(cells_from_counts(counts.reshape(10, 3, 3)), design, components, nominal_kernel(3))
    np.testing.assert_allclose(whole.reshape(10, 3, 3), parts, atol=1e-17)


def test_paper_ratios_of_mean_squared_error() -> None:
    """MSE of plug-in over debiased for one item at R = 2, 4, 8 and six prompts in two orders.

    Item-level ratios at the null law and at ``U_prompt = .03`` (the specification's table, to its last digit).
    """
    wanted = {0.0: (5.13, 6.46, 6.99), 0.03: (3.93, 3.83, 3.03)}
    design = Design.balanced({"prompt": 6, "order": 2})
    components = standard_components(design.names)[1:2]
    slope = np.linspace(-1, 1, 6)[:, None]
    base, direction = np.array([0.4, 0.3, 0.2, 0.1]), np.array([1.0, -1.0, 0.0, 0.0])
    laws = np.stack([base + np.sqrt(u / 2 / (slope**2).mean()) * slope * direction for u in wanted])
    laws = np.repeat(laws[:, :, None, :], 2, axis=2)
    call = 1 - (laws**2).sum(-1).mean((1, 2))
    for column, repeats in enumerate((2, 4, 8)):
        debiased, plug = (
            np.asarray(
                call_covariance_at(laws, np.full((6, 2), repeats), design, components, nominal_kernel(4), plugin=flag)
            )[:, 0, 0]
            for flag in (False, True)
        )
        ratio = (plug + (5 / (12 * repeats) * call) ** 2) / debiased
        np.testing.assert_allclose(ratio, [row[column] for row in wanted.values()], atol=0.0051)


def test_products_are_closed_and_never_multiplied_out() -> None:
    from secondorder.core._precision import double_precision

    design = Design(("a", "b"), ((0.2, 0.3, 0.5), (1 / 3,) * 3), (None, 7.0))
    forms = [pair_form(component, design) for component in (*standard_components(design.names),)]
    full = [sum(c * np.kron(dense(factors[0]), dense(factors[1])) for c, factors in form) for form in forms]
    for matrix, component in zip(full, standard_components(design.names), strict=True):
        np.testing.assert_allclose(matrix, np.array(pair_weights(component, design), dtype=float), atol=1e-16)
    x = np.random.default_rng(0).normal(size=(2, 3, 3, 2))
    with double_precision():
        for left, matrix in zip(forms, full, strict=True):
            np.testing.assert_allclose(diagonal(left).ravel(), np.diag(matrix), atol=1e-16)
            for right, other in zip(forms, full, strict=True):
                got = apply(hadamard(left, right), x)
                wanted = np.einsum("fg,ngc->nfc", matrix * other, x.reshape(2, 9, 2)).reshape(x.shape)
                np.testing.assert_allclose(got, wanted, atol=1e-15)
    for population in (None, math.inf, 5):
        total = dense(pair_factor([0.25] * 4, "effect", population)).sum(0)
        np.testing.assert_allclose(total, 0, atol=1e-16)
