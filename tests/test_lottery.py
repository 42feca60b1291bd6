"""The prompt lottery: winners, rank reversals with call noise, similarity, traits of the wording; HANNA."""

from __future__ import annotations

import ast
import csv
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
import scipy.stats as ss
import xarray as xr

from secondorder import studies
from secondorder.errors import CubeError, InputError, KernelError, TableError
from secondorder.studies import feature_effects, make_scores, prompt_winners, rank_reversals, similarity_stability
from secondorder.studies._call_noise import split_calls
from secondorder.studies._correlations import make_points, weighted
from secondorder.studies._ranks import compare, system_ranks
from secondorder.studies._scores import prompt_means, score_rows

NAMES = ("pearson", "spearman", "kendall")
SCIPY = {"pearson": ss.pearsonr, "spearman": ss.spearmanr, "kendall": ss.kendalltau}
JUDGES = ("Beluga-13B", "OrcaPlatypus", "Mistral-7B", "Llama-13B", "ChatGPT")
CRITERIA = ("RE", "CH", "EM", "SU", "EG", "CX")


@pytest.fixture(scope="module")
def hanna(data_dir: Path) -> xr.Dataset:
    """Scores of 5 judges x 6 criteria x 4 prompts x 11 systems x 96 stories, and the mean of three people."""
    csv.field_size_limit(10**8)
    with open(data_dir / "hanna" / "scores.csv", encoding="utf-8", newline="") as file:
        rows = {row["Model"]: row for row in csv.DictReader(file)}
    systems = list(rows)

    def cell(system: str, column: str) -> list[float]:
        return ast.literal_eval(rows[system][column])

    score = [
        [[[cell(s, f"{judge} {criterion} {p}") for s in systems] for p in range(1, 5)] for criterion in CRITERIA]
        for judge in JUDGES
    ]
    human = [[np.mean([cell(s, f"Human {k} {c}") for k in (1, 2, 3)], axis=0) for s in systems] for c in CRITERIA]
    return xr.Dataset(
        {
            "score": (("judge", "criterion", "prompt", "system", "item"), np.array(score)),
            "human": (("criterion", "system", "item"), np.array(human)),
        },
        coords={
            "judge": list(JUDGES),
            "criterion": list(CRITERIA),
            "prompt": ["1", "2", "3", "4"],
            "system": systems,
            "item": [f"story{i}" for i in range(96)],
        },
    )


# Correlations ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [True, False])
def test_weighted_correlations_are_those_of_the_repeated_rows(whole: bool) -> None:
    # Short scales take the path of merged points, continuous ones (600 different points) the other.
    rng = np.random.default_rng(0)
    n = 60 if whole else 600
    x, y = (rng.integers(1, 6, (2, n)) if whole else rng.normal(size=(2, n))).astype(float)
    x[3] = np.nan
    cluster = np.arange(n) // 3
    draws = rng.integers(0, 3, (4, n // 3)).astype(float)
    found = weighted(make_points(x, y, cluster, n // 3), draws, NAMES)
    for d in range(4):
        times = draws[d, cluster].astype(int) * ~np.isnan(x)
        rows = np.repeat(np.arange(n), times)
        for index, name in enumerate(NAMES):
            assert found[index, d] == pytest.approx(SCIPY[name](x[rows], y[rows])[0], abs=1e-12)


def test_correlations_that_do_not_exist_are_nan() -> None:
    flat = make_points(np.ones(5), np.arange(5.0), np.arange(5), 5)
    assert np.isnan(weighted(flat, np.ones((1, 5)), NAMES)).all()
    none = make_points(np.full(5, np.nan), np.arange(5.0), np.arange(5), 5)
    assert np.isnan(weighted(none, np.ones((2, 5)), NAMES)).all()


def test_winners_on_hanna_equal_scipy_and_share_their_draws(hanna: xr.Dataset) -> None:
    data = hanna.sel(criterion="CH", judge=["Llama-13B", "ChatGPT"]).drop_vars("criterion")
    found = prompt_winners(data, gold="human", system="system", valid=(1, 5), draws=200)
    for judge in ("Llama-13B", "ChatGPT"):
        table = data["score"].sel(judge=judge).to_numpy()
        kept = (table >= 1).all(0)
        for p in range(4):
            for name in NAMES:
                right = SCIPY[name](table[p][kept], data["human"].to_numpy()[kept])[0]
                ours = found.data["estimate"].sel(judge=judge, prompt=str(p + 1), measure=name)
                assert float(ours) == pytest.approx(right, abs=1e-12)
    np.testing.assert_allclose(found.data["best_share"].sum("prompt"), 1, atol=1e-12)
    # Differences of prompts are tighter than independent bands would make them: the human scores are shared.
    gap = studies.differences(found, "prompt")
    first = next(row for row in gap.rows if row[:4] == ("1", "2", "ChatGPT", "pearson"))
    se = found.data["se"].sel(judge="ChatGPT", measure="pearson", prompt=["1", "2"]).to_numpy()
    assert first[6] - first[5] < 2 * 1.96 * np.hypot(*se)
    assert "flatters the best prompt" in found.notes[-1]


def test_what_has_a_score_is_not_counted_as_set_aside_and_an_empty_human_answer_is_none() -> None:
    cube = xr.Dataset(
        {"verdict": (("item", "prompt"), [[0, 3], [1, 1], [2, 0], [0, -1], [1, 2]])},
        coords={
            "class": ["1", "2", "3", "⊥"],
            "prompt": ["a", "b"],
            "gold": ("item", np.array(["1", "2", "3", "1", ""], dtype=object)),
        },
    )
    scores = {"1": 1, "2": 2, "3": 3}
    for given, expected in (({**scores, "⊥": 0}, (0, 1)), (scores, (1, 1))):
        found = prompt_winners(cube, scores=given, draws=0).data
        assert (int(found["n_invalid"][0]), int(found["n_missing"][0])) == expected
    # The fourth item lacks a call, the fifth its human answer; the first is left out where ⊥ has no score.
    assert found["n_answers"].to_numpy().tolist() == [2, 2]


def test_gold_of_a_cube_may_be_written_in_class_labels() -> None:
    cube = xr.Dataset(
        {"verdict": (("item", "prompt"), [[0, 0], [1, 2], [2, 2], [3, 1]])},
        coords={"class": ["1", "2", "3", "⊥"], "prompt": ["a", "b"], "gold": ("item", ["1", "2", "3", "1"])},
    )
    found = prompt_winners(cube, draws=0)
    assert float(found["pearson"].estimate.sel(prompt="a")) == pytest.approx(1)
    assert int(found.data["n_answers"].sel(prompt="a")) == 3
    assert int(found.data["n_invalid"].sel(prompt="a")) == 1
    with pytest.raises(CubeError, match="no human scores"):
        prompt_winners(cube, gold="human")
    with pytest.raises(InputError, match="some of"):
        prompt_winners(cube, correlations=["cosine"])
    with pytest.raises(KernelError, match="no score"):
        prompt_winners(cube.assign_coords({"class": ["low", "mid", "high", "⊥"]}))


def test_classes_that_are_words_are_held_against_the_right_ones() -> None:
    verdict = [[[0, 0], [0, 1]], [[1, 1], [-1, 1]], [[2, 0], [1, 1]], [[0, 1], [0, 0]]]
    cube = xr.Dataset(
        {"verdict": (("item", "prompt", "order"), verdict)},
        coords={"class": ["yes", "no", "⊥"], "prompt": ["a", "b"], "gold": ("item", ["yes", "no", "no", ""])},
    )
    found = prompt_winners(cube, draws=50)
    # By hand: cells weigh alike inside an item; ⊥ is wrong; an item without a right class tells nothing; under
    # "common" an item that lacks a call under one prompt is set aside.
    a, b = found["accuracy"].estimate.to_numpy()
    assert (a, b) == (pytest.approx((2 / 2 + 0 / 2) / 2), pytest.approx((1 / 2 + 2 / 2) / 2))
    wider = prompt_winners(cube.isel(order=[1]), draws=0)["accuracy"].estimate.to_numpy()
    assert wider.tolist() == pytest.approx([2 / 3, 2 / 3])
    assert (int(found.data["n_invalid"][0]), int(found.data["n_missing"][0])) == (1, 1)
    assert "⊥ is wrong" in str(found).replace("\n  ", " ")
    assert float(found.data["best_share"].sum()) == pytest.approx(1)
    with pytest.raises(KernelError, match="no score"):  # asked for by name, a correlation needs scores
        prompt_winners(cube, correlations=["pearson"])
    with pytest.raises(CubeError, match="is no class"):
        prompt_winners(cube.assign_coords(gold=("item", ["maybe", "no", "no", ""])))
    unknown = prompt_winners(cube.assign_coords(gold=("item", ["", "", "", ""])), draws=0)
    assert np.isnan(unknown["accuracy"].estimate).all()
    assert "no answer has both a verdict and a right class" in str(unknown)


# Scores ---------------------------------------------------------------------------------------------------------------


def test_a_failed_judgement_coded_as_minus_one_is_invalid_not_a_score() -> None:
    rows = [{"q": "a", "prompt": "p", "run": r, "s": s} for r, s in enumerate((8, 9, -1))]
    data = make_scores(rows, item="q", score="s", facets=["prompt"], repeat="run")
    shipped = score_rows(data, prompt="prompt", by=None)
    checked = score_rows(data, prompt="prompt", by=None, valid=(1, 10))
    assert prompt_means(shipped, incomplete="common").item() == pytest.approx(16 / 3)
    assert prompt_means(checked, incomplete="common").item() == 8.5
    assert checked.n_invalid.tolist() == [1]
    assert checked.n_missing.tolist() == [0]


def test_score_tables_refuse_what_they_cannot_read() -> None:
    rows = [{"q": "a", "prompt": "p", "s": 1, "g": 1}, {"q": "a", "prompt": "p2", "s": 2, "g": 2}]
    with pytest.raises(TableError, match="more than one row for prompt p"):
        make_scores([rows[0], rows[0]], item="q", score="s", facets=["prompt"])
    with pytest.raises(TableError, match="not constant within"):
        make_scores(rows, item="q", score="s", facets=["prompt"], gold="g")
    with pytest.raises(TableError, match="'high' is no number"):
        make_scores([{**rows[0], "s": "high"}], item="q", score="s", facets=["prompt"])
    with pytest.raises(TableError, match="no column 'score'"):
        make_scores(rows, item="q", score="score", facets=["prompt"])
    with pytest.raises(InputError, match="valid"):
        rank_reversals(make_scores(rows, item="q", score="s", facets=["prompt"]), valid=(5, 1))
    many = [{"q": f"q{i}", "prompt": "p", "s": i} for i in range(200)]  # more levels than a byte holds
    assert make_scores(many, item="q", score="s", facets=["prompt"])["score"].sel(item="q150").item() == 150


def test_systems_may_be_a_dimension_or_a_coordinate_of_the_items() -> None:
    rng = np.random.default_rng(0)
    score = rng.integers(1, 6, (3, 8, 2)).astype(float)  # system, item, prompt
    wide = xr.Dataset({"score": (("system", "item", "prompt"), score)}, coords={"system": ["a", "b", "c"]})
    long = xr.Dataset(
        {"score": (("item", "prompt"), score.reshape(24, 2))},
        coords={"system": ("item", np.repeat(["a", "b", "c"], 8)), "text": ("item", np.tile(np.arange(8), 3))},
    )
    together = rank_reversals(wide, draws=200)
    matched = rank_reversals(long, match="text", draws=200)
    apart = rank_reversals(long, draws=200)
    np.testing.assert_array_equal(together.data["rank"], matched.data["rank"])
    np.testing.assert_allclose(together.draws, matched.draws, atol=1e-12)
    np.testing.assert_array_equal(together.data["estimate"], apart.data["estimate"])
    assert not np.array_equal(together.draws, apart.draws)
    with pytest.raises(CubeError, match="neither a dimension nor a coordinate"):
        rank_reversals(wide.rename(system="model"))
    with pytest.raises(CubeError, match="two or more"):
        rank_reversals(wide.isel(system=[0]))


# Ranks ----------------------------------------------------------------------------------------------------------------


def brute(a: list[float], b: list[float]) -> dict[str, float]:
    """The measures of two orders, pair by pair."""
    pairs = list(combinations(range(len(a)), 2))
    flips = [(a[i] - a[j]) * (b[i] - b[j]) < 0 for i, j in pairs]
    ties = [a[i] == a[j] or b[i] == b[j] for i, j in pairs]

    def near(x: list[float], i: int, j: int) -> bool:
        low, high = min(x[i], x[j]), max(x[i], x[j])
        return low < high and not any(low < other < high for other in x)

    weight = [near(a, i, j) + near(b, i, j) for i, j in pairs]
    rank = [[1 + sum(other > value for other in x) for value in x] for x in (a, b)]
    return {
        "tau": ss.kendalltau(a, b)[0],
        "reversals": float(np.mean(flips)),
        "ties": float(np.mean(ties)),
        "near": sum(weight),
        "near_flips": sum(w * f for w, f in zip(weight, flips, strict=True)),
        "rank_changes": float(np.mean(np.array(rank[0]) != np.array(rank[1]))),
        "top_changes": float(
            {i for i, r in enumerate(rank[0]) if r == 1} != {i for i, r in enumerate(rank[1]) if r == 1}
        ),
    }


def test_orders_are_compared_pair_by_pair_with_ties_apart() -> None:
    rng = np.random.default_rng(0)
    means = rng.integers(0, 5, (40, 6, 3)).astype(float)
    found = compare(means)
    for d in range(40):
        pairs = [brute(means[d, :, k].tolist(), means[d, :, m].tolist()) for k, m in combinations(range(3), 2)]
        for name, values in found._asdict().items():
            right = (
                sum(pair["near_flips"] for pair in pairs) / sum(pair["near"] for pair in pairs)
                if name == "adjacent"
                else np.mean([pair[name] for pair in pairs])
            )
            assert values[d] == pytest.approx(right, abs=1e-12, nan_ok=True), name
    ranks, _ = system_ranks(np.array([[3.0], [1.0], [3.0], [2.0]]))
    assert ranks[:, 0].tolist() == [1, 4, 1, 3]
    near = np.array([[0.1 + 0.2, 0.3], [0.3, 0.3]])  # rounding is no order
    assert compare(near).ties == 1


def test_hanna_tau_of_the_systems_between_prompts(hanna: xr.Dataset) -> None:
    data = hanna.drop_vars("human")
    by = ["judge", "criterion"]
    shipped = rank_reversals(data, by=by, draws=0)
    checked = rank_reversals(data, by=by, valid=(1, 5), draws=0)
    assert shipped.data.sizes["system"] == 11
    assert int(checked.data["n_invalid"].sum()) == 1051
    assert int(shipped.data["n_invalid"].sum()) == 0
    for judge, criterion in [(j, c) for j in JUDGES for c in CRITERIA]:
        score = data["score"].sel(judge=judge, criterion=criterion).to_numpy()
        kept = np.where((score >= 1).all(0), score, np.nan)
        for result, table in ((shipped, score), (checked, kept)):
            means = np.round(np.nanmean(table, axis=-1), 9)
            tau = result.data["tau_pairs"].sel(judge=judge, criterion=criterion)
            for a, b in combinations(range(4), 2):
                assert float(tau[a, b]) == pytest.approx(ss.kendalltau(means[a], means[b])[0], abs=1e-9)
    change = abs(shipped.data["tau_pairs"] - checked.data["tau_pairs"]).max(("prompt", "other"))
    assert float(change.max()) > 0.15
    assert float(change.sel(judge="ChatGPT").max()) < 0.05
    # A system moves by up to this many places when failures count as scores of less than 1.
    assert int(abs(shipped.data["rank"] - checked.data["rank"]).max()) >= 2


def test_reversals_that_the_items_can_tell(hanna: xr.Dataset) -> None:
    data = hanna.drop_vars("human").sel(criterion="CH", judge=["ChatGPT"]).drop_vars("criterion")
    found = rank_reversals(data, valid=(1, 5), draws=300)
    shares = [found.data[f"sure_{name}"].item() for name in ("kept", "reversed", "undecided")]
    assert sum(shares) == pytest.approx(1)
    assert shares[1] <= found["reversals"].estimate.item()
    assert "R >= 2 is needed" in " ".join(str(found).split())
    assert "by call noise alone" not in str(found.tables[0])
    assert found.section().figures[0].svg.startswith("<svg")
    table = next(table for table in found.tables if table.title.startswith("Kendall"))
    tau = found.data["tau_pairs"].squeeze("judge").to_numpy()
    assert [row[1:] for row in table.rows] == [
        ("1", *tau[0, 1:]), ("2", None, *tau[1, 2:]), ("3", None, None, tau[2, 3]),
    ]  # fmt: skip


# Call noise -----------------------------------------------------------------------------------------------------------


def test_halves_of_a_cell_are_disjoint_and_of_equal_size() -> None:
    rng = np.random.default_rng(0)
    values = 2.0 ** np.arange(5)[None, None, None, :] * np.ones((50, 1, 1, 1))
    values[:10, ..., 4] = np.nan
    first, second = split_calls(values, rng)
    sums = [(half[:, 0] * 2).astype(int) for half in (first, second)]
    assert all((s & t) == 0 for s, t in zip(*sums, strict=True))  # no call in both: bits of the sums do not meet
    assert all(bin(s).count("1") == 2 for half in sums for s in half)
    assert all(s < 16 for half in sums for s in half[:10])
    values[0, ..., 1:] = np.nan
    assert np.isnan(split_calls(values, rng)[0][0, 0])


def test_call_noise_alone_reverses_as_often_as_prompts_that_do_not_differ() -> None:
    # 40 studies, systems close together, prompts without effect: the difference has mean 0. Limit of 4 standard errors
    # of the mean: false alarm 6e-5 (t with 39 df: 3e-4); it sees a mean of about 4 x .005 = .02, and counting the same
    # calls on both sides (the planted fault) shifts it by .09.
    rng = np.random.default_rng(1)
    gaps, levels = [], []
    for _ in range(40):
        quality = 0.15 * np.arange(5)
        score = rng.normal(size=(12, 1, 1, 1)) + quality[None, :, None, None] + rng.normal(size=(12, 5, 3, 4))
        data = xr.Dataset({"score": (("item", "system", "prompt", "repeat"), score)})
        found = rank_reversals(data, draws=0, splits=20)
        gaps.append(float(found["reversals_excess"].estimate))
        levels.append(float(found["reversals_noise"].estimate))
    assert abs(np.mean(gaps)) < 4 * np.std(gaps, ddof=1) / np.sqrt(40)
    assert np.mean(levels) > 0.1


def test_deterministic_judges_have_reversals_but_no_call_noise() -> None:
    rng = np.random.default_rng(0)
    score = np.repeat(rng.normal(size=(10, 4, 3, 1)), 4, axis=-1)
    found = rank_reversals(xr.Dataset({"score": (("item", "system", "prompt", "repeat"), score)}), draws=100)
    assert float(found["reversals_noise"].estimate) == 0
    assert float(found["reversals_half"].estimate) == pytest.approx(float(found["reversals"].estimate))
    assert float(found["reversals_excess"].lower) >= 0
    assert "resampled, 50 random splits" in " ".join(str(found).split())
    assert "halves of 2 calls" in " ".join(str(found).split())
    assert found["reversals_noise"].reason.item().startswith("given these items")


# Similarity and traits ------------------------------------------------------------------------------------------------


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
