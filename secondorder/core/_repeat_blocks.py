"""Blocks of repeats as units: call variance that allows any dependence inside a block, for hard and soft verdicts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from secondorder._design import Component, Design
from secondorder.core._batches import each_item
from secondorder.core._gram import GramVariance, gram_variance
from secondorder.core._precision import compiled, double
from secondorder.core._products import PairForm, apply, diagonal, pair_form

__all__ = ["block_variance", "repeat_blocks"]


def block_variance(
    verdicts: Any, design: Design, components: tuple[Component, ...], kernel: Any, *, across: bool = False
) -> GramVariance:
    """Estimates per item with the unbiased covariance over independent blocks of repeats.

    Valid whatever happens inside a block (shared seeds, simultaneous drift), as long as blocks are independent and
    alike; needs four repeats. It is the way for soft verdicts, whose counts do not suffice.

    Parameters
    ----------
    verdicts : array, shape (*batch, L_1, ..., L_J, R, C)
        Verdict vectors by planned repeat, one-hot for hard verdicts. An item with a missing call is NaN.
    design : Design
    components : tuple of Component
    kernel : array, shape (C, C)
    across : bool
        Of the across-repeats estimates instead of the complete-pair ones.

    Returns
    -------
    GramVariance
        ``estimate`` (*batch, n_components) equals the estimator's own; ``covariance`` is raw.
    """
    return gram_variance(repeat_blocks(verdicts, design, components, kernel, across=across))


@double
def repeat_blocks(
    verdicts: Any, design: Design, components: tuple[Component, ...], kernel: Any, *, across: bool = False
) -> jax.Array:
    """Each component as a function of pairs of repeat blocks, whose mean over pairs is the estimate.

    Returns
    -------
    array, shape (*batch, n_components, R, R)
        Symmetric with a zero diagonal.
    """
    values = jnp.asarray(verdicts).astype(jnp.float64)
    kernel = jnp.asarray(kernel).astype(jnp.float64)
    return _blocks(values, design, components, kernel, across)


@compiled("design", "components", "across")
def _blocks(
    verdicts: jax.Array, design: Design, components: tuple[Component, ...], kernel: jax.Array, across: bool
) -> jax.Array:
    forms = [pair_form(component, design) for component in components]
    repeats, classes = verdicts.shape[-2:]

    def item(calls: jax.Array) -> jax.Array:
        reach = calls @ kernel
        return jnp.stack([_table(form, calls, reach, across) for form in forms])

    numbers = 4 * design.n_cells * repeats * classes + len(forms) * repeats**2
    blocks: jax.Array = each_item(item, verdicts.ndim - len(design.names) - 2, numbers, verdicts)
    return blocks


def _table(form: PairForm, calls: jax.Array, reach: jax.Array, across: bool) -> jax.Array:
    repeats, classes = calls.shape[-2:]
    cells = calls.size // (repeats * classes)

    def paired(values: jax.Array) -> jax.Array:
        left = jnp.moveaxis(values.reshape(cells, repeats, classes), 1, 0).reshape(repeats, -1)
        right = jnp.moveaxis(reach.reshape(cells, repeats, classes), 1, 0).reshape(repeats, -1)
        return left @ right.T

    whole = paired(apply(form, calls, trailing=2))
    off = 1 - jnp.eye(repeats, dtype=jnp.float64)
    if across:
        return whole * off
    # Pairs of cells at one repeat also count: block r brings them along into each of its pairs of blocks.
    inside = paired(jnp.asarray(diagonal(form))[..., None, None] * calls)
    between = whole - inside
    aligned = jnp.diagonal(between) / (2 * repeats)
    table: jax.Array = inside + between * ((repeats - 1) / repeats) + aligned[:, None] + aligned[None, :]
    return table * off
