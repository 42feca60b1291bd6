"""What a law is: class probabilities with named axes, checked; its kernel; its components."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._design import Component, Design, standard_components
from secondorder._schema import CLASS, ITEM
from secondorder._statistics._kernel import choose_kernel
from secondorder.core._estimates import plugin_from
from secondorder.core._pairs import combine, sampled_levels, self_corrections
from secondorder.errors import CubeError, DesignError

__all__ = [
    "FacetLevels",
    "Kernel",
    "as_law",
    "class_names",
    "closed_form_bias",
    "facet_names",
    "item_weights",
    "kernel_matrix",
    "law_components",
    "level_weights",
    "make_law",
    "moved_law",
    "true_components",
]

Matrix = NDArray[np.float64]
Kernel = str | Matrix
FacetLevels = Mapping[str, int | Sequence[str]]

SUM_TOLERANCE = 1e-12
WEIGHT_TOLERANCE = 1e-9


def make_law(
    values: Any, facets: FacetLevels, *, classes: Sequence[str] | None = None, weight: Sequence[float] | None = None
) -> xr.DataArray:
    """A labelled law from an array of shape (item, L_1, ..., L_J, C)."""
    array = np.asarray(values, dtype=float)
    levels = {name: _level_names(given) for name, given in facets.items()}
    labels = _class_labels(array.shape[-1], classes)
    coordinates: dict[str, Any] = {ITEM: [str(i + 1) for i in range(array.shape[0])], **levels, CLASS: labels}
    law = xr.DataArray(array, dims=tuple(coordinates), coords=coordinates, name="law")
    if weight is not None:
        law = law.assign_coords(weight=(ITEM, np.asarray(weight, dtype=float)))
    return as_law(law)


def _level_names(given: int | Sequence[str]) -> list[str]:
    return [str(level + 1) for level in range(given)] if isinstance(given, int) else [str(level) for level in given]


def _class_labels(number: int, classes: Sequence[str] | None) -> list[str]:
    if classes is None:
        return [chr(ord("a") + c) if number <= 26 else f"c{c + 1}" for c in range(number)]
    if len(classes) != number:
        raise DesignError(
            f"{len(classes)} class labels for {number} probabilities", place="law", remedy="give one label per class"
        )
    return [str(label) for label in classes]


def as_law(law: xr.DataArray) -> xr.DataArray:
    """The law with axes (item, facets in their order, class), float64, refused when it is not one.

    Raises
    ------
    CubeError
        When a dimension is missing, an entry is negative or NaN, or a cell does not sum to 1.
    """
    if CLASS not in law.dims:
        raise CubeError(f"dimensions are {law.dims}", place="law", remedy=f"name the last dimension {CLASS!r}")
    if ITEM not in law.dims:
        law = law.expand_dims({ITEM: ["1"]})
    law = law.transpose(ITEM, ..., CLASS).astype(float)
    if law.ndim < 3:
        raise CubeError("it has no facet", place="law", remedy="give at least one crossed facet, such as 'prompt'")
    values = law.values
    bad = ~(values >= 0) | ~np.isfinite(values)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        raise CubeError(
            f"probability {values[where]:g}", place=f"law {_place(law, where)}", remedy="probabilities are at least 0"
        )
    excess = np.abs(values.sum(-1) - 1)
    if excess.max() > SUM_TOLERANCE:
        where = tuple(int(i) for i in np.unravel_index(int(np.argmax(excess)), excess.shape))
        raise CubeError(
            f"probabilities sum to {values[where].sum():.15g}",
            place=f"law {_place(law, where)}",
            remedy="make every cell sum to 1; nothing is renormalised here",
        )
    return law


def _place(law: xr.DataArray, where: tuple[int, ...]) -> str:
    named = [f"{dim}={law[dim].values[i] if dim in law.coords else i}" for dim, i in zip(law.dims, where, strict=False)]
    return " ".join(named)


def moved_law(law: xr.DataArray, change: Any, place: str, remedy: Callable[[float], str]) -> xr.DataArray:
    """The law plus a change that sums to 0 over classes, refused where a probability would become negative.

    `remedy` says what to ask for instead, given the share of the change that is possible.
    """
    values = law.values + change
    if values.min() < 0:
        negative = change < 0
        reach = float((law.values[negative] / -change[negative]).min())
        # Half a per cent less, so that the numbers of the remedy are possible as they are printed.
        raise DesignError(f"a probability would be {values.min():.3g}", place=place, remedy=remedy(0.995 * reach))
    # A rounding error of the sum is not a fault of the law; anything larger is refused by as_law.
    return as_law(law.copy(data=values))


def facet_names(law: xr.DataArray) -> tuple[str, ...]:
    """Dimensions of a law that are neither item nor class."""
    return tuple(str(dim) for dim in law.dims if dim not in (ITEM, CLASS))


def class_names(law: xr.DataArray) -> list[str]:
    """Class labels of a law."""
    return [str(label) for label in law[CLASS].values]


def item_weights(law: xr.DataArray) -> Matrix:
    """Weights of the items: the coordinate ``weight``, or equal; sum 1."""
    if "weight" not in law.coords:
        return np.full(law.sizes[ITEM], 1 / law.sizes[ITEM])
    weights = np.asarray(law["weight"].values, dtype=float)
    if not (weights >= 0).all() or abs(weights.sum() - 1) > WEIGHT_TOLERANCE:
        raise DesignError(
            f"item weights sum to {weights.sum():.12g}", place="law", remedy="make them >= 0 and sum to 1"
        )
    return weights


def level_weights(law: xr.DataArray, weights: Mapping[str, Sequence[float]] | None) -> dict[str, tuple[float, ...]]:
    """Level weights of every facet of a law: those given, or equal.

    Raises
    ------
    DesignError
        When they name no facet, are not one per level, or are not positive with sum 1.
    """
    names = facet_names(law)
    found = {name: (1 / law.sizes[name],) * law.sizes[name] for name in names}
    for name, given in (weights or {}).items():
        if name not in found:
            raise DesignError(f"weights name {name!r}", place="weights", remedy=f"facets: {', '.join(names)}")
        values = tuple(float(weight) for weight in given)
        if len(values) != law.sizes[name] or not min(values) > 0 or abs(sum(values) - 1) > WEIGHT_TOLERANCE:
            raise DesignError(
                f"{values} sum to {sum(values):.12g}",
                place=f"weights of {name}",
                remedy=f"give {law.sizes[name]} positive weights that sum to 1",
            )
        found[name] = values
    return found


def kernel_matrix(kernel: Kernel, classes: Sequence[str]) -> Matrix:
    """The (class, class) matrix of a kernel given by name or as a matrix, chosen as for real verdicts."""
    return choose_kernel(kernel, list(classes)).matrix


def true_components(law: Matrix, design: Design, components: Sequence[Component], kernel: Matrix) -> Matrix:
    """Components at laws (items, L_1, ..., L_J, C), as (items, components).

    The formula of the core on NumPy arrays: for a few laws, compiling it would take longer than everything else.
    """
    values = plugin_from(law, design, components, kernel)
    return np.stack(values, axis=-1) if values else np.zeros((len(law), 0))


def closed_form_bias(
    law: Matrix, calls: NDArray[Any], design: Design, components: Sequence[Component], kernel: Matrix
) -> Matrix:
    """Bias of the plug-in at laws (items, L_1, ..., L_J, C), as (items, components); like :func:`true_components`."""
    # The correction divides by n - 1; at a law the divisor is n.
    corrections = self_corrections(calls + 1.0, law, 0.0, design, kernel)
    values = combine(components, sampled_levels(corrections, design), design)
    return np.negative(np.stack(values, axis=-1)) if values else np.zeros((len(law), 0))


def law_components(
    law: xr.DataArray, kernel: Kernel = "nominal", weights: Mapping[str, Sequence[float]] | None = None
) -> dict[str, float]:
    """Every standard component of a law at its own levels, averaged over its weighted items."""
    law = as_law(law)
    names = facet_names(law)
    design = Design(names, tuple(level_weights(law, weights).values()), (None,) * len(names))
    components = standard_components(names)
    values = true_components(law.values, design, components, kernel_matrix(kernel, class_names(law)))
    return dict(zip((c.name for c in components), (item_weights(law) @ values).tolist(), strict=True))
