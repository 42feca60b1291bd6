"""Judge designs: scales, errors, impact of the choices in a planted factorial; HANNA."""

from __future__ import annotations

import ast
import csv
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
import scipy.stats as ss
import xarray as xr

from secondorder.cli._words import in_flags
from secondorder.errors import CubeError, InputError
from secondorder.studies import coefficient, dominant_source, factor_effects, judge_designs, map_scale
from secondorder.studies._design_errors import error_columns, read_errors
from secondorder.studies._design_grid import make_grid
from secondorder.studies._factor_impact import contrast_of, impacts, null_errors
from secondorder.studies._paired_tests import mcnemar, signed_rank

from .small_designs import BOUNDS, DETAILS, FACTORS, MODEL_BIAS, MODELS, SCALES, planted

# Scales and single designs --------------------------------------------------------------------------------------------


def test_scales_are_mapped_linearly_and_never_clipped() -> None:
    for bounds in ((1, 7), (-3, 3), (0, 1), (0, 100)):
        values = np.linspace(*bounds, 13)
        np.testing.assert_allclose(map_scale(values, bounds), np.linspace(1, 7, 13), atol=1e-12)
    assert np.isnan(map_scale([np.nan], (0, 1))).all()
    with pytest.raises(InputError, match=r"2 scores lie outside \[0, 1\], the first is 1.5"):
        map_scale([0.5, 1.5, -1], (0, 1))
    with pytest.raises(InputError, match="lowest, highest"):
        map_scale([0.5], (1, 1))
    data = planted(20)
    data["score"][0, 2, 0, :3] = 1.2  # outside 0-1: invalid, and the items leave the common comparison
    found = judge_designs(data, factors=FACTORS, draws=0)
    assert "3 invalid scores set aside, 3 items left out" in str(found)
    assert (found.data["n_items"] == 17).all()
    with pytest.raises(InputError, match="scale 'odd' has no bounds"):
        judge_designs(data.assign_coords(scale=["1-7", "-3-3", "odd"]), factors=FACTORS, draws=0)
    with pytest.raises(InputError) as reversed_scale:
        judge_designs(data.assign_coords(scale=["1-7", "-3-3", "5-1"]), factors=FACTORS, draws=0)
    assert in_flags(reversed_scale.value, ["--bounds"]).startswith("--bounds 5-1: (5, 1)")
    with pytest.raises(CubeError, match="no human scores"):
        judge_designs(data.drop_vars("gold"), factors=FACTORS, draws=0)


def test_errors_of_every_design_equal_other_programs() -> None:
    import krippendorff

    data = planted(60)
    data["score"][:] = np.round(data["score"], 1)
    found = judge_designs(data, factors=FACTORS, draws=200)
    human = data["gold"].to_numpy()
    pvalues = []
    for detail, scale, model in product(DETAILS, SCALES, MODELS):
        place = {"detail": detail, "scale": scale, "model": model}
        score = map_scale(data["score"].sel(place), BOUNDS[scale])
        gap = score - human
        here = found[place].estimate
        assert float(here.sel(measure="bias")) == pytest.approx(gap.mean(), abs=1e-12)
        assert float(here.sel(measure="mae")) == pytest.approx(np.abs(gap).mean(), abs=1e-12)
        alpha = krippendorff.alpha(np.stack([score, human]), level_of_measurement="interval")
        assert float(here.sel(measure="alpha")) == pytest.approx(alpha, abs=1e-10)
        test = ss.wilcoxon(gap, zero_method="wilcox")
        ranks = ss.rankdata(np.abs(gap))
        assert float(here.sel(measure="rbc")) == pytest.approx((ranks * np.sign(gap)).sum() / ranks.sum(), abs=1e-12)
        assert float(found[place].pvalue) == pytest.approx(test.pvalue, rel=1e-9)
        pvalues.append(test.pvalue)
    qvalue = found.data["qvalue"].transpose("detail", "scale", "model").to_numpy().ravel()
    np.testing.assert_allclose(qvalue, ss.false_discovery_control(pvalues), atol=1e-12)
    one = found["bias"].sel(detail="base", scale="1-7", model="m1")
    # 200 draws: the bootstrap's error is known to 5 %; beyond four of them with probability 6e-5.
    assert float(one.se) == pytest.approx(np.std(data["score"].to_numpy()[0, 0, 0] - human) / np.sqrt(60), rel=0.2)
    assert float(one.lower) < float(one.estimate) < float(one.upper)


def test_alpha_of_scores_is_that_of_class_codes() -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, (30, 2))
    data = xr.Dataset({"score": (("model", "item"), codes[None, :, 0] + 1.0), "gold": ("item", codes[:, 1] + 1.0)})
    found = judge_designs(data, factors=["model"], draws=0)
    expected = coefficient("krippendorff", ratings=codes, metric="interval", n_classes=4).estimate
    assert found["alpha"].estimate.item() == pytest.approx(expected, abs=1e-12)
    flat = judge_designs(data * 0 + 2.0, factors=["model"], draws=0)
    assert str(flat["alpha"].reason.item()) == "the scores do not vary"
    assert flat["rbc"].estimate.item() == 0


def test_paired_tests() -> None:
    from statsmodels.stats.contingency_tables import mcnemar as theirs

    for gained, lost in ((0, 0), (3, 9), (10, 10), (0, 7)):
        assert mcnemar(gained, lost) == pytest.approx(theirs([[5, gained], [lost, 5]], exact=True).pvalue, abs=1e-12)
    assert signed_rank(np.zeros(4)) == (0.0, 1.0)
    assert np.isnan(signed_rank(np.full(3, np.nan))).all()
    # A mapped score is off its equal by rounding: no difference, and no rank of its own.
    human = np.array([1.6, 2.2, 3.1, 3.4, 4.6, 5.2, 5.8, 6.4])
    mapped = map_scale([0.1, 0.2, 0.35, 0.4, 0.6, 0.7, 0.8, 0.9], (0, 1))
    assert (mapped != human).any()
    assert signed_rank(mapped - human) == (0.0, 1.0)
    # Five differences of one size have 32 patterns of signs: no p below 2/32, whatever a normal law says.
    assert signed_rank(np.ones(5)).pvalue == 2 / 32
    rng = np.random.default_rng(6)
    for size in (1, 4, 9):
        few = rng.integers(1, 4, size) * rng.choice([-1.0, 1.0], size)
        ranks = ss.rankdata(np.abs(few))
        sums = [float(ranks @ np.array(signs)) for signs in product((-1, 1), repeat=size)]
        observed = abs(float(ranks @ np.sign(few)))
        expected = np.mean([abs(one) >= observed - 1e-9 for one in sums])
        assert signed_rank(few).pvalue == pytest.approx(expected, abs=1e-12)
    untied = rng.permutation(np.arange(1.0, 31)) * rng.choice([-1, 1], 30)
    assert signed_rank(untied).pvalue == pytest.approx(ss.wilcoxon(untied, method="exact").pvalue, rel=1e-9)
    gap = np.random.default_rng(0).integers(-3, 4, 80).astype(float)
    assert signed_rank(gap).pvalue == pytest.approx(ss.wilcoxon(gap, method="asymptotic").pvalue, abs=1e-12)


# Impact of the choices ------------------------------------------------------------------------------------------------


def test_impacts_equal_all_pairs_by_hand_also_where_designs_are_missing() -> None:
    data = planted(40)
    data["score"][1, 1, 2] = np.nan  # this design does not exist
    found = factor_effects(data, factors=FACTORS, permutations=0)
    errors: dict[tuple[str, ...], tuple[float, float, float]] = {}
    for labels in product(DETAILS, SCALES, MODELS):
        one = data["score"].sel(dict(zip(FACTORS, labels, strict=True))).to_numpy()
        if not np.isnan(one).any():
            x, h = map_scale(one, BOUNDS[labels[1]]), data["gold"].to_numpy()
            pooled = np.concatenate([x, h]).var(ddof=1)
            errors[labels] = (np.mean(x - h), np.abs(x - h).mean(), 1 - np.mean((x - h) ** 2) / (2 * pooled))
    assert len(errors) == 35
    for f, (factor, levels) in enumerate(zip(FACTORS, (DETAILS, SCALES, MODELS), strict=True)):
        pairs = [
            (a, b)
            for a, b in combinations(errors, 2)
            if sum(x != y for x, y in zip(a, b, strict=True)) == 1 and a[f] != b[f]
        ]
        here = found.data["estimate"].sel(factor=factor)
        assert int(found.data["n_pairs"].sel(factor=factor)) == len(pairs)
        bias = [(errors[a][0], errors[b][0]) for a, b in pairs]
        assert float(here.sel(measure="direction")) == pytest.approx(np.mean([x * y < 0 for x, y in bias]))
        assert float(here.sel(measure="size")) == pytest.approx(np.mean([abs(x - y) for x, y in bias]))
        mae = [abs(errors[a][1] - errors[b][1]) for a, b in pairs]
        assert float(here.sel(measure="error")) == pytest.approx(np.mean(mae))
        largest: dict[tuple[str, ...], float] = {}
        for (a, _), move in zip(pairs, mae, strict=True):
            setting = a[:f] + a[f + 1 :]
            largest[setting] = max(largest.get(setting, 0), move)
        change = found.data.sel(factor=factor, change="error")
        assert float(change["average_of_max"]) == pytest.approx(np.mean(list(largest.values())))
        assert float(change["max_of_max"]) == pytest.approx(max(mae))
        moved = []
        for a, b in combinations(levels, 2):

            def at(level: str, setting: tuple[str, ...], f: int = f) -> tuple[str, ...]:
                return (*setting[:f], level, *setting[f:])

            settings = [s for s in {d[:f] + d[f + 1 :] for d in errors} if at(a, s) in errors and at(b, s) in errors]
            ranks = [ss.rankdata([-errors[at(level, s)][2] for s in settings]) for level in (a, b)]
            moved.append(np.abs(ranks[0] - ranks[1]).mean())
        assert float(here.sel(measure="best")) == pytest.approx(np.mean(moved))


def test_relabelling_keeps_items_and_settings_and_is_seen_by_the_errors() -> None:
    data = planted(30)
    grid = make_grid(data, factors=FACTORS, human="gold")
    contrast = contrast_of(grid, 2)
    null = null_errors(grid.values[0], data["gold"].to_numpy(), contrast, permutations=40, rng=np.random.default_rng(0))
    bias = (grid.values[0] - data["gold"].to_numpy()[:, None]).mean(0)
    # The mean over a setting's levels does not move; single designs do, around it.
    np.testing.assert_allclose(null[:, contrast.table, 0].mean(1), np.tile(bias[contrast.table].mean(0), (40, 1)))
    assert null[:, :, 0].std(0).min() > 0.01
    one = null_errors(
        grid.values[0], data["gold"].to_numpy(), contrast_of(grid, 0), permutations=1, rng=np.random.default_rng(1)
    )
    rows = grid.values[0]
    # Errors of unpermuted scores through the same code: levels that cannot be exchanged.
    single = contrast_of(grid.keep([0]), 0)
    kept = null_errors(rows[:, [0]], data["gold"].to_numpy(), single, permutations=1, rng=np.random.default_rng(1))
    gap = rows[:, 0] - data["gold"].to_numpy()
    pooled = np.concatenate([rows[:, 0], data["gold"].to_numpy()]).var(ddof=1)
    np.testing.assert_allclose(kept[0, 0], [gap.mean(), np.abs(gap).mean(), 1 - (gap**2).mean() / (2 * pooled)])
    assert one.shape == (1, 36, 3)


def test_a_planted_factorial_is_recovered() -> None:
    """Known effects: model, detail, and the scale -3-3 on toxicity alone.

    A design's bias has standard error .5/sqrt(200) = .035 within a task, a mean over 36 or more pairs less: .06 is
    beyond 4 standard errors of `size` where the effect is large against noise. A choice without effect has p uniform on
    1/200 .. 1: below .01 in one of a hundred seeds; this seed is fixed. An effect of .1 would be seen (p = .005).
    """
    found = factor_effects(planted(), factors=FACTORS, by="task", permutations=199)
    size = found["size"].estimate
    of_models = np.mean([abs(a - b) for a, b in combinations(MODEL_BIAS, 2)])
    for task in ("sentiment", "toxicity"):
        assert float(size.sel(task=task, factor="model")) == pytest.approx(of_models, abs=0.06)
        assert float(size.sel(task=task, factor="detail")) == pytest.approx(0.2, abs=0.06)
        assert float(found["size"].pvalue.sel(task=task, factor="model")) == 0.005
    assert float(size.sel(task="toxicity", factor="scale")) == pytest.approx(1 / 3, abs=0.06)
    assert float(found["size"].pvalue.sel(task="toxicity", factor="scale")) == 0.005
    nothing = found["size"].sel(task="sentiment", factor="scale")
    assert float(nothing.pvalue) > 0.01
    assert float(nothing.estimate) == pytest.approx(float(nothing.without_effect), abs=0.02)
    assert float(found["direction"].estimate.sel(task="sentiment", factor="scale")) < 0.2
    # The level that drives the scale's impact on toxicity is named, and no level of the scale on sentiment is.
    driven = [row for row in found.tables[3].rows if row[1] == "scale -3-3" and row[2] == "scale"]
    assert [row[0] for row in driven] == ["toxicity"]
    assert float(driven[0][6]) < 0.06  # type: ignore[arg-type]
    with_and_without = judge_designs(planted(), factors=FACTORS, by="task", without={"scale": "-3-3"}, draws=0)
    moved = {(row[0], row[1], row[2]): row[-1] for row in with_and_without.tables[2].rows}
    assert moved["model", "m4", "toxicity"] == "changes"
    assert moved["detail", "base", "sentiment"] == ""
    with pytest.raises(InputError, match="no level"):
        judge_designs(planted(20), factors=FACTORS, without={"scale": "0-9"}, draws=0)


def test_tests_keep_their_level_where_no_choice_matters() -> None:
    """200 data sets without any effect: p below .05 in 1 to 23 of them.

    The chance of a false failure is below 2e-4 (binomial); a test that rejects 15 % of the time is seen with
    probability .9, one that never rejects always.
    """
    rng = np.random.default_rng(11)
    human = np.full(25, 4.0)
    data = xr.Dataset({"score": (("model", "item"), np.ones((3, 25))), "gold": ("item", human)})
    contrast = contrast_of(make_grid(data, factors=["model"], human="gold"), 0)
    low = 0
    for _ in range(200):
        score = rng.normal(4, 1, (25, 3))
        found = impacts(read_errors(error_columns(score, human).sum(0)), contrast)
        null = impacts(null_errors(score, human, contrast, permutations=59, rng=rng), contrast)
        low += (1 + (null[:, 1] >= found[1]).sum()) / 60 <= 0.05
    assert 1 <= low <= 23


# Real data ------------------------------------------------------------------------------------------------------------


def test_hanna_designs_with_failed_judgements_set_aside(data_dir: Path) -> None:
    """5 judges x 4 prompts on coherence, 11 systems x 96 stories, against the mean of three people."""
    csv.field_size_limit(10**8)
    with open(data_dir / "hanna" / "scores.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    judges = ("Beluga-13B", "OrcaPlatypus", "Mistral-7B", "Llama-13B", "ChatGPT")
    score = [[[x for row in rows for x in ast.literal_eval(row[f"{j} CH {p}"])] for p in range(1, 5)] for j in judges]
    human = np.mean([[x for row in rows for x in ast.literal_eval(row[f"Human {k} CH"])] for k in (1, 2, 3)], axis=0)
    data = xr.Dataset({"score": (("judge", "prompt", "item"), np.array(score)), "gold": ("item", human)},
                      coords={"judge": list(judges), "prompt": list("1234")})  # fmt: skip
    asked = {"factors": ["judge", "prompt"], "to": (1, 5)}
    shipped = judge_designs(data, **asked, draws=0)  # type: ignore[arg-type]
    clean = judge_designs(data, **asked, scales=(1, 5), incomplete="available", draws=0)  # type: ignore[arg-type]
    below = (np.array(score) < 1).sum()
    assert below > 0
    assert f"{below} invalid scores set aside" in str(clean)
    for j, judge in enumerate(judges):
        for p in range(4):
            kept = np.array(score[j][p]) >= 1
            here = clean[{"judge": judge, "prompt": str(p + 1)}]
            assert int(here.n_items) == kept.sum()
            gap = np.array(score[j][p])[kept] - human[kept]
            assert float(here.estimate.sel(measure="bias")) == pytest.approx(gap.mean(), abs=1e-12)
    assert float(np.abs(clean["mae"].estimate - shipped["mae"].estimate).max()) > 0.01
    found = factor_effects(data, **asked, scales=(1, 5), permutations=19)  # type: ignore[arg-type]
    size = found["size"].estimate
    assert float(size.sel(factor="judge")) > float(size.sel(factor="prompt")) > 0.05
    sources = dominant_source(data, factors=["judge", "prompt"], scales=(1, 5), to=(1, 5), draws=0)
    share = sources["share"].estimate
    assert float(share.sel(component="judge")) > float(share.sel(component="prompt"))
