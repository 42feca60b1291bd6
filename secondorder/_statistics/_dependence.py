"""Signs that calls are not independent: exact permutation tests, and what dependence does to the estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._attributes import load
from secondorder._labels._checks import check_cube
from secondorder._labels._cube import groups
from secondorder._labels._results import Table, printed, render_table
from secondorder._schema import ITEM, REPEAT
from secondorder._statistics._checked import check_draws, whole
from secondorder._statistics._decompose import decompose
from secondorder._statistics._decomposition import Decomposition
from secondorder._statistics._estimate import item_values
from secondorder._statistics._group import Group
from secondorder._statistics._origins import shared_ids
from secondorder._statistics._repeats import require_named_repeats
from secondorder._statistics._soft import has_sampled, is_soft, sampled_verdicts, summarise
from secondorder.core._dependence import independence_tests
from secondorder.core._estimates import plugin_from
from secondorder.core._multiplicity import holm
from secondorder.errors import InputError

__all__ = ["CAUSES", "Detector", "IndependenceReport", "check_independence", "independence_report"]

Floats = NDArray[np.float64]
# Calls up to which plain array operations end before a program is compiled.
FEW_CALLS = 200_000

SOFT_CALLS, SOFT_CELLS = "soft verdicts, all calls", "soft verdicts, cells"

CAUSES: Mapping[str, str] = {
    "repeat alignment": "calls at the same repeat index agree across cells: seeds shared between cells",
    "repeat alignment, items": "calls at the same repeat index agree across items: seeds shared between items; items "
    "are then not independent, and no band over items holds",
    "first repeat": "the first call of a cell differs from the later ones: prefix cache or warm-up",
    "copies of the first": "later calls of a cell repeat its first answer: a response cache",
    "neighbours": "neighbouring repeats agree too often: duplicated or cached answers",
    "halves, contiguous": "the first half of the repeats differs from the second: drift or a changed server",
    "halves, interleaved": "even repeats differ from odd ones: answers alternate between two servers or caches",
    "drift by rank": "some classes become more frequent along the order of sending: drift over the run",
    "drift by time": "some classes become more frequent with time: drift over the run",
    "change by rank": "calls far apart in the order of sending agree less: the judge changed during the run",
    "change by time": "calls far apart in time agree less: the judge changed during the run",
    "repeated ids": "calls share a response id and the verdict: one answer was counted twice",
    SOFT_CALLS: "sampled verdicts do not follow the probabilities listed for the same calls: soft ones are those of "
    "another law (sampling fields, unfinished words, labels of several tokens)",
    SOFT_CELLS: "in some cell sampled verdicts do not follow the probabilities listed for the same calls: soft "
    "verdicts are those of another law",
    "no call noise": "every cell repeats one verdict while cells differ: a response cache, a fixed seed, or greedy "
    "decoding",
}


@dataclass(frozen=True)
class Detector:
    """One sign of dependence in one group.

    Attributes
    ----------
    by : mapping
    name : str
    statistic : float
        Difference of mean disagreements (drift, change: over the whole run); NaN for a detector that counts.
    pvalue : float
        Exact permutation p value; for a detector that counts 0 when it found something, else 1.
    adjusted : float
        Holm-adjusted over the group's detectors.
    note : str
    """

    by: Mapping[str, str]
    name: str
    statistic: float
    pvalue: float
    adjusted: float
    note: str = ""


@printed
@dataclass(frozen=True, eq=False)
class IndependenceReport:
    """What the detectors found, and what it does to the estimates.

    Attributes
    ----------
    detectors : tuple of Detector
    alpha : float
        Level of the family of detectors of a group.
    effects : tuple of tuple
        ``(by, component, complete pairs, across-repeats pairs)``: their difference is itself a sign.
    """

    detectors: tuple[Detector, ...]
    alpha: float
    effects: tuple[tuple[Mapping[str, str], str, float, float], ...]

    @property
    def suspicious(self) -> tuple[Detector, ...]:
        """Detectors that reject independence."""
        return tuple(entry for entry in self.detectors if entry.adjusted <= self.alpha)

    def tables(self) -> tuple[Table, ...]:
        """Detectors, and both estimates."""
        # A detector that counts has no p value: it found something, or it did not.
        rows = tuple(
            (
                *(_text(d.by), d.name, d.statistic),
                *((d.pvalue, d.adjusted) if not math.isnan(d.statistic) else (None, None)),
                "suspicious" if d.adjusted <= self.alpha else "",
            )
            for d in self.detectors
        )
        notes = tuple(
            f"{_text(d.by)}: {CAUSES[d.name]}{'; ' + d.note if d.note else ''}." for d in self.suspicious
        ) or ("No detector rejects independence; that is no proof of it.",)
        effects = tuple((_text(by), name, one, other, one - other) for by, name, one, other in self.effects)
        columns = ("group", "component", "complete pairs", "across repeats", "difference")
        of_sampled = tuple(
            f"{_text(d.by)}: of the verdicts that its calls sampled, not of the soft ones."
            for d in self.detectors
            if d.name == SOFT_CALLS
        )
        return (
            Table("Detectors", ("group", "detector", "statistic", "p", "p (Holm)", ""), rows, notes),
            Table("What hangs on it", columns, effects, of_sampled),
        )

    def to_dataset(self) -> xr.Dataset:
        """Detectors as a dataset (dim ``detector``)."""
        fields = ("statistic", "pvalue", "adjusted")
        data = xr.Dataset({name: ("detector", [getattr(d, name) for d in self.detectors]) for name in fields})
        return data.assign(
            group=("detector", [_text(d.by) for d in self.detectors]),
            name=("detector", [d.name for d in self.detectors]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, schema ``secondorder.independence/1``: NaN is None."""
        return {
            "schema": "secondorder.independence/1",
            "alpha": self.alpha,
            "suspicious": bool(self.suspicious),
            "detectors": [
                {
                    "by": dict(d.by),
                    "detector": d.name,
                    "statistic": None if np.isnan(d.statistic) else d.statistic,
                    "p": d.pvalue,
                    "p_holm": d.adjusted,
                    "suspicious": d.adjusted <= self.alpha,
                    "cause": CAUSES[d.name],
                }
                for d in self.detectors
            ],
            "effects": [
                {"by": dict(by), "component": name, "complete": one, "across_repeats": other}
                for by, name, one, other in self.effects
            ],
        }

    def __str__(self) -> str:
        return "\n\n".join(render_table(table) for table in self.tables())


def check_independence(
    cube: xr.Dataset, *, draws: int = 999, seed: int = 0, alpha: float = 0.05, **declaration: Any
) -> IndependenceReport:
    """Look for what breaks the independence of calls: shared seeds, caches, duplicates, warm-up, drift.

    Parameters
    ----------
    cube : Dataset
        A response-law cube with hard verdicts and two or more calls per cell. Where a run has soft verdicts, those that
        its calls sampled are looked at, and compared with the soft ones.
    draws : int
        Shuffles for exact p values.
    seed : int
    alpha : float
        Level of the family of tests of a group (Holm).
    **declaration
        Facets, kernel and so on, as for :func:`secondorder.decompose`.

    Returns
    -------
    IndependenceReport

    Raises
    ------
    InputError
        When repeats are numbered by row, verdicts are soft and nothing was sampled beside them, there are fewer than
        two calls in the cells, or too few shuffles for the number of tests.

    Notes
    -----
    *Repeat alignment* asks whether the cells of an item agree at equal repeat index, *repeat alignment, items* whether
    items do. All other tests look along the repeats of a cell and shuffle the repeats of an item as blocks, all cells
    together, so that they do not react to cells that depend on each other; they do take items as independent. See
    :mod:`secondorder.core._dependence` for the statistics.

    Examples
    --------
    >>> import secondorder as so
    >>> rows = [
    ...     {"item": str(item), "prompt": prompt, "run": str(r), "verdict": "AABB"[(item * (r + 1) + r) % 4]}
    ...     for item in range(12) for prompt in "abc" for r in range(4)
    ... ]
    >>> cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=["A", "B"])
    >>> [found.name for found in so.check_independence(cube).suspicious]
    ['repeat alignment']
    """
    check_draws(draws, "draws", least=19)
    whole(seed, "seed")
    if not 0 < alpha < 1:
        raise InputError(f"{alpha} is not between 0 and 1", place="alpha", remedy="say for instance 0.05")
    require_named_repeats(check_cube(cube), "the check")
    if "soft" in cube and not has_sampled(cube):
        raise InputError(
            "verdicts are soft", place="check", remedy="its tests compare hard verdicts: give a cube of sampled calls"
        )
    result = decompose(sampled_verdicts(cube), **declaration)
    return independence_report(cube, result, draws=draws, seed=seed, alpha=alpha)


def independence_report(
    cube: xr.Dataset, result: Decomposition, *, draws: int, seed: int, alpha: float
) -> IndependenceReport:
    """The same from a decomposition of the (sampled) verdicts that is there already, whatever its pairs."""
    parts = list(groups(cube, list(result.groups[0].facets)))
    detectors: list[Detector] = []
    effects: list[tuple[Mapping[str, str], str, float, float]] = []
    for group, (_, part) in zip(result.groups, parts, strict=True):
        if any(group.reasons):
            # With one call per cell nothing can be shuffled, but what was sampled can be held against its law.
            detectors.extend(told := _soft(group, part, seed))
            if not told:
                raise InputError(next(filter(None, group.reasons)), place="check", remedy="repeat the calls of a cell")
            continue
        tests = independence_tests(
            _flat(group.calls.codes), group.calls.kernel, seed=seed, n_draws=draws, when=_when(part, group)
        )
        if len(tests) > alpha * (draws + 1):
            raise InputError(
                f"{draws} shuffles cannot reject at {alpha:g} with {len(tests)} tests",
                place="draws",
                remedy=f"ask for at least {math.ceil(len(tests) / alpha) - 1}",
            )
        adjusted = holm([test.pvalue for test in tests])
        detectors.extend(Detector(group.by, *test, float(p)) for test, p in zip(tests, adjusted, strict=True))
        values = _complete(group)
        detectors.extend(_counted(group, part, values))
        detectors.extend(_soft(group, part, seed))
        means, others = values.mean(0), _across(group).mean(0)
        effects.extend((group.by, name, float(means[j]), float(others[j])) for j, name in enumerate(group.names))
    return IndependenceReport(tuple(detectors), alpha, tuple(effects))


def _complete(group: Group) -> Floats:
    if group.settings.pairs == "complete":
        return group.values
    return item_values(group.calls.codes, group.design, group.components, group.calls.kernel, "complete").debiased


def _across(group: Group) -> Floats:
    """Values of across-repeats pairs; plain array operations where calls are few, because a program costs a second."""
    if group.settings.pairs == "across-repeats":
        return group.values
    codes, design, components, kernel = group.calls.codes, group.design, group.components, group.calls.kernel
    if codes.size > FEW_CALLS or (codes < 0).any():
        return item_values(codes, design, components, kernel, "across-repeats").debiased
    repeats = codes.shape[-1]
    unit = np.eye(len(kernel))
    mean = np.stack([(codes == code).mean(-1) for code in range(len(kernel))], axis=-1)
    whole = np.stack(plugin_from(mean, design, components, kernel), axis=-1)
    blocks = sum(np.stack(plugin_from(unit[codes[..., r]], design, components, kernel), -1) for r in range(repeats))
    values: Floats = (repeats**2 * whole - blocks) / (repeats * (repeats - 1))
    return values


def _flat(codes: NDArray[Any]) -> NDArray[Any]:
    return codes.reshape(len(codes), -1, codes.shape[-1])


def _when(part: xr.Dataset, group: Group) -> dict[str, Floats]:
    """Ranks and times of a group's calls in the layout of its codes, scaled to the run; NaN where unknown."""
    found = {}
    kept = part.sel({ITEM: list(group.items)}) if part.sizes[ITEM] != len(group.items) else part
    single = {name: 0 for name, info in group.facets.items() if info.kind == "single"}
    for name, variable in (("rank", "send_rank"), ("time", "sent")):
        if variable not in kept:
            continue
        placed = kept[variable].isel(single).transpose(ITEM, *group.design.names, REPEAT)
        values = _flat(load(placed).astype(np.float64))
        values = np.where(values >= 0, values, np.nan)
        low, high = (np.nanmin(values), np.nanmax(values)) if np.isfinite(values).any() else (0.0, 0.0)
        if high > low:
            found[name] = (values - low) / (high - low)
    return found


def _counted(group: Group, part: xr.Dataset, values: Floats) -> list[Detector]:
    """What needs no test: one response id under two calls, and cells that never vary although they differ."""
    found = []
    if (shared := shared_ids(part)) is not None:
        # Ids under which the verdicts differ are not unique: then equal ids are no sign of a copy.
        found.append(("repeated ids", shared.calls > 0 and not shared.varied, f"{shared.calls} calls"))
    tie = 1e-12 * group.scale
    constant = bool((np.abs(values[:, group.index("call")]) <= tie).all())
    differ = bool((values[:, group.index("total")] > tie).any())
    found.append(("no call noise", constant and differ, f"{group.calls.codes.shape[-1]} repeats, all alike"))
    return [
        Detector(group.by, name, np.nan, 1.0 - seen, 1.0 - seen, note if seen else "") for name, seen, note in found
    ]


def _soft(group: Group, part: xr.Dataset, seed: int) -> list[Detector]:
    """Sampled against soft verdicts: all calls together, and the worst cell; each has half the level."""
    if not is_soft(part, group.by):
        return []
    found = summarise(part, seed).found
    if np.isnan(found.total_pvalue):
        return []
    worst = int(np.nanargmin(found.adjusted))
    note = f"{int((found.adjusted <= 0.025).sum())} of {int(np.isfinite(found.g).sum())} cells"
    return [
        Detector(group.by, SOFT_CALLS, found.total_g, found.total_pvalue, min(1.0, 2 * found.total_pvalue)),
        Detector(
            group.by,
            SOFT_CELLS,
            float(found.g[worst]),
            float(found.pvalue[worst]),
            min(1.0, 2 * float(found.adjusted[worst])),
            note,
        ),
    ]


def _text(by: Mapping[str, str]) -> str:
    return ", ".join(by.values()) or "all"
