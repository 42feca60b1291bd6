"""Several votes on an item to one decision, under several rules, against the right answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from secondorder._labels._results import Table
from secondorder._schema import BOTTOM, ITEM, PROMPT
from secondorder.errors import InputError
from secondorder.studies._bands import alone, check_draws, item_draws, resampled_sums
from secondorder.studies._correlations import CORRELATIONS, make_points, weighted
from secondorder.studies._disagreement import Array
from secondorder.studies._figures import drawn_measures
from secondorder.studies._layout import By, as_names, group_labels
from secondorder.studies._panel import Panel, make_panel
from secondorder.studies._parts import Value, quotient
from secondorder.studies._ratings import Invalid
from secondorder.studies._result import StudyResult, measured, wide_table
from secondorder.studies._rules import NO_SCORES, RULES, Decided, check_rules, decide
from secondorder.studies._votes import Ties, check_ties, tied

__all__ = ["aggregate"]

SHARES = ("accuracy", "abstained")
LABELS = {
    "accuracy": "accuracy",
    "abstained": "abstained",
    "pearson": "Pearson",
    "spearman": "Spearman",
    "kendall": "Kendall τ-b",
}
NO_RIGHT = "there are no right classes"
NO_HUMAN = "there are no human scores"
A_SCORE = "a score is no class"
FLAT = "the decisions or the human scores do not vary, or no item has both"
NO_VOTES = "no item has a vote"
UNJUDGED = "no item has both a vote and a right class"


def aggregate(
    data: xr.Dataset | xr.DataArray,
    *,
    voters: str | Sequence[str] = PROMPT,
    rules: Sequence[str] | None = None,
    ties: Ties = "abstain",
    default: str | None = None,
    by: str | Sequence[str] | None = None,
    gold: str = "gold",
    scores: Mapping[str, float] | None = None,
    correlations: Sequence[str] = ("pearson",),
    invalid: Invalid = "class",
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """Aggregate the votes on each item under several rules, and compare the decisions with the right answers.

    Every combination of the dimensions that are neither voters nor grouping (an order, a repeat) is an event: one vote
    of the whole panel. Items are the unit that is resampled.

    Parameters
    ----------
    data : Dataset or DataArray
        A verdict cube.
    voters : str or sequence of str
        Whose verdicts are aggregated: ``"prompt"``, ``"judge"``, ``("judge", "prompt")``, ``"repeat"``.
    rules : sequence of str, optional
        Some of :data:`RULES`. Default: all that the data allow.
    ties : {"abstain", "ordered", "random"}
        What plurality does where several classes have the most votes: nothing, the first in the declared order of the
        classes (a bias towards it), or one drawn by a hash of the seed and the item.
    default : str, optional
        The voter of rule ``single``. Default: the first.
    by : str or sequence of str, optional
        Dimensions or item coordinates to group by; default ``judge`` where it is a dimension and no voter.
    gold : str
        Variable or coordinate of the items: right classes, or human scores.
    scores : mapping of class to float, optional
        Default: the class labels as numbers, where they are.
    correlations : sequence of {"pearson", "spearman", "kendall"}
        Of the decisions' scores with the human scores.
    invalid : {"class", "missing"}
        Whether ⊥ is a class that can win a vote, or no vote.
    level, draws, seed
        Percentile band over items; the decisions are held, so the fit of ``dawid_skene`` and ``weighted`` is not in it.

    Returns
    -------
    StudyResult
        For each group and rule ``accuracy`` (an abstention is wrong), ``abstained`` and the correlations; ``n_tied``
        counts the events in which several classes have the most votes. ``decision`` (label, empty where it abstains)
        and ``value`` (its score) of every item and event.

    Raises
    ------
    CubeError, InputError
        When there are fewer than two voters, or a rule, voter or correlation is unknown.

    Examples
    --------
    >>> verdict = [[0, 0, 1], [1, 1, 1], [0, 1, 1], [0, 0, 0]]
    >>> cube = xr.Dataset({"verdict": (("item", "prompt"), verdict)},
    ...                   coords={"class": ["no", "yes"], "gold": ("item", ["no", "yes", "yes", "no"])})
    >>> found = aggregate(cube, rules=["single", "plurality"], draws=0)
    >>> found["accuracy"].estimate.to_numpy().tolist()
    [0.75, 1.0]
    """
    check_draws(level=level, draws=draws, seed=seed)
    check_ties(ties)
    kinds = as_names(correlations)
    measures = [*SHARES, *kinds]
    if set(kinds) - set(CORRELATIONS):
        raise InputError(f"correlations {list(kinds)}", place="correlations", remedy=f"some of {list(CORRELATIONS)}")
    panel = make_panel(data, voters=voters, default=default, by=by, gold=gold, scores=scores, invalid=invalid)
    check_ties(ties, ranked=panel.laid.ranked)
    names = check_rules(rules, panel)
    decided = [[decide(name, panel, g, ties=ties, seed=seed) for name in names] for g in range(len(panel.counts))]
    grouping: By = (*panel.laid.by, ("rule", tuple(names)))
    every = [(one, g) for g, row in enumerate(decided) for one in row]
    shares = _shares(every, panel, draws=draws, seed=seed)
    related = [_correlated(one, panel, kinds, draws=draws, seed=seed) for one, _ in every]
    points = np.concatenate([shares, np.stack(related)], axis=1)
    found, drawn = measured(
        by=grouping,
        measures=measures,
        values=[_values(one, panel, row) for (one, _), row in zip(every, points[..., 0], strict=True)],
        draws=points[..., 1:],
        level=level,
        counts={
            name: np.repeat(count, len(names))
            for name, count in (
                ("n_events", panel.voted.sum((1, 2))),
                ("n_tied", (panel.voted & tied(panel.counts)).sum((1, 2))),
                ("n_invalid", panel.laid.n_invalid),
                ("n_missing", panel.laid.n_missing),
            )
        },
    )
    found = _with_decisions(found, panel, names, decided)
    found.attrs.update(voters=":".join(as_names(voters)), ties=ties, seed=seed)
    figure = drawn_measures(found.sel(measure=["accuracy", *kinds]), LABELS, title="Rules")
    return StudyResult(
        f"Aggregation of {len(panel.voters)} votes: {' × '.join(as_names(voters))}",
        found,
        (
            _marked(
                wide_table(
                    "", found, by=grouping, labels=LABELS, banded=["accuracy", *kinds], notes=_counts(found, panel)
                ),
                [one.settled for row in decided for one in row],
                len(grouping) - 1,
            ),
        ),
        _notes(panel, names, decided, ties),
        drawn,
        (figure,),
        LABELS,
    )


def _shares(every: Sequence[tuple[Decided, int]], panel: Panel, *, draws: int, seed: int) -> Array:
    """Accuracy and abstentions of each rule in its group: the data first, then item draws that all share."""
    columns = []
    for one, g in every:
        voted = panel.voted[g]
        right = np.full(len(voted), -1) if panel.right is None or one.scored else panel.right
        judged = voted & (right >= 0)[:, None]
        none = np.isnan(one.scores) if one.scored else one.codes < 0
        parts = (judged & (one.codes == right[:, None]), judged, voted & none, voted)
        columns.append(np.stack([part.sum(1) for part in parts], axis=-1).astype(float) * (not one.reason))
    stacked = np.concatenate(columns, axis=1)
    sums = np.concatenate(
        [stacked.sum(0)[None], resampled_sums(stacked, draws=draws, seed=seed, strata=panel.laid.strata)]
    ).T.reshape(len(every), -1, 1 + draws)
    return np.stack([quotient(sums[:, a], sums[:, b]) for a, b in ((0, 1), (2, 3))], axis=1)


def _correlated(one: Decided, panel: Panel, kinds: Sequence[str], *, draws: int, seed: int) -> Array:
    """Correlations of a rule's scores with the human scores: the data first, then item draws."""
    if not kinds:
        return np.zeros((0, 1 + draws))
    n_items, n_events = one.scores.shape
    human = np.full(n_items, np.nan) if panel.human is None else panel.human
    rows = np.repeat(np.arange(n_items), n_events)
    points = make_points(one.scores.ravel(), human[rows], rows, n_items)
    blocks = item_draws(n_items, draws=draws, seed=seed, strata=panel.laid.strata)
    found = np.concatenate([weighted(points, block, kinds) for block in (np.ones((1, n_items)), *blocks)], axis=1)
    related = (~np.isnan(one.scores)).any(1) & ~np.isnan(human)
    if (related & alone(n_items, panel.laid.strata)).any():
        found[:, 1:] = np.nan
    return found


def _values(one: Decided, panel: Panel, numbers: Array) -> list[Value]:
    """Numbers of one rule, with the reasons of those that are undefined."""
    right = A_SCORE if one.scored else NO_RIGHT if panel.right is None else UNJUDGED
    human = NO_HUMAN if panel.human is None else NO_SCORES if panel.scores is None else FLAT
    reasons = [right, NO_VOTES, *[human] * (len(numbers) - len(SHARES))]
    return [
        Value(float(x), (one.reason or why) if np.isnan(x) else "") for x, why in zip(numbers, reasons, strict=True)
    ]


def _marked(table: Table, settled: Sequence[bool], at: int) -> Table:
    """The table with the rules whose fit did not converge told apart, in their own rows."""
    rows = [
        row if there else (*row[:at], f"{row[at]} (no convergence)", *row[at + 1 :])
        for row, there in zip(table.rows, settled, strict=True)
    ]
    return replace(table, rows=tuple(rows))


def _counts(found: xr.Dataset, panel: Panel) -> list[str]:
    here = found.isel(rule=0)
    notes = []
    for group in group_labels(panel.laid.by):
        one = here.sel({name: label for (name, _), label in zip(panel.laid.by, group, strict=True)})
        told = ", ".join(f"{int(one[f'n_{name}'])} {name}" for name in ("events", "tied", "invalid", "missing"))
        notes.append(f"{' / '.join(group) or 'all'}: {told}")
    return notes


def _with_decisions(
    found: xr.Dataset, panel: Panel, names: Sequence[str], decided: Sequence[Sequence[Decided]]
) -> xr.Dataset:
    labels = np.array([*panel.laid.classes, ""], dtype=object)
    codes = np.stack([[one.codes for one in row] for row in decided])
    scores = np.stack([[one.scores for one in row] for row in decided])
    shape = (*(len(levels) for _, levels in panel.laid.by), len(names), *codes.shape[2:])
    dims = (*(name for name, _ in panel.laid.by), "rule", ITEM, "event")
    return found.assign(
        decision=(dims, labels[codes].reshape(shape)), value=(dims, scores.reshape(shape))
    ).assign_coords({ITEM: list(panel.laid.items)})


def _notes(panel: Panel, names: Sequence[str], decided: Sequence[Sequence[Decided]], ties: Ties) -> tuple[str, ...]:
    said = {
        "abstain": "a tie decides nothing",
        "ordered": "a tie goes to the first class in the declared order, which favours that class",
        "random": "a tie is drawn by a hash of the seed and the item",
    }
    told = {**RULES, "single": f"the voter {panel.voters[panel.default]!r} alone; --default (default=) names another"}
    notes = [f"{name}: {told[name]}." for name in names]
    notes.append(f"Ties: {said[ties]}; an abstention is a wrong decision and has no score.")
    if BOTTOM in panel.laid.classes:
        notes.append("⊥ is a class that can win a vote; --invalid-as missing (invalid='missing') sets it aside.")
        if "weighted" in names:
            notes.append("weighted: ⊥ is no vote.")
    if {"dawid_skene", "weighted"} & set(names):
        notes.append(
            "Dawid and Skene, weighted: they take voters to err independently given the right class; voters of one "
            "model (its prompts, its repeats) share its errors."
        )
    notes += sorted({f"{one.note}." for row in decided for one in row if one.note})
    return tuple(notes)
