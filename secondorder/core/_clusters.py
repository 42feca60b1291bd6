"""Levels of a random facet as clusters: standard errors that cover the draw of prompts (judges, raters, ...).

When facet k is random and its K levels serve all items, every component is ``mean_k a_k + mean_{k != l} h_kl``: pairs
of calls on the same level and on distinct levels, averaged over items. Levels are independent units, so the component
is a U-statistic of degree 2 over them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondorder._design import Component, Design
from secondorder.core._batches import each_item
from secondorder.core._cells import Cells
from secondorder.core._intervals import ItemErrors, item_errors, item_influence, stratum_sizes
from secondorder.core._precision import compiled, double
from secondorder.core._products import PairFactor, PairProduct, apply, diagonal, pair_form
from secondorder.errors import DesignError

__all__ = [
    "ClusterParts",
    "LevelErrors",
    "TwoWayErrors",
    "cluster_parts",
    "cluster_tables",
    "level_errors",
    "two_way_errors",
]

Floats = NDArray[np.float64]

ROUNDING = 1e-12


class ClusterParts(NamedTuple):
    """A component taken apart by the levels of one random facet; ``same.mean(-1) + distinct.mean(-1)`` is its value.

    Attributes
    ----------
    same : array, shape (*batch, n_components, K)
        ``a_k``: pairs of calls on level k.
    distinct : array, shape (*batch, n_components, K)
        Mean over the other levels l of ``h_kl``.
    """

    same: Any
    distinct: Any


class LevelErrors(NamedTuple):
    """Standard error over the levels of a random facet shared by all items.

    Attributes
    ----------
    errors : ItemErrors
        Delete-one jackknife; ``df`` is K - 1.
    influence : array, shape (M, K)
        ``a_k + 2 h_k`` less its mean over levels.
    influence_se : array, shape (M,)
        ``sd / sqrt(K)`` of the influence values: the same in large samples, smaller in small ones.
    """

    errors: ItemErrors
    influence: Floats
    influence_se: Floats


class TwoWayErrors(NamedTuple):
    """Standard error over items and levels both sampled, with its parts.

    Attributes
    ----------
    errors : ItemErrors
    item, level, interaction : array, shape (M,)
        Variances of the estimate from the means of items, of levels, and from what is left.
    """

    errors: ItemErrors
    item: Floats
    level: Floats
    interaction: Floats


@double
def cluster_parts(
    cells: Cells, design: Design, components: tuple[Component, ...], kernel: Any, facet: str
) -> ClusterParts:
    """Complete-pair estimates per item, taken apart by the levels of one random facet; linear in the cells.

    Parameters
    ----------
    cells : Cells, arrays (*batch, L_1, ..., L_J[, C])
        Two or more calls in every cell.
    design : Design
    components : tuple of Component
    kernel : array, shape (C, C)
    facet : str
        Name of a random facet.

    Returns
    -------
    ClusterParts

    Raises
    ------
    DesignError
        When the facet is fixed: its levels are the whole target, not a sample.
    """
    n, mean, own = (jnp.asarray(part).astype(jnp.float64) for part in cells)
    place = _random_facet(design, facet)
    return _parts(Cells(n, mean, own), design, components, jnp.asarray(kernel).astype(jnp.float64), place)


@double
def cluster_tables(
    cells: Cells, design: Design, components: tuple[Component, ...], kernel: Any, facet: str
) -> jax.Array:
    """Each macroaverage as a function of pairs of levels: ``h_kl + (a_k + a_l) / 2`` averaged over items.

    Parameters
    ----------
    cells : Cells, arrays (N, L_1, ..., L_J[, C])

    Returns
    -------
    array, shape (n_components, K, K)
        For :func:`secondorder.core._gram.gram_variance`, whose variance over four or more levels is exactly unbiased.
    """
    n, mean, own = (jnp.asarray(part).astype(jnp.float64) for part in cells)
    place = _random_facet(design, facet)
    return _tables(Cells(n, mean, own), design, components, jnp.asarray(kernel).astype(jnp.float64), place)


def level_errors(same: ArrayLike, distinct: ArrayLike, scale: ArrayLike = 1.0) -> LevelErrors:
    """Delete-one jackknife over levels, in closed form.

    ``SE^2 = 4 (K - 1) / (K (K - 2)^2) sum_k (H_k - T)^2`` with ``H_k = (a_k (K - 2) + sum_l a_l) / (2 (K - 1)) + h_k``,
    equal to recomputing the estimate K times without one level. It covers calls and levels at fixed items.

    Parameters
    ----------
    same, distinct : array, shape (M, K)
        Parts of :func:`cluster_parts`, averaged over items.
    scale : float or array, shape (M,)
        Unit of each column; differences below ``1e-12`` of it are rounding.

    Notes
    -----
    A component that does not contain the facet is degenerate at 0 (order; total at maximal disagreement): there the SE
    is about ``sqrt(2)`` too large and intervals just off 0 are unreliable. Not valid when levels share seeds. Levels
    drawn from a short list are treated as independent draws, which is conservative.

    Examples
    --------
    >>> result = level_errors([[0.1, 0.3, 0.2, 0.2]], [[0.0, 0.0, 0.0, 0.0]])
    >>> result.errors.estimate.round(3).tolist(), result.errors.se.round(4).tolist()
    ([0.2], [0.0408])
    """
    a, h = np.asarray(same, dtype=np.float64), np.asarray(distinct, dtype=np.float64)
    levels = a.shape[-1]
    estimate = a.mean(-1) + h.mean(-1)
    psi = a + 2 * h
    influence = psi - psi.mean(-1, keepdims=True)
    if levels < 3:
        nothing = np.full(estimate.shape, np.nan)
        reason = (f"{levels} levels: a jackknife needs at least three",) * len(estimate)
        return LevelErrors(ItemErrors(estimate, nothing, nothing, reason), influence, nothing)
    kept = (a * (levels - 2) + a.sum(-1, keepdims=True)) / (2 * (levels - 1)) + h
    squares = ((kept - estimate[:, None]) ** 2).sum(-1)
    se = np.sqrt(4 * (levels - 1) / (levels * (levels - 2) ** 2) * squares)
    flat = se <= ROUNDING * np.broadcast_to(np.asarray(scale, dtype=np.float64), se.shape)
    errors = ItemErrors(
        estimate,
        np.where(flat, np.nan, se),
        np.where(flat, np.nan, levels - 1.0),
        tuple("every level gives the same value" if equal else "" for equal in flat),
    )
    return LevelErrors(errors, influence, np.where(flat, np.nan, psi.std(-1, ddof=1) / np.sqrt(levels)))


def two_way_errors(
    same: ArrayLike, distinct: ArrayLike, strata: ArrayLike | None = None, scale: ArrayLike = 1.0
) -> TwoWayErrors:
    """Standard error when items and the levels of one random facet are both samples.

    With ``phi_sk = T_s + psi_sk - mean_k psi_sk`` per item s and level k: variances ``V_I`` of item means, ``V_P`` of
    level means and ``V_x`` of the interaction, which both of them contain;
    ``Var = max(V_I, V_P, V_I + V_P - V_x)`` with Satterthwaite's degrees of freedom.

    Parameters
    ----------
    same, distinct : array, shape (N, M, K)
        Parts of :func:`cluster_parts`, per item.
    strata : array, shape (N,), optional
        Stratum code of each item.
    scale : float or array, shape (M,)
        Unit of each column.
    """
    a, h = np.asarray(same, dtype=np.float64), np.asarray(distinct, dtype=np.float64)
    n_items, levels = len(a), a.shape[-1]
    values = a.mean(-1) + h.mean(-1)
    psi = a + 2 * h
    phi = values[..., None] + psi - psi.mean(-1, keepdims=True)
    errors = item_errors(values, strata, scale)
    index, sizes = stratum_sizes(strata, n_items)
    if sizes.min() == 1 or levels < 2:
        reason = errors.reason if sizes.min() == 1 else ("there is one level: its spread is unknown",) * values.shape[1]
        nothing = np.full(values.shape[1], np.nan)
        return TwoWayErrors(ItemErrors(errors.estimate, nothing, nothing, reason), nothing, nothing, nothing)
    # Items of equal value have no item variance; the levels may still differ.
    flat_items = np.isnan(errors.se)
    item = np.where(flat_items, 0.0, errors.se) ** 2
    item_df = np.where(flat_items, n_items - len(sizes), errors.df)
    level = phi.mean(0).var(-1, ddof=1) / levels
    rest = item_influence((phi - values[..., None]).reshape(n_items, -1), strata).reshape(phi.shape)
    weight = (sizes / n_items) ** 2 / (sizes * (sizes - 1))
    interaction = (weight[index][:, None, None] * rest**2).sum((0, 2)) / ((levels - 1) * levels)
    variance = np.maximum(np.maximum(item, level), item + level - interaction)
    flat = variance <= (ROUNDING * np.broadcast_to(np.asarray(scale, dtype=np.float64), variance.shape)) ** 2
    spread = item**2 / item_df + level**2 / (levels - 1) + interaction**2 / ((n_items - len(sizes)) * (levels - 1))
    df = np.maximum(variance**2 / np.where(flat, 1.0, spread), min(n_items - len(sizes), levels - 1))
    reason = tuple("every item and every level gives the same value" if equal else "" for equal in flat)
    se = np.where(flat, np.nan, np.sqrt(variance))
    return TwoWayErrors(ItemErrors(errors.estimate, se, np.where(flat, np.nan, df), reason), item, level, interaction)


def _random_facet(design: Design, facet: str) -> int:
    place = design.names.index(facet) if facet in design.names else -1
    if place < 0 or design.populations[place] is None:
        problem = "is not in the design" if place < 0 else "is fixed: its levels are the whole target, not a sample"
        raise DesignError(
            f"facet {facet!r} {problem}",
            place="standard error over levels",
            remedy="declare it with kind='random', or ask for errors over items or calls",
        )
    return place


def _split(product: PairProduct, place: int) -> tuple[float, float, PairProduct]:
    """Weights of one pair of equal and of distinct levels, and the product of the other facets."""
    factors = product.factors
    one = factors[place]
    levels = len(one.diagonal)
    off = one.sign * float(one.outer[0]) ** 2
    alone = PairFactor(np.ones(levels), np.zeros(levels), 1.0)
    rest = PairProduct(product.coefficient, (*factors[:place], alone, *factors[place + 1 :]))
    return float(one.diagonal[0]) + off, off, rest


@compiled("design", "components", "place")
def _parts(
    cells: Cells, design: Design, components: tuple[Component, ...], kernel: jax.Array, place: int
) -> ClusterParts:
    forms = [[_split(product, place) for product in pair_form(component, design)] for component in components]
    levels, axes = design.shape[place], len(design.names)
    others = tuple(axis for axis in range(axes) if axis != place)

    def item(mean: jax.Array, n: jax.Array, own: jax.Array) -> ClusterParts:
        reach = mean @ kernel
        excess = ((mean * reach).sum(-1) - own) / (n - 1)
        same, distinct = [], []
        for form in forms:
            a = h = jnp.zeros(levels, dtype=jnp.float64)
            for equal, off, rest in form:
                given = apply((rest,), mean)
                weight = jnp.asarray(diagonal((rest,)))
                own_level = ((given * reach).sum(-1) + weight * excess).sum(others)
                other_levels = ((given.sum(place, keepdims=True) - given) * reach).sum(-1).sum(others)
                a, h = a + levels * equal * own_level, h + levels * off * other_levels
            same.append(a)
            distinct.append(h)
        return ClusterParts(jnp.stack(same), jnp.stack(distinct))

    numbers = 4 * design.n_cells * cells.mean.shape[-1]
    parts: ClusterParts = each_item(item, cells.mean.ndim - axes - 1, numbers, cells.mean, cells.n, cells.self)
    return parts


@compiled("design", "components", "place")
def _tables(
    cells: Cells, design: Design, components: tuple[Component, ...], kernel: jax.Array, place: int
) -> jax.Array:
    parts = _parts(cells, design, components, kernel, place)
    levels = design.shape[place]
    reach = jnp.moveaxis(cells.mean @ kernel, 1 + place, 0).reshape(levels, -1)
    tables = []
    for number, component in enumerate(components):
        table = jnp.zeros((levels, levels), dtype=jnp.float64)
        for _, off, rest in (_split(product, place) for product in pair_form(component, design)):
            given = jnp.moveaxis(apply((rest,), cells.mean), 1 + place, 0).reshape(levels, -1)
            table = table + levels * (levels - 1) * off * (given @ reach.T)
        same = parts.same[:, number].mean(0) / 2
        tables.append(table / cells.mean.shape[0] + same[:, None] + same[None, :])
    return jnp.stack(tables) * (1.0 - jnp.eye(levels, dtype=jnp.float64))[None]
