"""The truth at known response laws, and the exact bias of the plug-in there: the same declarations as for data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._design import Component, Design, Facet, listed
from secondorder._schema import CLASS, ITEM
from secondorder._statistics._checked import whole
from secondorder._statistics._components import all_components
from secondorder._statistics._kernel import InvalidAs, choose_kernel
from secondorder.core._estimates import at_law, plugin_bias_at
from secondorder.errors import DesignError, InputError

__all__ = ["decompose_law", "item_weights", "plugin_bias", "prepare_law"]

MASS_TOLERANCE = 1e-9


def decompose_law(
    law: xr.DataArray,
    *,
    facets: str | Facet | Sequence[str | Facet] | None = None,
    kernel: Any = None,
    scores: Mapping[str, float] | None = None,
    invalid: InvalidAs = "class",
    components: Component | Sequence[Component] = (),
    standardise: bool = False,
    allow_indefinite: bool = False,
) -> xr.Dataset:
    """The true components of known response laws.

    Parameters
    ----------
    law : DataArray, dims (item?, facets..., class)
        Class probabilities of every cell; labels of the classes in the coordinate ``class``. Without a dimension
        ``item`` it is one item. A coordinate ``weight`` on the items (of a population of
        :mod:`secondorder.simulate.laws`) weighs their mean; without it they are equal.
    facets : str, Facet or sequence of them, optional
        Crossed facets, with weights or kinds where declared; default: every dimension but ``item`` and ``class``. One
        with a single level is left out, as in :func:`secondorder.decompose`.
        For a random facet the result is the policy's value if the given levels are a sample from it.
    kernel, scores, invalid, standardise, allow_indefinite
        As for :func:`secondorder.decompose`.
    components : Component or sequence of Component
        Further components of the user's own.

    Returns
    -------
    Dataset
        ``value (component)``: macroaverage over items; ``item_value (item, component)``.

    Raises
    ------
    InputError
        When a law is no probability vector, or a declaration does not fit its dimensions.

    Examples
    --------
    >>> import xarray as xr
    >>> law = xr.DataArray([[0.9, 0.1], [0.5, 0.5]], dims=("prompt", "class"), coords={"class": ["A", "B"]})
    >>> decompose_law(law).value.round(3).values.tolist()
    [0.34, 0.08, 0.42]
    """
    array, design, wanted, matrix, items = prepare_law(
        law, facets, kernel, scores, invalid, components, standardise, allow_indefinite
    )
    values = np.asarray(at_law(array, design, wanted, matrix))
    return _labelled(values, wanted, items, "value", law)


def plugin_bias(
    law: xr.DataArray,
    *,
    repeats: int,
    facets: str | Facet | Sequence[str | Facet] | None = None,
    kernel: Any = None,
    scores: Mapping[str, float] | None = None,
    invalid: InvalidAs = "class",
    components: Component | Sequence[Component] = (),
    standardise: bool = False,
    allow_indefinite: bool = False,
) -> xr.Dataset:
    """Exact bias of the plug-in at known laws with `repeats` calls per cell: it falls as 1/R.

    Parameters
    ----------
    law, facets, kernel, scores, invalid, components, standardise, allow_indefinite
        As for :func:`decompose_law`.
    repeats : int
        Calls per cell, at least 1.

    Returns
    -------
    Dataset
        ``bias (component)``: macroaverage over items; ``item_bias (item, component)``.

    Notes
    -----
    ``E[plug-in] - U = -sum_f B_ff u_f / R`` with ``u_f = P_f' D P_f`` and B the component's pair weights; for K
    prompts in two equal orders the prompt component's bias is ``(K - 1) / (2 K R)`` times the call component.

    Examples
    --------
    >>> import xarray as xr
    >>> law = xr.DataArray([[0.4, 0.3, 0.2, 0.1]] * 6, dims=("prompt", "class"), coords={"class": list("ABC") + ["⊥"]})
    >>> plugin_bias(law, repeats=4).bias.round(4).values.tolist()
    [-0.175, 0.1458, -0.0292]
    """
    whole(repeats, "repeats", least=1)
    array, design, wanted, matrix, items = prepare_law(
        law, facets, kernel, scores, invalid, components, standardise, allow_indefinite
    )
    values = np.asarray(plugin_bias_at(array, float(repeats), design, wanted, matrix))
    return _labelled(values, wanted, items, "bias", law)


def prepare_law(
    law: xr.DataArray,
    facets: str | Facet | Sequence[str | Facet] | None = None,
    kernel: Any = None,
    scores: Mapping[str, float] | None = None,
    invalid: InvalidAs = "class",
    components: Component | Sequence[Component] = (),
    standardise: bool = False,
    allow_indefinite: bool = False,
) -> tuple[Any, Design, tuple[Component, ...], Any, list[str] | None]:
    """A labelled law as an array with its design, components, kernel matrix and items (None: a single item)."""
    if not isinstance(law, xr.DataArray) or CLASS not in law.dims or CLASS not in law.coords:
        raise InputError(
            "a law needs a labelled dimension 'class'",
            place="law",
            remedy="give an xarray.DataArray with dims (item, facets..., class) and class labels",
        )
    names = [str(name) for name in law.dims if name not in (ITEM, CLASS)]
    given = names if facets is None else listed(facets)
    declared = [Facet(entry) if isinstance(entry, str) else entry for entry in given]
    # As in an analysis of verdicts, a facet with one level is left out and need not be named.
    crossed = [name for name in names if law.sizes[name] > 1]
    known = {facet.name for facet in declared}
    if not set(crossed) <= known <= set(names):
        raise DesignError(
            f"facets {[facet.name for facet in declared]} are not the law's dimensions {names}",
            place="facets",
            remedy="declare every dimension but item and class",
        )
    declared = [facet for facet in declared if facet.name in crossed]
    order = [ITEM] if ITEM in law.dims else []
    plain = law.isel(dict.fromkeys(set(names) - set(crossed), 0))
    ordered = plain.transpose(*order, *(facet.name for facet in declared), CLASS)
    array = np.asarray(ordered.values, dtype=float)
    mass = array.sum(-1)
    if not (array >= -MASS_TOLERANCE).all() or not (np.abs(mass - 1) <= MASS_TOLERANCE).all():
        worst = float(mass.flat[int(np.argmax(np.abs(mass - 1)))])
        raise InputError(
            f"a cell's probabilities sum to {worst:.6g} or one of them is negative",
            place="law",
            remedy="give probabilities that sum to 1 in every cell",
        )
    levels = [_labels(ordered, facet.name) for facet in declared]
    design = Design.from_facets(declared, levels)
    classes = [str(label) for label in ordered[CLASS].values]
    chosen = choose_kernel(
        kernel,
        classes,
        scores=scores,
        invalid_as=invalid,
        bottom_occurs=bool((array[..., -1] > 0).any()),
        standardise=standardise,
        allow_indefinite=allow_indefinite,
    )
    if chosen.drop_invalid:
        raise InputError(
            "invalid='missing' drops calls; a law has none",
            place="invalid",
            remedy="give the law conditional on a valid verdict, or declare what ⊥ means",
        )
    wanted = all_components(design.names, components)
    return array, design, wanted, chosen.matrix, _labels(ordered, ITEM) if order else None


def _labels(array: xr.DataArray, dim: str) -> list[str]:
    if dim in array.coords:
        return [str(label) for label in array[dim].values]
    return [str(index) for index in range(array.sizes[dim])]


def _labelled(
    values: Any, components: Sequence[Component], items: list[str] | None, name: str, law: xr.DataArray
) -> xr.Dataset:
    names = [component.name for component in components]
    if items is None:
        return xr.Dataset({name: ("component", values)}, coords={"component": names})
    return xr.Dataset(
        {
            name: ("component", np.average(values, axis=0, weights=item_weights(law))),
            f"item_{name}": ((ITEM, "component"), values),
        },
        coords={"component": names, ITEM: items},
    )


def item_weights(law: xr.DataArray) -> NDArray[np.float64] | None:
    """Weights of the items of a population, sum 1; None where they are equal."""
    if "weight" not in law.coords:
        return None
    weights = np.asarray(law["weight"].values, dtype=float)
    if law["weight"].dims != (ITEM,) or not (weights >= 0).all() or abs(weights.sum() - 1) > MASS_TOLERANCE:
        raise InputError(
            f"its weights sum to {weights.sum():.6g}", place="law weight", remedy="give every item one, >= 0, sum 1"
        )
    return weights
