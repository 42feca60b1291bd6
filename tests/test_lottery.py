"""The prompt lottery: correlations, winners with shared draws, and tables of scores; HANNA."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as ss
import xarray as xr

from secondorder import studies
from secondorder.errors import CubeError, InputError, KernelError, TableError
from secondorder.studies import make_scores, prompt_winners, rank_reversals
from secondorder.studies._correlations import make_points, weighted
from secondorder.studies._scores import prompt_means, score_rows

NAMES = ("pearson", "spearman", "kendall")
SCIPY = {"pearson": ss.pearsonr, "spearman": ss.spearmanr, "kendall": ss.kendalltau}


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
