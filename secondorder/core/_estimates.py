"""Point estimators of all components per item: truth at a law, plug-in, complete pairs, panel, across repeats.

Every estimator is the primitive of :mod:`secondorder.core._pairs` plus at most one correction:

==================  ====================================================================
truth at a law      ``D_S(P)``
plug-in             ``D_S(m)``
complete pairs      ``D_S(m) + sum_f a_S(f) (q_f - h_f) / (n_f - 1)``
across repeats      ``(R^2 D_S(m) - sum_r D_S(z_r)) / (R (R - 1))``
panel               mean of the complete-pair estimates of disjoint pairs of repeats
==================  ====================================================================

Arrays are ``(*batch, L_1, ..., L_J, C)``; results ``(*batch, n_components)``, raw: unbiased estimates of a
non-negative effect can be negative and are never clipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from secondorder._design import Component, Design
from secondorder.core._cells import Cells, cells_from_soft
from secondorder.core._pairs import combine, pair_disagreements, sampled_levels, self_corrections
from secondorder.core._precision import compiled, double

__all__ = [
    "across_repeats",
    "at_law",
    "complete_pairs",
    "complete_pairs_from",
    "panel",
    "panel_values",
    "plugin",
    "plugin_bias_at",
    "plugin_excess",
    "plugin_from",
]


def plugin_from(mean: Any, design: Design, components: Sequence[Component], kernel: Any) -> list[Any]:
    """Plug-in (or truth, when `mean` is a law) per component, on any array type with operators."""
    return combine(components, sampled_levels(pair_disagreements(mean, design, kernel), design), design)


def complete_pairs_from(
    n: Any, mean: Any, self_disagreement: Any, design: Design, components: Sequence[Component], kernel: Any
) -> list[Any]:
    """Complete-pair debiased estimate per component, on any array type with operators (object arrays too)."""
    raw = pair_disagreements(mean, design, kernel)
    corrections = self_corrections(n, mean, self_disagreement, design, kernel)
    distinct = [value + correction for value, correction in zip(raw, corrections, strict=True)]
    return combine(components, sampled_levels(distinct, design), design)


@double
def at_law(law: Any, design: Design, components: tuple[Component, ...], kernel: Any) -> jax.Array:
    """The truth at a law: every component of known response laws.

    Parameters
    ----------
    law : array, shape (*batch, L_1, ..., L_J, C)
        Class probabilities of every cell.
    design : Design
    components : tuple of Component
    kernel : array, shape (C, C)

    Returns
    -------
    array, shape (*batch, n_components)
        For a random facet: the value for the policy, by the declaration that the given levels are a sample from it.

    Examples
    --------
    >>> import numpy as np
    >>> from secondorder._design import Design, standard_components
    >>> design = Design.balanced({"prompt": 2})
    >>> law = np.array([[0.9, 0.1], [0.5, 0.5]])
    >>> [round(float(x), 3) for x in at_law(law, design, standard_components(design.names), 1 - np.eye(2))]
    [0.34, 0.08, 0.42]
    """
    return _plugin(_float(law), design, components, _float(kernel))


@double
def plugin(cells: Cells, design: Design, components: tuple[Component, ...], kernel: Any) -> jax.Array:
    """The plug-in: observed shares put in the place of laws. Biased by call noise in proportion to 1/n.

    With every facet fixed this is the *census* plug-in (denominator K); a random facet makes it the *sampled* plug-in
    (denominator K - 1). They have different targets.
    """
    return _plugin(_float(cells.mean), design, components, _float(kernel))


@double
def complete_pairs(cells: Cells, design: Design, components: tuple[Component, ...], kernel: Any) -> jax.Array:
    """Debiased estimate from every pair of distinct calls.

    Unbiased for any ``n_f >= 2``, equal or not, and any weights, when the calls of an item are independent and those
    of a cell share one law (Supplementary Section 2 of the defining paper).
    """
    return _complete(Cells(*map(_float, cells)), design, components, _float(kernel))


@double
def across_repeats(verdicts: Any, design: Design, components: tuple[Component, ...], kernel: Any) -> jax.Array:
    """Debiased estimate from pairs of calls with different repeat index alone, also between cells.

    Unbiased when repeat blocks are independent and each cell has the same law at every repeat; anything may happen
    inside a block (shared seeds, simultaneous drift).

    Parameters
    ----------
    verdicts : array, shape (*batch, L_1, ..., L_J, R, C)
        Verdict vectors by planned repeat index (one-hot for hard verdicts); a missing call is a row of NaN.
    """
    verdicts, kernel = _float(verdicts), _float(kernel)
    if not bool(jnp.isnan(verdicts).any()):
        return _across_balanced(verdicts, design, components, kernel)
    return _across_unbalanced(verdicts, design, components, kernel)


@double
def panel(verdicts: Any, design: Design, components: tuple[Component, ...], kernel: Any) -> jax.Array:
    """Mean of the panel values: see :func:`panel_values`."""
    return panel_values(verdicts, design, components, kernel).mean(-2)


@double
def panel_values(verdicts: Any, design: Design, components: tuple[Component, ...], kernel: Any) -> jax.Array:
    """Complete-pair estimates of the ``R // 2`` disjoint pairs of repeats.

    Parameters
    ----------
    verdicts : array, shape (*batch, L_1, ..., L_J, R, C)
        Complete blocks: no NaN among the first ``2 * (R // 2)`` repeats. An odd last repeat is left over.

    Returns
    -------
    array, shape (*batch, R // 2, n_components)
    """
    verdicts, kernel = _float(verdicts), _float(kernel)
    pairs = verdicts.shape[-2] // 2
    shape = (*verdicts.shape[:-2], pairs, 2, verdicts.shape[-1])
    blocks = verdicts[..., : 2 * pairs, :].reshape(shape)
    blocks = jnp.moveaxis(blocks, -3, -3 - len(design.names))
    return _complete(cells_from_soft(blocks, kernel), design, components, kernel)


@double
def plugin_bias_at(
    law: Any, n: Any, design: Design, components: tuple[Component, ...], kernel: Any, self_disagreement: Any = 0.0
) -> jax.Array:
    """Exact expectation of the plug-in minus the truth, at laws and numbers of calls.

    ``E[plug] - U = -sum_f B_ff (u_f - E[v'Dv]) / n_f`` with ``u_f = P_f' D P_f`` and B the component's pair weights.

    Parameters
    ----------
    law : array, shape (*batch, L_1, ..., L_J, C)
    n : array, broadcastable to (*batch, L_1, ..., L_J)
        Calls per cell, any ``n >= 1``.
    self_disagreement : array, optional
        ``E[v' D v]`` of soft verdicts per cell.
    """
    law, kernel = _float(law), _float(kernel)
    shape = law.shape[:-1]
    n = jnp.broadcast_to(_float(n), shape)
    own = jnp.broadcast_to(_float(self_disagreement), shape)
    return _bias(Cells(n, law, own), design, components, kernel)


@double
def plugin_excess(cells: Cells, design: Design, components: tuple[Component, ...], kernel: Any) -> jax.Array:
    """Plug-in minus complete-pair estimate of a realised sample, by the closed form.

    The bias formula with ``q_f n_f / (n_f - 1)`` in the place of ``u_f``; it equals the difference of the two
    estimates for every sample, e.g. ``5 * call / (12 R)`` for six prompts in two equal orders.
    """
    cells = Cells(*map(_float, cells))
    kernel = _float(kernel)
    # (q - h) / (n - 1) is the unbiased estimate of (u - E[v'Dv]) / n.
    corrections = self_corrections(cells.n, cells.mean, cells.self, design, kernel)
    return -_stack(combine(components, sampled_levels(corrections, design), design))


def _float(values: Any) -> jax.Array:
    return jnp.asarray(values).astype(jnp.float64)


def _stack(values: Sequence[Any]) -> jax.Array:
    return jnp.stack(list(values), axis=-1)


@compiled("design", "components")
def _plugin(mean: jax.Array, design: Design, components: tuple[Component, ...], kernel: jax.Array) -> jax.Array:
    return _stack(plugin_from(mean, design, components, kernel))


@compiled("design", "components")
def _complete(cells: Cells, design: Design, components: tuple[Component, ...], kernel: jax.Array) -> jax.Array:
    return _stack(complete_pairs_from(cells.n, cells.mean, cells.self, design, components, kernel))


@compiled("design", "components")
def _bias(cells: Cells, design: Design, components: tuple[Component, ...], kernel: jax.Array) -> jax.Array:
    # self_corrections divides by n - 1; at a law the divisor is n.
    corrections = self_corrections(cells.n + 1.0, cells.mean, cells.self, design, kernel)
    return -_stack(combine(components, sampled_levels(corrections, design), design))


@compiled("design", "components")
def _across_balanced(
    verdicts: jax.Array, design: Design, components: tuple[Component, ...], kernel: jax.Array
) -> jax.Array:
    repeats = verdicts.shape[-2]
    whole = pair_disagreements(verdicts.mean(-2), design, kernel)
    # Repeat blocks become a batch axis: each block alone has one call per cell.
    blocks = pair_disagreements(jnp.moveaxis(verdicts, -2, 0), design, kernel)
    distinct = [
        (repeats**2 * value - block.sum(0)) / (repeats * (repeats - 1))
        for value, block in zip(whole, blocks, strict=True)
    ]
    return _stack(combine(components, sampled_levels(distinct, design), design))


@compiled("design", "components")
def _across_unbalanced(
    verdicts: jax.Array, design: Design, components: tuple[Component, ...], kernel: jax.Array
) -> jax.Array:
    # Which repeats two cells have in common differs from pair to pair, so this form is quadratic in cells.
    batch = verdicts.shape[: -2 - len(design.names)]
    cells = design.n_cells
    flat = verdicts.reshape(*batch, cells, *verdicts.shape[-2:])
    present = (~jnp.isnan(flat).any(-1)).astype(jnp.float64)
    clean = jnp.nan_to_num(flat)
    n = present.sum(-1)
    total = clean.sum(-2)
    products = (total @ kernel) @ jnp.swapaxes(total, -1, -2)
    same_repeat = jnp.einsum("...frc,...grc->...fg", clean @ kernel, clean)
    both = jnp.einsum("...fr,...gr->...fg", present, present)
    disagreement = (products - same_repeat) / (n[..., :, None] * n[..., None, :] - both)
    tables = []
    for mask in range(1 << len(design.names)):
        weights = jnp.ones((1, 1))
        for facet, level_weights in enumerate(design.weights):
            w = jnp.asarray(level_weights, dtype=jnp.float64)
            pair = jnp.diag(w) if mask >> facet & 1 else jnp.outer(w, w)
            weights = jnp.kron(weights, pair)
        # A pair of cells without a pair of distinct repeats is 0/0; where its weight is zero it must stay out.
        used = jnp.where(jnp.broadcast_to(weights > 0, disagreement.shape), disagreement, jnp.zeros_like(disagreement))
        tables.append(jnp.einsum("fg,...fg->...", weights, used))
    return _stack(combine(components, sampled_levels(tables, design), design))
