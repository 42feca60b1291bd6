"""The definitions, computed by brute force in fractions: every pair of cells, every pair of calls, every class.

This file shares no line with the estimators that it judges: it imports neither the array code nor JAX, knows no
shortcut, and is as slow as a definition may be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any, Literal

import numpy as np

from secondorder._design import Component, Design
from secondorder.errors import InputError, UndefinedError
from secondorder.testing._exact import as_fractions, exact_number

__all__ = ["oracle_estimate", "oracle_negative_component", "oracle_truth"]

Pairs = Literal["complete", "across-repeats", "plug-in", "panel"]
Cell = tuple[int, ...]


def oracle_truth(law: Any, design: Design, kernel: Any, *, components: Sequence[Component] = ()) -> dict[str, Fraction]:
    """Every component of known response laws, from the definition.

    ``D_S`` is the expected disagreement of two calls that share the levels of the facets in S and draw the levels of
    the others independently: for a fixed facet by its weights, for a random one as two different levels of the sample
    (or, from a list of M, the same level with probability 1/M). The component of a set T of facets is
    ``-sum over S in T of (-1)**(|T| - |S|) D_S``.

    Parameters
    ----------
    law : array_like, shape (L_1, ..., L_J, C)
        Class probabilities of every cell of one item.
    design : Design
        Facets; see :func:`exact_design`.
    kernel : array_like, shape (C, C)
    components : sequence of Component, optional
        Declared components, added to the standard ones.

    Returns
    -------
    dict of str to Fraction
        ``call``, each facet, each interaction (names joined by ``:``), ``total``, then the declared ones.

    Examples
    --------
    >>> from secondorder.testing import exact_design
    >>> truth = oracle_truth([["1/2", "1/2"], [1, 0]], exact_design({"prompt": 2}), [[0, 1], [1, 0]])
    >>> {name: str(value) for name, value in truth.items()}
    {'call': '1/4', 'prompt': '1/8', 'total': '3/8'}
    """
    laws, distance = _shaped(law, design, kernel)

    def disagreement(first: Cell, second: Cell) -> Fraction:
        return _bilinear(laws[first], distance, laws[second])

    return _components(disagreement, design, components)


def oracle_estimate(
    verdicts: Any, design: Design, kernel: Any, *, pairs: Pairs = "complete", components: Sequence[Component] = ()
) -> dict[str, Fraction]:
    """Every component estimated from the calls of one item, from the definition: means over pairs of calls.

    Parameters
    ----------
    verdicts : array_like, shape (L_1, ..., L_J, R) or (L_1, ..., L_J, R, C)
        Class codes by repeat index, -1 where there is no call; or verdict vectors, a row of None or NaN where there is
        none.
    design : Design
    kernel : array_like, shape (C, C)
    pairs : {"complete", "across-repeats", "plug-in", "panel"}
        Which pairs of calls count: all pairs of distinct calls; pairs with different repeat index; all pairs, a call
        with itself too; or the mean of the complete estimates from repeats (0, 1), (2, 3), ...
    components : sequence of Component, optional
        Declared components, added to the standard ones.

    Raises
    ------
    UndefinedError
        When a pair of cells that counts has no pair of calls.

    Examples
    --------
    >>> from secondorder.testing import exact_design
    >>> design = exact_design({"prompt": 2})
    >>> found = oracle_estimate([[0, 1, 1], [1, 1, -1]], design, [[0, 1], [1, 0]])
    >>> {name: str(value) for name, value in found.items()}
    {'call': '1/3', 'prompt': '0', 'total': '1/3'}
    """
    distance = as_fractions(kernel)
    calls = _calls(verdicts, design, len(distance))
    if pairs == "panel":
        repeats = 1 + max(index for cell in calls.values() for index in cell)
        halves = [
            {key: {r: v for r, v in cell.items() if r // 2 == half} for key, cell in calls.items()}
            for half in range(repeats // 2)
        ]
        if not halves:
            raise UndefinedError("one repeat holds no pair", place="panel", remedy="give at least two repeats")
        values = [_components(_pair_mean(half, distance, "complete"), design, components) for half in halves]
        return {name: sum((value[name] for value in values), Fraction(0)) / len(values) for name in values[0]}
    return _components(_pair_mean(calls, distance, pairs), design, components)


def oracle_negative_component(kernel: Any, *, denominator: int = 4) -> tuple[np.ndarray, np.ndarray] | None:
    """Two laws between which a two-level facet has a negative component, or None when the search finds none.

    A kernel of negative type has no such pair. The search is exhaustive over laws whose probabilities are multiples of
    ``1/denominator``, so None is a proof only up to that grid.

    Parameters
    ----------
    kernel : array_like, shape (C, C)
    denominator : int
        Fineness of the grid; C = 4 with 4 means 35 laws.

    Examples
    --------
    A tolerance kernel calls neighbours equal. Two prompts, one of which gives the middle of a three-point scale and
    the other both ends evenly, then differ by less than nothing:

    >>> first, second = oracle_negative_component([[0, 0, 1], [0, 0, 0], [1, 0, 0]], denominator=2)
    >>> [str(p) for p in first], [str(p) for p in second]
    (['0', '1', '0'], ['1/2', '0', '1/2'])
    >>> oracle_negative_component([[0, 1, 1], [1, 0, 1], [1, 1, 0]]) is None
    True
    """
    distance = as_fractions(kernel)
    size = len(distance)
    scale = math.lcm(*(value.denominator for value in distance.ravel()))
    whole = np.array([[int(value * scale) for value in row] for row in distance], dtype=object)
    laws = [np.array(law) for law in product(range(denominator + 1), repeat=size) if sum(law) == denominator]
    for first, second in combinations(laws, 2):
        step = (first - second).astype(object)
        # -step' D step / 4 is the component of two equal levels at these laws.
        if step @ whole @ step > 0:
            return as_fractions(first) / denominator, as_fractions(second) / denominator
    return None


def _components(
    disagreement: Callable[[Cell, Cell], Fraction], design: Design, declared: Sequence[Component]
) -> dict[str, Fraction]:
    table: dict[tuple[Cell, Cell], Fraction] = {}
    cells = list(product(*(range(size) for size in design.shape)))

    def mean(shared: frozenset[str]) -> Fraction:
        total = Fraction(0)
        for first, second in product(cells, repeat=2):
            weight = _pair_weight(first, second, shared, design)
            if weight:
                if (first, second) not in table:
                    table[first, second] = disagreement(first, second)
                total += weight * table[first, second]
        return total

    names = design.names
    subsets = [frozenset(chosen) for size in range(len(names) + 1) for chosen in combinations(names, size)]
    means = {subset: mean(subset) for subset in subsets}
    found = {"call": means[frozenset(names)]}
    for subset in subsets[1:]:
        inner = chain.from_iterable(combinations(subset, size) for size in range(len(subset) + 1))
        terms = [(-1) ** (len(subset) - len(chosen)) * means[frozenset(chosen)] for chosen in inner]
        found[":".join(name for name in names if name in subset)] = -sum(terms, Fraction(0))
    found["total"] = means[frozenset()]
    for component in declared:
        parts = [exact_number(factor) * means[frozenset(shared)] for shared, factor in component.terms]
        found[component.name] = sum(parts, Fraction(0))
    return found


def _pair_weight(first: Cell, second: Cell, shared: frozenset[str], design: Design) -> Fraction:
    """Probability that two calls fall on these two cells."""
    result = Fraction(1)
    for name, level, other, weights, population in zip(
        design.names, first, second, design.weights, design.populations, strict=True
    ):
        size = len(weights)
        if population is None:
            first_weight, second_weight = exact_number(weights[level]), exact_number(weights[other])
        else:
            first_weight = second_weight = Fraction(1, size)
        if name in shared:
            result *= first_weight if level == other else 0
        elif population is None:
            result *= first_weight * second_weight
        else:
            again = Fraction(0) if math.isinf(population) else 1 / exact_number(population)
            result *= again * first_weight if level == other else (1 - again) * first_weight * Fraction(1, size - 1)
        if not result:
            break
    return result


def _pair_mean(
    calls: dict[Cell, dict[int, list[Fraction]]], distance: np.ndarray, pairs: str
) -> Callable[[Cell, Cell], Fraction]:
    def allowed(first: Cell, r: int, second: Cell, q: int) -> bool:
        if pairs == "plug-in":
            return True
        return r != q if pairs == "across-repeats" else (first, r) != (second, q)

    def disagreement(first: Cell, second: Cell) -> Fraction:
        values = [
            _bilinear(v, distance, w)
            for (r, v), (q, w) in product(calls[first].items(), calls[second].items())
            if allowed(first, r, second, q)
        ]
        if not values:
            raise UndefinedError(
                f"cells {first} and {second} have {len(calls[first])} and {len(calls[second])} calls and no pair",
                place=f"pairs {pairs!r}",
                remedy="give every cell at least two calls with repeat indices that can be paired",
            )
        return sum(values, Fraction(0)) / len(values)

    return disagreement


def _bilinear(left: Sequence[Fraction], distance: np.ndarray, right: Sequence[Fraction]) -> Fraction:
    total = Fraction(0)
    for i, p in enumerate(left):
        if p:
            total += p * sum((distance[i, j] * q for j, q in enumerate(right) if q), Fraction(0))
    return total


def _calls(verdicts: Any, design: Design, classes: int) -> dict[Cell, dict[int, list[Fraction]]]:
    """Verdict vector of every call that took place, by cell and repeat index."""
    array = np.asarray(verdicts, dtype=object)
    cells = len(design.names)
    if array.shape[:cells] != design.shape or array.ndim not in (cells + 1, cells + 2):
        raise InputError(
            f"verdicts of shape {array.shape} for facets of shape {design.shape}",
            place="oracle_estimate",
            remedy="give (*facets, repeat) class codes or (*facets, repeat, class) verdict vectors",
        )
    found: dict[Cell, dict[int, list[Fraction]]] = {}
    for cell in product(*(range(size) for size in design.shape)):
        found[cell] = {}
        for r, verdict in enumerate(array[cell]):
            if array.ndim == cells + 1:
                if verdict >= 0:
                    found[cell][r] = [Fraction(int(code == verdict)) for code in range(classes)]
            elif not any(share is None or share != share for share in verdict):
                found[cell][r] = [exact_number(share) for share in verdict]
    return found


def _shaped(law: Any, design: Design, kernel: Any) -> tuple[np.ndarray, np.ndarray]:
    laws, distance = as_fractions(law), as_fractions(kernel)
    classes = len(distance)
    if laws.shape != (*design.shape, classes):
        raise InputError(
            f"law of shape {laws.shape}, not {(*design.shape, classes)}",
            place="oracle_truth",
            remedy="give one law per cell, the class as last axis",
        )
    return laws, distance
