"""The package's own estimators, run on a block of replicates: the same formulas, laid out for many replicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import stdtrit

from secondorder._design import Component, Design
from secondorder.core._cells import cells_from_counts
from secondorder.core._estimates import across_repeats, complete_pairs, panel, plugin
from secondorder.core._pairs import combine, pair_disagreements, sampled_levels, self_corrections
from secondorder.core._precision import compiled
from secondorder.simulate._methods import CALL_BY_CALL, Draw

__all__ = ["built_in_estimates"]

# Cells times classes above which the unrolled program would take long to compile.
MOST_UNROLLED = 256
ROUNDING = 1e-12
# Strata below this size have degrees of freedom by Satterthwaite, as in the decomposition.
SMALL_STRATUM = 5


def built_in_estimates(
    names: Sequence[str], draw: Draw, calls: jax.Array, strata: tuple[int, ...]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Values and t limits over items, each (methods, components, B).

    Parameters
    ----------
    names : sequence of str
        Of built-in methods.
    draw : Draw
    calls : array, shape (cells,)
        Calls per cell.
    strata : tuple of int, length N
    """
    found: dict[str, jax.Array] = {}
    if any(name not in CALL_BY_CALL for name in names):
        small = draw.design.n_cells * len(draw.counts_last) <= MOST_UNROLLED
        found = _unrolled(draw, calls) if small else _batched(draw)
    if "across-repeats" in names or "panel" in names:
        verdicts = _one_hot(draw.codes, len(draw.counts_last))
        for name, estimator in (("across-repeats", across_repeats), ("panel", panel)):
            if name in names:
                found[name] = _components_first(estimator(verdicts, draw.design, draw.components, draw.kernel))
    per_item = tuple(found[name] for name in names)
    return _t_limits(per_item, strata, draw.level)


def _batched(draw: Draw) -> dict[str, jax.Array]:
    cells = cells_from_counts(draw.counts)
    return {
        name: _components_first(estimator(cells, draw.design, draw.components, draw.kernel))
        for name, estimator in (("debiased", complete_pairs), ("plugin", plugin))
    }


def _components_first(per_item: jax.Array) -> jax.Array:
    # (B, N, components) -> (components, N, B)
    return jnp.moveaxis(per_item, (0, 1, 2), (2, 1, 0))


def _unrolled(draw: Draw, calls: jax.Array) -> dict[str, jax.Array]:
    raw, corrections = _disagreements(_shares(draw.counts_last, calls), calls, draw.kernel, draw.design)
    debiased, biased = _combined(raw, corrections, draw.design, draw.components)
    return {"debiased": debiased, "plugin": biased}


# Three programs, not one: within one, the compiler repeats the pass over the counts for each of the results.


@compiled()
def _shares(counts: tuple[jax.Array, ...], calls: jax.Array) -> tuple[jax.Array, ...]:
    """Shares of each class, (cells, N, B)."""
    flat = [values.reshape(-1, *values.shape[-2:]).astype(jnp.float64) for values in counts]
    return tuple(values / jnp.broadcast_to(calls[:, None, None], values.shape) for values in flat)


@compiled("design")
def _disagreements(
    shares: tuple[jax.Array, ...], calls: jax.Array, kernel: jax.Array, design: Design
) -> tuple[list[jax.Array], list[jax.Array]]:
    """``D_S`` and its self-pair correction for every subset of facets, each (N, B).

    The functions of the core run on any array with operators: here on a small array of cells and classes whose
    entries are whole vectors of replicates.
    """
    classes, cells = len(shares), design.n_cells
    mean = np.empty((cells, classes), dtype=object)
    n = np.empty(cells, dtype=object)
    distances = np.empty((classes, classes), dtype=object)
    for cell in range(cells):
        n[cell] = calls[cell]
        for c in range(classes):
            mean[cell, c] = shares[c][cell]
    for index in np.ndindex(classes, classes):
        distances[index] = kernel[index]
    mean, n = mean.reshape(*design.shape, classes), n.reshape(design.shape)
    nothing = np.zeros(design.shape, dtype=object)
    return (
        [_entry(value) for value in pair_disagreements(mean, design, distances)],
        [_entry(value) for value in self_corrections(n, mean, nothing, design, distances)],
    )


def _entry(value: Any) -> Any:
    # A reduction over all axes of an object array answers with the entry itself, or with an array of no axes.
    return value.item() if isinstance(value, np.ndarray) else value


@compiled("design", "components")
def _combined(
    raw: list[jax.Array], corrections: list[jax.Array], design: Design, components: tuple[Component, ...]
) -> tuple[jax.Array, jax.Array]:
    distinct = [value + correction for value, correction in zip(raw, corrections, strict=True)]
    debiased, biased = (
        jnp.stack(combine(components, sampled_levels(values, design), design)) for values in (distinct, raw)
    )
    return debiased, biased


@compiled("n_classes")
def _one_hot(codes: jax.Array, n_classes: int) -> jax.Array:
    verdicts = jax.nn.one_hot(codes, n_classes, dtype=jnp.float64)
    return jnp.where(jnp.broadcast_to(codes[..., None] >= 0, verdicts.shape), verdicts, jnp.nan)


def _t_limits(
    per_item: tuple[jax.Array, ...], strata: tuple[int, ...], level: float
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Item means and t limits, as for a decomposition: N - G degrees of freedom, Satterthwaite's for small strata."""
    mean, se, df = _over_items(per_item, strata)
    sizes = np.bincount(strata)
    if sizes.min() < 2:
        return mean, se, se
    if sizes.min() >= SMALL_STRATUM:
        half = float(stdtrit(len(strata) - len(sizes), 0.5 + level / 2)) * se
    else:
        half = jnp.asarray(stdtrit(np.asarray(df), 0.5 + level / 2)) * se
    return mean, mean - half, mean + half


@compiled("strata")
def _over_items(per_item: tuple[jax.Array, ...], strata: tuple[int, ...]) -> tuple[jax.Array, jax.Array, jax.Array]:
    # per_item: for each method (components, N, B); SE^2 = sum_g (N_g / N)^2 s_g^2 / N_g.
    values = jnp.stack(per_item)
    mean = values.mean(2)
    sizes = np.bincount(strata)
    if sizes.min() < 2:
        nothing = jnp.full_like(mean, jnp.nan)
        return mean, nothing, nothing
    variance, satterthwaite = jnp.zeros_like(mean), jnp.zeros_like(mean)
    for stratum, size in enumerate(sizes):
        part = values[:, :, np.flatnonzero(np.asarray(strata) == stratum)]
        share = part.var(axis=2, ddof=1) * (float(size) / len(strata) ** 2)
        variance, satterthwaite = variance + share, satterthwaite + share**2 / float(size - 1)
    # Equal items say nothing about how far apart others could be: undefined, not a band of width zero.
    se = jnp.where(variance > ROUNDING**2, jnp.sqrt(variance), jnp.nan)
    return mean, se, variance**2 / satterthwaite
