"""What an aggregate of m calls decides on average, alone and in two disjoint sets, for each source of calls."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from secondorder.studies._call_laws import (
    joint_law,
    one_call_each,
    repeats_law,
    two_calls_each,
    two_sets_of_repeats,
)
from secondorder.studies._disagreement import Array
from secondorder.studies._stopping import compositions
from secondorder.studies._votes import Ties, decision_weights, score_of_votes

__all__ = ["Outcome", "Pairs", "outcome_values", "repeats_moments", "subsets_moments"]

MOST_WORK = 2e10  # sums over two vote counts that are formed for one arm: some minutes
BLOCK = 2e7  # numbers held at a time


class Outcome(NamedTuple):
    """What is decided at each vote count of m calls.

    Attributes
    ----------
    value : array, shape (states, classes + 4)
        Probability of each decision and of abstaining; of having a score; mean score and squared score where it has
        one, 0 where not.
    calls : int
    """

    value: Array
    calls: int


class Pairs(NamedTuple):
    """Means of products over two disjoint sets of calls, or why there are none.

    Attributes
    ----------
    products : array, shape (cases, classes + 4, classes + 4), or None
    reason : str
    """

    products: Array | None
    reason: str = ""


def outcome_values(m: int, n_classes: int, scores: Array | None, *, rule: str, ties: Ties) -> Outcome:
    """Decisions and scores at every vote count of m calls."""
    states = compositions(m, n_classes)
    if rule in ("mean", "median"):
        score = score_of_votes(states, np.full(n_classes, np.nan) if scores is None else scores, rule)
        weights = np.zeros((len(states), n_classes + 1))
        weights[:, -1] = np.isnan(score)
        there, score = ~np.isnan(score), np.nan_to_num(score)
        return Outcome(np.column_stack([weights, there, score, score * score]), m)
    weights = decision_weights(states, rule=rule, ties=ties, n_voters=m)
    table = np.full(n_classes, np.nan) if scores is None else scores
    known, filled = (~np.isnan(table)).astype(float), np.nan_to_num(table)
    decided = weights[:, :-1]
    return Outcome(np.column_stack([weights, decided @ known, decided @ filled, decided @ filled**2]), m)


def repeats_moments(counts: Array, outcome: Outcome) -> tuple[Array, Pairs, Pairs]:
    """Take m calls of one cell, and average over cells.

    Parameters
    ----------
    counts : array, shape (cases, judges, prompts, classes)
        The same number of calls, at least m, in every cell.
    outcome : Outcome

    Returns
    -------
    means : array, shape (cases, classes + 4)
    shared, fresh : Pairs
        Two sets from one cell; from two prompts of one judge.
    """
    m, size = outcome.calls, counts.shape[-1]
    n_calls = int(counts[0].sum(-1).max(initial=0)) if len(counts) else 0
    cells, inverse = np.unique(counts.reshape(-1, size), axis=0, return_inverse=True)
    _, law = repeats_law(cells, m)
    each = (law @ outcome.value)[inverse.ravel()].reshape(*counts.shape[:-1], -1)
    if 2 * m <= n_calls:
        products = two_sets_of_repeats(cells, m, outcome.value)[inverse.ravel()]
        shared = Pairs(products.reshape(*counts.shape[:3], *products.shape[1:]).mean((1, 2)))
    else:
        shared = Pairs(None, f"two disjoint sets need {2 * m} calls per cell, there are {n_calls}")
    n_prompts = counts.shape[2]
    if n_prompts < 2:
        return each.mean((1, 2)), shared, Pairs(None, "one prompt")
    return each.mean((1, 2)), shared, Pairs(_distinct_products(each).mean(1))


def _distinct_products(each: Array) -> Array:
    """Mean product over two different levels: (..., levels, P) to (..., P, P)."""
    size = each.shape[-2]
    total = each.sum(-2)
    same = np.einsum("...lp,...lq->...pq", each, each)
    return np.asarray((total[..., :, None] * total[..., None, :] - same) / (size * (size - 1)))


def subsets_moments(counts: Array, outcome: Outcome, *, what: str) -> tuple[Array, Pairs, Pairs]:
    """Take one call of each of m levels, and average over the sets of m levels and over what is held fixed.

    Parameters
    ----------
    counts : array, shape (cases, held, levels, classes)
        At least m levels.
    outcome : Outcome
    what : str
        Name of the levels, for reasons.

    Returns
    -------
    means : array, shape (cases, classes + 4)
    shared, fresh : Pairs
        Two sets of calls from the same levels; from levels that are all different.
    """
    m, (n_held, n_levels, size) = outcome.calls, counts.shape[1:]
    chosen = list(combinations(range(n_levels), m))
    cells = counts.reshape(-1, n_levels, size)
    calls = cells.sum(-1, keepdims=True)
    each = np.stack([one_call_each((cells / calls)[:, subset]) @ outcome.value for subset in chosen], axis=1)
    means = each.reshape(len(counts), n_held, len(chosen), -1).mean((1, 2))
    return means, _shared(counts, chosen, outcome), _fresh(each, chosen, n_levels, len(counts), m, what)


def _shared(counts: Array, chosen: Sequence[tuple[int, ...]], outcome: Outcome) -> Pairs:
    n_held, n_levels, size = counts.shape[1:]
    n_calls = int(counts.sum(-1).min(initial=np.inf)) if counts.size else 0
    if n_calls < 2:
        return Pairs(None, f"two calls per cell are needed, there is {n_calls}")
    n_states = len(outcome.value)
    patterns, inverse = np.unique(counts.reshape(-1, n_levels * size), axis=0, return_inverse=True)
    work = len(patterns) * len(chosen) * n_states**2 * size**2
    if work > MOST_WORK:
        return Pairs(None, f"{work:.0e} pairs of vote counts are too many to sum exactly: ask for fewer calls")
    pairs = two_calls_each(patterns.reshape(-1, n_levels, size))
    found = np.zeros((len(patterns), outcome.value.shape[1], outcome.value.shape[1]))
    step = max(1, int(BLOCK // n_states**2))
    for start in range(0, len(patterns), step):
        block = slice(start, start + step)
        for subset in chosen:
            law = joint_law(pairs[block][:, subset])
            found[block] += outcome.value.T @ law @ outcome.value / len(chosen)
    return Pairs(found[inverse.ravel()].reshape(len(counts), n_held, *found.shape[1:]).mean(1))


def _fresh(each: Array, chosen: Sequence[tuple[int, ...]], n_levels: int, n_cases: int, m: int, what: str) -> Pairs:
    if 2 * m > n_levels:
        return Pairs(None, f"two sets without a common level need {2 * m} {what}, there are {n_levels}")
    place = {subset: index for index, subset in enumerate(chosen)}
    total = np.zeros((len(each), each.shape[-1], each.shape[-1]))
    for subset, index in place.items():
        others = [level for level in range(n_levels) if level not in subset]
        beside = each[:, [place[other] for other in combinations(others, m)]].sum(1)
        total += each[:, index, :, None] * beside[:, None, :]
    total /= len(chosen) * comb(n_levels - m, m)
    return Pairs(total.reshape(n_cases, -1, *total.shape[1:]).mean(1))
