"""A mechanism as arrays: what is drawn, how replicates are analysed, and what is true of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._design import Component, Design, Facet, standard_components
from secondorder._schema import ITEM
from secondorder.core._montecarlo import CallCoupling, Sampling, Source
from secondorder.errors import DesignError, SpecError
from secondorder.simulate._law import (
    as_law,
    class_names,
    closed_form_bias,
    facet_names,
    item_weights,
    kernel_matrix,
    true_components,
)
from secondorder.simulate._mechanism import Mechanism

__all__ = ["Prepared", "prepare"]

Matrix = NDArray[np.float64]


class Prepared(NamedTuple):
    """A mechanism as arrays and static shapes.

    Attributes
    ----------
    law, drift_to : array, shape (rows, C)
        Listed cells in C order of (item, facets...).
    n : array of int, shape (rows,)
    weights : array, shape (listed items,)
        Within each group of items.
    strata : array of int, shape (n_items,)
    design, components, kernel
        What estimators analyse a replicate with.
    names : tuple of str
        All estimands: components, then those whose truth the mechanism states.
    truth, plugin_bias : array, shape (E,)
        ``plugin_bias`` is NaN where no closed form applies.
    """

    law: Matrix
    drift_to: Matrix | None
    n: NDArray[np.int64]
    repeats: int
    weights: Matrix
    strata: NDArray[np.int64]
    sampling: Sampling
    coupling: CallCoupling
    design: Design
    components: tuple[Component, ...]
    kernel: Matrix
    names: tuple[str, ...]
    truth: Matrix
    plugin_bias: Matrix


def prepare(mechanism: Mechanism, estimands: Sequence[str | Component] = ()) -> Prepared:
    """Check a mechanism and turn it into arrays; compute the truth of every estimand.

    Parameters
    ----------
    mechanism : Mechanism
    estimands : sequence of str or Component
        Names of standard components or of entries of ``mechanism.truth``, or components of one's own; default: all
        standard components and every stated truth.

    Raises
    ------
    SpecError
        Naming the contradiction.
    """
    law = as_law(mechanism.law)
    names = facet_names(law)
    facets = mechanism.declared()
    sampling_levels, design, census = _levels(mechanism, law, facets)
    n = _calls(mechanism.repeats, law, design)
    components, stated = _estimands(estimands, names, mechanism.truth)
    kernel = kernel_matrix(mechanism.kernel, class_names(law))
    groups, weights, strata = _items(mechanism.items, law)
    sampling = Sampling(groups, law.sizes[ITEM], sampling_levels)
    coupling = CallCoupling()
    if mechanism.dependence is not None:
        coupling = CallCoupling(mechanism.dependence.kind, float(mechanism.dependence.share))
    end = None if mechanism.drift_to is None else as_law(mechanism.drift_to)
    if end is not None and (end.shape != law.shape or end.dims != law.dims):
        raise SpecError("drift_to has another shape than the law", place="mechanism", remedy="give the same dimensions")
    marginal = law.values if end is None else _time_average(law.values, end.values, n)
    shares = _expected_shares(groups, weights, law.sizes[ITEM])
    true = shares @ true_components(marginal, census, components, kernel)
    bias = np.full(len(components), np.nan)
    independent = mechanism.dependence is None and end is None
    if independent and all(source == "fixed" for _, _, source in sampling_levels):
        bias = shares @ closed_form_bias(law.values, n, design, components, kernel)
    classes = law.shape[-1]
    return Prepared(
        law.values.reshape(-1, classes),
        None if end is None else end.values.reshape(-1, classes),
        np.broadcast_to(n, law.shape[:-1]).reshape(-1),
        int(n.max()),
        weights,
        strata,
        sampling,
        coupling,
        design,
        components,
        kernel,
        (*(component.name for component in components), *stated),
        np.concatenate([true, [float(mechanism.truth[name]) for name in stated]]),
        np.concatenate([bias, np.full(len(stated), np.nan)]),
    )


def _levels(
    mechanism: Mechanism, law: xr.DataArray, facets: Sequence[Facet]
) -> tuple[tuple[tuple[int, int, Source], ...], Design, Design]:
    # How levels are drawn, the design of a replicate, and the census of all listed levels, where the truth is taken.
    drawn: list[tuple[int, int, Source]] = []
    replicate_levels: list[list[str]] = []
    census: list[Facet] = []
    for facet in facets:
        listed = [str(level) for level in law[facet.name].values]
        number = mechanism.levels.get(facet.name)
        if facet.kind == "fixed":
            if number is not None:
                raise SpecError(
                    f"{number} levels are drawn of a fixed facet",
                    place=f"mechanism, facet {facet.name}",
                    remedy="declare Facet(name, kind='random'), or cut the law to the levels that are meant",
                )
            drawn.append((len(listed), len(listed), "fixed"))
            replicate_levels.append(listed)
            census.append(facet)
            continue
        if number is None:
            raise SpecError(
                "it is random, but not said how many levels a replicate draws",
                place=f"mechanism, facet {facet.name}",
                remedy=f"add levels={{{facet.name!r}: ...}}",
            )
        if facet.population is not None and facet.population != len(listed):
            raise SpecError(
                f"population {facet.population}, but the law lists {len(listed)} levels",
                place=f"mechanism, facet {facet.name}",
                remedy="list the whole population in the law",
            )
        drawn.append((number, len(listed), "policy" if facet.population is None else "list"))
        replicate_levels.append([str(level + 1) for level in range(number)])
        census.append(Facet(facet.name))
    listed_levels = [[str(level) for level in law[facet.name].values] for facet in facets]
    return (
        tuple(drawn),
        Design.from_facets(facets, replicate_levels),
        Design.from_facets(census, listed_levels),
    )


def _calls(repeats: Any, law: xr.DataArray, design: Design) -> NDArray[np.int64]:
    given = np.asarray(repeats)
    if not np.issubdtype(given.dtype, np.integer) or given.size == 0 or given.min() < 1:
        raise SpecError(f"repeats {repeats!r}", place="mechanism", remedy="give whole numbers of at least 1")
    listed = law.shape[1:-1]
    if given.ndim and (given.shape != listed or listed != design.shape):
        raise SpecError(
            f"repeats has shape {given.shape}",
            place="mechanism",
            remedy=f"give one number, or one per cell of fixed facets: shape {listed}",
        )
    return np.broadcast_to(given.astype(np.int64), listed)


def _estimands(
    estimands: Sequence[str | Component], names: tuple[str, ...], truth: Mapping[str, float]
) -> tuple[tuple[Component, ...], tuple[str, ...]]:
    standard = {component.name: component for component in standard_components(names)}
    if not estimands:
        return tuple(standard.values()), tuple(truth)
    components = []
    stated = []
    for entry in estimands:
        if isinstance(entry, Component):
            components.append(entry)
        elif entry in standard:
            components.append(standard[entry])
        elif entry in truth:
            stated.append(entry)
        else:
            raise SpecError(
                f"estimand {entry!r} is no component and has no stated truth",
                place="study",
                remedy=f"components: {', '.join(standard)}; or add it to the mechanism's truth",
            )
    return tuple(components), tuple(stated)


def _items(
    items: int | Mapping[str, int] | None, law: xr.DataArray
) -> tuple[tuple[tuple[int, int, int], ...], Matrix, NDArray[np.int64]]:
    listed = law.sizes[ITEM]
    weights = item_weights(law)
    if items is None:
        if np.ptp(weights) > 0:
            raise SpecError(
                "the law's items have unequal weights, but no items are drawn",
                place="mechanism",
                remedy="say items=N: how many a replicate draws by these weights",
            )
        strata = np.zeros(listed, dtype=np.int64)
        if "stratum" in law.coords:
            strata = np.unique(law["stratum"].values, return_inverse=True)[1].astype(np.int64)
        return (), weights, strata
    if isinstance(items, int):
        if items < 1:
            raise SpecError(f"{items} items", place="mechanism", remedy="give at least 1")
        return ((items, 0, listed),), weights, np.zeros(items, dtype=np.int64)
    if "stratum" not in law.coords:
        raise SpecError("the law has no strata", place="mechanism items", remedy="add the coordinate 'stratum'")
    labels = law["stratum"].values.astype(str)
    groups = []
    adjusted = np.zeros(listed)
    for stratum, number in items.items():
        where = np.flatnonzero(labels == stratum)
        if not len(where) or where[-1] - where[0] + 1 != len(where):
            raise SpecError(
                f"stratum {stratum!r} has {len(where)} listed items, or they do not stand together",
                place="mechanism items",
                remedy=f"strata of the law: {', '.join(dict.fromkeys(labels))}; list each in one run",
            )
        adjusted[where] = weights[where] / weights[where].sum()
        groups.append((int(number), int(where[0]), len(where)))
    strata = np.repeat(np.arange(len(groups)), [number for number, _, _ in groups])
    return tuple(groups), adjusted, strata


def _expected_shares(groups: tuple[tuple[int, int, int], ...], weights: Matrix, listed: int) -> Matrix:
    """Expected share of each listed item in the equal-item mean of a replicate."""
    if not groups:
        return np.full(listed, 1 / listed)
    total = sum(number for number, _, _ in groups)
    result = np.zeros(listed)
    for number, first, size in groups:
        result[first : first + size] += weights[first : first + size] * number / total
    return result


def _time_average(start: Matrix, end: Matrix, n: NDArray[np.int64]) -> Matrix:
    repeats = int(n.max())
    if (n != repeats).any():
        raise DesignError("a drifting law needs the same number of calls in every cell", place="mechanism")
    # Equal steps from start to end: the average is half-way, except for a single repeat, which is the start.
    return start if repeats == 1 else (start + end) / 2
