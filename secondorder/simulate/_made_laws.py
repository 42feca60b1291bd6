"""Laws made from a few numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.special import expit

from secondorder._schema import CLASS
from secondorder.errors import DesignError
from secondorder.simulate._law import (
    FacetLevels,
    Kernel,
    as_law,
    class_names,
    facet_names,
    kernel_matrix,
    level_weights,
    make_law,
    moved_law,
)

__all__ = [
    "deterministic",
    "dirichlet",
    "effects",
    "exchangeable",
    "position_bias",
    "rare_flips",
    "scores",
]

Vector = NDArray[np.float64]


def exchangeable(base: Sequence[float], facets: FacetLevels, *, classes: Sequence[str] | None = None) -> xr.DataArray:
    """The same law in every cell: all components except call are exactly 0.

    Parameters
    ----------
    base : sequence of float, length C
        Class probabilities.
    facets : mapping of facet to number of levels, or to their names
    classes : sequence of str, optional
        Class labels; default ``a b c ...``.

    Examples
    --------
    >>> law = exchangeable([0.4, 0.3, 0.2, 0.1], {"prompt": 6, "order": 2})
    >>> law.dims, law.shape
    (('item', 'prompt', 'order', 'class'), (1, 6, 2, 4))
    """
    shape = [n if isinstance(n, int) else len(n) for n in facets.values()]
    return make_law(np.broadcast_to(base, (1, *shape, len(base))), facets, classes=classes)


def effects(
    base: Sequence[float],
    facets: FacetLevels,
    values: Mapping[str, float],
    *,
    kernel: Kernel = "nominal",
    directions: Mapping[str, Sequence[float]] | None = None,
    level_scores: Mapping[str, Sequence[float]] | None = None,
    weights: Mapping[str, Sequence[float]] | None = None,
    classes: Sequence[str] | None = None,
) -> xr.DataArray:
    r"""Additive and interaction effects whose components have exactly the given values.

    ``P_f = base + sum_T t_T prod_{j in T} s_j(level) d_T``, with level scores centred at their weighted mean. The
    component of T is then ``t_T^2 prod_j E[s_j^2] (-d_T' D d_T)``: quadratic in the effect size, which is solved for.

    Parameters
    ----------
    base : sequence of float, length C
    facets : mapping of facet to number of levels, or to their names
    values : mapping of component to float
        Wanted components, such as ``{"prompt": 0.03, "prompt:order": 0.01}``; those left out are 0.
    kernel : str or matrix
    directions : mapping of component to sequence of float, optional
        How the effect moves the probabilities, sum 0. Default: from the second class to the first.
    level_scores : mapping of facet to sequence of float, optional
        Default: equally spaced from -1 to 1.
    weights : mapping of facet to sequence of float, optional
        Level weights of the design, sum 1; default equal.
    classes : sequence of str, optional

    Raises
    ------
    DesignError
        When an effect of this size would make a probability negative: every value is then to shrink by the factor that
        the message names.

    Examples
    --------
    >>> from secondorder.simulate.laws import components
    >>> law = effects([0.4, 0.3, 0.2, 0.1], {"prompt": 6, "order": 2}, {"prompt": 0.03})
    >>> round(float(law[0, 0, 0, 0]), 5)                          # .4 - .17928
    0.22072
    >>> round(components(law)["prompt"], 15)
    0.03
    """
    law = exchangeable(base, facets, classes=classes)
    names = facet_names(law)
    D = kernel_matrix(kernel, class_names(law))
    level_weight = level_weights(law, weights)
    change = np.zeros(law.shape)
    for component, value in values.items():
        part = component.split(":")
        unknown = [name for name in part if name not in names]
        if unknown:
            raise DesignError(
                f"{component!r} names {unknown[0]!r}", place="effects", remedy=f"facets: {', '.join(names)}"
            )
        if value < 0:
            raise DesignError(f"{component} = {value:g}", place="effects", remedy="components of a law are at least 0")
        default = [1.0, -1.0, *(0.0,) * (len(base) - 2)]
        direction = np.asarray((directions or {}).get(component, default), dtype=float)
        size = float(-direction @ D @ direction)
        profile = np.ones((1,) * len(names))
        for axis, name in enumerate(names):
            if name not in part:
                continue
            score, square = _centred(name, level_scores, level_weight[name])
            spread = [1] * len(names)
            spread[axis] = -1
            profile = profile * score.reshape(spread)
            size *= square
        if not size > 0:
            raise DesignError(
                f"direction {direction.tolist()} has no effect", place=f"effects {component}", remedy="move some class"
            )
        change = change + np.sqrt(value / size) * profile[..., None] * direction
    # Here the change grows with the square root of every value, all of them together.
    return moved_law(law, change, "effects", lambda reach: f"ask for at most {reach**2:.6g} of these values")


def _centred(
    name: str, level_scores: Mapping[str, Sequence[float]] | None, weights: Sequence[float]
) -> tuple[Vector, float]:
    weight = np.asarray(weights)
    score = np.asarray((level_scores or {}).get(name, np.linspace(-1, 1, len(weight))), dtype=float)
    score = score - weight @ score
    return score, float(weight @ score**2)


def dirichlet(
    mean: Sequence[float],
    concentration: float,
    facets: FacetLevels,
    *,
    over: Sequence[str],
    items: int = 1,
    seed: int,
    classes: Sequence[str] | None = None,
) -> xr.DataArray:
    """Laws drawn once from a Dirichlet distribution: a list of prompts (items) whose exact truth is then known.

    Parameters
    ----------
    mean : sequence of float, length C
    concentration : float
        Sum of the Dirichlet parameters. Where `over` is one facet alone, its component over endless levels is
        ``(1 - sum mean**2) / (1 + concentration)`` under the nominal kernel. With several facets in `over` that is
        their joint interaction over endless levels; over few levels their main effects take a part of it.
    facets : mapping of facet to number of levels, or to their names
        For a random facet: the length of the list that a study draws its levels from.
    over : sequence of str
        Facets whose level combinations get their own draw; the law is the same along the others.
    items : int
        Every item has its own draws.
    seed : int
    classes : sequence of str, optional

    Examples
    --------
    >>> law = dirichlet([0.5, 0.5], 4, {"prompt": 3, "order": 2}, over=["prompt"], seed=1)
    >>> bool((law.sel(order="1") == law.sel(order="2")).all())
    True
    """
    unknown = [name for name in over if name not in facets]
    if unknown:
        raise DesignError(f"over names {unknown[0]!r}", place="dirichlet", remedy=f"facets: {', '.join(facets)}")
    sizes = {name: n if isinstance(n, int) else len(n) for name, n in facets.items()}
    drawn = [sizes[name] if name in over else 1 for name in facets]
    rng = np.random.default_rng(seed)
    values = rng.dirichlet(np.asarray(mean, dtype=float) * concentration, size=(items, *drawn))
    values = values / values.sum(-1, keepdims=True)
    return make_law(np.broadcast_to(values, (items, *sizes.values(), len(mean))), facets, classes=classes)


def scores(
    labels: Sequence[float],
    facets: FacetLevels,
    *,
    location: float | Sequence[float],
    spread: float,
    shifts: Mapping[str, Sequence[float]] | None = None,
) -> xr.DataArray:
    """Scores on an ordered scale: a logistic latent value, cut half-way between neighbouring scores.

    Parameters
    ----------
    labels : sequence of float
        The scores, ascending; they are the class labels.
    facets : mapping of facet to number of levels, or to their names
    location : float or sequence of float
        Centre of the latent value, one per item; in score units.
    spread : float
        Scale of the logistic distribution.
    shifts : mapping of facet to sequence of float, optional
        What each level adds to the location.

    Examples
    --------
    >>> law = scores([1, 2, 3], {"prompt": 2}, location=2, spread=0.5, shifts={"prompt": [-0.3, 0.3]})
    >>> law.sel(prompt="1", item="1").values.round(3).tolist()
    [0.401, 0.431, 0.168]
    """
    values = np.asarray(labels, dtype=float)
    centres = np.atleast_1d(np.asarray(location, dtype=float))
    sizes = [n if isinstance(n, int) else len(n) for n in facets.values()]
    place = centres.reshape(-1, *(1,) * len(sizes)) + np.zeros((1, *sizes))
    for axis, name in enumerate(facets, start=1):
        if shifts is not None and name in shifts:
            spread_axes = [1] * place.ndim
            spread_axes[axis] = -1
            place = place + np.asarray(shifts[name], dtype=float).reshape(spread_axes)
    below = expit(((values[1:] + values[:-1]) / 2 - place[..., None]) / spread)
    edges = np.concatenate([np.zeros((*place.shape, 1)), below, np.ones((*place.shape, 1))], axis=-1)
    return make_law(np.diff(edges, axis=-1), facets, classes=[f"{label:g}" for label in labels])


def deterministic(answers: Any, facets: FacetLevels, classes: Sequence[str]) -> xr.DataArray:
    """A judge that always gives the same answer in a cell: call noise is exactly 0.

    Parameters
    ----------
    answers : str or array of str
        One class for all cells, or one per cell, broadcast to (item, facets...).
    facets : mapping of facet to number of levels, or to their names
    classes : sequence of str

    Examples
    --------
    >>> from secondorder.simulate.laws import components
    >>> components(deterministic([["a"], ["b"]], {"prompt": 2, "order": 2}, ["a", "b"]))["prompt"]
    0.5
    """
    sizes = [n if isinstance(n, int) else len(n) for n in facets.values()]
    given = np.asarray(answers, dtype=object)
    shape = np.broadcast_shapes(given.shape, (1, *sizes))
    cells = np.broadcast_to(given, shape)
    unknown = sorted({str(label) for label in cells.ravel()} - set(classes))
    if unknown:
        raise DesignError(f"answer {unknown[0]!r}", place="deterministic", remedy=f"classes: {', '.join(classes)}")
    values = np.stack([(cells == label).astype(float) for label in classes], axis=-1)
    return make_law(values, facets, classes=classes)


def position_bias(
    base: Sequence[float],
    facets: FacetLevels,
    bias: float,
    *,
    order: str = "order",
    picks: Sequence[int] = (0, 1),
    classes: Sequence[str] | None = None,
) -> xr.DataArray:
    """With probability `bias` the judge picks the candidate shown first; candidates are already restored.

    Parameters
    ----------
    base : sequence of float, length C
        What it says otherwise.
    facets : mapping of facet to number of levels, or to their names
    bias : float
    order : str
        The facet whose levels are the orders.
    picks : sequence of int
        Class of the candidate shown first, per order.
    classes : sequence of str, optional

    Examples
    --------
    >>> from secondorder.simulate.laws import components
    >>> law = position_bias([0.5, 0.3, 0.2], {"prompt": 3, "order": ["AB", "BA"]}, 0.2)
    >>> round(components(law)["order"], 12)                       # (bias / 2)**2 * 2
    0.02
    """
    law = exchangeable(base, facets, classes=classes)
    if law.sizes.get(order) != len(picks):
        raise DesignError(
            f"facet {order!r} has {law.sizes.get(order, 0)} levels for {len(picks)} picks",
            place="position_bias",
            remedy="name the facet of the orders and one pick per order",
        )
    first = xr.DataArray(np.eye(len(base))[list(picks)], dims=(order, CLASS))
    return as_law((1 - bias) * law + bias * first.assign_coords({CLASS: law[CLASS]}))


def rare_flips(rate: float, facets: FacetLevels, *, classes: Sequence[str] = ("a", "b")) -> xr.DataArray:
    """A nearly deterministic judge: the first class, and each other class with equal parts of `rate`."""
    others = len(classes) - 1
    return exchangeable([1 - rate, *(rate / others,) * others], facets, classes=classes)
