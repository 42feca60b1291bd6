"""Numbers that do not exist, and declarations that contradict each other: said by name, never shown as a value."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder._labels._cube import new_cube
from secondorder._schema import REASONS
from secondorder._statistics._outcomes import integrity
from secondorder._statistics._tree import estimate_all
from secondorder.errors import CubeError, DesignError, InputError, KernelError


def cube_of(
    codes: Any, classes: str = "AB", facets: tuple[str, ...] = ("prompt",), judge: bool = False, **more: Any
) -> xr.Dataset:
    """A cube from class codes of shape ([judge,] item, facets..., repeat)."""
    codes = np.asarray(codes)
    dims = (*(("judge",) if judge else ()), "item", *facets, "repeat")
    labels = {dim: [f"{dim[0]}{k}" for k in range(size)] for dim, size in zip(dims, codes.shape, strict=True)}
    return new_cube(codes, labels=labels, classes=list(classes), facets=[so.Facet(name) for name in facets], **more)


def random_codes(*shape: int, classes: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, classes, size=shape)


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


# -- declarations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"kernel": "nominal", "scores": {"1": 1.0, "2": 2.0}},
        {"kernel": "ordinal", "standardise": True},
        {"kernel": 1 - np.eye(3), "invalid": "midpoint"},
        {"kernel": 1 - np.eye(3), "invalid": (1.0, 0.5)},
        {"kernel": "interval", "invalid": (1.0, float("inf"))},
        {"kernel": "interval", "invalid": "middle"},
    ],
)
def test_a_declaration_without_effect_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(KernelError):
        so.decompose(cube_of(random_codes(3, 2, 2), "12⊥"), **options)


def test_a_kernel_says_nothing_of_calls_that_are_left_out() -> None:
    with pytest.raises(KernelError, match="about calls"):
        so.kernel("interval", ["1", "2", "⊥"], invalid="missing")


def test_what_decides_a_kernel_is_recorded() -> None:
    cube = cube_of(random_codes(3, 2, 2), "13")
    plain = so.decompose(cube, kernel="interval", standardise=True).settings.to_dict()
    assert plain["standardise"] is True
    assert so.decompose(cube, kernel=2 * (1 - np.eye(2))).settings.to_dict()["kernel_matrix"] == [[0, 2], [2, 0]]


def test_an_indefinite_kernel_is_noted() -> None:
    cube = cube_of(random_codes(3, 2, 2, classes=3), "ABC")
    tolerance = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    assert "negative in truth" in str(so.decompose(cube, kernel=tolerance, allow_indefinite=True))
    for kernel in ("nominal", "ordinal"):
        assert so.decompose(cube, kernel=kernel, allow_indefinite=True).groups[0].notes == ()


def test_ranks_that_nobody_declared_are_refused() -> None:
    def rows(verdicts):
        return [{"q": q, "p": p, "r": r, "v": v} for q in "12" for p in "ab" for r, v in enumerate(verdicts)]

    roles = {"item": "q", "facets": ["p"], "repeat": "r", "verdict": "v"}
    with pytest.raises(KernelError, match=r"nobody has ranked them \(high, low, mid\).*lowest to the highest"):
        so.decompose(so.make_cube(rows(["low", "mid", "high"]), **roles), kernel="ordinal")
    so.decompose(so.make_cube(rows(["low", "mid", "high"]), classes=["low", "mid", "high"], **roles), kernel="ordinal")
    so.decompose(so.make_cube(rows(["1", "2", "10"]), **roles), kernel="ordinal")


def test_ranks_are_shown_and_numbers_keep_theirs() -> None:
    cube = cube_of(random_codes(6, 2, 2, 3, classes=3), "AB⊥", facets=("prompt", "order"))
    assert "kernel ordinal: A < B, pairs complete" in str(so.decompose(cube, kernel="ordinal"))
    assert "kernel nominal, pairs" in str(so.decompose(cube))
    codes = random_codes(6, 2, 3, classes=3)
    rising, falling = (
        so.decompose(cube_of(np.abs(codes - flip), "123"[::step]), kernel="ordinal") for flip, step in ((0, 1), (2, -1))
    )
    np.testing.assert_allclose(rising.items, falling.items, atol=1e-14)
    with pytest.raises(KernelError, match=r"neither rise nor fall \(1, 3, 2\).*classes= as 1,2,3"):
        so.decompose(cube_of(codes, "132"), kernel="ordinal")
    so.decompose(cube_of(codes, "132"), kernel="nominal")


def test_bands_that_do_not_exist_are_refused_before_any_work() -> None:
    with pytest.raises(InputError, match="covers resampled items"):
        so.decompose(cube_of(random_codes(3, 2, 4)), covers="calls", interval="bca")
    result = so.decompose(cube_of(random_codes(3, 2, 4)))
    with pytest.raises(InputError, match="'call' is not a choice"):
        result.se("prompt", covers="call")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'z' is not a choice"):
        result.interval("prompt", method="z")  # type: ignore[arg-type]


def test_components_of_ones_own_have_names_of_their_own() -> None:
    cube = cube_of(random_codes(3, 2, 2, 3), facets=("prompt", "order"))
    with pytest.raises(DesignError, match="2 components are called 'prompt'"):
        so.decompose(cube, components=[so.Component("prompt", (((), 1),))])
    mine = so.Component("order:prompt", (((), 1),))
    assert so.decompose(cube, components=[mine]).agreement == so.decompose(cube).agreement


def test_a_single_level_is_left_out_of_a_law_as_of_verdicts() -> None:
    law = xr.DataArray(
        [[[[0.5, 0.5]], [[0.9, 0.1]]]], dims=("item", "prompt", "order", "class"), coords={"class": ["A", "B"]}
    )
    truth = so.decompose_law(law)
    assert truth.component.values.tolist() == ["call", "prompt", "total"]
    assert so.decompose_law(law, facets=["prompt"]).value.values.tolist() == truth.value.values.tolist()
    with pytest.raises(DesignError, match="not the law's dimensions"):
        so.decompose_law(law, facets=["order"])


def test_items_of_a_population_count_by_their_weight() -> None:
    laws = so.simulate.laws
    facets = {"prompt": 3}
    mixed = laws.population({"steady": laws.rare_flips(0.0, facets), "noisy": laws.rare_flips(0.5, facets)}, [0.9, 0.1])
    assert float(so.decompose_law(mixed).value.sel(component="call")) == pytest.approx(0.05)
    bias = so.plugin_bias(mixed, repeats=2).bias.sel(component="prompt")
    assert float(bias) == pytest.approx(2 / 3 / 2 * 0.05)
    with pytest.raises(InputError, match="weight"):
        so.decompose_law(mixed.isel(item=[0]))


def test_invalid_calls_are_counted_among_the_items_used() -> None:
    codes = np.array([[[2, 2, 2], [-1, -1, 0]], [[0, 1, 2], [0, 0, 1]]])
    group = so.decompose(cube_of(codes, "AB⊥"), incomplete="drop-item").groups[0]
    assert (len(group.items), group.n_calls, group.n_invalid, group.n_missing) == (1, 6, 1, 2)
    without = so.decompose(cube_of(codes, "AB⊥"), incomplete="drop-item", invalid="missing")
    assert (without.groups[0].n_calls, without.groups[0].n_invalid) == (5, 1)
    assert "5 completed, 1 ⊥ set aside, 2 places without a call" in str(without)


def test_places_without_a_row_are_told_from_calls_that_failed() -> None:
    """Three calls in one cell and two in the others: nothing failed."""
    rows = [{"i": i, "p": p, "v": v} for i in "12" for p in "ab" for v in ("A", "B", *["?"] * (i + p == "1a"))]
    named = {"item": "i", "facets": ["p"], "verdict": "v", "number_repeats": True, "classes": ["A", "B"]}
    cube = so.make_cube(rows, **named, invalid=["?"])
    group = so.decompose(cube).groups[0]
    assert (group.n_missing, group.n_absent) == (3, 3)
    assert "2-3 calls; 9 completed, of them 1 ⊥, 3 places without a call" in str(so.decompose(cube))
    reason = cube["reason"].copy(data=np.where(cube["verdict"] < 0, REASONS.index("timeout"), cube["reason"]))
    assert "9 completed, of them 1 ⊥, 3 missing" in str(so.decompose(cube.assign(reason=reason)))
    rows[0]["v"] = "-"
    lost = so.make_cube(rows, **named, invalid=["?"], missing=["-"])
    assert "4 missing or without a row" in str(so.decompose(lost))


# -- comparison ------------------------------------------------------------------------------------------------------


def test_comparison_refuses_other_declarations_and_notes_other_levels() -> None:
    codes = random_codes(4, 3, 4)
    one = so.decompose(cube_of(codes, "12"), kernel="interval")
    with pytest.raises(InputError, match="other classes"):
        so.compare(one, so.decompose(cube_of(codes, "23"), kernel="interval"))
    with pytest.raises(InputError, match="random"):
        so.compare(one, so.decompose(cube_of(codes, "12"), kernel="interval", facets=[so.Facet("prompt", "random")]))
    nominal = so.decompose(cube_of(codes))
    other = so.decompose(cube_of(codes[:, :2]), pairs="across-repeats")
    notes = " ".join(so.compare(nominal, other).notes)
    assert "other levels" in notes
    assert "complete, across-repeats" in notes


def test_a_judge_that_was_selected_keeps_its_name() -> None:
    cube = cube_of(random_codes(2, 6, 2, 3), judge=True)
    one, other = (so.decompose(cube.sel(judge=name)) for name in ("j0", "j1"))
    assert one.groups[0].by == {"judge": "j0"}
    assert (one["call"], other["call"]) == tuple(so.decompose(cube).select(judge=name)["call"] for name in ("j0", "j1"))
    assert so.compare(one, other).to_dict() == so.decompose(cube).comparison.to_dict()
    assert so.paired_test(one, other).pairs == (({"judge": "j0"}, {"judge": "j1"}),)
    # The same judge twice is told apart by position, and so is what has no name.
    assert so.paired_test(one, one).pairs[0][1] == {"judge": "j0", "decomposition": "2"}
    nameless = so.decompose(cube.sel(judge="j1", drop=True))
    assert nameless.groups[0].by == {}
    assert so.paired_test(nameless, one).pairs[0][0] == {"decomposition": "1"}


def test_datasets_are_selected_by_judge() -> None:
    cube = cube_of(random_codes(2, 6, 2, 3), judge=True)
    found, tested = so.decompose(cube), so.permutation_test(cube, "prompt", draws=39)
    for data in (found.to_dataset(), found.items_dataset(), tested.to_dataset()):
        assert data.sel(judge="j1").group.item() == "judge = j1"
        assert data.sel(group="judge = j1").judge.item() == "j1"
    # A name that stands for something else already does so still.
    other = so.decompose(cube_of(random_codes(2, 6, 2, 3), judge=True).rename(judge="estimate"))
    assert other.to_dataset()["estimate"].dims == ("group", "component")


def test_a_level_of_a_facet_is_no_judge() -> None:
    cube = cube_of(random_codes(6, 2, 2, 3), facets=("judge", "prompt"))
    assert so.decompose(cube.sel(judge="j0")).groups[0].by == {}


def test_soft_and_sampled_verdicts_are_told_apart() -> None:
    codes = random_codes(6, 2, 3)
    found = so.compare(so.decompose(cube_of(codes, soft=0.3 + 0.4 * np.eye(2)[codes])), so.decompose(cube_of(codes)))
    assert any(note.startswith("soft verdicts in 1 alone") for note in found.notes)


def test_an_item_keeps_its_stratum() -> None:
    codes, others = random_codes(6, 2, 3), random_codes(6, 2, 3, seed=1)
    one = so.decompose(cube_of(codes, stratum=list("sssuuu")))
    with pytest.raises(InputError, match="stratum"):
        so.compare(one, so.decompose(cube_of(others, stratum=list("ssuuuu"))))
    # Where one side alone knows the strata, they count, whichever is named first.
    other = so.decompose(cube_of(others))
    first, second = (found.differences[0] for found in (so.compare(one, other), so.compare(other, one)))
    assert second.upper == pytest.approx(-first.lower, abs=1e-12)
    without = so.compare(so.decompose(cube_of(codes)), other).differences[0]
    assert abs(without.upper - first.upper) > 1e-3


def test_equal_groups_are_not_ranked() -> None:
    codes = random_codes(5, 2, 3)
    result = so.decompose(cube_of(np.stack([codes, codes, 0 * codes]), judge=True))
    assert result.comparison is not None
    assert "j0 = j1 > j2" in str(result)
    assert all(ranking.top_differs == 0 for ranking in result.comparison.rankings)


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
