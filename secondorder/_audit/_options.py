"""The declared analysis of a run, as the statistics take it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from secondorder._labels._attributes import attribute

__all__ = ["analysis_options", "kernel_options", "options_beside"]


def analysis_options(cube: xr.Dataset) -> dict[str, Any]:
    """Arguments of :func:`secondorder.decompose` that an acquired cube was declared with, before its first call.

    Items that lost calls are left out and counted: a finished audit is shown with what it has.
    """
    declared: Mapping[str, Any] = attribute(cube, "analysis", {})
    options = {key: declared[key] for key in ("kernel", "scores", "pairs", "tau", "level", "draws") if key in declared}
    options["invalid"] = kernel_options(declared)["invalid_as"]
    options["incomplete"] = "drop-item"
    return options


def options_beside(cube: xr.Dataset, given: Mapping[str, Any]) -> dict[str, Any]:
    """What an acquired cube was declared with, but for what is given; of any other cube, what is given.

    Another kernel than the declared one leaves its scores and its meaning of ⊥ behind.
    """
    declared = {} if attribute(cube, "analysis") is None else analysis_options(cube)
    if "kernel" in given and given["kernel"] != declared.get("kernel"):
        declared = {name: value for name, value in declared.items() if name not in ("scores", "invalid")}
    return {**declared, **given}


def kernel_options(analysis: Mapping[str, Any]) -> dict[str, Any]:
    """Scores and meaning of ⊥ in a declared analysis, as the choice of the kernel takes them."""
    invalid = analysis.get("invalid", "class")
    return {
        "scores": analysis.get("scores"),
        "invalid_as": (invalid["score"], invalid["penalty"]) if isinstance(invalid, Mapping) else invalid,
    }
