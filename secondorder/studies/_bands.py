"""Item bootstrap of statistics that are functions of sums over items, and the bands read off its draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondorder._statistics._checked import MOST_DRAWS, whole
from secondorder.errors import InputError
from secondorder.studies._disagreement import Array

__all__ = ["Band", "alone", "band", "check_draws", "item_draws", "resampled_blocks", "resampled_sums"]

CHUNK = 4_000_000  # draw counts held at a time: 32 MB
ALONE = "no draw has a value: one item is alone in its stratum, and nothing says how it varies"
NO_SPREAD = "every draw gives the same value: the items show no variation to make a band of"


class Band(NamedTuple):
    """What the draws say of one number.

    Attributes
    ----------
    se : float
        Standard deviation of the defined draws.
    lower, upper : float
        Percentiles of the defined draws (linear interpolation).
    undefined : int
        Draws in which the number does not exist; they are in neither the band nor the standard error.
    reason : str
        Why there is no band; empty when there is one.
    """

    se: float
    lower: float
    upper: float
    undefined: int
    reason: str = ""


def check_draws(*, level: Any, draws: Any, seed: Any) -> None:
    """Refuse a level outside (0, 1), numbers of draws that are negative or without end, and what is no seed."""
    if not isinstance(level, float | int) or not 0 < level < 1:
        raise InputError(f"level={level}", place="level", remedy="give a number between 0 and 1, such as 0.95")
    whole(draws, "draws", most=MOST_DRAWS, remedy="give 0 (no bands) or more")
    whole(seed, "seed")


def alone(n_items: int, strata: NDArray[np.int64] | None) -> NDArray[np.bool_]:
    """Items that are the only one of their stratum: every draw holds them once, so that no draw says how they vary."""
    if strata is None:
        return np.zeros(n_items, dtype=bool)
    _, place, size = np.unique(strata, return_inverse=True, return_counts=True)
    return np.asarray(size[place] == 1)


def _strata_members(n_items: int, strata: NDArray[np.int64] | None) -> list[NDArray[np.int64]]:
    if strata is None:
        return [np.arange(n_items)]
    return [np.flatnonzero(strata == label) for label in np.unique(strata)]


def item_draws(
    n_items: int, *, draws: int, seed: int, strata: NDArray[np.int64] | None = None, width: int = 0
) -> Iterator[Array]:
    """How often each item is drawn, in blocks of draws: arrays of shape (block, items), `draws` rows in all.

    Items are drawn with replacement within strata, whose sizes are kept. The same seed, number of items and strata
    give the same draws, so that statistics of different judges on the same items are resampled jointly. What an item
    adds to that is :func:`alone` in its stratum has no draws. Blocks are small enough for `width` numbers per draw.
    """
    rng = np.random.default_rng(seed)
    members = _strata_members(n_items, strata)
    block = max(1, min(draws, CHUNK // max(n_items, width, 1)))
    for start in range(0, draws, block):
        rows = min(block, draws - start)
        counts = np.empty((rows, n_items))
        for row in range(rows):
            for inside in members:
                picked = rng.integers(0, len(inside), len(inside))
                counts[row, inside] = np.bincount(picked, minlength=len(inside))
        yield counts


def resampled_blocks(
    columns: Array, *, draws: int, seed: int, strata: NDArray[np.int64] | None = None
) -> Iterator[Array]:
    """Sums of `columns` (items, S) over resampled items, in blocks of draws: arrays (block, S), `draws` rows in all.

    Items with equal columns are interchangeable, so where there are few different ones the draws are multinomial over
    these: the same distribution at a fraction of the cost. A sum to which an item adds that is :func:`alone` in its
    stratum is NaN in every draw.
    """
    n_items, width = columns.shape
    fixed = (columns[alone(n_items, strata)] != 0).any(0)
    found = None if width > n_items else _patterns(columns, strata)  # looking for equal rows would cost more
    if found is None:
        for counts in item_draws(n_items, draws=draws, seed=seed, strata=strata, width=width):
            yield np.where(fixed, np.nan, counts @ columns)
        return
    patterns, multiplicity = found
    rng = np.random.default_rng(seed)
    inside = _strata_members(len(patterns), patterns[:, 0].astype(np.int64))
    block = max(1, min(draws, CHUNK // max(len(patterns), width)))
    for start in range(0, draws, block):
        counts = np.empty((min(block, draws - start), len(patterns)))
        for members in inside:
            size = multiplicity[members]
            counts[:, members] = rng.multinomial(size.sum(), size / size.sum(), size=len(counts))
        yield np.where(fixed, np.nan, counts @ patterns[:, 1:])


def resampled_sums(columns: Array, *, draws: int, seed: int, strata: NDArray[np.int64] | None = None) -> Array:
    """The same in one array, (draws, S)."""
    blocks = resampled_blocks(columns, draws=draws, seed=seed, strata=strata)
    return np.concatenate([np.zeros((0, columns.shape[1])), *blocks])


def _patterns(columns: Array, strata: NDArray[np.int64] | None) -> tuple[Array, NDArray[np.int64]] | None:
    """Different (stratum, columns) and how many items have each; None where they are not few."""
    labels = np.zeros(len(columns)) if strata is None else strata.astype(float)
    patterns, multiplicity = _distinct(np.column_stack([labels, columns + 0.0]))  # + 0.0: no negative zeros
    return (patterns, multiplicity) if 8 * len(patterns) <= len(columns) else None


def _distinct(rows: Array) -> tuple[Array, NDArray[np.int64]]:
    # Comparing whole rows as bytes is many times faster than np.unique(axis=0).
    whole = np.ascontiguousarray(rows)
    keys = whole.view(np.dtype((np.void, whole.itemsize * whole.shape[1]))).ravel()
    _, first, multiplicity = np.unique(keys, return_index=True, return_counts=True)
    return whole[first], multiplicity.astype(np.int64)


def band(draws: Array, *, level: float) -> Band:
    """Percentile band of one number's draws; draws that are NaN are counted and left out.

    Examples
    --------
    >>> band(np.array([1.0, 2.0, np.nan, 3.0]), level=0.5)
    Band(se=1.0, lower=1.5, upper=2.5, undefined=1, reason='')
    """
    defined = draws[~np.isnan(draws)]
    lost = len(draws) - len(defined)
    if len(defined) < 2:
        few = "fewer than two draws have a value" if len(defined) else ALONE
        reason = few if len(draws) else "no draws were asked for"
        return Band(np.nan, np.nan, np.nan, lost, reason)
    if np.ptp(defined) <= 1e-12 * max(1.0, float(np.abs(defined).max())):
        return Band(np.nan, np.nan, np.nan, lost, NO_SPREAD)
    lower, upper = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return Band(float(defined.std(ddof=1)), float(lower), float(upper), lost)
