"""Decompose a cube: declarations in, debiased components beside the plug-in out, one group after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._design import Component, Design, Facet, listed
from secondorder._labels._attributes import attribute, class_labels, facets_of, group_dim, load
from secondorder._labels._cells import cell_counts, codes, require_cells
from secondorder._labels._checks import check_cube
from secondorder._labels._cube import by_text, groups
from secondorder._schema import BOTTOM, CLASS, CODE_MISSING, ITEM, REASONS, REPEAT, SOFT_REASONS
from secondorder._statistics._calls import Calls
from secondorder._statistics._components import all_components
from secondorder._statistics._decomposition import Decomposition
from secondorder._statistics._estimate import ItemValues, item_values, soft_item_values
from secondorder._statistics._group import FacetInfo, Group
from secondorder._statistics._invalid import invalid_notes
from secondorder._statistics._kernel import ChosenKernel, InvalidAs, check_order, choose_kernel
from secondorder._statistics._origins import origin_notes
from secondorder._statistics._repeats import require_named_repeats
from secondorder._statistics._settings import Covers, Method, Pairs, Settings
from secondorder._statistics._soft import soft_notes
from secondorder.errors import CubeError, DesignError, InputError

__all__ = ["decompose"]

SOFT_TOLERANCE = 1e-6
"""Probabilities that a server prints in single precision sum to 1 up to this."""


def decompose(
    cube: xr.Dataset,
    *,
    facets: str | Facet | Sequence[str | Facet] | None = None,
    kernel: Any = None,
    scores: Mapping[str, float] | None = None,
    invalid: InvalidAs = "class",
    pairs: Pairs = "complete",
    covers: Covers = "items",
    interval: Method = "t",
    level: float = 0.95,
    draws: int = 20_000,
    seed: int = 0,
    tau: float | None = None,
    incomplete: str = "refuse",
    components: Component | Sequence[Component] = (),
    standardise: bool = False,
    allow_indefinite: bool = False,
) -> Decomposition:
    """Decompose verdict variation into call noise, each facet and their interactions, debiased beside plug-in.

    Every number is a mean over items of an item's own components, equal weight to each item. Estimates are raw: an
    unbiased estimate of a non-negative component can be negative.

    Parameters
    ----------
    cube : Dataset
        A response-law cube (:func:`secondorder.read_table`, :func:`secondorder.make_cube`,
        :func:`secondorder.open_cube`): dims ``[judge,] item, facets..., repeat``. Each judge is a group of its own,
        unless ``judge`` is named as a facet.
    facets : str, Facet or sequence of them, optional
        Facets in the order that names the interactions, with weights or kinds where declared. Default: those of the
        cube. A facet with one level is left out and listed.
    kernel : str, array (C, C) or DataArray, optional
        ``nominal``, ``ordinal``, ``interval`` or a disagreement matrix; must be named when every class is a number.
    scores : mapping of str to float, optional
        Scores of the classes for ``interval``; default: the labels as numbers.
    invalid : "class", "missing", "midpoint" or (score, penalty)
        What ⊥ means under the kernel.
    pairs : {"complete", "across-repeats", "panel"}
        Which pairs of calls are compared. ``complete``: all distinct pairs, unbiased for independent calls.
        ``across-repeats``: pairs with different repeat index, unbiased under any dependence inside a repeat block.
        ``panel``: disjoint pairs of repeats.
    covers : {"items", "calls", "prompts", "items+prompts"}
        Which randomness the bands cover. Those of differences between groups always cover items.
    interval : {"t", "percentile", "bca", "studentised"}
        How the bands are made. All but ``t`` resample items and cover them alone.
    level : float
    draws, seed : int
        Whole-item resamples for bootstrap bands and for the comparison of groups.
    tau : float, optional
        Threshold for flags.
    incomplete : {"refuse", "drop-item"}
        What happens to items with a cell of fewer than two calls. A judge that has lost every call is undefined; one
        that has calls and no complete item is refused by name, with either.
    components : Component or sequence of Component
        Further components of the user's own, after the standard ones.
    standardise : bool
        Divide the interval kernel, penalty included, by half the squared range of the scores.
    allow_indefinite : bool
        Accept a kernel matrix that is not of negative type; the result says so.

    Returns
    -------
    Decomposition

    Raises
    ------
    CubeError, DesignError, KernelError, InputError
        One line each: place, value, remedy.

    References
    ----------
    Complete-pair estimators and the component identity: "Second-Order Response Laws for LLM Judges", equations for
    the fixed census, generalised to any number of facets, weights and kernels of negative type.

    Examples
    --------
    >>> import secondorder as so
    >>> rows = [
    ...     {"item": "q1", "prompt": p, "run": str(r), "verdict": v}
    ...     for p, verdicts in {"a": "AABA", "b": "ABBB"}.items()
    ...     for r, v in enumerate(verdicts)
    ... ]
    >>> cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=["A", "B"])
    >>> result = so.decompose(cube)
    >>> round(result["prompt"].estimate, 4), round(result["prompt"].plugin, 4)
    (0.0625, 0.125)
    """
    check_cube(cube)
    if pairs != "complete":
        require_named_repeats(cube, f"pairs={pairs!r}")
    declared = _declared_facets(cube, facets)
    names = [facet.name for facet in declared]
    classes = class_labels(cube)
    bottom = len(classes) - 1 if classes[-1] == BOTTOM else None
    chosen = choose_kernel(
        kernel,
        classes,
        scores=scores,
        invalid_as=invalid,
        bottom_occurs=bottom is not None and _occurs(cube, bottom),
        standardise=standardise,
        allow_indefinite=allow_indefinite,
    )
    classes_declared = bool(attribute(cube, "classes_declared", True))
    check_order(chosen, classes, classes_declared=classes_declared)
    if chosen.drop_invalid and "soft" in cube:
        raise InputError(
            "soft verdicts are spread over the classes: no call is ⊥ as a whole",
            place="invalid='missing'",
            remedy="give soft verdicts conditional on a valid one, or say what ⊥ is",
        )
    settings = Settings(
        kernel=chosen.name,
        classes=classes,
        classes_declared=classes_declared,
        invalid=tuple(attribute(cube, "invalid", [])),
        missing=tuple(attribute(cube, "missing", [])),
        invalid_as=invalid,
        incomplete=incomplete,
        pairs=pairs,
        covers=covers,
        interval=interval,
        level=level,
        draws=draws,
        seed=seed,
        tau=tau,
        where=tuple(attribute(cube, "parent", {}).get("where", ())),
        independence=str(cube.attrs.get("independence", "untestable")),
        scores=None if scores is None else dict(scores),
        standardise=standardise,
        kernel_matrix=tuple(map(tuple, chosen.matrix.tolist())) if chosen.name == "user" else None,
    )
    found = tuple(
        _decompose_group(by, part, declared, components, chosen, bottom, settings) for by, part in groups(cube, names)
    )
    parent = attribute(cube, "parent", {})
    source = {key: parent.get(key) for key in ("name", "sha256", "rows", "rows_used")}
    return Decomposition(settings, found, source)


def _declared_facets(cube: xr.Dataset, facets: str | Facet | Sequence[str | Facet] | None) -> tuple[Facet, ...]:
    known = {facet.name: facet for facet in facets_of(cube)}
    if facets is None:
        return tuple(known.values())
    group = group_dim(cube)
    found = []
    for entry in listed(facets):
        name = entry if isinstance(entry, str) else entry.name
        if name not in known and name != group:
            raise DesignError(
                f"the cube has no facet {name!r}", place="facets", remedy=f"its facets: {', '.join(known) or 'none'}"
            )
        found.append(known.get(name, Facet(name)) if isinstance(entry, str) else entry)
    left_out = [name for name in known if name not in {facet.name for facet in found} and cube.sizes[name] > 1]
    if left_out:
        raise DesignError(
            f"facet {left_out[0]!r} has {cube.sizes[left_out[0]]} levels and is not named",
            place="facets",
            remedy="name it, or select one of its levels first (cube.sel)",
        )
    single = [facet for name, facet in known.items() if name not in {entry.name for entry in found}]
    return (*found, *single)


def _decompose_group(
    by: Mapping[str, str],
    cube: xr.Dataset,
    declared: Sequence[Facet],
    components: Component | Sequence[Component],
    chosen: ChosenKernel,
    bottom: int | None,
    settings: Settings,
) -> Group:
    names = [facet.name for facet in declared]
    given = cube
    missing = load(cube["verdict"]) < 0
    reason = load(cube["reason"]) if "reason" in cube else np.zeros(missing.shape, dtype=np.int8)
    # A completed call without a soft verdict is no missing one: a note counts it.
    missing &= ~np.isin(reason, [REASONS.index(word) for word in SOFT_REASONS])
    absent = reason == REASONS.index("absent")
    if chosen.drop_invalid and bottom is not None:
        cube = _without_invalid(cube, bottom)
    # With one call everywhere nothing is incomplete: the plug-in is shown, and the rest is undefined with its reason.
    # The same for a judge that has lost every call, where incomplete items are not refused: others may be complete.
    most = int(cell_counts(cube).max())
    need = min(2, most) if settings.incomplete == "drop-item" else max(1, min(2, most))
    try:
        kept, dropped = require_cells(cube, need=need, incomplete=settings.incomplete)
    except CubeError as error:
        if not by:
            raise
        remedy = f"{error.remedy}, or decompose the others without it" if error.remedy else None
        raise CubeError(error.problem, place=f"{error.place}, {by_text(by)}", remedy=remedy) from None
    levels = {name: tuple(str(label) for label in kept[name].values) for name in names}
    crossed = [facet for facet in declared if len(levels[facet.name]) > 1]
    design = Design.from_facets(crossed, [levels[facet.name] for facet in crossed])
    wanted = all_components(design.names, components)
    calls = codes(kept, design.names)
    soft = _soft(kept, design.names, calls) if "soft" in kept else None

    def values(matrix: NDArray[np.float64]) -> ItemValues:
        if soft is not None:
            return soft_item_values(soft, design, wanted, matrix, settings.pairs)
        return item_values(calls, design, wanted, matrix, settings.pairs)

    result = values(chosen.matrix)
    n_calls = (calls >= 0).sum(-1)
    used = given.sel({ITEM: kept[ITEM]})
    return Group(
        by=dict(by),
        items=tuple(str(label) for label in kept[ITEM].values),
        strata=tuple(str(label) for label in kept["stratum"].values) if "stratum" in kept.coords else None,
        design=design,
        facets={facet.name: _info(facet, levels[facet.name], design) for facet in declared},
        components=wanted,
        values=result.debiased,
        plugin_values=result.plugin,
        reasons=result.reasons,
        n_calls=int(n_calls.sum()),
        n_invalid=0 if bottom is None else int((load(used["verdict"]) == bottom).sum()),
        n_missing=int(missing.sum()),
        n_absent=int((missing & absent).sum()),
        items_dropped=tuple(dropped),
        repeats=(int(n_calls.min()), int(n_calls.max())),
        settings=settings,
        calls=Calls(calls, chosen.matrix, soft),
        parts={name: values(matrix).debiased for name, matrix in chosen.parts},
        notes=(
            *chosen.notes,
            *result.notes,
            *invalid_notes(given, bottom),
            *origin_notes(used),
            *soft_notes(given, by, settings.seed),
        ),
    )


def _without_invalid(cube: xr.Dataset, bottom: int) -> xr.Dataset:
    """⊥ calls taken as calls without verdict, by the analyst's declaration; their status and reason go with them."""
    gone = load(cube["verdict"]) == bottom
    verdict = cube["verdict"].copy(data=np.where(gone, CODE_MISSING, load(cube["verdict"])))
    return cube.assign(verdict=verdict).drop_vars(["status", "reason"], errors="ignore")


def _occurs(cube: xr.Dataset, bottom: int) -> bool:
    if "soft" in cube:
        return bool((cube["soft"].isel({CLASS: bottom}) > 0).any())
    return bool((load(cube["verdict"]) == bottom).any())


def _soft(cube: xr.Dataset, names: Sequence[str], calls: NDArray[Any]) -> NDArray[np.float64]:
    """Soft verdicts ``(N, L_1, ..., L_J, R, C)``, refused where they are no probabilities of the calls there are."""
    soft = cube["soft"]
    single = [dim for dim in soft.dims if dim not in (ITEM, REPEAT, CLASS, *names)]
    vectors: NDArray[np.float64] = load(soft.isel(dict.fromkeys(single, 0)).transpose(ITEM, *names, REPEAT, CLASS))
    present = ~np.isnan(vectors).all(-1)
    if (present != (calls >= 0)).any():
        raise CubeError(
            f"{int((present != (calls >= 0)).sum())} calls have a verdict and no soft one, or the reverse",
            place="soft",
            remedy="give NaN in every class where there is no verdict, and there alone",
        )
    found = vectors[present]
    if not ((found >= 0).all() and (np.abs(found.sum(-1) - 1) <= SOFT_TOLERANCE).all()):
        worst = found[int(np.argmax(np.abs(found.sum(-1) - 1) + (found < 0).any(-1)))]
        raise CubeError(
            f"a soft verdict is {worst.tolist()}", place="soft", remedy="give probabilities that sum to 1 in every call"
        )
    return vectors


def _info(facet: Facet, levels: tuple[str, ...], design: Design) -> FacetInfo:
    if facet.name not in design.names:
        return FacetInfo("single", levels, None)
    weights = design.weights[design.names.index(facet.name)]
    if facet.kind == "random":
        return FacetInfo("random", levels, None, facet.population)
    return FacetInfo("fixed", levels, tuple(float(weight) for weight in weights))
