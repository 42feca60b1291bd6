"""One block of replicates of one mechanism: draw, estimate, sum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from secondorder.core._law_tables import call_tables, count_tables, n_compositions
from secondorder.core._montecarlo import (
    block_size,
    counts_of_codes,
    counts_of_outcomes,
    draw_codes,
    draw_outcomes,
    draw_rows,
    fixed_rows,
    hashed_key,
)
from secondorder.core._precision import compiled, double
from secondorder.errors import SecondOrderError, SpecError
from secondorder.simulate._estimators import built_in_estimates
from secondorder.simulate._measures import block_sums
from secondorder.simulate._methods import Draw, Estimate, Method, method_names, resolve_methods
from secondorder.simulate._prepared import Prepared

__all__ = ["Simulator", "draws_calls", "replicates_per_block"]

# Entries of the cumulative tables above which calls are drawn one by one: 32 MiB of float64.
MOST_TABLE_ENTRIES = 1 << 22


def draws_calls(prepared: Prepared, methods: Sequence[str | Method]) -> bool:
    """Whether calls are drawn one by one: for dependence, for methods that ask for them, for tables too large."""
    entries = len(prepared.law) * n_compositions(prepared.repeats, prepared.law.shape[1])
    coupled = prepared.coupling.kind != "none" or prepared.drift_to is not None
    return resolve_methods(methods)[2] or coupled or entries > MOST_TABLE_ENTRIES


def replicates_per_block(prepared: Prepared, methods: Sequence[str | Method]) -> int:
    """Replicates in a block: part of the study's definition, so that digits do not depend on how it is run."""
    cells = math.prod(prepared.sampling.shape)
    return block_size(cells * (prepared.repeats if draws_calls(prepared, methods) else 1))


class Simulator:
    """Runs blocks of one prepared mechanism under given methods; holds its tables on the device.

    Parameters
    ----------
    prepared : Prepared
    methods : sequence of str or Method
    seed : int
        The study's seed.
    stream : str
        Name of the point: every point of a study has its own random numbers, whatever other points there are.
    level : float
    """

    @double
    def __init__(
        self, prepared: Prepared, methods: Sequence[str | Method], *, seed: int, stream: str, level: float
    ) -> None:
        self.built_in, self.own, _ = resolve_methods(methods)
        self.prepared = prepared
        self.level = level
        run = [*self.built_in, *(method.name for method in self.own)]
        self.order = np.array([run.index(name) for name in method_names(methods)])
        self.by_calls = draws_calls(prepared, methods)
        if self.by_calls:
            self.calls = _on_device(call_tables(prepared.law, prepared.n, prepared.drift_to))
        else:
            self.counts = _on_device(count_tables(prepared.law, prepared.n))
        self.size = replicates_per_block(prepared, methods)
        # Where the law's levels are the design's, cells may differ in calls; drawn levels all have the same number.
        cells = prepared.n.reshape(prepared.sampling.listed_items, -1)[0]
        self.cell_calls = jax.device_put(np.resize(cells, prepared.design.n_cells).astype(float))
        self.strata = tuple(map(int, prepared.strata))
        # Built-in methods have limits over items where every stratum has two or more.
        self.limited = bool(self.own) or int(np.bincount(prepared.strata).min()) >= 2
        self.stream = (seed, stream)
        self.rows = fixed_rows(prepared.sampling, self.size) if prepared.sampling.is_fixed else None
        self.weights = jax.device_put(prepared.weights)
        self.kernel = jax.device_put(prepared.kernel)
        self.truth = jax.device_put(prepared.truth)

    @double
    def draw(self, block: int) -> Draw:
        """The verdicts of a block."""
        prepared = self.prepared
        rows = self.rows
        if rows is None:
            rows = draw_rows(hashed_key(*self.stream, block, "rows"), self.weights, prepared.sampling, self.size)
        call_key = hashed_key(*self.stream, block, "calls")
        codes = None
        if self.by_calls:
            codes = draw_codes(call_key, self.calls, rows, prepared.repeats, prepared.coupling)
            counts = counts_of_codes(codes, prepared.law.shape[1])
        else:
            counts = counts_of_outcomes(self.counts, draw_outcomes(call_key, self.counts, rows))
        described = (prepared.design, prepared.components, prepared.names, self.kernel, prepared.strata, self.level)
        return Draw(*described, counts, codes)

    @double
    def estimates(self, draw: Draw) -> Estimate:
        """What every method says of a block: arrays (methods, estimands, B)."""
        parts = []
        if self.built_in:
            parts.append(
                _padded(built_in_estimates(self.built_in, draw, self.cell_calls, self.strata), len(draw.names))
            )
            if not self.own:
                return parts[0]
        parts.extend(Estimate(*(array.T[None] for array in self._own(method, draw))) for method in self.own)
        # In the order of the study: ratios are taken to its first method.
        value, lower, upper, reject = (jnp.concatenate(arrays)[self.order] for arrays in zip(*parts, strict=True))
        return Estimate(value, lower, upper, reject)

    def _own(self, method: Method, draw: Draw) -> Estimate:
        try:
            given = method.function(draw)
        except SecondOrderError:
            raise
        except (Exception, SystemExit) as error:
            raise SpecError(
                f"it raises {type(error).__name__}: {error}", place=f"method {method.name}", remedy="mend the function"
            ) from error
        answer = given if isinstance(given, Estimate) else Estimate(given)
        shape = (self.size, len(self.prepared.names))
        arrays: list[Any] = []
        for name, array in zip(Estimate._fields, answer, strict=True):
            absent = array is None and name != "value"
            try:
                filled = np.full(shape, np.nan) if absent else np.asarray(array, dtype=float)
            except (TypeError, ValueError) as error:
                raise SpecError(
                    f"{name} holds no numbers ({error})",
                    place=f"method {method.name}",
                    remedy="return an Estimate of arrays",
                ) from error
            if filled.shape != shape:
                raise SpecError(
                    f"{name} has shape {filled.shape}",
                    place=f"method {method.name}",
                    remedy=f"return (replicates, estimands) = {shape}",
                )
            arrays.append(jnp.asarray(filled))
        value, lower, upper, reject = arrays
        return Estimate(value, lower, upper, _outside(lower, upper) if answer.reject is None else reject)

    @double
    def sums(self, block: int, valid: int) -> jax.Array:
        """Sums over the first `valid` replicates of a block: (methods, estimands, sums)."""
        answer = self.estimates(self.draw(block))
        return block_sums(*answer, self.truth, jax.device_put(np.int64(valid)), self.limited)


def _on_device(tables: Any) -> Any:
    return type(tables)(*map(jax.device_put, tables))


@compiled("estimands")
def _padded(arrays: tuple[jax.Array, ...], estimands: int) -> Estimate:
    # Built-in methods estimate components alone; other estimands have no value from them.
    extra = ((0, 0), (0, estimands - arrays[0].shape[1]), (0, 0))
    value, lower, upper = (jnp.pad(array, extra, constant_values=jnp.nan) for array in arrays)
    return Estimate(value, lower, upper, _outside(lower, upper))


def _outside(lower: jax.Array, upper: jax.Array) -> jax.Array:
    # Whether 0 lies outside the limits; NaN where there are none.
    outside = ((lower > 0) | (upper < 0)).astype(jnp.float64)
    return jnp.where(jnp.isnan(lower) | jnp.isnan(upper), jnp.nan, outside)
