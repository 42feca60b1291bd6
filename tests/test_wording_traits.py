"""Similarity and traits of wordings: agreement by hand, exact chance levels, least squares."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
import scipy.stats as ss
import xarray as xr

from secondorder.errors import CubeError, InputError
from secondorder.studies import feature_effects, similarity_stability


def test_similarity_against_agreement_by_hand() -> None:
    rng = np.random.default_rng(0)
    verdict = rng.integers(0, 3, (2, 30, 4))
    cube = xr.Dataset(
        {"verdict": (("judge", "item", "prompt"), verdict)},
        coords={"class": ["a", "b", "c"], "judge": ["x", "y"], "prompt": list("abcd")},
    )
    pairs = list(combinations(range(4), 2))
    similarity = {("abcd"[i], "abcd"[j]): float(s) for (i, j), s in zip(pairs, rng.random(6), strict=True)}
    found = similarity_stability(cube, similarity, draws=50)
    agree = np.array([[(verdict[g, :, i] == verdict[g, :, j]).mean() for i, j in pairs] for g in (0, 1)])
    given = np.array(list(similarity.values()))
    for g, judge in enumerate("xy"):
        assert float(found["pearson"].estimate.sel(judge=judge)) == pytest.approx(ss.pearsonr(given, agree[g])[0])
        assert float(found["spearman"].estimate.sel(judge=judge)) == pytest.approx(ss.spearmanr(given, agree[g])[0])
    both = ss.pearsonr(np.tile(given, 2), agree.ravel())[0]
    assert float(found.data["pooled"].sel(measure="pearson")) == pytest.approx(both)
    matrix = np.zeros((4, 4))
    for (i, j), s in zip(pairs, given, strict=True):
        matrix[i, j] = matrix[j, i] = s
    moved = [[matrix[order[i], order[j]] for i, j in pairs] for order in permutations(range(4))]
    null = [abs(ss.pearsonr(row, agree[0])[0]) for row in moved]
    right = np.mean([r >= abs(ss.pearsonr(given, agree[0])[0]) - 1e-9 for r in null])
    assert float(found["pearson"].pvalue.sel(judge="x")) == pytest.approx(right)
    with pytest.raises(InputError, match="no similarity of"):
        similarity_stability(cube, {("a", "b"): 1.0})
    with pytest.raises(InputError, match="the other"):
        similarity_stability(cube, {**similarity, ("b", "a"): 9.0})
    with pytest.raises(CubeError, match="three or more"):
        similarity_stability(cube.isel(prompt=[0, 1]), similarity)


@pytest.mark.parametrize("levels", [(0, 0, 0, 1, 1), (0, 1, 1, 2, 2), (0, 1, 1, 1, 1)])
def test_the_chance_level_of_eta_squared_is_exact(levels: tuple[int, ...]) -> None:
    # Mean of eta^2 over all relabellings, by brute force, against (g - 1)/(n - 1): .25 and .5 for five paraphrases.
    y = np.random.default_rng(0).normal(size=5)
    prompts = [f"p{i}" for i in range(5)]

    def eta(values: np.ndarray) -> float:
        groups = [values[np.array(levels) == g] for g in set(levels)]
        between = sum(len(group) * (group.mean() - values.mean()) ** 2 for group in groups)
        return float(between / ((values - values.mean()) ** 2).sum())

    every = [eta(y[list(order)]) for order in permutations(range(5))]
    found = feature_effects(dict(zip(prompts, y, strict=True)), {"trait": dict(zip(prompts, levels, strict=True))})
    one = found["eta2"].sel(feature="trait")
    assert float(one.null_mean) == (len(set(levels)) - 1) / 4 == pytest.approx(np.mean(every), abs=1e-12)
    assert float(one.estimate) == pytest.approx(eta(y), abs=1e-12)
    assert float(one.pvalue) == pytest.approx(np.mean([e >= eta(y) - 1e-9 for e in every]), abs=1e-12)


def test_outcomes_that_do_not_vary_have_no_slope_and_no_p() -> None:
    """Equal outcomes leave rounding errors, whose regression is no result."""
    prompts = [f"p{k}" for k in range(6)]
    traits = {"x": {p: k % 3 for k, p in enumerate(prompts)}, "z": {p: k for k, p in enumerate(prompts)}}
    found = feature_effects(dict.fromkeys(prompts, 0.3), traits)
    assert found.data["estimate"].isnull().all()
    assert found.data["pvalue"].isnull().all()
    assert "outcomes do not vary" in str(found["slope"].reason.sel(feature="x").item())


def test_slopes_with_and_without_the_other_traits_equal_least_squares() -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(2)
    prompts = [f"p{i}" for i in range(15)]
    family = {p: "abc"[i // 5] for i, p in enumerate(prompts)}
    strict, words = rng.integers(0, 4, 15), rng.normal(size=15)
    role = rng.choice(["judge", "none"], 15)
    y = 0.1 * strict + 0.2 * words + np.repeat([0, 1, 2], 5) + rng.normal(0, 0.1, 15)
    traits = {
        name: dict(zip(prompts, column.tolist(), strict=True))
        for name, column in (("strict", strict), ("words", words), ("role", role))
    }
    found = feature_effects(dict(zip(prompts, y, strict=True)), traits, family=family, permutations=200)
    dummies = np.eye(3)[np.arange(15) // 5]
    alone = sm.OLS(y, np.column_stack([strict, dummies])).fit()
    full = sm.OLS(y, np.column_stack([strict, dummies, words, role == "judge"]).astype(float)).fit()
    for measure, model in (("slope", alone), ("slope_adjusted", full)):
        one = found[measure].sel(feature="strict")
        assert float(one.estimate) == pytest.approx(model.params[0], abs=1e-10)
        assert float(one.se) == pytest.approx(model.bse[0], abs=1e-10)
        assert float(one.pvalue) == pytest.approx(model.pvalues[0], abs=1e-10)
        assert float(one.upper) == pytest.approx(model.conf_int()[0][1], abs=1e-10)
    assert found["slope"].reason.sel(feature="role").item() == "the levels are no numbers"
    assert "have one each" in found["eta2"].reason.sel(feature="words").item()
    assert int(found.data["n_families"].sel(feature="strict")) == 3
    tangled = {"a": dict.fromkeys(prompts, 1), "b": {p: i for i, p in enumerate(prompts)}}
    hopeless = feature_effects(dict(zip(prompts, y, strict=True)), tangled)
    assert "one level" in hopeless["slope"].reason.sel(feature="a").item()
    with pytest.raises(InputError, match="has no level"):
        feature_effects({"p1": 1.0, "p2": 2.0}, {"a": {"p1": 1}})
    with pytest.raises(InputError, match="has no family"):
        feature_effects({"p1": 1.0}, {"a": {"p1": 1}}, family={})
