"""What every test shares: real data, and skips that are visible."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import xarray as xr

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("SECONDORDER_DATA", ROOT.parent / "shared" / "data"))
REQUIRED = {name.strip() for name in os.environ.get("SECONDORDER_REQUIRE", "").split(",") if name.strip()}


def need(what: str, present: bool, how: str) -> None:
    """Skip visibly when `what` is absent; fail instead when SECONDORDER_REQUIRE names it."""
    if present:
        return
    reason = f"{what} is not here: {how}"
    if what in REQUIRED:
        pytest.fail(f"SECONDORDER_REQUIRE={what}, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of the real data with exact answers."""
    need("data", DATA.is_dir(), "set SECONDORDER_DATA to the folder of real data")
    return DATA


@pytest.fixture(scope="session")
def hanna(data_dir: Path) -> xr.Dataset:
    """Scores of HANNA with human ones, read once."""
    from .real_scores import read_hanna

    return read_hanna(data_dir)


@pytest.fixture(scope="session")
def judge_consistency(data_dir: Path) -> xr.Dataset:
    """Verdicts of two judges on ten items, under two prompts, twenty times each; read once."""
    import secondorder as so

    return so.read_table(
        data_dir / "judge_consistency" / "calls.csv", item="item", facets=["prompt"], repeat="repeat",
        verdict="verdict", classes=["A", "B", "tie"], invalid=[""], by="judge",
    )  # fmt: skip


@pytest.fixture(scope="session")
def position_bias(data_dir: Path) -> xr.Dataset:
    """Verdicts of nine judges on 96 pairs of answers, in both orders, three times each; read once."""
    import secondorder as so

    return so.read_table(
        data_dir / "position_bias" / "repeats.csv.gz", item=["question", "opponent"], facets=["order"], repeat="rep",
        verdict="verdict", classes=["ref", "other", "tie"], invalid=["invalid"], by="judge", where="bench=MTBench",
    )  # fmt: skip
