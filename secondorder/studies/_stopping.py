"""When may a panel stop voting? Two declared rules, and the law of the stopping time under any order of the votes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import comb
from typing import Literal, get_args

import numpy as np

from secondorder.errors import InputError
from secondorder.studies._disagreement import Array

__all__ = ["STOPS", "Stop", "check_stop", "compositions", "settled", "stop_law", "stop_times"]

Stop = Literal["majority", "decided"]

STOPS = {
    "majority": "one class has more than half of all votes that could be cast",
    "decided": "the lead over the runner-up is larger than the number of votes left",
}
"""Both rules."""

MOST_VOTERS = 1000  # the number of their orders is still a number


def check_stop(rule: str) -> None:
    """Refuse an unknown rule."""
    if rule not in get_args(Stop):
        raise InputError(f"stop={rule!r}", place="stop", remedy=f"say one of {', '.join(get_args(Stop))}")


def settled(counts: Array, *, rule: Stop, n_voters: int, asked: int) -> Array:
    """Whether the votes counted so far settle the outcome, as 0 or 1.

    Parameters
    ----------
    counts : array, shape (..., classes)
    rule : {"majority", "decided"}
    n_voters : int
        Voters in all.
    asked : int
        Voters asked so far; those who gave no vote have been asked.
    """
    ranked = np.sort(counts, axis=-1)
    most = ranked[..., -1]
    if rule == "majority":
        return np.asarray(most > n_voters // 2, dtype=float)
    runner = ranked[..., -2] if counts.shape[-1] > 1 else np.zeros_like(most)
    return np.asarray(most - runner > n_voters - asked, dtype=float)


def stop_times(votes: Array, *, rule: Stop) -> Array:
    """Shares of stopping after m votes in the declared order: (..., voters + 1), the last for never.

    Parameters
    ----------
    votes : array, shape (..., voters, classes)
        One-hot rows; zeros for no vote.
    """
    n_voters = votes.shape[-2]
    upto = np.cumsum(votes, axis=-2)
    done = np.stack(
        [settled(upto[..., m, :], rule=rule, n_voters=n_voters, asked=m + 1) for m in range(n_voters)], axis=-1
    )
    return _shares(done)


def stop_law(counts: Array, *, rule: Stop, n_voters: int) -> Array:
    """The same, averaged over all orders of the voters, exactly: (..., voters + 1).

    Both rules hold from their first vote on, so that whether they hold after m votes depends on the m votes alone;
    these are a draw without replacement. Only the class that wins in the end, alone, can ever settle the outcome.

    Parameters
    ----------
    counts : array, shape (cases, classes)
        All votes of a case; voters who gave none make up the rest of `n_voters`.

    Raises
    ------
    InputError
        When there are more voters than numbers can count orders of.
    """
    if n_voters > MOST_VOTERS:
        raise InputError(
            f"{n_voters} voters", place="order", remedy=f"the orders of at most {MOST_VOTERS} are averaged over"
        )
    # Neither rule asks which class is which.
    cases, inverse = np.unique(np.sort(counts.astype(np.int64), axis=-1)[:, ::-1], axis=0, return_inverse=True)
    settles = _majority_chances if rule == "majority" else _lead_chances
    done = np.stack([settles(case, n_voters) for case in cases.tolist()]) if len(cases) else np.zeros((0, n_voters))
    # What holds once holds from then on: only rounding says otherwise.
    return _shares(np.maximum.accumulate(np.minimum(done, 1), axis=-1))[inverse.ravel()]


def _majority_chances(case: Sequence[int], n_voters: int) -> Array:
    """Chance that the first class of a case has more than half of all votes among m of them, for m = 1..n_voters."""
    ways = np.zeros(n_voters + 1)
    rest = _choices(n_voters - case[0])
    for held in range(n_voters // 2 + 1, case[0] + 1):
        ways[held : held + len(rest)] += comb(case[0], held) * rest
    return ways[1:] / _choices(n_voters)[1:]


def _lead_chances(case: Sequence[int], n_voters: int) -> Array:
    """Chance that the lead of the first class of a case exceeds the votes left after m votes, for m = 1..n_voters."""
    top, silent = case[0], n_voters - sum(case)
    ways = np.zeros(n_voters + 1)
    for most in range(top):  # votes of the runner-up at most, where the leader has `held` of them
        rest = _choices(silent)
        for votes in case[1:]:
            rest = np.convolve(rest, _choices(votes)[: most + 1])
        held = np.arange(most + 1, top + 1)
        others = n_voters - 2 * held + most + 1
        fits = (others >= 0) & (others < len(rest))
        ways[(held + others)[fits]] += _choices(top)[held[fits]] * rest[others[fits]]
    return ways[1:] / _choices(n_voters)[1:]


@cache
def _choices(n: int) -> Array:
    """Ways to choose 0, 1, … of n."""
    return np.array([float(comb(n, k)) for k in range(n + 1)])


def _shares(done: Array) -> Array:
    first = np.diff(done, axis=-1, prepend=0.0)
    return np.concatenate([first, 1 - done[..., -1:]], axis=-1)


def compositions(total: int, parts: int) -> Array:
    """Every way to share `total` votes among `parts` classes, (ways, parts).

    Examples
    --------
    >>> compositions(2, 2).tolist()
    [[0.0, 2.0], [1.0, 1.0], [2.0, 0.0]]
    """
    if parts == 1:
        return np.array([[float(total)]])
    rows = [
        np.concatenate([np.full((len(rest), 1), float(first)), rest], axis=1)
        for first in range(total + 1)
        for rest in [compositions(total - first, parts - 1)]
    ]
    return np.concatenate(rows)
