"""Item after item with bounded memory: one function on every item of a batch, as many at a time as fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax

__all__ = ["each_item"]

# Numbers held at once: 64 MiB of float64.
WORKING_SET = 1 << 23


def each_item(function: Callable[..., Any], batch_ndim: int, numbers: int, *arrays: jax.Array) -> Any:
    """Map `function` over the leading batch axes of `arrays`, inside a compiled function.

    Parameters
    ----------
    function : callable
        Takes one item of every array, returns an array or a tree of arrays.
    batch_ndim : int
        Number of batch axes; every array has them.
    numbers : int
        How many numbers one item needs in the largest intermediate result.
    *arrays : array, shape (*batch, ...)

    Returns
    -------
    tree of array, shape (*batch, ...)
    """
    batch = arrays[0].shape[:batch_ndim]
    items = math.prod(batch)
    flat = tuple(x.reshape(items, *x.shape[batch_ndim:]) for x in arrays)
    values = jax.lax.map(lambda parts: function(*parts), flat, batch_size=max(1, WORKING_SET // numbers))
    return jax.tree.map(lambda x: x.reshape(*batch, *x.shape[1:]), values)
