"""Known laws as tables to draw from: what a cell with R calls can show, and how probable each outcome is."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

__all__ = ["NEVER", "CallTables", "CountTables", "call_tables", "compositions", "count_tables", "n_compositions"]

Array = NDArray[np.float64]

# Above every uniform draw: a threshold that is never reached.
NEVER = 2.0


class CountTables(NamedTuple):
    """Inverse distribution functions of the counts of every listed cell.

    Attributes
    ----------
    cumulative : array, shape (rows, M)
        Cumulative probabilities of a cell's compositions; ``NEVER`` from the last possible one on.
    counts : array of int32, shape (total, C)
        The compositions of every occurring number of calls, one block after the other.
    first : array of int32, shape (rows,)
        Where the block of a row's number of calls starts.
    """

    cumulative: Any
    counts: Any
    first: Any


class CallTables(NamedTuple):
    """Class thresholds of every listed cell at the first and at the last repeat.

    Attributes
    ----------
    start, end : array, shape (rows, C - 1)
        Cumulative class probabilities; the law moves linearly from one to the other over the repeats.
    n : array of int32, shape (rows,)
        Calls per cell.
    """

    start: Any
    end: Any
    n: Any


def n_compositions(total: int, parts: int) -> int:
    """Number of ways to write `total` as an ordered sum of `parts` whole numbers >= 0."""
    return math.comb(total + parts - 1, parts - 1)


def compositions(total: int, parts: int) -> NDArray[np.int32]:
    """Every way to write `total` as an ordered sum of `parts` whole numbers >= 0.

    Examples
    --------
    >>> compositions(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    bars = np.array(list(combinations(range(total + parts - 1), parts - 1)), dtype=np.int64)
    bars = bars.reshape(n_compositions(total, parts), parts - 1)
    edges = np.concatenate(
        [np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), total + parts - 1)], axis=1, dtype=np.int64
    )
    return (np.diff(edges, axis=1) - 1).astype(np.int32)


def count_tables(law: Array, n: NDArray[Any]) -> CountTables:
    """Tables for :func:`draw_outcomes`.

    Parameters
    ----------
    law : array, shape (rows, C)
        Class probabilities of every listed cell.
    n : array of int, shape (rows,)
        Calls per cell.
    """
    rows, classes = law.shape
    sizes = sorted({int(value) for value in n})
    widest = n_compositions(sizes[-1], classes)
    cumulative = np.full((rows, widest), NEVER)
    first = np.zeros(rows, dtype=np.int32)
    blocks: list[NDArray[np.int32]] = []
    start = 0
    for size in sizes:
        block = compositions(size, classes)
        chosen = np.flatnonzero(n == size)
        cumulative[chosen, : len(block)] = _cumulative(law[chosen], block, size)
        first[chosen] = start
        blocks.append(block)
        start += len(block)
    return CountTables(cumulative, np.concatenate(blocks), first)


def _cumulative(law: Array, block: NDArray[np.int32], size: int) -> Array:
    logs = np.broadcast_to(gammaln(size + 1.0) - gammaln(block + 1.0).sum(-1), (len(law), len(block))).copy()
    for c in range(law.shape[1]):
        logs += xlogy(block[None, :, c], law[:, None, c])
    mass = np.exp(logs)
    # The sum may end a rounding error below 1: an impossible composition must never be drawn all the same.
    last_possible = mass.shape[1] - 1 - np.argmax(mass[:, ::-1] > 0, axis=1)
    beyond = np.arange(mass.shape[1]) >= last_possible[:, None]
    return np.where(beyond, NEVER, np.cumsum(mass, axis=1))


def call_tables(law: Array, n: NDArray[Any], end: Array | None = None) -> CallTables:
    """Tables for :func:`draw_codes`; `end` is the law at the last repeat, when it drifts.

    Parameters
    ----------
    law, end : array, shape (rows, C)
    n : array of int, shape (rows,)
    """
    last = law if end is None else end
    # Classes after this one are impossible at both ends: its threshold must not be missed by a rounding error.
    possible = (law > 0) | (last > 0)
    last_possible = law.shape[1] - 1 - np.argmax(possible[:, ::-1], axis=1)
    beyond = np.arange(law.shape[1]) >= last_possible[:, None]
    start, stop = (np.where(beyond, NEVER, np.cumsum(table, axis=1))[:, :-1] for table in (law, last))
    return CallTables(start, stop, n.astype(np.int32))
