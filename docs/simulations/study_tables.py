"""What the pages of this folder share: reading the committed results, and numbers with their errors."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import xarray as xr

from secondorder.simulate import open_study_result, with_error

RESULTS = Path(__file__).resolve().parents[2] / "simulations" / "results"


def summary(study: str) -> pd.DataFrame:
    """One row per point, estimator, estimand and measure."""
    # "null" and "none" are levels here, not missing values.
    return pd.read_csv(RESULTS / study / "summary.csv", keep_default_na=False, na_values=[""])


def dataset(study: str) -> xr.Dataset:
    """Every measure on the grid of factors."""
    return open_study_result(RESULTS / study / "results.nc").data


def shown(table: pd.DataFrame, percent: bool = False) -> list[str]:
    """Value and Monte Carlo standard error as one text; shares in percent where asked for."""
    scale = 100 if percent else 1
    pairs = zip(table["value"], table["mcse"], strict=True)
    return [with_error(scale * value, scale * error) for value, error in pairs]
