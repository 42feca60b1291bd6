"""Predicted standard errors over designs: the result of planning, and the variance that it stands on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._results import Table, plain, printed, render_table
from secondorder._statistics._settings import Pairs
from secondorder.core._call_variance import PairScheme, Planning, variance_at_depth
from secondorder.errors import InputError

__all__ = ["LEVELS", "REPEATS", "Budget", "Plan"]

Floats = NDArray[np.float64]

REPEATS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
LEVELS = (3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)
SCHEME: dict[Pairs, PairScheme] = {"complete": "complete", "across-repeats": "across", "panel": "panel"}
SHOWN_REPEATS = (2, 4, 8, 16)


@dataclass(frozen=True)
class Plan:
    """A design and what it would give.

    Attributes
    ----------
    goal : str
        What it is the answer to.
    items, repeats : int
    levels : int or None
        Levels of the random facet; None where all facets are fixed.
    calls : int
        ``items * cells * repeats``.
    component : str
    se : float
        Predicted standard error of the component's macroaverage.
    inflation : float
        Plug-in minus truth at that number of repeats.
    """

    goal: str
    items: int
    levels: int | None
    repeats: int
    calls: int
    component: str
    se: float
    inflation: float


@printed
@dataclass(frozen=True, eq=False)
class Budget:
    """Predicted standard errors over designs, and the designs that meet what was asked.

    ``Var = phi between / N + psi level / K + (psi rest + K_0 noise(R)) / (N K)``. The terms with K, the number of
    levels (K_0 in the pilot), exist for a random facet alone; phi and psi are the shares of a list that are not drawn.

    Attributes
    ----------
    components : tuple of str
    cells : int
        Cells per item of the pilot.
    pairs : str
        The estimator that is planned for.
    between : array, shape (n_components,)
        Variance of the items' true values; 0 where the pilot's estimate was negative (see ``notes``).
    alpha, beta, gamma : array, shape (n_components,)
        Mean over items of the coefficients of call variance, ``alpha / R + beta / (R (R - 1)) + gamma / R**2`` for
        complete pairs.
    unit_inflation : array, shape (n_components,)
        Plug-in bias at one call per cell; at R it is this over R.
    population : int or None
        Items of the list that items are drawn from; None: the list is unlimited.
    facet : str or None
        The random facet, whose levels can be planned too.
    levels : int
        Its levels in the pilot; 1 where there is none.
    listed : int or None
        Length of the list that its levels are drawn from.
    level, rest : array, shape (n_components,)
        Variance that a level brings to all items, and to one item alone.
    plans : tuple of Plan
    notes : tuple of str
    """

    components: tuple[str, ...]
    cells: int
    pairs: Pairs
    between: Floats
    alpha: Floats
    beta: Floats
    gamma: Floats
    unit_inflation: Floats
    population: int | None = None
    facet: str | None = None
    levels: int = 1
    listed: int | None = None
    level: Floats | None = None
    rest: Floats | None = None
    plans: tuple[Plan, ...] = ()
    notes: tuple[str, ...] = ()

    def se(self, component: str, *, items: int, repeats: int, levels: int | None = None) -> float:
        """Predicted standard error of a component's macroaverage; NaN where the pilot's call variance is no variance.

        Its coefficients are estimated without bias: their sum can be negative at repeats other than the pilot's.

        Parameters
        ----------
        component : str
        items, repeats : int
        levels : int, optional
            Of the random facet; default: those of the pilot.
        """
        self.check(items, repeats, levels)
        fixed, per_item = self.parts(repeats, levels)
        j = self.index(component)
        share = 1.0 if self.population is None else 1 - items / self.population
        return math.sqrt(float(fixed[j] + (share * self.between[j] + per_item[j]) / items))

    def parts(self, repeats: int, levels: int | None = None) -> tuple[Floats, Floats]:
        """Variance that no number of items lowers, and that which one item brings beside its true value."""
        coefficients = Planning(self.alpha, self.beta, self.gamma)
        noise = np.asarray(variance_at_depth(coefficients, repeats, pairs=SCHEME[self.pairs]))
        rounding = 1e-12 * np.abs(np.stack(coefficients)).sum(0)
        noise = np.where(noise < -rounding, np.nan, np.maximum(noise, 0.0))
        if self.level is None or self.rest is None:
            return np.zeros(len(noise)), noise
        size = self.levels if levels is None else levels
        undrawn = 1.0 if self.listed is None else 1 - size / self.listed
        return undrawn * self.level / size, (undrawn * self.rest + noise * self.levels) / size

    def index(self, component: str) -> int:
        """Position of a component."""
        if component not in self.components:
            raise InputError(
                f"there is no component {component!r}", place="budget", remedy=f"choose {', '.join(self.components)}"
            )
        return self.components.index(component)

    def check(self, items: int, repeats: int, levels: int | None) -> None:
        """Refuse designs that do not exist."""
        wrong = ""
        if items < 1 or repeats < 2:
            wrong = f"{items} items x {repeats} repeats"
        elif self.population is not None and items > self.population:
            wrong = f"{items} items of a list of {self.population}"
        elif self.pairs == "panel" and repeats % 2:
            wrong = f"{repeats} repeats in panels of two"
        elif levels is not None and (self.facet is None or levels < 2 or levels > (self.listed or levels)):
            wrong = f"{levels} levels of {self.facet or 'fixed facets'}"
        if wrong:
            raise InputError(wrong, place="budget", remedy="ask for a design that can be run")

    def calls(self, items: int, repeats: int, levels: int | None = None) -> int:
        """Calls that a design takes."""
        return items * repeats * (self.cells // self.levels) * (levels or self.levels)

    def depths(self) -> tuple[int, ...]:
        """Numbers of repeats that are looked at."""
        return tuple(r for r in REPEATS if self.pairs != "panel" or r % 2 == 0)

    def sizes(self) -> tuple[int | None, ...]:
        """Numbers of levels that are looked at: those of the random facet, or none."""
        if self.facet is None:
            return (None,)
        return tuple(k for k in sorted({*LEVELS, self.levels}) if self.listed is None or k <= self.listed)

    def to_dataset(self, *, items: Sequence[int] = (25, 50, 100, 200, 400, 800)) -> xr.Dataset:
        """Standard errors over a grid of designs (dims ``levels, items, repeats, component``)."""
        counts = [n for n in items if self.population is None or n <= self.population]
        sizes, depths = self.sizes(), self.depths()
        se = [
            [
                [[self.se(name, items=n, repeats=r, levels=k) for name in self.components] for r in depths]
                for n in counts
            ]
            for k in sizes
        ]
        calls = [[[self.calls(n, r, k) for r in depths] for n in counts] for k in sizes]
        data = xr.Dataset(
            {
                "se": (("levels", "items", "repeats", "component"), np.array(se)),
                "calls": (("levels", "items", "repeats"), np.array(calls)),
                "inflation": (("repeats", "component"), self.unit_inflation / np.array(depths)[:, None]),
            },
            coords={"items": counts, "repeats": list(depths), "component": list(self.components)},
            attrs={"pairs": self.pairs, "facet": self.facet or ""},
        )
        return data.isel(levels=0) if self.facet is None else data.assign_coords(levels=list(sizes))

    def tables(self) -> tuple[Table, ...]:
        """The designs asked for, and grids of standard errors."""
        found = []
        if self.plans:
            named = [] if self.facet is None else [self.facet]
            columns = ("goal", "items", *named, "cells", "repeats", "calls", "component", "SE", "plug-in inflation")
            rows = tuple(
                (
                    *(p.goal, p.items, *([p.levels] if named else [])),
                    *(self.calls(1, 1, p.levels), p.repeats, p.calls, p.component, p.se, p.inflation),
                )
                for p in self.plans
            )
            found.append(Table("Designs", columns, rows, (self._meaning, *self.notes)))
        grid = self.to_dataset()
        shown = [r for r in SHOWN_REPEATS if r in grid["repeats"].values]
        # With designs asked for, the grid of what they are about; without, everything.
        asked = [name for name in self.components if any(plan.component == name for plan in self.plans)]
        for name in asked or self.components:
            rows_of = []
            for k in self._shown_sizes():
                part = grid.se.sel(component=name) if k is None else grid.se.sel(component=name, levels=k)
                for n in grid["items"].values[:: 1 if k is None else 2]:
                    values = (float(part.sel(items=n, repeats=r)) for r in shown)
                    rows_of.append((*(() if k is None else (k,)), int(n), *values))
            first = () if self.facet is None else (self.facet,)
            heads = (*first, "items", *(f"R = {r}" for r in shown))
            notes = (self._meaning, *self.notes) if not self.plans and name == self.components[-1] else ()
            found.append(Table(f"SE of {name}", heads, tuple(rows_of), notes))
        return tuple(found)

    @property
    def _meaning(self) -> str:
        drawn = (
            "other items and their calls" if self.facet is None else f"other items, levels of {self.facet} and calls"
        )
        return f"calls = items x cells x repeats, for one judge; cells: combinations of levels; SE covers {drawn}"

    def _shown_sizes(self) -> list[int | None]:
        if self.facet is None:
            return [None]
        own = self.levels if self.levels <= max(LEVELS) else LEVELS[3]
        return [k for k in self.sizes() if k in (own, 2 * own, 4 * own)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, schema ``secondorder.budget/1``."""
        cells = [
            (n, r, k) for k in self.sizes() for n in self.to_dataset()["items"].values.tolist() for r in self.depths()
        ]
        return {
            "schema": "secondorder.budget/1",
            "cells": self.cells,
            "pairs": self.pairs,
            "population": self.population,
            "facet": self.facet,
            "plans": [asdict(plan) for plan in self.plans],
            "grid": [
                {
                    "component": name,
                    "items": n,
                    "levels": k,
                    "repeats": r,
                    "calls": self.calls(n, r, k),
                    "se": plain(self.se(name, items=n, repeats=r, levels=k)),
                }
                for name in self.components
                for n, r, k in cells
            ],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        return "\n\n".join(render_table(table) for table in self.tables())
