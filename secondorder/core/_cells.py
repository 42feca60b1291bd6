"""The sufficient statistic of a cell: how many calls, their mean verdict vector, their mean disagreement with self."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp

from secondorder.core._precision import double

__all__ = ["Cells", "cells_from_codes", "cells_from_counts", "cells_from_soft"]


class Cells(NamedTuple):
    """Everything that complete-pair estimators need to know of the calls.

    Attributes
    ----------
    n : array, shape (*batch, L_1, ..., L_J)
        Calls per cell.
    mean : array, shape (*batch, L_1, ..., L_J, C)
        Mean verdict vector: for hard verdicts the shares of the classes.
    self : array, shape (*batch, L_1, ..., L_J)
        Mean over calls of ``v' D v``, a verdict's disagreement with itself: 0 for hard verdicts.
    """

    n: Any
    mean: Any
    self: Any


@double
def cells_from_counts(counts: Any) -> Cells:
    """Cells from verdict counts ``(*batch, L_1, ..., L_J, C)``; a cell without a call is NaN."""
    counts = jnp.asarray(counts).astype(jnp.float64)
    n = counts.sum(-1)
    return Cells(n, counts / n[..., None], jnp.zeros_like(n))


@double
def cells_from_codes(codes: Any, n_classes: int) -> Cells:
    """Cells from class codes ``(*batch, L_1, ..., L_J, R)``, where -1 is a call without verdict."""
    codes = jnp.asarray(codes)
    counts = jnp.stack([(codes == code).sum(-1) for code in range(n_classes)], axis=-1)
    return cells_from_counts(counts)


@double
def cells_from_soft(verdicts: Any, kernel: Any) -> Cells:
    """Cells from soft verdicts ``(*batch, L_1, ..., L_J, R, C)``: probability vectors, NaN rows where no verdict.

    Counts are no longer sufficient: the mean vector and the mean of ``v' D v`` are kept.
    """
    verdicts = jnp.asarray(verdicts).astype(jnp.float64)
    kernel = jnp.asarray(kernel).astype(jnp.float64)
    present = ~jnp.isnan(verdicts).any(-1)
    clean = jnp.where(present[..., None], verdicts, jnp.zeros_like(verdicts))
    n = present.sum(-1).astype(jnp.float64)
    own = ((clean @ kernel) * clean).sum(-1).sum(-1)
    return Cells(n, clean.sum(-2) / n[..., None], own / n)
