"""Errors, tests and certificates of labelled cubes: each against its definition or an oracle of its own."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import secondorder as so
from secondorder._design import Facet
from secondorder._labels._cube import new_cube
from secondorder._statistics._errors import item_call_variance
from secondorder.errors import InputError, UndefinedError

LAW = np.array([0.5, 0.3, 0.2])


def cube_of(codes: np.ndarray, strata: list[str] | None = None) -> Any:
    """A cube of ``(item, prompt, order, repeat)`` codes of three classes."""
    items, prompts, orders, repeats = codes.shape
    return new_cube(
        codes.astype(np.int8),
        labels={
            "item": [str(i) for i in range(items)],
            "prompt": [f"p{k}" for k in range(prompts)],
            "order": [f"o{k}" for k in range(orders)],
            "repeat": [str(r) for r in range(repeats)],
        },
        classes=["a", "b", "c"],
        facets=[Facet("prompt"), Facet("order")],
        stratum=strata,
    )


def draw(shape: tuple[int, ...], seed: int, law: np.ndarray = LAW) -> np.ndarray:
    uniform = np.random.default_rng(seed).random(shape)
    return (uniform[..., None] > np.cumsum(law, -1)[..., :-1]).sum(-1)


# -- errors for each randomness ---------------------------------------------------------------------------------------


def distinct_calls(weights: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """A component, and the unbiased estimate of its square from products of four distinct calls, by brute force."""
    cells, repeats = codes.shape
    calls = [(f, r) for f in range(cells) for r in range(repeats)]
    differ = {(a, b): float(codes[a] != codes[b]) for a in calls for b in calls}
    value = square = 0.0
    for f, g in product(range(cells), repeat=2):
        pairs = [differ[a, b] for a in calls for b in calls if a != b and a[0] == f and b[0] == g]
        value += weights[f, g] * sum(pairs) / len(pairs)
        for h, i in product(range(cells), repeat=2):
            wanted = (f, g, h, i)
            found = [
                differ[a, b] * differ[c, d]
                for a, b, c, d in permutations(calls, 4)
                if (a[0], b[0], c[0], d[0]) == wanted
            ]
            square += weights[f, g] * weights[h, i] * sum(found) / len(found)
    return value, square


def test_errors_over_calls_are_squares_less_products_of_distinct_calls() -> None:
    codes = draw((3, 2, 1, 4), 1)
    result = so.decompose(cube_of(codes), covers="calls")
    half = np.full((2, 2), 0.25)
    # Pair weights of two fixed prompts: same prompt, difference of any prompts and the same one, any prompts.
    for name, weights in (("call", np.eye(2) / 2), ("prompt", half - np.eye(2) / 2), ("total", half)):
        pairs = [distinct_calls(weights, item[:, 0]) for item in codes]
        variance = sum(value**2 - square for value, square in pairs) / 9
        assert result.items[:, result.groups[0].index(name)] == pytest.approx([value for value, _ in pairs])
        if variance < 0:
            assert np.isnan(result.se(name))
            assert "negative" in next(entry.reason for entry in result.groups[0].undefined if entry.component == name)
        else:
            assert result.se(name) == pytest.approx(variance**0.5, rel=1e-9)


def test_few_calls_have_an_upper_bound_in_the_place_of_their_error() -> None:
    codes = draw((12, 3, 1, 3), 2)
    bound, items = so.decompose(cube_of(codes), covers="calls"), so.decompose(cube_of(codes))
    assert bound.se("prompt") == items.se("prompt")
    assert "upper bound" in str(bound)
    assert "four calls" in str(bound)
    enough = so.decompose(cube_of(draw((12, 3, 1, 4), 2)), covers="calls")
    assert "upper bound" not in str(enough)


def test_errors_over_calls_of_other_pairs() -> None:
    codes = draw((10, 3, 1, 4), 3)
    panel = so.decompose(cube_of(codes), pairs="panel", covers="calls")
    halves = [so.decompose(cube_of(codes[..., part])) for part in (slice(0, 2), slice(2, 4))]
    spread = (halves[0].items - halves[1].items) ** 2 / 4  # variance of the mean of two values
    for name in ("call", "prompt", "total"):
        j = panel.groups[0].index(name)
        assert panel.se(name) == pytest.approx(spread[:, j].sum() ** 0.5 / 10)
    # Whole blocks of repeats as units: with independent calls both estimate nearly the same number. Over 400 items the
    # two means differ by less than 5 standard errors of their difference (false failure 6e-7), or 10 % of the variance.
    many = cube_of(draw((400, 3, 1, 4), 3))
    complete, across = (
        item_call_variance(so.decompose(many, pairs=pairs).groups[0])[:, -1] for pairs in ("complete", "across-repeats")
    )
    assert abs((across - complete).mean()) < 5 * (across - complete).std() / 20 + 0.1 * complete.mean()
    assert complete.mean() > 5 * complete.std() / 20
    missing = so.decompose(cube_of(draw((10, 3, 1, 5), 1)), pairs="across-repeats", covers="calls")
    assert "upper bound" not in str(missing)
    codes5 = draw((10, 3, 1, 5), 1)
    codes5[0, 0, 0, 0] = -1
    said = str(so.decompose(cube_of(codes5), pairs="across-repeats", covers="calls"))
    assert "from blocks of repeats when calls are missing" in " ".join(said.split())


def test_errors_over_prompts_are_those_of_leaving_one_out() -> None:
    codes = draw((8, 5, 2, 3), 4)
    facets = [so.Facet("prompt", "random"), "order"]
    whole = so.decompose(cube_of(codes), facets=facets, covers="prompts")
    group = whole.groups[0]
    left = np.stack([so.decompose(cube_of(np.delete(codes, k, axis=1)), facets=facets).items.mean(0) for k in range(5)])
    expected = (4 / 5 * ((left - left.mean(0)) ** 2).sum(0)) ** 0.5
    found = [whole.se(name) for name in group.names]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert (group.errors("prompts").df == 4).all()
    both = so.decompose(cube_of(codes), facets=facets, covers="items+prompts")
    items = so.decompose(cube_of(codes), facets=facets)
    assert all(both.se(name) >= items.se(name) - 1e-15 for name in group.names)


def test_what_no_error_exists_for_says_why() -> None:
    cube = cube_of(draw((6, 3, 2, 2), 5))
    fixed = so.decompose(cube, covers="prompts")
    assert "no facet is random" in fixed.groups[0].undefined[0].reason
    with pytest.raises(UndefinedError, match="--random prompt"):
        fixed.interval("prompt", covers="prompts")
    with pytest.raises(UndefinedError, match="--random prompt"):
        fixed.se("prompt", covers="prompts")
    said = so.decompose(cube, covers="items+prompts")
    assert "this band covers items alone" in " ".join(str(said).split())
    assert "covers items alone" not in str(so.decompose(cube))
    # Nothing is added to items when the levels are all there are.
    assert so.decompose(cube, covers="items+prompts").interval("prompt") == so.decompose(cube).interval("prompt")
    both = [so.Facet("prompt", "random"), so.Facet("order", "random")]
    assert "one random facet" in so.decompose(cube, facets=both, covers="prompts").groups[0].undefined[0].reason
    across = so.decompose(cube, facets=[both[0], "order"], covers="prompts", pairs="across-repeats")
    assert "complete pairs" in across.groups[0].undefined[0].reason
    with pytest.raises(UndefinedError, match="percentile band covers resampled items"):
        so.decompose(cube, covers="calls").interval("prompt", method="percentile")


def test_soft_verdicts_have_errors_of_their_own() -> None:
    codes = draw((8, 3, 1, 5), 6)
    cube = cube_of(codes)
    vectors = so.one_hot(cube)
    soft = cube.assign(soft=(vectors.dims, vectors.values))
    hard = so.decompose(cube, pairs="across-repeats", covers="calls")
    same = so.decompose(soft, pairs="across-repeats", covers="calls")
    for name in ("call", "prompt", "total"):
        assert same.se(name) == pytest.approx(hard.se(name), nan_ok=True)
    blurred = cube.assign(soft=(vectors.dims, 0.7 * vectors.values + 0.1))
    small = so.decompose(blurred, covers="calls", facets=[so.Facet("prompt", "random"), "order"])
    assert 0 < small.se("total") < hard.se("total")
    prompts = so.decompose(blurred, covers="prompts", facets=[so.Facet("prompt", "random"), "order"])
    assert prompts.se("total") > 0
    assert so.permutation_test(blurred, "prompt", draws=19).pvalue > 0.04


# -- several numbers at once ------------------------------------------------------------------------------------------


def test_contrasts_are_differences_and_ratios_of_items() -> None:
    codes = draw((40, 3, 2, 3), 7)
    codes[:, 2] = 0
    result = so.decompose(cube_of(codes), draws=2000)
    found = so.contrasts(result, ["prompt - order", "prompt / total", "prompt"])
    values = result.items
    a, b, t = (values[:, result.groups[0].index(name)] for name in ("prompt", "order", "total"))
    assert found.estimate == pytest.approx([(a - b).mean(), a.mean() / t.mean(), a.mean()])
    ratio = a.mean() / t.mean()
    linear = (a - ratio * t) / t.mean()
    assert found.se == pytest.approx([x.std(ddof=1) / 40**0.5 for x in (a - b, linear, a)])
    assert (found.lower[2], found.upper[2]) == pytest.approx(result.interval("prompt"))
    # Bootstrap draws of a ratio are ratios of draws.
    drawn = result.groups[0].resampled.draws
    share = drawn[:, result.groups[0].index("prompt")] / drawn[:, result.groups[0].index("total")]
    percentile = so.contrasts(result, ["prompt / total"], method="percentile")
    assert (percentile.lower[0], percentile.upper[0]) == pytest.approx(tuple(np.quantile(share, [0.025, 0.975])))
    assert so.contrasts(result, method="simultaneous").names == result.groups[0].names
    with pytest.raises(InputError, match="'prompt-order' is no component, difference or ratio"):
        so.contrasts(result, ["prompt-order"])


def test_simultaneous_bands_are_wider_than_single_ones_and_narrower_than_bonferronis() -> None:
    result = so.decompose(cube_of(draw((60, 3, 2, 2), 8)), draws=4000)
    single, all_of_them = so.contrasts(result), so.contrasts(result, method="simultaneous")
    bonferroni = so.contrasts(result, level=1 - 0.05 / 5)
    width, joint, most = (found.upper - found.lower for found in (single, all_of_them, bonferroni))
    assert (width < joint).all()
    assert (joint < 1.02 * most).all()


def test_a_ratio_to_nothing_is_undefined() -> None:
    codes = np.zeros((20, 3, 2, 2), dtype=int)
    found = so.contrasts(so.decompose(cube_of(codes)), ["prompt / total"])
    assert np.isnan([found.estimate[0], found.lower[0]]).all()
    assert "not positive" in found.reasons[0]
    # A denominator near zero: draws below it are counted, and with too many of them the band is undefined.
    rare = draw((8, 2, 2, 2), 9, np.array([0.97, 0.03, 0.0]))
    few = so.contrasts(so.decompose(cube_of(rare), draws=1000), ["prompt / call"], method="percentile")
    assert few.undefined_draws[0] > 25
    assert "draws have no value" in few.reasons[0]


def test_benchmark_wide_effects_are_those_between_distinct_items() -> None:
    codes = draw((6, 3, 2, 3), 10)
    codes[:, 1] = np.where(np.random.default_rng(0).random((6, 2, 3)) < 0.6, 1, codes[:, 1])
    result = so.decompose(cube_of(codes))
    found = so.benchmark_effects(result)
    assert found.components == ("prompt", "order", "prompt:order")
    means = [result.items[:, result.groups[0].index(name)].mean() for name in found.components]
    np.testing.assert_allclose(found.estimate + found.by_item, means, atol=1e-15)
    # By hand, from the laws of distinct items: mean over pairs of items of the effect's bilinear form.
    laws = np.eye(3)[codes].mean(3).reshape(6, 6, 3)
    effect = {"on": np.eye(3) / 3 - 1 / 9, "off": np.full((3, 3), 1 / 9)}
    orders = {"on": np.eye(2) / 2 - 1 / 4, "off": np.full((2, 2), 1 / 4)}
    for name, k, o in (("prompt", "on", "off"), ("order", "off", "on"), ("prompt:order", "on", "on")):
        weights = -np.kron(effect[k], orders[o])
        pairs = [
            np.einsum("fg,fc,gd,cd", weights, laws[s], laws[t], 1 - np.eye(3)) for s, t in permutations(range(6), 2)
        ]
        assert found.estimate[found.components.index(name)] == pytest.approx(np.mean(pairs))
    # The jackknife is deletion of one item at a time.
    left = np.stack(
        [so.benchmark_effects(so.decompose(cube_of(np.delete(codes, s, axis=0)))).estimate for s in range(6)]
    )
    np.testing.assert_allclose(found.se, (5 / 6 * ((left - left.mean(0)) ** 2).sum(0)) ** 0.5, rtol=1e-9)
    assert "item by item" in str(found)
    assert found.to_dataset().estimate.dims == ("component",)
    with pytest.raises(UndefinedError, match="at least three"):
        so.benchmark_effects(so.decompose(cube_of(codes[:2])))
    with pytest.raises(UndefinedError, match="complete pairs"):
        so.benchmark_effects(so.decompose(cube_of(codes), pairs="across-repeats"))


# -- tests ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hypothesis", ["calls", "labels", "benchmark"])
def test_p_values_of_a_judge_without_effects_keep_their_level(hypothesis: Any) -> None:
    # 100 audits: p <= .1 in at most .1 of them; more than 27 happen with probability 2e-7. A level of 36 % is found
    # with probability .96.
    pvalues = [
        so.permutation_test(cube_of(draw((6, 3, 1, 2), 100 + k)), "prompt", hypothesis=hypothesis, draws=19).pvalue
        for k in range(100)
    ]
    assert sum(p <= 0.1 for p in pvalues) <= binom.isf(5e-7, 100, 0.1)


def test_calls_at_one_repeat_may_depend_on_each_other() -> None:
    # Shared seeds: every prompt gives the same answer at the same repeat. Shuffled calls have too little spread and
    # make the debiased estimate (far below 0) the smallest of all; shuffled labels change nothing.
    codes = np.repeat(draw((30, 1, 1, 4), 3), 3, axis=1)
    assert so.permutation_test(cube_of(codes), "prompt", draws=99).pvalue == 1.0
    assert so.permutation_test(cube_of(codes), "prompt", draws=99, hypothesis="labels").pvalue == 1.0


def test_ties_are_counted() -> None:
    # One call of one item differs: every shuffle gives the same statistic, so p is 1.
    codes = np.zeros((4, 3, 1, 2), dtype=int)
    codes[0, 0, 0, 0] = 1
    test = so.permutation_test(cube_of(codes), "prompt", draws=99)
    assert test.pvalue == 1.0
    assert (test.item_pvalues[0] == 1.0).all()


def test_effects_on_single_items_are_found_with_few_false_discoveries() -> None:
    codes = draw((40, 2, 1, 6), 11)
    codes[:10, 0], codes[:10, 1] = 0, 1
    test = so.permutation_test(cube_of(codes), "prompt", draws=999)
    found = np.flatnonzero(test.item_adjusted[0][:, 0] <= 0.05)
    assert set(range(10)) <= set(found.tolist())
    assert len(found) <= 14
    assert test.components == ("prompt",)
    assert "items, q <= .05" in str(test)


def test_a_benchmark_wide_effect_is_not_an_effect_on_items() -> None:
    # On even items the first prompt leans to a, on odd ones to b: strong on items, nothing on the benchmark.
    leaning = np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]])
    laws = np.stack([leaning if i % 2 else leaning[::-1] for i in range(40)])[:, :, None, None, :]
    cube = cube_of(draw((40, 2, 1, 4), 12, laws))
    assert so.permutation_test(cube, "prompt", draws=199).pvalue == 0.005
    wide = so.permutation_test(cube, "prompt", draws=199, hypothesis="benchmark")
    assert wide.pvalue > 0.05
    assert wide.estimate[0, 0] == pytest.approx(so.benchmark_effects(so.decompose(cube)).estimate[0])
    together = np.stack([leaning] * 40)[:, :, None, None, :]
    both = cube_of(draw((40, 2, 1, 4), 12, together))
    assert so.permutation_test(both, "prompt", draws=199, hypothesis="benchmark").pvalue == 0.005


def test_what_cannot_be_tested_is_refused() -> None:
    cube = cube_of(draw((4, 3, 1, 2), 13))
    for call, match in (
        (lambda: so.permutation_test(cube, "wording"), "no facet 'wording'"),
        (lambda: so.permutation_test(cube, "order"), "'order' has one level"),
        (lambda: so.permutation_test(cube, "prompt", draws=5), "5 is not a whole number from 19"),
        (lambda: so.permutation_test(cube, "prompt", hypothesis="none"), "'none' is not a hypothesis"),
        (lambda: so.permutation_test(cube.isel(item=[0]), "prompt", hypothesis="benchmark"), "one item"),
        (lambda: so.permutation_test(cube.isel(repeat=[0]), "prompt"), "one call per cell"),
    ):
        with pytest.raises(InputError, match=match):
            call()


# -- certificates -----------------------------------------------------------------------------------------------------


def test_false_certificates_are_rare_at_the_threshold() -> None:
    # 20 items of each audit differ between two prompts, 80 do not: the value of the full audit is .1 by construction,
    # up to the calls, which never vary. "Below" .1 is false, "above" (at least) .1 is true.
    codes = np.zeros((100, 2, 1, 2), dtype=int)
    codes[:20, 1] = 1
    result = so.decompose(cube_of(codes))
    assert result["prompt"].estimate == pytest.approx(0.1)
    verdicts = [so.certify(result, "prompt", 0.1, seed=seed, alpha=0.1).verdict for seed in range(60)]
    # At most .1 are false, with probability 1 - 5e-7 of 60 not more than:
    assert verdicts.count("below") <= binom.isf(5e-7, 60, 0.1)
    # Just beside it the truth is certified once all items are known, by construction of the target.
    assert so.certify(result, "prompt", 0.101).verdict == "below"
    assert so.certify(result, "prompt", 0.099).verdict == "above"


def test_a_certificate_says_what_it_is_about() -> None:
    result = so.decompose(cube_of(np.zeros((150, 3, 1, 2), dtype=int)))
    full, source = (so.certify(result, "prompt", 0.05, target=target) for target in ("full-audit", "population"))
    assert full.verdict == source.verdict == "below"
    assert full.stopped_at is not None
    assert full.stopped_at < (source.stopped_at or 0) <= 150
    assert full.least_items is not None
    assert full.least_items <= full.stopped_at
    assert source.upper < 0.05
    assert "under optional stopping" in str(full)
    part = so.certify(so.decompose(cube_of(np.zeros((30, 3, 1, 2), dtype=int))), "prompt", 0.05, n_items=400)
    assert part.verdict == "open"


def test_what_cannot_be_certified_is_refused() -> None:
    cube = cube_of(draw((8, 3, 1, 4), 14), strata=list("xxxxyyyy"))
    result = so.decompose(cube)
    with pytest.raises(UndefinedError, match="stratified sample"):
        so.certify(result, "prompt", 0.1, target="population")
    assert so.certify(result, "prompt", 0.1).target == "full-audit"
    for options, match in (
        ({"alpha": 2}, "between 0 and 1"),
        ({"target": "everything"}, "not a target"),
        ({"n_items": 3}, "n_items is 3"),
    ):
        with pytest.raises(InputError, match=match):
            so.certify(result, "prompt", 0.1, **options)
    with pytest.raises(UndefinedError, match="no proven range"):
        so.certify(so.decompose(cube, pairs="panel"), "prompt", 0.1)
    assert so.certify(so.decompose(cube, pairs="across-repeats"), "prompt", 0.1).n_items == 8
    with pytest.raises(UndefinedError, match="one call per cell"):
        so.certify(so.decompose(cube.isel(repeat=[0])), "prompt", 0.1)


# -- reference --------------------------------------------------------------------------------------------------------


def test_prefixes_against_a_reference() -> None:
    laws = np.random.default_rng(1).dirichlet([3, 2, 1], size=(20, 3, 1, 1))
    cube, reference = cube_of(draw((20, 3, 1, 4), 1, laws)), cube_of(draw((20, 3, 1, 32), 2, laws))
    report = so.compare_reference(cube, reference)
    assert [row[2] for row in report.rows if row[1] == "prompt"] == [2, 4]
    truth = so.decompose(reference)
    j = truth.groups[0].index("prompt")
    two = so.decompose(cube.isel(repeat=slice(0, 2))).groups[0]
    _, _, depth, plug, debiased = next(row for row in report.rows if row[1] == "prompt")
    assert depth == 2
    assert plug == pytest.approx(np.abs(two.plugin_values[:, j] - truth.items[:, j]).mean())
    assert debiased == pytest.approx(np.abs(two.values[:, j] - truth.items[:, j]).mean())
    halves = [so.decompose(reference.isel(repeat=slice(*part))).items[:, j] for part in ((0, 16), (16, 32))]
    own = next(row for row in report.halves if row[1] == "prompt")
    assert own[2] == pytest.approx(np.abs(halves[0] - halves[1]).mean())
    assert report.n_items == 20
    # Items that one of them lacks are left out.
    assert so.compare_reference(cube.isel(item=slice(5)), reference).n_items == 5
    for other, match in ((cube, "the cube itself"), (reference.isel(repeat=slice(2)), "2 repeats")):
        with pytest.raises(InputError, match=match):
            so.compare_reference(cube, other)


def test_a_small_p_of_an_interaction_is_explained() -> None:
    cube = cube_of(draw((6, 3, 2, 2), 5))
    said = " ".join(str(so.permutation_test(cube, "prompt", draws=19)).split())
    assert "no evidence for an interaction where main effects exist" in said
    said = " ".join(str(so.permutation_test(cube, "prompt", draws=19, hypothesis="benchmark")).split())
    assert "interactions: no exact p" in said
    assert "no evidence" not in said


def test_what_is_counted_has_no_p_value_in_the_table() -> None:
    report = so.check_independence(cube_of(draw((6, 3, 2, 2), 5)), draws=199)
    row = next(row for row in report.tables()[0].rows if row[1] == "no call noise")
    assert row[3:5] == (None, None)
    assert all(isinstance(value, float) for value in report.tables()[0].rows[0][2:5])
