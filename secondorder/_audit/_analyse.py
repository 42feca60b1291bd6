"""The declared analysis of a run: options from the manifest, estimates from the cube, the null block beside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import xarray as xr

from secondorder._audit._options import analysis_options
from secondorder._audit._stop_rule import Stopped, stopped_judges
from secondorder._audit._studies import study_parts
from secondorder._labels._identity import cube_digest
from secondorder._schema import ITEM, STATUS
from secondorder._statistics._decompose import decompose
from secondorder._statistics._decomposition import Decomposition
from secondorder._statistics._outcomes import integrity, outcome_counts
from secondorder._statistics._tree import estimate_all, groups_text

__all__ = ["decompose_declared", "estimate_with_studies", "estimates_of", "null_digest"]


def decompose_declared(cube: xr.Dataset) -> Decomposition:
    """Decomposition of a run under its declared analysis; after a stop rule, of the items that were called."""
    part, notes = _without_uncalled(cube)
    return _noted(decompose(part, **analysis_options(part)), notes)


def estimates_of(cube: xr.Dataset, null: xr.Dataset | None) -> tuple[Decomposition, xr.DataTree]:
    """Decomposition and estimates tree of a run under its declared analysis."""
    options = analysis_options(cube)
    part, notes = _without_uncalled(cube)
    result, tree = estimate_with_studies(part, options)
    if notes:
        result = _noted(result, notes)
        tree["/provenance"].attrs["groups"] = groups_text(result)
        tree["/stop"] = xr.DataTree(_certificates(stopped_judges(cube)))
        tree["/outcomes"] = xr.DataTree(outcome_counts(cube))
        tree["/integrity"] = xr.DataTree(integrity(cube))
    # The identity of the run's cube, whatever items a stop rule left uncalled.
    tree["/provenance"].attrs["cube"] = cube_digest(cube)
    tree["/provenance"].attrs["null"] = null_digest(null)
    if null is not None:
        tree["/null"] = xr.DataTree(_null_arm(null, options))
    return result, tree


def estimate_with_studies(cube: xr.Dataset, options: Mapping[str, Any]) -> tuple[Decomposition, xr.DataTree]:
    """Decomposition and estimates tree of a cube, with the judge studies that the cube supports."""
    result, tree = estimate_all(cube, options)
    for name, study in study_parts(cube, result.settings).items():
        tree[f"/studies/{name}"] = xr.DataTree(study)
    return result, tree


def _without_uncalled(cube: xr.Dataset) -> tuple[xr.Dataset, dict[str, str]]:
    """The items that some judge was called on, and what a reader of each judge's numbers has to know."""
    stopped = stopped_judges(cube)
    if not stopped:
        return cube, {}
    status = cube["status"]
    called = (status != STATUS.index("not_called")).any([dim for dim in status.dims if dim != ITEM])
    notes = {
        entry.judge: f"[stop] {entry}. The certificate holds; bands of an audit that stops by its own numbers do not"
        for entry in stopped
    }
    return cube.isel({ITEM: called.values.nonzero()[0]}), notes


def _noted(result: Decomposition, notes: Mapping[str, str]) -> Decomposition:
    if not notes:
        return result
    groups = (replace(g, notes=(*g.notes, notes[", ".join(g.by.values())])) for g in result.groups)
    return replace(result, groups=tuple(groups))


def _certificates(stopped: tuple[Stopped, ...]) -> xr.Dataset:
    """Certificates as the report shows them (dim ``group``)."""
    fields = ("component", "tau", "alpha", "target", "verdict", "n_items", "lower", "upper")
    data = {name: ("group", [getattr(entry.certificate, name) for entry in stopped]) for name in fields}
    for name in ("stopped_at", "least_items"):
        counts = [getattr(entry.certificate, name) for entry in stopped]
        data[name] = ("group", [-1 if count is None else count for count in counts])
    for name in ("planned", "saved"):
        data[name] = ("group", [getattr(entry, name) for entry in stopped])
    return xr.Dataset(data, coords={"group": [entry.judge for entry in stopped]})


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
