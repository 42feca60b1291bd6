"""The declared analysis of a run: options from the manifest, estimates from the cube, the null block beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from secondorder._labels._attributes import attribute
from secondorder._labels._identity import cube_digest
from secondorder._statistics._decompose import decompose
from secondorder._statistics._decomposition import Decomposition
from secondorder._statistics._tree import estimate_all

__all__ = ["analysis_options", "estimates_of", "null_digest"]


def analysis_options(cube: xr.Dataset) -> dict[str, Any]:
    """Arguments of :func:`secondorder.decompose` that an acquired cube was declared with, before its first call.

    Items that lost calls are left out and counted: a finished audit is shown with what it has.
    """
    declared: Mapping[str, Any] = attribute(cube, "analysis", {})
    invalid = declared.get("invalid", "class")
    options = {key: declared[key] for key in ("kernel", "scores", "pairs", "tau", "level", "draws") if key in declared}
    options["invalid"] = (invalid["score"], invalid["penalty"]) if isinstance(invalid, Mapping) else invalid
    options["incomplete"] = "drop-item"
    return options


def estimates_of(cube: xr.Dataset, null: xr.Dataset | None) -> tuple[Decomposition, xr.DataTree]:
    """Decomposition and estimates tree of a run under its declared analysis."""
    options = analysis_options(cube)
    result, tree = estimate_all(cube, options)
    tree["/provenance"].attrs["null"] = null_digest(null)
    if null is not None:
        tree["/null"] = xr.DataTree(_null_arm(null, options))
    return result, tree


def null_digest(null: xr.Dataset | None) -> str:
    """Identity of the null block's cube; empty where there is none."""
    return "" if null is None else cube_digest(null)


def _null_arm(null: xr.Dataset, options: Mapping[str, Any]) -> xr.Dataset:
    """Hidden ids as the prompt facet: the true prompt component is zero under the randomisation alone.

    Across-repeats pairs have mean exactly zero here whatever couples the calls of a block; complete pairs need
    independent calls too.
    """
    parts = []
    for pairs in ("across-repeats", "complete"):
        data = decompose(null, **{**options, "pairs": pairs, "tau": None}).to_dataset()
        parts.append(data[["estimate", "plugin", "lower", "upper", "n_items"]].expand_dims(pairs=[pairs]))
    return xr.concat(parts, dim="pairs", coords="minimal", compat="override", join="outer")
