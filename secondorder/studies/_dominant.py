"""Which design choice is the dominant source of variance? The generic decomposition of the designs' verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._design import Component, Design, standard_components
from secondorder._labels._results import Table
from secondorder.core import plugin_from
from secondorder.errors import CubeError
from secondorder.studies._bands import check_draws, resampled_sums
from secondorder.studies._design_figures import draw_shares
from secondorder.studies._design_grid import Grid, make_grid
from secondorder.studies._design_tables import Row
from secondorder.studies._disagreement import Array
from secondorder.studies._layout import By, as_names, group_labels
from secondorder.studies._parts import Value, quotient
from secondorder.studies._result import Drawn, StudyResult, measured, reason_notes
from secondorder.studies._scales import Bounds, Scales

__all__ = ["dominant_source"]

SQUARED = np.array([[0.0, 0.0, 0.5], [0.0, -1.0, 0.0], [0.5, 0.0, 0.0]])
"""Half the squared difference of two scores as a bilinear form of (1, score, squared score)."""

MEASURES = {"variance": "variance", "share": "share"}
NO_ITEM = "no item has a score in every design"
NO_VARIANCE = "the scores do not vary"
ONE_CALL = "no item has two calls in every cell: call noise stands with the interaction of all factors"


def dominant_source(
    data: xr.Dataset | xr.DataArray,
    *,
    factors: Sequence[str],
    scale: str = "scale",
    scales: Scales | None = None,
    to: Bounds = (1, 7),
    by: str | Sequence[str] | None = None,
    scores: Mapping[str, float] | None = None,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """Split the variance of an item's scores over designs into the factors, their interactions, and call noise.

    Parameters
    ----------
    data, factors, scale, scales, to, by, scores
        As in :func:`judge_designs`; the factors must be fully crossed. Human scores are not needed.
    level, draws, seed
        Percentile band over items.

    Returns
    -------
    StudyResult
        For each group and component ``variance`` (mean over items, in squared points) and its ``share`` of the total;
        ``wide``, the part of the variance that is the same for all items (a factor's level moves every item alike).

    Raises
    ------
    CubeError
        When the factors are not fully crossed on any item.

    Notes
    -----
    The levels are taken as a sample, and disagreement is half the squared difference of two scores: the components are
    those of generalizability theory, unbiased from pairs of distinct cells alone. Only the interaction of all factors
    needs repeats to be told from call noise: it is what call noise leaves of the two together, and call noise is that
    of the items with two calls or more in every cell (``n_repeated``). Estimates are not clipped: a component whose
    truth is 0 is often negative.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = 4 + np.array([-1.0, 1.0])[:, None, None] + rng.normal(0, 0.5, (2, 3, 200))
    >>> cube = xr.Dataset({"score": (("model", "detail", "item"), score)})
    >>> found = dominant_source(cube, factors=["model", "detail"], draws=0)
    >>> found["share"].estimate.sel(component=["model", "detail"]).round(1).to_numpy().tolist()
    [0.9, 0.0]
    """
    check_draws(level=level, draws=draws, seed=seed)
    grid = make_grid(data, factors=factors, human=None, scale=scale, scales=scales, to=to, by=by, scores=scores)
    sizes = [len(levels) for _, levels in grid.factors]
    several = [f for f, size in enumerate(sizes) if size > 1]
    if not several or len(grid.codes) != int(np.prod(sizes)):
        raise CubeError(
            f"{len(grid.codes)} of {int(np.prod(sizes))} combinations of the levels occur",
            place="factors",
            remedy="the decomposition needs factors that are fully crossed, one of them with two levels",
        )
    names = [grid.factors[f][0] for f in several]
    components = standard_components(names)
    last = max(range(1, len(components) - 1), key=lambda c: components[c].name.count(":"))
    columns = np.stack([_columns(grid, g, several, components, last) for g in range(len(grid.values))])
    flat = columns.transpose(1, 0, 2).reshape(columns.shape[1], -1)
    drawn = resampled_sums(flat, draws=draws, seed=seed, strata=grid.strata)
    sums = np.concatenate([flat.sum(0)[None], drawn]).reshape(1 + draws, len(columns), -1)
    variance = quotient(sums[..., 1:-2], sums[..., -2:-1])  # (1 + draws, groups, components), the total last
    call = quotient(sums[..., 0], sums[..., -1])
    repeated = ~np.isnan(call[0])
    variance[..., 0] = call
    variance[:, repeated, last] -= call[:, repeated]
    numbers = np.stack([variance, quotient(variance, variance[..., -1:])], axis=-1)
    kept = columns[..., -2] > 0
    grouping: By = (*grid.by, ("component", tuple(one.name for one in components)))
    found, held = measured(
        by=grouping,
        measures=list(MEASURES),
        values=[
            [Value(float(x), _lacking(kept[g], repeated[g], c) if np.isnan(x) else "") for x in numbers[0, g, c]]
            for g in range(len(columns))
            for c in range(len(components))
        ],
        draws=numbers[1:].transpose(1, 2, 3, 0).reshape(len(components) * len(columns), 2, draws),
        level=level,
        counts={
            "n_items": np.repeat(kept.sum(1), len(components)),
            "n_repeated": np.repeat(columns[..., -1].sum(1).astype(np.int64), len(components)),
        },
    )
    wide = np.stack([_wide(grid, g, several, components, kept[g]) for g in range(len(columns))])
    dims = tuple(name for name, _ in grouping)
    found = found.assign(wide=(dims, wide.reshape([len(levels) for _, levels in grouping])))
    groups = [" / ".join(group) for group in group_labels(grid.by)]
    labels = [[_label(one.name, c == last, bool(has)) for c, one in enumerate(components)] for has in repeated]
    shown = [c for c, one in enumerate(components) if one.name != "total" and (c or repeated.any())]
    return StudyResult(
        f"Sources of variance: {', '.join(as_names(factors))}",
        found,
        (_table(found, grouping, labels, wide),),
        _notes(grid, kept, columns[..., -1].sum(1)),
        held,
        (
            Drawn(
                "Sources of variance",
                "Shares of the variance of an item's scores over designs; lines: percentile bands over items.",
                lambda: draw_shares(
                    [_label(components[c].name, c == last, bool(repeated.all())) for c in shown],
                    groups,
                    *_shares(found, grouping, shown),
                ),
            ),
        ),
    )


def _laws(grid: Grid, g: int, several: Sequence[int]) -> Array:
    """Mean (1, score, squared score) of every cell, (items, levels …, 3)."""
    shape = [len(grid.factors[f][1]) for f in several]
    values, squares = grid.values[g], grid.squares[g]
    return np.stack([values * 0 + 1, values, squares], axis=-1).reshape(len(values), *shape, 3)


def _columns(grid: Grid, g: int, several: Sequence[int], components: Sequence[Component], last: int) -> Array:
    """What each item adds to: its call noise; components, call noise still in the last interaction; 1; 1 if repeated.

    No component but these two pairs a cell with itself, so that the plug-in of all others and of the sum of these two
    is unbiased at any numbers of calls.
    """
    names = [grid.factors[f][0] for f in several]
    law = _laws(grid, g, several)
    design = Design.balanced({name: law.shape[1 + j] for j, name in enumerate(names)}, random=names)
    found = np.stack([np.asarray(one, dtype=float) for one in plugin_from(law, design, components, SQUARED)], axis=-1)
    found[:, last] += found[:, 0]
    kept = ~np.isnan(found[:, -1])
    n = grid.calls[g]
    apart = (n / np.maximum(n - 1, 1) * (grid.squares[g] - grid.values[g] ** 2)).mean(-1)
    repeated = kept & (n > 1).all(-1)
    return np.column_stack([np.where(repeated, apart, 0), np.where(kept[:, None], found, 0), kept, repeated])


def _wide(
    grid: Grid, g: int, several: Sequence[int], components: Sequence[Component], kept: NDArray[np.bool_]
) -> Array:
    """The part of each component that is the same for all items, from pairs of different items: (components,)."""
    law = _laws(grid, g, several)[kept]
    if len(law) < 2:
        return np.full(len(components), np.nan)
    names = [grid.factors[f][0] for f in several]
    sizes = {"items": len(law)} | {name: law.shape[1 + j] for j, name in enumerate(names)}
    design = Design.balanced(sizes, random=list(sizes))
    wanted = [one for one in components if one.name not in ("call", "total")]
    found = iter(plugin_from(law, design, wanted, SQUARED))
    return np.array([float(next(found)) if one.name not in ("call", "total") else np.nan for one in components])


def _shares(found: xr.Dataset, by: By, shown: Sequence[int]) -> list[Array]:
    """Shares with the ends of their bands, (groups, components) each."""
    here = found.sel(measure="share").isel(component=list(shown))
    dims = [name for name, _ in by]
    return [
        here[name].transpose(*dims).to_numpy().astype(float).reshape(-1, len(shown))
        for name in ("estimate", "lower", "upper")
    ]


def _label(name: str, last: bool, repeated: bool) -> str:
    """Name of a component; without repeats the last interaction holds call noise too."""
    return f"{name} + call" if last and not repeated else name


def _lacking(kept: NDArray[np.bool_], repeated: np.bool_, component: int) -> str:
    if not kept.any():
        return NO_ITEM
    return NO_VARIANCE if repeated or component else ONE_CALL


def _table(found: xr.Dataset, by: By, labels: Sequence[Sequence[str]], wide: Array) -> Table:
    names = [name for name, _ in by]
    band = (f"lower {100 * float(found.attrs['level']):g} %", "upper")
    rows: list[Row] = []
    groups = group_labels(by[:-1])
    for g, group in enumerate(groups):
        for c, component in enumerate(by[-1][1]):
            one = found.sel(dict(zip(names, (*group, component), strict=True)))
            share = one.sel(measure="share")
            if not np.isnan(float(share["estimate"])):
                numbers = (float(one["estimate"].sel(measure="variance")), float(wide[g, c]))
                rows.append(
                    (*group, labels[g][c], *numbers, *(float(share[k]) for k in ("estimate", "lower", "upper")))
                )
    # Rows without a share are not there: say why, and of no band.
    untold = found.assign(reason=found["reason"].where(found["estimate"].isnull(), "")).sel(measure=["share"])
    notes = reason_notes(untold, by=by, labels={})
    return Table("", (*names[:-1], "source", "variance", "same for all", "share", *band), tuple(rows), notes)


def _notes(grid: Grid, kept: NDArray[np.bool_], repeated: Array) -> tuple[str, ...]:
    present = (grid.calls > 0).any(-1)
    notes = [
        "Variance of an item's scores over designs, in squared points; levels are taken as a sample.",
        "Same for all: the part by which a level moves every item alike.",
    ]
    dropped = (present & ~kept).sum(1)
    for group, lost, used, twice in zip(group_labels(grid.by), dropped, kept.sum(1), repeated, strict=True):
        where = " / ".join(group) or "all"
        if lost:
            notes.append(f"{where}: {lost} items left out: a design has no score there.")
        if 0 < twice < used:
            notes.append(
                f"{where}: call noise is read from the {twice:g} of {used} items with two calls in every cell."
            )
    return tuple(notes)
