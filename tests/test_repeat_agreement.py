"""Repeat-aware agreement: unbiased terms by enumeration, real data, and what it needs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import xarray as xr

from secondorder import studies
from secondorder.errors import CubeError, InputError
from secondorder.studies import agreement, repeat_agreement
from secondorder.studies._repeat_aware import _item_terms, _measures, _sums

from .small_cubes import cube_of


def test_repeat_aware_terms_are_unbiased_by_enumeration() -> None:
    # Two items, two prompts, two calls, two classes: all 2^8 outcomes with their probabilities.
    law = np.array([[0.8, 0.3], [0.5, 0.9]])  # P(class 1) by item and prompt
    outcomes = np.array(list(product((0, 1), repeat=8))).reshape(-1, 2, 2, 2)  # (outcome, item, prompt, repeat)
    chance = np.where(outcomes == 1, law[None, :, :, None], 1 - law[None, :, :, None]).prod((1, 2, 3))
    counts = np.stack([(outcomes == c).sum(-1) for c in (0, 1)], axis=-1).astype(float)[:, :, None]
    linear, square = _item_terms(counts, np.eye(2), np.ones(outcomes.shape[:2], bool))
    found = _measures(_sums(np.ones((1, 2)), linear, square), np.eye(2))
    expected = {name: float(chance @ np.nan_to_num(found[name][:, 0])) for name in ("within", "across", "chance")}
    same = law**2 + (1 - law) ** 2
    pair = law[:, 0] * law[:, 1] + (1 - law[:, 0]) * (1 - law[:, 1])
    mean = law.mean(1)
    other = mean[0] * mean[1] + (1 - mean[0]) * (1 - mean[1])
    assert expected["within"] == pytest.approx(same.mean(), abs=1e-14)
    assert expected["across"] == pytest.approx(pair.mean(), abs=1e-14)
    assert expected["chance"] == pytest.approx(other, abs=1e-14)


def test_an_item_drawn_twice_is_not_paired_with_itself() -> None:
    # Against a brute sum over pairs of different drawn items.
    rng = np.random.default_rng(0)
    counts = rng.multinomial(3, [0.5, 0.3, 0.2], size=(1, 6, 1, 2)).astype(float)
    weight = 1 - np.array([[0, 0.5, 1], [0.5, 0, 0.5], [1, 0.5, 0]])
    linear, square = _item_terms(counts, weight, np.ones((1, 6), bool))
    w = np.array([2.0, 0, 1, 0, 3, 0])
    law = (counts / 3).mean((2, 3))[0]
    pairs = [(w[i] * w[j], law[i] @ weight @ law[j]) for i in range(6) for j in range(6) if i != j]
    expected = sum(a * b for a, b in pairs) / sum(a for a, _ in pairs)
    assert float(_measures(_sums(w[None], linear, square), weight)["chance"][0, 0]) == pytest.approx(expected)


def test_repeat_agreement_on_judge_consistency(judge_consistency: xr.Dataset) -> None:
    cube = judge_consistency
    found = repeat_agreement(cube, draws=500)
    within, across = found["within"].estimate, found["across"].estimate
    # The exact answers beside the data: U_call = 1 - within, and U_prompt = (within - across)/2 for two prompts.
    for judge, call, wording in (("gpt-4o-mini", 0.21132, 0.02772), ("gpt-4.1-mini", 0.28684, 0.08808)):
        assert 1 - float(within.sel(judge=judge)) == pytest.approx(call, abs=5e-6)
        assert float((within - across).sel(judge=judge)) / 2 == pytest.approx(wording, abs=5e-6)
    chance = found["chance"].estimate
    kappas = {"within": 1 - (1 - within) / (1 - chance), "across": 1 - (1 - across) / (1 - chance)}
    expected = {
        "noise_share": (1 - within) / (1 - across),
        "jss_difference": within - across,
        "jss_ratio": across / within,
        "kappa_within": kappas["within"],
        "kappa_across": kappas["across"],
        "degradation": kappas["within"] - kappas["across"],
        "deflation_within": within - kappas["within"],
        "deflation_across": across - kappas["across"],
    }
    assert {*expected, "within", "across", "chance"} == set(found.data["measure"].to_numpy().tolist())
    for name, right in expected.items():
        np.testing.assert_allclose(found[name].estimate, right, atol=1e-12, err_msg=name)
    assert (found.data["lower"] < found.data["estimate"]).all()
    assert (found.data["estimate"] < found.data["upper"]).all()
    # Overlap of prompts at equal repeats estimates the same agreement, from fewer pairs.
    plain = agreement(cube, draws=0, coefficients=["overlap"])["overlap"].estimate
    assert float(abs(plain - across).max()) < 0.02
    # Six repeats hold less: the same estimand.
    fewer = repeat_agreement(cube.isel(repeat=slice(6)), draws=0)
    assert float(abs(fewer["across"].estimate - across).max()) < 0.1


def test_repeat_agreement_needs_repeats_and_complete_cells() -> None:
    verdict = np.random.default_rng(0).integers(0, 2, (6, 2, 3))
    single = repeat_agreement(cube_of(verdict[..., :1], ("item", "prompt", "repeat"), ["a", "b"]), draws=20)
    assert "R >= 2" in single["within"].reason.item()
    assert not np.isnan(float(single["across"].estimate))
    verdict[2, 1, :2] = -1
    cube = cube_of(verdict, ("item", "prompt", "repeat"), ["a", "b"], item=list("uvwxyz"))
    with pytest.raises(CubeError, match="item w, prompt 1"):
        repeat_agreement(cube)
    dropped = repeat_agreement(cube, incomplete="drop-item", draws=0)
    assert int(dropped.data["n_items"]) == 5
    assert int(dropped.data["n_dropped"]) == 1
    rest = repeat_agreement(cube.isel(item=[0, 1, 3, 4, 5]), draws=0)
    np.testing.assert_allclose(dropped.data["estimate"], rest.data["estimate"], atol=1e-12)
    with pytest.raises(CubeError, match="one level"):
        repeat_agreement(cube.isel(prompt=[0]))


def test_interval_kappa_within_is_the_intraclass_correlation() -> None:
    # One prompt's calls as one-way ANOVA: 1 - MSW / E(pair difference across items) with distinct-item pairs equals
    # ICC(1) = (MSB - MSW) / (MSB + (R - 1) MSW) where every wording has the same calls.
    scores = np.random.default_rng(4).integers(1, 6, (20, 3))
    cube = cube_of(np.repeat(scores[:, None] - 1, 2, 1), ("item", "prompt", "repeat"), list("12345"))
    found = float(repeat_agreement(cube, weights="interval", draws=0)["kappa_within"].estimate)
    between = 3 * scores.mean(1).var(ddof=1)
    inside = scores.var(1, ddof=1).mean()
    assert found == pytest.approx((between - inside) / (between + 2 * inside), abs=1e-12)


def test_degradation_ratio_is_that_of_the_two_losses_inside_its_band() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, (200, 1, 1))

    def judged(noise: float, shift: float) -> xr.Dataset:
        flip = rng.random((200, 2, 4)) < noise + shift * np.array([0, 1])[None, :, None]
        return cube_of(np.where(flip, 1 - truth, truth), ("item", "prompt", "repeat"), ["a", "b"])

    judge, human = (repeat_agreement(judged(0.05, s), draws=400) for s in (0.35, 0.2))
    found = studies.degradation_ratio(judge, human)
    direct = float(judge["degradation"].estimate / human["degradation"].estimate)
    assert float(found["ratio"].estimate) == pytest.approx(direct)
    assert float(found["ratio"].lower) < direct < float(found["ratio"].upper)
    with pytest.raises(InputError, match="repeat_agreement"):
        studies.degradation_ratio(judge, agreement(judged(0.1, 0.1)))


@pytest.mark.parametrize(("none", "bounded"), [(5, True), (9, True), (10, False), (40, False)])
def test_draws_in_which_people_lose_nothing_lie_beyond_every_number(none: int, bounded: bool) -> None:
    """Of 400 draws the upper bound stands between the 390th and the 391st of the ordered ones: ten are out of reach."""
    cube = cube_of([[[0, 1], [1, 1]], [[0, 0], [1, 0]], [[1, 1], [1, 1]]], ("item", "prompt", "repeat"), ["a", "b"])
    one = repeat_agreement(cube, draws=400)
    assert one.draws is not None
    rng = np.random.default_rng(0)
    top, bottom = rng.uniform(0.1, 0.3, 400), rng.uniform(0.05, 0.2, 400)
    lossless = rng.permutation(400)[:none]
    bottom[lossless] = np.linspace(-0.1, 0.0, none)
    judge, human = (
        replace(one, data=one.data.copy(deep=True), draws=one.draws.copy(deep=True)) for _ in ("judge", "human")
    )
    for result, point, drawn in ((judge, 0.2, top), (human, 0.1, bottom)):
        assert result.draws is not None
        result.data["estimate"].loc[{"measure": "degradation"}] = point
        result.draws.loc[{"measure": "degradation"}] = drawn
    ratio = studies.degradation_ratio(judge, human)["ratio"]
    assert float(ratio.estimate) == pytest.approx(2.0)
    assert int(ratio.undefined_draws) == none
    ranked = np.sort(np.delete(top, lossless) / np.delete(bottom, lossless))  # the others stand behind them
    if bounded:
        ends = [np.interp(share * 399, np.arange(len(ranked)), ranked) for share in (0.025, 0.975)]
        assert [float(ratio.lower), float(ratio.upper)] == pytest.approx(ends, rel=1e-12)
        assert float(ratio.upper) > np.quantile(ranked, 0.975)
        assert not ratio.reason.item()
    else:
        assert np.isnan([float(ratio.lower), float(ratio.upper), float(ratio.se)]).all()
        assert "no upper bound" in ratio.reason.item()


def test_one_item_has_agreement_but_no_chance_scale() -> None:
    found = repeat_agreement(cube_of([[[0, 1], [1, 1]]], ("item", "prompt", "repeat"), ["a", "b"]), draws=0)
    assert float(found["across"].estimate) == 0.5
    assert {str(found[name].reason.item()) for name in ("chance", "kappa_within", "degradation")} == {
        "fewer than two items"
    }
