"""From a block of verdict codes to debiased and plug-in values of every item, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from secondorder._design import Component, Design
from secondorder._statistics._settings import Pairs
from secondorder.core._balanced import balanced_pairs, is_worth_unrolling
from secondorder.core._cells import cells_from_codes, cells_from_soft
from secondorder.core._estimates import across_repeats, complete_pairs, panel, plugin
from secondorder.core._precision import double_precision

__all__ = ["ItemValues", "item_values", "soft_item_values"]

Floats = NDArray[np.float64]
BLOCK_BYTES = 1 << 27
ONE_CALL = "one call per cell: call noise is not identifiable; R >= 2 is needed"
ONE_SOFT = (
    "one soft verdict per cell: the plug-in is exact where it is the law of the cell, inflated where it is a draw (a "
    "reason was sampled before); R >= 2 is needed for an estimate"
)
NO_CALL = "no call has a verdict"
UNEQUAL = "the panel estimator needs the same repeats in every cell, and some calls are missing"


class ItemValues(NamedTuple):
    """Debiased and plug-in value per item and component; why a debiased one is undefined."""

    debiased: Floats
    plugin: Floats
    reasons: tuple[str, ...]
    notes: tuple[str, ...]


def item_values(
    codes: NDArray[Any], design: Design, components: tuple[Component, ...], kernel: Floats, pairs: Pairs
) -> ItemValues:
    """Values of every item from hard verdicts.

    Parameters
    ----------
    codes : array of int, shape (N, L_1, ..., L_J, R)
        Class codes by planned repeat, -1 where there is no verdict; every cell holds at least two verdicts, or no
        cell holds more than one.
    design, components, kernel
        As for the core.
    pairs : {"complete", "across-repeats", "panel"}

    Returns
    -------
    ItemValues
        Arrays of shape (N, n_components).
    """
    n_classes = len(kernel)
    present = codes >= 0
    most = int(present.sum(-1).max(initial=0))
    if most <= 1:
        plain = _blocks(codes, n_classes, lambda block: _plugin(block, design, components, kernel))
        return _undefined(plain, ONE_CALL if most else NO_CALL)
    nothing = ("",) * len(components)
    if pairs == "complete":
        if is_worth_unrolling(codes, design, n_classes):
            debiased, plain = (np.asarray(values).T for values in balanced_pairs(codes, design, components, kernel))
            return ItemValues(debiased, plain, nothing, ())
        both = _blocks(
            codes,
            n_classes,
            lambda block: np.concatenate(
                [_complete(block, design, components, kernel), _plugin(block, design, components, kernel)], axis=-1
            ),
        )
        return ItemValues(both[:, : len(components)], both[:, len(components) :], nothing, ())
    plain = _blocks(codes, n_classes, lambda block: _plugin(block, design, components, kernel))
    if pairs == "across-repeats":
        debiased = _blocks(
            codes,
            n_classes,
            lambda block: np.asarray(across_repeats(_one_hot(block, n_classes), design, components, kernel)),
        )
        return ItemValues(debiased, plain, nothing, ())
    if not present.all():
        return _undefined(plain, UNEQUAL)
    debiased = _blocks(
        codes, n_classes, lambda block: np.asarray(panel(_one_hot(block, n_classes), design, components, kernel))
    )
    return ItemValues(debiased, plain, nothing, _left_over(codes.shape[-1]))


def soft_item_values(
    verdicts: Floats, design: Design, components: tuple[Component, ...], kernel: Floats, pairs: Pairs
) -> ItemValues:
    """Values of every item from soft verdicts ``(N, L_1, ..., L_J, R, C)``: probability vectors, NaN where missing."""
    with double_precision():
        cells = jax.tree.map(np.asarray, cells_from_soft(verdicts, kernel))
    plain = np.asarray(plugin(cells, design, components, kernel))
    nothing = ("",) * len(components)
    if cells.n.max() <= 1:
        return _undefined(plain, ONE_SOFT if cells.n.max() else NO_CALL)
    if pairs == "complete":
        return ItemValues(np.asarray(complete_pairs(cells, design, components, kernel)), plain, nothing, ())
    if pairs == "across-repeats":
        return ItemValues(np.asarray(across_repeats(verdicts, design, components, kernel)), plain, nothing, ())
    if np.isnan(verdicts).any():
        return _undefined(plain, UNEQUAL)
    debiased = np.asarray(panel(verdicts, design, components, kernel))
    return ItemValues(debiased, plain, nothing, _left_over(verdicts.shape[-2]))


def _undefined(plain: Floats, reason: str) -> ItemValues:
    return ItemValues(np.full_like(plain, np.nan), plain, (reason,) * plain.shape[-1], ())


def _left_over(repeats: int) -> tuple[str, ...]:
    return (f"panel of {repeats // 2} pairs: the last repeat of {repeats} is left over",) if repeats % 2 else ()


def _complete(codes: NDArray[Any], design: Design, components: tuple[Component, ...], kernel: Floats) -> Floats:
    with double_precision():
        return np.asarray(complete_pairs(cells_from_codes(codes, len(kernel)), design, components, kernel))


def _plugin(codes: NDArray[Any], design: Design, components: tuple[Component, ...], kernel: Floats) -> Floats:
    with double_precision():
        return np.asarray(plugin(cells_from_codes(codes, len(kernel)), design, components, kernel))


def _one_hot(codes: NDArray[Any], n_classes: int) -> Floats:
    # Row -1 of the table is the missing call.
    table = np.vstack([np.eye(n_classes), np.full(n_classes, np.nan)])
    return np.asarray(table[codes])


def _blocks(codes: NDArray[Any], n_classes: int, function: Callable[[NDArray[Any]], Floats]) -> Floats:
    """Apply `function` to blocks of items of one size, so that memory is bounded and one compilation serves all."""
    per_item = max(1, int(np.prod(codes.shape[1:]))) * n_classes * 8
    size = max(1, BLOCK_BYTES // per_item)
    if len(codes) <= size:
        return function(codes)
    results = []
    for start in range(0, len(codes), size):
        block = codes[start : start + size]
        short = size - len(block)
        if short:
            block = np.concatenate([block, np.repeat(block[-1:], short, axis=0)])
        results.append(function(block)[: size - short])
    return np.concatenate(results)
