"""How many items, levels and repeats to ask for: from a pilot or a law to a budget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._design import Component, Design
from secondorder._statistics._budget import Budget, Plan
from secondorder._statistics._checked import finite, whole
from secondorder._statistics._comparable import one_of_groups
from secondorder._statistics._decompose import decompose
from secondorder._statistics._decomposition import Decomposition
from secondorder._statistics._errors import item_call_variance
from secondorder._statistics._group import Group
from secondorder._statistics._law import item_weights, prepare_law
from secondorder.core._call_variance import Planning, planning, planning_at
from secondorder.core._cells import Cells
from secondorder.core._clusters import cluster_parts, two_way_errors
from secondorder.core._estimates import at_law, plugin_bias_at
from secondorder.errors import InputError, UndefinedError

__all__ = ["budget"]

Floats = NDArray[np.float64]

MOST_CALLS = 10**12
ROUNDING = 1e-12


def budget(
    pilot: xr.Dataset | Decomposition | xr.DataArray,
    *,
    calls: int | None = None,
    se: Mapping[str, float] | None = None,
    power: Mapping[str, tuple[float, float]] | None = None,
    component: str | None = None,
    population: int | None = None,
    least_items: int = 10,
    alpha: float = 0.05,
    **declaration: Any,
) -> Budget:
    """Numbers of items, repeats and, for a random facet, levels to ask for.

    With the facets fixed, the variance of a macroaverage is ``(phi * between + noise(R)) / N``: `between` is the
    variance of the items' true values, ``noise(R)`` the mean call variance of an item, known exactly at every R from
    three coefficients, and ``phi`` is 1 for items from an unlimited source and ``1 - N / N_list`` for items from a
    list. The number of levels of a fixed facet is no matter of planning: it is part of what is asked.

    With one random facet, whose K levels serve all items, a part of the variance falls with K alone. Its three
    variances (items, levels, both) are those of the two-way standard error, and the prediction is of first order.

    Parameters
    ----------
    pilot : Dataset, Decomposition or DataArray
        A cube with at least four calls in every cell, its decomposition, or known laws
        (as for :func:`secondorder.decompose_law`). Items of laws are a sample of the items to come, and with a
        coordinate ``weight`` their whole population, drawn by weight.
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
    least_items : int
        No fewer items than these: bands over a handful of items do not hold.
    alpha : float
        Level of the test of `power`.
    **declaration
        Facets, kernel, pairs and so on, as for :func:`secondorder.decompose`.

    Returns
    -------
    Budget

    Raises
    ------
    UndefinedError
        When the pilot has fewer than four calls in a cell, where call variance has no unbiased estimate.
    InputError
        When nothing can reach what is asked, or `se` or `power` is not a mapping.

    Examples
    --------
    >>> import xarray as xr
    >>> law = xr.DataArray(
    ...     [[[0.9, 0.1], [0.7, 0.3]], [[0.6, 0.4], [0.5, 0.5]]],
    ...     dims=("item", "prompt", "class"), coords={"class": ["A", "B"]},
    ... )
    >>> plan = budget(law, se={"prompt": 0.01}).plans[0]
    >>> plan.items, plan.repeats, round(plan.se, 4)
    (10, 16, 0.0099)
    """
    _check_goals(calls, se or {}, power or {}, population, least_items, alpha)
    base = _from_law(pilot, declaration) if isinstance(pilot, xr.DataArray) else _from_calls(pilot, declaration)
    base = replace(base, population=population)
    first = component or next(name for name in base.components if name not in ("call", "total"))
    base.index(first)
    plans = []
    if calls is not None:
        plans.append(_best_within(base, calls, first, least_items))
    for name, wanted in (se or {}).items():
        plans.append(_cheapest(base, name, wanted, f"SE {wanted:g}", least_items))
    if power:
        from scipy.special import ndtri

        for name, (effect, chance) in power.items():
            wanted = effect / float(ndtri(1 - alpha) + ndtri(chance))
            plans.append(_cheapest(base, name, wanted, f"power {chance:g} at {effect:g}", least_items))
    return replace(base, plans=tuple(plans))


def _check_goals(
    calls: int | None,
    se: Mapping[str, float],
    power: Mapping[str, tuple[float, float]],
    population: int | None,
    least_items: int,
    alpha: float,
) -> None:
    """Refuse goals that no design can have, before the pilot is looked at."""
    for place, goals, example in (("se", se, "0.01"), ("power", power, "(0.02, 0.8)")):
        if not isinstance(goals, Mapping):
            raise InputError(
                f"{goals!r} names no component",
                place=place,
                remedy=f'give a mapping from components to what is wanted, such as {{"call": {example}}}',
            )
    whole(least_items, "least_items", least=2, remedy="ask for two items or more")
    if calls is not None:
        whole(calls, "calls", least=1, most=MOST_CALLS)
    if population is not None:
        whole(population, "population", least=least_items, remedy="it is the length of a list with least_items=")
    if not 0 < alpha < 1:
        raise InputError(f"{alpha} is not between 0 and 1", place="alpha", remedy="say for instance 0.05")
    for name, wanted in se.items():
        finite(wanted, f"se[{name!r}]", positive=True)
    for name, goal in power.items():
        try:
            effect, chance = goal
        except (TypeError, ValueError):
            raise InputError(
                f"{goal!r} is not an effect and a power", place=f"power[{name!r}]", remedy="give (0.02, 0.8)"
            ) from None
        if not (0 < effect < math.inf and alpha < chance < 1):
            raise InputError(
                f"power {chance:g} at an effect of {effect:g} and level {alpha:g}",
                place=f"power[{name!r}]",
                remedy="give an effect above 0, and a power between the level and 1",
            )


# -- variances, from a law or from a pilot ----------------------------------------------------------------------------


def _from_law(law: xr.DataArray, declaration: Mapping[str, Any]) -> Budget:
    given = dict(declaration)
    pairs = given.pop("pairs", "complete")
    array, design, components, matrix, items = prepare_law(law, **given)
    random = _random_facet(design, pairs)
    array = array[None] if items is None else array
    weights = None if items is None else item_weights(law)
    if weights is not None and random is not None:
        raise InputError(
            f"the items have weights and facet {random!r} is random",
            place="budget",
            remedy="drop the weights (law.drop_vars('weight')), or declare the facet fixed",
        )
    truth = np.asarray(at_law(array, design, components, matrix))
    base = Budget(
        tuple(component.name for component in components),
        design.n_cells,
        pairs,
        _between(truth, weights),
        *_means(planning_at(array, design, components, matrix), weights),
        np.average(np.asarray(plugin_bias_at(array, 1.0, design, components, matrix)), axis=0, weights=weights),
        notes=() if len(truth) > 1 else ("one item: nothing is known of the variance between items, taken as 0",),
    )
    if random is None:
        return base
    # A law is what endless calls would show: no pair of a call with itself.
    endless = Cells(np.full(array.shape[:-1], np.inf), array, ((array @ matrix) * array).sum(-1))
    return _with_levels(base, endless, design, components, matrix, random, 0.0)


def _between(truth: Floats, weights: Floats | None) -> Floats:
    """Variance between items: of a sample, or of a population with weights."""
    if weights is not None:
        found: Floats = weights @ (truth - weights @ truth) ** 2
        return found
    return truth.var(0, ddof=1) if len(truth) > 1 else np.zeros(truth.shape[1])


def _means(coefficients: Planning, weights: Floats | None = None) -> tuple[Floats, Floats, Floats]:
    alpha, beta, gamma = (np.average(np.asarray(part), axis=0, weights=weights) for part in coefficients)
    return alpha, beta, gamma


def _from_calls(pilot: xr.Dataset | Decomposition, declaration: Mapping[str, Any]) -> Budget:
    result = pilot if isinstance(pilot, Decomposition) else decompose(pilot, **declaration)
    if len(result.groups) != 1:
        raise InputError(
            f"the pilot has {len(result.groups)} groups",
            place="budget",
            remedy=one_of_groups(result.groups),
        )
    group: Group = result.groups[0]
    random = _random_facet(group.design, group.settings.pairs)
    if any(group.reasons) or group.repeats[0] < 4 or group.calls.soft is not None:
        found = "soft verdicts" if group.calls.soft is not None else f"{group.repeats[0]} calls in a cell"
        raise UndefinedError(
            f"the pilot has {found}",
            place="budget",
            remedy="take a pilot of hard verdicts with 4 or more repeats: below that call variance has no unbiased "
            "estimate",
        )
    cells = group.calls.cells()
    raw = planning(cells, group.design, group.components, group.calls.kernel)
    least, most = group.repeats
    noise = item_call_variance(group).mean(0)
    spread = group.values.var(0, ddof=1) if len(group.items) > 1 else noise
    between, notes = _not_negative(spread - noise, group.scale, group.names, "between items")
    if len(group.items) == 1:
        notes += ("one item: nothing is known of the variance between items, taken as 0",)
    negative = [
        name
        for name, part in zip(group.names, np.stack(_means(raw)).min(0), strict=True)
        if part < -ROUNDING * group.scale**2
    ]
    if negative:
        notes += (
            f"the pilot cannot tell a part of the call variance from zero for {', '.join(negative)} (its unbiased "
            "estimate is negative): standard errors far from the pilot's own repeats are not to be trusted there, and "
            "there is none (–) where the whole variance would be negative",
        )
    if least < most:
        notes += (f"cells of the pilot hold {least} to {most} calls; planned for the same number in every cell",)
    harmonic = 1 / float((1 / np.asarray(cells.n, dtype=np.float64)).mean())
    inflation = (group.plugin_values - group.values).mean(0) * harmonic
    base = Budget(
        group.names, group.design.n_cells, group.settings.pairs, between, *_means(raw), inflation, notes=notes
    )
    if random is None:
        return base
    return _with_levels(base, cells, group.design, group.components, group.calls.kernel, random, noise)


def _random_facet(design: Design, pairs: str) -> str | None:
    random = [name for name, size in zip(design.names, design.populations, strict=True) if size is not None]
    if len(random) > 1 or (random and pairs != "complete"):
        raise UndefinedError(
            f"{' and '.join(random)} are random" if len(random) > 1 else f"pairs are {pairs!r}",
            place="budget",
            remedy="planning with levels is known for one random facet and complete pairs",
        )
    return random[0] if random else None


def _with_levels(
    base: Budget,
    cells: Cells,
    design: Design,
    components: tuple[Component, ...],
    kernel: Floats,
    facet: str,
    noise: Floats | float,
) -> Budget:
    """The variances of items, of the levels of the one random facet, and of both together.

    ``V_I = between / N + v``, ``V_P = level / K + v``, ``v = (rest + K noise) / (N K)`` in expectation.
    """
    levels = design.shape[design.names.index(facet)]
    if len(cells.mean) < 2:
        raise UndefinedError("one item", place="budget", remedy="planning with a random facet needs two items")
    parts = cluster_parts(cells, design, components, kernel, facet)
    scale = float(kernel.max())
    found = two_way_errors(np.asarray(parts.same), np.asarray(parts.distinct), scale=scale)
    items = len(cells.mean)
    both = found.interaction
    between, first = _not_negative(items * (found.item - both), scale, base.components, "between items")
    level, second = _not_negative(levels * (found.level - both), scale, base.components, f"between levels of {facet}")
    rest, third = _not_negative(
        items * levels * both - levels * np.asarray(noise), scale, base.components, f"of items by {facet}"
    )
    listed = design.populations[design.names.index(facet)]
    return replace(
        base,
        between=between,
        facet=facet,
        levels=levels,
        listed=None if listed is None or math.isinf(listed) else int(listed),
        level=level,
        rest=rest,
        notes=(*(note for note in base.notes if "between items" not in note), *first, *second, *third),
    )


def _not_negative(values: Floats, scale: float, names: tuple[str, ...], what: str) -> tuple[Floats, tuple[str, ...]]:
    # Variances are of the size of the largest disagreement squared.
    below = [name for name, value in zip(names, values, strict=True) if value < -ROUNDING * scale**2]
    note = f"variance {what} estimated below zero and taken as 0 for {', '.join(below)}"
    return np.maximum(values, 0.0), (note,) if below else ()


# -- designs ----------------------------------------------------------------------------------------------------------


def _designs(base: Budget) -> Iterator[tuple[int | None, int]]:
    for levels in base.sizes():
        for repeats in base.depths():
            yield levels, repeats


def _best_within(base: Budget, calls: int, component: str, fewest: int) -> Plan:
    best: tuple[float, int, int | None, int] | None = None
    reached = False
    for levels, repeats in _designs(base):
        items = calls // base.calls(1, repeats, levels)
        if base.population is not None:
            items = min(items, base.population)
        if items < fewest:
            continue
        reached = True
        predicted = base.se(component, items=items, repeats=repeats, levels=levels)
        if not math.isnan(predicted) and (best is None or predicted < best[0]):
            best = (predicted, items, levels, repeats)
    if best is None and reached:
        raise _untold(component)
    if best is None:
        least = fewest * min(base.calls(1, repeats, levels) for levels, repeats in _designs(base))
        raise InputError(
            f"{calls} calls do not reach {fewest} items", place="calls", remedy=f"ask for at least {least}"
        )
    return _plan(base, f"{calls} calls", component, *best[1:])


def _cheapest(base: Budget, component: str, wanted: float, goal: str, fewest: int) -> Plan:
    j = base.index(component)
    between = float(base.between[j])
    # With a list of M items, between (1/N - 1/M) + per_item / N has to meet the target; solved for N.
    floor = 0.0 if base.population is None else between / base.population
    found, told = [], False
    for levels, repeats in _designs(base):
        fixed, per_item = (float(part[j]) for part in base.parts(repeats, levels))
        if math.isnan(per_item):
            continue
        told = True
        room = wanted**2 - fixed + floor
        if room <= 0:
            continue
        items = max(fewest, math.ceil((between + per_item) / room - 1e-9))
        if base.population is None or items <= base.population:
            found.append((base.calls(items, repeats, levels), items, levels, repeats))
    if not told:
        raise _untold(component)
    if not found:
        limits = [] if base.population is None else [f"{base.population} items"]
        limits += [] if base.facet is None else [f"{max(k or 0 for k in base.sizes())} levels of {base.facet}"]
        raise InputError(
            f"no design reaches SE {wanted:.4g} of {component}{' with ' if limits else ''}{' and '.join(limits)}",
            place="budget",
            remedy="ask for less, or take more items or levels",
        )
    return _plan(base, goal, component, *min(found, key=lambda plan: plan[0])[1:])


def _untold(component: str) -> UndefinedError:
    return UndefinedError(
        f"the pilot's estimate of the call variance of {component} is negative at every number of repeats",
        place="budget",
        remedy="take a pilot with more items or more repeats",
    )


def _plan(base: Budget, goal: str, component: str, items: int, levels: int | None, repeats: int) -> Plan:
    return Plan(
        goal, items, levels, repeats, base.calls(items, repeats, levels), component,
        base.se(component, items=items, repeats=repeats, levels=levels),
        float(base.unit_inflation[base.index(component)]) / repeats,
    )  # fmt: skip
