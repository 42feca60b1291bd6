"""How many items and repeats to ask for: standard errors over designs, from a pilot or a law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._results import Table, render_table
from secondorder._statistics._decompose import decompose
from secondorder._statistics._decomposition import Decomposition
from secondorder._statistics._group import Group
from secondorder._statistics._law import prepare_law
from secondorder.core._call_variance import Planning, planning, planning_at, variance_at_depth
from secondorder.core._cells import cells_from_codes
from secondorder.core._estimates import at_law, plugin_bias_at
from secondorder.core._precision import double_precision
from secondorder.errors import InputError, UndefinedError

__all__ = ["Budget", "Plan", "budget"]

REPEATS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
FEWEST_ITEMS = 2
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """A design and what it would give.

    Attributes
    ----------
    goal : str
        What it is the answer to.
    items, repeats, calls : int
        ``calls = items * cells * repeats``.
    component : str
    se : float
        Predicted standard error of the component's macroaverage.
    inflation : float
        Plug-in minus truth at that number of repeats.
    """

    goal: str
    items: int
    repeats: int
    calls: int
    component: str
    se: float
    inflation: float


@dataclass(frozen=True, eq=False)
class Budget:
    """Predicted standard errors over designs, and the designs that meet what was asked.

    Attributes
    ----------
    components : tuple of str
    cells : int
        Cells per item.
    between : array, shape (n_components,)
        Variance of the items' true values; 0 where the pilot's estimate was negative (see ``notes``).
    alpha, beta, gamma : array, shape (n_components,)
        Mean over items of the coefficients of call variance, ``alpha / R + beta / (R (R - 1)) + gamma / R**2``.
    unit_inflation : array, shape (n_components,)
        Plug-in bias at one call per cell; at R it is this over R.
    population : int or None
        Items of the list that the pilot's items are a sample of; None: the list is unlimited.
    plans : tuple of Plan
    notes : tuple of str
    """

    components: tuple[str, ...]
    cells: int
    between: Floats
    alpha: Floats
    beta: Floats
    gamma: Floats
    unit_inflation: Floats
    population: int | None = None
    plans: tuple[Plan, ...] = ()
    notes: tuple[str, ...] = ()

    def se(self, component: str, *, items: int, repeats: int) -> float:
        """Predicted standard error of a component's macroaverage with `items` items and `repeats` calls a cell."""
        j = self._index(component)
        return float(self._variance(items, repeats)[j] ** 0.5)

    def _index(self, component: str) -> int:
        if component not in self.components:
            raise InputError(
                f"there is no component {component!r}", place="budget", remedy=f"choose {', '.join(self.components)}"
            )
        return self.components.index(component)

    def _variance(self, items: int, repeats: int) -> Floats:
        noise = variance_at_depth(Planning(self.alpha, self.beta, self.gamma), repeats)
        share = 1.0 if self.population is None else 1 - items / self.population
        return np.asarray(share * self.between + noise) / items

    def to_dataset(self, *, items: Sequence[int] = (25, 50, 100, 200, 400, 800)) -> xr.Dataset:
        """Standard errors over a grid of designs (dims ``items, repeats, component``)."""
        sizes = [n for n in items if self.population is None or n <= self.population]
        values = [[np.sqrt(self._variance(n, r)) for r in REPEATS] for n in sizes]
        return xr.Dataset(
            {
                "se": (("items", "repeats", "component"), np.array(values)),
                "calls": (("items", "repeats"), np.outer(sizes, REPEATS) * self.cells),
                "inflation": (("repeats", "component"), self.unit_inflation / np.array(REPEATS)[:, None]),
            },
            coords={"items": list(sizes), "repeats": list(REPEATS), "component": list(self.components)},
        )

    def tables(self) -> tuple[Table, ...]:
        """The designs asked for, and a grid of standard errors."""
        found = []
        if self.plans:
            columns = ("goal", "items", "repeats", "calls", "component", "SE", "plug-in inflation")
            rows = tuple((p.goal, p.items, p.repeats, p.calls, p.component, p.se, p.inflation) for p in self.plans)
            found.append(Table("Designs", columns, rows))
        grid = self.to_dataset()
        shown = [r for r in (2, 4, 8, 16) if r in REPEATS]
        for name in self.components:
            rows_of = tuple(
                (int(n), *(float(grid.se.sel(items=n, repeats=r, component=name)) for r in shown))
                for n in grid["items"].values
            )
            found.append(Table(f"SE of {name}", ("items", *(f"R = {r}" for r in shown)), rows_of))
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, schema ``secondorder.budget/1``."""
        grid = self.to_dataset()
        return {
            "schema": "secondorder.budget/1",
            "cells": self.cells,
            "population": self.population,
            "plans": [asdict(plan) for plan in self.plans],
            "grid": [
                {
                    "component": name,
                    "items": int(n),
                    "repeats": int(r),
                    "calls": int(n) * int(r) * self.cells,
                    "se": float(grid.se.sel(items=n, repeats=r, component=name)),
                }
                for name in self.components
                for n in grid["items"].values
                for r in grid["repeats"].values
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        tables = self.tables()
        return "\n\n".join([*(render_table(table) for table in tables), *self.notes])


def budget(
    pilot: xr.Dataset | Decomposition | xr.DataArray,
    *,
    calls: int | None = None,
    se: Mapping[str, float] | None = None,
    power: Mapping[str, tuple[float, float]] | None = None,
    component: str | None = None,
    population: int | None = None,
    alpha: float = 0.05,
    **declaration: Any,
) -> Budget:
    """Numbers of items and repeats to ask for.

    With the facets fixed, the variance of a macroaverage is ``(phi * between + noise(R)) / N``: `between` is the
    variance of the items' true values, ``noise(R)`` the mean call variance of an item, known exactly at every R from
    three coefficients, and ``phi`` is 1 for items from an unlimited source and ``1 - N / N_list`` for items from a
    list.

    Parameters
    ----------
    pilot : Dataset, Decomposition or DataArray
        A cube with at least four calls in every cell, its decomposition, or known laws
        (as for :func:`secondorder.decompose_law`).
    calls : int, optional
        Budget of calls: the design of least standard error of `component` within it.
    se : mapping of component to float, optional
        Wanted standard errors: the design with the fewest calls that reaches each.
    power : mapping of component to (effect, power), optional
        The design with the fewest calls in which a one-sided test of level `alpha` finds a component of that size with
        that probability (normal approximation).
    component : str, optional
        Component that `calls` is spent on; default: the first facet.
    population : int, optional
        Length of the list that items are drawn from.
    alpha : float
        Level of the test of `power`.
    **declaration
        Facets, kernel and so on, as for :func:`secondorder.decompose`.

    Returns
    -------
    Budget

    Raises
    ------
    UndefinedError
        When the pilot has fewer than four calls in a cell: call variance has no unbiased estimate there.
    InputError
        When nothing can reach what is asked.

    Examples
    --------
    >>> import xarray as xr
    >>> law = xr.DataArray(
    ...     [[[0.9, 0.1], [0.7, 0.3]], [[0.6, 0.4], [0.5, 0.5]]],
    ...     dims=("item", "prompt", "class"), coords={"class": ["A", "B"]},
    ... )
    >>> plan = budget(law, se={"prompt": 0.01}).plans[0]
    >>> plan.items, plan.repeats, round(plan.se, 4)
    (5, 32, 0.0096)
    """
    base = _from_law(pilot, declaration) if isinstance(pilot, xr.DataArray) else _from_calls(pilot, declaration)
    base = replace(base, population=population)
    first = component or next(name for name in base.components if name not in ("call", "total"))
    base._index(first)
    plans = []
    if calls is not None:
        plans.append(_best_within(base, calls, first))
    for name, wanted in (se or {}).items():
        plans.append(_cheapest(base, name, wanted, f"SE {wanted:g}"))
    if power:
        from scipy.special import ndtri

        for name, (effect, chance) in power.items():
            wanted = effect / float(ndtri(1 - alpha) + ndtri(chance))
            plans.append(_cheapest(base, name, wanted, f"power {chance:g} at {effect:g}"))
    return replace(base, plans=tuple(plans))


def _from_law(law: xr.DataArray, declaration: Mapping[str, Any]) -> Budget:
    array, design, components, matrix, items = prepare_law(law, **declaration)
    if items is None:
        array = array[None]
    coefficients = Planning(*(np.asarray(part).mean(0) for part in planning_at(array, design, components, matrix)))
    truth = np.asarray(at_law(array, design, components, matrix))
    between = truth.var(0, ddof=1) if len(truth) > 1 else np.zeros(truth.shape[1])
    inflation = np.asarray(plugin_bias_at(array, 1.0, design, components, matrix)).mean(0)
    names = tuple(component.name for component in components)
    return Budget(names, design.n_cells, between, *coefficients, inflation)


def _from_calls(pilot: xr.Dataset | Decomposition, declaration: Mapping[str, Any]) -> Budget:
    result = pilot if isinstance(pilot, Decomposition) else decompose(pilot, **declaration)
    if len(result.groups) != 1:
        raise InputError(f"the pilot has {len(result.groups)} groups", place="budget", remedy="select one judge first")
    group: Group = result.groups[0]
    if not group.design.all_fixed:
        raise UndefinedError(
            "a facet is random: its part of the variance does not fall with more items",
            place="budget",
            remedy="declare its levels as fixed; the error over prompts says what more of them would give",
        )
    if any(group.reasons) or group.repeats[0] < 4:
        raise UndefinedError(
            f"a cell of the pilot has {group.repeats[0]} calls",
            place="budget",
            remedy="take a pilot with 4 or more repeats: below that call variance has no unbiased estimate",
        )
    with double_precision():
        cells = cells_from_codes(group.calls.codes, len(group.calls.kernel))
    raw = planning(cells, group.design, group.components, group.calls.kernel)
    coefficients = Planning(*(np.asarray(part).mean(0) for part in raw))
    depth = group.repeats[0]
    spread = group.values.var(0, ddof=1) if len(group.items) > 1 else np.zeros(len(group.components))
    between = spread - variance_at_depth(coefficients, depth)
    negative = [name for name, value in zip(group.names, between, strict=True) if value < 0]
    notes: tuple[str, ...] = (
        (f"variance between items estimated below zero and taken as 0 for {', '.join(negative)}",) if negative else ()
    )
    inflation = (group.plugin_values - group.values).mean(0) * depth
    if group.repeats[0] < group.repeats[1]:
        notes += (f"cells of the pilot hold {depth} to {group.repeats[1]} calls; planned as if all held {depth}",)
    return Budget(group.names, group.design.n_cells, np.maximum(between, 0), *coefficients, inflation, notes=notes)


def _best_within(base: Budget, calls: int, component: str) -> Plan:
    j = base._index(component)
    best: tuple[float, int, int] | None = None
    for repeats in REPEATS:
        items = calls // (base.cells * repeats)
        if base.population is not None:
            items = min(items, base.population)
        if items < FEWEST_ITEMS:
            continue
        variance = float(base._variance(items, repeats)[j])
        if best is None or variance < best[0]:
            best = (variance, items, repeats)
    if best is None:
        raise InputError(
            f"{calls} calls do not reach {FEWEST_ITEMS} items x {base.cells} cells x 2 repeats",
            place="--calls",
            remedy=f"ask for at least {FEWEST_ITEMS * base.cells * 2}",
        )
    return _plan(base, f"{calls} calls", component, best[1], best[2])


def _cheapest(base: Budget, component: str, wanted: float, goal: str) -> Plan:
    if not wanted > 0:
        raise InputError(f"{wanted:g} is not above 0", place=f"budget {component}", remedy="ask for a positive number")
    j = base._index(component)
    found = []
    for repeats in REPEATS:
        noise = float(variance_at_depth(Planning(base.alpha[j], base.beta[j], base.gamma[j]), repeats))
        between = float(base.between[j])
        # (between + noise) / N, or with a list of M items between (1/N - 1/M) + noise / N, solved for N.
        floor = 0.0 if base.population is None else between / base.population
        items = max(FEWEST_ITEMS, int(np.ceil((between + noise) / (wanted**2 + floor) - 1e-9)))
        if base.population is None or items <= base.population:
            found.append((items * base.cells * repeats, items, repeats))
    if not found:
        raise InputError(
            f"no design reaches SE {wanted:.4g} of {component} with {base.population} items",
            place="budget",
            remedy="ask for less, or more repeats than 32",
        )
    _, items, repeats = min(found)
    return _plan(base, goal, component, items, repeats)


def _plan(base: Budget, goal: str, component: str, items: int, repeats: int) -> Plan:
    j = base._index(component)
    return Plan(
        goal, items, repeats, items * base.cells * repeats, component,
        base.se(component, items=items, repeats=repeats), float(base.unit_inflation[j]) / repeats,
    )  # fmt: skip
