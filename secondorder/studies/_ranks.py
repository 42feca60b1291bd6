"""Orders of systems under several prompts, compared: reversals, ties, adjacent pairs, ranks.

Arrays are ``(..., systems, prompts)`` of mean scores; a NaN mean makes what depends on it NaN.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondorder.studies._disagreement import Array

__all__ = ["Orders", "compare", "pair_tau", "signs", "system_means", "system_ranks"]

SAME = 1e-9  # means closer than this share of the largest one are tied: sums in another order are no reversal


class Orders(NamedTuple):
    """How the orders of two prompts differ, averaged over pairs of prompts; each ``(...)``.

    Attributes
    ----------
    tau : array
        Kendall's tau-b.
    reversals : array
        Share of pairs of systems in opposite order.
    ties : array
        Share of pairs of systems tied under one prompt or both: neither kept nor reversed.
    adjacent : array
        Share reversed among all pairs that are neighbours under one of the two prompts (twice where under both).
    rank_changes : array
        Share of systems with another rank.
    top_changes : array
        Share of pairs of prompts with another best system (or set of best systems).
    """

    tau: Array
    reversals: Array
    ties: Array
    adjacent: Array
    rank_changes: Array
    top_changes: Array


def system_means(means: Array, weights: Array, members: Array) -> Array:
    """Mean score of each system under each prompt for each draw, (draws, systems, prompts).

    Parameters
    ----------
    means : array, shape (rows, prompts)
        NaN: the row has no score there, and counts nowhere.
    weights : array, shape (draws, rows)
    members : array, shape (systems, rows)
        1 where a row is of a system.
    """
    there = ~np.isnan(means)
    filled = np.where(there, means, 0.0)
    out = np.empty((len(weights), len(members), means.shape[1]))
    for s, own in enumerate(members > 0):
        n = weights[:, own] @ there[own].astype(float)
        total = weights[:, own] @ filled[own]
        out[:, s] = np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0)
    return out


def _tolerance(means: Array) -> float:
    return SAME * max(1.0, float(np.nanmax(np.abs(means), initial=0.0)))


def signs(means: Array) -> Array:
    """Order of every pair of systems, (..., pairs, prompts): 1 first is higher, -1 lower, 0 tied."""
    first, second = np.triu_indices(means.shape[-2], 1)
    gap = means[..., first, :] - means[..., second, :]
    return np.where(np.abs(gap) <= _tolerance(means), 0.0, np.sign(gap))


def system_ranks(means: Array) -> tuple[Array, Array]:
    """Rank of each system (1 is the highest mean; tied systems share the better rank), and systems at or above it."""
    gap = means[..., :, None, :] - means[..., None, :, :]  # (..., i, j, prompts): i minus j
    limit = _tolerance(means)
    undefined = np.isnan(means)
    better = np.where(undefined, np.nan, (gap < -limit).sum(-2) + 1.0)
    at_or_above = np.where(undefined, np.nan, (gap <= limit).sum(-2).astype(float))
    return better, at_or_above


def pair_tau(sign: Array) -> Array:
    """Kendall's tau-b of every two prompts, (..., prompts, prompts); NaN where a prompt ties all systems."""
    inner = np.swapaxes(sign, -1, -2) @ sign
    scale = np.sqrt(np.einsum("...kk->...k", inner))
    below = scale[..., :, None] * scale[..., None, :]
    return np.asarray(np.divide(inner, below, out=np.full(inner.shape, np.nan), where=below > 0))


def compare(means: Array, others: Array | None = None) -> Orders:
    """Orders of every two prompts compared; with `others`, each prompt's order with the same prompt's there."""
    left, right = _pairs_of_prompts(means, others)
    a, b = signs(left), signs(right)
    reverse, tied = a * b < 0, (a == 0) | (b == 0)
    inner = (a * b).sum(-2)
    scale = np.sqrt((a != 0).sum(-2) * (b != 0).sum(-2))
    tau = np.divide(inner, scale, out=np.full(inner.shape, np.nan), where=scale > 0)
    rank_a, rank_b = system_ranks(left), system_ranks(right)
    neighbours = _adjacent(*rank_a).astype(float) + _adjacent(*rank_b)
    near = neighbours.sum((-1, -2))
    top = ((rank_a[0] == 1) != (rank_b[0] == 1)).any(-2)
    found = Orders(
        tau=tau.mean(-1),
        reversals=reverse.mean((-1, -2)),
        ties=tied.mean((-1, -2)),
        adjacent=np.divide((neighbours * reverse).sum((-1, -2)), near, out=np.full(near.shape, np.nan), where=near > 0),
        rank_changes=(rank_a[0] != rank_b[0]).mean((-1, -2)),
        top_changes=top.mean(-1),
    )
    undefined = np.isnan(left).any((-1, -2)) | np.isnan(right).any((-1, -2))
    return Orders(*(np.where(undefined, np.nan, array) for array in found))


def _pairs_of_prompts(means: Array, others: Array | None) -> tuple[Array, Array]:
    if others is not None:
        return means, others
    k, other = np.triu_indices(means.shape[-1], 1)
    return means[..., k], means[..., other]


def _adjacent(rank: Array, at_or_above: Array) -> NDArray[np.bool_]:
    # Two untied systems are neighbours when nobody stands strictly between them.
    first, second = np.triu_indices(rank.shape[-2], 1)
    return np.asarray(
        (at_or_above[..., first, :] + 1 == rank[..., second, :])
        | (at_or_above[..., second, :] + 1 == rank[..., first, :])
    )
