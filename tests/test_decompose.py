"""`decompose` on real verdicts with known answers, and what it says when a number does not exist."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import secondorder as so
from secondorder.errors import CubeError, DesignError, InputError, KernelError, TableError

CONSISTENCY = {
    "gpt-4o-mini": {"call": (0.21132, 0.20075), "prompt": (0.02772, 0.03300), "total": (0.23903, 0.23375)},
    "gpt-4.1-mini": {"call": (0.28684, 0.27250), "prompt": (0.08808, 0.09525), "total": (0.37492, 0.36775)},
}
POSITION = {
    "gpt-4-0613": {"call": (0.06424, 0.04282), "order": (0.03212, 0.04282), "total": (0.09635, None)},
    "gpt-4-0125-preview": {"call": (0.11285, 0.07523), "order": (0.01071, 0.02951), "total": (0.12355, None)},
    "claude-3-haiku-20240307": {"call": (0.21181, 0.14120), "order": (0.06655, 0.10185), "total": (0.27836, None)},
}


def assert_components(result: so.Decomposition, expected: dict[str, tuple[float, float | None]]) -> None:
    for name, (estimate, plugin) in expected.items():
        # The tables of the data print five digits.
        assert result[name].estimate == pytest.approx(estimate, abs=5.001e-6)
        if plugin is not None:
            assert result[name].plugin == pytest.approx(plugin, abs=5.001e-6)


@pytest.fixture(scope="module")
def position(position_bias: xr.Dataset) -> so.Decomposition:
    return so.decompose(position_bias)


@pytest.mark.parametrize("judge", CONSISTENCY)
def test_judge_consistency(judge_consistency: xr.Dataset, judge: str) -> None:
    assert_components(so.decompose(judge_consistency).select(judge=judge), CONSISTENCY[judge])


@pytest.mark.parametrize("judge", POSITION)
def test_position_bias(position: so.Decomposition, judge: str) -> None:
    assert_components(position.select(judge=judge), POSITION[judge])


def test_the_plugin_changes_which_judge_looks_worst(position: so.Decomposition) -> None:
    assert position.comparison is not None
    order = next(r for r in position.comparison.rankings if r.component == "order")
    assert order.plugin[0] == {"judge": "claude-3-haiku-20240307"}
    assert order.debiased[0] == {"judge": "claude-3-sonnet-20240229"}
    assert position.select(judge="claude-3-sonnet-20240229")["order"].estimate == pytest.approx(0.07002, abs=5.001e-6)
    assert 0 < order.top_differs < 1


def small_lm(data_dir: Path, name: str) -> xr.Dataset:
    return so.read_table(
        data_dir / "small_lm" / name, item="item", facets=["prompt", "order"], repeat="repeat", verdict="verdict",
        classes=["1", "2", "TIE"], invalid=["⊥"],
    )  # fmt: skip


def block_means(cube: xr.Dataset, depth: int, pairs: Any) -> tuple[float, float]:
    """Mean prompt component over the disjoint blocks of `depth` repeats: debiased and plug-in."""
    found = []
    for start in range(0, cube.sizes["repeat"], depth):
        block = so.decompose(cube.isel(repeat=slice(start, start + depth)), pairs=pairs)
        found.append((block["prompt"].estimate, block["prompt"].plugin))
    return tuple(np.mean(found, axis=0))


def test_small_lm_against_its_exact_law(data_dir: Path) -> None:
    laws = pd.read_csv(data_dir / "small_lm" / "laws.csv.gz")
    law = (
        laws.set_index(["item", "prompt", "order"])[["p_1", "p_2", "p_TIE", "p_invalid"]]
        .set_axis(["1", "2", "TIE", "⊥"], axis=1)
        .rename_axis(columns="class")
        .stack()
        .to_xarray()
    )
    truth = so.decompose_law(law / law.sum("class"), facets=["prompt", "order"]).value
    expected = {"call": 0.6996, "prompt": 0.0117, "order": 0.0020, "prompt:order": 0.0023}
    for name, value in expected.items():
        assert float(truth.sel(component=name)) == pytest.approx(value, abs=5.1e-5)
    unique = so.decompose(small_lm(data_dir, "calls_unique_seeds.csv.gz"))
    debiased = [unique[name].estimate for name in expected]
    plugin = [unique[name].plugin for name in expected]
    np.testing.assert_allclose(debiased, [0.7032, 0.0096, 0.0022, 0.0002], atol=5.1e-5)
    np.testing.assert_allclose(plugin, [0.6922, 0.0142, 0.0031, 0.0047], atol=5.1e-5)


@pytest.mark.parametrize(
    ("depth", "plugin", "unique", "shared", "across"),
    [(2, 0.154, 0.0100, -0.0676, 0.0066), (4, 0.082, 0.0093, -0.0286, 0.0081), (8, 0.045, 0.0087, -0.0121, 0.0076)],
)
def test_shared_seeds_break_complete_pairs_and_not_across_repeats(
    data_dir: Path, depth: int, plugin: float, unique: float, shared: float, across: float
) -> None:
    good, coupled = (small_lm(data_dir, f"calls_{kind}_seeds.csv.gz") for kind in ("unique", "shared"))
    estimate, naive = block_means(good, depth, "complete")
    assert estimate == pytest.approx(unique, abs=5.1e-5)
    assert naive == pytest.approx(plugin, abs=5.1e-4)
    assert block_means(coupled, depth, "complete")[0] == pytest.approx(shared, abs=5.1e-5)
    assert block_means(coupled, depth, "across-repeats")[0] == pytest.approx(across, abs=5.1e-5)


# -- forms -----------------------------------------------------------------------------------------------------------


def table(cells: dict[tuple[str, str], str], **extra: str) -> list[dict[str, str]]:
    """Rows from {(item, prompt): verdicts}, one letter per call; ``-`` is no row."""
    return [
        {"item": item, "prompt": prompt, "run": str(r), "verdict": verdict, **extra}
        for (item, prompt), verdicts in cells.items()
        for r, verdict in enumerate(verdicts)
        if verdict != "-"
    ]


ROLES: dict[str, Any] = {"item": "item", "facets": ["prompt"], "repeat": "run", "verdict": "verdict"}
CELLS = {
    ("1", "a"): "AABA",
    ("1", "b"): "ABBB",
    ("2", "a"): "AAAA",
    ("2", "b"): "AAAB",
    ("3", "a"): "BB⊥A",
    ("3", "b"): "BBBB",
}


def cube_of(cells: dict[tuple[str, str], str], classes: str = "AB", **options: Any) -> xr.Dataset:
    return so.make_cube(table(cells), **{**ROLES, "classes": list(classes), **options})


def test_json_follows_the_schema_and_has_no_nan(judge_consistency: xr.Dataset) -> None:
    plain = so.decompose(judge_consistency, tau=0.05).to_dict()
    json.dumps(plain, allow_nan=False)
    assert plain["schema"] == "secondorder.decomposition/1"
    assert list(plain) == ["schema", "version", "input", "settings", "groups", "comparison"]
    assert plain["input"]["rows"] == plain["input"]["rows_used"] == 800
    first = plain["groups"][0]
    assert list(first) == [
        "by", "n_items", "n_calls", "n_invalid", "n_missing", "items_dropped", "repeats", "facets", "components",
        "strata", "undefined", "notes",
    ]  # fmt: skip
    assert first["notes"][0].startswith("46 of 400 answers are ⊥ (12 %), all declared")
    assert list(plain["groups"][1]) == list(first)[:-1], "where nothing is to be said, nothing is"
    assert (first["n_items"], first["n_calls"], first["n_invalid"], first["n_missing"]) == (10, 400, 46, 0)
    assert first["repeats"] == {"min": 20, "max": 20}
    assert [entry["component"] for entry in first["components"]] == ["call", "prompt", "total"]
    assert first["components"][1]["tau"] == {"debiased_above": True, "plugin_above": True}
    assert [entry["component"] for entry in plain["comparison"]["differences"]] == ["call", "prompt", "total"]
    assert plain["settings"]["classes"] == ["A", "B", "tie", "⊥"]


def test_one_call_per_cell_shows_the_plugin_alone() -> None:
    result = so.decompose(cube_of({("1", "a"): "A", ("1", "b"): "B", ("2", "a"): "A", ("2", "b"): "A"}))
    plain = result.to_dict()["groups"][0]
    call, prompt, _ = plain["components"]
    assert call["estimate"] is None
    assert call["inflation"] is None
    assert prompt["plugin"] == 0.25
    reason = "one call per cell: call noise is not identifiable; R >= 2 is needed"
    assert {"component": "call", "field": "estimate", "reason": reason} in plain["undefined"]
    assert "R >= 2" in str(result)


def test_a_missing_call_neither_erases_nor_vanishes() -> None:
    # Item 1 lost all calls of prompt b: refused by name, or dropped and counted; item 2 stays whole.
    cells = {("1", "a"): "AABA", ("1", "b"): "A---", ("2", "a"): "AAAA", ("2", "b"): "AAAB"}
    with pytest.raises(CubeError, match=r"item.*1.*prompt.*b"):
        so.decompose(cube_of(cells))
    result = so.decompose(cube_of(cells), incomplete="drop-item")
    group = result.groups[0]
    assert group.items == ("2",)
    assert [entry["item"] for entry in group.items_dropped] == ["1"]
    assert "1 item dropped" in str(result)


def test_transport_failure_is_not_an_invalid_verdict() -> None:
    # Ten items, three of which lost every call of a prompt.
    cells = {(str(k), prompt): "AB" if k > 2 or prompt == "a" else "--" for k in range(10) for prompt in "ab"}
    result = so.decompose(cube_of(cells), incomplete="drop-item")
    group = result.groups[0]
    assert (len(group.items), group.n_invalid, group.n_missing) == (7, 0, 6)
    assert len(group.items_dropped) == 3


def test_scores_with_a_failure_stored_as_minus_one() -> None:
    # 8, 9 and a failed -1: refused as a score; declared invalid it is ⊥ and takes no part in a mean.
    rows = table({("1", "a"): "89-", ("1", "b"): "89-"})
    rows += [{"item": "1", "prompt": prompt, "run": "2", "verdict": "-1"} for prompt in "ab"]
    with pytest.raises(InputError, match="-1"):
        so.make_cube(rows, **ROLES, classes=[str(k) for k in range(1, 11)])
    cube = so.make_cube(rows, **ROLES, classes=[str(k) for k in range(1, 11)], invalid=["-1"])
    law = so.estimate_law(cube).sel(item="1", prompt="a")
    assert float(law.sel({"class": "⊥"})) == pytest.approx(1 / 3)
    with pytest.raises(KernelError, match="no score"):
        so.decompose(cube, kernel="interval")
    assert so.decompose(cube, kernel="interval", invalid="missing")["call"].estimate == pytest.approx(0.5)


def test_numeric_classes_need_a_named_kernel() -> None:
    cells = {("1", "a"): "1122", ("1", "b"): "1222"}
    with pytest.raises(KernelError, match="every class is a number"):
        so.decompose(cube_of(cells, "12"))
    nominal = so.decompose(cube_of(cells, "12"), kernel="nominal")
    interval = so.decompose(cube_of(cells, "12"), kernel="interval")
    # On two scores one apart the interval kernel is half the nominal one.
    np.testing.assert_allclose(interval.items, nominal.items / 2, atol=1e-15)


def test_interval_with_invalid_is_the_sum_of_its_parts() -> None:
    cells = {("1", "a"): "12⊥2", ("1", "b"): "133⊥", ("2", "a"): "1111", ("2", "b"): "31⊥⊥"}
    result = so.decompose(cube_of(cells, "123"), kernel="interval", invalid=(2.0, 0.5))
    group = result.groups[0]
    np.testing.assert_allclose(group.parts["score"] + group.parts["validity"], group.values, atol=1e-15)
    at_two = so.decompose(
        cube_of({cell: verdicts.replace("⊥", "2") for cell, verdicts in cells.items()}, "123"), kernel="interval"
    )
    np.testing.assert_allclose(group.parts["score"], at_two.items, atol=1e-15)
    valid = so.decompose(
        cube_of({c: "".join("x" if v == "⊥" else "v" for v in vs) for c, vs in cells.items()}, "vx"), kernel="nominal"
    )
    np.testing.assert_allclose(group.parts["validity"], 0.5 * valid.items, atol=1e-15)


def test_agreement_in_the_papers_words() -> None:
    one = so.decompose(cube_of(CELLS, invalid=["⊥"]))
    agreement = one.agreement
    assert agreement["A_within"] - agreement["A_across"] == pytest.approx(2 * one["prompt"].estimate)


def test_strata_and_equal_items() -> None:
    rows = [
        {**row, "stratum": {"1": "s1", "2": "s1", "3": "s2"}[row["item"]]} for row in table(CELLS)
    ]  # fmt: skip
    cube = so.make_cube(rows, **ROLES, classes=["A", "B"], invalid=["⊥"], stratum="stratum")
    plain = so.decompose(cube).to_dict()["groups"][0]
    assert [entry["stratum"] for entry in plain["strata"]] == ["s1", "s2"]
    assert plain["strata"][1]["components"][0]["se_items"] is None
    assert plain["components"][0]["lower"] is None
    assert any("single item" in entry["reason"] for entry in plain["undefined"])
    same = so.decompose(cube_of({(item, prompt): "AB" for item in "123" for prompt in "ab"}))
    lower, _ = same.interval("call")
    assert np.isnan(lower)
    assert "same value" in same["call"].reason


def test_single_level_facets_are_listed_and_left_out() -> None:
    rows = [{**row, "order": "AB"} for row in table(CELLS)]
    cube = so.make_cube(rows, **{**ROLES, "facets": ["prompt", "order"]}, classes=["A", "B"], invalid=["⊥"])
    result = so.decompose(cube)
    assert result.groups[0].facets["order"].kind == "single"
    assert result.groups[0].names == ("call", "prompt", "total")


def test_a_judge_can_be_a_facet() -> None:
    rows = table(CELLS, judge="x") + table({cell: verdicts[::-1] for cell, verdicts in CELLS.items()}, judge="y")
    cube = so.make_cube(rows, **ROLES, classes=["A", "B"], invalid=["⊥"], by=["judge"])
    assert [group.by for group in so.decompose(cube).groups] == [{"judge": "x"}, {"judge": "y"}]
    crossed = so.decompose(cube, facets=["judge", "prompt"])
    assert crossed.groups[0].names == ("call", "judge", "prompt", "judge:prompt", "total")


def test_user_components_and_matrices() -> None:
    cube = cube_of(CELLS, invalid=["⊥"])
    mine = so.Component("across", (((), 1), (("prompt",), -1)))
    result = so.decompose(cube, components=[mine], kernel=1 - np.eye(3))
    assert result["across"].estimate == result["prompt"].estimate
    with pytest.raises(KernelError, match="negative type"):
        so.decompose(cube, kernel=np.array([[0, 1, 9], [1, 0, 1], [9, 1, 0]]))
    with pytest.raises(DesignError, match="no facet 'order'"):
        so.decompose(cube, facets=["prompt", "order"])


@pytest.mark.parametrize(("interval", "width"), [("percentile", 0.82), ("bca", 0.82), ("studentised", 1.0)])
def test_bootstrap_bands_are_reproducible_and_near_the_t_band(
    judge_consistency: xr.Dataset, interval: Any, width: float
) -> None:
    """Ten items: without n/(n-1) and Student's law a band has sqrt(9/10) * 1.96/2.26 = .82 of the t band's width."""
    first, again = (so.decompose(judge_consistency, interval=interval, draws=2000) for _ in range(2))
    t = so.decompose(judge_consistency)
    for judge in CONSISTENCY:
        one = first.select(judge=judge).interval("call")
        assert one == again.select(judge=judge).interval("call")
        lower, upper = t.select(judge=judge).interval("call")
        # The ends of 2000 draws are known to some 3 % of the width; the judges' laws are skewed by as much.
        assert (one[1] - one[0]) / (upper - lower) == pytest.approx(width, abs=0.08)
        assert sum(one) / 2 == pytest.approx((lower + upper) / 2, abs=0.1 * (upper - lower))


def test_shuffled_rows_change_no_digit(data_dir: Path) -> None:
    frame = pd.read_csv(data_dir / "judge_consistency" / "calls.csv", dtype=str, keep_default_na=False)
    texts = []
    for seed in (None, 1, 2):
        rows = frame if seed is None else frame.sample(frac=1, random_state=seed)
        cube = so.make_cube(
            rows, item="item", facets=["prompt"], repeat="repeat", verdict="verdict", classes=["A", "B", "tie"],
            invalid=[""], by=["judge"],
        )  # fmt: skip
        texts.append(json.dumps({**so.decompose(cube, interval="percentile", draws=500).to_dict(), "input": None}))
    assert texts[0] == texts[1] == texts[2]


def test_many_items_take_the_whole_number_path_to_the_same_values() -> None:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 3, size=(12_000, 3, 2, 2)).astype(np.int8)
    from secondorder._design import Design, standard_components
    from secondorder._statistics._estimate import item_values
    from secondorder.core._balanced import is_worth_unrolling

    kernel = np.array([[0, 0.5, 1], [0.5, 0, 0.5], [1, 0.5, 0]])
    for design in (
        Design.balanced({"prompt": 3, "order": 2}),
        Design.balanced({"prompt": 3, "order": 2}, random=["prompt"]),
    ):
        components = standard_components(design.names)
        assert is_worth_unrolling(codes, design, 3)
        assert not is_worth_unrolling(codes[:500], design, 3)
        fast = item_values(codes, design, components, kernel, "complete")
        plain = item_values(codes[:500], design, components, kernel, "complete")
        np.testing.assert_allclose(fast.debiased[:500], plain.debiased, atol=1e-12)
        np.testing.assert_allclose(fast.plugin[:500], plain.plugin, atol=1e-12)


def test_input_may_be_a_stream() -> None:
    text = "item,prompt,run,verdict\n" + "\n".join(
        ",".join(row.values()) for row in table({("1", "a"): "AB", ("1", "b"): "AA"})
    )
    for stream in (io.StringIO(text), io.BytesIO(text.encode())):
        cube = so.read_table(stream, **ROLES, classes=["A", "B"])
        assert so.decompose(cube)["call"].estimate == pytest.approx(0.5)
    with pytest.raises(TableError, match="stream: this is gzip"):  # no name says so
        so.read_table(io.BytesIO(gzip.compress(text.encode())), **ROLES, classes=["A", "B"])


def test_compare_refuses_what_cannot_be_compared() -> None:
    one = so.decompose(cube_of(CELLS, invalid=["⊥"]))
    other = so.decompose(cube_of({("9", "a"): "AB", ("9", "b"): "AB"}, invalid=["⊥"]))
    with pytest.raises(InputError, match="share no item"):
        so.compare(one, other)
    with pytest.raises(InputError, match="kernel"):
        so.compare(one, so.decompose(cube_of(CELLS, invalid=["⊥"]), kernel=2 * (1 - np.eye(3))))
