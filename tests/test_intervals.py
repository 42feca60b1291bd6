"""Items as a sample: standard errors, joint draws and bands against definitions, enumeration and SciPy."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from secondorder.core._intervals import (
    bca_interval,
    item_errors,
    item_influence,
    percentile_interval,
    simultaneous_interval,
    studentised_interval,
    t_interval,
)
from secondorder.core._resampling import contrasts, ratios, resample

STRATA = np.array([4, 1, 4, 1, 1, 9, 9, 4, 9, 9, 4])


@pytest.fixture(scope="module")
def table() -> np.ndarray:
    return np.random.default_rng(3).exponential(size=(11, 3)).round(3)


def test_stratified_error_is_the_formula_in_fractions(table: np.ndarray) -> None:
    result = item_errors(table, STRATA)
    for column in range(3):
        values = [Fraction(str(x)) for x in table[:, column]]
        parts, sizes = [], []
        for stratum in (1, 4, 9):
            inside = [x for x, g in zip(values, STRATA, strict=True) if g == stratum]
            size, mean = len(inside), sum(inside) / len(inside)
            spread = sum((x - mean) ** 2 for x in inside) / (size - 1)
            parts.append(Fraction(size, 11) ** 2 * spread / size)
            sizes.append(size)
        assert result.estimate[column] == pytest.approx(float(sum(values) / 11), abs=1e-15)
        assert result.se[column] == pytest.approx(float(sum(parts)) ** 0.5, rel=1e-13)
        welch = sum(parts) ** 2 / sum(v**2 / (n - 1) for v, n in zip(parts, sizes, strict=True))
        assert result.df[column] == pytest.approx(float(welch), rel=1e-12)


def test_degrees_of_freedom_are_items_less_strata_from_five_items_a_stratum_on() -> None:
    values = np.arange(10.0)[:, None] ** 2
    assert item_errors(values, np.repeat([0, 1], 5)).df.tolist() == [8.0]
    assert item_errors(values).df.tolist() == [9.0]
    assert item_errors(values[:3]).df.tolist() == [2.0]
    assert item_errors(values, np.repeat([0, 1], [4, 6])).df[0] < 8


def test_what_has_no_error_says_why(table: np.ndarray) -> None:
    single = item_errors(table, [0] * 10 + [1])
    assert np.isnan(single.se).all()
    assert set(single.reason) == {"1 of 2 strata hold a single item: its spread is unknown"}
    assert item_errors(table[:1]).reason[0] == "there is one item: its spread is unknown"
    flat = np.column_stack([np.full(11, 0.1), table[:, 0], np.where(STRATA == 4, 0.3, 0.7)])
    base = resample(flat, STRATA, seed=1, n_draws=50, studentised=True)
    assert base.errors.reason == (
        "the items of each stratum have the same value",
        "",
        "the items of each stratum have the same value",
    )
    assert base.se_draws is not None
    for band in (
        t_interval(base.errors),
        percentile_interval(base.errors, base.draws),
        bca_interval(base.errors, base.draws, base.influence),
        studentised_interval(base.errors, base.draws, base.se_draws),
        simultaneous_interval(base.errors, base.draws),
    ):
        assert np.isnan([band.lower[0], band.upper[0], band.lower[2]]).all()
        assert band.lower[1] < base.errors.estimate[1] < band.upper[1]
        assert band.reason == base.errors.reason
    # Rounding is not spread, and small units are not rounding.
    noise = 0.1 + 1e-17 * np.arange(3)[:, None]
    assert item_errors(noise).reason[0]
    assert not item_errors(1e-13 * np.arange(3)[:, None], scale=1e-12).reason[0]


def test_draws_are_whole_items_within_strata_and_joint(table: np.ndarray) -> None:
    """Indicator columns of the items show how often each was drawn; every other column must follow from them."""
    wide = np.column_stack([table, np.eye(11)])
    base = resample(wide, STRATA, seed=5, n_draws=400, studentised=True)
    drawn = 11 * base.draws[:, 3:]
    counts = drawn.round()
    assert np.abs(drawn - counts).max() < 1e-12
    for stratum in (1, 4, 9):
        inside = counts[:, stratum == STRATA]
        assert (inside.sum(1) == inside.shape[1]).all()
    np.testing.assert_allclose(base.draws[:, :3], counts @ table / 11, rtol=1e-13)
    assert base.se_draws is not None
    for row in range(0, 400, 40):
        chosen = np.repeat(np.arange(11), counts[row].astype(int))
        variance = sum(
            (len(x) / 11) ** 2 * x.var(axis=0, ddof=1) / len(x)
            for x in (table[chosen[STRATA[chosen] == stratum]] for stratum in (1, 4, 9))
        )
        np.testing.assert_allclose(base.se_draws[row, :3] ** 2, variance, rtol=1e-10)


def test_draws_have_the_exact_law_of_resampling() -> None:
    """All 27 resamples of three items are equally likely: chi-squared against their exact distribution.

    False-failure rate 1e-4 for this seed's choice; with 20 000 draws a probability off by 10 % of itself is seen.
    """
    from scipy.special import chdtrc

    values = np.array([0.0, 1.0, 10.0])
    base = resample(values[:, None], seed=11, n_draws=20_000)
    sums, expected = np.unique([sum(pick) for pick in product(values, repeat=3)], return_counts=True)
    observed = np.array([(np.abs(3 * base.draws[:, 0] - total) < 1e-9).sum() for total in sums])
    assert observed.sum() == 20_000
    wanted = expected / 27 * 20_000
    assert chdtrc(len(sums) - 1, ((observed - wanted) ** 2 / wanted).sum()) > 1e-4


def test_draws_depend_on_the_seed_alone(table: np.ndarray) -> None:
    many = np.tile(table, (2000, 1))
    base = resample(many, seed=2, n_draws=70, workers=1)
    threads = resample(many, seed=2, n_draws=70, workers=3)
    fewer = resample(many, seed=2, n_draws=7)
    assert np.array_equal(base.draws, threads.draws)
    assert np.array_equal(base.draws[:7], fewer.draws)
    assert not np.array_equal(base.draws, resample(many, seed=3, n_draws=70).draws)
    assert len(np.unique(base.draws[:, 0])) == 70


def test_percentile_and_bca_are_scipys_on_scipys_own_draws(table: np.ndarray) -> None:
    from scipy.stats import bootstrap

    data = table.T
    errors, influence = item_errors(table), item_influence(table)
    for method in ("percentile", "bca"):
        wanted = bootstrap((data,), np.mean, axis=-1, n_resamples=999, method=method, rng=4, vectorized=True)
        draws = wanted.bootstrap_distribution.T
        got = percentile_interval(errors, draws) if method == "percentile" else bca_interval(errors, draws, influence)
        np.testing.assert_allclose(got.lower, wanted.confidence_interval.low, rtol=1e-10)
        np.testing.assert_allclose(got.upper, wanted.confidence_interval.high, rtol=1e-10)
        assert got.reason == ("", "", "")


def test_ends_on_one_value_of_the_draws_are_no_band() -> None:
    # One item of ten differs: its count in a resample is 1 with probability .39, and both quantiles fall there.
    values = np.zeros((10, 1))
    values[3] = 1.0
    drawn = resample(values, seed=1, n_draws=4000)
    for level, there in ((0.1, False), (0.95, True)):
        for band in (
            percentile_interval(drawn.errors, drawn.draws, level),
            bca_interval(drawn.errors, drawn.draws, drawn.influence, level),
        ):
            assert bool(band.upper[0] > band.lower[0]) is there
            assert bool(np.isnan(band.lower[0])) is bool(band.reason[0]) is not there


def test_studentised_band_is_the_definition(table: np.ndarray) -> None:
    base = resample(table, seed=8, n_draws=999, studentised=True)
    assert base.se_draws is not None
    band = studentised_interval(base.errors, base.draws, base.se_draws, level=0.9)
    ratio = np.sort((base.draws - base.errors.estimate) / base.se_draws, axis=0)
    # With 999 draws the 5 % and 95 % points fall at positions 49.9 and 948.1 counted from 0.
    high = ratio[948] + 0.1 * (ratio[949] - ratio[948])
    low = ratio[49] + 0.9 * (ratio[50] - ratio[49])
    np.testing.assert_allclose(band.lower, base.errors.estimate - high * base.errors.se, rtol=1e-12)
    np.testing.assert_allclose(band.upper, base.errors.estimate - low * base.errors.se, rtol=1e-12)


def test_resamples_without_spread_are_counted() -> None:
    values = np.array([[0.0], [0.0], [0.0], [1.0]])
    base = resample(values, seed=1, n_draws=4000, studentised=True)
    assert base.se_draws is not None
    band = studentised_interval(base.errors, base.draws, base.se_draws)
    flat = np.isin(base.draws[:, 0].round(12), [0.0, 1.0]).sum()
    assert band.undefined_draws[0] == flat > 1000
    assert band.reason[0] == f"{flat} of 4000 draws have no value"


def test_simultaneous_bands_hold_the_joint_level() -> None:
    """Independent normal columns: the level of one must be the m-th root of the joint level.

    20 000 draws: the standard error of the level is below .001, the bound is six of them.
    """
    from scipy.special import stdtr

    values = np.random.default_rng(0).normal(size=(500, 6))
    base = resample(values, seed=1)
    for columns in (1, 6):
        errors = item_errors(values[:, :columns])
        band = simultaneous_interval(errors, base.draws[:, :columns], level=0.9)
        half = (band.upper - band.lower) / 2 / errors.se
        alone = 2 * stdtr(errors.df, half) - 1
        assert np.ptp(alone) < 1e-9
        assert alone[0] == pytest.approx(0.9 ** (1 / columns), abs=0.006)
    twice = np.column_stack([values[:, 0], values[:, 0]])
    doubled = resample(twice, seed=1)
    one = resample(twice[:, :1], seed=1)
    np.testing.assert_allclose(
        simultaneous_interval(doubled.errors, doubled.draws).lower[0],
        simultaneous_interval(one.errors, one.draws).lower[0],
        rtol=1e-9,
    )


def test_contrasts_equal_resampling_the_difference(table: np.ndarray) -> None:
    base = resample(table, STRATA, seed=6, n_draws=200)
    weights = np.array([[1.0, 0.0], [-1.0, 0.5], [0.0, -0.5]])
    got = contrasts(base, weights)
    wanted = resample(table @ weights, STRATA, seed=6, n_draws=200)
    np.testing.assert_allclose(got.draws, wanted.draws, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(got.errors.se, wanted.errors.se, rtol=1e-12)
    same = contrasts(resample(table[:, [0, 0]], seed=1, n_draws=20), [[1.0], [-1.0]])
    assert same.errors.reason == ("every item has the same value",)


def test_ratio_is_the_ratio_of_draws_and_its_error_the_chain_rule(table: np.ndarray) -> None:
    base = resample(table, STRATA, seed=6, n_draws=200)
    got = ratios(base, [0, 1], [2, 2])
    np.testing.assert_allclose(got.draws[:, 1], base.draws[:, 1] / base.draws[:, 2], rtol=1e-12)
    for column in (0, 1):
        top, bottom = table[:, column].mean(), table[:, 2].mean()
        linear = (table[:, column] - top / bottom * table[:, 2]) / bottom
        assert got.errors.se[column] == pytest.approx(item_errors(linear[:, None], STRATA).se[0], rel=1e-12)
    same = ratios(base, [0], [0])
    assert same.errors.reason == ("the items of each stratum have the same value",)


def test_ratio_draws_with_denominator_at_or_below_zero_are_counted() -> None:
    values = np.column_stack([np.arange(1.0, 9.0), [3.0, -1, -1, 1, 1, -1, 1, 1], [-1.0] * 7 + [1.0]])
    base = resample(values, seed=2, n_draws=1000)
    got = ratios(base, [0, 0], [1, 2])
    bad = (base.draws[:, 1] <= 1e-12).sum()
    band = percentile_interval(got.errors, got.draws)
    assert band.undefined_draws[0] == bad > 50
    assert band.reason == (f"{bad} of 1000 draws have no value", "the denominator is -0.75: not positive")
    loose = percentile_interval(got.errors, got.draws, level=0.5)
    kept = got.draws[~np.isnan(got.draws[:, 0]), 0]
    assert loose.lower[0] == np.quantile(kept, 0.25)
