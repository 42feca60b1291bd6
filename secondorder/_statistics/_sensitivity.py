"""What the estimates would be with fewer repeats, or under another rule for ⊥ and for timeouts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from secondorder._labels._attributes import class_labels, load
from secondorder._schema import BOTTOM, CODE_MISSING, REASONS, REPEAT
from secondorder._statistics._decompose import decompose
from secondorder._statistics._repeats import has_named_repeats
from secondorder.errors import CubeError

__all__ = ["prefixes", "sensitivity"]

FIELDS = ("estimate", "plugin", "inflation", "lower", "upper")


def prefixes(cube: xr.Dataset, options: Mapping[str, Any]) -> xr.Dataset:
    """Estimates from the first 2, 4, 8 … repeats and from all of them, with the scaled excess of the plug-in.

    Parameters
    ----------
    cube : Dataset
        Of acquired or imported calls; the prefix of depth r keeps the repeats with planned index below r.
    options : mapping
        Arguments of :func:`secondorder.decompose`.

    Returns
    -------
    Dataset, dims (group, depth, component)
        ``scaled_excess`` is ``r * (plug-in - debiased)``: for complete blocks it does not depend on r in expectation;
        with equal weights and complete pairs it is a fixed multiple of the call component. Items that a prefix leaves
        incomplete are left out there and counted in ``n_items``. Empty where repeats are numbered by row: their first
        ones are no sample of their own.
    """
    if not has_named_repeats(cube):
        return xr.Dataset()
    whole = cube.sizes[REPEAT]
    depths = [depth for depth in (2**k for k in range(1, 32)) if depth < whole]
    depths.append(whole)
    found = {}
    for depth in depths:
        part = _decompose_or_none(cube.isel({REPEAT: slice(0, depth)}), options)
        if part is not None:
            found[depth] = part.assign(scaled_excess=depth * part.inflation)
    return _stack(found, "depth")


def sensitivity(cube: xr.Dataset, options: Mapping[str, Any]) -> xr.Dataset:
    """Estimates under each rule that applies: as declared, ⊥ as tie, ⊥ dropped, timeouts as ⊥.

    Dropping ⊥ conditions on a valid verdict and is no estimator of the declared components: the line shows how much
    hangs on the rule. Where the interval kernel has no declared place for ⊥, timeouts stand at the midpoint. Soft
    verdicts have no ⊥ to recode: they stand as declared.

    Returns
    -------
    Dataset, dims (group, rule, component)
    """
    classes = class_labels(cube)
    rules: dict[str, tuple[xr.Dataset, dict[str, Any]]] = {"as declared": (cube, {})}
    declared = options.get("invalid", "class")
    known = classes[-1] == BOTTOM and declared != "missing" and "soft" not in cube
    bottom = len(classes) - 1 if known else None
    codes = load(cube["verdict"])
    if bottom is not None and (codes == bottom).any():
        tie = next((k for k, label in enumerate(classes) if label.lower() == "tie"), None)
        if tie is not None:
            rules["⊥ as tie"] = (_recoded(cube, np.where(codes == bottom, tie, codes)), {})
        rules["⊥ dropped"] = (cube, {"invalid": "missing"})
    if bottom is not None and "reason" in cube:
        timed_out = load(cube["reason"]) == REASONS.index("timeout")
        if timed_out.any():
            placed = options.get("kernel") == "interval" and declared == "class"
            label = "timeouts as ⊥ at the midpoint" if placed else "timeouts as ⊥"
            recoded = _recoded(cube, np.where(timed_out, bottom, codes))
            rules[label] = (recoded, {"invalid": "midpoint"} if placed else {})
    found = {}
    for rule, (changed, more) in rules.items():
        part = _decompose_or_none(changed, {**options, **more})
        if part is not None:
            found[rule] = part
    return _stack(found, "rule")


def _recoded(cube: xr.Dataset, codes: Any) -> xr.Dataset:
    verdict = cube["verdict"].copy(data=codes.astype(cube["verdict"].dtype))
    assert (codes >= CODE_MISSING).all()
    return cube.assign(verdict=verdict).drop_vars(["status", "reason"], errors="ignore")


def _decompose_or_none(cube: xr.Dataset, options: Mapping[str, Any]) -> xr.Dataset | None:
    """The decomposition as a dataset; None where no item is complete under the rule."""
    try:
        result = decompose(cube, **{**options, "incomplete": "drop-item"})
    except CubeError:
        return None
    return result.to_dataset()


def _stack(found: Mapping[Any, xr.Dataset], name: str) -> xr.Dataset:
    if not found:
        return xr.Dataset()
    fields = [*FIELDS, "n_items", *(["scaled_excess"] if name == "depth" else [])]
    stacked = xr.concat(
        [part[fields] for part in found.values()], dim=name, join="outer", coords="minimal", compat="override"
    )
    return stacked.assign_coords({name: list(found)}).transpose("group", name, ...)
