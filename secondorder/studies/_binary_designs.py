"""Judge designs on a task with right answers: accuracy, leniency, and which way verdicts switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from secondorder._labels._results import Table
from secondorder._statistics._checked import MOST_DRAWS, whole
from secondorder.core import benjamini_hochberg
from secondorder.errors import InputError
from secondorder.studies._bands import check_draws, resampled_sums
from secondorder.studies._binary_grid import BinaryGrid, make_binary_grid
from secondorder.studies._binary_impact import (
    Choice,
    Impact,
    choice_of,
    impact_of,
    mcnemar_pairs,
    pooled,
    rates,
    switches,
)
from secondorder.studies._design_figures import draw_impacts
from secondorder.studies._design_tables import FALSE_DISCOVERY, Row, stars
from secondorder.studies._disagreement import Array
from secondorder.studies._layout import as_names, group_labels
from secondorder.studies._parts import Value
from secondorder.studies._result import Drawn, StudyResult, measured
from secondorder.studies._scores import Incomplete

__all__ = ["binary_designs"]

MEASURES = {"accuracy": "accuracy", "leniency": "leniency"}
NO_ERRORS = "there are no errors"
NO_DESIGN = "there is no such design, or no item with a verdict"


def binary_designs(
    data: xr.Dataset | xr.DataArray,
    *,
    factors: Sequence[str],
    accept: str,
    gold: str = "gold",
    by: str | Sequence[str] | None = None,
    reference: Mapping[str, str] | None = None,
    incomplete: Incomplete = "common",
    permutations: int = 499,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """Compare judge designs on a binary task: how often they are right, and which errors they make.

    Parameters
    ----------
    data : Dataset or DataArray
        A verdict cube with two classes (and ⊥).
    factors : sequence of str
        Dimensions that the designs are crossed of.
    accept : str
        The class that accepts an answer (TRUE).
    gold : str
        Coordinate of the items with the right class.
    by : str or sequence of str, optional
        Dimensions or item coordinates to group by, such as the subset of the benchmark.
    reference : mapping of factor to level, optional
        The level that the others are compared with in the table of switches. Default: the first.
    incomplete : {"common", "available"}
        Compare designs on the items that all of them judged, or each on its own.
    permutations : int
        Relabellings of a factor's levels inside items and settings; 0: no tests.
    level, draws, seed
        Percentile band over items.

    Returns
    -------
    StudyResult
        Over the designs ``accuracy`` (⊥ is wrong) and ``leniency`` (false accepts over false accepts and false
        rejects), with ``n_errors`` and ``n_invalid``. Over ``choice`` and ``impact`` (accuracy, switch, leniency) the
        average and largest difference between two levels of a factor, with all designs of a level pooled (leniency
        pools errors); a switch rate is the share of verdicts that differ in the same setting. Tables also give the
        direction of the switches against the reference.

    Raises
    ------
    CubeError, InputError
        When a factor, class or right answer is not there.

    Notes
    -----
    Tests are our choice. The averages of accuracy and leniency differences are compared with those after relabelling
    the levels inside items and settings, with Benjamini-Hochberg over factors. Two single designs are compared by
    McNemar's exact test, with Benjamini-Hochberg over the pairs of a factor. A switch rate is above 0 for any judge
    that differs from itself: with repeats the rate of a design with itself stands beside it.

    Examples
    --------
    >>> verdict = [[[0, 0], [1, 0]], [[1, 1], [1, 0]], [[1, 0], [1, 1]], [[0, 0], [0, 1]]]
    >>> cube = xr.Dataset({"verdict": (("item", "detail", "model"), verdict)},
    ...                   coords={"class": ["FALSE", "TRUE"], "detail": ["base", "long"], "model": ["a", "b"],
    ...                           "gold": ("item", ["FALSE", "TRUE", "FALSE", "FALSE"])})
    >>> found = binary_designs(cube, factors=["detail", "model"], accept="TRUE", draws=0, permutations=0)
    >>> found["accuracy"].estimate.to_numpy().tolist(), found["leniency"].estimate.sel(model="a").to_numpy().tolist()
    ([[0.75, 1.0], [0.5, 0.25]], [1.0, 1.0])
    """
    check_draws(level=level, draws=draws, seed=seed)
    whole(permutations, "permutations", most=MOST_DRAWS)
    grid = make_binary_grid(data, factors=factors, accept=accept, gold=gold, by=by, incomplete=incomplete)
    choices = _choices(grid, reference or {})
    columns = np.concatenate(
        [np.nan_to_num(grid.outcome), (~np.isnan(grid.outcome[..., :1])).astype(float)], axis=-1
    )  # groups, items, designs, (right, false accepts, false rejects, invalid, 1)
    flat = columns.transpose(1, 0, 2, 3).reshape(columns.shape[1], -1)
    drawn = resampled_sums(flat, draws=draws, seed=seed, strata=grid.strata)
    sums = np.concatenate([flat.sum(0)[None], drawn]).reshape(1 + draws, len(columns), len(grid.codes), -1)
    numbers = rates(sums)  # (1 + draws, groups, designs, 2)
    full = grid.crossed(numbers)
    wrong, invalid = (
        np.nansum(part * grid.calls, axis=1)[..., None]
        for part in (grid.outcome[..., 1:3].sum(-1), grid.outcome[..., 3])
    )
    found, kept = measured(
        by=(*grid.by, *grid.factors),
        measures=list(MEASURES),
        values=[[_value(float(a), NO_DESIGN), _value(float(b), NO_ERRORS)] for a, b in full[0].reshape(-1, 2)],
        draws=full[1:].transpose(1, 2, 3, 0).reshape(full[0, ..., 0].size, 2, draws),
        level=level,
        counts={
            "n_errors": np.nan_to_num(grid.crossed(wrong)).ravel(),
            "n_invalid": np.nan_to_num(grid.crossed(invalid)).ravel(),
        },
    )
    rng = np.random.default_rng(seed)
    impact = [
        [impact_of(grid, g, choice, permutations=permutations, rng=rng) for choice in choices]
        for g in range(len(columns))
    ]
    found = _with_impact(found, grid, choices, impact)
    panels = {
        title: np.array([one.average[k] for one in impact[0]])
        for k, title in enumerate(("accuracy", "switch rate", "leniency"))
    }
    nulls = {title: np.array([one.null[k] for one in impact[0]]) for k, title in ((0, "accuracy"), (2, "leniency"))}
    return StudyResult(
        f"Judge designs on a binary task: {', '.join(as_names(factors))}",
        found,
        (
            _level_table(grid, choices),
            _impact_table(grid, choices, impact),
            _switch_table(grid, choices),
            _pair_table(grid, choices),
            _design_table(grid, numbers, found),
        ),
        _notes(grid, permutations),
        kept,
        (
            Drawn(
                "Average impact of the design choices",
                "Bars: the first group. Ticks: the mean if the choice had no effect.",
                lambda: draw_impacts([one.name for one in choices], panels, nulls if permutations else {}),
            ),
        ),
    )


def _with_impact(
    found: xr.Dataset, grid: BinaryGrid, choices: Sequence[Choice], impact: Sequence[Sequence[Impact]]
) -> xr.Dataset:
    dims = (*(name for name, _ in grid.by), "choice", "impact")
    shape = (*(len(levels) for _, levels in grid.by), len(choices), 3)
    fields = {
        f"impact_{name}": np.array([[getattr(x, name) for x in row] for row in impact]) for name in Impact._fields
    }
    return found.assign({name: (dims, array.reshape(shape)) for name, array in fields.items()}).assign_coords(
        choice=[one.name for one in choices], impact=["accuracy", "switch", "leniency"]
    )


def _value(number: float, why: str) -> Value:
    return Value(number, why if np.isnan(number) else "")


def _choices(grid: BinaryGrid, reference: Mapping[str, str]) -> list[Choice]:
    names = [name for name, _ in grid.factors]
    found = []
    for factor in reference:
        if factor not in names:
            raise InputError(f"there is no factor {factor!r}", place="reference", remedy=f"factors: {', '.join(names)}")
    for f, (name, labels) in enumerate(grid.factors):
        wanted = reference.get(name, labels[0])
        if wanted not in labels:
            raise InputError(f"{name} has no level {wanted!r}", place="reference", remedy=", ".join(labels))
        found.append(choice_of(grid, f, labels.index(wanted)))
    return found


def _level_table(grid: BinaryGrid, choices: Sequence[Choice]) -> Table:
    rows: list[Row] = []
    for g, group in enumerate(group_labels(grid.by)):
        for f, choice in enumerate(choices):
            for k, label in enumerate(choice.labels):
                inside = grid.codes[:, f] == k
                accuracy, leniency = rates(np.nansum(grid.outcome[g][:, inside], axis=(0, 1)))
                errors = float(np.nansum(grid.outcome[g][:, inside, 1:3].sum(-1) * grid.calls[g][:, inside]))
                invalid = float(np.nansum(grid.outcome[g][:, inside, 3] * grid.calls[g][:, inside]))
                rows.append(
                    (*group, choice.name, label, float(accuracy), float(leniency), round(errors), round(invalid))
                )
    columns = (*(name for name, _ in grid.by), "choice", "level", "accuracy", "leniency", "errors", "⊥")
    return Table("By level, all designs pooled", columns, tuple(rows))


def _impact_table(grid: BinaryGrid, choices: Sequence[Choice], found: Sequence[Sequence[Impact]]) -> Table:
    rows: list[Row] = []
    for g, group in enumerate(group_labels(grid.by)):
        pvalues = np.array([[one.pvalue[0], one.pvalue[2]] for one in found[g]])
        qvalue = benjamini_hochberg(pvalues.ravel()).reshape(pvalues.shape)
        for f, choice in enumerate(choices):
            one = found[g][f]
            noise = np.nanmean(grid.repeated[g]) if (~np.isnan(grid.repeated[g])).any() else np.nan
            accuracy, switch, leniency = zip(one.average, one.largest, strict=True)
            rows.append(
                (
                    *group,
                    choice.name,
                    *map(float, accuracy),
                    stars(float(qvalue[f, 0])),
                    *map(float, switch),
                    float(noise),
                    *map(float, leniency),
                    stars(float(qvalue[f, 1])),
                )
            )
    columns = (*(name for name, _ in grid.by), "choice", "acc.", "max", "", "switch", "max", "self", "len.", "max", "")
    notes = (
        "Difference between two levels: average over the pairs of levels, and the largest; other settings equal.",
        "Self: switch rate of a design with itself (needs repeats).",
        "Stars: q < .05, .01, .001 against relabelled levels.",
    )
    return Table("Impact of each design choice", columns, tuple(rows), notes)


def _switch_table(grid: BinaryGrid, choices: Sequence[Choice]) -> Table:
    rows: list[Row] = []
    for g, group in enumerate(group_labels(grid.by)):
        for choice in choices:
            sums = (
                rates(pooled(grid.outcome[g], choice))
                if choice.table.size
                else np.full((len(choice.labels), 2), np.nan)
            )
            wrong = grid.outcome[g][..., 1:3].sum(-1) * grid.calls[g]
            errors = [round(float(np.nansum(wrong[:, row]))) for row in choice.table]
            for k, label in enumerate(choice.labels):
                own = k == choice.reference
                moved = np.full(3, np.nan)
                if not own and choice.table.size:
                    moved = switches(grid.said[g], choice.table[choice.reference], choice.table[k])
                named = label + (" (ref.)" if own else "")
                rows.append((*group, choice.name, named, *map(float, sums[k]), errors[k], *map(float, moved)))
    columns = (*(name for name, _ in grid.by), "choice", "level", "accuracy", "leniency", "errors")
    note = "Against the reference level in the same setting: all switches, reject to accept, accept to reject."
    return Table("Switches", (*columns, "switch", "F→T", "T→F"), tuple(rows), (note,))


def _pair_table(grid: BinaryGrid, choices: Sequence[Choice]) -> Table:
    rows: list[Row] = []
    for g, group in enumerate(group_labels(grid.by)):
        for choice in choices:
            tests = mcnemar_pairs(grid, g, choice)
            shares = [float((benjamini_hochberg(one) < FALSE_DISCOVERY).mean()) if len(one) else None for one in tests]
            rows.append((*group, choice.name, *shares, len(tests[0])))
    columns = (*(name for name, _ in grid.by), "choice", "right: q<.05", "accepts: q<.05", "pairs")
    note = "McNemar's exact test of two designs that differ in the choice alone; Benjamini-Hochberg over the pairs."
    return Table("Pairs of designs", columns, tuple(rows), (note,))


def _design_table(grid: BinaryGrid, numbers: Array, found: xr.Dataset) -> Table:
    names = [name for name, _ in (*grid.by, *grid.factors)]
    band = (f"lower {100 * float(found.attrs['level']):g} %", "upper")
    rows: list[Row] = []
    for g, group in enumerate(group_labels(grid.by)):
        for d, labels in enumerate(grid.labels):
            one = found.sel(dict(zip(names, (*group, *labels), strict=True)))
            cells: list[float] = []
            for measure, number in zip(MEASURES, numbers[0, g, d], strict=True):
                here = one.sel(measure=measure)
                cells += [float(number), float(here["lower"]), float(here["upper"])]
            rows.append((*group, *labels, *cells, round(float(one["n_errors"])), round(float(one["n_invalid"]))))
    columns = (*names, "accuracy", *band, "leniency", *band, "errors", "⊥")
    return Table("Designs", columns, tuple(rows))


def _notes(grid: BinaryGrid, permutations: int) -> tuple[str, ...]:
    notes = [f"{len(grid.codes)} designs. Leniency: false accepts over all errors; ⊥ is wrong and neither of them."]
    if permutations:
        notes.append(f"{permutations} relabellings; p is at least {1 / (permutations + 1):.2g}.")
    for group, dropped in zip(group_labels(grid.by), grid.n_dropped, strict=True):
        if dropped:
            notes.append(
                f"{' / '.join(group) or 'all'}: {dropped} items left out (a design without verdict, or no gold)."
            )
    return tuple(notes)
