"""When may a panel stop voting? Two declared rules, and the law of the stopping time under any order of the votes."""

from __future__ import annotations

from collections.abc import Iterator
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
    these are a draw without replacement.

    Parameters
    ----------
    counts : array, shape (cases, classes)
        All votes of a case; voters who gave none make up the rest of `n_voters`.
    """
    whole = np.concatenate([counts, n_voters - counts.sum(-1, keepdims=True)], axis=-1).astype(np.int64)
    cases, inverse = np.unique(whole, axis=0, return_inverse=True)
    done = np.zeros((len(cases), n_voters))
    for row, case in enumerate(cases.tolist()):
        for part in _parts(case):
            m = sum(part)
            if m and settled(np.array(part[:-1], dtype=float), rule=rule, n_voters=n_voters, asked=m):
                ways = 1
                for held, taken in zip(case, part, strict=True):
                    ways *= comb(held, taken)
                done[row, m - 1] += ways / comb(n_voters, m)
    return _shares(done)[inverse.ravel()]


def _shares(done: Array) -> Array:
    first = np.diff(done, axis=-1, prepend=0.0)
    return np.concatenate([first, 1 - done[..., -1:]], axis=-1)


def _parts(case: list[int]) -> Iterator[tuple[int, ...]]:
    """Every way to take some of each kind."""
    grids = np.indices([held + 1 for held in case]).reshape(len(case), -1).T
    yield from map(tuple, grids.tolist())


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
