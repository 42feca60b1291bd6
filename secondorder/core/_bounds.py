"""The range that one item's debiased component can have, proven from the design, the kernel and the numbers of calls.

For a kernel of negative type ``debiased = plug-in - sum_f b_f q_f / (n_f - 1)`` with a plug-in that is never negative:
the least value is met when all cells show the same, most spread counts. The debiased value is jointly convex in the
cells' shares, so the greatest is met when every cell is certain, where it is at most the spread of levels that each
name one class.
"""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondorder._design import Component, Design
from secondorder.core._kernels import RELATIVE_TOLERANCE, negative_type_gap

__all__ = ["Bounds", "item_bounds", "largest_disagreement", "largest_disagreement_of_counts"]

Floats = NDArray[np.float64]

# Enumerations longer than this give way to the bound over all laws, which is never smaller.
LONGEST = 100_000


class Bounds(NamedTuple):
    """Closed interval; infinite ends do not occur."""

    lower: float
    upper: float

    def scaled(self, factor: float) -> Bounds:
        """The interval times a number of any sign."""
        ends = (self.lower * factor, self.upper * factor)
        return Bounds(min(ends), max(ends))


def item_bounds(
    design: Design,
    component: Component,
    kernel: ArrayLike,
    n: ArrayLike,
    *,
    pairs: Literal["complete", "across"] = "complete",
    soft: bool = False,
) -> Bounds:
    """Bounds of the debiased value of one item.

    Parameters
    ----------
    design : Design
    component : Component
        A component that is not one of the standard ones gets the bounds of its signed sum of disagreements.
    kernel : array, shape (C, C)
        One that is not of negative type gets these wider bounds too.
    n : array, broadcastable to (L_1, ..., L_J)
        Calls per cell, at least 2: of the item that has fewest.
    pairs : {"complete", "across"}
        The estimator; ``across`` needs the same n in all cells.
    soft : bool
        Whether verdicts are probability vectors.

    Returns
    -------
    Bounds
        Attained for fixed facets and complete pairs of hard verdicts; valid, not always tight, otherwise.

    Examples
    --------
    >>> from secondorder._design import standard_components
    >>> design = Design.balanced({"prompt": 6, "order": 2})
    >>> prompt = standard_components(design.names)[1]
    >>> [round(end, 4) for end in item_bounds(design, prompt, 1 - np.eye(4), 4)]
    [-0.1042, 0.7222]
    """
    matrix = np.asarray(kernel, dtype=np.float64)
    calls = np.broadcast_to(np.asarray(n, dtype=np.int64), design.shape)
    top = float(matrix.max())
    weights = [float(value) for value in component.coefficients(design)]
    # Every D_S is a mean of disagreements of distinct calls, whatever the kernel.
    plain = Bounds(top * sum(min(w, 0.0) for w in weights), top * sum(max(w, 0.0) for w in weights))
    products = component.products(design)
    kinds = products[0][1] if len(products) == 1 else ()
    if not kinds or products[0][0] != (-1 if "effect" in kinds else 1):
        return plain
    if negative_type_gap(matrix) < -RELATIVE_TOLERANCE * top:
        return plain
    if pairs == "across" and calls.min() != calls.max():
        return plain
    if "effect" in kinds:
        effect = tuple(j for j, kind in enumerate(kinds) if kind == "effect")
        proven = _policy_bounds(design, effect, matrix, calls, pairs, soft)
    elif "indep" not in kinds:
        largest = {m: _spread(matrix, m, soft) * m / (m - 1) for m in np.unique(calls).tolist()}
        proven = Bounds(0.0, float((_cell_weights(design) * np.vectorize(largest.__getitem__)(calls)).sum()))
    else:
        proven = plain
    return Bounds(max(plain.lower, proven.lower), min(plain.upper, proven.upper))


def largest_disagreement(kernel: ArrayLike) -> float:
    """``max p'Dp`` over all laws p, for a kernel of negative type: ``1 - 1/C`` for the nominal one.

    The form is concave over laws. The returned number is an upper bound within ``1e-12`` of the maximum, by duality.

    Examples
    --------
    >>> round(largest_disagreement(1 - np.eye(4)), 12)
    0.75
    """
    matrix = np.asarray(kernel, dtype=np.float64)
    law = np.full(len(matrix), 1.0 / len(matrix))
    tolerance = RELATIVE_TOLERANCE * float(matrix.max())
    bound = float(matrix.max())
    for _ in range(10_000):
        reach = matrix @ law
        # At any law: max <= 2 max_c (Dp)_c - p'Dp.
        bound = min(bound, 2 * float(reach.max()) - float(law @ reach))
        worst = np.where(law > 0, reach, np.inf)
        gain, loss = int(reach.argmax()), int(worst.argmin())
        if reach[gain] - worst[loss] <= tolerance:
            break
        # Move mass from the worst class to the best one, as far as pays or as there is.
        step = (reach[gain] - worst[loss]) / (2 * matrix[gain, loss])
        if step >= law[loss]:
            law[gain] += law[loss]
            law[loss] = 0.0
        else:
            law[gain] += step
            law[loss] -= step
    return bound


def largest_disagreement_of_counts(kernel: ArrayLike, calls: int) -> float:
    """``max y'Dy / calls**2`` over the counts of that many calls, or the bound over laws where counts are too many.

    Examples
    --------
    >>> largest_disagreement_of_counts(1 - np.eye(4), 2)
    0.5
    """
    matrix = np.asarray(kernel, dtype=np.float64)
    classes = len(matrix)
    if (matrix == 1 - np.eye(classes)).all():
        even, rest = divmod(calls, classes)
        return 1 - (rest * (even + 1) ** 2 + (classes - rest) * even**2) / calls**2
    if math.comb(calls + classes - 1, classes - 1) > LONGEST:
        return largest_disagreement(matrix)
    chosen = np.array(list(combinations_with_replacement(range(classes), calls)))
    counts = (chosen[:, :, None] == np.arange(classes)).sum(1)
    return float(((counts @ matrix) * counts).sum(1).max()) / calls**2


def _policy_bounds(
    design: Design,
    effect: tuple[int, ...],
    kernel: Floats,
    calls: NDArray[np.int64],
    pairs: str,
    soft: bool,
) -> Bounds:
    """Bounds of an effect from those of the census: a random facet makes it a signed sum of census components."""
    factor = 1.0
    others: list[tuple[int, float]] = []
    for j, population in enumerate(design.populations):
        if population is None:
            continue
        size = len(design.weights[j])
        same = 0.0 if math.isinf(population) else 1.0 / float(population)
        if j in effect:
            factor *= (1 - same) * size / (size - 1)
        else:
            others.append((j, same - (1 - same) / (size - 1)))
    lower = upper = 0.0
    for used in product((False, True), repeat=len(others)):
        extra = tuple(j for (j, _), take in zip(others, used, strict=True) if take)
        weight = math.prod((value for (_, value), take in zip(others, used, strict=True) if take), start=factor)
        part = _census_bounds(design, (*effect, *extra), kernel, calls, pairs, soft).scaled(weight)
        lower, upper = lower + part.lower, upper + part.upper
    return Bounds(lower, upper)


def _census_bounds(
    design: Design,
    effect: tuple[int, ...],
    kernel: Floats,
    calls: NDArray[np.int64],
    pairs: str,
    soft: bool,
) -> Bounds:
    upper = min(_spread_of_levels(kernel, design.weights[j]) for j in effect)
    if pairs == "across":
        return Bounds(-upper / (int(calls.flat[0]) - 1), upper)
    own: Any = np.ones(())
    for j, level_weights in enumerate(design.weights):
        w = np.array([float(weight) for weight in level_weights])
        own = np.multiply.outer(own, w * (1 - w) if j in effect else w**2)
    noise = {m: _spread(kernel, m, soft) / (m - 1) for m in np.unique(calls).tolist()}
    return Bounds(-float((own * np.vectorize(noise.__getitem__)(calls)).sum()), upper)


def _spread(kernel: Floats, calls: int, soft: bool) -> float:
    return largest_disagreement(kernel) if soft else largest_disagreement_of_counts(kernel, calls)


def _spread_of_levels(kernel: Floats, weights: tuple[Any, ...]) -> float:
    """``max sum w_l w_m D(c_l, c_m)`` over all ways to give each level one class."""
    size, classes = len(weights), len(kernel)
    if len(set(weights)) == 1:
        return largest_disagreement_of_counts(kernel, size)
    if classes**size > LONGEST:
        return largest_disagreement(kernel)
    w = np.array([float(weight) for weight in weights])
    named = np.array(list(product(range(classes), repeat=size)))
    shares = (w[None, :, None] * (named[:, :, None] == np.arange(classes))).sum(1)
    return float(((shares @ kernel) * shares).sum(1).max())


def _cell_weights(design: Design) -> Any:
    weights: Any = np.ones(())
    for level_weights in design.weights:
        weights = np.multiply.outer(weights, np.array([float(weight) for weight in level_weights]))
    return weights
