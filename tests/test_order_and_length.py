"""Position and verbosity bias, and rank-biserial correlation: real data, least squares, declared rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import secondorder as so
from secondorder import studies
from secondorder.errors import CubeError, InputError

from .small_cubes import cube_of


def test_position_bias_of_nine_judges(position_bias: xr.Dataset, data_dir: Path) -> None:
    rows = pd.read_csv(data_dir / "position_bias" / "repeats.csv.gz").query("bench == 'MTBench'")
    found = studies.position_bias(position_bias, draws=500)
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
    decisive = named.assign(first=named["displayed"] == "A").groupby("judge")["first"].mean()
    for judge, share in decisive.items():
        assert float(found["decisive_first"].estimate.sel(judge=judge)) == pytest.approx(share, abs=1e-12)
    assert (found.data["lower"].sel(measure="preference") < found["preference"].estimate).all()
    assert set(found.data["n_swapped"].to_numpy()) == {96}


def test_a_missing_order_neither_erases_the_other_nor_vanishes() -> None:
    cube = cube_of([[0, 1], [0, -1], [1, 1]], ("item", "order"), ["1", "2", "tie"], order=["AB", "BA"])
    found = studies.position_bias(cube, draws=0)
    assert int(found.data["n_items"]) == 3
    assert int(found.data["n_swapped"]) == 2
    assert int(found.data["n_missing"]) == 1
    assert float(found["first_slot"].estimate) == pytest.approx((2 / 3 + 2 / 2) / 2)
    assert float(found["swap_inconsistency"].estimate) == pytest.approx(1 / 2)
    assert "R >= 2" in found["call_inconsistency"].reason.item()


def test_every_measure_of_position_by_hand() -> None:
    # Named slots: first and first, second and second, neither and second, second and first; the last says one class.
    cube = cube_of([[0, 1], [1, 0], [2, 0], [1, 1]], ("item", "order"), ["1", "2", "tie"], order=["AB", "BA"])
    found = studies.position_bias(cube, draws=0).data["estimate"]
    got = dict(zip(found["measure"].to_numpy().tolist(), found.to_numpy().ravel().tolist(), strict=True))
    assert np.isnan([got.pop("call_inconsistency"), got.pop("swap_excess")]).all()
    assert got == pytest.approx(
        {
            "first_slot": (1 / 4 + 2 / 4) / 2,
            "second_slot": (2 / 4 + 2 / 4) / 2,
            "neither": 1 / 8,
            "preference": -1 / 8,
            "decisive_first": 3 / 7,
            "swap_inconsistency": 3 / 4,
            "primacy": 1 / 4,
            "recency": 1 / 4,
        }
    )


def test_position_bias_needs_to_know_who_stands_first() -> None:
    cube = cube_of([[0, 1]], ("item", "order"), ["x", "y"], order=["xy", "yx"])
    with pytest.raises(CubeError, match="who stands first"):
        studies.position_bias(cube)
    swapped = studies.position_bias(cube, first={"xy": "y", "yx": "x"}, draws=0)
    assert float(swapped["preference"].estimate) == -1
    with pytest.raises(CubeError, match="two different classes"):
        studies.position_bias(cube, first={"xy": "y", "yx": "y"})
    with pytest.raises(CubeError, match="exactly two"):
        studies.position_bias(cube.isel(order=[0]))


def test_classes_in_the_order_of_the_alphabet_name_no_candidate() -> None:
    """Of other, ref and tie the first would be taken for the candidate that AB shows first: the sign would turn."""
    rows = [{"q": q, "order": order, "v": v} for q, pair in enumerate(("ro", "rr", "ot", "rr"))
            for order, v in zip(("AB", "BA"), pair, strict=True)]  # fmt: skip
    table = [{**row, "v": {"r": "ref", "o": "other", "t": "tie"}[row["v"]]} for row in rows]
    asked = {"item": "q", "facets": ["order"], "verdict": "v", "number_repeats": True}
    found = so.make_cube(table, **asked)
    with pytest.raises(CubeError, match="order of the alphabet"):
        studies.position_bias(found)
    declared = so.make_cube(table, **asked, classes=["ref", "other", "tie"])
    told = studies.position_bias(found, first={"AB": "ref", "BA": "other"}, draws=0)["preference"].estimate
    assert float(told) == float(studies.position_bias(declared, draws=0)["preference"].estimate)


def test_verbosity_slope_is_least_squares_and_holds_controls_fixed() -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(1)
    length, quality = rng.normal(0, 80, 200), rng.normal(size=200)
    y = 3 + 0.004 * length + 0.5 * quality + rng.normal(0, 0.3, 200)
    data = xr.Dataset({"score": ("item", y)}, coords={"words": ("item", length), "quality": ("item", quality)})
    found = studies.verbosity_bias(data, length="words", controls=["quality"], draws=500)
    model = sm.OLS(y, sm.add_constant(np.stack([length, quality], axis=1))).fit()
    assert float(found["slope"].estimate) == pytest.approx(model.params[1], abs=1e-12)
    assert float(found["slope_sd"].estimate) == pytest.approx(model.params[1] * length.std(), abs=1e-12)
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
