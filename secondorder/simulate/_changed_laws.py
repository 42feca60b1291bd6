"""Laws made from other laws, and the components that they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._schema import BOTTOM, CLASS, ITEM
from secondorder.errors import DesignError
from secondorder.simulate._law import (
    FacetLevels,
    Kernel,
    as_law,
    class_names,
    facet_names,
    item_weights,
    law_components,
    level_weights,
    moved_law,
)
from secondorder.simulate._made_laws import deterministic, effects, exchangeable

__all__ = [
    "components",
    "dial",
    "lazy",
    "mix",
    "population",
    "sparse",
    "with_invalid",
]

Vector = NDArray[np.float64]


def components(
    law: xr.DataArray, *, kernel: Kernel = "nominal", weights: Mapping[str, Sequence[float]] | None = None
) -> dict[str, float]:
    """The true components of a law at its own levels, averaged over its (weighted) items.

    Examples
    --------
    >>> components(exchangeable([0.5, 0.5], {"prompt": 2}))
    {'call': 0.5, 'prompt': 0.0, 'total': 0.5}
    """
    return law_components(law, kernel, weights)


def dial(
    law: xr.DataArray,
    values: Mapping[str, float],
    *,
    kernel: Kernel = "nominal",
    weights: Mapping[str, Sequence[float]] | None = None,
) -> xr.DataArray:
    """Scale the effects in any law, a fitted one too, so that its components have exactly the given values.

    A law is the sum of its mean over all levels and one part per set of facets (analysis of variance of the cell
    laws); the component of T is quadratic in the part of T alone. Parts that are not named stay as they are.

    Parameters
    ----------
    law : DataArray, dims (item, facets..., class)
    values : mapping of component to float
        For instance ``{"prompt": 0.02, "order": 0}``.
    kernel : str or matrix
    weights : mapping of facet to sequence of float, optional
        Level weights of the design, sum 1; default equal.

    Raises
    ------
    DesignError
        When the law has no such part to scale, or a probability would become negative: the message then names values
        on the way to those asked for that are possible.

    Examples
    --------
    >>> from secondorder.simulate.laws import dirichlet
    >>> law = dirichlet([0.5, 0.3, 0.2], 20, {"prompt": 6, "order": 2}, over=["prompt"], seed=1)
    >>> round(components(dial(law, {"prompt": 0.01}))["prompt"], 15)
    0.01
    """
    law = as_law(law)
    names = facet_names(law)
    now = components(law, kernel=kernel, weights=weights)
    level_weight = level_weights(law, weights)
    change = np.zeros(law.shape)
    stretch: dict[str, float] = {}
    for component, value in values.items():
        part = component.split(":")
        if component not in now or component in ("call", "total"):
            raise DesignError(
                f"component {component!r}", place="dial", remedy=f"components: {', '.join(list(now)[1:-1])}"
            )
        if value < 0:
            raise DesignError(f"{component} = {value:g}", place="dial", remedy="components of a law are at least 0")
        if now[component] <= 1e-15:
            if value == 0:
                continue
            raise DesignError(
                f"the law has no {component} effect to scale",
                place="dial",
                remedy="make one with laws.effects or laws.dirichlet",
            )
        stretch[component] = float(np.sqrt(value / now[component])) - 1
        change = change + stretch[component] * _effect_part(law, names, part, level_weight)

    def remedy(reach: float) -> str:
        # Each part is stretched by 1 + reach * stretch, and its component is quadratic in that.
        possible = (f"{name}={now[name] * (1 + reach * much) ** 2:.6g}" for name, much in stretch.items())
        return f"go no further than {', '.join(possible)}"

    return moved_law(law, change, "dial", remedy)


def _effect_part(
    law: xr.DataArray, names: Sequence[str], part: Sequence[str], weights: Mapping[str, Sequence[float]]
) -> Vector:
    result = np.zeros(law.shape)
    for depth in range(len(part) + 1):
        for kept in combinations(part, depth):
            values = law.values
            for axis, name in enumerate(names, start=1):
                if name not in kept:
                    values = np.average(values, axis=axis, weights=weights[name], keepdims=True)
            result = result + (-1) ** (len(part) - depth) * values
    return result


def mix(law: xr.DataArray, other: xr.DataArray, share: float) -> xr.DataArray:
    """Each call follows `other` with probability `share`, and `law` otherwise."""
    if not 0 <= share <= 1:
        raise DesignError(f"share {share:g}", place="mix", remedy="give a probability")
    return as_law((1 - share) * as_law(law) + share * as_law(other))


def lazy(law: xr.DataArray, share: float, answer: str) -> xr.DataArray:
    """Each call gives `answer` without reading, with probability `share`: every effect shrinks by (1 - share)**2."""
    law = as_law(law)
    labels = class_names(law)
    facets = {name: [str(level) for level in law[name].values] for name in facet_names(law)}
    constant = deterministic(answer, facets, labels)
    return mix(law, law.copy(data=np.broadcast_to(constant.values, law.shape)), share)


def with_invalid(law: xr.DataArray, rate: float | xr.DataArray) -> xr.DataArray:
    """Append the class ⊥: a call is invalid with probability `rate`, whatever it would have said.

    Parameters
    ----------
    law : DataArray
    rate : float or DataArray
        One rate, or rates that differ along dimensions of the law, such as a prompt that breaks the parser.

    Examples
    --------
    >>> law = with_invalid(exchangeable([0.6, 0.4], {"prompt": 2}), xr.DataArray([0.0, 0.2], dims="prompt"))
    >>> law.sel(prompt="2", item="1").values.round(2).tolist()
    [0.48, 0.32, 0.2]
    """
    law = as_law(law)
    valid = law * (1 - rate)
    invalid = (xr.zeros_like(law.isel({CLASS: 0}, drop=True)) + rate).expand_dims({CLASS: [BOTTOM]}, axis=-1)
    return as_law(xr.concat([valid.transpose(*law.dims), invalid.transpose(*law.dims)], CLASS).rename("law"))


def population(parts: Mapping[str, xr.DataArray], shares: Sequence[float] | None = None) -> xr.DataArray:
    """Items of several kinds as one population, to draw items from.

    Parameters
    ----------
    parts : mapping of name to law
        Laws with the same facets and classes; the items of a part share its weight.
    shares : sequence of float, optional
        Weight of each part, sum 1; default equal.

    Returns
    -------
    DataArray
        With the coordinates ``weight`` and ``part`` on the items.

    Examples
    --------
    >>> from secondorder.simulate.laws import rare_flips
    >>> facets = {"prompt": 6, "order": 2}
    >>> mixed = population(
    ...     {"steady": rare_flips(0.0, facets), "noisy": rare_flips(0.5, facets)}, [0.85, 0.15])
    >>> round(components(mixed)["call"], 12)                      # .15 * .5
    0.075
    """
    laws = [as_law(law) for law in parts.values()]
    given = [1 / len(laws)] * len(laws) if shares is None else [float(share) for share in shares]
    if len(given) != len(laws):
        raise DesignError(f"{len(given)} shares for {len(laws)} parts", place="population")
    weight = np.concatenate([share * item_weights(law) for share, law in zip(given, laws, strict=True)])
    names = np.concatenate([[name] * law.sizes[ITEM] for name, law in zip(parts, laws, strict=True)])
    plain = [law.drop_vars([name for name in ("weight", "part") if name in law.coords]) for law in laws]
    joined = xr.concat(plain, ITEM, join="exact", coords="minimal", compat="override")
    labels = [str(i + 1) for i in range(len(weight))]
    result = joined.assign_coords({ITEM: labels, "weight": (ITEM, weight), "part": (ITEM, names)})
    item_weights(result)
    return result


def sparse(
    base: Sequence[float], facets: FacetLevels, values: Mapping[str, float], share: float, *, kernel: Kernel = "nominal"
) -> xr.DataArray:
    """A population in which a share of the items has the given components and all others have none.

    Examples
    --------
    >>> law = sparse([0.7, 0.1, 0.1, 0.1], {"prompt": 6, "order": 2}, {"order": 0.02}, 0.05)
    >>> round(components(law)["order"], 12)
    0.001
    """
    parts = {"affected": effects(base, facets, values, kernel=kernel), "other": exchangeable(base, facets)}
    return population(parts, [share, 1 - share])
