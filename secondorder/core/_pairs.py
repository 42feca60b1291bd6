"""The primitive: mean disagreement over pairs of calls, for every set of facets that the two calls may share.

``D_S`` is the expected disagreement of two conditionally independent calls on one item that share the levels of the
facets in ``S`` and draw the levels of the others independently. With ``P_S`` the law averaged over the facets outside
``S``, ``D_S = E[P_S' D P_S]``: one weighted mean per facet and one quadratic form, linear in the number of cells.

The functions of this file use array operators alone, so the same lines run on JAX arrays and on object arrays of
``fractions.Fraction``; the exact checks of this package execute the very code that users run.

Arrays are ``(*batch, L_1, ..., L_J, C)``; results are one array ``(*batch,)`` per subset, in the order of
``Design.mask``: bit j of the position says that facet j is shared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from secondorder._design import Component, Design

__all__ = ["combine", "correction_weights", "pair_disagreements", "sampled_levels", "self_corrections"]

MANY_LEVELS = 64


def pair_disagreements(mean: Any, design: Design, kernel: Any) -> list[Any]:
    """``D_S`` at laws (or at mean verdict vectors) for every subset of facets.

    Parameters
    ----------
    mean : array, shape (*batch, L_1, ..., L_J, C)
        A law per cell.
    design : Design
        Weights of the levels; the kinds of the facets play no role here (see :func:`sampled_levels`).
    kernel : array, shape (C, C)
        Disagreement matrix.

    Returns
    -------
    list of array, shape (*batch,)
        One per subset, ``2**J`` in all.
    """
    size = len(design.names)
    full = (1 << size) - 1
    averaged: list[Any] = [None] * (full + 1)
    averaged[full] = mean
    for mask in range(full - 1, -1, -1):
        facet = next(j for j in range(size) if not mask >> j & 1)
        # A facet already averaged out has left the array: axes are counted from the class axis backwards.
        axis = -2 - (mask >> facet).bit_count()
        averaged[mask] = _weighted_mean(averaged[mask | 1 << facet], design.weights[facet], axis)
    values = []
    for mask, law in enumerate(averaged):
        quadratic = ((law @ kernel) * law).sum(-1)
        for facet in reversed([j for j in range(size) if mask >> j & 1]):
            quadratic = _weighted_mean(quadratic, design.weights[facet], -1)
        values.append(quadratic)
    return values


def self_corrections(n: Any, mean: Any, self_disagreement: Any, design: Design, kernel: Any) -> list[Any]:
    """What turns ``D_S`` at the observed means into the average over pairs of *distinct* calls.

    A cell's quadratic form ``q_f = m' D m`` counts each call's pair with itself; over distinct calls the mean is
    ``(n q_f - h_f) / (n - 1)``, so ``D_S`` is corrected by ``sum_f a_S(f) (q_f - h_f) / (n_f - 1)``, with ``h_f`` the
    mean disagreement of a call's verdict with itself (0 for hard verdicts).

    Parameters
    ----------
    n : array, shape (*batch, L_1, ..., L_J)
        Calls per cell, all >= 2.
    mean : array, shape (*batch, L_1, ..., L_J, C)
    self_disagreement : array, shape (*batch, L_1, ..., L_J)

    Returns
    -------
    list of array, shape (*batch,)
        One per subset.
    """
    excess = (((mean @ kernel) * mean).sum(-1) - self_disagreement) / (n - 1)
    size = len(design.names)
    values = []
    for mask in range(1 << size):
        term = excess
        for facet in reversed(range(size)):
            weights = correction_weights(design, facet, shared=bool(mask >> facet & 1))
            term = _weighted_mean(term, weights, -1)
        values.append(term)
    return values


def correction_weights(design: Design, facet: int, *, shared: bool) -> tuple[Any, ...]:
    """Diagonal of the census's pair weights of one facet: ``w`` where the level is shared, ``w**2`` where it is not."""
    weights = design.weights[facet]
    return weights if shared else tuple(weight * weight for weight in weights)


def sampled_levels(values: Sequence[Any], design: Design) -> list[Any]:
    """Turn census disagreements into those of the policies that random facets' levels were drawn from.

    For a random facet with L levels and every subset without it, pairs of *distinct* levels estimate what two
    independent draws do: ``D_S <- (L D_S - D_{S+j}) / (L - 1)``. Levels drawn without replacement from a list of M:
    two draws fall on the same level with probability 1/M.
    """
    result = list(values)
    for facet, population in enumerate(design.populations):
        if population is None:
            continue
        size = len(design.weights[facet])
        bit = 1 << facet
        for mask in range(len(result)):
            if mask & bit:
                continue
            distinct = (size * result[mask] - result[mask | bit]) / (size - 1)
            if math.isinf(population):
                result[mask] = distinct
            else:
                result[mask] = distinct + (result[mask | bit] - distinct) / population
    return result


def combine(components: Sequence[Component], values: Sequence[Any], design: Design) -> list[Any]:
    """Signed sums of ``D_S``: one array ``(*batch,)`` per component."""
    result = []
    for component in components:
        total: Any = None
        for coefficient, value in zip(component.coefficients(design), values, strict=True):
            if coefficient == 0:
                continue
            if coefficient == 1:
                term = value
            elif coefficient == -1:
                term = -value
            else:
                term = value * coefficient
            total = term if total is None else total + term
        result.append(values[0] * 0 if total is None else total)
    return result


def _weighted_mean(values: Any, weights: Sequence[Any], axis: int) -> Any:
    if len(weights) > MANY_LEVELS:
        # A program with a line for every level takes minutes to compile.
        shape = [1] * values.ndim
        shape[axis] = len(weights)
        return (values * np.asarray(weights).reshape(shape)).sum(axis)
    # Level by level: the additions keep one order for every array library, and a compiler fuses them into one loop.
    index: list[Any] = [slice(None)] * values.ndim
    total: Any = None
    for level, weight in enumerate(weights):
        index[axis] = level
        term = values[tuple(index)] * weight
        total = term if total is None else total + term
    return total
