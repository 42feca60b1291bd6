"""At equal calls: m repeats of one prompt, one call of m prompts, or one call of m judges?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._results import Table
from secondorder._schema import JUDGE, PROMPT, REPEAT
from secondorder._statistics._checked import whole
from secondorder.errors import CubeError, InputError
from secondorder.studies._bands import check_draws, resampled_sums
from secondorder.studies._budget_figure import MOST_GROUPS, draw_budgets
from secondorder.studies._disagreement import Array
from secondorder.studies._figures import part_shown
from secondorder.studies._layout import By, as_names
from secondorder.studies._moments import Outcome, outcome_values, repeats_moments, subsets_moments
from secondorder.studies._panel import gold_of, known_scores
from secondorder.studies._parts import Codes, Value, quotient, unit_counts
from secondorder.studies._ratings import Arranged, Incomplete, Invalid, arrange, check_cube
from secondorder.studies._result import Drawn, StudyResult, measured, wide_table
from secondorder.studies._votes import Ties, check_ties

__all__ = ["match_budget"]

RULES = ("plurality", "majority", "mean", "median")
SOURCES = ("repeats", "prompts", "judges")
MEASURES = {
    "accuracy": "accuracy",
    "abstained": "abstains",
    "pearson": "Pearson",
    "stability_shared": "stable, shared",
    "stability_fresh": "stable, fresh",
    "reliability_shared": "reliable, shared",
    "reliability_fresh": "reliable, fresh",
}
SINGLE, PAIR = 10, 5  # columns of one aggregate, and of two
A_SCORE = "a score is no class: see reliability"
NO_RIGHT = "there are no right classes"
NO_HUMAN = "there are no human scores"
NO_SCORES = "the classes have no scores"
NO_ITEM = "no item has all of its calls"
FLAT = "the aggregates or the human scores do not vary, or no item has both"


class _Known(NamedTuple):
    """What is known of the items and the classes."""

    right: Codes | None
    human: Array | None
    scores: Array | None
    rule: str


class _Arm(NamedTuple):
    """One source at one number of calls: item columns of each group, or why there are none."""

    columns: Array  # (groups, items, SINGLE + 2 * PAIR)
    reason: str = ""
    shared: str = ""
    fresh: str = ""


def match_budget(
    data: xr.Dataset | xr.DataArray,
    *,
    calls: Sequence[int] = (1, 3, 5),
    rule: str = "plurality",
    ties: Ties = "random",
    prompt: str = PROMPT,
    judge: str = JUDGE,
    repeat: str = REPEAT,
    by: str | Sequence[str] | None = None,
    gold: str = "gold",
    scores: Mapping[str, float] | None = None,
    invalid: Invalid = "class",
    incomplete: Incomplete = "refuse",
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """Compare, at the same number of calls m, repeats of one prompt, m prompts once each, and m judges once each.

    Multi-prompt aggregation gains by voting often, whatever the votes are; what prompts or judges add is seen only
    against as many repeats of one prompt.

    Parameters
    ----------
    data : Dataset or DataArray
        A verdict cube with repeats. Every cell of an item must hold all of its calls.
    calls : sequence of int
        Numbers of calls m.
    rule : {"plurality", "majority", "mean", "median"}
        How m verdicts become one; a majority is more than m/2.
    ties : {"random", "abstain", "ordered"}
        Of plurality. Under ``random`` all numbers are exact means over the draw. An abstention is wrong and agrees with
        nothing.
    prompt, judge, repeat : str
        Dimensions. Of a source whose dimension is not there the numbers are undefined. What is not varied is held
        fixed and averaged over: repeats over prompts and judges, prompts over judges, judges over prompts.
    by : str or sequence of str, optional
        Dimensions or item coordinates to group by.
    gold, scores, invalid
        As in :func:`aggregate`.
    incomplete : {"refuse", "drop-item"}
        Of items with a cell that lacks a call.
    level, draws, seed
        Percentile band over items.

    Returns
    -------
    StudyResult
        For each group, ``source`` and ``calls``: ``accuracy``, ``abstained``; ``pearson`` of the aggregate's score with
        the human score; ``stability``, the probability that two independent aggregates decide the same, and
        ``reliability``, the correlation of their scores. Two aggregates are ``shared``: from the same prompt, the same
        m prompts, the same m judges; or ``fresh``: from prompts or judges that are all different.

    Raises
    ------
    CubeError, InputError
        When calls are missing and `incomplete` is ``refuse``; on an unknown rule.

    Notes
    -----
    Every number is the average over all ways to choose the calls without replacement (hypergeometric, exact), and two
    aggregates never have a call in common: this is unbiased for fresh independent calls. It needs m calls per cell for
    repeats (2m for ``shared``), two for ``shared`` prompts and judges, 2m prompts or judges for ``fresh`` ones; what
    the data do not hold is undefined, with the reason. Correlations are taken over items and calls together.

    Examples
    --------
    >>> verdict = [[[0, 0, 1, 0], [0, 0, 0, 0]], [[1, 1, 1, 1], [0, 1, 1, 1]], [[0, 1, 0, 1], [1, 1, 1, 0]]]
    >>> cube = xr.Dataset({"verdict": (("item", "prompt", "repeat"), verdict)},
    ...                   coords={"class": ["A", "B"], "gold": ("item", ["A", "B", "B"])})
    >>> found = match_budget(cube, calls=[1, 2], draws=0)
    >>> found["stability_shared"].estimate.sel(calls=2).round(4).to_numpy().tolist()
    [0.6389, 0.6528, nan]
    >>> str(found["stability_fresh"].reason.sel(calls=2, source="prompts").item())
    'two sets without a common level need 4 prompts, there are 2'
    """
    check_draws(level=level, draws=draws, seed=seed)
    check_ties(ties)
    if rule not in RULES:
        raise InputError(f"rule={rule!r}", place="rule", remedy=f"say one of {', '.join(RULES)}")
    for m in calls:
        whole(m, "calls", least=1, remedy="give whole numbers from 1")
    if not len(calls) or len(set(calls)) < len(calls):
        raise InputError(f"calls={list(calls)}", place="calls", remedy="give whole numbers from 1, each once")
    cube = check_cube(data)
    free = [name for name in cube["verdict"].dims if name not in as_names(by)]
    there = [name if name in free else () for name in (judge, prompt, repeat)]
    laid = arrange(cube, inner=there, by=by, invalid=invalid)
    check_ties(ties, ranked=laid.ranked)
    counts, kept = _counts(laid, incomplete)
    known = _Known(*gold_of(cube, gold, laid.classes, scores), known_scores(cube, laid.classes, scores), rule)
    grid = [(source, int(m)) for source in SOURCES for m in calls]
    absent = {
        source: f"there is no dimension of {source}: name it ({flag}=, --{flag})"
        for source, flag, name in (("prompts", "prompt", prompt), ("judges", "judge", judge))
        if name not in cube["verdict"].dims
    }
    outcome = partial(outcome_values, n_classes=len(laid.classes), scores=known.scores, rule=rule, ties=ties)
    arms = [_arm(source, m, outcome, counts, kept, known, absent.get(source, "")) for source, m in grid]
    columns = np.stack([arm.columns for arm in arms], axis=1)  # (groups, arms, items, columns)
    flat = columns.transpose(2, 0, 1, 3).reshape(columns.shape[2], -1)
    drawn = resampled_sums(flat, draws=draws, seed=seed, strata=laid.strata)
    sums = np.concatenate([flat.sum(0)[None], drawn]).reshape(1 + draws, len(columns) * len(arms), -1)
    numbers = _read(sums)  # (1 + draws, groups x arms, measures)
    values = [
        [_value(float(x), name, arm, known, any_item=bool(own.any())) for x, name in zip(one, MEASURES, strict=True)]
        for (own, arm), one in zip(product(kept, arms), numbers[0], strict=True)
    ]
    undefined = np.array([[np.isnan(value.estimate) for value in row] for row in values])
    held = np.where(undefined[..., None], np.nan, numbers[1:].transpose(1, 2, 0))
    names = [str(m) for m in calls]
    grouping: By = (*laid.by, ("source", SOURCES), ("calls", tuple(names)))
    found, kept_draws = measured(
        by=grouping,
        measures=list(MEASURES),
        values=values,
        draws=held,
        level=level,
        counts={"n_items": np.repeat(kept.sum(1), len(arms))},
    )
    found = found.assign_coords(calls=[int(m) for m in calls])
    kept_draws = kept_draws.assign_coords(calls=found["calls"])
    found.attrs.update(rule=rule, ties=ties, seed=seed)
    return StudyResult(
        f"Budget-matched comparison: {rule} of m calls",
        found,
        _tables(found, grouping, values),
        _notes(laid, kept, rule, ties),
        kept_draws,
        (
            Drawn(
                "At equal calls",
                "Bars: percentile bands over items." + part_shown(laid.by, MOST_GROUPS),
                lambda: draw_budgets(found, laid.by),
            ),
        ),
    )


def _counts(laid: Arranged, incomplete: Incomplete) -> tuple[Array, NDArray[np.bool_]]:
    """Counts over groups, items, events, judges, prompts, classes, and which items hold every call."""
    if incomplete not in ("refuse", "drop-item"):
        raise InputError(f"incomplete={incomplete!r}", place="incomplete", remedy="say 'refuse' or 'drop-item'")
    shape = laid.codes.shape  # groups, items, events, judges, prompts, calls
    size = len(laid.classes)
    counts = unit_counts(laid.codes.reshape(-1, *shape[4:]), size).reshape(*shape[:5], size)
    n = counts.sum(-1)
    present = (n > 0).any(axis=(2, 3, 4))
    short = (n < n.max(initial=0)).any(axis=(2, 3, 4)) & present
    if short.any() and incomplete == "refuse":
        first = int(np.argwhere(short)[0, 1])
        raise CubeError(
            f"{int(short.sum())} items lack calls in some cell, the first is {laid.items[first]}",
            place="cube",
            remedy="leave these items out, counted: incomplete='drop-item'",
        )
    kept = np.asarray(present & ~short)
    if not kept.any():
        raise CubeError(
            f"no item has {int(n.max(initial=0))} calls in every cell",
            place="cube",
            remedy="leave out the levels that were called less often",
        )
    return counts, kept


def _arm(
    source: str,
    m: int,
    outcome_of: Callable[[int], Outcome],
    counts: Array,
    kept: NDArray[np.bool_],
    known: _Known,
    absent: str,
) -> _Arm:
    n_groups, n_items, n_events, n_judges, n_prompts, size = counts.shape
    columns = np.zeros((n_groups, n_items, SINGLE + 2 * PAIR))
    n_calls = int(counts.sum(-1).max(initial=0))
    levels = {"repeats": n_calls, "prompts": n_prompts, "judges": n_judges}[source]
    if m > levels:
        lacking = f"{m} calls per cell" if source == "repeats" else f"{m} {source}"
        return _Arm(columns, absent or f"it needs {lacking}, there {'is' if levels == 1 else 'are'} {levels}")
    # Only now: so many votes have as many outcomes as there are ways to count them.
    outcome = outcome_of(m)
    cells = counts[kept].reshape(-1, n_judges, n_prompts, size)
    if source == "repeats":
        means, shared, fresh = repeats_moments(cells, outcome)
    else:
        cells = cells if source == "prompts" else cells.swapaxes(1, 2)
        means, shared, fresh = subsets_moments(cells, outcome, what=source)
    item = np.nonzero(kept)[1]
    columns[kept, :SINGLE] = _single(_over_events(means, n_events), item, known, size)
    for start, pairs in ((SINGLE, shared), (SINGLE + PAIR, fresh)):
        if pairs.products is not None:
            columns[kept, start : start + PAIR] = _pair(_over_events(pairs.products, n_events), size)
    return _Arm(columns, "", shared.reason, fresh.reason)


def _over_events(cases: Array, n_events: int) -> Array:
    return np.asarray(cases.reshape(-1, n_events, *cases.shape[1:]).mean(1))


def _single(means: Array, item: NDArray[np.int64], known: _Known, size: int) -> Array:
    right = np.full(len(item), -1) if known.right is None else known.right[item]
    human = np.full(len(item), np.nan) if known.human is None else known.human[item]
    rated, y = ~np.isnan(human), np.nan_to_num(human)
    correct = np.take_along_axis(means[:, :size], np.maximum(right, 0)[:, None], axis=1)[:, 0]
    scored, mean, square = (means[:, size + k] * rated for k in (1, 2, 3))
    parts = (correct * (right >= 0), right >= 0, means[:, size], np.ones(len(item)))
    return np.stack([*parts, scored, mean, square, mean * y, scored * y, scored * y * y], axis=-1)


def _pair(products: Array, size: int) -> Array:
    agree = np.trace(products[:, :size, :size], axis1=1, axis2=2)
    scored, mean, square = size + 1, size + 2, size + 3
    rest = [products[:, a, b] for a, b in ((scored, scored), (mean, scored), (square, scored), (mean, mean))]
    return np.stack([agree, *rest], axis=-1)


def _read(sums: Array) -> Array:
    """Sums of columns to measures, in the order of ``MEASURES``."""
    n = sums[..., 3]
    scored, mean, square, both, y, yy = (sums[..., k] for k in range(4, SINGLE))
    pearson = _correlation(scored, mean, square, y, yy, both)
    stability, reliability = [], []
    for start in (SINGLE, SINGLE + PAIR):
        agree, scored, mean, square, product = (sums[..., start + k] for k in range(PAIR))
        stability.append(quotient(agree, n))
        reliability.append(_correlation(scored, mean, square, mean, square, product))
    return np.stack(
        [quotient(sums[..., 0], sums[..., 1]), quotient(sums[..., 2], n), pearson, *stability, *reliability], axis=-1
    )


def _correlation(n: Array, x: Array, xx: Array, y: Array, yy: Array, xy: Array) -> Array:
    """Correlation from sums: weight, x, x squared, y, y squared, x times y."""
    mean_x, mean_y = quotient(x, n), quotient(y, n)
    spread = (quotient(xx, n) - mean_x**2) * (quotient(yy, n) - mean_y**2)
    scale = np.sqrt(np.where(spread > 1e-12 * (1 + (mean_x * mean_y) ** 2), spread, 0.0))
    return quotient(quotient(xy, n) - mean_x * mean_y, scale)


def _value(number: float, name: str, arm: _Arm, known: _Known, *, any_item: bool) -> Value:
    lacking = arm.reason if any_item else NO_ITEM
    if not lacking and name.startswith(("stability", "reliability")):
        lacking = arm.shared if name.endswith("shared") else arm.fresh
    scored = known.rule in ("mean", "median")
    if not lacking and name in ("accuracy", "stability_shared", "stability_fresh"):
        lacking = A_SCORE if scored else NO_RIGHT if name == "accuracy" and known.right is None else ""
    if not lacking and name == "accuracy" and np.isnan(number):
        lacking = NO_RIGHT
    if not lacking and np.isnan(number):
        lacking = NO_SCORES if known.scores is None else NO_HUMAN if known.human is None else FLAT
    return Value(np.nan, lacking) if lacking else Value(number)


def _tables(found: xr.Dataset, by: By, values: Sequence[Sequence[Value]]) -> tuple[Table, ...]:
    told = [name for k, name in enumerate(MEASURES) if any(not np.isnan(row[k].estimate) for row in values)] or [
        "accuracy"
    ]
    shown = found.sel(measure=told)
    shown = shown.assign_coords(calls=[str(m) for m in found["calls"].to_numpy()])
    return (wide_table("", shown, by=by, labels=MEASURES, banded=[]),)


def _notes(laid: Arranged, kept: NDArray[np.bool_], rule: str, ties: Ties) -> tuple[str, ...]:
    present = (laid.codes >= 0).any(axis=tuple(range(2, laid.codes.ndim)))
    dropped = int((present & ~kept).sum())
    # An item counts once for each group that it is in.
    over = f" over {len(kept)} groups" if len(kept) > 1 else ""
    return (
        f"Rule: {rule}; ties: {ties}. {int(kept.sum())} items{over}, {dropped} left out for calls that are missing.",
        "Exact averages over all ways to choose disjoint calls: unbiased for fresh independent calls.",
        "Shared: two aggregates from the same prompts (judges); fresh: from prompts (judges) that are all different.",
        "The table has no room for bands: they are in the figure, the data and --output .csv. differences(result, "
        "'source'), or --differences source, compares the sources on shared draws.",
    )
