"""Proven ranges by enumeration of every outcome; betting by exact expectation, and its promises by simulation."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pytest

import secondorder as so
from secondorder._design import Component, Design, standard_components
from secondorder.core._bounds import Bounds, item_bounds, largest_disagreement, largest_disagreement_of_counts
from secondorder.core._cells import cells_from_counts
from secondorder.core._estimates import across_repeats, complete_pairs
from secondorder.core._kernels import interval_kernel, nominal_kernel, ordinal_kernel
from secondorder.core._sequential import confidence_sequence, first_crossing, least_items, log_e_process
from secondorder.errors import InputError, UndefinedError

NAMES = ("prompt", "order")
COMPONENTS = standard_components(NAMES)


def every_count(design: Design, calls: np.ndarray, classes: int) -> np.ndarray:
    cells = [
        [y for y in product(range(n + 1), repeat=classes) if sum(y) == n]
        for n in np.broadcast_to(calls, design.shape).flat
    ]
    return np.array(list(product(*cells))).reshape(-1, *design.shape, classes)


DESIGNS = {
    "fixed": (Design.balanced({"prompt": 3, "order": 2}), 2, nominal_kernel(2)),
    "uneven": (Design(NAMES, ((0.2, 0.8), (0.7, 0.3)), (None, None)), np.array([[2, 3], [4, 2]]), ordinal_kernel(3)),
    "random": (Design.balanced({"prompt": 3, "order": 2}, random=["prompt", "order"]), 2, nominal_kernel(2)),
    "list": (Design(NAMES, ((1 / 3,) * 3, (0.5, 0.5)), (5.0, None)), 2, nominal_kernel(2)),
}  # fmt: skip


@pytest.mark.parametrize("name", DESIGNS)
def test_no_outcome_leaves_the_range_and_some_attain_it(name: str) -> None:
    design, calls, kernel = DESIGNS[name]
    counts = every_count(design, np.asarray(calls), len(kernel))
    values = np.asarray(complete_pairs(cells_from_counts(counts), design, COMPONENTS, kernel))
    bounds = np.array([item_bounds(design, component, kernel, calls) for component in COMPONENTS])
    assert (values >= bounds[:, 0] - 1e-12).all()
    assert (values <= bounds[:, 1] + 1e-12).all()
    attained = np.abs(np.stack([values.min(0), values.max(0)], 1) - bounds) < 1e-12
    if name == "fixed":
        assert attained[1:4].all()
        assert attained[0].all()
    if name == "uneven":
        assert attained[1:3, 1].all()
    sharp = {"fixed": 9, "uneven": 5, "random": 4, "list": 4}
    assert attained.sum() >= sharp[name], attained


def test_no_outcome_of_pairs_across_repeats_leaves_the_range() -> None:
    """All 4096 outcomes of two repeats of three prompts in two orders."""
    design, _, kernel = DESIGNS["fixed"]
    codes = np.array(list(product(range(2), repeat=12))).reshape(-1, 3, 2, 2)
    values = np.asarray(across_repeats(np.eye(2)[codes], design, COMPONENTS, kernel))
    for column, component in enumerate(COMPONENTS):
        lower, upper = item_bounds(design, component, kernel, 2, pairs="across")
        assert lower - 1e-12 <= values[:, column].min()
        assert values[:, column].max() == pytest.approx(upper, abs=1e-12)
    uneven = item_bounds(design, COMPONENTS[1], kernel, [[2, 2], [2, 2], [2, 3]], pairs="across")
    assert uneven == Bounds(-1.0, 1.0)


def test_ranges_of_the_specification() -> None:
    design = Design.balanced({"prompt": 6, "order": 2})
    kernel = nominal_kernel(4)
    table = {
        (1, 2): (-0.2083, 0.7222), (1, 4): (-0.1042, 0.7222), (1, 8): (-0.0446, 0.7222),
        (2, 4): (-0.0208, 0.5), (3, 4): (-0.1042, 0.5),
    }  # fmt: skip
    for (place, calls), wanted in table.items():
        got = item_bounds(design, COMPONENTS[place], kernel, calls)
        np.testing.assert_allclose(got, wanted, atol=5e-5)
        wider = item_bounds(design, COMPONENTS[place], kernel, calls, soft=True)
        assert wider.lower <= got.lower
    # Kernels that can make components negative in truth, and sums of one's own, get what any mean of D obeys.
    tolerant = 2.0 * (np.abs(np.subtract.outer(range(5), range(5))) > 1)
    assert item_bounds(design, COMPONENTS[1], tolerant, 4) == Bounds(-2.0, 2.0)
    own = Component("half", ((("prompt",), 0.5), ((), -0.25)))
    assert item_bounds(design, own, kernel, 4) == Bounds(-0.25, 0.5)


def test_largest_disagreement_over_laws() -> None:
    assert largest_disagreement(nominal_kernel(7)) == pytest.approx(6 / 7, abs=1e-12)
    assert largest_disagreement(ordinal_kernel(6)) == pytest.approx(0.5, abs=1e-12)
    assert largest_disagreement(interval_kernel([0, 1, 5, 9])) == pytest.approx(81 / 4, abs=1e-10)
    points = np.random.default_rng(0).normal(size=(5, 2))
    squared = ((points[:, None] - points) ** 2).sum(-1)
    grid = np.array([p for p in product(range(25), repeat=5) if sum(p) == 24]) / 24
    best = ((grid @ squared) * grid).sum(1).max()
    assert best <= largest_disagreement(squared) <= best * 1.01
    for calls in (2, 3, 5):
        brute = max(
            np.array(y) @ squared @ np.array(y) / calls**2
            for y in product(range(calls + 1), repeat=5)
            if sum(y) == calls
        )
        assert largest_disagreement_of_counts(squared, calls) == pytest.approx(brute, rel=1e-12)
        nominal = max(
            1 - sum(c * c for c in y) / calls**2 for y in product(range(calls + 1), repeat=3) if sum(y) == calls
        )
        assert largest_disagreement_of_counts(nominal_kernel(3), calls) == pytest.approx(nominal, rel=1e-12)
    assert largest_disagreement_of_counts(ordinal_kernel(9), 60) == pytest.approx(0.5, abs=1e-12)


BOUNDS = Bounds(-0.25, 1.0)


def by_hand(values: list[float], threshold: float, side: str, n_items: int | None) -> list[float]:
    """Capital of the nine bets, one multiplication at a time."""
    stakes = [0.95, 0.6, 0.35, 0.2, 0.12, 0.07, 0.04, 0.02, 0.01]
    capital = [0.5] + [0.0625] * 8
    path, total = [], 0.0
    for t, x in enumerate(values):
        m = threshold if n_items is None else (n_items * threshold - total) / (n_items - t)
        if BOUNDS.lower < m < BOUNDS.upper:
            win = (m - x) / (BOUNDS.upper - m) if side == "below" else (x - m) / (m - BOUNDS.lower)
            capital = [c * (1 + k * win) for c, k in zip(capital, stakes, strict=True)]
        total += x
        path.append(sum(capital))
        if n_items is not None:
            rest, left = n_items * threshold - total, n_items - t - 1
            if rest > left * BOUNDS.upper + 1e-9 if side == "below" else rest < left * BOUNDS.lower - 1e-9:
                return path[:-1] + [math.inf] * (len(values) - t)
    return path


@pytest.mark.parametrize("n_items", [None, 30])
@pytest.mark.parametrize("side", ["below", "above"])
def test_capital_is_the_product_of_its_bets(side: str, n_items: int | None) -> None:
    values = np.random.default_rng(3).choice([-0.25, 0.0, 0.1, 1.0], p=[0.1, 0.6, 0.2, 0.1], size=(4, 30))
    for threshold in (0.02, 0.3, 0.7):
        got = log_e_process(values, threshold, BOUNDS, side, n_items=n_items)
        wanted = np.log([by_hand(list(row), threshold, side, n_items) for row in values])
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)
    if n_items is not None:
        means = values.mean(1)
        certain = log_e_process(values, means + (1e-6 if side == "below" else -1e-6), BOUNDS, side, n_items=n_items)
        assert np.isinf(certain[:, -1]).all(), "a complete audit knows its own mean"
        assert np.isfinite(log_e_process(values, means, BOUNDS, side, n_items=n_items)).all()


@pytest.mark.parametrize("side", ["below", "above"])
def test_capital_has_expectation_one_at_the_threshold(side: str) -> None:
    """Exactly: over all 3**7 sequences of independent values, and over all 720 orders of six items."""
    support, chance = np.array([-0.25, 0.1, 1.0]), np.array([0.5, 0.3, 0.2])
    paths = np.array(list(product(range(3), repeat=7)))
    capital = np.exp(log_e_process(support[paths], support @ chance, BOUNDS, side))
    np.testing.assert_allclose(chance[paths].prod(1) @ capital, 1.0, rtol=1e-12)
    items = np.array([-0.2, 0.0, 0.0, 0.3, 0.5, 0.9])
    orders = np.array(list(permutations(items)))
    capital = np.exp(log_e_process(orders, items.mean(), BOUNDS, side, n_items=6))
    np.testing.assert_allclose(capital.mean(0), 1.0, rtol=1e-12)
    # Inside the hypothesis the capital shrinks.
    inside = items.mean() - 0.05 if side == "below" else items.mean() + 0.05
    assert (np.exp(log_e_process(orders, inside, BOUNDS, side, n_items=6)).mean(0) < 1).all()


DESIGN = Design.balanced({"prompt": 6, "order": 2})


def item_values(rng: np.random.Generator, effect: float, items: int = 4000, repeats: int = 2) -> np.ndarray:
    """Debiased prompt components of items with one effect, as a population whose mean is exactly that effect."""
    slope = np.linspace(-1, 1, 6)
    law = np.array([0.35, 0.35, 0.2, 0.1]) + np.sqrt(effect / 2 / (slope**2).mean()) * slope[:, None] * [1, -1, 0, 0]
    counts = np.stack([rng.multinomial(repeats, row, size=(items, 2)) for row in law], 1)
    values = np.asarray(complete_pairs(cells_from_counts(counts), DESIGN, COMPONENTS[1:2], nominal_kernel(4)))[:, 0]
    return values - values.mean() + effect


@pytest.fixture(scope="module")
def simulated() -> dict[float, np.ndarray]:
    rng = np.random.default_rng(12)
    return {effect: item_values(rng, effect) for effect in (0.0, 0.01, 0.02, 0.05, 0.1)}


RANGE = item_bounds(DESIGN, COMPONENTS[1], nominal_kernel(4), 2)


def test_false_certificates_stay_below_alpha_under_optional_stopping(simulated: dict[float, np.ndarray]) -> None:
    """True mean exactly tau, looked at after each of 600 items (and of all 200 items of a full audit).

    101 or more certificates of 1500 have chance 2e-3 if their rate is .05, the most that is promised, and none at the
    rate of about .02 that the mixture has; a rate of .08 is seen with chance .97.
    """
    rng = np.random.default_rng(5)
    audits = rng.choice(simulated[0.02], size=(1500, 600))
    finite = audits[:, :200] - audits[:, :200].mean(1, keepdims=True) + 0.02
    wider = Bounds(RANGE.lower - 0.05, RANGE.upper + 0.05)
    for side in ("below", "above"):
        population = first_crossing(log_e_process(audits, 0.02, RANGE, side))
        full = first_crossing(log_e_process(finite, 0.02, wider, side, n_items=200))
        assert (population > 0).sum() <= 100
        assert (full > 0).sum() <= 100


def test_stopping_times_of_the_specification(simulated: dict[float, np.ndarray]) -> None:
    """tau = .02, R = 2, 400 audits of one population; the specification names ranges over several of them.

    Population: 137-153 items at no effect, 358-404 at .01, 24-82 at .05, 16-21 at .10; full audits without effect: 47
    of 50, 75 of 100, 117-130 of 419. The medians here have standard errors of 2 % and more.
    """
    rng = np.random.default_rng(6)

    def median(effect: float, side: str, items: int, n_items: int | None = None) -> float:
        values = rng.choice(simulated[effect], size=(400, items))
        stops = first_crossing(log_e_process(values, 0.02, RANGE, side, n_items=n_items))
        return float(np.median(np.where(stops == 0, 10**6, stops)))

    assert 125 <= median(0.0, "below", 300) <= 165
    assert 280 <= median(0.01, "below", 800) <= 410
    assert 20 <= median(0.05, "above", 300) <= 82
    assert 10 <= median(0.1, "above", 100) <= 21
    assert 46 <= median(0.0, "below", 50, 50) <= 48
    assert 73 <= median(0.0, "below", 100, 100) <= 78
    assert 114 <= median(0.0, "below", 419, 419) <= 133


@pytest.mark.parametrize("n_items", [None, 150])
def test_confidence_sequence_is_nested_and_holds_the_mean(
    simulated: dict[float, np.ndarray], n_items: int | None
) -> None:
    """Of 60 sequences at 95 % at most 10 miss the mean at any time: 2e-4 if the rate were exactly .05."""
    rng = np.random.default_rng(7)
    missed = 0
    for _ in range(60):
        values = rng.choice(simulated[0.05], size=150)
        truth = values.mean() if n_items else simulated[0.05].mean()
        band = confidence_sequence(values, RANGE, n_items=n_items, grid=200)
        assert (np.diff(band.lower) >= 0).all()
        assert (np.diff(band.upper) <= 0).all()
        missed += bool(((band.lower > truth) | (band.upper < truth)).any())
        if n_items:
            step = (RANGE.upper - RANGE.lower) / 200
            assert band.upper[-1] - band.lower[-1] <= 2.001 * step
    assert missed <= 10


def test_confidence_sequence_is_all_that_was_never_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    from secondorder.core import _sequential

    values = np.random.default_rng(1).choice([0.0, 0.2, -0.2], size=60)
    band = confidence_sequence(values, BOUNDS, grid=100)
    points = np.linspace(*BOUNDS, 101)
    for t in (5, 30, 60):
        kept = [
            p
            for p in points
            if all(log_e_process(values[:t], p, BOUNDS, side).max() < math.log(40) for side in ("below", "above"))
        ]
        step = points[1] - points[0]
        assert band.lower[t - 1] == pytest.approx(max(min(kept) - step, BOUNDS.lower), abs=1e-12)
        assert band.upper[t - 1] == pytest.approx(min(max(kept) + step, BOUNDS.upper), abs=1e-12)
    monkeypatch.setattr(_sequential, "WORKING_SET", 60 * 7)
    pieces = confidence_sequence(values, BOUNDS, grid=100)
    assert np.array_equal(pieces.lower, band.lower)
    assert np.array_equal(pieces.upper, band.upper)


def test_least_possible_numbers_of_items() -> None:
    bounds = item_bounds(DESIGN, COMPONENTS[1], nominal_kernel(4), 4)
    order = item_bounds(DESIGN, COMPONENTS[2], nominal_kernel(4), 4)
    assert [least_items(tau, bounds) for tau in (0.02, 0.05, 0.10)] == [107, 42, 21]
    assert least_items(0.02, order) == 74
    assert least_items(0.02, bounds, best_stake=False) == 136
    assert [least_items(0.02, bounds, n_items=n) for n in (50, 100, 200, 419)] == [45, 66, 83, 95]
    for side, value in (("below", 0.0), ("above", 0.3)):
        real = log_e_process(np.full(400, value), 0.02, bounds, side)
        assert least_items(0.02, bounds, side, value=value, best_stake=False) == first_crossing(real)
        full = least_items(0.02, bounds, side, value=value, best_stake=False, n_items=100)
        assert full == first_crossing(log_e_process(np.full(100, value), 0.02, bounds, side, n_items=100))
    assert least_items(0.02, bounds, value=0.02) is None
    assert least_items(0.02, bounds, "above", value=0.01) is None
    assert least_items(0.02, bounds, value=0.05, n_items=30) is None
    # Items so high that the rest would have to lie below the range: no bet is left, and none is won.
    assert least_items(0.02, bounds, value=0.3, n_items=30) is None
    assert least_items(0.9, bounds) == 1


def test_values_outside_the_proven_range_stop_the_audit() -> None:
    with pytest.raises(UndefinedError, match=r"item 2 in order: value 1\.5 is outside the proven range \[-0\.25, 1\]"):
        log_e_process([0.0, 1.5], 0.02, BOUNDS, "below")
    with pytest.raises(UndefinedError, match="value nan is outside"):
        confidence_sequence([0.0, np.nan], BOUNDS)
    with pytest.raises(UndefinedError, match="3 values of 2 items"):
        log_e_process([0.0, 0.0, 0.0], 0.02, BOUNDS, "below", n_items=2)


def test_a_certificate_says_what_it_is_about() -> None:
    rows = [
        {"item": f"{k}", "prompt": p, "run": f"{r}", "verdict": "AB"[(k + r) % 2]}
        for k in range(12)
        for p in "pq"
        for r in range(2)
    ]
    cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=["A", "B"])
    audit = so.decompose(cube)
    own = " ".join(str(so.certify(audit, "prompt", 0.1)).split())
    assert "all 12 items of it" in own
    assert "says nothing of other items" in own
    assert "nothing is left to infer" in own
    # With items still to come there is something to infer; a source is never known.
    assert "nothing is left" not in str(so.certify(audit, "prompt", 0.1, n_items=20))
    assert "nothing is left" not in str(so.certify(audit, "prompt", 0.1, target="population"))
    with pytest.raises(InputError, match="beyond what prompt can reach"):
        so.certify(audit, "prompt", 5)
