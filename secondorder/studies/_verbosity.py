"""Verbosity bias: how the judge's preference rises with the length of an answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import xarray as xr

from secondorder._schema import ITEM, REPEAT
from secondorder.errors import CubeError
from secondorder.studies._bands import check_draws, resampled_sums
from secondorder.studies._disagreement import Array
from secondorder.studies._figures import drawn_measures
from secondorder.studies._layout import as_names, lay_out, levels_of
from secondorder.studies._parts import Value
from secondorder.studies._result import StudyResult, measure_table, measured
from secondorder.studies._scores import scored

__all__ = ["verbosity_bias"]

MEASURES = {"slope": "slope per unit of length", "slope_sd": "slope per SD of length", "at_equal": "score at length 0"}
COLLINEAR = 1e-9  # smallest eigenvalue of the standardised predictors' moments that still identifies a slope
NO_ITEM = "no item has a score in every cell"
UNDEFINED = "length does not vary, or is a combination of the controls"


def verbosity_bias(
    data: xr.Dataset | xr.DataArray,
    *,
    length: str | Mapping[str, float],
    scores: Mapping[str, float] | None = None,
    controls: str | Sequence[str] = (),
    by: str | Sequence[str] | None = None,
    valid: tuple[float, float] | None = None,
    repeat: str = REPEAT,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """Least-squares slope of the judge's score on length, with bands over items.

    Parameters
    ----------
    data : Dataset or DataArray
        A verdict cube, or scores. For pairwise verdicts give `scores` (``{"1": 1, "tie": .5, "2": 0}``) and the
        difference of the candidates' lengths; with both orders in the cube the slots cancel.
    length : str or mapping of item to number
        Coordinate of the items, or a number for each of them. A logarithm is often the better scale.
    scores : mapping of class to float, optional
        Default: the class labels as numbers. ⊥ without a score is set aside and counted.
    controls : str or sequence of str
        Numeric item coordinates held fixed, such as the human score: longer answers can be better ones, and a slope
        without such a control is no bias.
    by, valid, repeat, level, draws, seed
        Grouping; range of valid scores; dimension of repeated calls; percentile band over items.

    Returns
    -------
    StudyResult
        ``slope`` (score per unit of length), ``slope_sd`` (score per standard deviation of length), ``at_equal`` (the
        score at length 0 and mean controls: for pairs, of equally long answers).

    Raises
    ------
    CubeError
        When the lengths or controls do not cover the items.

    Examples
    --------
    >>> cube = xr.Dataset({"verdict": ("item", [0, 0, 1, 1])}, coords={"item": list("abcd"), "class": ["1", "2"]})
    >>> found = verbosity_bias(
    ...     cube, length={"a": 30, "b": 10, "c": -10, "d": -30}, scores={"1": 1, "2": 0}, draws=0
    ... )
    >>> round(float(found["slope"].estimate), 4), round(float(found["at_equal"].estimate), 4)
    (0.02, 0.5)
    """
    check_draws(level=level, draws=draws, seed=seed)
    controls = as_names(controls)
    cube, invalid = scored(data, scores=scores, valid=valid)
    inner = [(repeat,) if repeat in cube["score"].dims else ()]
    laid = lay_out(cube, "score", inner=inner, by=by, fill=np.nan)
    cube = cube.assign(invalid=(cube["score"].dims, invalid.astype(float)))
    bad = lay_out(cube, "invalid", inner=inner, by=by, fill=0.0).values
    there = ~np.isnan(laid.values)
    n = there.sum(-1)
    cells = np.where(n > 0, np.where(there, laid.values, 0.0).sum(-1) / np.maximum(n, 1), np.nan)
    score = cells.mean(2)  # (groups, items); NaN where a cell has no valid call
    predictors = np.stack([_numbers(cube, length, "length"), *(_numbers(cube, name, name) for name in controls)])

    fits = [_fit(predictors, row) for row in score]
    stacked = np.concatenate([columns for columns, _ in fits], axis=1)
    sums = np.split(resampled_sums(stacked, draws=draws, seed=seed, strata=laid.strata), len(fits), axis=1)
    points = [read(columns.sum(0)[None])[:, 0] for columns, read in fits]
    held = np.stack([read(part) for (_, read), part in zip(fits, sums, strict=True)])
    reasons = [NO_ITEM if np.isnan(row).all() else UNDEFINED for row in score]
    values = [
        [Value(float(x), why if np.isnan(x) else "") for x in point] for point, why in zip(points, reasons, strict=True)
    ]
    n_invalid = bad.sum((1, 2, 3)).astype(np.int64)
    found, drawn = measured(
        by=laid.by,
        measures=list(MEASURES),
        values=values,
        draws=held,
        level=level,
        counts={
            "n_items": (~np.isnan(score)).sum(1),
            "n_dropped": (np.isnan(score) & laid.inside).sum(1),
            "n_invalid": n_invalid,
        },
    )
    table = measure_table("", found, by=laid.by, labels=MEASURES, counts=("n_items", "n_dropped", "n_invalid"))
    held_fixed = f"held fixed: {', '.join(controls)}" if controls else "nothing held fixed: longer may be better"
    notes = (f"Least squares over items; {held_fixed}.",)
    figure = drawn_measures(found.sel(measure=["slope_sd"]), MEASURES, title="Verbosity bias")
    return StudyResult("Verbosity bias", found, (table,), notes, drawn, (figure,))


def _numbers(cube: xr.Dataset, source: str | Mapping[str, float], name: str) -> Array:
    if isinstance(source, str):
        if source not in cube.variables or cube[source].dims != (ITEM,) or cube[source].dtype.kind not in "iuf":
            raise CubeError(
                f"no numeric coordinate {source!r} of the items",
                place=name,
                remedy="name its column: --coord (assign_coords)",
            )
        values = cube[source].to_numpy().astype(float)
    else:
        items = levels_of(cube, ITEM)
        absent = [item for item in items if item not in source]
        if absent:
            raise CubeError(f"no number for {len(absent)} items, the first {absent[0]!r}", place=name)
        values = np.array([float(source[item]) for item in items])
    if not np.isfinite(values).all():
        raise CubeError(f"{int((~np.isfinite(values)).sum())} values are not finite", place=name)
    return values


def _fit(predictors: Array, score: Array) -> tuple[Array, Callable[[Array], Array]]:
    # Moments that each item adds to, and how their sums give (slope per unit, slope per SD, score at length 0) x draws.
    # Predictors are standardised on all items, so that no draw is ill conditioned by their units.
    used = ~np.isnan(score)
    inside = predictors[:, used] if used.any() else np.zeros((len(predictors), 1))
    middle, spread = inside.mean(1), inside.std(1)
    spread = np.where(spread > 0, spread, 1.0)
    x = (predictors - middle[:, None]) / spread[:, None]
    design = np.concatenate([np.ones((1, len(score))), x, np.where(used, score, 0.0)[None]]).T
    design = np.where(used[:, None], design, 0.0)
    size = design.shape[1]

    def read(sums: Array) -> Array:
        moments = sums.reshape(-1, size, size)
        n = moments[:, :1, :1]
        left, right = moments[:, :-1, :-1] / np.maximum(n, 1), moments[:, :-1, -1:] / np.maximum(n, 1)
        fine = np.isfinite(left).all((1, 2)) & (n[:, 0, 0] > 0)
        fine[fine] = np.linalg.eigvalsh(left[fine])[:, 0] > COLLINEAR
        beta = np.full((len(sums), size - 1), np.nan)
        beta[fine] = np.linalg.solve(left[fine], right[fine])[..., 0]
        slope = beta[:, 1]
        return np.stack([slope / spread[0], slope, beta[:, 0] - slope * middle[0] / spread[0]])

    return (design[:, :, None] * design[:, None, :]).reshape(len(score), -1), read
