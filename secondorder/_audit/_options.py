"""The declared analysis of a run, as the statistics take it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from secondorder._labels._attributes import attribute

__all__ = ["analysis_options", "kernel_options"]


def analysis_options(cube: xr.Dataset) -> dict[str, Any]:
    """Arguments of :func:`secondorder.decompose` that an acquired cube was declared with, before its first call.

    Items that lost calls are left out and counted: a finished audit is shown with what it has.
    """
    declared: Mapping[str, Any] = attribute(cube, "analysis", {})
    options = {key: declared[key] for key in ("kernel", "scores", "pairs", "tau", "level", "draws") if key in declared}
    options["invalid"] = kernel_options(declared)["invalid_as"]
    options["incomplete"] = "drop-item"
    return options


def kernel_options(analysis: Mapping[str, Any]) -> dict[str, Any]:
    """Scores and meaning of ⊥ in a declared analysis, as the choice of the kernel takes them."""
    invalid = analysis.get("invalid", "class")
    return {
        "scores": analysis.get("scores"),
        "invalid_as": (invalid["score"], invalid["penalty"]) if isinstance(invalid, Mapping) else invalid,
    }
