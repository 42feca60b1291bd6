"""Call noise at fixed items and levels: exact variances at laws, and their unbiased estimates from counts.

For a component ``T = sum B_ff' d_ff'`` with ``S_f = diag(P_f) - P_f P_f'`` and ``m_f = sum_f' B_ff' D P_f'``

``Var T = sum_f (4/n_f) m_f' S_f m_f + sum_f B_ff^2 2/(n_f (n_f - 1)) tr(D S_f D S_f)
+ 2 sum_{f != f'} B_ff'^2 tr(D S_f D S_f') / (n_f n_f')``

at every finite n >= 2, when calls are independent and those of a cell share one law. Covariances of two components
replace squares by products. The unbiased estimate takes each term from distinct calls and needs four calls in every
cell; with two or three **no** unbiased estimator exists. It may be negative for a single item: sum over items first.

Arrays are ``(*batch, L_1, ..., L_J, C)``; calls of different items are taken as independent, so the variance of a
macroaverage with item weights ``omega`` is the sum of ``omega**2`` times the values here.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from secondorder._design import Component, Design
from secondorder.core._batches import each_item
from secondorder.core._call_terms import NoiseTerms, between_cells, exact_terms, own_weights, unbiased_terms
from secondorder.core._cells import Cells
from secondorder.core._precision import compiled, double
from secondorder.core._products import PairForm, hadamard, pair_form

__all__ = [
    "FEWER_THAN_FOUR",
    "PairScheme",
    "Planning",
    "call_covariance",
    "call_covariance_at",
    "call_variance",
    "planning",
    "planning_at",
    "variance_at_depth",
]

FEWER_THAN_FOUR = (
    "an unbiased estimate of call variance needs hard verdicts and four calls in every cell; with fewer none exists"
)

PairScheme = Literal["complete", "across", "panel"]


class Planning(NamedTuple):
    """The three coefficients of call variance, from which it follows at any number of repeats R.

    ``Var = alpha / R + beta / (R (R - 1)) + gamma / R**2``: first-order noise, pairs inside a cell, pairs between
    cells. Each has shape ``(*batch, n_components)``.
    """

    alpha: Any
    beta: Any
    gamma: Any


@double
def call_covariance_at(
    law: Any, n: Any, design: Design, components: tuple[Component, ...], kernel: Any, *, plugin: bool = False
) -> jax.Array:
    """Exact covariance of the components' estimates over repeated calls, at known laws.

    Parameters
    ----------
    law : array, shape (*batch, L_1, ..., L_J, C)
    n : array, broadcastable to (*batch, L_1, ..., L_J)
        Calls per cell, all >= 2.
    design : Design
    components : tuple of Component
    kernel : array, shape (C, C)
    plugin : bool
        Of the plug-in instead of the complete-pair estimates: the same pair weights with the diagonal times
        ``(n - 1) / n``.

    Returns
    -------
    array, shape (*batch, n_components, n_components)

    Examples
    --------
    >>> import numpy as np
    >>> from secondorder._design import Design, standard_components
    >>> design = Design.balanced({"prompt": 2})
    >>> law = np.array([[0.9, 0.1], [0.5, 0.5]])
    >>> exact = call_covariance_at(law, 4, design, standard_components(design.names), 1 - np.eye(2))
    >>> exact.shape, float(exact[1, 1].round(5))
    ((3, 3), 0.01795)
    """
    law, n = _float(law), _float(n)
    n = jnp.broadcast_to(n.reshape((1,) * (law.ndim - 1 - n.ndim) + n.shape), law.shape[:-1])
    return _covariance_at(law, n, design, components, _float(kernel), plugin)


@double
def call_covariance(
    cells: Cells, design: Design, components: tuple[Component, ...], kernel: Any, *, plugin: bool = False
) -> jax.Array:
    """Unbiased estimate of the covariance of the components' estimates over repeated calls.

    Parameters
    ----------
    cells : Cells
        Of hard verdicts, four or more calls in every cell.
    plugin : bool
        Of the plug-in instead of the complete-pair estimates.

    Returns
    -------
    array, shape (*batch, n_components, n_components)
        Raw: a variance may be negative. NaN, for the reason :data:`FEWER_THAN_FOUR`, where it does not exist.
    """
    return _covariance(_float_cells(cells), design, components, _float(kernel), plugin, True)


@double
def call_variance(
    cells: Cells, design: Design, components: tuple[Component, ...], kernel: Any, *, plugin: bool = False
) -> jax.Array:
    """The diagonal of :func:`call_covariance`, shape (*batch, n_components)."""
    return _covariance(_float_cells(cells), design, components, _float(kernel), plugin, False)


@double
def planning_at(law: Any, design: Design, components: tuple[Component, ...], kernel: Any) -> Planning:
    """Exact planning coefficients at known laws ``(*batch, L_1, ..., L_J, C)``."""
    return _planning_at(_float(law), design, components, _float(kernel))


@double
def planning(cells: Cells, design: Design, components: tuple[Component, ...], kernel: Any) -> Planning:
    """Unbiased estimates of the planning coefficients from a pilot with four or more calls in every cell.

    Raw, and NaN where undefined, as in :func:`call_covariance`. At the pilot's own balanced depth they give exactly
    the estimate of :func:`call_variance`.
    """
    return _planning(_float_cells(cells), design, components, _float(kernel))


def variance_at_depth(coefficients: Planning, repeats: int, *, pairs: PairScheme = "complete") -> Any:
    """Call variance at R repeats of every cell.

    Parameters
    ----------
    coefficients : Planning
    repeats : int
        At least 2; even for the panel.
    pairs : {"complete", "across", "panel"}
        Complete pairs, across-repeats pairs (with independent cells), or the mean of R/2 two-repeat panels.

    Examples
    --------
    >>> float(variance_at_depth(Planning(0.4, 0.24, 0.16), 4))
    0.13
    """
    alpha, beta, gamma = (np.asarray(part) for part in coefficients)
    distinct = repeats * (repeats - 1)
    if pairs == "complete":
        return alpha / repeats + beta / distinct + gamma / repeats**2
    if pairs == "across":
        return alpha / repeats + (beta + gamma) / distinct
    return alpha / repeats + beta / repeats + gamma / (2 * repeats)


def _float(values: Any) -> jax.Array:
    return jnp.asarray(values).astype(jnp.float64)


def _float_cells(cells: Cells) -> Cells:
    return Cells(*map(_float, cells))


def _matrix(
    terms: NoiseTerms,
    forms: tuple[PairForm, ...],
    mean: jax.Array,
    n: jax.Array,
    kernel: jax.Array,
    between: tuple[float, jax.Array],
    all_pairs: bool,
) -> jax.Array:
    factor, weight = between
    size = len(forms)
    pairs = [(i, j) for i, j in combinations_with_replacement(range(size), 2) if i == j or all_pairs]
    cross = between_cells([hadamard(forms[i], forms[j]) for i, j in pairs], mean, kernel, weight, weight)
    inside = [
        (4 / n * terms.first(i, j) + terms.own[i] * terms.own[j] * 2 / (n * (n - 1)) * terms.second).sum()
        for i, j in pairs
    ]
    values = jnp.stack(inside) + factor * cross
    if not all_pairs:
        return values
    place = {pair: number for number, pair in enumerate(pairs)}
    table = [[place[min(i, j), max(i, j)] for j in range(size)] for i in range(size)]
    return values[jnp.asarray(table)]


@compiled("design", "components", "plugin")
def _covariance_at(
    law: jax.Array, n: jax.Array, design: Design, components: tuple[Component, ...], kernel: jax.Array, plugin: bool
) -> jax.Array:
    forms = tuple(pair_form(component, design) for component in components)

    def item(law: jax.Array, n: jax.Array) -> jax.Array:
        terms = exact_terms(law, own_weights(forms, n, plugin=plugin), forms, kernel)
        return _matrix(terms, forms, law, n, kernel, (2.0, 1 / n), True)

    matrix: jax.Array = _each_item(item, design, law, n)
    return matrix


@compiled("design", "components", "plugin", "all_pairs")
def _covariance(
    cells: Cells,
    design: Design,
    components: tuple[Component, ...],
    kernel: jax.Array,
    plugin: bool,
    all_pairs: bool,
) -> jax.Array:
    forms = tuple(pair_form(component, design) for component in components)

    def item(mean: jax.Array, n: jax.Array, own: jax.Array) -> jax.Array:
        terms = unbiased_terms(n, mean, own_weights(forms, n, plugin=plugin), forms, kernel)
        # The estimated first-order terms already hold twice what the pairs between cells add: hence minus two.
        matrix = _matrix(terms, forms, mean, n, kernel, (-2.0, 1 / (n - 1)), all_pairs)
        return _where_defined(n, own, matrix)

    matrix: jax.Array = _each_item(item, design, cells.mean, cells.n, cells.self)
    return matrix


@compiled("design", "components")
def _planning_at(law: jax.Array, design: Design, components: tuple[Component, ...], kernel: jax.Array) -> Planning:
    forms = tuple(pair_form(component, design) for component in components)

    def item(law: jax.Array) -> Planning:
        one = jnp.ones_like(law[..., 0])
        terms = exact_terms(law, own_weights(forms, one, plugin=False), forms, kernel)
        between = between_cells([hadamard(form, form) for form in forms], law, kernel, one, one)
        return _coefficients(terms, between, jnp.zeros_like(between))

    coefficients: Planning = _each_item(item, design, law)
    return coefficients


@compiled("design", "components")
def _planning(cells: Cells, design: Design, components: tuple[Component, ...], kernel: jax.Array) -> Planning:
    forms = tuple(pair_form(component, design) for component in components)

    def item(mean: jax.Array, n: jax.Array, own: jax.Array) -> Planning:
        terms = unbiased_terms(n, mean, own_weights(forms, n, plugin=False), forms, kernel)
        one_call, squares = n / (n - 1), [hadamard(form, form) for form in forms]
        between = between_cells(squares, mean, kernel, one_call, one_call)
        excess = between_cells(squares, mean, kernel, one_call, 1 / (n - 1))
        return Planning(*(_where_defined(n, own, part) for part in _coefficients(terms, between, excess)))

    coefficients: Planning = _each_item(item, design, cells.mean, cells.n, cells.self)
    return coefficients


def _coefficients(terms: NoiseTerms, between: jax.Array, excess: jax.Array) -> Planning:
    alpha = [4 * (terms.first(i, i).sum() - excess[i]) for i in range(len(terms.own))]
    beta = [2 * (own**2 * terms.second).sum() for own in terms.own]
    return Planning(jnp.stack(alpha), jnp.stack(beta), 2 * between)


def _where_defined(n: jax.Array, own: jax.Array, values: jax.Array) -> jax.Array:
    return jnp.where(((n >= 4) & (own == 0)).all(), values, jnp.full_like(values, jnp.nan))


def _each_item(function: Callable[..., Any], design: Design, mean: jax.Array, *cells: jax.Array) -> Any:
    classes, size = mean.shape[-1], design.n_cells
    numbers = size * (2 * classes + min(size, classes**2))
    return each_item(function, mean.ndim - len(design.names) - 1, numbers, mean, *cells)
