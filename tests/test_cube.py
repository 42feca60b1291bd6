"""The cube: layout, groups, counts, laws, views, and cells that have too few calls."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from secondorder._design import Facet
from secondorder._labels._attributes import class_labels, facets_of, group_dim, parent_of
from secondorder._labels._cells import (
    cell_counts,
    codes,
    count,
    estimate_law,
    incomplete_cells,
    one_hot,
    require_cells,
)
from secondorder._labels._checks import check_cube, check_values
from secondorder._labels._cube import groups, new_cube, smallest_int
from secondorder._labels._read import make_cube
from secondorder._schema import REASONS, STATUS
from secondorder.errors import CubeError

NO_COMPLETION, NOT_CALLED = STATUS.index("no_completion"), STATUS.index("not_called")
ABSENT = REASONS.index("absent")


def table(text: str, columns: str) -> list[dict[str, str]]:
    return [dict(zip(columns.split(), line.split(), strict=True)) for line in text.strip().splitlines()]


def crossed(verdicts: dict[tuple[str, str], str], **roles) -> xr.Dataset:
    """A cube with one facet from ``{(item, prompt): one letter per repeat}``, ``.`` for no row."""
    rows = [
        {"q": item, "p": prompt, "r": str(repeat), "v": verdict}
        for (item, prompt), said in verdicts.items()
        for repeat, verdict in enumerate(said)
        if verdict != "."
    ]
    return make_cube(rows, item="q", facets="p", repeat="r", verdict="v", **roles)


# Layout


def test_dimensions_stand_in_the_order_of_the_roles():
    rows = [
        {"j": j, "q": q, "o": o, "p": p, "r": r, "v": "A"}
        for j, q, o, p, r in itertools.product("xy", "123", ("AB", "BA"), "ab", "01")
    ]
    cube = make_cube(rows, item="q", facets=["p", "o"], repeat="r", verdict="v", by="j")
    assert cube["verdict"].dims == ("j", "item", "p", "o", "repeat")
    assert cube["verdict"].dtype == cube["status"].dtype == cube["reason"].dtype == np.int8
    assert group_dim(cube) == "j"
    assert group_dim(cube, ["p", "o", "j"]) is None
    assert [facet.name for facet in facets_of(cube)] == ["p", "o"]
    assert check_cube(cube) is check_values(cube) is cube


@given(st.integers(-1, 40_000))
def test_codes_take_the_smallest_type(largest):
    kind = smallest_int(largest)
    assert np.iinfo(kind).max >= largest
    assert kind == np.int8 or np.iinfo(f"i{kind.itemsize // 2}").max < largest


def test_status_and_reason_follow_from_the_verdict():
    cube = new_cube(
        np.array([[[0, 1, -1]]]),
        labels={"item": ["1"], "p": ["a"], "repeat": list("012")},
        classes=["A", "⊥"],
        facets=[Facet("p")],
        calls={"latency_ms": np.array([[[1.5, 2.5, np.nan]]])},
    )
    assert cube["status"].values.ravel().tolist() == [0, 1, 2]
    assert [REASONS[code] for code in cube["reason"].values.ravel()] == ["", "declared", "absent"]
    assert cube["latency_ms"].dims == cube["verdict"].dims
    assert parent_of(cube).name == "cube"


def test_a_foreign_dataset_needs_little():
    """Verdicts, labels and the schema are enough; dimensions that nothing declares are fixed facets."""
    foreign = xr.Dataset(
        {"verdict": (("item", "prompt", "repeat"), np.zeros((2, 3, 4), np.int64))},
        coords={
            "item": ["1", "2"],
            "prompt": ["a", "b", "c"],
            "repeat": ["0", "1", "2", "3"],
            "class": ["A", "B"],
        },
        attrs={"schema": "secondorder.cube/1"},
    )
    assert facets_of(check_cube(foreign)) == (Facet("prompt"),)
    assert list(groups(foreign)) == [({}, foreign)]
    assert codes(foreign, ["prompt"]).shape == (2, 3, 4)
    judged = foreign.expand_dims(judge=["x"])
    assert [by for by, _ in groups(judged)] == [{"judge": "x"}]


def test_keys_that_a_later_version_adds_are_passed_over():
    cube = crossed({("1", "a"): "A"}).assign_attrs(facets='{"p": {"kind": "random", "colour": "red"}}')
    assert facets_of(cube) == (Facet("p", kind="random"),)


def test_a_selection_of_a_cube_is_a_cube():
    rows = [{"j": j, "q": q, "p": p, "r": r, "v": "A"} for j, q, p, r in itertools.product("xy", "123", "abc", "01")]
    cube = make_cube(rows, item="q", facets="p", repeat="r", verdict="v", by="j")
    assert facets_of(check_cube(cube.sel(p=["a", "c"]))) == (Facet("p"),)
    assert [by for by, _ in groups(check_cube(cube.sel(j="x")))] == [{"j": "x"}]
    assert codes(cube.sel(j="x", p="a"), []).shape == (3, 2)


# Groups


def test_a_group_has_the_items_and_repeats_that_it_has_rows_for():
    rows = table(
        """
        x 1 a 0 A
        x 1 a 1 B
        x 1 b 0 A
        x 1 b 2 B
        y 2 a 0 A
        y 2 b 0 -
        y 3 a 0 A
        z 1 a 0 -
        z 1 a 1 -
        """,
        "judge q p r v",
    )
    cube = make_cube(rows, item="q", facets="p", repeat="r", verdict="v", by="judge", missing="-")
    parts = {by["judge"]: part for by, part in groups(cube)}
    assert {name: part["item"].values.tolist() for name, part in parts.items()} == {
        "x": ["1"],
        "y": ["2", "3"],
        "z": ["1"],
    }
    assert {name: part["repeat"].values.tolist() for name, part in parts.items()} == {
        "x": ["0", "1", "2"],
        "y": ["0"],
        "z": ["0", "1"],
    }
    # What a group has no row for was not called; what is absent in its grid has no completion.
    assert int((parts["x"]["status"] == NO_COMPLETION).sum()) == 2
    assert int((parts["y"]["status"] == NO_COMPLETION).sum()) == 2
    assert int((parts["z"]["status"] == NO_COMPLETION).sum()) == 4
    foreign = cube["status"] == NOT_CALLED
    assert bool((cube["reason"].where(foreign, ABSENT) == ABSENT).all())
    assert foreign.sel(judge="x", item="2").all()
    assert foreign.sel(judge="y", repeat="1").all()
    assert not foreign.sel(judge="x", item="1").any()
    assert all("judge" not in part.dims and "by" not in part.attrs for part in parts.values())


def test_groups_of_several_columns_are_told_by_each():
    rows = [
        {"judge": j, "bench": b, "q": "1", "p": p, "r": "0", "v": "A"}
        for j, b, p in itertools.product(["a:b", "a"], ["c", "b:c"], "xy")
    ]
    cube = make_cube(rows, item="q", facets="p", repeat="r", verdict="v", by=["judge", "bench"])
    assert group_dim(cube) == "judge:bench"
    assert cube.sizes["judge:bench"] == 4
    assert [by for by, _ in groups(cube)] == [
        {"judge": "a", "bench": "b:c"},
        {"judge": "a", "bench": "c"},
        {"judge": "a:b", "bench": "b:c"},
        {"judge": "a:b", "bench": "c"},
    ]


def test_a_judge_can_be_a_facet():
    cube = make_cube(
        table("x 1 a 0 A\nx 1 b 0 B\ny 1 a 0 A\ny 1 b 0 A", "judge q p r v"),
        item="q",
        facets="p",
        repeat="r",
        verdict="v",
        by="judge",
    )
    ((by, same),) = groups(cube, ["p", "judge"])
    assert by == {}
    assert codes(same, ["p", "judge"]).tolist() == [[[[0], [0]], [[1], [0]]]]
    assert codes(same, ["judge", "p"]).tolist() == [[[[0], [1]], [[0], [0]]]]


# Codes, counts, laws and views

CALLS = st.dictionaries(
    st.tuples(st.sampled_from("123"), st.sampled_from("ab"), st.sampled_from(["AB", "BA"]), st.sampled_from("0123")),
    st.sampled_from(["A", "B", "tie", "x", "-"]),
    min_size=1,
    max_size=30,
)


@given(CALLS)
@settings(max_examples=60, deadline=None)
def test_counts_and_laws_are_those_of_the_rows(calls):
    """Against counting row by row in fractions; ⊥ is a class, and a missing call is none."""
    rows = [dict(zip("qporv", (*key, verdict), strict=True)) for key, verdict in calls.items()]
    classes = ["A", "B", "tie"]
    cube = make_cube(
        rows, item="q", facets=["p", "o"], repeat="r", verdict="v", classes=classes, invalid="x", missing="-"
    )
    counts, laws, vectors = count(cube), estimate_law(cube), one_hot(cube)
    assert counts.dims == laws.dims == ("item", "p", "o", "class")
    assert vectors.dims == ("item", "p", "o", "repeat", "class")
    assert counts.dtype == np.int64
    for item, p, o in itertools.product(cube["item"].values, cube["p"].values, cube["o"].values):
        said = [verdict for key, verdict in calls.items() if key[:3] == (item, p, o) and verdict != "-"]
        found = [said.count(label) for label in ("A", "B", "tie", "x")]
        at = {"item": item, "p": p, "o": o}
        assert counts.sel(at).values.tolist() == found
        assert int(cell_counts(cube).sel(at)) == len(said)
        law = laws.sel(at).values.tolist()
        if said:
            assert law == [float(Fraction(number, len(said))) for number in found]
            np.testing.assert_allclose(vectors.sel(at).mean("repeat"), law, rtol=1e-15)
        else:
            assert np.isnan(law).all()
    assert int(vectors.sum()) == int(counts.sum()) == int((cube["verdict"] >= 0).sum())


def test_the_views_keep_the_labels_of_items():
    cube = make_cube(
        table("1 a 0 A easy\n2 a 0 B hard", "q p r v s"), item="q", facets="p", repeat="r", verdict="v", stratum="s"
    )
    for view in (count(cube), estimate_law(cube), one_hot(cube)):
        assert view["stratum"].values.tolist() == ["easy", "hard"]
        assert view["class"].values.tolist() == ["A", "B"]


def test_soft_verdicts_are_their_own_view():
    cube = crossed({("1", "a"): "AB", ("1", "b"): "AA"})
    soft = np.array([[[[0.25, 0.75], [0.75, 0.25]], [[1.0, 0.0], [np.nan, np.nan]]]])
    cube = cube.assign(soft=(("item", "p", "repeat", "class"), soft))
    np.testing.assert_array_equal(one_hot(cube), soft)
    np.testing.assert_array_equal(estimate_law(cube), [[[0.5, 0.5], [1.0, 0.0]]])


def test_codes_are_a_view_of_the_cube_where_they_can_be():
    cube = crossed({(item, prompt): "ABA" for item in "12" for prompt in "ab"})
    found = codes(cube, ["p"])
    assert np.shares_memory(found, cube["verdict"].values)
    assert found.flags.c_contiguous
    turned = cube.transpose("repeat", "p", "item", "class")
    assert (codes(turned, ["p"]) == found).all()
    assert codes(turned, ["p"]).flags.c_contiguous


def test_a_facet_with_one_level_is_left_out_of_the_codes():
    cube = make_cube(table("1 a AB 0 A\n1 b AB 0 B", "q p o r v"), item="q", facets=["o", "p"], repeat="r", verdict="v")
    assert codes(cube, ["p"]).tolist() == [[[0], [1]]]
    assert codes(cube, ["p", "o"]).tolist() == [[[[0]], [[1]]]]


# Cells with too few calls


def test_incomplete_cells_are_listed():
    cube = crossed({("1", "a"): "AAA", ("1", "b"): "A.A", ("2", "a"): "A..", ("10", "b"): "AA"})
    assert incomplete_cells(cube).to_dict("records") == [
        {"item": "2", "p": "a", "calls": 1},
        {"item": "2", "p": "b", "calls": 0},
        {"item": "10", "p": "a", "calls": 0},
    ]
    assert len(incomplete_cells(cube, need=3)) == 5
    assert incomplete_cells(cube, need=0).empty
    kept, dropped = require_cells(cube, need=2, incomplete="drop-item")
    assert kept["item"].values.tolist() == ["1"]
    assert dropped == (
        {"item": "2", "reason": "cell p=a has 1 of 2 calls (and 1 more cell)"},
        {"item": "10", "reason": "cell p=a has 0 of 2 calls"},
    )
    with pytest.raises(
        CubeError, match=r"3 cells of 2 items .of 3. have fewer than 2 calls: item=2, p=a has 1; .*drop"
    ):
        require_cells(cube, need=2)
    complete, nothing = require_cells(kept, need=2)
    assert complete is kept
    assert nothing == ()


def test_a_long_list_of_incomplete_cells_is_counted():
    cube = crossed({("1", "a"): "AA", ("1", "b"): "AA"} | {(str(item), "a"): "A" for item in range(2, 20)})
    with pytest.raises(CubeError, match=r"36 cells of 18 items .of 19.*; and 31 more;"):
        require_cells(cube, need=2)


# Cases from people who do this job


def test_case_4_a_missing_call_is_no_category_and_an_invalid_verdict_is():
    """Raters [1,1,2] [1,1,·] [·,1,2]."""
    said = {("u1", "r1"): "1", ("u2", "r1"): "1", ("u3", "r1"): "2", ("u1", "r2"): "1", ("u2", "r2"): "1"}
    said |= {("u3", "r2"): "-", ("u1", "r3"): "-", ("u2", "r3"): "1", ("u3", "r3"): "2"}
    missing = crossed(said, missing="-")
    assert class_labels(missing) == ("1", "2")
    assert count(missing).sum(["item", "p"]).values.tolist() == [5, 2]
    assert int(cell_counts(missing).sum()) == 7
    invalid = crossed(said, invalid="-")
    assert class_labels(invalid) == ("1", "2", "⊥")
    assert count(invalid).sum(["item", "p"]).values.tolist() == [5, 2, 2]
    absent = crossed({key: verdict for key, verdict in said.items() if verdict != "-"})
    xr.testing.assert_identical(absent.drop_attrs(), missing.drop_attrs())


def test_case_15_a_failed_judgement_is_no_score():
    """Scores 8, 9, -1: the mean is 8.5 over two valid calls with one invalid, and -1 is refused until declared."""
    rows = table("1 a 0 8\n1 a 1 9\n1 a 2 -1", "q p r v")
    roles = {"item": "q", "facets": "p", "repeat": "r", "verdict": "v", "classes": range(1, 11)}
    with pytest.raises(ValueError, match="verdict -1 is not a declared class"):
        make_cube(rows, **roles)
    cube = make_cube(rows, **roles, invalid="-1")
    valid = count(cube).sel({"class": [str(score) for score in range(1, 11)]}).values.ravel()
    assert valid @ np.arange(1, 11) / valid.sum() == 8.5
    assert valid.sum() == 2
    assert int(count(cube).sel({"class": "⊥"}).sum()) == int((cube["status"] == STATUS.index("invalid")).sum()) == 1


def test_case_21_a_lost_order_neither_erases_the_other_nor_vanishes():
    said = {("1", "AB"): "AAB", ("1", "BA"): "ABB", ("2", "AB"): "BBA"}
    cube = crossed(said)
    assert count(cube).sel(item="2", p="AB").values.tolist() == [1, 2]
    assert cell_counts(cube).values.tolist() == [[3, 3], [3, 0]]
    assert incomplete_cells(cube).to_dict("records") == [{"item": "2", "p": "BA", "calls": 0}]
    assert np.isnan(estimate_law(cube).sel(item="2", p="BA")).all()
    with pytest.raises(CubeError, match="item=2, p=BA has 0"):
        require_cells(cube, need=2)


def test_case_22_seven_of_ten_items_and_transport_failure_is_not_invalid():
    said = {
        (str(item), p): "429" if item > 6 else ("A", "")[item == 3 and p == "a"] for item in range(10) for p in "ab"
    }
    rows = [{"q": item, "p": p, "r": r, "v": verdict} for (item, p), verdict in said.items() for r in "01"]
    cube = make_cube(rows, item="q", facets="p", repeat="r", verdict="v", missing="429", invalid="")
    kept, dropped = require_cells(cube, need=2, incomplete="drop-item")
    assert (kept.sizes["item"], cube.sizes["item"]) == (7, 10)
    assert [entry["item"] for entry in dropped] == ["7", "8", "9"]
    assert int((cube["status"] == STATUS.index("invalid")).sum()) == 2
    assert int((cube["status"] == NO_COMPLETION).sum()) == 12
    assert count(kept).sel(item="3", p="a").values.tolist() == [0, 2]


def test_case_23_one_call_per_cell_has_no_call_noise():
    cube = crossed({("1", "a"): "A", ("1", "b"): "B"})
    with pytest.raises(CubeError, match=r"call noise is not identifiable.*repeat the calls"):
        require_cells(cube, need=2)
    assert require_cells(cube, need=1) == (cube, ())
    assert isinstance(incomplete_cells(cube), pd.DataFrame)
