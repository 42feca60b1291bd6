"""Verdict counts drawn from known laws, one uniform per cell, in blocks whose digits depend on nothing but the seed.

The counts of a cell with R calls are one of the ``C(R+C-1, C-1)`` compositions of R, so one uniform number and one
binary search in that cell's cumulative probabilities draw all its calls at once. Where the calls of a cell are not
independent, or an estimator needs to know which repeat said what, calls are drawn one by one instead.

Arrays have the replicate as their last axis, so that one vector instruction serves many replicates:
``(L_1, ..., L_J, items, replicates)``.

Blocks have a fixed number of replicates that is a function of the design alone, and every block has its own key:
the digits do not depend on how many blocks are run together, in which order, or by which process.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from secondorder._canon import blake2b_64
from secondorder.core._law_tables import CallTables, CountTables
from secondorder.core._precision import compiled

__all__ = [
    "CallCoupling",
    "Sampling",
    "block_size",
    "counts_of_codes",
    "counts_of_outcomes",
    "draw_codes",
    "draw_outcomes",
    "draw_rows",
    "fixed_rows",
    "hashed_key",
    "uniforms",
]

Array = NDArray[np.float64]
Source = Literal["fixed", "policy", "list"]

# A block holds about this many cells: its arrays stay in the processor's cache, and memory stays bounded.
CELLS_PER_BLOCK = 1 << 17
MOST_REPLICATES_PER_BLOCK = 8192


class Sampling(NamedTuple):
    """How a replicate picks its items and levels from those that a law lists (static: it decides array shapes).

    Attributes
    ----------
    items : tuple of (int, int, int)
        Groups of items as (number drawn, first listed item, listed items); drawn independently by weight. Empty: the
        listed items are the data set.
    listed_items : int
        Items of the law.
    levels : tuple of (int, int, str)
        Per facet: levels in a replicate, levels listed, and ``fixed`` (all of them), ``policy`` (independent draws,
        shared by the items of a replicate) or ``list`` (drawn without replacement).
    """

    items: tuple[tuple[int, int, int], ...]
    listed_items: int
    levels: tuple[tuple[int, int, Source], ...]

    @property
    def n_items(self) -> int:
        """Items of a replicate."""
        return sum(group[0] for group in self.items) if self.items else self.listed_items

    @property
    def shape(self) -> tuple[int, ...]:
        """Levels and items of a replicate: the axes before the replicate axis."""
        return (*(drawn for drawn, _, _ in self.levels), self.n_items)

    @property
    def is_fixed(self) -> bool:
        """Whether every replicate has the law's own items and levels."""
        return not self.items and all(source == "fixed" for _, _, source in self.levels)


class CallCoupling(NamedTuple):
    """What the calls of a replicate share (static).

    Attributes
    ----------
    kind : str
        ``none``; ``seed``: calls at one repeat of one item share a uniform number; ``seed-all``: calls at one repeat
        of *all* items do; ``cache``: a repeat is answered by the first call of its cell; ``duplicate``: an odd repeat
        is the row before it, once more.
    share : float
        Probability that a call is touched by it.
    """

    kind: Literal["none", "seed", "seed-all", "cache", "duplicate"] = "none"
    share: float = 1.0


def block_size(calls_or_cells: int) -> int:
    """Replicates per block, a power of two, for this many drawn numbers per replicate."""
    wanted = max(1, min(MOST_REPLICATES_PER_BLOCK, CELLS_PER_BLOCK // max(1, calls_or_cells)))
    return 1 << (wanted.bit_length() - 1)


def hashed_key(*parts: str | int) -> jax.Array:
    """A key that is a hash of its parts: any seed, any names, and nothing to compile."""
    number = blake2b_64(list(parts))
    words = np.array([number >> 32, number & 0xFFFFFFFF], dtype=np.uint32)
    key: jax.Array = jax.random.wrap_key_data(jax.device_put(words), impl="threefry2x32")
    return key


def fixed_rows(sampling: Sampling, size: int) -> jax.Array:
    """What :func:`draw_rows` answers where nothing is drawn."""
    listed = tuple(listed for _, listed, _ in sampling.levels)
    rows = np.arange(sampling.listed_items * math.prod(listed), dtype=np.int32).reshape(-1, *listed)
    shape = (*sampling.shape, size)
    spread: jax.Array = jax.device_put(
        np.ascontiguousarray(np.broadcast_to(np.moveaxis(rows, 0, -1)[..., None], shape))
    )
    return spread


@compiled("sampling", "size")
def draw_rows(key: jax.Array, weights: Any, sampling: Sampling, size: int) -> jax.Array:
    """Which listed cell stands in each cell of each replicate.

    Parameters
    ----------
    key : JAX key
    weights : array, shape (listed_items,)
        Probability of each listed item within its group.
    sampling : Sampling
    size : int
        Replicates.

    Returns
    -------
    array of int32, shape (L_1, ..., L_J, n_items, size)
        Row of the law, whose listed cells stand in C order of (item, facets...).
    """
    item_key, *level_keys = jax.random.split(key, 1 + len(sampling.levels))
    shape = (*sampling.shape, size)
    items = _draw_items(item_key, weights, sampling, size)
    rows = jnp.broadcast_to(items, shape)
    for axis, (level_key, (drawn, listed, source)) in enumerate(zip(level_keys, sampling.levels, strict=True)):
        levels = _draw_levels(level_key, drawn, listed, source, size)
        spread = [1] * len(shape)
        spread[axis], spread[-1] = drawn, size
        rows = rows * listed + jnp.broadcast_to(levels.reshape(spread), shape)
    return rows


def _draw_items(key: jax.Array, weights: Any, sampling: Sampling, size: int) -> jax.Array:
    if not sampling.items:
        return jnp.broadcast_to(jnp.arange(sampling.listed_items, dtype=jnp.int32)[:, None], (sampling.n_items, size))
    drawn = []
    for group, (number, first, listed) in enumerate(sampling.items):
        uniform = jax.random.uniform(jax.random.fold_in(key, group), (number, size), dtype=jnp.float64)
        cumulative = jnp.cumsum(weights[first : first + listed])
        index = jnp.searchsorted(cumulative[:-1], uniform, side="right")
        drawn.append(index.astype(jnp.int32) + first)
    return jnp.concatenate(drawn)


def _draw_levels(key: jax.Array, drawn: int, listed: int, source: Source, size: int) -> jax.Array:
    if source == "fixed":
        return jnp.broadcast_to(jnp.arange(listed, dtype=jnp.int32)[:, None], (listed, size))
    if source == "policy":
        return jax.random.randint(key, (drawn, size), 0, listed, dtype=jnp.int32)
    order = jnp.argsort(jax.random.uniform(key, (listed, size), dtype=jnp.float64), axis=0)
    return order[:drawn].astype(jnp.int32)


def uniforms(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Uniform numbers in [0, 1) of any shape, the first of a run whose length is a power of two.

    The generator takes longer to compile than everything behind it: so it is compiled for a few lengths only.
    """
    needed = math.prod(shape)
    return _reshaped(_uniform_run(key, 1 << max(0, needed - 1).bit_length()), shape)


@compiled("length")
def _uniform_run(key: jax.Array, length: int) -> jax.Array:
    return jax.random.uniform(key, (length,), dtype=jnp.float64)


@compiled("shape")
def _reshaped(run: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    reshaped: jax.Array = run[: math.prod(shape)].reshape(shape)
    return reshaped


def draw_outcomes(key: jax.Array, tables: CountTables, rows: Any) -> jax.Array:
    """Which composition each cell of each replicate shows, by one uniform number.

    Parameters
    ----------
    key : JAX key
    tables : CountTables
    rows : array of int32
        From :func:`draw_rows`.

    Returns
    -------
    array of int32, shape of `rows`
        Row of ``tables.counts``.
    """
    return _search(tables, rows, uniforms(key, rows.shape))


@compiled()
def _search(tables: CountTables, rows: jax.Array, uniform: jax.Array) -> jax.Array:
    width = tables.cumulative.shape[1]
    flat = tables.cumulative.reshape(-1)
    origin = rows * width
    position = origin
    # Binary search without branches: how many thresholds lie at or below the uniform number.
    length = width
    while length > 1:
        half = length // 2
        position = jnp.where(flat[position + (half - 1)] <= uniform, position + half, position)
        length -= half
    found: jax.Array = position - origin + tables.first[rows]
    return found


@compiled()
def counts_of_outcomes(tables: CountTables, outcomes: jax.Array) -> tuple[jax.Array, ...]:
    """Verdict counts, one array of the outcomes' shape per class (apart, programs read them three times as fast)."""
    return tuple(tables.counts[:, c][outcomes] for c in range(tables.counts.shape[1]))


def draw_codes(key: jax.Array, tables: CallTables, rows: Any, repeats: int, coupling: CallCoupling) -> jax.Array:
    """Class codes call by call, with what the calls of a replicate share.

    Parameters
    ----------
    key : JAX key
    tables : CallTables
    rows : array of int32, shape (L_1, ..., L_J, n_items, size)
    repeats : int
        Largest number of calls in a cell; later calls of a shorter cell are -1.
    coupling : CallCoupling
        The law of a single call is the same under every kind: only joint laws differ.

    Returns
    -------
    array of int32, shape (repeats, L_1, ..., L_J, n_items, size)
    """
    own_key, shared_key, touched_key = jax.random.split(key, 3)
    shape = (repeats, *rows.shape)
    uniform = uniforms(own_key, shape)
    if coupling.kind != "none":
        items = 1 if coupling.kind == "seed-all" else rows.shape[-2]
        shared = uniforms(shared_key, (repeats, *(1,) * (rows.ndim - 2), items, rows.shape[-1]))
        uniform = _coupled(uniform, uniforms(touched_key, shape), shared, coupling)
    return _classes(tables, rows, uniform)


@compiled("coupling")
def _coupled(uniform: jax.Array, touch: jax.Array, shared: jax.Array, coupling: CallCoupling) -> jax.Array:
    # A touched call uses another uniform number than its own: the one that it shares.
    if coupling.kind == "cache":
        partner = jnp.broadcast_to(uniform[:1], uniform.shape)
    elif coupling.kind == "duplicate":
        partner = uniform[(jnp.arange(len(uniform)) // 2) * 2]
    else:
        partner = jnp.broadcast_to(shared, uniform.shape)
    return jnp.where(touch < coupling.share, partner, uniform)


@compiled()
def _classes(tables: CallTables, rows: jax.Array, uniform: jax.Array) -> jax.Array:
    shape, repeats = uniform.shape, len(uniform)
    codes = jnp.zeros(shape, dtype=jnp.int32)
    drift = jnp.linspace(0.0, 1.0, repeats, dtype=jnp.float64).reshape(-1, *(1,) * rows.ndim)
    for c in range(tables.start.shape[1]):
        start, end = tables.start[:, c][rows][None], tables.end[:, c][rows][None]
        threshold = start + jnp.broadcast_to(drift, shape) * jnp.broadcast_to(end - start, shape)
        codes = codes + (uniform >= threshold).astype(jnp.int32)
    index = jnp.arange(repeats, dtype=jnp.int32).reshape(-1, *(1,) * rows.ndim)
    called = jnp.broadcast_to(index, shape) < jnp.broadcast_to(tables.n[rows][None], shape)
    return jnp.where(called, codes, -1)


@compiled("n_classes")
def counts_of_codes(codes: jax.Array, n_classes: int) -> tuple[jax.Array, ...]:
    """Verdict counts, one array per class, of class codes with the repeat as first axis; -1 is no call."""
    return tuple((codes == c).astype(jnp.int32).sum(0) for c in range(n_classes))
