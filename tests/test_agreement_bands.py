"""Bands of agreement: draws of items, what they share, and draws that have no value."""

from __future__ import annotations

import numpy as np
import pytest

from secondorder import studies
from secondorder.errors import InputError
from secondorder.studies import agreement
from secondorder.studies._bands import NO_SPREAD, band, item_draws, resampled_sums

from .small_cubes import cube_of

NAN = float("nan")


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


def test_equal_groups_share_their_draws() -> None:
    one = np.random.default_rng(0).integers(0, 2, (20, 3))
    found = agreement(cube_of([one, one], ("judge", "item", "prompt"), ["a", "b"], judge=["x", "y"]), draws=300)
    table = studies.differences(found, "judge")
    assert all(row[3] == 0 and np.isnan(row[4]) for row in table.rows)
    assert float(abs(found.draws.sel(judge="x") - found.draws.sel(judge="y")).max()) < 1e-12  # type: ignore[union-attr]
    for dim in ("prompt", "draw"):
        with pytest.raises(InputError, match="no grouping"):
            studies.differences(found, dim)
    for level in (95, 0):
        with pytest.raises(InputError, match=f"level={level}"):
            studies.differences(found, "judge", level=level)


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
