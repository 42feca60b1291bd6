"""The rules of aggregation by name, and what each decides on the votes of one group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from secondorder._schema import BOTTOM
from secondorder.errors import InputError, TableError, UndefinedError
from secondorder.studies._dawid_skene import Skills, dawid_skene
from secondorder.studies._disagreement import Array
from secondorder.studies._error_rates import label_free_rates, weighted_majority
from secondorder.studies._layout import as_names, group_labels
from secondorder.studies._panel import Panel
from secondorder.studies._parts import Codes
from secondorder.studies._votes import Ties, chosen, decision_weights, score_of_votes, tied, uniforms

__all__ = ["NO_SCORES", "RULES", "SCORED", "Decided", "check_rules", "decide"]

RULES = {
    "single": "the default voter alone",
    "plurality": "most votes",
    "majority": "more than half of the voters",
    "mean": "mean score of the votes",
    "median": "median score of the votes",
    "dawid_skene": "most probable class under error rates fitted by maximum likelihood (Dawid and Skene)",
    "weighted": "votes weighted by error rates read from agreement alone",
}
"""Every rule: the only list of their names."""

SCORED = ("mean", "median")
NO_SCORES = "the classes have no scores"
EQUAL = 1e-9  # probabilities that differ by less are the same
STRANGE = 0.05  # share of decisions beyond twice the share of votes that a fit has to be doubted for


class Decided(NamedTuple):
    """What a rule decides in one group.

    Attributes
    ----------
    codes : int array, shape (items, events)
        Class codes; -1 where there is no decision, or the decision is a score.
    scores : array, shape (items, events)
        Scores of the decisions, NaN where there are none.
    scored : bool
        Whether the decision is a score and no class.
    reason : str
        Why the rule decides nothing at all; empty where it does.
    note : str
        What a reader should know of the fit.
    settled : bool
        Whether the fit converged; True where nothing is fitted.
    """

    codes: Codes
    scores: Array
    scored: bool = False
    reason: str = ""
    note: str = ""
    settled: bool = True


def check_rules(rules: Sequence[str] | None, panel: Panel) -> list[str]:
    """Names of the rules asked for; without any, those that the data allow.

    Raises
    ------
    InputError
        When a rule is unknown.
    """
    if rules is None:
        scored, enough = panel.scores is not None, len(panel.voters) > 2
        return [name for name in RULES if (scored or name not in SCORED) and (enough or name != "weighted")]
    names = list(as_names(rules))
    if not names or set(names) - set(RULES):
        raise InputError(f"rules {names}", place="rules", remedy=f"some of {', '.join(RULES)}")
    return names


def decide(name: str, panel: Panel, g: int, *, ties: Ties, seed: int) -> Decided:
    """Decisions of one rule on the votes of group `g`."""
    codes, counts = panel.laid.codes[g], panel.counts[g]
    nothing, unknown = np.full(counts.shape[:2], -1, dtype=np.int64), np.full(counts.shape[:2], np.nan)
    note, settled = "", True
    if name in SCORED:
        if panel.scores is None:
            return Decided(nothing, unknown, True, NO_SCORES)
        return Decided(nothing, score_of_votes(counts, panel.scores, name), True)
    if name == "single":
        found = codes[..., panel.default]
    elif name == "plurality":
        found = _plurality(counts, panel, g, ties=ties, seed=seed)
    elif name == "majority":
        weights = decision_weights(counts, rule=name, ties=ties, n_voters=codes.shape[-1])
        found = chosen(weights, np.zeros(counts.shape[:2]))
    else:
        try:
            posterior, note, settled = _modelled(name, codes, panel.laid.classes)
        except (TableError, UndefinedError) as error:
            return Decided(nothing, unknown, False, error.problem)
        # Equally probable classes are tied as equal votes are.
        top = np.nan_to_num(posterior >= posterior.max(-1, keepdims=True) - EQUAL).astype(float)
        found = _plurality(top, panel, g, ties=ties, seed=seed)
    table = np.full(len(panel.laid.classes), np.nan) if panel.scores is None else panel.scores
    return Decided(found, np.append(table, np.nan)[found], False, "", note, settled)


def _plurality(counts: Array, panel: Panel, g: int, *, ties: Ties, seed: int) -> Codes:
    """The class with the most votes of every event of group `g`."""
    weights = decision_weights(counts, rule="plurality", ties=ties, n_voters=len(panel.voters))
    group = "/".join(group_labels(panel.laid.by)[g])
    events = [f"{group}/{event}" for event in range(counts.shape[1])]
    return chosen(weights, uniforms(tied(counts) & (ties == "random"), [panel.laid.items, events], seed))


def _doubts(fit: Skills, votes: Array, classes: Sequence[str]) -> str:
    """What speaks against a fit: no convergence, or a class that is decided far more often than it is voted for."""
    said, decided = votes.sum((0, 1)) / votes.sum(), np.nanmean(fit.posterior, axis=0)
    strange = [
        f"{100 * here:.0f} % of the decisions and {100 * there:.0f} % of the votes are {label!r}"
        for label, here, there in zip(classes, decided, said, strict=True)
        if here > 2 * there + STRANGE
    ]
    notes = [] if fit.converged else [f"no convergence in {fit.steps} steps"]
    if strange:
        notes.append(f"{', '.join(strange)}: few votes can hold a class up that is not there")
    return f"Dawid and Skene: {'; '.join(notes)}" if notes else ""


def _modelled(name: str, codes: Codes, classes: Sequence[str]) -> tuple[Array, str, bool]:
    """Posterior of each class, (items, events, classes), a note on the fit, and whether it converged."""
    tasks, n_classes = codes.reshape(-1, codes.shape[-1]), len(classes)
    # An invalid verdict is no answer that could be right.
    right = n_classes - (classes[-1] == BOTTOM)
    if name == "dawid_skene":
        votes = np.stack([tasks == code for code in range(n_classes)], axis=-1).astype(float)
        fit = dawid_skene(votes, right=max(right, 1))
        note = _doubts(fit, votes, classes)
        return fit.posterior.reshape(*codes.shape[:2], n_classes), note, fit.converged
    # Nor a vote, where errors are taken to be spread evenly over the answers.
    tasks = np.where(tasks < right, tasks, -1)
    rates = label_free_rates(tasks, n_classes=right)
    note = f"weighted: {rates.held} error rates outside [0, 1] were put at the bound" if rates.held else ""
    posterior = np.pad(weighted_majority(tasks, rates), ((0, 0), (0, n_classes - right)))
    return posterior.reshape(*codes.shape[:2], n_classes), note, True
