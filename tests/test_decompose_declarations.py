"""Declarations of a decomposition: kernels, ranks, bands, components and counts that contradict each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder._schema import REASONS
from secondorder.errors import DesignError, InputError, KernelError

from .small_codes import cube_of, random_codes


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
    assert "5 completed, 1 ⊥ set aside, 2 places without a call" in " ".join(str(without).split())


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
