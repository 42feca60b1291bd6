"""Judges compared on the items that they share: differences, orderings, and how sure the top place is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isclose
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondorder._labels._results import Table, printed, render_table
from secondorder._statistics._comparable import (
    difference_table,
    differing_declarations,
    label_of,
    refuse_other_declarations,
    shared_strata,
)
from secondorder._statistics._group import Group, Undefined
from secondorder.core._intervals import (
    bca_interval,
    item_errors,
    percentile_interval,
    studentised_interval,
    t_interval,
)
from secondorder.core._resampling import resample

__all__ = ["Comparison", "Difference", "Ranking", "compare_groups"]

SHOWN = 3
"""Groups that a table's ordering names."""

TOP_DIFFERS = "top differs: share of whole-item draws in which the two measures put different groups first"


@dataclass(frozen=True)
class Difference:
    """Component of one group minus the same component of another, on shared items.

    Attributes
    ----------
    component : str
    a, b : mapping
        The two groups.
    estimate, plugin : float
        Debiased and plug-in difference ``a - b``.
    lower, upper : float
        Band over items, whatever the bands of the groups cover, from the difference of every item: paired t by default.
    reason : str
        Why something is undefined.
    """

    component: str
    a: Mapping[str, str]
    b: Mapping[str, str]
    estimate: float
    plugin: float
    lower: float
    upper: float
    reason: str = ""


@dataclass(frozen=True)
class Ranking:
    """Groups from the largest component to the smallest, by both measures.

    Attributes
    ----------
    component : str
    debiased, plugin : tuple of mapping
        Groups in falling order, those with equal values in the order in which they were given; empty where a group has
        no value.
    top_differs : float
        Share of whole-item draws in which the two measures put different groups first; NaN where undefined. Groups that
        share the first place are all first.
    reason : str
    debiased_values, plugin_values : tuple of float
        Values of the groups, in the same order.
    """

    component: str
    debiased: tuple[Mapping[str, str], ...]
    plugin: tuple[Mapping[str, str], ...]
    top_differs: float
    reason: str = ""
    debiased_values: tuple[float, ...] = ()
    plugin_values: tuple[float, ...] = ()


@printed
@dataclass(frozen=True, eq=False)
class Comparison:
    """Groups compared on shared items.

    Attributes
    ----------
    n_items : int
        Items that all groups have.
    items : tuple of str
    differences : tuple of Difference
        Every component, every pair of groups.
    rankings : tuple of Ranking
        Every component.
    level : float
    method : str
    notes : tuple of str
        In what the groups differ besides their verdicts.
    """

    n_items: int
    items: tuple[str, ...]
    differences: tuple[Difference, ...]
    rankings: tuple[Ranking, ...]
    level: float
    method: str
    notes: tuple[str, ...] = ()

    @property
    def undefined(self) -> tuple[Undefined, ...]:
        """Numbers of the comparison that do not exist, with reasons."""
        found: list[Undefined] = []
        for difference in self.differences:
            if difference.reason:
                pair = f"{label_of(difference.a)} - {label_of(difference.b)}"
                fields = [name for name in ("estimate", "plugin") if np.isnan(getattr(difference, name))]
                found.extend(
                    Undefined(difference.component, f"differences[{pair}].{name}", difference.reason)
                    for name in (*fields, "lower", "upper")
                )
        for ranking in self.rankings:
            if ranking.reason:
                fields = [name for name in ("debiased", "plugin") if not getattr(ranking, name)]
                found.extend(
                    Undefined(ranking.component, f"rankings.{name}", ranking.reason)
                    for name in (*fields, "top_differs")
                )
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Plain values in the order of the JSON schema; NaN is None and stands in ``undefined``."""
        plain: dict[str, Any] = {
            "n_items": self.n_items,
            "covers": "items",
            "differences": [
                {
                    "component": d.component,
                    "a": dict(d.a),
                    "b": dict(d.b),
                    "estimate": _number(d.estimate),
                    "plugin": _number(d.plugin),
                    "lower": _number(d.lower),
                    "upper": _number(d.upper),
                }
                for d in self.differences
            ],
            "rankings": [
                {
                    "component": r.component,
                    "debiased": [dict(by) for by in r.debiased],
                    "plugin": [dict(by) for by in r.plugin],
                    "top_differs": _number(r.top_differs),
                }
                for r in self.rankings
            ],
        }
        if self.undefined:
            plain["undefined"] = [entry.to_dict() for entry in self.undefined]
        if self.notes:
            plain["notes"] = list(self.notes)
        return plain

    def tables(self) -> tuple[Table, ...]:
        """Orderings and differences as tables."""
        level = f"{100 * self.level:g}%"
        orderings = Table(
            f"Largest first, on {self.n_items} shared items",
            ("component", "debiased", "plug-in", "top differs"),
            tuple(
                (
                    r.component,
                    _ordering(r.debiased, r.debiased_values),
                    _ordering(r.plugin, r.plugin_values),
                    r.top_differs,
                )
                for r in self.rankings
            ),
            (TOP_DIFFERS, *self.notes),
        )
        differences = difference_table(
            [(d.a, d.b) for d in self.differences],
            ("debiased", "plug-in", "lower", "upper"),
            [(d.component, d.estimate, d.plugin, d.lower, d.upper) for d in self.differences],
            (
                f"lower, upper: {level} band ({self.method}, items) of each difference alone; test --hypothesis judges "
                "adjusts for all",
                *(f"– {reason}" for reason in dict.fromkeys(d.reason for d in self.differences if d.reason)),
            ),
        )
        return orderings, differences

    def __str__(self) -> str:
        return "\n\n".join(render_table(table) for table in self.tables())


def compare_groups(groups: Sequence[Group]) -> Comparison | str:
    """Compare groups on the items that all of them have; the reason, as text, when there is no such item.

    Raises
    ------
    InputError
        When the groups were decomposed under different components, kernels or kinds of facets, or an item changes its
        stratum.
    """
    first = groups[0]
    for other in groups[1:]:
        refuse_other_declarations(first, other)
    common = set(first.items).intersection(*(other.items for other in groups[1:]))
    shared = [item for item in first.items if item in common]
    if not shared:
        return "the groups share no item"
    rows = [_rows(group, shared) for group in groups]
    settings = first.settings
    strata = shared_strata(groups, rows)
    debiased = np.stack([group.values[index] for group, index in zip(groups, rows, strict=True)])
    plugin = np.stack([group.plugin_values[index] for group, index in zip(groups, rows, strict=True)])
    return Comparison(
        len(shared),
        tuple(shared),
        _differences(groups, debiased, plugin, strata),
        _rankings(groups, debiased, plugin, strata),
        settings.level,
        settings.interval,
        differing_declarations(groups),
    )


def _rows(group: Group, shared: Sequence[str]) -> NDArray[np.int64]:
    position = {item: row for row, item in enumerate(group.items)}
    return np.array([position[item] for item in shared])


def _differences(
    groups: Sequence[Group], debiased: NDArray[np.float64], plugin: NDArray[np.float64], strata: Any
) -> tuple[Difference, ...]:
    settings, names = groups[0].settings, groups[0].names
    pairs = list(combinations(range(len(groups)), 2))
    columns = np.concatenate([debiased[a] - debiased[b] for a, b in pairs], axis=1)
    plugin_columns = np.concatenate([plugin[a] - plugin[b] for a, b in pairs], axis=1)
    scale = groups[0].scale
    if settings.interval == "t":
        band = t_interval(item_errors(columns, strata, scale), settings.level)
    else:
        drawn = resample(
            columns,
            strata,
            seed=settings.seed,
            n_draws=settings.draws,
            scale=scale,
            studentised=settings.interval == "studentised",
        )
        if settings.interval == "percentile":
            band = percentile_interval(drawn.errors, drawn.draws, settings.level)
        elif settings.interval == "bca":
            band = bca_interval(drawn.errors, drawn.draws, drawn.influence, settings.level, scale)
        else:
            assert drawn.se_draws is not None
            band = studentised_interval(drawn.errors, drawn.draws, drawn.se_draws, settings.level)
    size = len(names)
    found = []
    for j, name in enumerate(names):
        for pair, (a, b) in enumerate(pairs):
            column = pair * size + j
            reason = groups[a].reasons[j] or groups[b].reasons[j] or band.reason[column]
            found.append(
                Difference(
                    name,
                    groups[a].by,
                    groups[b].by,
                    float(columns[:, column].mean()),
                    float(plugin_columns[:, column].mean()),
                    float(band.lower[column]),
                    float(band.upper[column]),
                    reason,
                )
            )
    return tuple(found)


def _rankings(
    groups: Sequence[Group], debiased: NDArray[np.float64], plugin: NDArray[np.float64], strata: Any
) -> tuple[Ranking, ...]:
    settings, names = groups[0].settings, groups[0].names
    n_groups, _, size = debiased.shape
    columns = np.concatenate([*debiased, *plugin], axis=1)
    reasons = [next((g.reasons[j] for g in groups if g.reasons[j]), "") for j in range(size)]
    if columns.shape[0] < 2 or (strata is not None and (np.bincount(strata) == 1).any()):
        reasons = [reason or "a stratum has a single item: resampling it says nothing" for reason in reasons]
    drawn = resample(columns, strata, seed=settings.seed, n_draws=settings.draws, scale=groups[0].scale).draws
    by_measure = drawn.reshape(len(drawn), 2, n_groups, size)
    tie = 1e-12 * groups[0].scale
    # Several groups can share the top place of a draw; the measures differ when their top places have none in common.
    top = by_measure >= by_measure.max(axis=2, keepdims=True) - tie
    differs = ~(top[:, 0] & top[:, 1]).any(axis=1)
    found = []
    for j, name in enumerate(names):
        by_debiased, by_plugin = (_order(values[:, :, j].mean(1), tie) for values in (debiased, plugin))
        found.append(
            Ranking(
                name,
                tuple(groups[i].by for i in by_debiased),
                tuple(groups[i].by for i in by_plugin),
                float("nan") if reasons[j] else float(differs[:, j].mean()),
                reasons[j],
                tuple(float(debiased[i, :, j].mean()) for i in by_debiased),
                tuple(float(plugin[i, :, j].mean()) for i in by_plugin),
            )
        )
    return tuple(found)


def _order(values: NDArray[np.float64], tie: float) -> list[int]:
    """Positions from the largest value to the smallest, equal ones as they stand; none where a value is undefined."""
    if np.isnan(values).any():
        return []
    # Equal values may differ in their last digit, which must not decide.
    rounded = np.round(values / tie) if tie > 0 else values
    return [int(i) for i in np.argsort(-rounded, kind="stable")]


def _ordering(groups: Sequence[Mapping[str, str]], values: Sequence[float]) -> str:
    if not groups:
        return "–"
    text = label_of(groups[0])
    for k in range(1, min(len(groups), SHOWN)):
        equal = isclose(values[k], values[k - 1], rel_tol=1e-9, abs_tol=1e-12)
        text += f" {'=' if equal else '>'} {label_of(groups[k])}"
    return text + (" > …" if len(groups) > SHOWN else "")


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
