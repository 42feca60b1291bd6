"""Errors for each randomness, tests and signs of dependence, as parts of the estimates tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._cube import by_text
from secondorder._statistics._decompose import decompose
from secondorder._statistics._decomposition import Decomposition
from secondorder._statistics._dependence import CAUSES, independence_report
from secondorder._statistics._errors import call_note
from secondorder._statistics._group import Group
from secondorder._statistics._permutation import Hypothesis, facet_effects, group_test
from secondorder._statistics._repeats import has_named_repeats
from secondorder._statistics._settings import COVERS, Covers
from secondorder._statistics._soft import has_sampled, sampled_verdicts
from secondorder.core._intervals import t_interval
from secondorder.core._multiplicity import benjamini_hochberg
from secondorder.core._permutation import PermutationTest

__all__ = ["errors_part", "independence_parts", "tests_part"]

DRAWS = 999
FEWEST_DRAWS = 299
# Calls that the tests of a report may shuffle, all judges and facets together: half a minute.
MOST_SHUFFLED = 500_000_000
ALPHA = 0.05
TOO_MANY = "Not tested: there are too many calls for a report. secondorder {command} has no such limit."
NUMBERED = "Not tested: repeats were numbered by row, so that calls cannot be compared by repeat index."
SOFT = "Not tested: the tests compare hard verdicts, and these are soft."


def errors_part(result: Decomposition) -> xr.Dataset:
    """Standard errors and t bands for every randomness that makes sense for the design.

    Returns
    -------
    Dataset, dims (group, covers, component)
        ``se``, ``lower``, ``upper``, ``reason`` (why one is undefined), and ``note`` along ``group, covers``.
    """
    random = any(not group.design.all_fixed for group in result.groups)
    wanted: tuple[Covers, ...] = COVERS if random else ("items", "calls")
    shape = (len(result.groups), len(wanted), len(result.groups[0].names))
    found = {name: np.full(shape, np.nan) for name in ("se", "lower", "upper")}
    reason = np.full(shape, "", dtype=object)
    note = np.full(shape[:2], "", dtype=object)
    for g, group in enumerate(result.groups):
        for c, covers in enumerate(wanted):
            errors = group.errors(covers)
            band = t_interval(errors, result.settings.level)
            found["se"][g, c], found["lower"][g, c], found["upper"][g, c] = errors.se, band.lower, band.upper
            reason[g, c] = [own or other for own, other in zip(group.reasons, band.reason, strict=True)]
            note[g, c] = (call_note(group) or "") if covers == "calls" else ""
    dims = ("group", "covers", "component")
    return xr.Dataset(
        {name: (dims, values) for name, values in found.items()}
        | {"reason": (dims, reason.astype(str)), "note": (dims[:2], note.astype(str))},
        coords={"group": _labels(result), "covers": list(wanted), "component": list(result.groups[0].names)},
        attrs={"level": result.settings.level},
    )


def tests_part(result: Decomposition) -> xr.Dataset:
    """Permutation tests of every facet: no effect on any item.

    Calls are shuffled, unless pairs across repeats were asked for: then calls of one repeat may depend on each other,
    and the labels of a facet's levels are shuffled within each repeat, in all cells of the other facets alike.

    Returns
    -------
    Dataset, dims (group, test)
        ``facet``, ``component``, ``estimate``, ``pvalue``, and ``n_found``: items with an effect at a false discovery
        rate of 5 %. Empty where components are undefined or calls too many; then an attribute `reason` says so.
    """
    draws = _draws(result)
    first = result.groups[0]
    facets = first.design.names
    tests = [(facet, component.name) for facet in facets for component in facet_effects(first, facet)]
    if not tests:
        return xr.Dataset()
    if why := _undefined(result):
        return xr.Dataset(attrs={"reason": why})
    if draws < FEWEST_DRAWS:
        return xr.Dataset(attrs={"reason": TOO_MANY.format(command="test")})
    hypothesis: Hypothesis = "labels" if first.settings.pairs == "across-repeats" else "calls"
    found = [
        [_test(group, facet, hypothesis, draws, result.settings.seed) for facet in facets] for group in result.groups
    ]
    values = {
        "estimate": [np.concatenate([test.estimate for test in row]) for row in found],
        "pvalue": [np.concatenate([test.pvalue for test in row]) for row in found],
        "n_found": [np.concatenate([_discovered(test.item_pvalues) for test in row]) for row in found],
    }
    return xr.Dataset(
        {name: (("group", "test"), np.stack(rows)) for name, rows in values.items()}
        | {"facet": ("test", [facet for facet, _ in tests]), "component": ("test", [name for _, name in tests])},
        coords={"group": _labels(result)},
        attrs={"draws": draws, "hypothesis": hypothesis},
    )


def independence_parts(
    cube: xr.Dataset, result: Decomposition, options: Mapping[str, Any] | None = None
) -> dict[str, xr.Dataset]:
    """Signs of dependence: every detector, and beside it both estimates.

    Parameters
    ----------
    cube : Dataset
    result : Decomposition
        Of the cube.
    options : mapping, optional
        What it was decomposed with.

    Returns
    -------
    dict of Dataset
        ``independence`` (dim ``detector``) and ``independence/effects`` (dims ``group, component``); the first alone,
        and empty but for an attribute `reason`, for cubes without such tests.
    """
    if why := _undefined(result):
        return {"independence": xr.Dataset(attrs={"reason": why})}
    draws = _draws(result)
    untestable = (
        NUMBERED if not has_named_repeats(cube)
        else SOFT if "soft" in cube and not (has_sampled(cube) and options is not None)
        else TOO_MANY.format(command="check") if draws < FEWEST_DRAWS
        else ""
    )  # fmt: skip
    if untestable:
        return {"independence": xr.Dataset(attrs={"reason": untestable})}
    # Where a run has soft verdicts, what its calls sampled is looked at, and held against them.
    if options is not None and "soft" in cube:
        result = decompose(sampled_verdicts(cube), **options)
    report = independence_report(cube, result, draws=draws, seed=result.settings.seed, alpha=ALPHA)
    told = {
        "group": [by_text(entry.by) for entry in report.detectors],
        "cause": [CAUSES[entry.name] for entry in report.detectors],
        "note": [entry.note for entry in report.detectors],
        "suspicious": [entry in report.suspicious for entry in report.detectors],
    }
    detectors = report.to_dataset().assign({name: ("detector", values) for name, values in told.items()})
    names = result.groups[0].names
    values = np.array([effect[2:] for effect in report.effects], dtype=np.float64).reshape(-1, len(names), 2)
    effects = xr.Dataset(
        {
            name: (("group", "component"), values[..., place])
            for place, name in enumerate(("complete", "across_repeats"))
        },
        coords={"group": _labels(result), "component": list(names)},
    )
    return {
        "independence": detectors.assign_attrs(draws=draws, alpha=report.alpha),
        "independence/effects": effects,
    }


def _draws(result: Decomposition) -> int:
    """Shuffles that a report has time for."""
    shuffled = sum(group.calls.codes.size * max(1, len(group.design.names)) for group in result.groups)
    return min(DRAWS, MOST_SHUFFLED // max(shuffled, 1))


def _test(group: Group, facet: str, hypothesis: Hypothesis, draws: int, seed: int) -> PermutationTest:
    together = [name for name in group.design.names if name != facet] if hypothesis == "labels" else []
    return group_test(group, facet, hypothesis, draws, seed, together)


def _discovered(pvalues: NDArray[np.float64]) -> NDArray[np.float64]:
    """How many items each component is found on."""
    return np.array([(benjamini_hochberg(column) <= ALPHA).sum() for column in pvalues.T], dtype=np.float64)


def _undefined(result: Decomposition) -> str:
    """Which groups have no components to test, and why; empty where all have."""
    found = zip(_labels(result), (next(filter(None, group.reasons), "") for group in result.groups), strict=True)
    said = [f"{label}: {why}" if label else why for label, why in found if why]
    return f"Not tested: {'; '.join(said)}." if said else ""


def _labels(result: Decomposition) -> list[str]:
    return [by_text(group.by) for group in result.groups]
