"""Double precision and the rest of JAX's flags, set for the length of a call and for nobody else.

Results must not depend on the caller's JAX configuration, and must not change it: every public function that computes
runs inside :func:`double_precision`. No flag is set at import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

import jax

__all__ = ["compiled", "double", "double_precision", "seed_key"]

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def double_precision() -> Iterator[None]:
    """Context in which JAX computes in float64 under this package's own flags."""
    with ExitStack() as flags:
        flags.enter_context(jax.enable_x64(True))
        flags.enter_context(jax.default_matmul_precision("highest"))
        flags.enter_context(jax.numpy_rank_promotion("raise"))
        flags.enter_context(jax.numpy_dtype_promotion("strict"))
        flags.enter_context(jax.debug_nans(False))
        flags.enter_context(jax.debug_infs(False))
        flags.enter_context(jax.threefry_partitionable(True))
        # Operation by operation the rounding differs from the compiled program's.
        flags.enter_context(jax.disable_jit(False))
        flags.enter_context(jax.transfer_guard("allow"))
        yield


def double(function: Callable[P, T]) -> Callable[P, T]:
    """Run `function` inside :func:`double_precision`."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> T:
        with double_precision():
            return function(*args, **kwargs)

    return inside


def compiled(*static: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """``jax.jit`` with the named arguments static, keeping the function's signature for readers and type checkers.

    The arguments that are declarations (design, components) are hashable and static; everything else is an array.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        return wraps(function)(jax.jit(function, static_argnames=static))

    return decorate


def seed_key(seed: int) -> jax.Array:
    """A JAX key for a whole-number seed, by a named generator, whatever the user's default generator is."""
    return jax.random.key(seed, impl="threefry2x32")
