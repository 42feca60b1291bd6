"""Pair weights of a component as signed Kronecker products of small matrices, one per facet, never multiplied out.

A component is ``sum_{f, f'} B_{f f'} d_{f f'}`` over pairs of cells. ``B`` is a signed Kronecker product of one matrix
per facet, and each of those is a diagonal plus a signed outer product:

========  =======================================  ==================================================================
kind      the two calls of a pair                  matrix
========  =======================================  ==================================================================
shared    share the level                          ``diag(w)``
indep     draw it independently                    ``w w'`` (fixed); ``(1 1' - I) / (L (L - 1))`` (random)
effect    shared minus indep                       ``diag(w) - indep``
========  =======================================  ==================================================================

That form is closed under elementwise products, so every application is linear in the number of cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from secondorder._design import Component, Design, Factor

__all__ = [
    "PairFactor",
    "PairForm",
    "PairProduct",
    "apply",
    "dense",
    "diagonal",
    "hadamard",
    "pair_factor",
    "pair_form",
]


class PairFactor(NamedTuple):
    """The matrix ``diag(diagonal) + sign * outer outer'`` of one facet, L by L."""

    diagonal: Any
    outer: Any
    sign: Any


class PairProduct(NamedTuple):
    """``coefficient`` times the Kronecker product of one factor per facet."""

    coefficient: float
    factors: tuple[PairFactor, ...]


PairForm = tuple[PairProduct, ...]


def pair_factor(weights: Sequence[Any], kind: Factor, population: Any = None) -> PairFactor:
    """Pair weights of one facet.

    Parameters
    ----------
    weights : sequence of float, length L
        Weights of the levels, sum 1.
    kind : {"shared", "indep", "effect"}
    population : float, optional
        None for a fixed facet; for a random one (equal weights) the length of the list that its levels were drawn
        from without replacement, ``inf`` for independent draws from a policy.

    Examples
    --------
    >>> dense(pair_factor([0.5, 0.5], "effect")).tolist()
    [[0.25, -0.25], [-0.25, 0.25]]
    """
    w = np.array([float(weight) for weight in weights])
    size = len(w)
    if kind == "shared":
        return PairFactor(w, np.zeros(size), 1.0)
    if population is None:
        own, outer = np.zeros(size), w
    else:
        same = 0.0 if math.isinf(population) else 1.0 / float(population)
        distinct = (1.0 - same) / (size * (size - 1))
        own, outer = np.full(size, same / size - distinct), np.full(size, math.sqrt(distinct))
    return PairFactor(own, outer, 1.0) if kind == "indep" else PairFactor(w - own, outer, -1.0)


def pair_form(component: Component, design: Design) -> PairForm:
    """Pair weights of a component."""
    return tuple(
        PairProduct(
            float(coefficient),
            tuple(
                pair_factor(weights, kind, population)
                for weights, kind, population in zip(design.weights, kinds, design.populations, strict=True)
            ),
        )
        for coefficient, kinds in component.products(design)
    )


def dense(factor: PairFactor) -> NDArray[np.float64]:
    """The factor's L by L matrix."""
    matrix: NDArray[np.float64] = np.diag(factor.diagonal) + factor.sign * np.outer(factor.outer, factor.outer)
    return matrix


def diagonal(form: PairForm) -> NDArray[np.float64]:
    """``B_ff`` of every cell, shape (L_1, ..., L_J)."""
    total: Any = 0.0
    for coefficient, factors in form:
        product: Any = np.array(coefficient)
        for factor in factors:
            product = np.multiply.outer(product, factor.diagonal + factor.sign * factor.outer**2)
        total = total + product
    return np.asarray(total)


def hadamard(left: PairForm, right: PairForm) -> PairForm:
    """Elementwise product of two forms: one product per pair of products."""
    return tuple(
        PairProduct(
            a.coefficient * b.coefficient,
            tuple(
                PairFactor(
                    x.diagonal * y.diagonal + y.sign * x.diagonal * y.outer**2 + x.sign * y.diagonal * x.outer**2,
                    x.outer * y.outer,
                    x.sign * y.sign,
                )
                for x, y in zip(a.factors, b.factors, strict=True)
            ),
        )
        for a in left
        for b in right
    )


def apply(form: PairForm, values: jax.Array, trailing: int = 1) -> jax.Array:
    """``sum_{f'} B_{f f'} x_{f'}`` for every cell f.

    Parameters
    ----------
    form : PairForm
    values : array, shape (*batch, L_1, ..., L_J, *rest)
    trailing : int
        Number of axes after the cells.
    """
    total: Any = None
    for coefficient, factors in form:
        term = values
        for facet, factor in enumerate(factors):
            axis = values.ndim - trailing - len(factors) + facet
            if factor.outer.any():
                term = apply_factor(factor, term, axis)
            else:
                term = term * along(factor.diagonal, term.ndim, axis)
        term = term * coefficient
        total = term if total is None else total + term
    return jnp.zeros_like(values) if total is None else total


def apply_factor(factor: PairFactor, values: jax.Array, axis: int) -> jax.Array:
    """One facet's matrix along one axis; the factor's arrays may be traced."""
    outer = along(factor.outer, values.ndim, axis)
    inner = (values * outer).sum(axis, keepdims=True)
    result: jax.Array = values * along(factor.diagonal, values.ndim, axis) + inner * outer * factor.sign
    return result


def along(vector: Any, ndim: int, axis: int) -> jax.Array:
    """The vector as an array of `ndim` axes of which it fills one."""
    shape = [1] * ndim
    shape[axis] = -1
    return jnp.asarray(vector).reshape(shape)
