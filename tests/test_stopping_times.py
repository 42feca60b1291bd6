"""The items that a certificate takes, in the committed studies: those that the procedure was designed to take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from secondorder import core, standard_components
from secondorder._design import Design
from secondorder.core._sequential import Side
from secondorder.simulate import open_study_result
from secondorder.simulate._files import load_module

ROOT = Path(__file__).parents[1]
STUDIES = ("sequential_population", "sequential_audit")
RESULTS = ROOT / "simulations" / "results"
TAU, ALPHA = 0.02, 0.05

pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="a source distribution carries no results")


@pytest.fixture(scope="module")
def medians() -> dict[str, Any]:
    """By study and point, as the documentation shows them."""
    tables = load_module(ROOT / "docs" / "simulations" / "study_tables.py")
    return {study: tables.medians(study)["median"] for study in STUDIES}


# Ends of the ranges that an earlier simulation gave, and who of our populations meets them; its number of audits is not
# known, so a median of hundreds of items is its own up to some per cent.
MET = [
    ("sequential_population", ("even", 0.0, 2), 153),
    ("sequential_population", ("rare", 0.0, 4), 137),
    ("sequential_population", ("rare", 0.01, 4), 358),
    ("sequential_population", ("rare", 0.01, 2), 404),
    ("sequential_population", ("uneven", 0.05, 4), 24),
    ("sequential_population", ("rare", 0.05, 2), 82),
    ("sequential_population", ("rare-noisy", 0.1, 4), 16),
    ("sequential_population", ("rare", 0.1, 2), 21),
    ("sequential_audit", ("rare", 0.0, 50, 4), 47),
    ("sequential_audit", ("uneven", 0.0, 100, 4), 75),
    ("sequential_audit", ("uneven", 0.0, 419, 4), 117),
    ("sequential_audit", ("even", 0.0, 419, 2), 130),
]


@pytest.mark.parametrize(("study", "point", "earlier"), MET, ids=lambda value: str(value))
def test_median_stops(medians: dict[str, Any], study: str, point: tuple[Any, ...], earlier: int) -> None:
    """Within one item, or 8 %."""
    assert medians[study].loc[point] == pytest.approx(earlier, rel=0.08, abs=1)


def test_spread_costs_items(medians: dict[str, Any]) -> None:
    """No median is below the number of items when each shows exactly its component, but for the luck of 3 %.

    The logarithm of a stake's gain is concave in the item's value: spread makes it grow more slowly.
    """
    design = Design.balanced({"prompt": 6, "order": 2})
    prompt = next(c for c in standard_components(design.names) if c.name == "prompt")
    decided = medians["sequential_population"].dropna()
    assert set(decided.index.get_level_values("U")) == {0.0, 0.01, 0.05, 0.1}
    assert len(decided) == 4 * 4 * 2
    for (_, U, R), median in decided.items():
        bounds = core.item_bounds(design, prompt, core.nominal_kernel(4), R)
        side: Side = "below" if U < TAU else "above"
        fewest = core.least_items(TAU, bounds, side, value=U, alpha=ALPHA, best_stake=False)
        assert fewest is not None
        assert median >= 0.97 * fewest


@pytest.mark.parametrize("study", STUDIES)
def test_false_certificates_are_rarer_than_alpha(study: str) -> None:
    """No rate of false certificates in a committed result is above alpha: not even by the luck of 4,000 audits."""
    size = open_study_result(RESULTS / study).data["size"].values
    assert np.isfinite(size).any()
    assert np.nanmax(size) <= ALPHA
