"""Errors, tests and certificates of labelled cubes: each against its definition or an oracle of its own."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

import secondorder as so
from secondorder._statistics._errors import item_call_variance
from secondorder.errors import InputError, UndefinedError

from .small_draws import cube_of, draw

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
    # A blur shrinks every effect by the same factor: the same shuffles are as large.
    blur, plain = (so.permutation_test(one, "prompt", draws=19).pvalue for one in (blurred, cube))
    assert blur == plain


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
    with pytest.raises(InputError, match=r"'prompt\+order' is no component, difference or ratio"):
        so.contrasts(result, ["prompt+order"])


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
    # Call noise on one item of eight, a prompt's effect on another: draws without the first are counted, and with too
    # many of them the band is undefined. Their share is (7/8)^8, beyond five standard errors with probability 6e-7.
    codes = np.zeros((8, 2, 2, 2), dtype=int)
    codes[0, ..., 0] = codes[1, 0] = 1
    few = so.contrasts(so.decompose(cube_of(codes), draws=1000), ["prompt / call"], method="percentile")
    without = (7 / 8) ** 8
    assert abs(few.undefined_draws[0] - 1000 * without) < 5 * np.sqrt(1000 * without * (1 - without))
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
