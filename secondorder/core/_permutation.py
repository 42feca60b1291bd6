"""Permutation tests: calls, labels or whole levels shuffled so that one facet cannot have an effect.

================================================  =====================  ==============================================
hypothesis                                        shuffled               statistic
================================================  =====================  ==============================================
no effect of the facet, main or interaction       calls, across its      complete pairs: main effect or an interaction
                                                  levels
the same, calls of one repeat may be dependent    labels of its levels,  across repeats
                                                  within each repeat
no effect on the benchmark, items may differ      whole levels, inside   main effect between distinct items
                                                  each item
================================================  =====================  ==============================================

Under each hypothesis every shuffle is as likely as the data, and the debiased statistic has mean exactly zero over
shuffles. The hypothesis "no interaction although there are main effects" has no exact test: use an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondorder._design import Component, Design
from secondorder.core._balanced import balanced_pairs, is_worth_unrolling
from secondorder.core._cells import Cells, cells_from_codes, cells_from_soft
from secondorder.core._estimates import across_repeats, complete_pairs, complete_pairs_from, plugin
from secondorder.errors import DesignError

__all__ = [
    "PermutationTest",
    "Shuffled",
    "permutation_test",
    "relabelling_test",
    "shuffles",
]

Floats = NDArray[np.float64]
Shuffled = Literal["calls", "labels"]

# Calls shuffled at once: the working memory is some fifty bytes for each.
CALLS_PER_BLOCK = 1 << 20
# Shuffled calls up to which plain array operations end before a program is compiled.
FEW_CALLS = 10_000_000
# The lower bits of a sort key hold what is shuffled, the upper 48 are random.
PAYLOAD_BITS = 16
TIES = 1e-9


class PermutationTest(NamedTuple):
    """Observed statistics with their shares of shuffles at least as large.

    Attributes
    ----------
    items : array, shape (N, M)
        Statistic of each item; for a relabelling test, which has no items' statistics, of shape (0, M).
    item_pvalues : array, shape (N, M)
        ``(1 + #{T* >= T}) / (B + 1)``, ties counted; NaN where the statistic is undefined.
    estimate, pvalue : array, shape (M,)
        The same for the mean over items.
    draws : array, shape (B, M)
        Mean over items in each shuffle.
    """

    items: Floats
    item_pvalues: Floats
    estimate: Floats
    pvalue: Floats
    draws: Floats


def permutation_test(
    verdicts: ArrayLike,
    design: Design,
    components: tuple[Component, ...],
    kernel: ArrayLike,
    facet: str,
    *,
    seed: int,
    n_draws: int = 999,
    shuffled: Shuffled = "calls",
    together: Sequence[str] = (),
) -> PermutationTest:
    """Test that a facet has no effect, main or interaction, on any item.

    Parameters
    ----------
    verdicts : array, shape (N, L_1, ..., L_J, R) of int, or (N, L_1, ..., L_J, R, C) of float
        Class codes with -1 for a missing call, or soft verdicts with NaN. Missing places stay where they are.
    design : Design
    components : tuple of Component
        Statistics: the facet's effect or any interaction that contains it.
    kernel : array, shape (C, C)
    facet : str
    seed : int
        Not negative.
    n_draws : int
        At least ``N / q - 1`` for the false discovery rate q over N items to be able to reject anything.
    shuffled : {"calls", "labels"}
        ``calls``: all calls of an item that agree on the other facets; needs independent calls; the statistic uses
        complete pairs. ``labels``: the levels' labels within each repeat; anything may happen inside a repeat; the
        statistic is that of across-repeats pairs.
    together : sequence of str
        With ``labels``: facets whose levels get one common relabelling, because they share what levels share.

    Returns
    -------
    PermutationTest

    Raises
    ------
    DesignError
        When the facet is not in the design, or a component is not an effect of it.

    Examples
    --------
    >>> from secondorder._design import standard_components
    >>> design = Design.balanced({"prompt": 2})
    >>> codes = np.array([[[0, 0, 0, 0], [1, 1, 1, 1]]])
    >>> test = permutation_test(codes, design, standard_components(("prompt",))[1:2], 1 - np.eye(2), "prompt", seed=0)
    >>> float(test.estimate[0]), bool(test.pvalue[0] < 0.05)
    (0.5, True)
    """
    _check_effects(design, components, facet)
    matrix = np.asarray(kernel, dtype=np.float64)
    data = np.asarray(verdicts)
    free = [name for name in design.names if name != facet and name not in together]
    order = [*free, *together, facet]
    axes = [design.names.index(name) for name in order]
    inner = _reordered(design, axes)
    # The facet stands last before the repeats: the calls that may change places are neighbours in memory.
    soft = data.ndim == len(design.names) + 3
    data = data.transpose(0, *(1 + j for j in axes), *range(1 + len(axes), data.ndim))
    few = data.size * n_draws <= FEW_CALLS and not soft and int((data >= 0).sum(-1).min()) >= 2
    statistic = _statistic(inner, components, matrix, soft, shuffled, few)
    if shuffled == "calls":
        rows = data.reshape(-1, inner.shape[-1] * data.shape[1 + len(axes)], *data.shape[2 + len(axes) :])

        def restore(values: NDArray[Any]) -> NDArray[Any]:
            return values.reshape(-1, *data.shape[1:])

    else:
        # (item, free, together, level, repeat, ...) to (item, free, repeat, level, together, ...) and back.
        first, joint, last = 1 + len(free), len(together), 1 + len(axes)
        swap = [*range(first), last, last - 1, *range(first, first + joint), *range(last + 1, data.ndim)]
        moved = data.transpose(swap)
        rows = moved.reshape(-1, *moved.shape[first + 1 :])
        back = np.argsort(swap)

        def restore(values: NDArray[Any]) -> NDArray[Any]:
            return values.reshape(-1, *moved.shape[1:]).transpose(back)

    observed = statistic(data)
    items, columns = observed.shape
    # One-hot vectors take a number per class; counts and the whole-number path far less.
    vectors = soft or (shuffled == "labels" and bool((data < 0).any()))
    wide = len(matrix) if vectors else max(1, len(matrix) // 8)
    draws = np.empty((n_draws, columns))
    exceed = np.zeros((items, columns), dtype=np.int64)
    total = np.zeros(columns, dtype=np.int64)
    least = observed - TIES * matrix.max()
    least_mean = observed.mean(0) - TIES * matrix.max()
    for start, block in shuffles(rows, seed, n_draws, wide=wide):
        values = statistic(restore(block)).reshape(-1, items, columns)[: n_draws - start]
        means = values.mean(1)
        draws[start : start + len(values)] = means
        exceed += (values >= least).sum(0)
        total += (means >= least_mean).sum(0)
    return PermutationTest(
        observed,
        _pvalues(exceed, observed, n_draws),
        observed.mean(0),
        _pvalues(total, observed.mean(0), n_draws),
        draws,
    )


def relabelling_test(
    mean: ArrayLike,
    design: Design,
    components: tuple[Component, ...],
    kernel: ArrayLike,
    facet: str,
    *,
    seed: int,
    n_draws: int = 999,
) -> PermutationTest:
    """Test that a facet has no effect on the benchmark as a whole, whatever it does to single items.

    The statistic is the component with the item as a random facet: pairs of calls on distinct items alone. Under the
    hypothesis the levels of the facet are exchangeable inside each item, independently of other items: whole levels,
    with all their calls in all cells, are relabelled item by item.

    Parameters
    ----------
    mean : array, shape (N, L_1, ..., L_J, C)
        Mean verdict vector of every cell; any number of calls, N >= 2.
    design : Design
    components : tuple of Component
        Effects of the facet.
    kernel : array, shape (C, C)
    facet : str
    seed : int
        Not negative.
    n_draws : int

    Returns
    -------
    PermutationTest
        Without items: the statistic belongs to the benchmark.
    """
    _check_effects(design, components, facet)
    matrix = np.asarray(kernel, dtype=np.float64)
    axis = 1 + design.names.index(facet)
    means = np.moveaxis(np.asarray(mean, dtype=np.float64), axis, 1)
    inner = _reordered(design, [axis - 1, *(j for j in range(len(design.names)) if j != axis - 1)])
    items, levels = means.shape[:2]
    own = _at_means(means, inner, components, matrix)
    estimate = _distinct_items(_at_means(means.mean(0), inner, components, matrix), own.mean(0), items)
    # With equal weights, names do not matter to the pairs inside one item.
    alike = len(set(inner.weights[0])) == 1
    draws = np.empty((n_draws, len(components)))
    pool = means.reshape(items * levels, -1)
    place = np.tile(np.arange(levels), (items, 1))
    for start, order in shuffles(place, seed, n_draws, wide=1 if alike else pool.shape[1]):
        chosen = order + levels * np.arange(items)[:, None]
        average = _means_of(chosen, pool).reshape(-1, *means.shape[1:])
        if not alike:
            moved = pool[chosen].reshape(-1, *means.shape)
            own = _at_means(moved, inner, components, matrix).swapaxes(0, 1)
        both = _at_means(average, inner, components, matrix)
        draws[start : start + len(both)] = _distinct_items(both, own.mean(0), items)[: n_draws - start]
    total = (draws >= estimate - TIES * matrix.max()).sum(0)
    nothing = np.empty((0, len(components)))
    return PermutationTest(nothing, nothing, estimate, _pvalues(total, estimate, n_draws), draws)


def _reordered(design: Design, axes: Sequence[int]) -> Design:
    return Design(
        tuple(design.names[j] for j in axes),
        tuple(design.weights[j] for j in axes),
        tuple(design.populations[j] for j in axes),
    )


def _check_effects(design: Design, components: Sequence[Component], facet: str) -> None:
    if facet not in design.names:
        raise DesignError(
            f"facet {facet!r} is not in the design",
            place="permutation test",
            remedy=f"facets: {', '.join(design.names)}",
        )
    bit = design.mask((facet,))
    for component in components:
        values = component.coefficients(design)
        if any(abs(values[mask] + values[mask | bit]) > 1e-12 for mask in range(len(values)) if not mask & bit):
            raise DesignError(
                f"{component.name!r} does not vanish without an effect of {facet!r}",
                place="permutation test",
                remedy=f"test {facet!r} or an interaction that contains it",
            )


def _statistic(
    design: Design, components: tuple[Component, ...], kernel: Floats, soft: bool, shuffled: Shuffled, few: bool
) -> Callable[[NDArray[Any]], Floats]:
    classes = len(kernel)

    def across(verdicts: NDArray[Any]) -> Floats:
        if not soft and is_worth_unrolling(verdicts, design, classes):
            # Pairs of distinct repeats: the repeat as one more sampled facet, with one call in a cell.
            repeats = verdicts.shape[-1]
            crossed = Design(
                (*design.names, "repeat"),
                (*design.weights, (1 / repeats,) * repeats),
                (*design.populations, math.inf),
            )
            return np.asarray(balanced_pairs(verdicts[..., None], crossed, components, kernel)[1]).T
        vectors = verdicts if soft else np.vstack([np.eye(classes), np.full(classes, np.nan)])[verdicts]
        return np.asarray(across_repeats(vectors, design, components, kernel))

    def complete(verdicts: NDArray[Any]) -> Floats:
        if soft:
            return np.asarray(complete_pairs(cells_from_soft(verdicts, kernel), design, components, kernel))
        if is_worth_unrolling(verdicts, design, classes):
            return np.asarray(balanced_pairs(verdicts, design, components, kernel)[0]).T
        return np.asarray(complete_pairs(cells_from_codes(verdicts, classes), design, components, kernel))

    def plain(verdicts: NDArray[Any]) -> Floats:
        counts = np.stack([(verdicts == code).sum(-1) for code in range(classes)], axis=-1).astype(np.float64)
        n = counts.sum(-1)
        values = complete_pairs_from(n, counts / n[..., None], np.zeros(n.shape), design, components, kernel)
        return np.stack(values, axis=-1)

    if shuffled == "labels":
        return across
    return plain if few else complete


def shuffles(rows: NDArray[Any], seed: int, n_draws: int, wide: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Blocks of independent shuffles of every row along its second axis, as ``(first draw, (draws, *rows.shape))``.

    Numbers with random upper bits and the shuffled thing in the lower ones are sorted: vectorised sorting makes that
    the fastest exact way (two keys of a row are equal with a chance of 2**-48). Missing entries keep their place.
    """
    whole = rows.ndim > 2
    missing = (rows < 0 if rows.dtype.kind == "i" else np.isnan(rows)).reshape(*rows.shape[:2], -1).any(-1)
    width = rows.shape[1]
    payload = np.broadcast_to(np.arange(width), missing.shape) if whole else np.where(missing, 0, rows)
    payload = payload.astype(np.uint64)
    rank = np.where(missing, 0, np.cumsum(~missing, axis=1) - 1)
    block = min(max(1, CALLS_PER_BLOCK // (rows.size * wide)), n_draws)
    for number in range(-(-n_draws // block)):
        random = np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, number])))
        keys = random.integers(1 << (64 - PAYLOAD_BITS), size=(block, *missing.shape), dtype=np.uint64)
        keys <<= np.uint64(PAYLOAD_BITS)
        keys |= payload
        if missing.any():
            keys[:, missing] = np.iinfo(np.uint64).max
        keys.sort(axis=-1)
        keys &= np.uint64((1 << PAYLOAD_BITS) - 1)
        picked = keys.astype(np.int64 if whole else rows.dtype)
        if missing.any():
            picked = np.take_along_axis(picked, rank[None], axis=2)
            picked[:, missing] = np.broadcast_to(np.arange(width), missing.shape)[missing] if whole else -1
        if whole:
            index = picked.reshape(*picked.shape, *(1 for _ in rows.shape[2:]))
            picked = np.take_along_axis(rows[None], index, axis=2)
        yield number * block, picked


def _pvalues(exceed: NDArray[np.int64], observed: Floats, n_draws: int) -> Floats:
    return np.where(np.isnan(observed), np.nan, (1 + exceed) / (n_draws + 1))


def _at_means(means: Floats, design: Design, components: tuple[Component, ...], kernel: Floats) -> Floats:
    ones = np.ones(means.shape[:-1])
    return np.asarray(plugin(Cells(ones, means, ones), design, components, kernel))


def _distinct_items(whole: Floats, own: Floats, items: int) -> Floats:
    """From values at the mean over items and within items: the mean over ordered pairs of distinct items."""
    return (items * whole - own) / (items - 1)


def _means_of(chosen: NDArray[np.int64], pool: Floats) -> Floats:
    """Mean over items of the rows of the pool that each draw puts on each level, ``(draws, levels, width)``."""
    from scipy.sparse import csr_array

    draws, items, levels = chosen.shape
    columns = chosen.swapaxes(1, 2).reshape(-1)
    pointers = np.arange(0, len(columns) + 1, items)
    select = csr_array((np.full(len(columns), 1 / items), columns, pointers), shape=(draws * levels, len(pool)))
    means: Floats = (select @ pool).reshape(draws, levels, -1)
    return means
