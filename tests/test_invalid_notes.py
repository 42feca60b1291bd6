"""A large part of ⊥ is said below the numbers, with its most frequent reason and what to do."""

from __future__ import annotations

import pytest
import xarray as xr

import secondorder as so
from secondorder._labels._remedies import REMEDIES
from secondorder._schema import INVALID_REASONS, REASONS
from secondorder._statistics._invalid import invalid_notes


def cube_with(bad: int) -> xr.Dataset:
    """40 answers, the first `bad` of them no verdict."""
    cells = [(q, p, r) for q in "12345" for p in "ab" for r in "0123"]
    rows = [{"q": q, "p": p, "r": r, "v": "?" if k < bad else "AB"[k % 2]} for k, (q, p, r) in enumerate(cells)]
    return so.make_cube(rows, item="q", facets=["p"], repeat="r", verdict="v", classes=["A", "B"], invalid=["?"])


def test_up_to_a_tenth_nothing_is_said() -> None:
    assert invalid_notes(cube_with(4), 2) == ()
    cube = cube_with(5)
    (note,) = invalid_notes(cube, 2)
    assert note.startswith("5 of 40 answers are ⊥ (12 %), all declared: ")
    assert invalid_notes(cube[["verdict"]], 2) == (note,)
    assert invalid_notes(cube, None) == ()


@pytest.mark.parametrize("invalid", ["class", "missing"])
def test_the_most_frequent_reason_is_named_where_the_numbers_are(invalid: str) -> None:
    cube = cube_with(7)
    reason = cube["reason"].to_numpy().copy()
    reason.flat[:7] = [REASONS.index(word) for word in ("empty", "truncated", "unparsed", "truncated") * 2][:7]
    cube["reason"] = (cube["reason"].dims, reason)
    # Where ⊥ is set aside, the item that has them is left out: it is spoken of all the same.
    result = so.decompose(cube, invalid=invalid, incomplete="drop-item")
    assert len(result.groups[0].items_dropped) == (invalid == "missing")
    said = f"7 of 40 answers are ⊥ (18 %), most often truncated: {REMEDIES['truncated']}"
    assert said in result.groups[0].notes
    assert said in " ".join(str(result).split())
    assert said in result.to_dict()["groups"][0]["notes"]


def test_every_reason_has_a_remedy() -> None:
    assert set(REMEDIES) == set(INVALID_REASONS)
