"""Numbers that do not exist: said by name, never shown as a value."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

import secondorder as so
from secondorder._schema import REASONS
from secondorder._statistics._outcomes import integrity
from secondorder._statistics._tree import estimate_all
from secondorder.errors import CubeError, InputError, KernelError

from .small_codes import cube_of, random_codes

# -- bands over calls ------------------------------------------------------------------------------------------------


def test_calls_that_never_differ_give_no_band_of_width_zero() -> None:
    codes = np.zeros((3, 2, 4), dtype=int)
    codes[1:, 1] = 1
    result = so.decompose(cube_of(codes), covers="calls")
    for name in ("call", "prompt", "total"):
        assert np.isnan(result.interval(name)).all()
        assert "not positive" in result[name].reason
    plain = result.to_dict()["groups"][0]
    stated = {(entry["component"], entry["field"]) for entry in plain["undefined"]}
    for entry in plain["components"]:
        assert {(entry["component"], key) for key in ("se_calls", "lower", "upper")} <= stated


@pytest.mark.parametrize("pairs", ["complete", "across-repeats", "panel"])
def test_item_errors_in_the_place_of_call_errors_are_named(pairs: Any) -> None:
    codes = random_codes(4, 3, 6 if pairs == "across-repeats" else 3)
    if pairs == "across-repeats":
        codes[0, 0, 0] = -1  # six repeats, so that the fewest calls of a cell do not give it away
    group = so.decompose(cube_of(codes), covers="calls", pairs=pairs).groups[0]
    assert group.errors("calls").se.tolist() == group.item_errors.se.tolist()
    assert "upper bound" in " ".join(group.all_notes)


def test_one_item_has_no_bound_of_its_call_errors() -> None:
    group = so.decompose(cube_of(random_codes(1, 3, 2)), covers="calls").groups[0]
    assert group.all_notes == ()
    assert "items give no bound" in group.errors("calls").reason[0]


def test_soft_verdicts_have_errors_of_their_own() -> None:
    # Hard verdicts seen through a fog: v = .3 + .4 * one-hot. Every component is .4 ** 2 times that of the hard ones.
    codes = random_codes(6, 3, 2, 5, seed=3)
    vectors = 0.3 + 0.4 * np.eye(2)[codes]
    facets = [so.Facet("prompt", "random"), so.Facet("order")]
    hard = so.decompose(cube_of(codes, facets=("prompt", "order")), facets=facets)
    soft = so.decompose(cube_of(codes, facets=("prompt", "order"), soft=vectors), facets=facets)
    effects = ("prompt", "order", "prompt:order")
    for name in effects:
        assert soft[name].estimate == pytest.approx(0.16 * hard[name].estimate, abs=1e-12)
        for covers in ("items", "prompts", "items+prompts"):
            assert soft.se(name, covers=covers) == pytest.approx(0.16 * hard.se(name, covers=covers))
    assert 0 < soft.se("prompt", covers="calls") < hard.se("prompt", covers="calls")


# -- soft verdicts ---------------------------------------------------------------------------------------------------


def test_soft_verdicts_are_held_to_be_probabilities_of_the_calls_there_are() -> None:
    codes = random_codes(2, 2, 3)
    vectors = np.eye(2)[codes]
    with pytest.raises(CubeError, match="soft"):
        so.decompose(cube_of(codes, soft=vectors * 0.9))
    vectors[0, 0, 0] = np.nan
    with pytest.raises(CubeError, match="1 calls have a verdict and no soft one"):
        so.decompose(cube_of(codes, soft=vectors))
    codes[0, 0, 0] = -1
    incomplete = so.decompose(cube_of(codes, soft=vectors), pairs="panel")
    assert "same repeats" in incomplete["prompt"].reason


def test_soft_mass_on_invalid_needs_a_declaration() -> None:
    codes = np.zeros((2, 2, 3), dtype=int)
    vectors = np.broadcast_to([0.6, 0.3, 0.1], (2, 2, 3, 3))
    cube = cube_of(codes, "12⊥", soft=vectors)
    with pytest.raises(KernelError, match="no score"):
        so.decompose(cube, kernel="interval")
    with pytest.raises(InputError, match="no call is ⊥ as a whole"):
        so.decompose(cube, kernel="interval", invalid="missing")
    result = so.decompose(cube, kernel="interval", invalid="midpoint")
    parts = result.groups[0].parts
    np.testing.assert_allclose(parts["score"] + parts["validity"], result.items, atol=1e-14)


# -- what is undefined -----------------------------------------------------------------------------------------------


def nulls(plain: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Paths of every null among the numbers of a component."""
    if isinstance(plain, dict):
        return [found for key, value in plain.items() if key != "tau" for found in nulls(value, (*path, key))]
    return [path] if plain is None else []


@pytest.mark.parametrize("case", ["one call", "no call", "one item", "percentile of equal items"])
def test_every_null_stands_in_undefined(case: str) -> None:
    options: dict[str, Any] = {"kernel": "interval", "invalid": "midpoint", "covers": "calls", "tau": 0.1}
    codes = {
        "one call": random_codes(3, 2, 1, classes=3),
        "no call": np.full((3, 2, 2), -1),
        "one item": random_codes(1, 2, 2, classes=3),
        "percentile of equal items": np.tile([0, 1], (3, 2, 1)),
    }[case]
    if case == "no call":
        options["incomplete"] = "drop-item"
    if case.startswith("percentile"):
        options |= {"covers": "items", "interval": "percentile"}
    group = so.decompose(cube_of(codes, "12⊥"), **options).to_dict()["groups"][0]
    stated = {(entry["component"], entry["field"]) for entry in group["undefined"]}
    missing = {(entry["component"], ".".join(path)) for entry in group["components"] for path in nulls(entry)}
    assert missing == stated


def test_a_judge_without_any_verdict_is_not_a_judge_with_one_call() -> None:
    codes = random_codes(2, 3, 2, 4)
    codes[1] = -1
    with pytest.raises(CubeError, match="fewer than 1 call"):
        so.decompose(cube_of(codes, judge=True))
    result = so.decompose(cube_of(codes, judge=True), incomplete="drop-item")
    assert result.select(judge="j1")["call"].reason == "no call has a verdict"
    compared = result.to_dict()["comparison"]
    assert all(ranking["debiased"] == ranking["plugin"] == [] for ranking in compared["rankings"])
    fields = {entry["field"] for entry in compared["undefined"] if entry["component"] == "call"}
    assert {"rankings.debiased", "rankings.plugin", "rankings.top_differs", "differences[j0 - j1].plugin"} <= fields
    json.dumps(result.to_dict(), allow_nan=False)


def test_a_judge_without_a_complete_item_is_named() -> None:
    codes = random_codes(2, 3, 2, 4)
    codes[1, :, 0, 1:] = -1
    with pytest.raises(CubeError, match=r"judge = j1.*no item is complete"):
        so.decompose(cube_of(codes, judge=True), incomplete="drop-item")


def test_a_flag_is_missing_where_the_estimate_is() -> None:
    codes = random_codes(2, 3, 2, 4)
    codes[1] = -1
    _, tree = estimate_all(cube_of(codes, judge=True), {"incomplete": "drop-item", "tau": 0.1})
    data = tree["/components"].to_dataset()
    for flag, values in (("above_tau", data.estimate), ("plugin_above_tau", data.plugin)):
        assert np.isnan(data[flag].sel(group="judge = j1")).all()
        assert set(data[flag].sel(group="judge = j0").values) <= {0.0, 1.0}
        assert data[flag].sel(group="judge = j0").values.tolist() == (values[0] > 0.1).astype(float).values.tolist()


def test_resamples_without_spread_are_counted_in_a_note() -> None:
    # A resample of six items, three of either kind, is all of one kind with probability 2 / 2**6 = .03.
    values = np.zeros((6, 2, 2), dtype=int)
    values[:3, 1] = 1
    group = so.decompose(cube_of(values), interval="studentised", level=0.5, draws=2000).groups[0]
    lost = group.band().undefined_draws[group.index("prompt")]
    assert lost > 0
    assert not group.band().reason[group.index("prompt")]
    assert f"prompt {lost}" in " ".join(group.all_notes)


# -- what a report shows beside --------------------------------------------------------------------------------------


def test_timeouts_have_a_line_where_invalid_has_no_score() -> None:
    codes = random_codes(4, 3, 4, classes=3)
    codes[0, 0, 0] = -1
    status = np.where(codes < 0, 2, 0)
    reason = np.where(codes < 0, REASONS.index("timeout"), 0)
    cube = cube_of(codes, "123⊥", status=status, reason=reason)
    _, tree = estimate_all(cube, {"kernel": "interval"})
    assert tree["/sensitivity"].rule.values.tolist() == ["as declared", "timeouts as ⊥"]


def test_strata_of_judges_that_saw_other_items() -> None:
    codes = random_codes(2, 6, 2, 3)
    codes[0, 4:] = -1
    status, reason = np.where(codes < 0, 3, 0), np.where(codes < 0, REASONS.index("absent"), 0)
    cube = cube_of(codes, judge=True, stratum=[*"aaaa", "b10", "b10"], status=status, reason=reason)
    _, tree = estimate_all(cube, {})
    found = tree["/strata"].to_dataset()
    assert found.n_items.transpose("group", "stratum").values.tolist() == [[4, 0], [4, 2]]
    assert np.isnan(found.estimate.sel(stratum="b10", group="judge = j0")).all()


@pytest.mark.parametrize("repeats", [2, 3])
def test_drift_is_not_found_where_there_is_none(repeats: int) -> None:
    """300 runs without drift: the SE is that of the slopes within 12 %. One standard error of the ratio is 4 %, and
    another seed fails with probability .003; with calls in the place of cells as units the SE would be 29 % and 18 %
    too small.
    """
    rng = np.random.default_rng(1)
    slopes, errors = [], []
    for _ in range(300):
        codes = (rng.random((25, 4, 2, repeats)) < 0.3).astype(int)
        rank = rng.permutation(codes.size).reshape(codes.shape)
        found = integrity(cube_of(codes, facets=("prompt", "order"), calls={"send_rank": rank}))
        sign = 1 if found.drift_class.item() == "A" else -1
        slopes.append(sign * found.drift.item())
        errors.append(found.drift_se.item())
    assert np.mean(errors) / np.std(slopes) == pytest.approx(1, abs=0.12)


def test_panels_of_calls_equal_pairs_taken_by_hand() -> None:
    codes = random_codes(3, 2, 2, 5, classes=3, seed=2)
    result = so.decompose(cube_of(codes, "ABC", facets=("prompt", "order")), pairs="panel")
    by_hand = np.mean([_prompt_by_hand(codes[..., k : k + 2]) for k in (0, 2)], axis=0)
    np.testing.assert_allclose(result.items[:, 1], by_hand, atol=1e-14)


def _prompt_by_hand(codes: np.ndarray) -> list[float]:
    found = []
    for item in codes:
        calls = {index: item[index] for index in np.ndindex(item.shape)}
        table: dict[tuple[Any, Any], list[bool]] = {}
        for a, b in itertools.permutations(calls, 2):
            table.setdefault((a[:2], b[:2]), []).append(calls[a] != calls[b])
        means = {cells: float(np.mean(values)) for cells, values in table.items()}
        same = [value for (one, other), value in means.items() if one[0] == other[0]]
        found.append(float(np.mean(list(means.values())) - np.mean(same)))
    return found


def test_a_rule_that_leaves_no_item_is_shown_as_one() -> None:
    # Judge j0 has one valid call in a cell of every item: without ⊥ it has nothing left, and j1 keeps its line.
    codes = random_codes(2, 3, 2, 2)
    codes[0, :, 0, 0] = 2
    _, tree = estimate_all(cube_of(codes, "AB⊥", judge=True), {})
    found = tree["/sensitivity"].to_dataset().sel(rule="⊥ dropped")
    assert found.n_items.values.tolist() == [0, 3]
    assert np.isnan(found.estimate.sel(group="judge = j0")).all()
    assert found.group.values.tolist() == ["judge = j0", "judge = j1"]
    prefix = tree["/prefixes"].to_dataset()
    np.testing.assert_allclose(prefix.scaled_excess, 2 * prefix.inflation)


def test_flat_records_say_why_a_number_is_not_there() -> None:
    rows = so.decompose(cube_of(random_codes(1, 2, 2))).rows()
    assert all("one item" in row["reason"] for row in rows)
    assert so.decompose(cube_of(random_codes(5, 2, 3))).rows()[0]["reason"] == ""
