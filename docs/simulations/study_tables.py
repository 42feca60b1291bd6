"""What the pages of this folder share: reading the committed results, and numbers with their errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
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
    return open_study_result(RESULTS / study).data


def shown(table: pd.DataFrame, percent: bool = False) -> list[str]:
    """Value and Monte Carlo standard error as one text; shares in percent where asked for."""
    scale = 100 if percent else 1
    pairs = zip(table["value"], table["mcse"], strict=True)
    return [with_error(scale * value, scale * error) for value, error in pairs]


def medians(study: str) -> pd.DataFrame:
    """Items after which half of the audits is decided (estimands ``by n``), with the Monte Carlo standard error."""
    whole = summary(study)
    place = [name for name in ("effect", "U", "N", "R") if name in whole]
    table = whole[whole["estimand"].str.startswith("by ") & (whole["measure"] == "power")]
    error = 0.5 / np.sqrt(dataset(study).attrs["replicates"])
    found = pd.DataFrame(table.groupby(place, sort=False)[["estimand", "value"]].apply(_median, error=error))
    # Where every audit takes the same number of items, it is known to the item.
    items = whole[whole["estimand"] == "items"].pivot_table(index=place, columns="measure", values="value", sort=False)
    same = items.index[items["empirical_se"] == 0]
    found.loc[same, "median"], found.loc[same, "mcse"] = items.loc[same, "bias"], 0.0
    return found


def _median(group: pd.DataFrame, error: float) -> pd.Series:
    """Between two looks by linear interpolation; its error from that of a share of one half."""
    looks = group["estimand"].str.removeprefix("by ").astype(int).to_numpy()
    order = np.argsort(looks)
    looks, decided = looks[order], group["value"].to_numpy()[order]

    def after(share: float) -> float:
        if decided[-1] < share:
            return np.nan
        at = int(np.argmax(decided >= share))
        if at == 0:
            return float(looks[0])
        part = (share - decided[at - 1]) / (decided[at] - decided[at - 1])
        return float(looks[at - 1] + part * (looks[at] - looks[at - 1]))

    # A number of items is whole: the first by which half of the audits is decided.
    return pd.Series({"median": np.ceil(after(0.5)), "mcse": (after(0.5 + 2 * error) - after(0.5 - 2 * error)) / 4})
