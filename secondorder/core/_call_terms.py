"""What call noise is made of, for one item: exact at its laws, or unbiased from counts of distinct calls.

Arrays are ``(L_1, ..., L_J, C)``, one item without batch axes. ``B`` is a component's pair weights, ``S_f`` the
covariance of a single call of cell f, ``m_f = sum_f' B_ff' D P_f'``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from secondorder.core._products import PairFactor, PairForm, along, apply, apply_factor, diagonal

__all__ = ["NoiseTerms", "between_cells", "exact_terms", "own_weights", "unbiased_terms"]


class NoiseTerms(NamedTuple):
    """Terms of one item, exact at its laws or estimated from its counts.

    Attributes
    ----------
    first : callable of two component numbers
        ``m' S m`` per cell, with one factor from each component. From counts it is too large, by
        :func:`between_cells` with weights ``1/n`` and 1.
    second : array, shape (L_1, ..., L_J)
        ``tr(D S D S)`` per cell.
    own : list of array
        Pair weight of each cell with itself, per component.
    """

    first: Callable[[int, int], jax.Array]
    second: jax.Array
    own: list[jax.Array]


def own_weights(forms: Sequence[PairForm], n: jax.Array, *, plugin: bool) -> list[jax.Array]:
    """``B_ff``; of the plug-in, whose pairs of a call with itself are zero, times ``(n - 1) / n``."""
    own = [_diagonal(form) for form in forms]
    return [weight * (n - 1) / n for weight in own] if plugin else own


def exact_terms(law: jax.Array, own: list[jax.Array], forms: Sequence[PairForm], kernel: jax.Array) -> NoiseTerms:
    """Terms at known laws."""
    slopes = [
        _others(form, law, kernel) + weight[..., None] * (law @ kernel) for form, weight in zip(forms, own, strict=True)
    ]
    second = _spread_product(law, law, kernel)
    return NoiseTerms(lambda i, j: _spread(law, slopes[i], slopes[j]), second, own)


def unbiased_terms(
    n: jax.Array, mean: jax.Array, own: list[jax.Array], forms: Sequence[PairForm], kernel: jax.Array
) -> NoiseTerms:
    """Products of one, two, three or four distinct calls of a cell in the places of powers of its law."""
    counts = mean * n[..., None]
    pairs = n * (n - 1)
    triples = pairs * (n - 2)
    reach = counts @ kernel
    square = (counts * (counts @ (kernel * kernel))).sum(-1)
    chain = (counts * reach**2).sum(-1)
    whole = (counts * reach).sum(-1)
    a2 = square / pairs
    a3 = (chain - square) / triples
    a4 = (whole**2 - 4 * chain + 2 * square) / (triples * (n - 3))
    slopes = [_others(form, mean, kernel) for form in forms]

    def mixed(slope: jax.Array) -> jax.Array:
        both = (counts * reach * slope).sum(-1)
        return both / pairs - (whole * (counts * slope).sum(-1) - 2 * both) / triples

    crossed = [mixed(slope) for slope in slopes]

    def first(i: int, j: int) -> jax.Array:
        inner = own[i] * own[j] * (a3 - a4) + own[i] * crossed[j] + own[j] * crossed[i]
        return inner + n / (n - 1) * _spread(mean, slopes[i], slopes[j])

    return NoiseTerms(first, a2 - 2 * a3 + a4, own)


def _others(form: PairForm, law: jax.Array, kernel: jax.Array) -> jax.Array:
    """``D sum_{f' != f} B_ff' P_f'``."""
    return (apply(form, law) - _diagonal(form)[..., None] * law) @ kernel


def _spread(law: jax.Array, left: jax.Array, right: jax.Array) -> jax.Array:
    """``left' S right``."""
    return (law * left * right).sum(-1) - (law * left).sum(-1) * (law * right).sum(-1)


def _spread_product(law: jax.Array, other: jax.Array, kernel: jax.Array) -> jax.Array:
    """``tr(D S D S')`` of cells one to one."""
    reach, back = law @ kernel, other @ kernel
    plain = ((law @ (kernel * kernel)) * other).sum(-1)
    return plain - (other * reach**2).sum(-1) - (law * back**2).sum(-1) + (law * back).sum(-1) ** 2


def between_cells(
    forms: Sequence[PairForm], law: jax.Array, kernel: jax.Array, left: jax.Array, right: jax.Array
) -> jax.Array:
    """``sum_{f != f'} W_ff' left_f right_f' tr(D S_f D S_f')`` of one item for several symmetric W, one number each.

    The trace is ``P'(D*D)P' - sum_c P_c (DP')_c^2 - sum_c P'_c (DP)_c^2 + (P'DP')^2``: every part is an inner product
    of one vector per cell, the last of ``P P'`` and ``DP (DP)'`` or, where cells are fewer, of its rows over cells.
    """
    cells, classes = law[..., 0].size, law.shape[-1]
    shape = law.shape[:-1]
    reach = law @ kernel
    if cells <= classes**2:
        table = ((reach.reshape(cells, classes) @ law.reshape(cells, classes).T) ** 2).reshape(*shape, cells)
        pick = jnp.eye(cells, dtype=jnp.float64).reshape(*shape, cells)
    else:
        table = (law[..., :, None] * law[..., None, :]).reshape(*shape, -1)
        pick = (reach[..., :, None] * reach[..., None, :]).reshape(*shape, -1)
    received = jnp.concatenate([law, reach**2, table], -1) * right[..., None]
    given = jnp.concatenate([law @ (kernel * kernel) - reach**2, -law, pick], -1) * left[..., None]

    def product(factors: list[PairFactor]) -> jax.Array:
        others, own = received, jnp.ones_like(received)
        for axis, factor in enumerate(factors):
            others = apply_factor(factor, others, axis)
            own = own * along(factor.diagonal + factor.sign * factor.outer**2, own.ndim, axis)
        return ((others - own * received) * given).sum()

    # One program for all products, run one after the other: unrolled, they would take seconds to compile.
    flat = [part for form in forms for part in form]
    stacked = [
        PairFactor(*(jnp.asarray(np.stack(parts)) for parts in zip(*factors, strict=True)))
        for factors in zip(*(part.factors for part in flat), strict=True)
    ]
    owner = np.zeros((len(forms), len(flat)))
    owner[np.repeat(np.arange(len(forms)), [len(form) for form in forms]), np.arange(len(flat))] = [
        part.coefficient for part in flat
    ]
    values: jax.Array = jnp.asarray(owner) @ jax.lax.map(product, stacked)
    return values


def _diagonal(form: PairForm) -> jax.Array:
    return jnp.asarray(diagonal(form), dtype=jnp.float64)
