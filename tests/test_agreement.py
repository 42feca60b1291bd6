"""Agreement, repeat-aware agreement, position and verbosity bias: exact answers, other programs, laws, real data."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import secondorder as so
from secondorder import studies
from secondorder.errors import CubeError, InputError, KernelError, TableError
from secondorder.studies import COEFFICIENTS, agreement, coefficient, position_bias, repeat_agreement
from secondorder.studies._bands import NO_SPREAD, band, item_draws, resampled_sums
from secondorder.studies._repeat_aware import _item_terms, _measures, _sums

NAN = float("nan")
DATA_C = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)
"""Krippendorff's data C: 4 observers x 12 units."""
CODES_C = np.where(np.isnan(DATA_C), -1, DATA_C - 1).astype(int).T
PARADOX = [[0, 0]] * 90 + [[0, 1]] * 5 + [[1, 0]] * 4 + [[1, 1]]
FIVE = [[0, 0], [0, 1], [0, 0], [1, 1], [0, 0]]


def value(name: str, **given: object) -> float:
    return coefficient(name, **given).estimate  # type: ignore[arg-type]


def cube_of(verdict: object, dims: tuple[str, ...], classes: list[str], **coords: object) -> xr.Dataset:
    return xr.Dataset({"verdict": (dims, np.asarray(verdict))}, coords={"class": classes, **coords})


# Published answers and other programs ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "published"),
    [("nominal", 0.743421), ("ordinal", 0.815388), ("interval", 0.849107), ("ratio", 0.797403)],
)
def test_krippendorff_data_c(metric: str, published: float) -> None:
    import krippendorff

    found = value("krippendorff", ratings=CODES_C, metric=metric, scores=[1, 2, 3, 4, 5])
    assert found == pytest.approx(published, abs=5e-7)
    assert found == pytest.approx(krippendorff.alpha(DATA_C, level_of_measurement=metric), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("metric", ["nominal", "ordinal", "interval", "ratio"])
def test_alpha_equals_the_krippendorff_package_with_missing_ratings(seed: int, metric: str) -> None:
    import krippendorff

    rng = np.random.default_rng(seed)
    codes = np.where(rng.random((30, 5)) < 0.25, -1, rng.integers(0, 4, (30, 5)))
    table = np.where(codes < 0, np.nan, codes + 1.0).T
    theirs = krippendorff.alpha(table, level_of_measurement=metric)
    assert value("krippendorff", ratings=codes, metric=metric, scores=[1, 2, 3, 4]) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("ours", "theirs"), [("nominal", None), ("linear", "linear"), ("quadratic", "quadratic")])
def test_cohen_equals_scikit_learn(seed: int, ours: str, theirs: str | None) -> None:
    from sklearn.metrics import cohen_kappa_score

    codes = np.random.default_rng(seed).integers(0, 4, (60, 2))
    expected = cohen_kappa_score(codes[:, 0], codes[:, 1], weights=theirs)
    assert value("cohen", ratings=codes, weights=ours) == pytest.approx(expected, abs=1e-12)


def test_fleiss_and_weighted_cohen_equal_statsmodels() -> None:
    from statsmodels.stats.inter_rater import cohens_kappa, fleiss_kappa

    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, (40, 6))
    counts = np.stack([(codes == c).sum(1) for c in range(3)], axis=1)
    assert value("fleiss", ratings=codes) == pytest.approx(fleiss_kappa(counts), abs=1e-12)
    assert value("fleiss", counts=counts) == pytest.approx(fleiss_kappa(counts), abs=1e-12)
    table = np.zeros((3, 3))
    np.add.at(table, (codes[:, 0], codes[:, 1]), 1)
    weights = np.array([[0.0, 1, 4], [1, 0, 1], [4, 1, 0]])
    expected = cohens_kappa(table, weights=weights, return_results=False)
    assert value("cohen", ratings=codes[:, :2], weights=weights) == pytest.approx(expected, abs=1e-12)


# irrCAC 0.4.4 (Python 3.11, numpy 1.26.4, pandas 2.3.3), CAC(df, weights=w, digits=10), computed 2026-11-30. It has no
# Krippendorff ordinal metric: its "ordinal" weights are combinatorial, another thing, and are left out here.
IRRCAC = {
    "nominal": {"gwet": 0.7754440681, "fleiss": 0.7611692754, "krippendorff": 0.7434210526},
    "linear": {"gwet": 0.8587391364, "fleiss": 0.8179447671, "krippendorff": 0.8003838772},
    "quadratic": {"gwet": 0.9140007236, "fleiss": 0.8649350649, "krippendorff": 0.8491071429},
    "ratio": {"gwet": 0.8573675578, "fleiss": 0.8213383439, "krippendorff": 0.7974027747},
}


@pytest.mark.parametrize("weights", list(IRRCAC))
def test_recorded_irrcac_values_with_missing_ratings_and_weights(weights: str) -> None:
    for name, recorded in IRRCAC[weights].items():
        found = value(name, ratings=CODES_C, weights=weights, metric=weights, scores=[1, 2, 3, 4, 5])
        assert found == pytest.approx(recorded, abs=5e-11), name
    assert value("overlap", ratings=CODES_C) == pytest.approx(0.8181818182, abs=5e-11)


def test_cases_of_published_faults() -> None:
    assert np.isnan(value("cohen", ratings=[[0, 0], [0, 0]]))
    assert value("overlap", ratings=[[0, 0], [0, 0]]) == 1
    undefined = coefficient("fleiss", counts=[[7, 0], [7, 0]])
    assert np.isnan(undefined.estimate)
    assert "only one class" in undefined.reason
    assert value("overlap", counts=[[7, 0], [7, 0]]) == 1
    gaps = np.array([[1, 1, 2], [1, 1, 0], [0, 1, 2]]).T - 1  # case 4: 0 stands for a missing call
    assert value("krippendorff", ratings=gaps) == pytest.approx(1)
    assert value("fleiss", counts=[[1, 1, 1], [1, 1, 1]]) == pytest.approx(-0.5)
    assert np.isnan(value("fleiss", ratings=[[1, 1, 1], [1, 1, 1]]))
    for name, right in (("krippendorff", 0.57143), ("fleiss", 0.52381), ("gwet", 0.65517)):
        assert value(name, ratings=FIVE) == pytest.approx(right, abs=5e-6)
    for name, right in (("overlap", 0.91), ("cohen", 0.1346), ("gwet", 0.8996)):
        assert value(name, ratings=PARADOX) == pytest.approx(right, abs=5e-5)


@pytest.mark.parametrize(
    ("ratings", "reason"),
    [
        ([[0], [1], [0]], "one rater"),
        ([[0, -1], [-1, 1], [0, -1]], "no item has two ratings"),
        ([[1, 1], [1, -1], [-1, 1]], "only one class"),
    ],
)
def test_undefined_is_nan_with_its_reason(ratings: list[list[int]], reason: str) -> None:
    for name in COEFFICIENTS:
        found = coefficient(name, ratings=ratings)
        # Overlap is observed agreement alone and has a value wherever there is a pair; AC1 expects disagreement
        # even of raters who use one of two declared classes (its chance term is 0 there).
        if reason == "only one class" and name in ("overlap", "gwet"):
            assert found.estimate == 1
        else:
            assert np.isnan(found.estimate), name
            assert reason in found.reason, name
    assert "fewer than two classes" in coefficient("gwet", ratings=[[0, 0]], n_classes=1).reason


def test_a_bare_or_double_array_is_refused() -> None:
    with pytest.raises(TypeError):
        coefficient("fleiss", [[1, 1, 1], [1, 1, 1]])  # type: ignore[misc]
    for given in ({}, {"ratings": FIVE, "counts": FIVE}):
        with pytest.raises(TableError, match="exactly one of ratings= and counts="):
            coefficient("fleiss", **given)  # type: ignore[arg-type]
    with pytest.raises(TableError, match="who gave which rating"):
        coefficient("cohen", counts=[[1, 1]])
    with pytest.raises(TableError, match="only -1 means missing"):
        coefficient("fleiss", ratings=[[0, -2]])
    with pytest.raises(TableError, match="not a table of counts"):
        coefficient("fleiss", counts=[[0.5, 1]])
    with pytest.raises(CubeError, match="named dimensions"):
        agreement(np.array(FIVE))  # type: ignore[arg-type]


def test_coefficients_do_not_depend_on_the_order_of_items_raters_or_class_names() -> None:
    rng = np.random.default_rng(0)
    codes = np.where(rng.random((25, 4)) < 0.1, -1, rng.integers(0, 3, (25, 4)))
    shuffled = codes[rng.permutation(25)][:, rng.permutation(4)]
    renamed = np.where(shuffled < 0, -1, np.array([2, 0, 1])[shuffled])
    for name in COEFFICIENTS:
        assert value(name, ratings=renamed, n_classes=3) == pytest.approx(value(name, ratings=codes), abs=1e-12)


def test_two_raters_scott_is_fleiss_and_alpha_corrects_for_the_sample_size() -> None:
    codes = np.random.default_rng(1).integers(0, 3, (50, 2))
    pi = value("scott", ratings=codes)
    assert pi == pytest.approx(value("fleiss", ratings=codes), abs=1e-12)
    assert value("krippendorff", ratings=codes) == pytest.approx(pi + (1 - pi) / 100, abs=1e-12)


# Draws and bands ------------------------------------------------------------------------------------------------------


def test_item_draws_keep_the_sizes_of_strata_and_repeat_with_the_seed() -> None:
    strata = np.array([0, 0, 0, 1, 1, 2])
    first, again = (np.concatenate(list(item_draws(6, draws=50, seed=3, strata=strata))) for _ in range(2))
    assert (first == again).all()
    for label, size in ((0, 3), (1, 2), (2, 1)):
        assert (first[:, strata == label].sum(1) == size).all()


@pytest.mark.parametrize("merged", [True, False])
def test_resampled_sums_have_the_bootstrap_mean_and_variance(merged: bool) -> None:
    # 20 000 draws of 32 items: the mean of sums is N m, the variance N s^2. Limits of 5 standard errors: the mean fails
    # falsely with 6e-7, the variance (near normal sums) likewise; a fault of 5 % of the variance is 5 errors.
    rng = np.random.default_rng(0)
    column = np.repeat([0.0, 1.0, 3.0], [16, 12, 4]) if merged else rng.normal(size=32)
    sums = resampled_sums(column[:, None], draws=20_000, seed=1)[:, 0]
    n, variance = len(column), 32 * column.var()
    assert abs(sums.mean() - n * column.mean()) < 5 * np.sqrt(variance / 20_000)
    assert abs(sums.var() / variance - 1) < 5 * np.sqrt(2 / 20_000)


def test_undefined_draws_are_counted_and_left_out_of_the_band() -> None:
    # One item of 12 disagrees or is of the other class: a draw without it has one class, P = (11/12)^12 = .352.
    verdict = [[0, 0]] * 11 + [[1, 1]]
    found = agreement(cube_of(verdict, ("item", "prompt"), ["a", "b"]), draws=4000, coefficients=["krippendorff"])
    lost = int(found["krippendorff"].undefined_draws)
    # 5 standard deviations of a binomial count: false alarm 6e-7.
    expected = 4000 * (11 / 12) ** 12
    assert abs(lost - expected) < 5 * np.sqrt(expected * (1 - (11 / 12) ** 12))
    assert "draws lost" in str(found)
    constant = agreement(cube_of([[0, 0]] * 5, ("item", "prompt"), ["a", "b"]), draws=100)
    assert int(constant["krippendorff"].undefined_draws) == 100
    assert constant["overlap"].reason.item() == NO_SPREAD
    assert np.isnan(constant["overlap"].lower)
    assert band(np.array([NAN, 1.0]), level=0.95).reason == "fewer than two draws have a value"


def test_another_judge_changes_no_coefficient_of_this_one() -> None:
    """The chance agreement of AC counts classes: an invalid verdict of one judge is no class of the other's."""
    rng = np.random.default_rng(2)
    verdict = rng.integers(0, 2, (2, 30, 3))
    verdict[1, 0, 0] = 2
    cube = cube_of(verdict, ("judge", "item", "prompt"), ["a", "b", "⊥"], judge=["x", "y"])
    both = agreement(cube, weights="linear", draws=0).data["estimate"]
    for judge in ("x", "y"):
        alone = agreement(cube.sel(judge=[judge]), weights="linear", draws=0).data["estimate"]
        np.testing.assert_allclose(both.sel(judge=judge), alone.sel(judge=judge), atol=1e-12)


def test_one_item_has_agreement_but_no_chance_scale() -> None:
    found = repeat_agreement(cube_of([[[0, 1], [1, 1]]], ("item", "prompt", "repeat"), ["a", "b"]), draws=0)
    assert float(found["across"].estimate) == 0.5
    assert {str(found[name].reason.item()) for name in ("chance", "kappa_within", "degradation")} == {
        "fewer than two items"
    }


def test_equal_groups_share_their_draws() -> None:
    one = np.random.default_rng(0).integers(0, 2, (20, 3))
    found = agreement(cube_of([one, one], ("judge", "item", "prompt"), ["a", "b"], judge=["x", "y"]), draws=300)
    table = studies.differences(found, "judge")
    assert all(row[3] == 0 and np.isnan(row[4]) for row in table.rows)
    assert float(abs(found.draws.sel(judge="x") - found.draws.sel(judge="y")).max()) < 1e-12  # type: ignore[union-attr]
    with pytest.raises(InputError, match="no grouping"):
        studies.differences(found, "prompt")


def test_repeats_of_an_item_are_not_further_items() -> None:
    # Case 9: copying every verdict three times changes neither a value nor a band, and a judge that always says A has
    # overlap 1 and no kappa.
    one = np.random.default_rng(2).integers(0, 3, (12, 2))
    classes = ["a", "b", "c"]
    single = agreement(cube_of(one, ("item", "prompt"), classes), draws=400, coefficients=["overlap", "cohen"])
    tripled = agreement(
        cube_of(np.repeat(one[..., None], 3, -1), ("item", "prompt", "repeat"), classes),
        draws=400,
        coefficients=["overlap", "cohen"],
    )
    for name in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(single.data[name], tripled.data[name], atol=1e-12)
    assert int(tripled.data["n_items"]) == 12
    same = agreement(cube_of(np.zeros((5, 2, 3), int), ("item", "prompt", "repeat"), ["A", "B"]), draws=50)
    assert float(same["overlap"].estimate) == 1
    assert np.isnan(float(same["cohen"].estimate))
    assert np.isnan(float(same["deflation"].estimate))


# The labelled layer ---------------------------------------------------------------------------------------------------


def test_labelled_values_are_the_array_values_for_every_group() -> None:
    rng = np.random.default_rng(3)
    verdict = np.where(rng.random((2, 30, 4)) < 0.1, -1, rng.integers(0, 3, (2, 30, 4)))
    task = np.array(["qa", "sum"])[np.arange(30) % 2]
    cube = cube_of(verdict, ("judge", "item", "prompt"), ["a", "b", "c", "⊥"], judge=["j", "k"], task=("item", task))
    found = agreement(cube, by=["task", "judge"], draws=50, metric="nominal")
    for t, j in product(("qa", "sum"), (0, 1)):
        here = found.data.sel(task=t, judge="jk"[j])
        for name in COEFFICIENTS:
            right = value(name, ratings=verdict[j][task == t], n_classes=3)
            assert float(here.estimate.sel(measure=name)) == pytest.approx(right, abs=1e-12)
        assert int(here.n_missing) == (verdict[j][task == t] < 0).sum()
    assert found.data["pairwise"].dims == ("task", "judge", "rater", "other")
    pair = found.data["pairwise"].sel(task="qa", judge="j", rater="0", other="2")
    assert float(pair) == pytest.approx(value("cohen", ratings=verdict[0][task == "qa"][:, [0, 2]], n_classes=3))


def test_invalid_is_a_class_and_missing_is_not() -> None:
    verdict = [[0, 0], [2, 2], [1, -1], [0, 2], [1, 1]]
    cube = cube_of(verdict, ("item", "prompt"), ["a", "b", "⊥"])
    as_class = agreement(cube, draws=0, coefficients=["overlap", "gwet"])
    aside = agreement(cube, draws=0, coefficients=["overlap", "gwet"], invalid="missing")
    assert float(as_class["overlap"].estimate) == 3 / 4
    assert float(aside["overlap"].estimate) == 1
    assert int(as_class.data["n_invalid"]) == int(aside.data["n_invalid"]) == 3
    assert int(aside.data["n_pairable"]) == 2
    with pytest.raises(KernelError, match="no place on a scale"):
        agreement(cube, draws=0, metric="ordinal")
    with pytest.raises(KernelError, match="has no score"):
        agreement(cube, draws=0, metric="interval", invalid="missing")
    unused = cube_of([[0, 1], [1, 1]], ("item", "prompt"), ["a", "b", "⊥"])  # ⊥ declared but absent: no class of AC1
    assert float(agreement(unused, draws=0)["gwet"].estimate) == pytest.approx(
        value("gwet", ratings=[[0, 1], [1, 1]]), abs=1e-12
    )


def test_ratings_with_named_dimensions() -> None:
    people = xr.DataArray(DATA_C, dims=("annotator", "item"))
    found = agreement(people, raters="annotator", metric="ordinal", draws=100)
    assert float(found["krippendorff"].estimate) == pytest.approx(0.815388, abs=5e-7)
    assert float(found["cohen"].estimate) == pytest.approx(value("cohen", ratings=CODES_C, weights="linear"), abs=1e-12)
    words = xr.DataArray(np.array([["yes", ""], ["no", None], ["maybe", "no"]], dtype=object), dims=("item", "rater"))
    made = studies.make_ratings(words, classes=["no", "yes"])
    assert made["verdict"].to_numpy().tolist() == [[1, -1], [0, -1], [2, 0]]
    with pytest.raises(CubeError, match="name the item dimension"):
        agreement(xr.DataArray([[1]], dims=("unit", "rater")), raters="rater")


def test_shuffling_the_rows_of_a_table_changes_no_digit() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {
            "judge": judge,
            "bench": bench,
            "item": f"q{item}",
            "prompt": f"p{prompt}",
            "run": run,
            "v": str(rng.integers(3)),
        }
        for judge in ("m", "n")
        for bench in ("u", "v")
        for item in range(12)
        for prompt in range(2)
        for run in range(2)
    ]
    given = {"item": "item", "facets": ["prompt"], "repeat": "run", "verdict": "v", "by": ["judge", "bench"]}
    straight = so.make_cube(rows, **given)
    shuffled = so.make_cube([rows[i] for i in rng.permutation(len(rows))], **given)
    for study in (agreement, repeat_agreement):
        first, second = study(straight, draws=50), study(shuffled, draws=50)
        xr.testing.assert_identical(first.data, second.data)
        xr.testing.assert_identical(first.draws, second.draws)
        assert first.data["judge:bench"].to_numpy().tolist() == ["m:u", "m:v", "n:u", "n:v"]


def test_a_result_prints_and_saves_and_makes_a_section(tmp_path: Path) -> None:
    verdict = np.random.default_rng(0).integers(0, 3, (2, 15, 3))
    cube = cube_of(verdict, ("judge", "item", "prompt"), ["1", "2", "⊥"], judge=["a", "b"])
    found = agreement(cube, draws=50)
    assert max(len(line) for line in str(found).splitlines()[:20]) <= 80
    found.to_dataset().to_netcdf(tmp_path / "agreement.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "agreement.nc", engine="h5netcdf") as again:
        np.testing.assert_array_equal(again["estimate"], found.data["estimate"])
    pairs = found.tables[1]
    assert pairs.rows[0] == ("a", "0", *found.data["pairwise"].sel(judge="a").to_numpy()[0, 1:])
    assert pairs.rows[1][2] is None
    assert "percentiles of 50 draws of whole items" in str(found)
    assert "Bands:" not in str(agreement(cube, draws=0))
    section = found.section()
    assert section.tables[-1].notes[-1].startswith("Bands: 95 %")
    assert section.figures[0].svg.startswith("<svg")
    assert found.figures[0]._repr_svg_().startswith("<svg")  # what a notebook shows
    assert "</svg>" in section.figures[0].svg
    assert section.figures[0].svg == found.section().figures[0].svg
    assert len(found.to_frame()) == 2 * 7


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"raters": "wording"}, "no dimension of its own"),
        ({"by": "task"}, "cannot group by 'task'"),
        ({"by": ["judge", "judge"]}, "cannot group by 'judge'"),
        ({"coefficients": ["kappa"]}, "unknown coefficient"),
        ({"coefficients": []}, "no coefficient"),
        ({"metric": "euclid"}, "unknown weights"),
        ({"weights": np.ones((2, 2))}, "kernel"),
        ({"level": 1.0}, "between 0 and 1"),
        ({"draws": -1}, "draws: -1 is not a whole number"),
        ({"draws": 10**11}, "from 0 to 1,000,000"),
        ({"invalid": "drop"}, "say 'class' or 'missing'"),
    ],
)
def test_bad_arguments_are_refused_with_place_and_remedy(given: dict[str, object], words: str) -> None:
    cube = cube_of(np.zeros((1, 3, 2), int), ("judge", "item", "prompt"), ["a", "b"])
    with pytest.raises(InputError, match=words):
        agreement(cube, **given)  # type: ignore[arg-type]


# Repeat-aware agreement -----------------------------------------------------------------------------------------------


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


def test_repeat_agreement_on_judge_consistency(data_dir: Path) -> None:
    cube = so.read_table(
        data_dir / "judge_consistency" / "calls.csv",
        item="item",
        facets=["prompt"],
        repeat="repeat",
        verdict="verdict",
        classes=["A", "B", "tie"],
        invalid=[""],
        by="judge",
    )
    found = repeat_agreement(cube, draws=500)
    within, across = found["within"].estimate, found["across"].estimate
    # The exact answers beside the data: U_call = 1 - within, and U_prompt = (within - across)/2 for two prompts.
    for judge, call, wording in (("gpt-4o-mini", 0.21132, 0.02772), ("gpt-4.1-mini", 0.28684, 0.08808)):
        assert 1 - float(within.sel(judge=judge)) == pytest.approx(call, abs=5e-6)
        assert float((within - across).sel(judge=judge)) / 2 == pytest.approx(wording, abs=5e-6)
    share = found["noise_share"].estimate
    np.testing.assert_allclose(share, (1 - within) / (1 - across), atol=1e-12)
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


def test_degradation_ratio_pairs_draws_and_refuses_a_band_without_a_bound() -> None:
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
    vague = studies.degradation_ratio(judge, repeat_agreement(judged(0.3, 0.02), draws=400, seed=1))
    assert np.isnan(float(vague["ratio"].upper))
    assert vague["ratio"].reason.item()
    with pytest.raises(InputError, match="repeat_agreement"):
        studies.degradation_ratio(judge, agreement(judged(0.1, 0.1)))


# Position and length --------------------------------------------------------------------------------------------------


def test_position_bias_of_nine_judges(data_dir: Path) -> None:
    path = data_dir / "position_bias" / "repeats.csv.gz"
    cube = so.read_table(
        path,
        item=["question", "opponent"],
        facets=["order"],
        repeat="rep",
        verdict="verdict",
        classes=["ref", "other", "tie"],
        invalid=["invalid"],
        by="judge",
        where="bench=MTBench",
    )
    rows = pd.read_csv(path).query("bench == 'MTBench'")
    found = position_bias(cube, draws=500)
    # Swap minus same-order inconsistency is twice the order component of two equal orders (exact answers of the data).
    order = {"gpt-4-0613": 0.03212, "gpt-4-0125-preview": 0.01071, "claude-3-haiku-20240307": 0.06655}
    for judge, component in {**order, "claude-3-sonnet-20240229": 0.07002}.items():
        assert float(found["swap_excess"].estimate.sel(judge=judge)) / 2 == pytest.approx(component, abs=5e-6)
    call = found["call_inconsistency"].estimate.sel(judge="gpt-4-0613")
    assert float(call) == pytest.approx(0.06424, abs=5e-6)
    # The slot that was named, straight from what the judges said (no ties; orders are balanced).
    named = rows[rows["displayed"].isin(["A", "B"]) & rows["verdict"].isin(["ref", "other"])]
    first = named.assign(first=named["displayed"] == "A").groupby("judge")["first"].sum() / (96 * 2 * 3)
    for judge, share in first.items():
        assert float(found["first_slot"].estimate.sel(judge=judge)) == pytest.approx(share, abs=1e-12)
    assert (found.data["lower"].sel(measure="preference") < found["preference"].estimate).all()
    assert set(found.data["n_swapped"].to_numpy()) == {96}


def test_a_missing_order_neither_erases_the_other_nor_vanishes() -> None:
    cube = cube_of([[0, 1], [0, -1], [1, 1]], ("item", "order"), ["1", "2", "tie"], order=["AB", "BA"])
    found = position_bias(cube, draws=0)
    assert int(found.data["n_items"]) == 3
    assert int(found.data["n_swapped"]) == 2
    assert int(found.data["n_missing"]) == 1
    assert float(found["first_slot"].estimate) == pytest.approx((2 / 3 + 2 / 2) / 2)
    assert float(found["swap_inconsistency"].estimate) == pytest.approx(1 / 2)
    assert "R >= 2" in found["call_inconsistency"].reason.item()


def test_position_bias_needs_to_know_who_stands_first() -> None:
    cube = cube_of([[0, 1]], ("item", "order"), ["x", "y"], order=["xy", "yx"])
    with pytest.raises(CubeError, match="who stands first"):
        position_bias(cube)
    swapped = position_bias(cube, first={"xy": "y", "yx": "x"}, draws=0)
    assert float(swapped["preference"].estimate) == -1
    with pytest.raises(CubeError, match="two different classes"):
        position_bias(cube, first={"xy": "y", "yx": "y"})
    with pytest.raises(CubeError, match="exactly two"):
        position_bias(cube.isel(order=[0]))


def test_verbosity_slope_is_least_squares_and_holds_controls_fixed() -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(1)
    length, quality = rng.normal(0, 80, 200), rng.normal(size=200)
    y = 3 + 0.004 * length + 0.5 * quality + rng.normal(0, 0.3, 200)
    data = xr.Dataset({"score": ("item", y)}, coords={"words": ("item", length), "quality": ("item", quality)})
    found = studies.verbosity_bias(data, length="words", controls=["quality"], draws=500)
    model = sm.OLS(y, sm.add_constant(np.stack([length, quality], axis=1))).fit()
    assert float(found["slope"].estimate) == pytest.approx(model.params[1], abs=1e-12)
    # The item bootstrap's error is the heteroscedasticity-robust one up to Monte Carlo error (3 % at 500 draws).
    assert float(found["slope"].se) == pytest.approx(model.get_robustcov_results("HC0").bse[1], rel=0.16)
    alone = studies.verbosity_bias(data, length=dict(zip(map(str, range(200)), length, strict=True)), draws=0)
    slope, at_zero = np.polyfit(length, y, 1)
    assert float(alone["slope"].estimate) == pytest.approx(slope, abs=1e-12)
    assert float(alone["at_equal"].estimate) == pytest.approx(at_zero, abs=1e-12)
    flat = data.assign_coords(words=("item", np.ones(200)))
    assert "does not vary" in studies.verbosity_bias(flat, length="words", draws=10)["slope"].reason.item()
    with pytest.raises(CubeError, match="no number for 200 items"):
        studies.verbosity_bias(data, length={})
    with pytest.raises(CubeError, match="no numeric coordinate"):
        studies.verbosity_bias(data, length="chars")


# Rank-biserial --------------------------------------------------------------------------------------------------------


def test_rank_biserial_declares_its_zero_rule() -> None:
    from scipy.stats import wilcoxon

    case = [-1, *[0] * 9, 1, 2]
    assert studies.rank_biserial(case, zeros="drop").estimate == 0.5
    assert studies.rank_biserial(case, zeros="pratt").estimate == pytest.approx(0.3636, abs=5e-5)
    differences = np.random.default_rng(0).integers(-3, 4, 60)
    for zeros, theirs in (("drop", "wilcox"), ("pratt", "pratt")):
        above = wilcoxon(differences, zero_method=theirs, alternative="greater").statistic
        below = wilcoxon(-differences, zero_method=theirs, alternative="greater").statistic
        found = studies.rank_biserial(differences, zeros=zeros).estimate  # type: ignore[arg-type]
        assert found == pytest.approx((above - below) / (above + below), abs=1e-12)
    assert studies.rank_biserial([0, 0], zeros="drop").reason == "every difference is zero"
    with pytest.raises(InputError, match="'drop', 'pratt' or 'split'"):
        studies.rank_biserial([1], zeros="wilcox")  # type: ignore[arg-type]
