"""What a study runs on each replicate: this package's estimators by name, or anybody's own function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import msgspec
import numpy as np
from numpy.typing import NDArray

from secondorder._design import Component, Design
from secondorder.errors import SpecError

__all__ = ["BUILT_IN", "CALL_BY_CALL", "Draw", "Estimate", "Method", "method_names", "resolve_methods"]

BUILT_IN = ("debiased", "plugin", "across-repeats", "panel")
CALL_BY_CALL = ("across-repeats", "panel")


@dataclass(frozen=True, eq=False)
class Draw:
    """The verdicts of a block of replicates, as a method sees them.

    Attributes
    ----------
    design : Design
    components : tuple of Component
        Estimands that are components, in the order of the results.
    names : tuple of str
        All estimands, in the order of the results.
    kernel : array, shape (C, C)
    strata : array of int, shape (N,)
    level : float
        Confidence level of the study.
    counts_last : tuple of array of int, shape (L_1, ..., L_J, N, B)
        Verdict counts of each class, replicate last: the layout of the engine.
    codes_last : array of int, shape (R, L_1, ..., L_J, N, B), or None
    """

    design: Design
    components: tuple[Component, ...]
    names: tuple[str, ...]
    kernel: Any
    strata: NDArray[np.int64]
    level: float
    counts_last: tuple[Any, ...]
    codes_last: Any = None

    @cached_property
    def counts(self) -> Any:
        """Verdict counts of B replicates of N items, shape (B, N, L_1, ..., L_J, C)."""
        return _replicate_first(jnp.stack(self.counts_last))

    @cached_property
    def codes(self) -> Any:
        """Class codes call by call (-1: no call), shape (B, N, L_1, ..., L_J, R); for methods with ``calls=True``."""
        if self.codes_last is None:
            raise SpecError("codes are not drawn", place="method", remedy="declare it as Method(..., calls=True)")
        return _replicate_first(self.codes_last)


def _replicate_first(array: Any) -> Any:
    last = array.ndim - 1
    return jnp.transpose(array, (last, last - 1, *range(1, last - 1), 0))


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
