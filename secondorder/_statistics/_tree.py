"""Everything that a report shows, in one labelled tree: ``estimates.nc``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._atomic import write_bytes
from secondorder._design import standard_components
from secondorder._labels._columns import natural_order
from secondorder._labels._cube import by_text
from secondorder._labels._identity import cube_digest
from secondorder._schema import ESTIMATES_SCHEMA, check_schema
from secondorder._statistics._decompose import decompose
from secondorder._statistics._decomposition import Decomposition
from secondorder._statistics._errors import item_call_coefficients, item_call_variance
from secondorder._statistics._group import SE_KEYS, Group
from secondorder._statistics._inference_tree import errors_part, independence_parts, tests_part
from secondorder._statistics._outcomes import gold_match, integrity, outcome_counts
from secondorder._statistics._sensitivity import prefixes, sensitivity
from secondorder._statistics._soft import soft_part
from secondorder._version import __version__
from secondorder.core._call_variance import Planning
from secondorder.core._intervals import item_errors, item_influence, t_interval
from secondorder.errors import CorruptFileError, InputError

__all__ = ["estimate_all", "groups_text", "open_estimates", "result_tree", "save_estimates"]


def estimate_all(cube: xr.Dataset, options: Mapping[str, Any]) -> tuple[Decomposition, xr.DataTree]:
    """Decompose a cube and compute everything else that the report shows.

    Parameters
    ----------
    cube : Dataset
    options : mapping
        Arguments of :func:`secondorder.decompose`.

    Returns
    -------
    decomposition : Decomposition
    tree : DataTree
        Schema ``secondorder.estimates/1``: ``/components``, ``/strata``, ``/items``, ``/prefixes``, ``/sensitivity``,
        ``/outcomes``, ``/gold``, ``/integrity``, ``/soft``, ``/errors``, ``/tests``, ``/independence``,
        ``/comparison`` and ``/provenance``.
    """
    result = decompose(cube, **options)
    tree = result_tree(result)
    parts: dict[str, xr.Dataset] = {
        "prefixes": prefixes(cube, options),
        "sensitivity": sensitivity(cube, options),
        "outcomes": outcome_counts(cube) if "status" in cube else xr.Dataset(),
        "gold": gold_match(cube),
        "integrity": integrity(cube) if "status" in cube else xr.Dataset(),
        "soft": soft_part(cube, result.settings.seed),
        **independence_parts(cube, result, options),
    }
    for name, part in parts.items():
        tree[f"/{name}"] = xr.DataTree(part)
    tree["/provenance"].attrs.update(
        asked=cube.attrs.get("asked", "null"),
        duplicates=cube.attrs.get("duplicates", "null"),
        answers=cube.attrs.get("answers", "null"),
        cube=cube_digest(cube),
    )
    return result, tree


def result_tree(result: Decomposition) -> xr.DataTree:
    """What a decomposition alone says, as the tree of a report: ``/components``, ``/strata``, ``/items``, ``/errors``,
    ``/tests``, ``/comparison`` and ``/provenance``.
    """
    errors = errors_part(result)
    parts: dict[str, xr.Dataset] = {
        "components": _components(result, errors),
        "strata": _strata(result),
        "items": _items(result),
        "errors": errors,
        "tests": tests_part(result),
        **_comparison(result),
        "provenance": _provenance(result),
    }
    tree = xr.DataTree.from_dict({f"/{name}": part for name, part in parts.items()})
    tree.attrs["schema"] = ESTIMATES_SCHEMA
    return tree


def save_estimates(tree: xr.DataTree, path: str | os.PathLike[str]) -> None:
    """Write the tree to a NetCDF file, whole or not at all.

    Raises
    ------
    StorageError
        When the disk refuses.
    """
    # Through memory: where the disk is full, HDF5 cannot close what it has written and ends the process with a fault.
    data = tree.to_netcdf(engine="h5netcdf")
    assert isinstance(data, memoryview)
    write_bytes(Path(path), data)


def open_estimates(path: str | os.PathLike[str]) -> xr.DataTree:
    """Read a tree written by :func:`save_estimates` into memory.

    Raises
    ------
    InputError
        When there is no such file, or its schema is another one or newer.
    CorruptFileError
        When it does not read.
    """
    if not Path(path).is_file():
        raise InputError("there is no such file", place=str(path), remedy="run secondorder decompose first")
    try:
        with xr.open_datatree(path, engine="h5netcdf") as tree:
            # Node by node: DataTree.load() passes over a variable that has the name of a node.
            loaded = xr.DataTree.from_dict({node.path: node.to_dataset(inherit=False).load() for node in tree.subtree})
    except (OSError, ValueError, KeyError) as error:
        raise CorruptFileError(
            f"it does not read as NetCDF ({error})", place=str(path), remedy="decompose the cube again"
        ) from error
    check_schema(loaded.attrs.get("schema"), ESTIMATES_SCHEMA, place=str(path))
    return loaded


def _components(result: Decomposition, errors: xr.Dataset) -> xr.Dataset:
    data = result.to_dataset()
    for covers in errors["covers"].values.tolist():
        data[SE_KEYS[covers]] = (("group", "component"), errors["se"].sel(covers=covers).values)
    total = data.estimate.sel(component="total", drop=True)
    data["share"] = data.estimate / total.where(total > 0)
    if (tau := result.settings.tau) is not None:
        # 1 and 0, and a missing value where there is no estimate: "not above" is an answer, too.
        for name, values in (("above_tau", data.estimate), ("plugin_above_tau", data.plugin)):
            data[name] = (values > tau).where(values.notnull())
    data["soft"] = ("group", [group.calls.is_spread for group in result.groups])
    leads = [_lead(group, result.settings.level) for group in result.groups]
    for name in _Lead._fields:
        data[name] = ("group", [getattr(lead, name) for lead in leads])
    data["step_lower"] = (("group", "component"), [_steps(group, result.settings.level) for group in result.groups])
    return data


class _Lead(NamedTuple):
    """The two largest components, total aside, and the band over items of their difference.

    Both are the largest of this sample: the band is that of two components named beforehand, and where the second and
    the third are close it says nothing of the third.
    """

    largest: str = ""
    second: str = ""
    lead: float = np.nan
    lead_lower: float = np.nan
    lead_upper: float = np.nan


def _lead(group: Group, level: float) -> _Lead:
    standard = {component.name for component in standard_components(group.design.names)} - {"total"}
    means = {name: value for name, value in zip(group.names, group.values.mean(0), strict=True) if name in standard}
    if len(means) < 2 or np.isnan(list(means.values())).any():
        return _Lead()
    first, second = sorted(means, key=lambda name: -means[name])[:2]
    gap = (group.values[:, group.index(first)] - group.values[:, group.index(second)])[:, None]
    band = t_interval(item_errors(gap, group.strata_codes, group.scale), level)
    return _Lead(first, second, float(gap.mean()), float(band.lower[0]), float(band.upper[0]))


def _steps(group: Group, level: float) -> NDArray[np.float64]:
    """Lower end of the band over items of each main effect minus the next smaller one; NaN where there is none."""
    found = np.full(len(group.names), np.nan)
    means = group.values.mean(0)
    columns = [group.index(name) for name in group.design.names]
    if np.isnan(means[columns]).any():
        return found
    ordered = sorted(columns, key=lambda j: -means[j])
    for larger, smaller in pairwise(ordered):
        step = (group.values[:, larger] - group.values[:, smaller])[:, None]
        found[larger] = t_interval(item_errors(step, group.strata_codes, group.scale), level).lower[0]
    return found


def _strata(result: Decomposition) -> xr.Dataset:
    found = []
    for group in result.groups:
        parts = group.by_stratum()
        if not parts:
            continue
        label = Decomposition(result.settings, (group,)).to_dataset().group.values
        stacked = xr.concat(
            [Decomposition(result.settings, (part,)).to_dataset() for part in parts.values()],
            dim="stratum",
            coords="minimal",
            compat="override",
            join="override",
        )
        found.append(stacked.assign_coords(stratum=list(parts), group=label))
    if not found:
        return xr.Dataset()
    wanted = ["estimate", "plugin", "lower", "upper", "n_items"]
    joined = xr.concat([part[wanted] for part in found], dim="group", join="outer", coords="minimal", compat="override")
    # A judge without items of a stratum has none there, and no numbers.
    counted = joined.assign(n_items=joined.n_items.fillna(0).astype(int))
    labels = counted.stratum.values.tolist()
    return counted.sel(stratum=[labels[k] for k in natural_order(labels)])


def _items(result: Decomposition) -> xr.Dataset:
    """Values of each item, with what errors are made of: deviations from the stratum's mean, and call variances, at
    the repeats at hand and as coefficients for any other number.
    """
    data = result.items_dataset()
    row = {item: k for k, item in enumerate(data.item.values.tolist())}
    influence, variance = (np.full(data.value.shape, np.nan) for _ in range(2))
    coefficients = np.full((*data.value.shape, len(Planning._fields)), np.nan)
    for g, group in enumerate(result.groups):
        rows = [row[item] for item in group.items]
        influence[g, rows] = item_influence(group.values, group.strata_codes)
        if not any(group.reasons):
            variance[g, rows] = item_call_variance(group)
            coefficients[g, rows] = np.stack(item_call_coefficients(group), axis=-1)
    dims = data.value.dims
    data = data.assign(
        influence=(dims, influence),
        call_variance=(dims, variance),
        call_coefficients=((*dims, "term"), coefficients),
    ).assign_coords(term=list(Planning._fields))
    strata = {
        item: stratum
        for group in result.groups
        if group.strata is not None
        for item, stratum in zip(group.items, group.strata, strict=True)
    }
    if strata:
        data = data.assign_coords(stratum=("item", [strata[item] for item in data.item.values]))
    return data


def _comparison(result: Decomposition) -> dict[str, xr.Dataset]:
    compared = result.comparison
    if compared is None:
        reason = result.comparison_reason
        return {"comparison": xr.Dataset(attrs={} if reason is None else {"reason": reason})}
    differences = xr.Dataset(
        {
            name: ("difference", [getattr(entry, name) for entry in compared.differences])
            for name in ("component", "estimate", "plugin", "lower", "upper", "reason")
        }
    )
    for name in ("a", "b"):
        differences[name] = ("difference", [by_text(getattr(entry, name)) for entry in compared.differences])
    unknown = ["–"] * len(result.groups)
    rankings = xr.Dataset(
        {
            **{
                measure: (
                    ("component", "place"),
                    [[by_text(by) for by in getattr(entry, measure)] or unknown for entry in compared.rankings],
                )
                for measure in ("debiased", "plugin")
            },
            **{
                f"{measure}_values": (
                    ("component", "place"),
                    [
                        getattr(entry, f"{measure}_values") or [np.nan] * len(result.groups)
                        for entry in compared.rankings
                    ],
                )
                for measure in ("debiased", "plugin")
            },
            "top_differs": ("component", [entry.top_differs for entry in compared.rankings]),
        },
        coords={"component": [entry.component for entry in compared.rankings]},
    )
    return {
        "comparison": xr.Dataset(attrs={"n_items": compared.n_items, "notes": json.dumps(compared.notes)}),
        "comparison/differences": differences,
        "comparison/rankings": rankings,
    }


def _provenance(result: Decomposition) -> xr.Dataset:
    return xr.Dataset(
        attrs={
            "version": __version__,
            "settings": json.dumps(result.settings.to_dict(), ensure_ascii=False),
            "source": json.dumps(dict(result.source), ensure_ascii=False),
            "groups": groups_text(result),
        }
    )


def groups_text(result: Decomposition) -> str:
    """What else a reader has to know of each group, as JSON text."""
    return json.dumps(
        [
            {
                "by": dict(group.by),
                "facets": {name: info.to_dict() for name, info in group.facets.items()},
                "repeats": list(group.repeats),
                "items_dropped": [dict(entry) for entry in group.items_dropped],
                "notes": list(group.all_notes),
                "undefined": [entry.to_dict() for entry in group.undefined],
            }
            for group in result.groups
        ],
        ensure_ascii=False,
    )
