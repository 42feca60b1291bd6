"""Is a judge design as good as people? Bias, error, agreement and rank-biserial correlation of every design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from secondorder._labels._results import Table
from secondorder.core import benjamini_hochberg
from secondorder.studies._bands import check_draws, resampled_sums
from secondorder.studies._design_errors import error_columns, read_errors
from secondorder.studies._design_figures import MOST_GROUPS, draw_levels
from secondorder.studies._design_grid import Grid, make_grid
from secondorder.studies._design_tables import level_tables
from secondorder.studies._disagreement import Array
from secondorder.studies._figures import part_shown
from secondorder.studies._layout import By, as_names, group_labels
from secondorder.studies._paired_tests import signed_rank
from secondorder.studies._parts import Value
from secondorder.studies._result import Drawn, StudyResult, measured
from secondorder.studies._scales import Bounds, Scales
from secondorder.studies._scores import Incomplete

__all__ = ["judge_designs"]

MEASURES = {"bias": "bias", "mae": "MAE", "alpha": "α", "rbc": "RBC"}
NO_DESIGN = "there is no such design"
NO_ITEMS = "no item has both scores"
FLAT = "the scores do not vary"
RANKED = "a rank statistic: see its test"


def judge_designs(
    data: xr.Dataset | xr.DataArray,
    *,
    factors: Sequence[str],
    human: str = "gold",
    scale: str = "scale",
    scales: Scales | None = None,
    to: Bounds = (1, 7),
    by: str | Sequence[str] | None = None,
    without: Mapping[str, str | Sequence[str]] | None = None,
    scores: Mapping[str, float] | None = None,
    incomplete: Incomplete = "common",
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """Compare every judge design of a factorial set with human scores on a scalar task.

    Parameters
    ----------
    data : Dataset or DataArray
        Scores (:func:`make_scores`) or a verdict cube; calls of a cell are averaged.
    factors : sequence of str
        Dimensions that the designs are crossed of: prompt detail, scale, model, effort, …
    human : str
        Variable or coordinate of the items with the human scores, on the scale `to`.
    scale, scales, to
        The factor whose levels are rating scales; (lowest, highest) of each of them (default: what a level such as
        ``1-5`` names), or one pair for all scores; the common scale that they are mapped to, linearly. A score outside
        its scale is invalid: set aside and counted. With neither, scores are taken as they are.
    by : str or sequence of str, optional
        Dimensions or item coordinates to group by, such as the task. Default: none.
    without : mapping of factor to levels, optional
        Levels to leave out in a second reading of the table by levels: are the results driven by them?
    scores : mapping of class to float, optional
        Of a verdict cube.
    incomplete : {"common", "available"}
        Compare designs on the items that all of them scored, or each on its own.
    level, draws, seed
        Percentile band over items.

    Returns
    -------
    StudyResult
        Over the designs (one dimension for each factor): ``bias`` (mean judge - human), ``mae``, ``alpha``
        (Krippendorff, interval, judge and human as raters), ``rbc`` (matched-pairs rank-biserial correlation, zeros
        dropped), with ``pvalue`` of Wilcoxon's signed-rank test and ``qvalue`` (Benjamini-Hochberg over the designs of
        a group). Tables by level give the shares of designs beyond the thresholds of the design-choices study
        (``|RBC| >= .30``, ``|bias| > .2``, MAE > .5 on a 1-7 scale) and the mean sizes.

    Raises
    ------
    CubeError, InputError
        When a factor or the human scores are not there, or a scale has no bounds.

    Examples
    --------
    >>> rows = [{"q": q, "model": m, "scale": s, "score": x, "human": h}
    ...         for q, h, a, b in [(1, 2, 2, 20), (2, 4, 5, 50), (3, 6, 6, 90), (4, 5, 6, 75)]
    ...         for m, shift in (("kind", 1), ("strict", 0)) for s, x in (("1-7", a + shift), ("0-100", b))]
    >>> from secondorder.studies import make_scores
    >>> cube = make_scores(rows, item="q", score="score", facets=["model", "scale"], gold="human")
    >>> found = judge_designs(cube, factors=["model", "scale"], draws=0)
    >>> found["bias"].estimate.sel(model="kind").round(3).to_numpy().tolist()
    [0.275, 1.5]
    """
    check_draws(level=level, draws=draws, seed=seed)
    grid = make_grid(
        data,
        factors=factors,
        human=human,
        scale=scale,
        scales=scales,
        to=to,
        by=by,
        scores=scores,
        incomplete=incomplete,
    )
    people = np.zeros(0) if grid.human is None else grid.human
    columns = error_columns(grid.values, people)  # (groups, items, designs, 6)
    flat = columns.transpose(1, 0, 2, 3).reshape(columns.shape[1], -1)
    drawn = resampled_sums(flat, draws=draws, seed=seed, strata=grid.strata)
    shape = (1 + draws, len(columns), *columns.shape[2:])
    errors = read_errors(np.concatenate([flat.sum(0)[None], drawn]).reshape(shape))
    rbc, pvalue = _ranked(grid, people)
    qvalue = np.stack([benjamini_hochberg(row) for row in pvalue])
    points = np.concatenate([errors[0], rbc[..., None]], axis=-1)  # (groups, designs, 4)
    held = np.concatenate([errors[1:], np.full((*errors[1:].shape[:-1], 1), np.nan)], axis=-1)
    grouping: By = (*grid.by, *grid.factors)
    known = grid.crossed(np.ones((len(points), len(grid.codes), 1)))[..., 0] == 1
    found, kept = measured(
        by=grouping,
        measures=list(MEASURES),
        values=[
            [_value(float(x), name, there, bool(np.isnan(row[0]))) for x, name in zip(row, MEASURES, strict=True)]
            for row, there in zip(_rows(grid.crossed(points)), known.ravel().tolist(), strict=True)
        ],
        draws=grid.crossed(held).transpose(1, 2, 3, 0).reshape(known.size, len(MEASURES), draws),
        level=level,
        counts={"n_items": np.nan_to_num(grid.crossed(columns[..., :1].sum(1))).ravel().astype(np.int64)},
        unbanded={"rbc": RANKED},
    )
    dims = tuple(name for name, _ in grouping)
    lay = tuple(len(levels) for _, levels in grouping)
    tests = grid.crossed(np.stack([pvalue, qvalue], axis=-1))
    found = found.assign(pvalue=(dims, tests[..., 0].reshape(lay)), qvalue=(dims, tests[..., 1].reshape(lay)))
    return StudyResult(
        f"Judge designs: {' × '.join(as_names(factors))}",
        found,
        (*level_tables(grid, points, qvalue, without or {}), _design_table(grid, found, points, qvalue)),
        _notes(grid, to, scale),
        kept,
        (
            Drawn(
                "Error and bias by level", CAPTION + part_shown(grid.by, MOST_GROUPS), lambda: draw_levels(grid, points)
            ),
        ),
    )


CAPTION = "Points: designs; bars: means over the designs of a level. Dashed: |bias| .2, MAE .5."


def _rows(points: Array) -> Array:
    return points.reshape(-1, points.shape[-1])


def _ranked(grid: Grid, people: Array) -> tuple[Array, Array]:
    """Rank-biserial correlation and p-value of every group and design."""
    found = [
        [signed_rank(grid.values[g, :, d] - people) for d in range(grid.values.shape[2])]
        for g in range(len(grid.values))
    ]
    return np.array([[one.correlation for one in row] for row in found]), np.array(
        [[one.pvalue for one in row] for row in found]
    )


def _value(number: float, name: str, there: bool, empty: bool) -> Value:
    lacking = NO_DESIGN if not there else NO_ITEMS if empty else FLAT
    return Value(number, lacking if np.isnan(number) else "")


def _design_table(grid: Grid, found: xr.Dataset, points: Array, qvalue: Array) -> Table:
    percent = f"{100 * float(found.attrs['level']):g} %"
    names = [name for name, _ in (*grid.by, *grid.factors)]
    rows: list[tuple[str | int | float | None, ...]] = []
    for g, group in enumerate(group_labels(grid.by)):
        for d, labels in enumerate(grid.labels):
            one = found.sel(dict(zip(names, (*group, *labels), strict=True))).sel(measure="bias")
            bias, mae, alpha, rbc = map(float, points[g, d])
            band = (float(one["lower"]), float(one["upper"]))
            rows.append((*group, *labels, bias, *band, mae, alpha, rbc, float(qvalue[g, d])))
    return Table("Designs", (*names, "bias", f"lower {percent}", "upper", "MAE", "α", "RBC", "q"), tuple(rows))


def _notes(grid: Grid, to: Bounds, scale: str) -> tuple[str, ...]:
    notes = [f"{len(grid.codes)} designs; bias: judge − human; q: Wilcoxon's test, Benjamini-Hochberg over designs."]
    if scale in [name for name, _ in grid.factors]:
        notes.append(f"Every scale is mapped linearly to {to[0]:g}–{to[1]:g}.")
    for group, invalid, dropped in zip(group_labels(grid.by), grid.n_invalid, grid.n_dropped, strict=True):
        if invalid or dropped:
            where = " / ".join(group) or "all"
            notes.append(f"{where}: {invalid} invalid scores set aside, {dropped} items left out for missing scores.")
    return tuple(notes)
