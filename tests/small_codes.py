"""Cubes from class codes: groups, items, facets and repeats as given."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

import secondorder as so
from secondorder._labels._cube import new_cube


def cube_of(
    codes: Any, classes: str = "AB", facets: tuple[str, ...] = ("prompt",), judge: bool = False, **more: Any
) -> xr.Dataset:
    """A cube from class codes of shape ([judge,] item, facets..., repeat)."""
    codes = np.asarray(codes)
    dims = (*(("judge",) if judge else ()), "item", *facets, "repeat")
    labels = {dim: [f"{dim[0]}{k}" for k in range(size)] for dim, size in zip(dims, codes.shape, strict=True)}
    return new_cube(codes, labels=labels, classes=list(classes), facets=[so.Facet(name) for name in facets], **more)


def random_codes(*shape: int, classes: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, classes, size=shape)
