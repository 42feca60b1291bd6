"""What a study runs on each replicate: this package's estimators by name, or anybody's own function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from secondorder._design import Component, Design
from secondorder.core._cells import cells_from_counts
from secondorder.core._estimates import across_repeats, complete_pairs, panel, plugin
from secondorder.core._precision import compiled
from secondorder.errors import SpecError

__all__ = ["BUILT_IN", "Draw", "Estimate", "Method", "built_in_estimates", "method_names", "resolve_methods"]

BUILT_IN = ("debiased", "plugin", "across-repeats", "panel")
CALL_BY_CALL = ("across-repeats", "panel")
ROUNDING = 1e-12


@dataclass(frozen=True)
class Draw:
    """The verdicts of a block of replicates, as a method sees them.

    Attributes
    ----------
    counts : array of int, shape (B, N, L_1, ..., L_J, C)
        Verdict counts: B replicates of N items.
    codes : array of int, shape (B, N, L_1, ..., L_J, R), or None
        Class codes call by call (-1: no call), where some method of the study asks for them.
    design : Design
    components : tuple of Component
        Estimands that are components, in the order of the results.
    names : tuple of str
        All estimands, in the order of the results.
    kernel : array, shape (C, C)
    strata : array of int, shape (N,)
    level : float
        Confidence level of the study.
    """

    counts: Any
    codes: Any
    design: Design
    components: tuple[Component, ...]
    names: tuple[str, ...]
    kernel: Any
    strata: NDArray[np.int64]
    level: float


class Estimate(NamedTuple):
    """What a method answers: arrays of shape (B, number of estimands); NaN is a failure, and is counted.

    Attributes
    ----------
    value : array
    lower, upper : array, optional
        Confidence limits.
    reject : array, optional
        Whether the method rejects "the estimand is 0": 1, 0 or NaN. Default: 0 lies outside the limits.
    """

    value: Any
    lower: Any = None
    upper: Any = None
    reject: Any = None


class Method(msgspec.Struct, frozen=True):
    """An estimator under study.

    Parameters
    ----------
    name : str
    function : callable
        From a :class:`Draw` to an :class:`Estimate`, or to an array of values of shape (B, number of estimands).
    calls : bool
        Whether it needs the verdicts call by call (``Draw.codes``).
    """

    name: str
    function: Callable[[Draw], Any]
    calls: bool = False


def method_names(methods: Sequence[str | Method]) -> list[str]:
    """Names in the study's order."""
    return [method if isinstance(method, str) else method.name for method in methods]


def resolve_methods(methods: Sequence[str | Method]) -> tuple[tuple[str, ...], tuple[Method, ...], bool]:
    """Built-in names, own methods, and whether calls are drawn one by one."""
    built_in = tuple(entry for entry in methods if isinstance(entry, str))
    own = tuple(entry for entry in methods if isinstance(entry, Method))
    unknown = [name for name in built_in if name not in BUILT_IN]
    if unknown:
        raise SpecError(
            f"method {unknown[0]!r}", place="study", remedy=f"say {', '.join(BUILT_IN)}, or give a Method of your own"
        )
    names = method_names(methods)
    if not names or len(set(names)) != len(names):
        raise SpecError(f"methods {names}", place="study", remedy="name at least one method, each once")
    calls = any(name in CALL_BY_CALL for name in built_in) or any(method.calls for method in own)
    return built_in, own, calls


def built_in_estimates(names: Sequence[str], draw: Draw) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Values and t limits over items of the built-in methods, each (B, methods, components)."""
    from_counts = tuple(name for name in names if name not in CALL_BY_CALL)
    found: dict[str, jax.Array] = {}
    if from_counts:
        arrays = _from_counts(draw.counts, from_counts, draw.design, draw.components, draw.kernel)
        found.update(zip(from_counts, arrays, strict=True))
    if "across-repeats" in names or "panel" in names:
        verdicts = _one_hot(draw.codes, draw.counts.shape[-1])
        if "across-repeats" in names:
            found["across-repeats"] = across_repeats(verdicts, draw.design, draw.components, draw.kernel)
        if "panel" in names:
            found["panel"] = panel(verdicts, draw.design, draw.components, draw.kernel)
    per_item = jnp.stack([found[name] for name in names], axis=1)
    return _over_items(per_item, tuple(map(int, draw.strata)), draw.level)


@compiled("names", "design", "components")
def _from_counts(
    counts: jax.Array, names: tuple[str, ...], design: Design, components: tuple[Component, ...], kernel: jax.Array
) -> list[jax.Array]:
    estimators = {"debiased": complete_pairs, "plugin": plugin}
    cells = cells_from_counts(counts)
    return [estimators[name](cells, design, components, kernel) for name in names]


@compiled("n_classes")
def _one_hot(codes: jax.Array, n_classes: int) -> jax.Array:
    verdicts = jax.nn.one_hot(codes, n_classes, dtype=jnp.float64)
    return jnp.where(jnp.broadcast_to(codes[..., None] >= 0, verdicts.shape), verdicts, jnp.nan)


@compiled("strata", "level")
def _over_items(per_item: jax.Array, strata: tuple[int, ...], level: float) -> tuple[jax.Array, jax.Array, jax.Array]:
    # per_item (B, methods, N, components)
    mean = per_item.mean(2)
    sizes = np.bincount(strata)
    if sizes.min() < 2:
        nothing = jnp.full_like(mean, jnp.nan)
        return mean, nothing, nothing
    # Stratified item sample: SE^2 = sum_g (N_g / N)^2 s_g^2 / N_g, t with N - G degrees of freedom.
    total = int(sizes.sum())
    variance = jnp.zeros_like(mean)
    for stratum, size in enumerate(sizes):
        part = per_item[:, :, np.flatnonzero(np.asarray(strata) == stratum)]
        variance = variance + part.var(axis=2, ddof=1) * (float(size) / total**2)
    # Equal items say nothing about how far apart others could be: undefined, not a band of width zero.
    spread = jnp.where(variance > ROUNDING**2, jnp.sqrt(variance), jnp.nan)
    half = float(stdtrit(total - len(sizes), 0.5 + level / 2)) * spread
    return mean, mean - half, mean + half
