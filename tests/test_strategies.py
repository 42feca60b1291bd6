"""Strategies: valid by construction, they reach the corners, and what they draw decomposes to the definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from hypothesis import find, given, settings

from secondorder import decompose
from secondorder.testing import oracle_estimate
from secondorder.testing import strategies as so

quick = settings(max_examples=30, deadline=None, database=None)


def test_the_menu_is_short_and_covers_what_it_says() -> None:
    assert len(so.MENU) <= 12
    assert len({(s.design.shape, s.n_classes, s.repeats) for s in so.MENU}) == len(so.MENU)
    assert {len(scenario.design.names) for scenario in so.MENU} == {1, 2, 3}
    kinds = {kind for scenario in so.MENU for kind in scenario.design.populations}
    assert None in kinds
    assert math.inf in kinds
    assert any(kind is not None and kind < math.inf for kind in kinds)


@quick
@given(so.cases(missing=True))
def test_cases_are_valid(case: so.Case) -> None:
    assert (case.law.sum(-1) == 1).all()
    assert (case.law >= 0).all()
    assert ((case.verdicts >= 0).sum(-1) >= 2).all()
    assert case.verdicts.max() < case.scenario.n_classes
    oracle_estimate(case.verdicts, case.scenario.design, case.kernel, pairs="across-repeats")


def test_strategies_reach_the_corners() -> None:
    def found(strategy: Any, condition: Any) -> None:
        find(strategy, condition, settings=settings(max_examples=500, database=None))

    found(so.cases(missing=True), lambda case: (case.verdicts < 0).any())
    found(so.laws((2,), 3), lambda law: (law == 1).any())
    found(so.kernels(3), lambda kernel: kernel[0, 1] == 0)
    found(so.scenarios(facets=3), lambda scenario: not scenario.design.all_fixed)
    found(so.soft_verdicts((2,), 3, 2), lambda soft: ((soft > 0) & (soft < 1)).any())


@quick
@given(so.tables(so.MENU[5], missing=True))
def test_tables_hold_each_call_once(rows: list[dict[str, Any]]) -> None:
    keys = [(row["item"], row["prompt"], row["order"], row["repeat"]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert {row["verdict"] for row in rows} <= {"A", "B", "C"}
    assert 3 * 4 * 2 <= len(rows) <= 3 * 4 * 3


@settings(max_examples=8, deadline=None, database=None)
@given(so.cubes(so.MENU[6], missing=True))
def test_cubes_decompose_to_the_definition(cube: xr.Dataset) -> None:
    """From shuffled rows to labelled estimates: a random and a weighted fixed facet, calls lost here and there."""
    found = decompose(cube, kernel="nominal")
    for field, pairs in (("estimate", "complete"), ("plugin", "plug-in")):
        items = [
            oracle_estimate(codes, so.MENU[6].design, 1 - np.eye(3), pairs=pairs) for codes in cube["verdict"].values
        ]
        for name in items[0]:
            expected = float(sum(item[name] for item in items) / len(items))
            assert math.isclose(getattr(found[name], field), expected, rel_tol=0, abs_tol=1e-12)
