"""Judge designs: sources of variance, the dominant one, and every team of an ensemble by hand."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import scipy.stats as ss
import xarray as xr

import secondorder as so
from secondorder.errors import CubeError, InputError
from secondorder.studies import dominant_source, ensembles, map_scale
from secondorder.studies._ensembles import _drawn

from .small_designs import BOUNDS, DETAIL_BIAS, DETAILS, FACTORS, MODEL_BIAS, MODELS, SCALES, planted


def test_sources_of_variance_are_those_of_the_generic_decomposition() -> None:
    rng = np.random.default_rng(3)
    rows = [
        {"q": q, "detail": d, "model": m, "run": r, "score": str(int(np.clip(round(3 + k + rng.normal()), 1, 7)))}
        for q in range(30) for d in DETAILS for k, m in enumerate(("a", "b")) for r in range(3)
    ]  # fmt: skip
    facets = [so.Facet("detail", "random"), so.Facet("model", "random")]
    cube = so.make_cube(rows, item="q", facets=facets, repeat="run", verdict="score", classes=list("1234567"))
    theirs = so.decompose(cube, kernel="interval")
    ours = dominant_source(cube, factors=["detail", "model"], draws=0)
    for name in ("call", "detail", "model", "detail:model", "total"):
        assert float(ours["variance"].estimate.sel(component=name)) == pytest.approx(theirs[name].estimate, abs=1e-10)


def test_call_noise_is_read_from_items_with_repeats_and_no_call_moves_it_into_the_interaction() -> None:
    """By sums over pairs of calls and cells; an item with a single call somewhere still counts for the rest."""
    rng = np.random.default_rng(5)
    score = rng.normal(4, 1, (2, 3, 40, 3))
    score[0, 1, 7, 1:] = np.nan  # one call left in one cell
    score[1, 2, 9, 2] = np.nan  # two calls left
    cube = xr.Dataset({"score": (("model", "detail", "item", "repeat"), score)})
    found = dominant_source(cube, factors=["model", "detail"], draws=0)
    within = [
        [np.nanvar(score[m, d, i], ddof=1) if np.isfinite(score[m, d, i]).sum() > 1 else np.nan
         for m in range(2) for d in range(3)] for i in range(40)
    ]  # fmt: skip
    call = np.nanmean(np.mean(within, axis=1))
    means = np.nanmean(score, axis=-1)
    squares = np.nanmean(score**2, axis=-1)

    def apart(pairs: list[tuple[tuple[int, int], tuple[int, int]]]) -> float:
        return float(np.mean([(squares[a] + squares[b]) / 2 - means[a] * means[b] for a, b in pairs]))

    cells = [(m, d) for m in range(2) for d in range(3)]
    every = [(a, b) for a in cells for b in cells if a != b]
    other = apart([(a, b) for a, b in every if a[0] != b[0] and a[1] != b[1]])
    model = apart([(a, b) for a, b in every if a[0] == b[0]])
    detail = apart([(a, b) for a, b in every if a[1] == b[1]])
    expected = {
        "call": call,
        "model": other - model,
        "detail": other - detail,
        "model:detail": model + detail - other - call,
        "total": other,
    }
    got = found["variance"].estimate
    assert {name: float(got.sel(component=name)) for name in expected} == pytest.approx(expected, abs=1e-12)
    assert found.data["n_items"].to_numpy().tolist() == [40] * 5
    assert found.data["n_repeated"].to_numpy().tolist() == [39] * 5
    assert "all: call noise is read from the 39 of 40 items with two calls in every cell." in found.notes
    once = dominant_source(cube.isel(repeat=[0]), factors=["model", "detail"], draws=0)
    assert "model:detail + call" in str(once)
    score[0, 0, :, 1:] = np.nan  # two calls in all cells but one
    some = dominant_source(cube, factors=["model", "detail"], draws=0)
    said = "no item has two calls in every cell: call noise stands with the interaction of all factors"
    assert some.tables[0].notes == (f"– {said} (call / share)",)
    assert some["variance"].reason.sel(component="call").item() == said


def test_sources_that_have_no_share_are_not_left_out_without_a_word() -> None:
    score = np.random.default_rng(0).normal(4, 1, (12, 2, 3, 2))
    score[:4] = 4.0
    score[4:8, 0] = np.nan
    cube = xr.Dataset(
        {"score": (("item", "model", "detail", "repeat"), score)}, coords={"task": ("item", list("aaaabbbbcccc"))}
    )
    found = dominant_source(cube, factors=["model", "detail"], by="task", draws=0)
    assert {row[0] for row in found.tables[0].rows} == {"c"}
    for task, why in (("a", "the scores do not vary"), ("b", "no item has a score in every design")):
        assert set(found["share"].reason.sel(task=task).to_numpy().tolist()) == {why}
        assert any(note.startswith(f"– {why} ({task} / call / share;") for note in found.tables[0].notes)


def test_planted_variances_are_recovered_and_the_dominant_source_named() -> None:
    """Levels of model have variance .173, of detail .03, noise .25; the last interaction holds the noise (one call)."""
    data = planted(wide=0.0)
    found = dominant_source(data, factors=FACTORS, draws=200)
    variance = found["variance"].estimate
    # Standard errors over 400 items are below .004: beyond 4 of them with probability 6e-5.
    assert float(variance.sel(component="model")) == pytest.approx(MODEL_BIAS.var(ddof=1), abs=0.016)
    assert float(variance.sel(component="detail")) == pytest.approx(DETAIL_BIAS.var(ddof=1), abs=0.016)
    assert float(variance.sel(component="scale")) == pytest.approx(0, abs=0.016)
    assert float(variance.sel(component="detail:scale:model")) == pytest.approx(0.25, abs=0.016)
    assert np.isnan(float(variance.sel(component="call")))
    assert "stands with the interaction" in str(found["variance"].reason.sel(component="call").item())
    share = found["share"].estimate.sel(component=["detail", "scale", "model"])
    assert str(share["component"][int(np.argmax(share.to_numpy()))].item()) == "model"
    assert float(found.data["wide"].sel(component="model")) == pytest.approx(MODEL_BIAS.var(ddof=1), abs=0.016)
    mixed = planted(noise=0.1)  # the scale moves half of the items by .5: partly the same for all
    scale = dominant_source(mixed, factors=FACTORS, draws=0)
    effect = np.array([0, 0.5, 0]).var(ddof=1)
    assert float(scale["variance"].estimate.sel(component="scale")) == pytest.approx(effect / 2, abs=0.004)
    assert float(scale.data["wide"].sel(component="scale")) == pytest.approx(effect / 4, abs=0.004)
    holed = planted(10)
    holed["score"][0, 0, 0] = np.nan
    with pytest.raises(CubeError, match="fully crossed"):
        dominant_source(holed, factors=FACTORS)


def test_ensembles_equal_every_team_by_hand() -> None:
    data = planted(30).isel(scale=[0, 1])
    found = ensembles(data, factors=FACTORS, vary=["model"], sizes=[2, 3])
    bias = {
        labels: float((map_scale(data["score"].sel(dict(zip(FACTORS, labels, strict=True))), BOUNDS[labels[1]])
                       - data["gold"]).mean())
        for labels in product(DETAILS, SCALES[:2], MODELS)
    }  # fmt: skip
    single = np.mean([abs(x) for x in bias.values()])
    for size in (2, 3):
        for strategy in ("fixed", "free"):
            teams = [
                [bias[design] for design in team]
                for team in combinations(bias, size)
                if len({d[2] for d in team}) == size and (strategy == "free" or len({d[:2] for d in team}) == 1)
            ]
            mean = np.mean([abs(np.mean(team)) for team in teams])
            here = found.data.sel(vary="model", strategy=strategy, members=size)
            assert float(here["estimate"].sel(measure="bias")) == pytest.approx(mean)
            assert float(here["estimate"].sel(measure="reduction")) == pytest.approx(1 - mean / single)
            assert int(here["n_ensembles"]) == len(teams)
    drawn = ensembles(data, factors=FACTORS, vary=["model"], sizes=[3], most=500, seed=2)
    here = drawn.data.sel(vary="model", strategy="free", members=3)
    whole = float(found.data["estimate"].sel(vary="model", strategy="free", members=3, measure="bias"))
    # The Monte Carlo error is stated: beyond 4 of it with probability 6e-5.
    assert not bool(here["complete"])
    assert abs(float(here["estimate"].sel(measure="bias")) - whole) < 4 * float(here["mcse"])
    assert "MCSE" in drawn.tables[0].columns
    assert "MCSE" not in found.tables[0].columns
    # A factor of two levels makes no team of three: the table leaves the row out, and a note says so.
    two = ensembles(data, factors=FACTORS, vary=["scale"], sizes=[2, 3])
    assert [row[2] for row in two.tables[0].rows] == [1, 2, 2]
    assert "as many judges as it has levels" in str(two)
    with pytest.raises(InputError, match="most"):
        ensembles(data, factors=FACTORS, most=1)
    with pytest.raises(InputError, match="whole numbers from 2"):
        ensembles(data, factors=FACTORS, sizes=[1])
    with pytest.raises(InputError, match="each once"):
        ensembles(data, factors=FACTORS, sizes=[2, 2])
    with pytest.raises(InputError, match="no factor 'effort'"):
        ensembles(data, factors=FACTORS, vary=["effort"])


def test_drawn_teams_have_equal_chances_whatever_the_pools() -> None:
    pools = [np.array([0]), np.array([1, 2, 3]), np.array([4, 5])]
    every = [team for a, b in combinations(pools, 2) for team in product(a.tolist(), b.tolist())]
    drawn = _drawn(pools, 2, 11_000, np.random.default_rng(0))
    counts = [int((drawn == team).all(1).sum()) for team in every]
    assert sum(counts) == 11_000
    # Chi-square with 10 degrees of freedom: above 35.6 with probability 1e-4.
    assert ss.chisquare(counts).statistic < 35.6
