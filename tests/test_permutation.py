"""Permutation tests against the enumeration of every shuffle; ties, missing calls, multiplicity."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from secondorder._design import Design, standard_components
from secondorder.core import _permutation
from secondorder.core._cells import cells_from_codes
from secondorder.core._estimates import across_repeats, complete_pairs
from secondorder.core._kernels import nominal_kernel, ordinal_kernel
from secondorder.core._multiplicity import benjamini_hochberg
from secondorder.core._permutation import permutation_test, relabelling_test
from secondorder.errors import DesignError

NAMES = ("prompt", "order")
CALL, PROMPT, ORDER, BOTH, TOTAL = standard_components(NAMES)
DRAWS = 4000


def agree(test_draws: np.ndarray, test_pvalue: float, every: np.ndarray, observed: float) -> None:
    """Shuffles follow the enumerated distribution.

    Chi-squared over the distinct values at 1e-4, the p value within five standard errors (6e-7): a probability off by
    a tenth of itself is seen.
    """
    from scipy.special import chdtrc

    values, times = np.unique(every.round(10), return_counts=True)
    seen = np.array([(np.abs(test_draws - value) < 1e-9).sum() for value in values])
    assert seen.sum() == DRAWS, "a shuffle gave a value that no arrangement has"
    wanted = times / times.sum() * DRAWS
    if len(values) > 1:
        assert chdtrc(len(values) - 1, ((seen - wanted) ** 2 / wanted).sum()) > 1e-4
    exact = (every >= observed - 1e-9).mean()
    assert test_pvalue == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / DRAWS) + 1 / DRAWS)


@pytest.mark.parametrize("kernel", [nominal_kernel(3), ordinal_kernel(3)], ids=["nominal", "ordinal"])
def test_shuffled_calls_have_mean_zero_and_the_exact_law(kernel: np.ndarray) -> None:
    """Cells with 2, 2, 3, 2 calls, one item: all 5! * 4! shuffles of calls across prompts within orders."""
    design = Design(NAMES, ((0.3, 0.7), (0.4, 0.6)), (None, None))
    codes = np.array([[[[0, 0, -1], [0, -1, 1]], [[1, 2, 2], [-1, 1, 1]]]], dtype=np.int8)
    arrangements = []
    slots = [[(k, o, r) for k in range(2) for r in range(3) if codes[0, k, o, r] >= 0] for o in range(2)]
    pools = [[codes[0][slot] for slot in some] for some in slots]
    for first, second in product(permutations(pools[0]), permutations(pools[1])):
        moved = codes[0].copy()
        for slot, value in zip(slots[0] + slots[1], first + second, strict=True):
            moved[slot] = value
        arrangements.append(moved)
    every = np.asarray(complete_pairs(cells_from_codes(np.array(arrangements), 3), design, (PROMPT, BOTH), kernel))
    assert np.abs(every.mean(0)).max() < 1e-15
    test = permutation_test(codes, design, (PROMPT, BOTH), kernel, "prompt", seed=1, n_draws=DRAWS)
    for column in range(2):
        agree(test.draws[:, column], test.pvalue[column], every[:, column], test.estimate[column])
        assert test.item_pvalues[0, column] == test.pvalue[column]


@pytest.mark.parametrize("together", [(), ("order",)])
def test_shuffled_labels_have_mean_zero_and_the_exact_law(together: tuple[str, ...]) -> None:
    """Three prompts, two orders, two repeats: 6**4 relabellings, 6**2 when orders share them."""
    design = Design.balanced({"prompt": 3, "order": 2})
    codes = np.array([[[[0, 0], [1, 1]], [[1, 1], [0, 1]], [[0, 2], [2, 2]]]])
    perms = [list(p) for p in permutations(range(3))]
    arrangements = []
    for choice in product(perms, repeat=2 if together else 4):
        moved = np.empty_like(codes[0])
        for o, r in product(range(2), range(2)):
            moved[:, o, r] = codes[0][choice[r if together else 2 * o + r], o, r]
        arrangements.append(moved)
    vectors = np.eye(3)[np.array(arrangements)]
    every = np.asarray(across_repeats(vectors, design, (PROMPT, BOTH), nominal_kernel(3)))
    assert np.abs(every.mean(0)).max() < 1e-15
    test = permutation_test(
        codes, design, (PROMPT, BOTH), nominal_kernel(3), "prompt",
        seed=2, n_draws=DRAWS, shuffled="labels", together=together,
    )  # fmt: skip
    for column in range(2):
        agree(test.draws[:, column], test.pvalue[column], every[:, column], test.estimate[column])


def test_relabelled_levels_have_mean_zero_and_the_exact_law() -> None:
    """Three items, three prompts of unequal weight: all 6**3 relabellings; the statistic is that of distinct items."""
    weights = (0.2, 0.3, 0.5)
    design = Design(NAMES, (weights, (0.5, 0.5)), (None, None))
    rng = np.random.default_rng(0)
    means = rng.multinomial(2, [0.5, 0.5], size=(3, 3, 2)) / 2

    def statistic(law: np.ndarray) -> float:
        """Distinct items, from the definition: same prompt less independent prompts, over independent orders."""
        value = 0.0
        for s, t in permutations(range(3), 2):
            for k, m in product(range(3), repeat=2):
                weight = weights[k] * weights[m] - (weights[k] if k == m else 0)
                value += weight * (law[s, k].mean(0) @ nominal_kernel(2) @ law[t, m].mean(0)) / 6
        return value

    perms = [list(p) for p in permutations(range(3))]
    every = np.array(
        [statistic(np.stack([means[s][p] for s, p in enumerate(choice)])) for choice in product(perms, repeat=3)]
    )
    assert abs(every.mean()) < 1e-15
    test = relabelling_test(means, design, (PROMPT,), nominal_kernel(2), "prompt", seed=3, n_draws=DRAWS)
    assert test.estimate[0] == pytest.approx(statistic(means), abs=1e-15)
    agree(test.draws[:, 0], test.pvalue[0], every, test.estimate[0])


@pytest.fixture(scope="module")
def items() -> np.ndarray:
    """240 items without any effect but of unequal certainty, then 10 items with a strong effect of the order."""
    rng = np.random.default_rng(8)
    law = rng.dirichlet([0.4, 0.4], size=240)[:, 0]
    null = rng.random((240, 3, 2, 4)) < law[:, None, None, None]
    strong = rng.random((10, 3, 2, 4)) < np.array([0.02, 0.98])[None, None, :, None]
    return np.concatenate([null, strong]).astype(np.int8)


DESIGN = Design.balanced({"prompt": 3, "order": 2})


def test_items_without_effect_are_rejected_at_their_rate(items: np.ndarray) -> None:
    """At the 5 % level at most 5 % of 240 null items: 27 or more happen with chance 8e-5. Counting ``>`` for ``>=``
    rejects the near-certain items as well, some 100 of them.
    """
    test = permutation_test(items, DESIGN, (ORDER, BOTH), nominal_kernel(2), "order", seed=4, n_draws=399)
    assert ((test.item_pvalues[:240] <= 0.05).sum(0) < 27).all()
    assert (test.item_pvalues[240:, 0] <= 0.0025).all()
    assert test.pvalue[0] <= 0.01
    certain = (items == items[:, :1, :1, :1]).all((1, 2, 3))
    assert certain.sum() > 20
    assert (test.item_pvalues[certain] == 1).all()
    adjusted = benjamini_hochberg(test.item_pvalues[:, 0])
    assert (adjusted[240:] <= 0.1).all()
    null = permutation_test(items[:240], DESIGN, (PROMPT,), nominal_kernel(2), "prompt", seed=4, n_draws=399)
    assert null.pvalue[0] > 0.001


def test_rounding_does_not_break_ties() -> None:
    """One call differs: all shuffles have the same value but for the order of additions."""
    codes = np.zeros((1, 3, 2, 3), dtype=np.int8)
    codes[0, 2, 1, 0] = 1
    design = Design(NAMES, ((1 / 3,) * 3, (0.3, 0.7)), (None, None))
    test = permutation_test(codes, design, (PROMPT, BOTH), ordinal_kernel(2), "prompt", seed=5, n_draws=199)
    assert np.ptp(test.draws, axis=0).max() < 1e-15
    assert test.pvalue.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("shuffled", ["calls", "labels"])
def test_soft_verdicts_are_shuffled_like_hard_ones(items: np.ndarray, shuffled: _permutation.Shuffled) -> None:
    few = items[200:250:10].copy()
    soft = np.eye(2)[few]
    for missing in (False, True):
        if missing:
            few[0, 1, 0, 2] = -1
            soft[0, 1, 0, 2] = np.nan
        hard, same = (
            permutation_test(v, DESIGN, (ORDER,), nominal_kernel(2), "order", seed=6, n_draws=50, shuffled=shuffled)
            for v in (few, soft)
        )
        np.testing.assert_allclose(hard.draws, same.draws, atol=1e-14)
        np.testing.assert_array_equal(hard.item_pvalues, same.item_pvalues)


@pytest.mark.parametrize("missing", [False, True])
def test_few_calls_are_counted_without_a_program(
    items: np.ndarray, missing: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = items[200:250:10].copy()
    if missing:
        few[0, 1, 0, 2] = -1
    plain = permutation_test(few, DESIGN, (ORDER, BOTH), nominal_kernel(2), "order", seed=6, n_draws=50)
    monkeypatch.setattr(_permutation, "FEW_CALLS", 0)
    compiled = permutation_test(few, DESIGN, (ORDER, BOTH), nominal_kernel(2), "order", seed=6, n_draws=50)
    np.testing.assert_allclose(plain.draws, compiled.draws, atol=1e-14)
    np.testing.assert_array_equal(plain.item_pvalues, compiled.item_pvalues)


def test_draws_are_a_prefix_of_more_draws(items: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_permutation, "CALLS_PER_BLOCK", 20 * items[:5].size)
    many, few = (
        permutation_test(items[-5:], DESIGN, (ORDER,), nominal_kernel(2), "order", seed=7, n_draws=n).draws
        for n in (50, 27)
    )
    assert np.array_equal(many[:27], few)
    assert len(np.unique(many[:, 0])) > 10
    assert not np.array_equal(many[:20], many[20:40])


def test_undefined_items_have_no_p_value_and_other_components_no_test(items: np.ndarray) -> None:
    few = items[-5:].copy()
    few[2, 0, 0, 1:] = -1
    test = permutation_test(few, DESIGN, (ORDER,), nominal_kernel(2), "order", seed=0, n_draws=50)
    assert np.isnan(test.item_pvalues[:, 0]).tolist() == [False, False, True, False, False]
    assert np.isnan(test.pvalue[0])
    with pytest.raises(DesignError, match="'total' does not vanish without an effect of 'order'"):
        permutation_test(few, DESIGN, (TOTAL,), nominal_kernel(2), "order", seed=0)
    with pytest.raises(DesignError, match="'prompt' does not vanish without an effect of 'order'"):
        relabelling_test(np.eye(2)[few[..., 0]], DESIGN, (PROMPT,), nominal_kernel(2), "order", seed=0)
    with pytest.raises(DesignError, match="facet 'judge' is not in the design"):
        permutation_test(few, DESIGN, (ORDER,), nominal_kernel(2), "judge", seed=0)


def test_false_discovery_rate_is_scipys() -> None:
    from scipy.stats import false_discovery_control

    values = np.random.default_rng(1).beta(0.3, 1, size=50)
    values[[3, 4]] = values[5]
    np.testing.assert_allclose(benjamini_hochberg(values), false_discovery_control(values), rtol=1e-14)
    assert benjamini_hochberg([np.nan]).shape == (1,)
