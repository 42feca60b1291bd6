"""What the estimates would be with fewer repeats, or under another rule for ⊥ and for timeouts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import xarray as xr

from secondorder._design import listed
from secondorder._labels._attributes import class_labels, group_dim, load
from secondorder._schema import BOTTOM, CLASS, CODE_MISSING, REASONS, REPEAT
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
    found = {depth: _each_group(cube.isel({REPEAT: slice(0, depth)}), options) for depth in depths}
    stacked = _stack(found, "depth")
    return stacked.assign(scaled_excess=stacked.inflation * stacked.depth) if stacked else stacked


def sensitivity(cube: xr.Dataset, options: Mapping[str, Any]) -> xr.Dataset:
    """Estimates under each rule that applies: as declared, ⊥ as tie, ⊥ dropped, timeouts as ⊥.

    Dropping ⊥ conditions on a valid verdict and is no estimator of the declared components: the line shows how much
    hangs on the rule. Where the interval kernel has no declared place for ⊥, timeouts stand at the midpoint. The ⊥ of
    soft verdicts is mass on tokens that say no verdict or are not listed: it may belong to any class, and a line for
    each shows how much hangs on which.

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
            recoded = _recoded(cube, np.where(timed_out, bottom, codes))
            rules["timeouts as ⊥"] = (recoded, {"invalid": "midpoint"} if placed else {})
    if "soft" in cube and classes[-1] == BOTTOM and bool((cube["soft"].isel({CLASS: -1}) > 0).any()):
        rules |= {f"⊥ mass as {label}": (_moved(cube, code), {}) for code, label in enumerate(classes[:-1])}
    return _stack({rule: _each_group(changed, {**options, **more}) for rule, (changed, more) in rules.items()}, "rule")


def _recoded(cube: xr.Dataset, codes: Any) -> xr.Dataset:
    verdict = cube["verdict"].copy(data=codes.astype(cube["verdict"].dtype))
    assert (codes >= CODE_MISSING).all()
    return cube.assign(verdict=verdict).drop_vars(["status", "reason"], errors="ignore")


def _moved(cube: xr.Dataset, code: int) -> xr.Dataset:
    """Soft verdicts with the mass of ⊥ on another class."""
    vectors = load(cube["soft"].transpose(..., CLASS)).copy()
    vectors[..., code] += vectors[..., -1]
    vectors[..., -1] *= 0.0
    return cube.assign(soft=(cube["soft"].transpose(..., CLASS).dims, vectors))


def _each_group(cube: xr.Dataset, options: Mapping[str, Any]) -> list[xr.Dataset]:
    """Decompositions of the groups one by one: one that has no complete item under a rule takes no other with it."""
    # What is changed here is no longer what the calls sampled from: only the numbers are wanted, not their tests.
    cube = cube.assign_attrs()
    cube.attrs.pop("soft", None)
    facets = options.get("facets")
    names = None if facets is None else [entry if isinstance(entry, str) else entry.name for entry in listed(facets)]
    dim = group_dim(cube, names)
    parts = [cube] if dim is None else [cube.isel({dim: [position]}) for position in range(cube.sizes[dim])]
    found = []
    for part in parts:
        # Where no item is complete there is nothing to show; anything else that is wrong has been said of the whole.
        with suppress(CubeError):
            result = decompose(part, **{**options, "incomplete": "drop-item"})
            # The group alone tells them apart below: labels of its own would not fit where a group is absent.
            found.append(result.to_dataset().drop_vars(list(result.groups[0].by), errors="ignore"))
    return found


def _stack(found: Mapping[Any, list[xr.Dataset]], name: str) -> xr.Dataset:
    """One dataset ``(group, name, component)``: NaN, and 0 items, where a group has no complete item."""
    every = [part for parts in found.values() for part in parts]
    if not every:
        return xr.Dataset()
    groups = list(dict.fromkeys(label for part in every for label in part.group.values.tolist()))
    nothing = every[0][[*FIELDS, "n_items"]].isel(group=[])
    joined = [
        xr.concat([nothing, *(part[[*FIELDS, "n_items"]] for part in parts)], dim="group").reindex(group=groups)
        for parts in found.values()
    ]
    stacked = xr.concat(joined, dim=name, coords="minimal", compat="override")
    stacked["n_items"] = stacked.n_items.fillna(0).astype(int)
    return stacked.assign_coords({name: list(found)}).transpose("group", name, ...)
