"""Which design choice matters? Direction, size, error and ranking for every factor, with tests and left-out levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from secondorder._labels._results import Table
from secondorder._statistics._checked import MOST_DRAWS, whole
from secondorder.core import benjamini_hochberg
from secondorder.studies._design_errors import error_columns, read_errors
from secondorder.studies._design_figures import draw_impacts
from secondorder.studies._design_grid import Grid, make_grid
from secondorder.studies._design_tables import FALSE_DISCOVERY, LARGE_BIAS, MEDIUM, Row, stars
from secondorder.studies._disagreement import Array
from secondorder.studies._factor_impact import (
    IMPACTS,
    Contrast,
    contrast_of,
    impacts,
    largest_changes,
    null_errors,
)
from secondorder.studies._layout import By, as_names, group_labels
from secondorder.studies._paired_tests import signed_rank
from secondorder.studies._parts import Value
from secondorder.studies._result import Drawn, StudyResult, measured
from secondorder.studies._scales import Bounds, Scales
from secondorder.studies._scores import Incomplete

__all__ = ["factor_effects"]

ONE_LEVEL = "no two designs differ in this factor alone"
ONE_SETTING = "the other factors have fewer than two settings to rank"
NO_ITEM = "a design has no item with both scores"
GROWS = "it grows with noise: see its value without effect, and the test"
DOTS = ((1, "–"), (2, "•"), (4, "••"))
MOVED_SHARE, MOVED_POINTS = 0.15, 0.05


def factor_effects(
    data: xr.Dataset | xr.DataArray,
    *,
    factors: Sequence[str],
    human: str = "gold",
    scale: str = "scale",
    scales: Scales | None = None,
    to: Bounds = (1, 7),
    by: str | Sequence[str] | None = None,
    scores: Mapping[str, float] | None = None,
    incomplete: Incomplete = "common",
    permutations: int = 499,
    seed: int = 0,
) -> StudyResult:
    """Say for every factor of a design what it changes, over all pairs of designs that differ in it alone.

    Parameters
    ----------
    data, factors, human, scale, scales, to, by, scores, incomplete
        As in :func:`judge_designs`.
    permutations : int
        Random relabellings of a factor's levels inside every item and setting of the other factors; 0: no tests.
    seed : int

    Returns
    -------
    StudyResult
        For each group and factor: ``direction`` (share of pairs whose bias changes sign), ``size`` (mean change of the
        signed bias), ``error`` (mean change of the mean absolute error), ``best`` (mean change in the ranking of the
        other settings by alpha); beside each ``without_effect``, what call noise alone gives, its ``pvalue`` and
        ``qvalue`` (Benjamini-Hochberg over the factors and measures of a group); ``average_of_max`` and ``max_of_max``
        of size and error. Further tables: paired Wilcoxon tests of all pairs by level, and what changes when a level is
        left out.

    Raises
    ------
    CubeError, InputError
        As :func:`judge_designs`.

    Notes
    -----
    A mean of absolute changes is above 0 for any two noisy designs. Its reference is the same mean with the levels
    relabelled, which keeps items, settings and noise; p counts relabellings with as large a mean, one-sided.

    Examples
    --------
    >>> rows = [{"q": q, "model": m, "detail": d, "score": h + shift + more, "human": h}
    ...         for q, h in enumerate([2, 4, 6, 5, 3, 4]) for m, shift in (("kind", 1), ("strict", -1))
    ...         for d, more in (("short", 0), ("long", 0.25))]
    >>> from secondorder.studies import make_scores
    >>> cube = make_scores(rows, item="q", score="score", facets=["model", "detail"], gold="human")
    >>> found = factor_effects(cube, factors=["model", "detail"], permutations=0)
    >>> found["size"].estimate.to_numpy().tolist(), found["direction"].estimate.to_numpy().tolist()
    ([2.0, 0.25], [1.0, 0.0])
    """
    whole(permutations, "permutations", most=MOST_DRAWS)
    whole(seed, "seed")
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
    names = [name for name, _ in grid.factors]
    errors = read_errors(error_columns(grid.values, people).sum(1))  # (groups, designs, 3)
    contrasts = [contrast_of(grid, f) for f in range(len(names))]
    estimate = np.stack([impacts(errors, one) for one in contrasts], axis=1)  # (groups, factors, measures)
    rng = np.random.default_rng(seed)
    nulls = [
        [impacts(null_errors(values, people, one, permutations=permutations, rng=rng), one) for one in contrasts]
        for values in grid.values
    ]
    without, pvalue = _tested(estimate, nulls)
    qvalue = _by_group(pvalue)
    grouping: By = (*grid.by, ("factor", tuple(names)))
    data_, _ = measured(
        by=grouping,
        measures=list(IMPACTS),
        values=[
            [_value(float(x), len(contrast.first), bool(np.isnan(one[1]))) for x in one]
            for row in estimate
            for one, contrast in zip(row, contrasts, strict=True)
        ],
        draws=np.zeros((estimate[..., 0].size, len(IMPACTS), 0)),
        level=0.95,
        counts={"n_pairs": np.tile([len(one.first) for one in contrasts], len(errors))},
        unbanded=dict.fromkeys(IMPACTS, GROWS),
    )
    largest = np.array([[largest_changes(one, contrast) for contrast in contrasts] for one in errors])
    data_ = _with_tests(data_, grouping, without, pvalue, qvalue, largest)
    tables = [
        _summary_table(grid, estimate, qvalue),
        _magnitude_table(grid, estimate, without, pvalue, largest, contrasts),
        _pair_table(grid, people, contrasts),
        _left_out_table(grid, errors, estimate),
    ]
    panels = {name: estimate[0, :, k] for k, name in enumerate(IMPACTS)}
    reference = {name: without[0, :, k] for k, name in enumerate(IMPACTS)} if permutations else {}
    return StudyResult(
        f"Impact of the design choices: {', '.join(as_names(factors))}",
        data_,
        tuple(tables),
        _notes(grid, permutations),
        None,
        (Drawn("Impact of the design choices", CAPTION, lambda: draw_impacts(names, panels, reference)),),
    )


def _value(number: float, n_pairs: int, empty: bool) -> Value:
    # Where sizes are known, only ranks can be missing.
    lacking = ONE_LEVEL if not n_pairs else NO_ITEM if empty else ONE_SETTING
    return Value(number, lacking if np.isnan(number) else "")


CAPTION = "Bars: the first group. Ticks: the mean if the factor had no effect."


def _by_group(pvalue: Array) -> Array:
    """Over the factors and measures of each group."""
    return np.stack([benjamini_hochberg(one.ravel()).reshape(one.shape) for one in pvalue])


def _tested(estimate: Array, nulls: Sequence[Sequence[Array]]) -> tuple[Array, Array]:
    """Mean without effect and p-value of every group, factor and measure."""
    without, pvalue = np.full(estimate.shape, np.nan), np.full(estimate.shape, np.nan)
    for g, row in enumerate(nulls):
        for f, null in enumerate(row):
            if len(null) and not np.isnan(estimate[g, f]).all():
                without[g, f] = null.mean(0)
                pvalue[g, f] = (1 + (null >= estimate[g, f] - 1e-9).sum(0)) / (1 + len(null))
    return without, np.where(np.isnan(estimate), np.nan, pvalue)


def _with_tests(
    data: xr.Dataset, grouping: By, without: Array, pvalue: Array, qvalue: Array, largest: Array
) -> xr.Dataset:
    dims = tuple(name for name, _ in grouping)
    shape = tuple(len(levels) for _, levels in grouping)
    largest = largest.reshape((*shape, 2, 2))
    data = data.assign(
        {
            name: ((*dims, "measure"), array.reshape((*shape, -1)))
            for name, array in (("without_effect", without), ("pvalue", pvalue), ("qvalue", qvalue))
        }
    )
    return data.assign(
        average_of_max=((*dims, "change"), largest[..., 0]), max_of_max=((*dims, "change"), largest[..., 1])
    ).assign_coords(change=["size", "error"])


def _summary_table(grid: Grid, estimate: Array, qvalue: Array) -> Table:
    rows: list[Row] = []
    for g, group in enumerate(group_labels(grid.by)):
        for f, (name, _) in enumerate(grid.factors):
            direction, size, error, best = map(float, estimate[g, f])
            shown = [f"{x:.2f}{stars(float(qvalue[g, f, k]))}" for k, x in ((1, size), (2, error))]
            rows.append((*group, name, "–" if np.isnan(direction) else f"{100 * direction:.0f} %", *shown, _dots(best)))
    columns = (*(name for name, _ in grid.by), "design choice", "dir.", "size", "error", "best")
    note = "Stars: q < .05, .01, .001 against relabelled levels. Best: ranks moved, – <1, • 1–2, •• 2–4, ••• ≥4."
    return Table("Impact of each design choice", columns, tuple(rows), (note,))


def _dots(moved: float) -> str:
    return "" if np.isnan(moved) else next((text for limit, text in DOTS if moved < limit), "•••")


def _magnitude_table(
    grid: Grid, estimate: Array, without: Array, pvalue: Array, largest: Array, contrasts: Sequence[Contrast]
) -> Table:
    rows: list[Row] = []
    for g, group in enumerate(group_labels(grid.by)):
        for f, (name, _) in enumerate(grid.factors):
            for k, what in ((1, "size"), (2, "error")):
                numbers = (estimate[g, f, k], without[g, f, k], pvalue[g, f, k], *largest[g, f, k - 1])
                rows.append((*group, name, what, *map(float, numbers), len(contrasts[f].first)))
    columns = (*(n for n, _ in grid.by), "choice", "", "average", "no effect", "p", "avg of max", "max of max", "pairs")
    note = "No effect: the average with the levels relabelled inside items and settings."
    return Table("Magnitude, in points of the common scale", columns, tuple(rows), (note,))


def _pair_table(grid: Grid, people: Array, contrasts: Sequence[Contrast]) -> Table:
    """Paired tests of all pairs of designs, by the levels that they involve."""
    rows: list[Row] = []
    for g, group in enumerate(group_labels(grid.by)):
        scores = grid.values[g]
        for (name, levels), one in zip(grid.factors, contrasts, strict=True):
            beyond = np.concatenate([_beyond(source, one) for source in (scores, np.abs(scores - people[:, None]))])
            for k, label in enumerate(levels):
                inside = (one.levels == k).any(1)
                if inside.any():
                    rows.append((*group, name, label, *map(float, beyond[:, inside].mean(1)), int(inside.sum())))
    columns = (*(n for n, _ in grid.by), "choice", "level", *("sig.", "|RBC|≥.3", "Δ>.2") * 2, "pairs")
    notes = (
        "Shares of the pairs that involve the level: first of the scores (bias), then of the absolute errors.",
        "Sig.: Wilcoxon's signed-rank test, q < .05 by Benjamini-Hochberg over the pairs of a choice.",
    )
    return Table("Pairs of designs that differ in one choice", columns, tuple(rows), notes)


def _beyond(source: Array, contrast: Contrast) -> Array:
    """Whether each pair differs significantly, by a medium effect, by a large amount: (3, pairs)."""
    gaps = (source[:, contrast.first] - source[:, contrast.second]).T
    tests = [signed_rank(gap) for gap in gaps]
    moved = np.array([abs(float(gap[~np.isnan(gap)].mean())) if not np.isnan(gap).all() else np.nan for gap in gaps])
    qvalue = benjamini_hochberg(np.array([one.pvalue for one in tests]))
    rbc = np.abs(np.array([one.correlation for one in tests]))
    return np.stack([qvalue < FALSE_DISCOVERY, rbc >= MEDIUM, moved > LARGE_BIAS]).astype(float)


def _left_out_table(grid: Grid, errors: Array, estimate: Array) -> Table:
    """Impacts of every factor without one level of another or of its own, where they change much."""
    rows: list[Row] = []
    tried = 0
    for f, (factor, levels) in enumerate(grid.factors):
        for k, label in enumerate(levels if len(levels) > 2 else ()):
            kept = np.flatnonzero(grid.codes[:, f] != k)
            less = grid.keep(kept.tolist())
            for h, (name, _) in enumerate(grid.factors):
                after = impacts(errors[:, kept], contrast_of(less, h))
                moved = np.abs(after - estimate[:, h])
                tried += len(moved)
                for g, group in enumerate(group_labels(grid.by)):
                    if moved[g, 0] >= MOVED_SHARE or (moved[g, 1:3] >= MOVED_POINTS).any():
                        both = np.stack([estimate[g, h, :3], after[g, :3]], axis=1).ravel()
                        rows.append((*group, f"{factor} {label}", name, *map(float, both)))
    columns = (*(n for n, _ in grid.by), "left out", "choice", "dir.", "less", "size", "less", "error", "less")
    note = (
        f"{len(rows)} of {tried} changes of at least {MOVED_SHARE:g} (direction) or {MOVED_POINTS:g} points are shown. "
        "Levels of factors with two are not left out."
    )
    return Table("What a single level drives", columns, tuple(rows), (note,))


def _notes(grid: Grid, permutations: int) -> tuple[str, ...]:
    notes = [f"{len(grid.codes)} designs. Pairs differ in one choice alone."]
    if permutations:
        notes.append(
            f"Tests: {permutations} relabellings of a factor's levels inside items and settings; p is at least "
            f"{1 / (permutations + 1):.2g}."
        )
    for group, invalid, dropped in zip(group_labels(grid.by), grid.n_invalid, grid.n_dropped, strict=True):
        if invalid or dropped:
            where = " / ".join(group) or "all"
            notes.append(f"{where}: {invalid} invalid scores set aside, {dropped} items left out for missing scores.")
    return tuple(notes)
