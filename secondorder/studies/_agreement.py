"""Agreement of any raters (prompts, judges, people, repeats) with item-bootstrap bands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from secondorder._labels._results import Table
from secondorder._schema import BOTTOM
from secondorder.errors import InputError
from secondorder.studies._bands import check_draws, resampled_blocks
from secondorder.studies._coefficients import COEFFICIENTS, make_parts
from secondorder.studies._disagreement import Array, alpha_metric, disagreement, to_one
from secondorder.studies._figures import drawn_measures
from secondorder.studies._layout import as_names, group_labels
from secondorder.studies._parts import Part, Value, combine, point, unit_counts
from secondorder.studies._ratings import Arranged, Invalid, arrange
from secondorder.studies._result import StudyResult, measure_table, measured

__all__ = ["REFERENCE_LINES", "agreement"]

REFERENCE_LINES = {"human robustness": 0.80, "usability": 0.61}
"""Values of kappa in *Prompt Lottery in LLM-as-a-Judge* (2026): no bounds of this package's own."""
REFERENCE = "values of κ in Prompt Lottery in LLM-as-a-Judge (2026), for comparison"

DEFLATION = "deflation"
MOST_RATERS = 8  # whose pairs fit a table
WEIGHTS_OF = {"nominal": "nominal", "ordinal": "linear", "interval": "interval", "ratio": "ratio"}


def agreement(
    data: xr.Dataset | xr.DataArray,
    *,
    raters: str | Sequence[str] = "prompt",
    by: str | Sequence[str] | None = None,
    coefficients: Sequence[str] = tuple(COEFFICIENTS),
    metric: str | ArrayLike = "nominal",
    weights: str | ArrayLike | None = None,
    scores: Mapping[str, float] | None = None,
    invalid: Invalid = "class",
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """Agreement coefficients of any facet's levels as raters, with bands over items.

    What the other dimensions hold (orders, repeats) are further comparisons inside an item: the item stays the one
    unit that is resampled, however many of them it has.

    Parameters
    ----------
    data : Dataset or DataArray
        A verdict cube, or labels with named dimensions, one of them ``item``.
    raters : str or sequence of str
        The dimension whose levels are compared; several make composite raters.
    by : str or sequence of str, optional
        One set of coefficients for each level of these dimensions or item coordinates (a judge, a task type).
        Default: ``judge`` where it is a dimension and no rater.
    coefficients : sequence of {"overlap", "cohen", "fleiss", "krippendorff", "gwet", "scott"}
        With ``overlap`` and ``cohen`` their difference, the deflation, is given too.
    metric : {"nominal", "ordinal", "interval", "ratio"} or array, shape (classes, classes)
        Disagreement of two classes for alpha.
    weights : {"nominal", "linear", "quadratic", "interval", "ratio"} or array, optional
        The same for kappa, pi and AC. Default: what belongs to `metric` (linear weights for ``ordinal``).
    scores : mapping of class to float, optional
        Default: the class labels as numbers, where the metric needs them.
    invalid : {"class", "missing"}
        ⊥ is a class by default: two prompts that both fail to answer do agree. Missing calls never are.
    level, draws, seed
        Percentile band, number of item draws (0: none), seed of the draws.

    Returns
    -------
    StudyResult
        Measures are the coefficients and ``deflation``; ``pairwise`` holds Cohen's kappa of every two raters.

    Raises
    ------
    CubeError, TableError, KernelError, InputError
        When a dimension, coefficient or metric does not exist or does not fit the classes.

    Notes
    -----
    Undefined coefficients are NaN with the reason. A draw in which a coefficient is undefined is left out of its band
    and counted in ``undefined_draws``.

    Examples
    --------
    >>> cube = xr.Dataset(
    ...     {"verdict": (("item", "prompt"), [[0, 0], [0, 1], [0, 0], [1, 1], [0, 0]])},
    ...     coords={"prompt": ["plain", "terse"], "class": ["no", "yes"]},
    ... )
    >>> found = agreement(cube, raters="prompt", draws=0)
    >>> {name: round(float(found[name].estimate), 4) for name in ("cohen", "krippendorff", "gwet")}
    {'cohen': 0.5455, 'krippendorff': 0.5714, 'gwet': 0.6552}
    """
    check_draws(level=level, draws=draws, seed=seed)
    names = as_names(coefficients)
    if not names:
        raise InputError("no coefficient", place="coefficients", remedy=f"some of {', '.join(COEFFICIENTS)}")
    laid = arrange(data, inner=[raters], by=by, invalid=invalid)
    alpha = alpha_metric(metric, laid.classes, scores=scores, ranked=laid.ranked)
    if weights is None:
        weights = WEIGHTS_OF.get(metric, metric) if isinstance(metric, str) else metric
    gap = disagreement(weights, laid.classes, scores=scores, ranked=laid.ranked)
    n_raters = laid.codes.shape[-1]
    parts = [_parts(names, codes, laid.classes, gap, alpha) for codes in laid.codes]
    points = [[point(part, n_raters=n_raters) for part in group] for group in parts]
    values = [[value for value, _ in group] for group in points]
    held = _draws(parts, points, draws=draws, seed=seed, strata=laid.strata)
    if "overlap" in names and "cohen" in names:
        a, b = names.index("overlap"), names.index("cohen")
        values = [[*row, Value(row[a].estimate - row[b].estimate, row[a].reason or row[b].reason)] for row in values]
        held = np.concatenate([held, held[:, a : a + 1] - held[:, b : b + 1]], axis=1)
        measures = [*names, DEFLATION]
    else:
        measures = list(names)

    found, drawn = measured(by=laid.by, measures=measures, values=values, draws=held, level=level, counts=_counts(laid))
    if "cohen" in names and n_raters > 1:
        found = _with_pairs(found, laid, [group[names.index("cohen")][1] for group in points])
    found.attrs.update(raters=":".join(as_names(raters)), metric=_name(metric), weights=_name(weights))
    labels = {name: COEFFICIENTS[name].label for name in names} | {DEFLATION: "overlap − κ (deflation)"}
    counted = ("n_items", "n_pairable", "n_invalid", "n_missing")
    return StudyResult(
        f"Agreement of {n_raters} raters: {' × '.join(as_names(raters))}",
        found,
        (measure_table("", found, by=laid.by, labels=labels, counts=counted), *_pair_tables(found, laid)),
        (
            f"α metric: {_name(metric)}; weights of κ, π and AC: {_name(weights)}; "
            f"⊥ is {'a class' if invalid == 'class' else 'set aside'}.",
            *_notes(laid, names, points),
        ),
        drawn,
        (
            drawn_measures(
                found.sel(measure=list(names)), labels, title="Agreement", lines=REFERENCE_LINES, source=REFERENCE
            ),
        ),
        labels,
    )


def _parts(
    names: Sequence[str], codes: NDArray[np.int64], classes: Sequence[str], gap: Array, alpha: Array | None
) -> list[Part]:
    # A group's classes are its own: that another judge gives an invalid verdict changes no chance agreement here.
    size = len(classes) - (BOTTOM in classes and not bool((codes == len(classes) - 1).any()))
    own = None if alpha is None else to_one(alpha[:size, :size])
    weights = to_one(gap[:size, :size])  # AC depends on the largest entry
    return make_parts(names, codes=codes, counts=unit_counts(codes, size), weights=weights, metric=own)


def _draws(
    parts: Sequence[Sequence[Part]],
    points: Sequence[Sequence[tuple[Value, Array]]],
    *,
    draws: int,
    seed: int,
    strata: NDArray[np.int64] | None,
) -> Array:
    # Groups and coefficients in one matrix product, so that they share the draws: (groups, coefficients, draws).
    every = [part for group in parts for part in group]
    among = [~np.isnan(each) for group in points for _, each in group]
    columns = {id(part.columns): part.columns for part in every}  # some coefficients read the same columns
    cuts = np.cumsum([one.shape[1] for one in columns.values()])[:-1]
    stacked = np.concatenate(list(columns.values()), axis=1)
    held = [np.zeros((len(every), 0))]
    for block in resampled_blocks(stacked, draws=draws, seed=seed, strata=strata):
        sums = dict(zip(columns, np.split(block, cuts, axis=1), strict=True))
        held.append(
            np.stack([combine(part, sums[id(part.columns)], among=own) for part, own in zip(every, among, strict=True)])
        )
    return np.concatenate(held, axis=1).reshape(len(parts), len(parts[0]), draws)


def _counts(laid: Arranged) -> dict[str, NDArray[np.int64]]:
    there = (laid.codes >= 0).sum(-1)
    return {
        "n_items": (there > 0).any(-1).sum(-1),
        "n_pairable": (there > 1).any(-1).sum(-1),
        "n_invalid": laid.n_invalid,
        "n_missing": laid.n_missing,
    }


def _with_pairs(found: xr.Dataset, laid: Arranged, each: Sequence[Array]) -> xr.Dataset:
    size = laid.codes.shape[-1]
    left, right = np.triu_indices(size, 1)  # the order of itertools.combinations
    matrices = np.full((len(each), size, size), np.nan)
    matrices[:, left, right] = matrices[:, right, left] = np.stack(each)
    shape = [len(levels) for _, levels in laid.by]
    variable = ((*(name for name, _ in laid.by), "rater", "other"), matrices.reshape((*shape, size, size)))
    return found.assign(pairwise=variable).assign_coords(rater=list(laid.inner[0]), other=list(laid.inner[0]))


def _pair_tables(found: xr.Dataset, laid: Arranged) -> list[Table]:
    """Cohen's kappa of every two raters, where there are more than two and their pairs fit a table."""
    labels = laid.inner[0]
    if "pairwise" not in found or not 2 < len(labels) <= MOST_RATERS:
        return []
    names = [name for name, _ in laid.by]
    rows: list[tuple[str | int | float | None, ...]] = []
    for group in group_labels(laid.by):
        matrix = found["pairwise"].sel(dict(zip(names, group, strict=True))).to_numpy().astype(float)
        for i, label in enumerate(labels[:-1]):
            # Above the diagonal: the rest would say the same again.
            cells = [None if j <= i else float(matrix[i, j]) for j in range(1, len(labels))]
            rows.append((*group, label, *cells))
    return [Table("Cohen κ of two raters", (*names, "rater", *labels[1:]), tuple(rows))]


def _name(kind: str | ArrayLike) -> str:
    return kind if isinstance(kind, str) else "own matrix"


def _notes(laid: Arranged, names: Sequence[str], points: Sequence[Sequence[tuple[Value, Array]]]) -> list[str]:
    notes = [f"{COEFFICIENTS[name].label}: {COEFFICIENTS[name].convention}." for name in names]
    if laid.rest and laid.codes.shape[2] > 1:
        notes.append(
            f"Each item holds {laid.codes.shape[2]} comparisons ({' × '.join(laid.rest)}); items are resampled whole."
        )
    for index, name in enumerate(names):
        lost = sum(int(np.isnan(group[index][1]).sum()) for group in points)
        if COEFFICIENTS[name].needs_raters and lost:
            total = sum(len(group[index][1]) for group in points)
            notes.append(f"{COEFFICIENTS[name].label}: {lost} of {total} pairs of raters have no value: left out.")
    return notes
