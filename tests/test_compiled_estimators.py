"""The compiled estimators themselves, without a rounding error, and against the brute-force oracle.

Experiments are *dyadic* where equality is claimed: weights, laws, kernels and numbers of calls whose arithmetic fits a
binary float without rounding, so that JAX code is exact and "unbiased" is an equality of fractions. Elsewhere floats
are compared with the oracle's fractions at 1e-12.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from secondorder._design import Design, standard_components
from secondorder.core import _estimates, _pairs
from secondorder.core._balanced import balanced_pairs
from secondorder.core._cells import cells_from_codes, cells_from_soft
from secondorder.testing import (
    Experiment,
    Outcomes,
    as_floats,
    as_fractions,
    enumerate_blocks,
    enumerate_levels,
    enumerate_outcomes,
    exact_design,
    exact_mean,
    oracle_estimate,
    oracle_truth,
)
from secondorder.testing.strategies import MENU, Scenario

Values = dict[str, Any]

NOMINAL = as_fractions([[0, 1], [1, 0]])
INTERVAL = as_fractions([[0, "1/2", "9/2"], ["1/2", 0, 2], ["9/2", 2, 0]])
ONE = Experiment(exact_design({"prompt": ["1/4", "3/4"]}), [["1/4", "1/2", "1/4"], ["5/8", "1/8", "1/4"]], INTERVAL, 2)
TWO = Experiment(
    exact_design({"prompt": ["1/8", "7/8"], "order": 2}),
    [[["1/4", "3/4"], ["1/2", "1/2"]], [["7/8", "1/8"], ["1/4", "3/4"]]],
    NOMINAL,
    2,
)
THREE = Experiment(
    exact_design({"prompt": ["1/4", "3/4"], "order": 2, "judge": ["1/8", "7/8"]}),
    [
        [[["1/4", "3/4"], ["1/2", "1/2"]], [["7/8", "1/8"], ["1/4", "3/4"]]],
        [[["3/4", "1/4"], ["1/8", "7/8"]], [["3/8", "5/8"], ["1/2", "1/2"]]],
    ],
    NOMINAL,
    2,
)
MIXED = Experiment(
    exact_design({"prompt": 2, "order": ["1/4", "3/4"]}, random=["prompt"]),
    [[["1/4", "3/4"], ["1/2", "1/2"]], [["7/8", "1/8"], [1, 0]]],
    NOMINAL,
    2,
    {"prompt": ["1/4", "3/4"]},
)
LISTED = Experiment(
    exact_design({"prompt": 2}, random=["prompt"], populations={"prompt": 4}),
    [["1/4", "3/4"], ["1/2", "1/2"], ["7/8", "1/8"], [1, 0]],
    NOMINAL,
    2,
    {"prompt": 4},
)
DYADIC = {"one facet": ONE, "two": TWO, "three": THREE, "random and fixed": MIXED, "random from a list": LISTED}
# A seed for the whole block: with probability 1/4, 1/2, 1/4 it makes the judge lenient, fair or severe everywhere.
SEED = Outcomes(np.array([[[0, 0], [0, 1]], [[0, 1], [0, 1]], [[1, 1], [1, 0]]]), as_fractions(["1/4", "1/2", "1/4"]))


def compiled(function: Callable[..., Any], data: Any, design: Design, kernel: Any) -> Values:
    """An estimator of the core as users run it."""
    components = standard_components(design.names)
    result = np.asarray(function(data, as_floats(design), components, np.asarray(kernel, dtype=float)))
    return {component.name: result[..., index] for index, component in enumerate(components)}


def complete(codes: Any, design: Design, kernel: Any) -> Values:
    return compiled(_estimates.complete_pairs, cells_from_codes(codes, len(kernel)), design, kernel)


def by_repeat(function: Callable[..., Any]) -> Callable[..., Values]:
    """Estimators that know which repeat a verdict came from take one-hot vectors, NaN where there is none."""

    def estimate(codes: Any, design: Design, kernel: Any) -> Values:
        verdicts = np.where(codes[..., None] >= 0, np.eye(len(kernel))[codes], np.nan)
        return compiled(function, verdicts, design, kernel)

    return estimate


across, panel = by_repeat(_estimates.across_repeats), by_repeat(_estimates.panel)


def check_exact(estimate: Callable[..., Values], outcomes: Outcomes, experiment: Experiment) -> Values:
    """Unbiased without a rounding error; components add up in every sample."""
    found = estimate(outcomes.values, experiment.design, experiment.kernel)
    assert exact_mean(lambda _: found, outcomes, batched=True) == experiment.truth()
    assert (found["total"] == sum(value for name, value in found.items() if name != "total")).all()
    return found


def every(step: int, found: Values) -> Values:
    return {name: values[::step] for name, values in found.items()}


def check_oracle(
    found: Values, samples: Any, design: Design, kernel: Any, pairs: Any, tolerance: float = 1e-12
) -> None:
    """Sample by sample what the definition gives."""
    for row, sample in enumerate(samples):
        expected = oracle_estimate(sample, design, kernel, pairs=pairs)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name][row], float(value), rtol=0, atol=tolerance * float(kernel.max()))


def ordered(counts: np.ndarray) -> np.ndarray:
    """Two classes, two calls: codes in one order for each table of counts."""
    return np.where(np.arange(2) < counts[..., :1], 0, 1)


# Independent calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DYADIC)
def test_complete_pairs_are_exactly_unbiased(name: str) -> None:
    experiment = DYADIC[name]
    outcomes = experiment.outcomes("codes") if name == "one facet" else experiment.outcomes().map(ordered)
    check_exact(complete, outcomes, experiment)


@pytest.mark.parametrize("name", ["one facet", "two", "random and fixed"])
def test_across_repeats_is_exactly_unbiased(name: str) -> None:
    experiment = DYADIC[name]
    outcomes = experiment.outcomes("codes")
    found = every(7, check_exact(across, outcomes, experiment))
    check_oracle(found, outcomes.values[::7], experiment.design, experiment.kernel, "across-repeats")


@pytest.mark.parametrize("repeats", [4, 5])
def test_panel_is_exactly_unbiased(repeats: int) -> None:
    """An odd last repeat is left over."""
    design = exact_design({"prompt": ["1/4", "3/4"]})
    experiment = Experiment(design, [["1/4", "3/4"], ["1/2", "1/2"]], NOMINAL, repeats)
    outcomes = experiment.outcomes("codes")
    found = every(9, check_exact(panel, outcomes, experiment))
    check_oracle(found, outcomes.values[::9], design, NOMINAL, "panel")


def test_fast_path_is_exactly_unbiased() -> None:
    experiment = Experiment(exact_design({"prompt": 2, "order": 2}), TWO.law, NOMINAL, 2)
    outcomes = experiment.outcomes("codes")

    def fast(which: int) -> Values:
        components = standard_components(experiment.design.names)
        codes = outcomes.values.astype(np.int8)
        found = balanced_pairs(codes, as_floats(experiment.design), components, NOMINAL.astype(float))
        return {component.name: np.asarray(row) for component, row in zip(components, found[which], strict=True)}

    check_exact(lambda *_: fast(0), outcomes, experiment)
    check_oracle(every(11, fast(1)), outcomes.values[::11], experiment.design, NOMINAL, "plug-in")


# Dependence inside repeat blocks -------------------------------------------------------------------------------------


def test_across_repeats_is_exactly_unbiased_under_shared_seeds() -> None:
    experiment = Experiment.of_blocks(TWO.design, SEED, NOMINAL, 2)
    outcomes = experiment.outcomes("codes")
    check_exact(across, outcomes, experiment)
    with pytest.raises(AssertionError):
        check_exact(complete, outcomes, experiment)


def test_across_repeats_is_exactly_unbiased_under_shared_seeds_for_drawn_levels() -> None:
    """A seed decides what every prompt of the policy says; two prompts are drawn, then two blocks."""
    says, chances = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 1]]), as_fractions(["1/4", "1/2", "1/4"])
    policy = as_fractions(["1/4", "1/2", "1/4"])
    outcomes = enumerate_levels(policy, 2).then(lambda drawn: enumerate_blocks(Outcomes(says[:, drawn], chances), 2))
    design = exact_design({"prompt": 2}, random=["prompt"])
    found = across(outcomes.values, design, NOMINAL)
    law = [[sum(chances[says[:, prompt] == code], Fraction(0)) for code in range(2)] for prompt in range(3)]
    assert exact_mean(lambda _: found, outcomes, batched=True) == oracle_truth(
        law, exact_design({"prompt": policy}), NOMINAL
    )


ABSENT = np.array([[[0, 0, 1], [0, 1, 0]], [[0, 0, 0], [1, 0, 0]]], dtype=bool)


def test_across_repeats_of_unequal_n_is_unbiased_under_shared_seeds() -> None:
    """Three blocks, one call lost in three of the four cells: the oracle in fractions, the code to 1e-12."""
    experiment = Experiment.of_blocks(TWO.design, SEED, NOMINAL, 3)
    outcomes = experiment.outcomes("codes").map(lambda codes: np.where(ABSENT, -1, codes))
    declared = (experiment.design, experiment.kernel)
    assert (
        exact_mean(lambda codes: oracle_estimate(codes, *declared, pairs="across-repeats"), outcomes)
        == experiment.truth()
    )
    check_oracle(across(outcomes.values, *declared), outcomes.values, *declared, "across-repeats")


def test_across_repeats_of_unequal_repeats_is_exactly_unbiased() -> None:
    """Independent calls; two cells called in repeats 0 and 1, one in 2 and 3: compiled, without rounding."""
    design = exact_design({"prompt": ["1/4", "1/4", "1/2"]})
    experiment = Experiment(design, [["1/4", "3/4"], ["1/2", "1/2"], ["7/8", "1/8"]], NOMINAL, 2)

    def placed(codes: np.ndarray) -> np.ndarray:
        wide = np.full((*codes.shape[:-1], 4), -1)
        wide[:, :2, :2], wide[:, 2, 2:] = codes[:, :2], codes[:, 2]
        return wide

    check_exact(across, experiment.outcomes("codes").map(placed), experiment)


# Soft verdicts -------------------------------------------------------------------------------------------------------

# Each call of a cell returns one of three probability vectors.
ATOMS = as_fractions(
    [
        [["1/2", "1/4", "1/4"], [1, 0, 0], ["1/3", "1/3", "1/3"]],
        [["1/5", "3/5", "1/5"], [0, "1/2", "1/2"], ["2/3", 0, "1/3"]],
    ]
)
CHANCES = as_fractions([["1/2", "1/3", "1/6"], ["1/4", "1/4", "1/2"]])
SOFT = exact_design({"prompt": ["1/3", "2/3"]})


def soft_outcomes(calls: Any) -> Outcomes:
    """Verdict vectors (2, R, 3) of all outcomes; a missing call is a row of None."""
    vectors = np.concatenate([ATOMS, np.full((2, 1, 3), None, dtype=object)], axis=1)
    return enumerate_outcomes(CHANCES, calls, view="codes").map(
        lambda codes: np.stack([vectors[cell][codes[:, cell]] for cell in range(2)], axis=1)
    )


def soft_complete(verdicts: Any) -> Values:
    """The core's formulas on fractions."""
    present = (verdicts != None)[..., 0]  # noqa: E711
    clean = np.where(present[..., None], verdicts, Fraction(0))
    n = as_fractions(present.sum(-1))
    own = ((clean @ INTERVAL) * clean).sum((-1, -2)) / n
    components = standard_components(SOFT.names)
    mean = clean.sum(-2) / n[..., None]
    values = _estimates.complete_pairs_from(n, mean, own, SOFT, components, INTERVAL)
    return {component.name: value for component, value in zip(components, values, strict=True)}


def test_soft_verdicts_are_unbiased() -> None:
    calls = [2, 3]
    outcomes = soft_outcomes(calls)
    law = (ATOMS * CHANCES[..., None]).sum(1)
    truth = oracle_truth(law, SOFT, INTERVAL)
    exact = soft_complete(outcomes.values)
    assert exact_mean(lambda _: exact, outcomes, batched=True) == truth
    verdicts = outcomes.values.astype(float)
    found = compiled(_estimates.complete_pairs, cells_from_soft(verdicts, INTERVAL.astype(float)), SOFT, INTERVAL)
    for name, values in exact.items():
        np.testing.assert_allclose(found[name], values.astype(float), rtol=0, atol=1e-12)
    # Plug-in: what a verdict disagrees with itself comes off the bias.
    own = ((ATOMS @ INTERVAL * ATOMS).sum(-1) * CHANCES).sum(-1)
    plugin = compiled(_estimates.plugin, cells_from_soft(verdicts, INTERVAL.astype(float)), SOFT, INTERVAL)
    mean = exact_mean(lambda _: plugin, outcomes, batched=True)
    bias = compiled(
        lambda law, *declared: _estimates.plugin_bias_at(law, np.array(calls), *declared, own.astype(float)),
        law.astype(float),
        SOFT,
        INTERVAL,
    )
    for name, value in truth.items():
        np.testing.assert_allclose(float(mean[name] - value), bias[name], rtol=0, atol=1e-12)


def test_soft_verdicts_equal_the_oracle() -> None:
    unequal, equal = soft_outcomes([2, 3]).values[::16], soft_outcomes(2).values[::6]
    for function, samples, pairs in (
        (_estimates.across_repeats, unequal, "across-repeats"),
        (_estimates.across_repeats, equal, "across-repeats"),
        (_estimates.panel, equal, "panel"),
    ):
        check_oracle(compiled(function, samples.astype(float), SOFT, INTERVAL), samples, SOFT, INTERVAL, pairs)


def test_one_soft_verdict_per_cell_is_a_law() -> None:
    verdicts = ATOMS.astype(float)
    cells = cells_from_soft(verdicts[:, :1], INTERVAL.astype(float))
    found = compiled(_estimates.plugin, cells, SOFT, INTERVAL)
    law = compiled(_estimates.at_law, verdicts[:, 0], SOFT, INTERVAL)
    truth = oracle_truth(ATOMS[:, 0], SOFT, INTERVAL)
    for name, value in truth.items():
        assert found[name] == law[name]
        np.testing.assert_allclose(law[name], float(value), rtol=0, atol=1e-12)


# Any sample ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", [MENU[8], MENU[10]], ids=lambda scenario: "x".join(scenario.design.names))
def test_estimators_equal_the_oracle_on_any_sample(scenario: Scenario) -> None:
    rng = np.random.default_rng(20)
    points = as_fractions(rng.integers(-3, 4, (scenario.n_classes, 2)))
    kernel = ((points[:, None] - points[None]) ** 2).sum(-1) / 2
    codes = rng.integers(0, scenario.n_classes, (3, *scenario.design.shape, scenario.repeats))
    check_oracle(complete(codes, scenario.design, kernel), codes, scenario.design, kernel, "complete")
    check_oracle(across(codes, scenario.design, kernel), codes, scenario.design, kernel, "across-repeats")
    check_oracle(panel(codes, scenario.design, kernel), codes, scenario.design, kernel, "panel")
    if scenario.repeats > 2:
        lost = np.where(rng.random(codes.shape) < 0.3, -1, codes)
        lost[..., :2] = codes[..., :2]
        check_oracle(complete(lost, scenario.design, kernel), lost, scenario.design, kernel, "complete")
        check_oracle(across(lost, scenario.design, kernel), lost, scenario.design, kernel, "across-repeats")


def test_planted_fault_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    correct = _estimates.self_corrections
    monkeypatch.setattr(_estimates, "self_corrections", lambda n, *rest: correct(n + 1.0, *rest))
    _estimates._complete.clear_cache()
    with pytest.raises(AssertionError):
        check_exact(complete, TWO.outcomes().map(ordered), TWO)
    _estimates._complete.clear_cache()


def test_many_levels_are_added_up_in_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """In fractions the same as level by level; in floats a program that compiles in a second."""
    levels = _pairs.MANY_LEVELS + 1
    weights = tuple(Fraction(2 * k + 1, levels**2) for k in range(levels))
    design = Design(("prompt", "order"), (weights, (Fraction(1, 3), Fraction(2, 3))), (None, None))  # type: ignore[arg-type]
    counts = np.random.default_rng(0).multinomial(4, [0.5, 0.3, 0.2], size=(levels, 2))
    exact = np.vectorize(lambda n: Fraction(int(n), 4))(counts)
    kernel = np.vectorize(Fraction)(1 - np.eye(3, dtype=int))
    n = np.full(counts.shape[:-1], Fraction(4))
    names = standard_components(design.names)
    found = _estimates.complete_pairs_from(n, exact, 0 * n, design, names, kernel)
    monkeypatch.setattr(_pairs, "MANY_LEVELS", levels)
    assert found == _estimates.complete_pairs_from(n, exact, 0 * n, design, names, kernel)
    monkeypatch.undo()
    floats = Design(design.names, tuple(tuple(map(float, part)) for part in design.weights), (None, None))
    codes = np.repeat(np.tile(np.arange(3), levels * 2), counts.ravel()).reshape(1, levels, 2, 4)
    compiled = _estimates.complete_pairs(cells_from_codes(codes, 3), floats, names, 1 - np.eye(3))
    np.testing.assert_allclose(compiled[0], [float(value) for value in found], atol=1e-13)
