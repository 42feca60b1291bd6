"""Hypothesis strategies for designs, kernels, laws and verdicts; valid by construction, exact, cheap to compile.

Every new array shape costs compiled code half a second or more, and a design's weights are part of what is compiled.
So designs come from a fixed menu of twelve, each with its own number of classes and repeats; everything else (laws,
kernels, verdicts, missing calls) is drawn freely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from secondorder._design import Design
from secondorder.testing._exact import as_fractions, exact_design

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "MENU",
    "Case",
    "Scenario",
    "cases",
    "cubes",
    "kernels",
    "laws",
    "scenarios",
    "soft_verdicts",
    "tables",
    "verdicts",
]


class Scenario(NamedTuple):
    """One entry of the menu: everything that fixes array shapes.

    Attributes
    ----------
    design : Design
        Weights in fractions; :func:`secondorder.testing.as_floats` turns them into floats.
    n_classes, repeats : int
    """

    design: Design
    n_classes: int
    repeats: int


class Case(NamedTuple):
    """An item: a scenario, a kernel and the item's calls.

    Attributes
    ----------
    scenario : Scenario
    kernel : array of Fraction, shape (C, C)
    law : array of Fraction, shape (L_1, ..., L_J, C)
    verdicts : array of int, shape (L_1, ..., L_J, R)
        Class codes drawn freely (not from `law`); -1 where there is no call.
    """

    scenario: Scenario
    kernel: np.ndarray
    law: np.ndarray
    verdicts: np.ndarray


MENU: tuple[Scenario, ...] = (
    Scenario(exact_design({"prompt": 2}), 2, 2),
    Scenario(exact_design({"prompt": ["1/2", "1/3", "1/6"]}), 3, 4),
    Scenario(exact_design({"prompt": 3}, random=["prompt"]), 4, 3),
    Scenario(exact_design({"prompt": 3}, random=["prompt"], populations={"prompt": 5}), 3, 2),
    Scenario(exact_design({"prompt": 6, "order": 2}), 2, 2),
    Scenario(exact_design({"prompt": ["1/4", "3/4"], "order": ["2/5", "3/5"]}), 3, 3),
    Scenario(exact_design({"prompt": 3, "order": ["1/3", "2/3"]}, random=["prompt"]), 3, 4),
    Scenario(exact_design({"prompt": 2, "order": 3}, random=["prompt", "order"]), 4, 2),
    Scenario(exact_design({"prompt": 2, "judge": 2}, random=["prompt", "judge"], populations={"judge": 4}), 3, 5),
    Scenario(exact_design({"prompt": 2, "order": ["1/5", "4/5"], "judge": 2}), 2, 3),
    Scenario(exact_design({"prompt": 2, "order": 2, "judge": ["1/2", "1/4", "1/4"]}, random=["prompt"]), 3, 2),
    Scenario(exact_design({"prompt": 2, "order": 2, "judge": 2}, random=["prompt", "judge"]), 2, 4),
)
"""The twelve scenarios from which :func:`scenarios` draws."""


def scenarios(*, random: bool | None = None, facets: int | None = None) -> st.SearchStrategy[Scenario]:
    """An entry of the menu.

    Parameters
    ----------
    random : bool, optional
        Only scenarios with (True) or without (False) a random facet.
    facets : int, optional
        Only scenarios with this number of facets.
    """
    fitting = [
        scenario
        for scenario in MENU
        if random in (None, not scenario.design.all_fixed) and facets in (None, len(scenario.design.names))
    ]
    return st.sampled_from(fitting)


@st.composite
def laws(draw: st.DrawFn, cells: Sequence[int], n_classes: int) -> np.ndarray:
    """A law per cell, ``(*cells, n_classes)`` in fractions; impossible classes and certain verdicts occur."""
    size = math.prod(cells)
    masses = draw(_integers(size * n_classes, 0, 4)).reshape(size, n_classes)
    # A cell without mass is one that always gives its first class.
    masses[masses.sum(1) == 0, 0] = 1
    rows = [[Fraction(int(mass), int(row.sum())) for mass in row] for row in masses]
    return as_fractions(rows).reshape(*cells, n_classes)


@st.composite
def kernels(draw: st.DrawFn, n_classes: int) -> np.ndarray:
    """A kernel of negative type, ``(n_classes, n_classes)`` in fractions.

    Nominal; ordinal without and with ⊥; interval without and with a declared ⊥; or squared distances between points
    of the plane, as a user may bring them. The last class plays ⊥ where there is one.
    """
    kind = draw(st.sampled_from(["nominal", "ordinal", "ordinal-invalid", "interval", "interval-invalid", "points"]))
    rank = np.arange(n_classes)
    bottom = rank == n_classes - 1
    mixed = as_fractions(bottom[:, None] != bottom[None, :])
    if kind == "nominal" or (n_classes < 3 and kind.endswith("invalid")):
        return as_fractions(rank[:, None] != rank[None, :])
    if kind == "ordinal":
        return as_fractions(abs(rank[:, None] - rank[None, :])) / (n_classes - 1)
    if kind == "ordinal-invalid":
        distance = draw(st.sampled_from([Fraction(1, 4), Fraction(1, 2), Fraction(1)]))
        inner = as_fractions(abs(rank[:, None] - rank[None, :])) / (n_classes - 2)
        return np.asarray(inner * (1 - mixed) + mixed * distance)
    first, second = draw(_integers(n_classes, -4, 4)), draw(_integers(n_classes, -4, 4))
    if kind != "points":
        second = second * 0
    squares = (first[:, None] - first[None, :]) ** 2 + (second[:, None] - second[None, :]) ** 2
    penalty = draw(st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(2)])) if kind == "interval-invalid" else 0
    return np.asarray(as_fractions(squares) / 2 + mixed * penalty)


@st.composite
def verdicts(
    draw: st.DrawFn, cells: Sequence[int], n_classes: int, repeats: int, *, missing: bool = False
) -> np.ndarray:
    """Class codes of one item's calls, ``(*cells, repeats)``.

    With `missing` and at least three repeats some calls are absent (-1), never more than leave every cell two calls
    and every pair of cells a pair of different repeats.
    """
    size = math.prod(cells)
    codes = draw(_integers(size * repeats, 0, n_classes - 1)).reshape(size, repeats)
    if missing and repeats > 2:
        absent = draw(_integers(size, -1, repeats - 1))
        for cell, index in enumerate(absent):
            if index >= 0:
                codes[cell, index] = -1
    return codes.reshape(*cells, repeats)


@st.composite
def soft_verdicts(draw: st.DrawFn, cells: Sequence[int], n_classes: int, repeats: int) -> np.ndarray:
    """Probability vectors as verdicts, ``(*cells, repeats, n_classes)`` in fractions."""
    return np.asarray(draw(laws((*cells, repeats), n_classes)))


@st.composite
def cases(draw: st.DrawFn, *, random: bool | None = None, missing: bool = False) -> Case:
    """A scenario with a kernel, a law and the calls of one item.

    Examples
    --------
    >>> from hypothesis import given
    >>> @given(cases())
    ... def check(case):
    ...     assert case.verdicts.shape == (*case.scenario.design.shape, case.scenario.repeats)
    >>> check()
    """
    scenario = draw(scenarios(random=random))
    shape = scenario.design.shape
    return Case(
        scenario,
        draw(kernels(scenario.n_classes)),
        draw(laws(shape, scenario.n_classes)),
        draw(verdicts(shape, scenario.n_classes, scenario.repeats, missing=missing)),
    )


@st.composite
def tables(draw: st.DrawFn, scenario: Scenario, n_items: int = 3, *, missing: bool = False) -> list[dict[str, Any]]:
    """A table of verdicts as records in random order: ``item``, one column per facet, ``repeat``, ``verdict``.

    Verdicts are the letters A, B, C ...; a missing call has no row.
    """
    cells = scenario.design.shape
    rows: list[dict[str, Any]] = []
    for item in range(n_items):
        codes = draw(verdicts(cells, scenario.n_classes, scenario.repeats, missing=missing))
        for index in np.ndindex(codes.shape):
            if codes[index] >= 0:
                levels = {name: f"{name}{level}" for name, level in zip(scenario.design.names, index, strict=False)}
                verdict = chr(ord("A") + int(codes[index]))
                rows.append({"item": f"item{item}", **levels, "repeat": str(index[-1]), "verdict": verdict})
    order = draw(st.randoms(use_true_random=False))
    order.shuffle(rows)
    return rows


@st.composite
def cubes(draw: st.DrawFn, scenario: Scenario, n_items: int = 3, *, missing: bool = False) -> xr.Dataset:
    """A response-law cube made of :func:`tables`, with the facets, weights and kinds of the scenario's design.

    Every class is declared, whether it occurs or not.
    """
    # The cube needs xarray and pandas, which the other strategies do without.
    from secondorder import Facet, make_cube

    design = scenario.design
    facets = []
    for name, weights, population in zip(design.names, design.weights, design.populations, strict=True):
        if population is None:
            facets.append(Facet(name, weights={f"{name}{k}": float(weight) for k, weight in enumerate(weights)}))
        else:
            facets.append(Facet(name, "random", population=None if math.isinf(population) else int(population)))
    rows = draw(tables(scenario, n_items, missing=missing))
    classes = [chr(ord("A") + code) for code in range(scenario.n_classes)]
    return make_cube(rows, item="item", facets=facets, repeat="repeat", verdict="verdict", classes=classes)


@st.composite
def _integers(draw: st.DrawFn, size: int, low: int, high: int) -> np.ndarray:
    return np.array(draw(st.lists(st.integers(low, high), min_size=size, max_size=size)), dtype=np.int64)
