"""Verdicts against the right classes: 1 where a call gives the right class of its item, 0 where it does not."""

from __future__ import annotations

import numpy as np
import xarray as xr

from secondorder._schema import CLASS, CODE_MISSING, ITEM
from secondorder.studies._disagreement import Array
from secondorder.studies._panel import gold_of

__all__ = ["matches", "shares"]


def matches(cube: xr.Dataset, gold: str) -> xr.Dataset | None:
    """The cube with ``score`` 1 or 0 in place of its verdicts; None where the human answers are no classes of it.

    ⊥ is not right. A call that is missing, or whose item has no right class, has no score.

    Raises
    ------
    CubeError
        When the right answers are not one for each item, or name a class that there is not.
    """
    right, _ = gold_of(cube, gold, [str(label) for label in cube[CLASS].to_numpy()], None)
    if right is None:
        return None
    verdict = cube["verdict"]
    wanted = xr.DataArray(right, dims=ITEM)
    codes = xr.DataArray(verdict.to_numpy().astype(np.int64), dims=verdict.dims)
    score = (codes == wanted).astype(float).where((codes != CODE_MISSING) & (wanted >= 0))
    return cube.drop_vars("verdict").assign(score=(verdict.dims, score.transpose(*verdict.dims).to_numpy()))


def shares(means: Array, weights: Array) -> Array:
    """Means of `means` (rows, prompts) over rows that have a value, under `weights` (draws, rows): (draws, prompts)."""
    there = ~np.isnan(means)
    total = weights @ there
    held = weights @ np.where(there, means, 0.0)
    return np.asarray(np.divide(held, total, out=np.full(total.shape, np.nan), where=total > 0))
