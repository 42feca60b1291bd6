"""Effects on the benchmark as a whole: what a wording does to all items alike, apart from single ones."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._design import Component, Design, standard_components
from secondorder._labels._results import Table, plain, printed, render_table
from secondorder._schema import ITEM
from secondorder._statistics._decomposition import Decomposition, required
from secondorder._statistics._group import Group
from secondorder.core._clusters import cluster_parts, level_errors
from secondorder.core._estimates import plugin
from secondorder.core._intervals import ItemErrors, t_interval
from secondorder.errors import UndefinedError

__all__ = ["BenchmarkEffects", "benchmark_effects"]

Floats = NDArray[np.float64]


@printed
@dataclass(frozen=True, eq=False)
class BenchmarkEffects:
    """Each effect in two parts, whose sum is the mean over items of the items' own effects.

    Attributes
    ----------
    components : tuple of str
        Facets and their interactions.
    estimate, plugin : array, shape (n_components,)
        Benchmark-wide part: what the levels do to all items alike; debiased, and as the usual measure has it.
    se, lower, upper : array, shape (n_components,)
        Over items as a sample, by deletion of one item at a time.
    by_item : array, shape (n_components,)
        The other part: what the levels do to single items, over and above.
    by_item_se : array, shape (n_components,)
    level : float
    n_items : int
    """

    components: tuple[str, ...]
    estimate: Floats
    plugin: Floats
    se: Floats
    lower: Floats
    upper: Floats
    by_item: Floats
    by_item_se: Floats
    level: float
    n_items: int

    def to_dataset(self) -> xr.Dataset:
        """All numbers along ``component``."""
        names = ("estimate", "plugin", "se", "lower", "upper", "by_item", "by_item_se")
        return xr.Dataset(
            {name: ("component", getattr(self, name)) for name in names},
            coords={"component": list(self.components)},
            attrs={"level": self.level, "n_items": self.n_items},
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values: NaN is None."""
        names = ("estimate", "plugin", "se", "lower", "upper", "by_item", "by_item_se")
        return {
            "level": self.level,
            "n_items": self.n_items,
            "components": [
                {"component": component, **{name: plain(float(getattr(self, name)[k])) for name in names}}
                for k, component in enumerate(self.components)
            ],
        }

    def table(self) -> Table:
        """One row per component."""
        columns = ("component", "benchmark-wide", "plug-in", "lower", "upper", "item by item", "sum")
        rows = tuple(
            (
                name,
                float(self.estimate[j]),
                float(self.plugin[j]),
                float(self.lower[j]),
                float(self.upper[j]),
                float(self.by_item[j]),
                float(self.estimate[j] + self.by_item[j]),
            )
            for j, name in enumerate(self.components)
        )
        return Table(
            f"Effects on a benchmark of {self.n_items} items",
            columns,
            rows,
            (
                f"lower, upper: {100 * self.level:g}% band over items (jackknife) of the benchmark-wide part",
                "near 0 the band is too wide: the p value of hypothesis 'benchmark' says whether there is one",
            ),
        )

    def __str__(self) -> str:
        return render_table(self.table())


def benchmark_effects(decomposition: Decomposition, *, level: float | None = None) -> BenchmarkEffects:
    """Split each effect into what it does to the benchmark as a whole and what it does to single items.

    The item is taken as one more, random facet: ``mean item-specific U_T = U_T + U_{item:T}`` holds exactly, in truth
    and for every realised estimate. A prompt that makes the judge stricter on all items has a benchmark-wide effect;
    one that is stricter here and milder there has none.

    Parameters
    ----------
    decomposition : Decomposition
        With one group, complete pairs, and classes that mean the same on all items (``tie`` or a score does;
        *candidate 1* only if candidates come in the same roles).
    level : float, optional
        Default: that of the decomposition.

    Returns
    -------
    BenchmarkEffects

    Raises
    ------
    UndefinedError
        For fewer than three items, other pairs than complete ones, or an undefined decomposition.

    Examples
    --------
    >>> import secondorder as so
    >>> rows = [
    ...     {"item": item, "prompt": prompt, "run": str(r), "verdict": verdict}
    ...     for item, answers in {"1": "ABAA", "2": "ABAA", "3": "BABB"}.items()
    ...     for prompt, calls in {"p": answers[0] * 2, "q": answers[1] * 2}.items() for r, verdict in enumerate(calls)
    ... ]
    >>> cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=["A", "B"])
    >>> found = so.benchmark_effects(so.decompose(cube))
    >>> found.estimate.round(3).tolist(), found.by_item.round(3).tolist()
    ([-0.167], [0.667])
    """
    group = required(decomposition, "benchmark_effects")._only
    _check(group)
    design = _with_item(group)
    effects = [c.name for c in standard_components(group.design.names) if c.name not in ("call", "total")]
    known = {component.name: component for component in standard_components(design.names)}
    components: tuple[Component, ...] = tuple(
        known[name] for name in (*effects, *(f"{ITEM}:{name}" for name in effects))
    )
    cells, kernel = group.calls.cells(), group.calls.kernel
    parts = cluster_parts(cells, design, components, kernel, ITEM)
    found = level_errors(np.asarray(parts.same), np.asarray(parts.distinct), group.scale).errors
    size = len(effects)
    wide = ItemErrors(found.estimate[:size], found.se[:size], found.df[:size], found.reason[:size])
    width = decomposition.settings.level if level is None else level
    band = t_interval(wide, width)
    return BenchmarkEffects(
        tuple(effects),
        wide.estimate,
        np.asarray(plugin(cells, design, components, kernel))[:size],
        wide.se,
        band.lower,
        band.upper,
        found.estimate[size:],
        found.se[size:],
        width,
        len(group.items),
    )


def _with_item(group: Group) -> Design:
    items = len(group.items)
    return Design(
        (ITEM, *group.design.names),
        ((1 / items,) * items, *group.design.weights),
        (math.inf, *group.design.populations),
    )


def _check(group: Group) -> None:
    reason = next(filter(None, group.reasons), "")
    if group.settings.pairs != "complete":
        reason = f"pairs are {group.settings.pairs!r}: effects on the benchmark are known for complete pairs"
    elif len(group.items) < 3:
        reason = f"there are {len(group.items)} items: a jackknife over items needs at least three"
    elif not group.design.names:
        reason = "there is no facet with several levels"
    if reason:
        raise UndefinedError(reason, place="benchmark effects")
