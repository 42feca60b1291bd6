"""Signs that calls are not independent: exact permutation tests inside cells, and what they do to the estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._attributes import load
from secondorder._labels._cube import groups
from secondorder._labels._results import Table, render_table
from secondorder._schema import ITEM, REPEAT
from secondorder._statistics._decompose import decompose
from secondorder._statistics._group import Group
from secondorder.errors import InputError

__all__ = ["Detector", "IndependenceReport", "check_independence"]

Floats = NDArray[np.float64]

CAUSES: Mapping[str, str] = {
    "repeat alignment": "calls at the same repeat index agree across cells: seeds shared between cells",
    "first repeat": "the first call of a cell differs from the later ones: prefix cache or warm-up",
    "neighbours": "neighbouring repeats agree too often: duplicated or cached answers",
    "halves, contiguous": "the first half of the repeats differs from the second: drift or a changed server",
    "halves, interleaved": "even repeats differ from odd ones: answers alternate between two servers or caches",
    "drift by rank": "verdicts change along the order of sending: drift over the run",
    "drift by time": "verdicts change with time: drift over the run",
    "repeated ids": "calls share a response id: one answer was counted twice",
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
        Difference of mean disagreements (drift: per unit of the run); NaN for a detector that counts.
    pvalue : float
        Exact permutation p value; 0 or 1 for a detector that counts; NaN where it does not apply.
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
        rows = tuple(
            (_text(d.by), d.name, d.statistic, d.pvalue, d.adjusted, "suspicious" if d.adjusted <= self.alpha else "")
            for d in self.detectors
        )
        notes = tuple(
            f"{_text(d.by)}: {CAUSES[d.name]}{'; ' + d.note if d.note else ''}." for d in self.suspicious
        ) or ("No detector rejects independence; that is no proof of it.",)
        effects = tuple((_text(by), name, one, other, one - other) for by, name, one, other in self.effects)
        return (
            Table("Detectors", ("group", "detector", "statistic", "p", "p (Holm)", ""), rows, notes),
            Table(
                "What hangs on it", ("group", "component", "complete pairs", "across repeats", "difference"), effects
            ),
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
    """Test whether the calls of a cell look independent, and show what dependence does to the estimates.

    Under independence and a stable judge the repeats of a cell are exchangeable; every statistic is compared with its
    values when repeats are shuffled, so that its p value is exact. Repeat alignment shuffles each cell on its own; the
    other detectors shuffle an item's repeats as blocks, so that seeds shared between cells do not set them off.

    Parameters
    ----------
    cube : Dataset
        Send ranks, times and response ids are used where it carries them.
    draws : int
        Shuffles.
    seed : int
    alpha : float
        Level for the detectors of a group together (Holm).
    **declaration
        Facets, kernel and so on, as for :func:`secondorder.decompose`.

    Returns
    -------
    IndependenceReport

    Raises
    ------
    InputError
        When a cell has fewer than two calls.

    Examples
    --------
    >>> import secondorder as so
    >>> calls = {"a": "AABB", "b": "AABB", "c": "AABB"}
    >>> rows = [
    ...     {"item": str(item), "prompt": prompt, "run": str(r), "verdict": verdict}
    ...     for item in range(12) for prompt, letters in calls.items() for r, verdict in enumerate(letters)
    ... ]
    >>> cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=["A", "B"])
    >>> "repeat alignment" in [found.name for found in so.check_independence(cube).suspicious]
    True
    """
    if draws < 19:
        raise InputError(f"{draws} shuffles", place="draws", remedy="ask for at least 19")
    complete = decompose(cube, **declaration)
    across = decompose(cube, **{**declaration, "pairs": "across-repeats"})
    parts = list(groups(cube, list(complete.groups[0].facets)))
    detectors: list[Detector] = []
    effects: list[tuple[Mapping[str, str], str, float, float]] = []
    for group, other, (_, part) in zip(complete.groups, across.groups, parts, strict=True):
        if any(group.reasons):
            raise InputError(next(filter(None, group.reasons)), place="check", remedy="repeat the calls of a cell")
        detectors.extend(_holm(group.by, _detect(group, part, draws, seed)))
        means, others = group.values.mean(0), other.values.mean(0)
        effects.extend((group.by, name, float(means[j]), float(others[j])) for j, name in enumerate(group.names))
    return IndependenceReport(tuple(detectors), alpha, tuple(effects))


@dataclass(frozen=True)
class _Found:
    name: str
    statistic: float
    pvalue: float
    note: str = ""


def _detect(group: Group, part: xr.Dataset, draws: int, seed: int) -> list[_Found]:
    codes = group.calls.codes
    flat = codes.reshape(len(codes), -1, codes.shape[-1])
    generator = np.random.Generator(np.random.Philox(seed))
    found: list[_Found] = []
    # Alignment asks whether cells depend on each other: each cell is shuffled on its own. The other statistics look
    # along the repeats of a cell and must not react to cells that depend on each other (shared seeds): the repeats of
    # an item are shuffled as blocks, all cells together.
    for tests, shape in (
        (_alone(group), flat.shape),
        (_along(group, part), (len(flat), 1, flat.shape[-1])),
    ):
        if not tests:
            continue
        observed = np.array([test(flat) for _, test in tests])
        exceed = np.ones(len(tests))
        tie = 1e-9 * max(group.scale, 1e-300)
        for _ in range(draws):
            drawn = _shuffled(flat, generator.random(shape))
            exceed += np.array([test(drawn) for _, test in tests]) >= observed - tie
        found.extend(
            _Found(name, float(value), float(p))
            for (name, _), value, p in zip(tests, observed, exceed / (draws + 1), strict=True)
        )
    return [*found, *_counted(group, part)]


def _shuffled(flat: NDArray[Any], keys: Floats) -> NDArray[Any]:
    return np.take_along_axis(flat, np.argsort(np.broadcast_to(keys, flat.shape), axis=-1), axis=-1)


Statistic = Callable[[NDArray[Any]], float]


def _alone(group: Group) -> list[tuple[str, Statistic]]:
    kernel = group.calls.kernel
    return [("repeat alignment", lambda flat: _alignment(flat, kernel))] if group.design.n_cells > 1 else []


def _along(group: Group, part: xr.Dataset) -> list[tuple[str, Statistic]]:
    kernel = group.calls.kernel
    repeats = group.calls.codes.shape[-1]
    index = np.arange(repeats)
    tests: list[tuple[str, Statistic]] = []
    if repeats >= 3:
        tests.append(("first repeat", partial(_between, kernel=kernel, half=index == 0)))
        tests.append(("neighbours", partial(_neighbours, kernel=kernel)))
    if repeats >= 4:
        tests.append(("halves, contiguous", partial(_between, kernel=kernel, half=index < repeats // 2)))
        tests.append(("halves, interleaved", partial(_between, kernel=kernel, half=index % 2 == 0)))
    for name, variable in (("rank", "send_rank"), ("time", "sent")):
        when = _when(part, variable, group) if variable in part else None
        if when is not None:
            tests.append((f"drift by {name}", partial(_drift, kernel=kernel, when=when)))
    return tests


def _counts(flat: NDArray[Any], n_classes: int, axis: int) -> Floats:
    return np.stack([(flat == code).sum(axis) for code in range(n_classes)], axis=-1).astype(float)


def _form(left: Floats, right: Floats, kernel: Floats) -> float:
    return float(((left @ kernel) * right).sum())


def _alignment(flat: NDArray[Any], kernel: Floats) -> float:
    """Disagreement of distinct cells at unequal repeat index minus that at equal index: large when seeds are shared."""
    by_repeat, by_cell = _counts(flat, len(kernel), 1), _counts(flat, len(kernel), 2)
    whole = by_repeat.sum(1)
    n = by_repeat.sum(-1)
    # Within one cell a repeat meets only itself, at disagreement 0, so t' D t holds pairs of distinct cells alone.
    equal, equal_pairs = _form(by_repeat, by_repeat, kernel), float((n * (n - 1)).sum())
    every = _form(whole, whole, kernel) - _form(by_cell, by_cell, kernel)
    pairs = float((whole.sum(-1) ** 2).sum() - (by_cell.sum(-1) ** 2).sum())
    return (every - equal) / max(pairs - equal_pairs, 1.0) - equal / max(equal_pairs, 1.0)


def _between(flat: NDArray[Any], *, kernel: Floats, half: NDArray[np.bool_]) -> float:
    """Mean disagreement inside cells of repeats in `half` with the others, minus that of pairs on one side."""
    one, other = _counts(flat[:, :, half], len(kernel), 2), _counts(flat[:, :, ~half], len(kernel), 2)
    n, m = one.sum(-1), other.sum(-1)
    apart, apart_pairs = _form(one, other, kernel), float((n * m).sum())
    together = (_form(one, one, kernel) + _form(other, other, kernel)) / 2
    together_pairs = float((n * (n - 1) + m * (m - 1)).sum()) / 2
    return apart / max(apart_pairs, 1.0) - together / max(together_pairs, 1.0)


def _neighbours(flat: NDArray[Any], *, kernel: Floats) -> float:
    """Mean disagreement of all pairs of repeats of a cell, minus that of neighbouring ones."""
    table = np.pad(kernel, (0, 1))  # code -1, the missing call, reads the last row: 0
    left, right = flat[:, :, :-1], flat[:, :, 1:]
    near, near_pairs = float(table[left, right].sum()), float(((left >= 0) & (right >= 0)).sum())
    counts = _counts(flat, len(kernel), 2)
    n = counts.sum(-1)
    return _form(counts, counts, kernel) / max(float((n * (n - 1)).sum()), 1.0) - near / max(near_pairs, 1.0)


def _drift(flat: NDArray[Any], *, kernel: Floats, when: Floats) -> float:
    """Change of the law from the first call of the run to the last, by the kernel: common slope within cells."""
    done = flat >= 0
    mean = (when * done).sum(-1, keepdims=True) / np.maximum(done.sum(-1, keepdims=True), 1)
    centred = np.where(done, when - mean, 0.0)
    slope = np.array([centred[flat == code].sum() for code in range(len(kernel))])
    weight = float((centred**2).sum())
    # For slopes that sum to zero, -s' D s / 2 is the squared length of the change.
    return max(-0.5 * float(slope @ kernel @ slope), 0.0) ** 0.5 / weight if weight > 0 else 0.0


def _when(part: xr.Dataset, variable: str, group: Group) -> Floats | None:
    """Ranks or times of a group's calls in the layout of its codes, scaled to the run; None where they are unknown."""
    kept = part.sel({ITEM: list(group.items)}) if part.sizes[ITEM] != len(group.items) else part
    single = {name: 0 for name, info in group.facets.items() if info.kind == "single"}
    values = load(kept[variable].isel(single).transpose(ITEM, *group.design.names, REPEAT)).astype(float)
    flat = values.reshape(len(values), -1, values.shape[-1])
    known = np.isfinite(flat) & (flat >= 0)
    if not known.any():
        return None
    low, high = flat[known].min(), flat[known].max()
    return np.asarray(np.where(known, (flat - low) / ((high - low) or 1.0), 0.0))


def _counted(group: Group, part: xr.Dataset) -> list[_Found]:
    found = []
    if "response_key" in part:
        keys = load(part["response_key"])
        _, counts = np.unique(keys[keys != 0], return_counts=True)
        repeated = int(counts[counts > 1].sum())
        found.append(_Found("repeated ids", np.nan, 0.0 if repeated else 1.0, f"{repeated} calls"))
    codes = group.calls.codes
    call = group.values[:, group.index("call")]
    constant = bool((np.abs(call) <= 1e-12 * max(group.scale, 1e-300)).all())
    total = group.values[:, group.index("total")]
    differ = bool((total > 1e-12 * group.scale).any())
    found.append(
        _Found("no call noise", np.nan, 0.0 if constant and differ else 1.0, f"{codes.shape[-1]} repeats, all alike")
    )
    return found


def _holm(by: Mapping[str, str], found: Sequence[_Found]) -> list[Detector]:
    tested = [entry for entry in found if not np.isnan(entry.statistic)]
    order = sorted(range(len(tested)), key=lambda k: tested[k].pvalue)
    adjusted: dict[str, float] = {}
    worst = 0.0
    for place, k in enumerate(order):
        worst = max(worst, min(1.0, (len(tested) - place) * tested[k].pvalue))
        adjusted[tested[k].name] = worst
    return [
        Detector(by, entry.name, entry.statistic, entry.pvalue, adjusted.get(entry.name, entry.pvalue), entry.note)
        for entry in found
    ]


def _text(by: Mapping[str, str]) -> str:
    return ", ".join(by.values()) or "all"
