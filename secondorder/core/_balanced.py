"""The common case, fast: complete hard verdicts, equal weights, many items.

The counts of a cell are small whole numbers, so every ``D_S`` is a sum of products of whole numbers: exact, and about
fifty times faster than floating-point means, provided that the items are the last axis of every array (one vector
instruction then serves 32 items) and the loops over cells and classes are unrolled into one fused pass. The numbers
are those of :mod:`secondorder.core._estimates` up to rounding, which the tests hold it to.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from secondorder._design import Component, Design
from secondorder.core._pairs import combine, sampled_levels
from secondorder.core._precision import compiled, double

__all__ = ["balanced_pairs", "is_worth_unrolling"]

# Below this many items the compilation costs more than it saves; above this many unrolled operations it takes too long.
LEAST_ITEMS = 10_000
MOST_OPERATIONS = 4_000


def is_worth_unrolling(codes: NDArray[Any], design: Design, n_classes: int) -> bool:
    """Whether :func:`balanced_pairs` applies to these codes, and is the faster way."""
    items, repeats = codes.shape[0], codes.shape[-1]
    calls = design.n_cells * repeats
    pairs = n_classes * (n_classes + 1) // 2
    operations = calls * n_classes + pairs * math.prod(size + 1 for size in design.shape)
    equal = all(len(set(weights)) == 1 for weights in design.weights)
    whole = calls * calls < 2**31 and repeats < 128 and repeats >= 2
    return items >= LEAST_ITEMS and operations <= MOST_OPERATIONS and equal and whole and int(codes.min()) >= 0


@double
def balanced_pairs(
    codes: NDArray[Any], design: Design, components: tuple[Component, ...], kernel: Any
) -> tuple[jax.Array, jax.Array]:
    """Complete-pair and plug-in estimates of hard verdicts in complete, equally weighted blocks.

    Parameters
    ----------
    codes : array of int, shape (N, L_1, ..., L_J, R)
        Class codes, none missing, R >= 2.
    design : Design
        Equal weights; random facets are allowed.
    components : tuple of Component
    kernel : array, shape (C, C)

    Returns
    -------
    complete, plugin : array, shape (n_components, N)
        Components first: the item axis stays the contiguous one.
    """
    # NumPy transposes bytes ten times faster than a compiled program that has to do it on the way.
    items_last = np.ascontiguousarray(codes.reshape(len(codes), -1).T)
    kernel = np.asarray(kernel, dtype=float)
    nominal = bool((kernel == 1 - np.eye(len(kernel))).all())
    quadratic = _quadratic_forms(
        jnp.asarray(items_last), jnp.asarray(kernel), shape=design.shape, repeats=codes.shape[-1], nominal=nominal
    )
    return _estimates(quadratic, design=design, components=components, repeats=codes.shape[-1])


# Two programs, not one: within one, the compiler repeats the pass over the codes for each of the results.


@compiled("shape", "repeats", "nominal")
def _quadratic_forms(
    codes: jax.Array, kernel: jax.Array, shape: tuple[int, ...], repeats: int, nominal: bool
) -> list[jax.Array]:
    """For every subset of facets the sum over shared levels of ``t' D t``, with t the totals over the other facets."""
    n_classes = kernel.shape[0]
    tables = _level_totals(codes, shape, n_classes, repeats)
    return [_quadratic(list(totals.values()), kernel, n_classes, nominal) for totals in tables]


@compiled("design", "components", "repeats")
def _estimates(
    quadratic: list[jax.Array], design: Design, components: tuple[Component, ...], repeats: int
) -> tuple[jax.Array, jax.Array]:
    own = quadratic[-1] / float(repeats * repeats)
    raw, distinct = [], []
    for mask, total in enumerate(quadratic):
        shared = math.prod(size for j, size in enumerate(design.shape) if mask >> j & 1)
        averaged = design.n_cells // shared
        value = total / float(shared * (averaged * repeats) ** 2)
        raw.append(value)
        distinct.append(value + own / float((repeats - 1) * shared * averaged**2))
    complete, plugin = (
        jnp.stack(combine(components, sampled_levels(values, design), design)) for values in (distinct, raw)
    )
    return complete, plugin


def _level_totals(
    codes: jax.Array, shape: tuple[int, ...], n_classes: int, repeats: int
) -> list[dict[tuple[int, ...], list[jax.Array]]]:
    """Verdict counts added up over the levels of the facets outside each subset."""
    size = len(shape)
    cells: dict[tuple[int, ...], list[jax.Array]] = {}
    for row, index in enumerate(itertools.product(*map(range, shape))):
        calls = codes[row * repeats : (row + 1) * repeats]
        counts = [
            sum(((call == code).astype(jnp.int8) for call in calls[1:]), (calls[0] == code).astype(jnp.int8))
            for code in range(n_classes)
        ]
        cells[index] = [count.astype(jnp.int32) for count in counts]
    full = (1 << size) - 1
    tables: list[dict[tuple[int, ...], list[jax.Array]]] = [{} for _ in range(full)] + [cells]
    for mask in range(full - 1, -1, -1):
        facet = next(j for j in range(size) if not mask >> j & 1)
        position = (mask & ((1 << facet) - 1)).bit_count()
        for index, counts in tables[mask | 1 << facet].items():
            key = index[:position] + index[position + 1 :]
            known = tables[mask].get(key)
            tables[mask][key] = (
                counts if known is None else [one + other for one, other in zip(known, counts, strict=True)]
            )
    return tables


def _quadratic(levels: list[list[jax.Array]], kernel: jax.Array, n_classes: int, nominal: bool) -> jax.Array:
    """Sum over levels of ``t' D t`` for whole-number totals ``t``."""
    if nominal:
        # t' (11' - I) t = (sum t)^2 - sum t^2
        whole = sum(levels[0][1:], levels[0][0])
        squares = None
        for totals in levels:
            for total in totals:
                squares = total * total if squares is None else squares + total * total
        assert squares is not None
        return (len(levels) * whole * whole - squares).astype(jnp.float64)
    value = jnp.zeros(levels[0][0].shape)
    for one, other in itertools.combinations(range(n_classes), 2):
        product = sum((totals[one] * totals[other] for totals in levels[1:]), levels[0][one] * levels[0][other])
        value = value + 2.0 * kernel[one, other] * product.astype(jnp.float64)
    return value
