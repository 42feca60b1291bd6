"""Verdicts of a factorial set of judge designs on a task with right answers, as shares of right, wrong and invalid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._schema import BOTTOM
from secondorder.errors import CubeError, InputError
from secondorder.studies._design_grid import crossed
from secondorder.studies._disagreement import Array
from secondorder.studies._layout import By, as_names, levels_of
from secondorder.studies._panel import gold_of
from secondorder.studies._parts import unit_counts
from secondorder.studies._ratings import arrange, check_cube
from secondorder.studies._scores import Incomplete

__all__ = ["BinaryGrid", "make_binary_grid"]


@dataclass(frozen=True)
class BinaryGrid:
    """Outcomes with named axes; a design is one combination of the factors' levels that occurs.

    Attributes
    ----------
    outcome : array, shape (groups, items, designs, 4)
        Shares of a cell's calls that are right, false accepts, false rejects, invalid; NaN where there is no call.
    said : array, shape (groups, items, designs, 3)
        Shares of accepting, rejecting and invalid verdicts.
    calls : array, shape (groups, items, designs)
    repeated : array, shape (groups, items, designs)
        Chance that two different calls of a cell differ; NaN where there is one call.
    factors : tuple of (name, levels)
    codes : int array, shape (designs, factors)
    by : grouping
    strata : int array, shape (items,), or None
    n_dropped : int array, shape (groups,)
    """

    outcome: Array
    said: Array
    calls: Array
    repeated: Array
    factors: By
    codes: NDArray[np.int64]
    by: By
    strata: NDArray[np.int64] | None
    n_dropped: NDArray[np.int64]

    @property
    def labels(self) -> list[tuple[str, ...]]:
        """Levels of every design, in the order of the factors."""
        return [tuple(levels[k] for (_, levels), k in zip(self.factors, row, strict=True)) for row in self.codes]

    def crossed(self, array: Array) -> Array:
        """An array (..., designs, k) laid out over all combinations of the levels, (..., combinations, k)."""
        return crossed(array, self.codes, self.factors)


def make_binary_grid(
    data: xr.Dataset | xr.DataArray,
    *,
    factors: Sequence[str],
    accept: str,
    gold: str,
    by: str | Sequence[str] | None,
    incomplete: Incomplete,
) -> BinaryGrid:
    """Lay verdicts out as designs.

    Raises
    ------
    CubeError, InputError
        When a factor, the accepting class or the right answers are not there, or there are more than two classes.
    """
    names = as_names(factors)
    if not names:
        raise InputError("no factor", place="factors", remedy="name the dimensions that the designs are crossed of")
    if incomplete not in ("common", "available"):
        raise InputError(f"incomplete={incomplete!r}", place="incomplete", remedy="say 'common' or 'available'")
    cube = check_cube(data)
    laid = arrange(cube, inner=names, by=() if by is None else by)
    valid = [label for label in laid.classes if label != BOTTOM]
    if len(valid) != 2 or accept not in valid:
        raise InputError(
            f"accept={accept!r} with the classes {', '.join(valid)}",
            place="accept",
            remedy="name the one of two that accepts; more classes, such as a tie, need scores (--class-score)",
        )
    right, _ = gold_of(cube, gold, laid.classes, None)
    if right is None:
        raise CubeError(
            f"there are no right answers {gold!r}",
            place="gold",
            remedy="name their column: --gold COL (classes over `item`)",
        )
    shape = laid.codes.shape  # groups, items, events, factor levels …
    flat = np.moveaxis(laid.codes.reshape(*shape[:3], -1), 2, -1)  # groups, items, designs, events
    counts = unit_counts(flat.reshape(-1, *flat.shape[2:]), len(laid.classes)).reshape(*flat.shape[:3], -1)
    calls = counts.sum(-1)
    used = np.flatnonzero((calls > 0).any(axis=(0, 1)))
    levels = [levels_of(cube, name) for name in names]
    codes = np.array(list(product(*(range(len(one)) for one in levels))), dtype=np.int64)[used]
    counts, calls = counts[:, :, used], calls[:, :, used]
    present = (calls > 0).any(-1)
    kept = present & (right >= 0)
    if incomplete == "common":
        kept = kept & (calls > 0).all(-1)
    there = kept[..., None] & (calls > 0)
    share = np.where(there[..., None], counts / np.maximum(calls, 1)[..., None], np.nan)
    yes, no = laid.classes.index(accept), laid.classes.index(next(label for label in valid if label != accept))
    said = np.stack([share[..., yes], share[..., no], 1 - share[..., yes] - share[..., no]], axis=-1)
    positive = (right == yes)[None, :, None]
    outcome = np.stack(
        [
            np.where(positive, said[..., 0], said[..., 1]),
            np.where(positive, 0 * said[..., 0], said[..., 0]),
            np.where(positive, said[..., 1], 0 * said[..., 1]),
            said[..., 2],
        ],
        axis=-1,
    )
    same = (counts * (counts - 1)).sum(-1) / np.maximum(calls * (calls - 1), 1)
    grid = BinaryGrid(
        outcome=outcome,
        said=said,
        calls=calls * there,
        repeated=np.where(there & (calls > 1), 1 - same, np.nan),
        factors=tuple((name, one) for name, one in zip(names, levels, strict=True)),
        codes=codes,
        by=laid.by,
        strata=laid.strata,
        n_dropped=(present & ~kept).sum(1),
    )
    if not there.any():
        raise CubeError("no item has verdicts and a right answer", place="cube", remedy="check gold and incomplete")
    return grid
