"""Scores of a factorial set of judge designs on one scale, beside the human scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._schema import ITEM
from secondorder.errors import CubeError, InputError, KernelError
from secondorder.studies._disagreement import Array, label_scores
from secondorder.studies._layout import By, as_names, lay_out, levels_of
from secondorder.studies._scales import Bounds, Scales, check_bounds, mapped, named_bounds
from secondorder.studies._scores import Incomplete, scored

__all__ = ["Grid", "crossed", "make_grid"]


@dataclass(frozen=True)
class Grid:
    """Scores with named axes; a design is one combination of the factors' levels that occurs.

    Attributes
    ----------
    values : array, shape (groups, items, designs)
        Mean over the calls of a cell, on the common scale; NaN where there is none.
    calls : array, shape (groups, items, designs)
        Valid calls of each cell.
    squares : array, shape (groups, items, designs)
        Mean squared score of the calls.
    human : array, shape (items,), or None
    factors : tuple of (name, levels)
    codes : int array, shape (designs, factors)
    by : grouping
    items : tuple of str
    strata : int array, shape (items,), or None
    n_invalid, n_dropped : int array, shape (groups,)
        Scores outside their scale and ⊥ without a score; items left out because a design has no score there.
    """

    values: Array
    calls: Array
    squares: Array
    human: Array | None
    factors: By
    codes: NDArray[np.int64]
    by: By
    items: tuple[str, ...]
    strata: NDArray[np.int64] | None
    n_invalid: NDArray[np.int64]
    n_dropped: NDArray[np.int64]

    @property
    def labels(self) -> list[tuple[str, ...]]:
        """Levels of every design, in the order of the factors."""
        return [tuple(levels[k] for (_, levels), k in zip(self.factors, row, strict=True)) for row in self.codes]

    def crossed(self, array: Array) -> Array:
        """An array (..., designs, k) laid out over all combinations of the levels, (..., combinations, k)."""
        return crossed(array, self.codes, self.factors)

    def keep(self, designs: Sequence[int]) -> Grid:
        """The same with some of the designs."""
        chosen = list(designs)
        return replace(
            self,
            values=self.values[..., chosen],
            calls=self.calls[..., chosen],
            squares=self.squares[..., chosen],
            codes=self.codes[chosen],
        )


def crossed(array: Array, codes: NDArray[np.int64], factors: By) -> Array:
    """Designs laid out over all combinations of the levels; NaN where there is no such design."""
    shape = tuple(len(levels) for _, levels in factors)
    place = np.ravel_multi_index(tuple(codes.T), shape)
    full = np.full((*array.shape[:-2], int(np.prod(shape)), array.shape[-1]), np.nan)
    full[..., place, :] = array
    return full


def make_grid(
    data: xr.Dataset | xr.DataArray,
    *,
    factors: Sequence[str],
    human: str | None,
    scale: str = "scale",
    scales: Scales | None = None,
    to: Bounds = (1, 7),
    by: str | Sequence[str] | None = None,
    scores: Mapping[str, float] | None = None,
    incomplete: Incomplete = "common",
) -> Grid:
    """Lay scores out as designs.

    Raises
    ------
    CubeError, InputError
        When a factor, the human scores or a declared scale is not there.
    """
    names = as_names(factors)
    if not names:
        raise InputError("no factor", place="factors", remedy="name the dimensions that the designs are crossed of")
    if incomplete not in ("common", "available"):
        raise InputError(f"incomplete={incomplete!r}", place="incomplete", remedy="say 'common' or 'available'")
    check_bounds(to, "to")
    cube, invalid = scored(data, scores=scores, valid=None)
    cube = cube.assign(invalid=(cube["score"].dims, invalid.astype(float)))
    if isinstance(scales, tuple):
        cube = _on_one_scale(cube, None, {"": scales}, to)
    elif scale in names or scales is not None:
        cube = _on_one_scale(cube, scale, scales or {}, to)
    laid = lay_out(cube, "score", inner=names, by=() if by is None else by, fill=np.nan)
    bad = lay_out(cube, "invalid", inner=names, by=() if by is None else by, fill=0.0).values
    levels = [levels_of(cube, name) for name in names]
    shape = laid.values.shape
    flat = laid.values.reshape(*shape[:3], -1)
    there = ~np.isnan(flat)
    calls = there.sum(2).astype(float)
    with_calls = np.maximum(calls, 1)
    values = np.where(calls > 0, np.where(there, flat, 0.0).sum(2) / with_calls, np.nan)
    squares = np.where(calls > 0, np.where(there, flat**2, 0.0).sum(2) / with_calls, np.nan)
    used = np.flatnonzero(there.any(axis=(0, 1, 2)))
    if not len(used):
        raise CubeError("there is no score", place="score", remedy="check the columns")
    codes = np.array(list(product(*(range(len(one)) for one in levels))), dtype=np.int64)[used]
    people = None if human is None else _human(cube, human, scores)
    kept = np.ones(flat.shape[:2], dtype=bool) if people is None else np.broadcast_to(~np.isnan(people), flat.shape[:2])
    if incomplete == "common":
        kept = kept & ~np.isnan(values[..., used]).any(-1)
    present = there.any(axis=(2, 3))
    values, squares = (np.where(kept[..., None], one[..., used], np.nan) for one in (values, squares))
    return Grid(
        values=values,
        calls=calls[..., used] * kept[..., None],
        squares=squares,
        human=people,
        factors=tuple((name, one) for name, one in zip(names, levels, strict=True)),
        codes=codes,
        by=laid.by,
        items=laid.items,
        strata=laid.strata,
        n_invalid=bad.sum(axis=tuple(range(1, bad.ndim))).astype(np.int64),
        n_dropped=(present & ~kept).sum(1),
    )


def _on_one_scale(cube: xr.Dataset, name: str | None, scales: Mapping[str, Bounds], to: Bounds) -> xr.Dataset:
    """Map every level of the scale factor, or all scores, to the common scale; what lies outside is invalid."""
    array = cube["score"]
    if name is not None and name not in array.dims:
        raise CubeError(f"{name!r} is no dimension of the scores", place="scale", remedy="name the factor of scales")
    values, invalid = array.to_numpy().copy(), cube["invalid"].to_numpy().copy()
    axis = 0 if name is None else array.dims.index(name)
    for position, label in enumerate([""] if name is None else levels_of(cube, name)):
        bounds = scales.get(label) or named_bounds(label)
        if bounds is None:
            raise InputError(
                f"scale {label!r} has no bounds",
                place="scales",
                remedy=f"give scales={{{label!r}: (lo, hi)}}",
            )
        check_bounds(bounds, f"scales[{label!r}]" if label else "scales")
        here = ... if name is None else (slice(None),) * axis + (position,)
        values[here], outside = mapped(values[here], bounds, to)
        invalid[here] += outside
    return cube.assign(score=(array.dims, values), invalid=(array.dims, invalid))


def _human(cube: xr.Dataset, name: str, scores: Mapping[str, float] | None) -> Array:
    if name not in cube.variables or cube[name].dims != (ITEM,):
        raise CubeError(
            f"no human scores {name!r} over the items",
            place="human",
            remedy="name their column: --gold COL (a variable over `item`)",
        )
    try:
        if cube[name].dtype.kind in "OUS":  # right classes of a verdict cube
            return label_scores(cube[name].to_numpy().tolist(), scores)
        return np.asarray(cube[name].to_numpy(), dtype=float)
    except (KernelError, ValueError):
        remedy = "give numbers, or score its classes (scores={class: number})"
        raise CubeError(f"{name!r} holds no numbers", place="human", remedy=remedy) from None
