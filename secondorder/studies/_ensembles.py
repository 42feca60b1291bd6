"""Does averaging several judge designs reduce bias? Ensembles of designs against single ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from math import comb, prod
from typing import NamedTuple

import numpy as np
import xarray as xr

from secondorder._labels._results import Table
from secondorder._statistics._checked import MOST_DRAWS, whole
from secondorder.errors import InputError
from secondorder.studies._design_errors import error_columns, read_errors
from secondorder.studies._design_figures import draw_ensembles
from secondorder.studies._design_grid import Grid, make_grid
from secondorder.studies._design_tables import Row
from secondorder.studies._disagreement import Array
from secondorder.studies._layout import By, as_names, group_labels
from secondorder.studies._parts import Codes, Value
from secondorder.studies._result import Drawn, StudyResult, measured
from secondorder.studies._scales import Bounds, Scales
from secondorder.studies._scores import Incomplete

__all__ = ["ensembles"]

MEASURES = {"bias": "mean |bias|", "reduction": "reduction"}
STRATEGIES = ("fixed", "free")
TOO_FEW = "there are not so many levels"
NO_ITEM = "a design has no item with both scores"
NO_BIAS = "single designs have no bias"


class _Members(NamedTuple):
    """Ensembles: rows of designs, and whether these are all there are."""

    designs: Codes
    complete: bool


def ensembles(
    data: xr.Dataset | xr.DataArray,
    *,
    factors: Sequence[str],
    vary: Sequence[str] | None = None,
    sizes: Sequence[int] = (2, 3, 4, 5),
    human: str = "gold",
    scale: str = "scale",
    scales: Scales | None = None,
    to: Bounds = (1, 7),
    by: str | Sequence[str] | None = None,
    scores: Mapping[str, float] | None = None,
    incomplete: Incomplete = "common",
    most: int = 20_000,
    seed: int = 0,
) -> StudyResult:
    """Mean absolute bias of the average of several designs, and its reduction against single designs.

    Parameters
    ----------
    data, factors, human, scale, scales, to, by, scores, incomplete
        As in :func:`judge_designs`.
    vary : sequence of str, optional
        Factors whose levels differ between the members of an ensemble, one study for each. Default: all factors.
    sizes : sequence of int
        Numbers of members.
    most : int
        Where there are more ensembles than this, so many are drawn at random (with replacement).
    seed : int

    Returns
    -------
    StudyResult
        For each group, varied factor, strategy and size: ``bias``, the mean absolute bias of ensembles, and
        ``reduction``, its relative decrease against single designs. Under ``fixed`` the members share the levels of all
        other factors, under ``free`` these are arbitrary. ``n_ensembles``; ``complete`` says whether these are all;
        ``mcse`` is the Monte Carlo standard error of the bias where they were drawn.

    Raises
    ------
    CubeError, InputError
        As :func:`judge_designs`; when a size or `most` is below 2.

    Notes
    -----
    The bias of an average is the average of the biases: ensembles gain only where their members err in different
    directions.

    Examples
    --------
    >>> rows = [{"q": q, "model": m, "score": h + shift, "human": h}
    ...         for q, h in enumerate([2, 4, 6, 5]) for m, shift in (("a", 1), ("b", -1), ("c", 0.5))]
    >>> from secondorder.studies import make_scores
    >>> found = ensembles(make_scores(rows, item="q", score="score", facets=["model"], gold="human"),
    ...                   factors=["model"], sizes=[2, 3])
    >>> found["bias"].estimate.sel(strategy="free").round(3).to_numpy().tolist()
    [[0.333, 0.167]]
    """
    if not len(sizes) or len(set(sizes)) < len(sizes):
        raise InputError(f"sizes={list(sizes)}", place="sizes", remedy="give whole numbers from 2, each once")
    for size in sizes:
        whole(size, "sizes", least=2, remedy="give whole numbers from 2")
    whole(most, "most", least=2, most=MOST_DRAWS)
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
    names = [name for name, _ in grid.factors]
    chosen = names if vary is None else list(as_names(vary))
    if unknown := [name for name in chosen if name not in names]:
        raise InputError(f"there is no factor {unknown[0]!r}", place="vary", remedy=f"factors: {', '.join(names)}")
    people = np.zeros(0) if grid.human is None else grid.human
    bias = read_errors(error_columns(grid.values, people).sum(1))[..., 0]  # (groups, designs)
    single = np.abs(bias).mean(1)
    rng = np.random.default_rng(seed)
    members = [
        _members(grid, names.index(name), strategy, int(size), most, rng)
        for name, strategy, size in product(chosen, STRATEGIES, sizes)
    ]
    held = np.stack([_spread(bias, one) for one in members], axis=1)  # (groups, rows, (mean, mcse))
    grouping: By = (
        *grid.by,
        ("vary", tuple(chosen)),
        ("strategy", STRATEGIES),
        ("members", tuple(str(size) for size in sizes)),
    )
    reduction = 1 - held[..., 0] / np.where(single > 0, single, np.nan)[:, None]
    found, _ = measured(
        by=grouping,
        measures=list(MEASURES),
        values=[
            [
                Value(float(b), _lacking(one) if np.isnan(b) else ""),
                Value(float(r), (_lacking(one) if np.isnan(b) else NO_BIAS) if np.isnan(r) else ""),
            ]
            for row, other in zip(held[..., 0], reduction, strict=True)
            for b, r, one in zip(row, other, members, strict=True)
        ],
        draws=np.zeros((held[..., 0].size, 2, 0)),
        level=0.95,
        counts={
            "n_ensembles": np.tile([len(one.designs) for one in members], len(bias)),
            "complete": np.tile([one.complete for one in members], len(bias)),
            "mcse": held[..., 1].ravel(),
        },
    )
    found = found.assign_coords(members=[int(size) for size in sizes])
    lines = {
        f"{name}, {strategy}": np.concatenate(
            [
                single[:1],
                [
                    held[0, i, 0]
                    for i, row in enumerate(product(chosen, STRATEGIES, sizes))
                    if row[:2] == (name, strategy)
                ],
            ]
        )
        for name, strategy in product(chosen, STRATEGIES)
    }
    return StudyResult(
        f"Ensembles of judge designs: {', '.join(as_names(factors))}",
        found,
        (_table(grid, grouping, found, single),),
        _notes(members, most),
        None,
        (
            Drawn(
                "Bias of ensembles",
                "The first group; one judge: the mean over single designs.",
                lambda: draw_ensembles([1, *map(int, sizes)], lines),
            ),
        ),
    )


def _lacking(members: _Members) -> str:
    return NO_ITEM if len(members.designs) else TOO_FEW


def _members(grid: Grid, factor: int, strategy: str, size: int, most: int, rng: np.random.Generator) -> _Members:
    """Ensembles whose members have different levels of a factor: all of them, or so many drawn at random."""
    own = grid.codes[:, factor]
    if strategy == "fixed":
        others = np.delete(grid.codes, factor, axis=1)
        _, setting = np.unique(others, axis=0, return_inverse=True)
        rows = [
            team
            for number in range(int(setting.max()) + 1)
            for team in combinations(np.flatnonzero(setting.ravel() == number).tolist(), size)
        ]
        designs = np.array(rows, dtype=np.int64).reshape(-1, size)
        if len(designs) <= most:
            return _Members(designs, True)
        return _Members(designs[rng.integers(0, len(designs), most)], False)
    pools = [np.flatnonzero(own == level) for level in np.unique(own)]
    choices = list(combinations(range(len(pools)), size)) if comb(len(pools), size) <= most else None
    if choices is not None and sum(prod(len(pools[k]) for k in choice) for choice in choices) <= most:
        rows = [team for choice in choices for team in product(*(pools[k].tolist() for k in choice))]
        return _Members(np.array(rows, dtype=np.int64).reshape(-1, size), True)
    return _Members(_drawn(pools, size, most, rng), False)


def _drawn(pools: Sequence[Codes], size: int, most: int, rng: np.random.Generator) -> Codes:
    """Ensembles drawn at random, each with the same chance: levels by how many teams they can make."""
    # Teams of m levels have as many members as the product of their pools, so that levels are drawn one after the other
    # with the elementary symmetric polynomials of the pool sizes as weights.
    n = np.array([float(len(pool)) for pool in pools])
    ways = np.zeros((len(n) + 1, size + 1))
    ways[-1, 0] = 1
    for k in range(len(n) - 1, -1, -1):
        ways[k] = ways[k + 1]
        ways[k, 1:] += n[k] * ways[k + 1, :-1]
    found = np.empty((most, size), dtype=np.int64)
    left = np.full(most, size)
    for k, pool in enumerate(pools):
        chance = np.where(left > 0, n[k] * ways[k + 1, np.maximum(left - 1, 0)] / np.maximum(ways[k, left], 1e-300), 0)
        taken = rng.random(most) < chance
        found[taken, size - left[taken]] = pool[rng.integers(0, len(pool), int(taken.sum()))]
        left = left - taken
    return found


def _spread(bias: Array, members: _Members) -> Array:
    """Mean of |bias| over ensembles, and its Monte Carlo standard error (0 where they are all there): (groups, 2)."""
    if not len(members.designs):
        return np.full((len(bias), 2), np.nan)
    held = np.abs(bias[:, members.designs].mean(-1))
    error = held.std(1, ddof=1) / np.sqrt(held.shape[1]) if not members.complete else np.zeros(len(bias))
    return np.stack([held.mean(1), error], axis=-1)


def _table(grid: Grid, by: By, found: xr.Dataset, single: Array) -> Table:
    names = [name for name, _ in grid.by]
    rows: list[Row] = []
    for g, group in enumerate(group_labels(grid.by)):
        here = found.sel(dict(zip(names, group, strict=True)))
        rows.append((*group, "–", "single", 1, float(single[g]), None, None, len(grid.codes)))
        for name, strategy, size in product(by[-3][1], by[-2][1], found["members"].to_numpy().tolist()):
            one = here.sel(vary=name, strategy=strategy, members=size)
            if not int(one["n_ensembles"]):
                continue
            numbers = [float(one["estimate"].sel(measure=measure)) for measure in MEASURES]
            rows.append((*group, name, strategy, size, *numbers, float(one["mcse"]), int(one["n_ensembles"])))
    columns = (*names, "vary", "strategy", "judges", "mean |bias|", "reduction", "MCSE", "ensembles")
    if bool(found["complete"].all()):  # an error of zeros says nothing
        at = columns.index("MCSE")
        columns, rows = columns[:at] + columns[at + 1 :], [row[:at] + row[at + 1 :] for row in rows]
    return Table("", columns, tuple(rows))


def _notes(members: Sequence[_Members], most: int) -> tuple[str, ...]:
    notes = [
        "Fixed: members share the levels of all other factors; free: these are arbitrary.",
        "No bands: a mean of |bias| grows with the noise that resampled items add.",
    ]
    if any(not len(one.designs) for one in members):
        notes.append("A factor makes ensembles of at most as many judges as it has levels.")
    drawn = sum(not one.complete for one in members)
    if drawn:
        notes.append(
            f"In {drawn} rows {most} ensembles were drawn at random (MCSE: the error of that), else all are in."
        )
    return tuple(notes)
