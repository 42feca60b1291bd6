"""The tools of ``secondorder.testing`` themselves: what they list, what they refuse, how often they fail."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from secondorder._design import Component
from secondorder.errors import DesignError, InputError, UndefinedError
from secondorder.testing import (
    Experiment,
    Outcomes,
    as_fractions,
    assert_mean,
    detectable_discrepancy,
    enumerate_blocks,
    enumerate_levels,
    enumerate_outcomes,
    exact_design,
    exact_mean,
    exact_variance,
    failure_rate,
    oracle_estimate,
    oracle_truth,
    required_values,
    standard_experiments,
)
from secondorder.testing import strategies as so

NOMINAL = [[0, 1], [1, 0]]
quick = settings(max_examples=30, deadline=None, database=None)


# Exact numbers -------------------------------------------------------------------------------------------------------


def test_numbers_are_taken_as_they_are() -> None:
    assert as_fractions(["0.1", 0.5, 3, np.float64(0.25), np.int8(-2), Fraction(1, 3)]).tolist() == [
        Fraction(1, 10), Fraction(1, 2), 3, Fraction(1, 4), -2, Fraction(1, 3)
    ]  # fmt: skip
    assert as_fractions(0.1).item() != Fraction(1, 10)
    assert as_fractions(np.zeros((2, 0, 3))).shape == (2, 0, 3)


@pytest.mark.parametrize("value", [math.nan, math.inf, "x", "1/0", None])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="not a finite number"):
        as_fractions([value])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (({"prompt": [0.1, 0.9]}, {}), "sum exactly 1"),
        (({"prompt": ["1/2", "1/2", 0]}, {}), "not positive"),
        (({"prompt": ["1/2", "1/2"]}, {"random": ["prompt"]}), "weights are declared for a random facet"),
        (({"prompt": 2}, {"random": ["order"]}), "order: not a random facet"),
        (({"prompt": 2}, {"populations": {"prompt": 5}}), "prompt: not a random facet"),
    ],
)
def test_inexact_or_contradictory_designs_are_refused(arguments: Any, words: str) -> None:
    facets, options = arguments
    with pytest.raises(DesignError, match=words):
        exact_design(facets, **options)


# Enumeration ---------------------------------------------------------------------------------------------------------


@quick
@given(st.sampled_from([(2,), (3,), (2, 2)]), st.integers(2, 3), st.data())
def test_both_views_have_the_same_counts(cells: tuple[int, ...], classes: int, data: st.DataObject) -> None:
    law = data.draw(so.laws(cells, classes))
    calls = np.array(data.draw(st.lists(st.integers(0, 2), min_size=math.prod(cells), max_size=math.prod(cells))))
    counts = enumerate_outcomes(law, calls.reshape(cells))
    codes = enumerate_outcomes(law, calls.reshape(cells), view="codes")
    tally: dict[bytes, Fraction] = {}
    for value, probability in codes:
        key = (value[..., None] == np.arange(classes)).sum(-2).tobytes()
        tally[key] = tally.get(key, Fraction(0)) + probability
    assert tally == {value.tobytes(): probability for value, probability in counts}
    assert (counts.values.sum(-1) == calls.reshape(cells)).all()


def test_mean_counts_and_their_variance_are_the_multinomial_ones() -> None:
    law = as_fractions([["1/2", "1/3", "1/6"], ["1/5", 0, "4/5"]])
    outcomes = enumerate_outcomes(law, [2, 3])
    calls = np.array([[2], [3]])
    assert (exact_mean(lambda counts: counts, outcomes) == calls * law).all()
    assert (exact_variance(lambda counts: counts, outcomes, batched=True) == calls * law * (1 - law)).all()


def test_variance_of_named_values() -> None:
    outcomes = enumerate_outcomes([["1/4", "3/4"]], 1)
    found = exact_variance(lambda counts: {"first": int(counts[0, 0]), "sum": int(counts.sum())}, outcomes)
    assert found == {"first": Fraction(3, 16), "sum": 0}


def test_levels_are_drawn_as_declared() -> None:
    policy = as_fractions(["1/2", "1/3", "1/6"])
    drawn = enumerate_levels(policy, 3)
    shares = exact_mean(lambda levels: [(levels == k).mean() * 3 for k in range(3)], drawn)
    assert (shares == 3 * policy).all()
    without = enumerate_levels(4, 2, replace=False)
    assert len(without) == 12
    assert all(first != second for first, second in without.values)
    with pytest.raises(InputError, match="drawn from evenly"):
        enumerate_levels(policy, 2, replace=False)
    with pytest.raises(InputError, match="at least as many levels"):
        enumerate_levels(2, 3, replace=False)


def test_blocks_are_independent_of_each_other_and_of_nothing_inside() -> None:
    joint = Outcomes(np.array([[0, 1], [1, 1], [1, 0]]), as_fractions(["1/2", "1/4", "1/4"]))
    blocks = enumerate_blocks(joint, 2)
    assert blocks.values.shape == (9, 2, 2)
    one, other = (exact_mean(lambda codes, r=r: codes[..., r], blocks) for r in (0, 1))
    assert (one == other).all()
    across = exact_mean(lambda codes: codes[0, 0] * codes[1, 1], blocks)
    assert across == one[0] * one[1]
    assert exact_mean(lambda codes: codes[0, 0] * codes[1, 0], blocks) != one[0] * one[1]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: enumerate_outcomes([[0.1, 0.9]], 2), r"not a law.*as text or fractions"),
        (lambda: enumerate_outcomes([["3/2", "-1/2"]], 2), "not a law"),
        (lambda: enumerate_outcomes(1, 2), "holds no classes"),
        (lambda: enumerate_outcomes([["1/2", "1/2"]], -1), "whole numbers >= 0"),
        (lambda: enumerate_outcomes([["1/2", "1/2"]], 2.5), "whole numbers >= 0"),
        (lambda: enumerate_outcomes([["1/2", "1/2"]] * 30, 2), "205891132094649 outcomes, more than 1000000"),
        (lambda: Outcomes(np.zeros(2), as_fractions(["1/2", "1/3"])), "sum to 5/6"),
        (lambda: Outcomes(np.zeros(3), as_fractions(["1/2", "1/2"])), "3 outcomes, 2 probabilities"),
        (
            lambda: exact_mean(lambda counts: counts[:1], enumerate_outcomes([["1/2", "1/2"]], 2), batched=True),
            "first axis",
        ),
        (
            lambda: Experiment(exact_design({"prompt": 2}, random=["prompt"]), [[1, 0]] * 2, NOMINAL, 2),
            "policy of every",
        ),
        (lambda: Experiment(exact_design({"prompt": 2}), [[1, 0]] * 3, NOMINAL, 2), "laws for 3 levels of prompt"),
    ],
)
def test_impossible_experiments_are_refused(make: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_an_estimator_without_an_answer_is_named_with_its_outcome() -> None:
    outcomes = enumerate_outcomes([["1/2", "1/2"]], 2)
    with pytest.raises(InputError, match=r"gives .*nan.* probability 1/2: \[\[1, 1\]\]"):
        exact_mean(lambda counts: np.nan if counts[0, 0] == 1 else 0.0, outcomes)


# Oracle --------------------------------------------------------------------------------------------------------------


def test_oracle_needs_neither_core_nor_jax_nor_hypothesis() -> None:
    script = (
        "import sys, secondorder.testing as t\n"
        "t.standard_experiments(); t.oracle_truth; t.assert_mean; t.exact_mean\n"
        "bad = {'jax', 'hypothesis', 'xarray', 'pandas', 'scipy', 'matplotlib'} & set(sys.modules)\n"
        "assert not bad, bad\n"
        "assert not [name for name in sys.modules if name.startswith('secondorder.core')]\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_prompt_component_is_the_spread_of_laws() -> None:
    """U_prompt = E ||P_X - mean P||^2 for the nominal kernel, and the variance of mean scores for the interval one."""
    law, weights = (
        as_fractions([["1/2", "1/2", 0], ["1/4", "1/4", "1/2"], [0, 1, 0]]),
        as_fractions(["1/2", "1/3", "1/6"]),
    )
    design = exact_design({"prompt": weights})
    mean = (weights[:, None] * law).sum(0)
    nominal = oracle_truth(law, design, 1 - np.eye(3))
    assert nominal["prompt"] == (weights[:, None] * (law - mean) ** 2).sum()
    scores = as_fractions([1, 2, 5])
    means = (law * scores).sum(1)
    interval = oracle_truth(law, design, (scores[:, None] - scores) ** 2 / 2)
    assert interval["prompt"] == (weights * (means - (weights * means).sum()) ** 2).sum()
    assert interval["call"] == (weights * ((law * scores**2).sum(1) - means**2)).sum()


def test_agreement_of_two_facets_gives_the_components_of_the_paper() -> None:
    """H_S = 1 - D_S: call 1 - H_XO, prompt H_X - H_0, order H_O - H_0, interaction H_XO - H_X - H_O + H_0."""
    experiment = standard_experiments()["random and fixed facet"]
    census = exact_design({"prompt": 2, "order": ["1/3", "2/3"]})
    subsets = {"XO": ("prompt", "order"), "X": ("prompt",), "O": ("order",), "0": ()}
    extra = [Component(name, ((shared, 1),)) for name, shared in subsets.items()]
    found = oracle_truth(experiment.law, census, NOMINAL, components=extra)
    h = {name: 1 - found[name] for name in subsets}
    assert found["call"] == 1 - h["XO"]
    assert found["prompt"] == h["X"] - h["0"]
    assert found["order"] == h["O"] - h["0"]
    assert found["prompt:order"] == h["XO"] - h["X"] - h["O"] + h["0"]


def test_the_cached_run_of_the_cases() -> None:
    """Two prompts, four calls each: A B A B and A A B B; and the same with answers from one cache slot per prompt."""
    design = exact_design({"prompt": 2})
    true = oracle_estimate([[0, 1, 0, 1], [0, 0, 1, 1]], design, NOMINAL)
    assert true == {"call": Fraction(2, 3), "prompt": Fraction(-1, 12), "total": Fraction(7, 12)}
    cached = oracle_estimate([[0, 0, 0, 0], [1, 1, 1, 1]], design, NOMINAL)
    assert cached == {"call": 0, "prompt": Fraction(1, 2), "total": Fraction(1, 2)}


def test_hard_and_one_hot_verdicts_are_the_same_to_the_oracle() -> None:
    design = exact_design({"prompt": 2})
    codes = np.array([[0, 1, -1], [1, 1, 0]])
    vectors = np.where(codes[..., None] >= 0, np.eye(2)[codes], np.nan)
    for pairs in ("complete", "across-repeats", "plug-in"):
        hard, soft = (oracle_estimate(data, design, NOMINAL, pairs=pairs) for data in (codes, vectors))
        assert hard == soft


def test_cells_without_pairs_are_undefined() -> None:
    design = exact_design({"prompt": 2})
    with pytest.raises(UndefinedError, match="no pair"):
        oracle_estimate([[0, -1], [1, 1]], design, NOMINAL)
    with pytest.raises(UndefinedError, match="one repeat"):
        oracle_estimate([[0], [1]], design, NOMINAL, pairs="panel")
    with pytest.raises(InputError, match=r"verdicts of shape \(3, 2\)"):
        oracle_estimate(np.zeros((3, 2), dtype=int), design, NOMINAL)
    with pytest.raises(InputError, match=r"law of shape \(2, 2\), not \(2, 3\)"):
        oracle_truth([[1, 0], [0, 1]], design, 1 - np.eye(3))


# Random checks -------------------------------------------------------------------------------------------------------


def skewed(seed: int, n: int) -> np.ndarray:
    """Values in [0, 1] that are mostly 0: mean 1/20."""
    return (np.random.default_rng(seed).random(n) < 0.05).astype(float)


@pytest.mark.parametrize("rate", [0.2, 0.05])
def test_bounded_check_fails_at_most_as_often_as_it_says(rate: float) -> None:
    """2 000 runs of 60 strongly skewed values; this test itself fails without cause at a rate below 1e-6.

    A true rate of 1.5 times the stated one would be found with probability > .999 at 0.2.
    """
    found = failure_rate(
        lambda seed: assert_mean(skewed(seed, 60), 0.05, bounds=(0, 1), false_fail_rate=rate),
        range(2000),
        confidence=1 - 2e-6,
    )
    assert found.lower <= rate


def test_unbounded_check_fails_as_often_as_it_says() -> None:
    """4 000 runs with normal values, where the t test is exact; fails without cause at 1e-6, finds .05 against .07."""
    found = failure_rate(
        lambda seed: assert_mean(np.random.default_rng(seed).normal(2, 3, (30, 2)), [2, 2], false_fail_rate=0.05),
        range(4000),
        confidence=1 - 1e-6,
    )
    assert found.lower <= 0.05 <= found.upper


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_discrepancies_of_the_detectable_size_are_found(bounds: Any) -> None:
    """Power .9 is promised; 400 runs, this test fails without cause below 1e-6 if the power is .9 or more."""
    n, sd = 4000, math.sqrt(0.05 * 0.95)
    shift = detectable_discrepancy(sd, n, false_fail_rate=1e-3, power=0.9, bounded=bounds is not None)
    found = failure_rate(
        lambda seed: assert_mean(skewed(seed, n), 0.05 + shift, bounds=bounds, false_fail_rate=1e-3),
        range(400),
        confidence=1 - 2e-6,
    )
    assert found.upper >= 0.9


def test_required_values_are_the_fewest() -> None:
    for bounded in (False, True):
        n = required_values(0.3, 0.01, bounded=bounded)
        assert (
            detectable_discrepancy(0.3, n, bounded=bounded)
            <= 0.01
            < detectable_discrepancy(0.3, n - 1, bounded=bounded)
        )


def test_a_check_that_cannot_see_enough_is_refused() -> None:
    values = np.random.default_rng(0).random(100)
    with pytest.raises(InputError, match=r"100 values find a discrepancy of .*give about \d+ values"):
        assert_mean(values, 0.5, must_detect=0.01)
    check = assert_mean(values, 0.5, must_detect=0.3)
    assert check.detectable[0] < 0.3
    assert "fails without cause at a rate of at most 1e-06" in str(check)


def test_values_all_alike() -> None:
    assert_mean(np.full(50, 0.1), 0.1)
    with pytest.raises(AssertionError):
        assert_mean(np.full(50, 0.1), 0.1 + 1e-9)
    # With bounds: 50 zeros are no proof against a mean of .05, but 500 are.
    assert_mean(np.zeros(50), 0.05, bounds=(0, 1))
    with pytest.raises(AssertionError):
        assert_mean(np.zeros(500), 0.05, bounds=(0, 1))
    with pytest.raises(AssertionError):
        assert_mean(np.array([0, 0, 1.0]), 0, bounds=(0, 1))


def test_one_wrong_mean_among_many_is_named() -> None:
    values = np.random.default_rng(0).normal(0, 1, (5000, 3))
    with pytest.raises(AssertionError, match=r"1 of 3 means differ(.|\n)*differs"):
        assert_mean(values, [0, 0.3, 0])
    values[7, 1:] = np.nan
    with pytest.raises(AssertionError, match=r"2 of 15000 values are not finite, the first in row 7, column 1"):
        assert_mean(values, [0, 0, 0])


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (([1.0], 1), {}, "at least two independent rows"),
        ((np.zeros((2, 2, 2)), 0), {}, "at least two independent rows"),
        (([0.0, 1.0], [0, 1]), {}, "one finite expectation per column"),
        (([0.0, 1.0], math.nan), {}, "one finite expectation"),
        (([0.0, 2.0], 1), {"bounds": (0, 1)}, "value 2 with bounds"),
        (([0.0, 1.0], 1), {"bounds": (1, 0)}, "empty range"),
        (([0.0, 1.0], 1), {"false_fail_rate": 0}, "false_fail_rate is 0"),
        (([0.0, 1.0], 1), {"power": 1}, "power is 1"),
    ],
)
def test_unsound_checks_are_refused(arguments: Any, options: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        assert_mean(*arguments, **options)


def test_failure_rate_passes_other_errors_on() -> None:
    with pytest.raises(ZeroDivisionError):
        failure_rate(lambda seed: 1 // seed, [0])
    with pytest.raises(InputError, match="no seeds"):
        failure_rate(lambda seed: None, [])
    found = failure_rate(lambda seed: None, range(100))
    assert (found.failed, found.lower) == (0, 0.0)
    # Exact limit of 0 of 100 at confidence .99, two-sided: 1 - .005 ** (1 / 100).
    assert math.isclose(found.upper, 1 - 0.005**0.01)
    assert str(found).startswith("0 of 100 runs failed: rate 0, between 0 and 0.05")


@pytest.mark.parametrize("law", [[["1/2", "1/2"], ["4/5", "3/10"]], [["3/2", "-1/2"], ["1/2", "1/2"]]])
def test_an_experiment_needs_laws_that_are_laws(law: Any) -> None:
    with pytest.raises(InputError, match="negative probability"):
        Experiment(exact_design({"prompt": 2}), law, [[0, 1], [1, 0]], 2)
