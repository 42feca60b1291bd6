"""Groups compared: what may stand beside what, under which name, and in which order."""

from __future__ import annotations

import numpy as np
import pytest

import secondorder as so
from secondorder.errors import InputError

from .small_codes import cube_of, random_codes


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
