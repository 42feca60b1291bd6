"""Exact laws of the votes of m calls, and of two disjoint sets of m calls, given the calls that were made.

Averages over all ways to choose calls without replacement are unbiased for what fresh independent calls would do:
no call is ever compared with itself.
"""

from __future__ import annotations

import numpy as np

from secondorder.studies._disagreement import Array
from secondorder.studies._parts import Codes
from secondorder.studies._stopping import compositions

__all__ = ["joint_law", "one_call_each", "repeats_law", "two_calls_each", "two_sets_of_repeats"]


def _choose(n: Array, k: Array) -> Array:
    """Binomial coefficients ``n choose k`` of small whole numbers, 0 where k > n."""
    top = int(max(n.max(initial=0), k.max(initial=0)))
    table = np.zeros((top + 1, top + 1))
    table[:, 0] = 1
    for row in range(1, top + 1):
        table[row, 1:] = table[row - 1, 1:] + table[row - 1, :-1]
    return np.asarray(table[n.astype(np.int64), k.astype(np.int64)])


def repeats_law(counts: Array, m: int) -> tuple[Array, Array]:
    """Votes of m calls drawn without replacement from one cell.

    Parameters
    ----------
    counts : array, shape (cells, classes)
        Calls of each cell; at least m.
    m : int

    Returns
    -------
    states : array, shape (states, classes)
        Vote counts.
    law : array, shape (cells, states)
    """
    states = compositions(m, counts.shape[-1])
    ways = _choose(counts[:, None, :], np.broadcast_to(states, (len(counts), *states.shape))).prod(-1)
    return states, ways / _choose(counts.sum(-1), np.full(len(counts), m))[:, None]


def two_sets_of_repeats(counts: Array, m: int, value: Array) -> Array:
    """Mean of ``value[a]' value[b]`` over two disjoint sets of m calls of a cell, with votes a and b: (cells, P, P).

    Parameters
    ----------
    counts : array, shape (cells, classes)
        At least 2m calls in each.
    m : int
    value : array, shape (states, P)
        In the order of :func:`repeats_law`.
    """
    states, law = repeats_law(counts, m)
    found = np.zeros((len(counts), value.shape[1], value.shape[1]))
    for index, state in enumerate(states):
        left = counts - state
        fits = (left >= 0).all(-1)
        if fits.any():
            _, rest = repeats_law(left[fits], m)
            found[fits] += law[fits, index, None, None] * value[index][:, None] * (rest @ value)[:, None, :]
    return found


def one_call_each(shares: Array) -> Array:
    """Votes of one call from each of m cells: (cases, states), states in the order of :func:`repeats_law`.

    Parameters
    ----------
    shares : array, shape (cases, m, classes)
        Shares of the classes in each cell; m at least 1.
    """
    n_classes = shares.shape[-1]
    law = np.ones((len(shares), 1))
    for step in range(shares.shape[1]):
        law = _add_votes(law, shares[:, step], step, n_classes)
    return law


def _add_votes(law: Array, shares: Array, votes: int, n_classes: int) -> Array:
    where = _after(votes, n_classes)
    grown = np.zeros((len(law), int(where.max()) + 1))
    for code in range(n_classes):
        grown[:, where[:, code]] += law * shares[:, code, None]
    return grown


def _after(votes: int, n_classes: int) -> Codes:
    """Position of each state of `votes` votes after one vote more, for each class: (states, classes)."""
    states, grown = compositions(votes, n_classes), compositions(votes + 1, n_classes)
    base = (votes + 2) ** np.arange(n_classes)
    place = {int(key): index for index, key in enumerate((grown @ base).tolist())}
    keys = (states @ base)[:, None] + base
    return np.array([[place[int(key)] for key in row] for row in keys.tolist()], dtype=np.int64)


def two_calls_each(counts: Array) -> Array:
    """Classes of two different calls of a cell: (..., classes, classes), from counts (..., classes) of two or more."""
    n = counts.sum(-1)[..., None, None]
    pairs = counts[..., :, None] * counts[..., None, :] - counts[..., :, None] * np.eye(counts.shape[-1])
    return np.asarray(pairs / (n * (n - 1)))


def joint_law(pairs: Array) -> Array:
    """Votes of two sets of m calls, one call of each set from each of m cells: (cases, states, states).

    Parameters
    ----------
    pairs : array, shape (cases, m, classes, classes)
        Of :func:`two_calls_each`: the two sets take different calls of a cell.
    """
    n_classes = pairs.shape[-1]
    law = np.ones((len(pairs), 1, 1))
    for step in range(pairs.shape[1]):
        where = _after(step, n_classes)
        size = int(where.max()) + 1
        grown = np.zeros((len(pairs), size, size))
        for first in range(n_classes):
            for second in range(n_classes):
                chance = pairs[:, step, first, second, None, None]
                grown[:, where[:, first, None], where[None, :, second]] += law * chance
        law = grown
    return law
