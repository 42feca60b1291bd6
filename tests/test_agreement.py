"""Coefficients of agreement: published answers, other programs, laws, and labelled cubes."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder import studies
from secondorder._schema import REASONS, STATUS
from secondorder.errors import CubeError, InputError, KernelError, TableError
from secondorder.studies import COEFFICIENTS, agreement, coefficient, repeat_agreement
from secondorder.studies._scores import score_rows

from .small_cubes import cube_of

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


def test_words_that_nobody_ranked_have_no_ordinal_agreement() -> None:
    """In the order of the alphabet high stands below low; digits have ranks, and declared words too."""
    words = xr.DataArray([["low", "mid"], ["high", "high"], ["mid", "low"]], dims=("item", "annotator"))
    for asked in ({"metric": "ordinal"}, {"weights": "quadratic"}, {"weights": "linear"}):
        with pytest.raises(KernelError, match="nobody has ranked"):
            agreement(words, raters="annotator", draws=0, **asked)
    coded = studies.make_ratings(words.rename(annotator="prompt")).expand_dims(repeat=2)
    with pytest.raises(KernelError, match="nobody has ranked"):
        repeat_agreement(coded, weights="linear", draws=0)
    ranked = studies.make_ratings(words, classes=["low", "mid", "high"])
    digits = xr.DataArray([[1, 2], [3, 3], [2, 1]], dims=("item", "annotator"))
    for name in ("krippendorff", "cohen"):
        found, expected = (
            agreement(data, raters="annotator", metric="ordinal", draws=0)[name].estimate for data in (ranked, digits)
        )
        assert float(found) == float(expected)


@pytest.mark.parametrize(
    "weights", [{"weights": "linear"}, {"weights": "interval", "scores": {"a": 1, "b": 2, "⊥": -1}}], ids=str
)
def test_another_judge_changes_no_coefficient_of_this_one(weights: dict[str, Any]) -> None:
    """The chance agreement of AC counts classes: an invalid verdict of one judge is no class of the other's."""
    rng = np.random.default_rng(2)
    verdict = rng.integers(0, 2, (2, 30, 3))
    verdict[1, 0, 0] = 2
    cube = cube_of(verdict, ("judge", "item", "prompt"), ["a", "b", "⊥"], judge=["x", "y"])
    both = agreement(cube, **weights, draws=0).data["estimate"]
    for judge in ("x", "y"):
        alone = agreement(cube.sel(judge=[judge]), **weights, draws=0).data["estimate"]
        np.testing.assert_allclose(both.sel(judge=judge), alone.sel(judge=judge), atol=1e-12)


# The labelled layer ---------------------------------------------------------------------------------------------------


def test_a_call_that_a_stop_rule_withheld_is_not_missing() -> None:
    verdict = np.array([[0, 1], [1, 0], [0, -1], [-1, -1]])
    status, reason = np.where(verdict < 0, 2, 0), np.where(verdict < 0, REASONS.index("timeout"), 0)
    status[3], reason[3] = STATUS.index("not_called"), REASONS.index("stop_rule")
    cube = cube_of(verdict, ("item", "prompt"), ["a", "b"])
    cube = cube.assign(status=(("item", "prompt"), status), reason=(("item", "prompt"), reason))
    assert int(agreement(cube, draws=0).data["n_missing"]) == 1
    assert score_rows(cube, prompt="prompt", by=None, scores={"a": 1, "b": 2}).n_missing.tolist() == [1]
    reason[3] = REASONS.index("limit")  # wanted, and not there
    assert int(agreement(cube.assign(reason=(("item", "prompt"), reason)), draws=0).data["n_missing"]) == 3


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
        ({"metric": "euclid"}, "unknown metric .*, ordinal"),
        ({"weights": "euclid"}, "unknown weights"),
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
