"""Judge designs on binary tasks: counts by hand, relabellings, leniency, and designs against themselves."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import xarray as xr

from secondorder.errors import CubeError, InputError
from secondorder.studies import binary_designs
from secondorder.studies._binary_grid import make_binary_grid
from secondorder.studies._binary_impact import choice_of, mcnemar_pairs
from secondorder.studies._paired_tests import mcnemar

from .small_designs import DETAILS


def test_binary_numbers_equal_counting() -> None:
    rng = np.random.default_rng(2)
    verdict = rng.integers(0, 3, (50, 3, 2))  # class 2 is ⊥
    right = rng.integers(0, 2, 50)
    cube = xr.Dataset(
        {"verdict": (("item", "detail", "model"), verdict)},
        coords={"class": ["FALSE", "TRUE", "⊥"], "detail": DETAILS, "model": ["a", "b"],
                "gold": ("item", np.array(["FALSE", "TRUE"])[right])},
    )  # fmt: skip
    found = binary_designs(cube, factors=["detail", "model"], accept="TRUE", draws=0, permutations=50)
    pooled = {}
    for k, detail in enumerate(DETAILS):
        errors = [0, 0, 0]
        for m, model in enumerate(["a", "b"]):
            said = verdict[:, k, m]
            accepts, rejects = int(((said == 1) & (right == 0)).sum()), int(((said == 0) & (right == 1)).sum())
            here = found[{"detail": detail, "model": model}]
            assert float(here.estimate.sel(measure="accuracy")) == pytest.approx(np.mean(said == right))
            assert float(here.estimate.sel(measure="leniency")) == pytest.approx(accepts / (accepts + rejects))
            assert float(here.n_errors) == accepts + rejects
            assert float(here.n_invalid) == (said == 2).sum()
            errors = [errors[0] + accepts, errors[1] + rejects, errors[2] + int((said == right).sum())]
        pooled[detail] = (errors[2] / 100, errors[0] / (errors[0] + errors[1]))
    impact = found.data.sel(choice="detail")
    for what, at in (("accuracy", 0), ("leniency", 1)):
        moves = [abs(a[at] - b[at]) for a, b in combinations(pooled.values(), 2)]
        assert float(impact["impact_average"].sel(impact=what)) == pytest.approx(np.mean(moves))
        assert float(impact["impact_largest"].sel(impact=what)) == pytest.approx(max(moves))
    switch = [np.mean(verdict[:, i] != verdict[:, k]) for i, k in combinations(range(3), 2)]
    assert float(impact["impact_average"].sel(impact="switch")) == pytest.approx(np.mean(switch))
    row = next(row for row in found.tables[2].rows if row[1] == "long")
    before, after = verdict[:, 0], verdict[:, 2]
    expected = [np.mean(before != after), np.mean((before == 0) & (after == 1)), np.mean((before == 1) & (after == 0))]
    assert row[-3:] == pytest.approx(expected)
    assert row[-4] == ((verdict[:, 2] != 2) & (verdict[:, 2] != right[:, None])).sum()  # errors; ⊥ is none of them
    grid = make_binary_grid(cube, factors=["detail", "model"], accept="TRUE", gold="gold", by=None, incomplete="common")
    tests = mcnemar_pairs(grid, 0, choice_of(grid, 1, 0))[0]
    ok = verdict == right[:, None, None]
    assert tests.tolist() == [mcnemar(int((~ok[:, k, 0] & ok[:, k, 1]).sum()), int((ok[:, k, 0] & ~ok[:, k, 1]).sum()))
                              for k in range(3)]  # fmt: skip


def test_a_relabelling_without_leniency_counts_against_the_choice() -> None:
    """Two false accepts at one level and a false reject at the other, relabelled: all eight ways by hand.

    Two keep the accepts together and apart from the reject (leniencies 1 and 0), four part the accepts (1 and 1/2), and
    two leave a level without errors and so without leniency. p is 4/8, and 2/8 if the last two were left out of the
    count; the mean of those with a leniency is 2/3. Both within five standard errors of 999 relabellings (6e-7).
    """
    gold = ["FALSE", "FALSE", "TRUE"]
    cube = xr.Dataset(
        {"verdict": (("item", "detail"), [[1, 0], [1, 0], [1, 0]])},
        coords={"class": ["FALSE", "TRUE"], "gold": ("item", gold)},
    )
    found = binary_designs(cube, factors=["detail"], accept="TRUE", draws=0, permutations=999).data
    leniency = found.sel(choice="detail", impact="leniency")
    assert float(leniency["impact_average"]) == 1.0
    assert float(leniency["impact_pvalue"]) == pytest.approx(1 / 2, abs=0.08)
    assert float(leniency["impact_null"]) == pytest.approx(2 / 3, abs=0.043)


def test_leniency_is_pooled_and_repeats_show_what_a_design_does_to_itself() -> None:
    rng = np.random.default_rng(4)
    right = np.arange(300) % 2
    flip = rng.random((300, 2, 3, 4)) < np.where(right == 0, 0.15, 0.05)[:, None, None, None]
    verdict = np.where(flip, 1 - right[:, None, None, None], right[:, None, None, None])
    cube = xr.Dataset(
        {"verdict": (("item", "detail", "model", "repeat"), verdict)},
        coords={"class": ["FALSE", "TRUE"], "gold": ("item", np.array(["FALSE", "TRUE"])[right])},
    )
    found = binary_designs(cube, factors=["detail", "model"], accept="TRUE", draws=100, permutations=99)
    table = {row[0]: row for row in found.tables[1].rows}
    # Calls of a design are independent here: it switches against itself as often as against another design, in .18 of
    # the pairs. Over data sets the difference has a spread of .0027: beyond five of them with probability 6e-7.
    for choice in ("detail", "model"):
        assert float(table[choice][4]) == pytest.approx(float(table[choice][6]), abs=0.0135)  # type: ignore[arg-type]
    # Shares of pooled errors, and the share in the pool of all: their spread is .0006, of 200 other seeds the largest
    # difference .0038, and .01 is far beyond.
    wrong = flip.mean((1, 2, 3))
    expected = wrong[right == 0].sum() / wrong.sum()
    levels = [row for row in found.tables[0].rows if row[0] == "detail"]
    assert np.mean([float(row[3]) for row in levels]) == pytest.approx(expected, abs=0.01)  # type: ignore[arg-type]
    for wrong_request, words in (
        ({"accept": "MAYBE"}, "accept='MAYBE' with the classes FALSE, TRUE"),
        ({"reference": {"detail": "x"}}, "detail has no level 'x'"),
        ({"reference": {"size": "x"}}, "no factor 'size'"),
    ):
        with pytest.raises(InputError, match=words):
            binary_designs(cube, **{"factors": ["detail", "model"], "accept": "TRUE", **wrong_request})  # type: ignore
    with pytest.raises(CubeError, match="no right answers"):
        binary_designs(cube.drop_vars("gold"), factors=["detail"], accept="TRUE")
