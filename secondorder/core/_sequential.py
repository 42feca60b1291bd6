"""Certificates by betting: an e-process against a threshold, valid whenever one looks and wherever one stops.

Items come in an order fixed at random before the first call. Against "the mean is at least tau" one bets, item by
item, that values fall below it; under that hypothesis the capital ``e_t`` is a supermartingale, so it ever reaches
``1 / alpha`` with probability at most alpha. The bets are a fixed mixture over stakes.

Two targets: *population*, items drawn independently; and *full audit*, the mean of the N realised item values that the
complete audit would report, with the items a random sequence without replacement.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondorder.core._bounds import Bounds
from secondorder.errors import UndefinedError

__all__ = ["ConfidenceSequence", "Side", "confidence_sequence", "first_crossing", "least_items", "log_e_process"]

Floats = NDArray[np.float64]
Side = Literal["below", "above"]

# One bold bet for effects near zero, and a ladder of careful ones for means close to the threshold.
STAKES = np.array([0.95, 0.6, 0.35, 0.2, 0.12, 0.07, 0.04, 0.02, 0.01])
SHARES = np.array([0.5] + [0.0625] * 8)
ROUNDING = 1e-9
# Numbers held at once by a confidence sequence.
WORKING_SET = 1 << 22


class ConfidenceSequence(NamedTuple):
    """Interval after each item, shape (n,): at every time at once it holds the mean with the stated confidence."""

    lower: Floats
    upper: Floats


def log_e_process(
    values: ArrayLike, threshold: ArrayLike, bounds: Bounds, side: Side, *, n_items: int | None = None
) -> Floats:
    """Logarithm of the capital after each item.

    Parameters
    ----------
    values : array, shape (*batch, n)
        Debiased item values in the order drawn.
    threshold : float or array, broadcastable to (*batch,)
    bounds : Bounds
        Proven range of the values (:func:`secondorder.core._bounds.item_bounds`).
    side : {"below", "above"}
        ``below``: against "the mean is at least the threshold"; reaching ``1 / alpha`` certifies that it is below.
    n_items : int, optional
        Target *full audit*: number of items of the benchmark. Default: target *population*.

    Returns
    -------
    array, shape (*batch, n)
        ``inf`` from the item on at which the hypothesis has become impossible (full audit).

    Raises
    ------
    UndefinedError
        When a value lies outside the bounds, or there are more values than items.

    Examples
    --------
    >>> bool(log_e_process([0.0] * 200, 0.02, Bounds(-0.1, 0.72), "below")[-1] > np.log(20))
    True
    """
    x = np.asarray(values, dtype=np.float64)
    tau = np.asarray(threshold, dtype=np.float64)[..., None]
    _check(x, bounds, n_items)
    lower, upper = bounds
    slack = ROUNDING * (upper - lower)
    if n_items is None:
        mean = np.broadcast_to(tau, np.broadcast_shapes(tau.shape, x.shape))
        # A mean at the end of the range has all values there.
        if side == "below":
            impossible = (mean > upper + slack) | ((mean >= upper) & (x < upper - slack))
        else:
            impossible = (mean < lower - slack) | ((mean <= lower) & (x > lower + slack))
    else:
        # What the values still to come would have to sum to, and so to average, if the hypothesis just held.
        total = np.cumsum(x, axis=-1)
        left = n_items - 1 - np.arange(x.shape[-1])
        rest = n_items * tau - total
        mean = (rest + x) / (left + 1)
        impossible = rest > left * upper + slack if side == "below" else rest < left * lower - slack
    inside = (mean > lower) & (mean < upper)
    width = np.where(inside, upper - mean if side == "below" else mean - lower, 1.0)
    gain = (mean - x if side == "below" else x - mean) / width
    # A stake on an impossible hypothesis wins for sure, one on a certain hypothesis is not placed.
    gain = np.where(inside, np.maximum(gain, -1.0), 0.0)
    capital = np.full(gain.shape, -np.inf)
    for stake, share in zip(STAKES, SHARES, strict=True):
        capital = np.logaddexp(capital, math.log(share) + np.cumsum(np.log1p(stake * gain), axis=-1))
    capital[np.logical_or.accumulate(np.broadcast_to(impossible, capital.shape), axis=-1)] = np.inf
    return capital


def first_crossing(log_capital: ArrayLike, alpha: float = 0.05) -> NDArray[np.int64]:
    """Number of items after which the capital first reaches ``1 / alpha``; 0 where it never does.

    Examples
    --------
    >>> first_crossing([[0.0, 2.9, 3.0], [0.0, 0.1, 0.2]]).tolist()
    [3, 0]
    """
    reached = np.asarray(log_capital) >= -math.log(alpha) - ROUNDING
    return np.where(reached.any(-1), reached.argmax(-1) + 1, 0)


def confidence_sequence(
    values: ArrayLike, bounds: Bounds, *, alpha: float = 0.05, n_items: int | None = None, grid: int = 1000
) -> ConfidenceSequence:
    """All thresholds that neither side has ever rejected at level ``alpha / 2``.

    Parameters
    ----------
    values : array, shape (n,)
        Debiased item values in the order drawn.
    bounds : Bounds
    n_items : int, optional
        Target *full audit*; default *population*.
    grid : int
        Steps into which the bounds are divided; ends are rounded outwards to a step.

    Returns
    -------
    ConfidenceSequence
        Nested: each interval lies in the one before.

    Examples
    --------
    >>> band = confidence_sequence([0.0] * 200, Bounds(-0.1, 0.72))
    >>> float(band.lower[-1].round(3)), float(band.upper[-1].round(3))
    (-0.002, 0.016)
    """
    x = np.asarray(values, dtype=np.float64)
    points = np.linspace(*bounds, grid + 1)
    ends = {"below": np.full(len(x), bounds.upper), "above": np.full(len(x), bounds.lower)}
    step = max(1, WORKING_SET // max(1, len(x)))
    for start in range(0, len(points), step):
        some = points[start : start + step]
        for side in ("below", "above"):
            capital = log_e_process(x[None], some, bounds, side, n_items=n_items)
            lost = np.logical_or.accumulate(capital >= math.log(2 / alpha) - ROUNDING, axis=1)
            # What is rejected from above is an upper part of the grid, from below a lower part.
            if side == "below":
                first = np.where(lost.any(0), some[lost.argmax(0)], bounds.upper)
                ends[side] = np.minimum(ends[side], first)
            else:
                last = np.where(lost.any(0), some[len(some) - 1 - lost[::-1].argmax(0)], bounds.lower)
                ends[side] = np.maximum(ends[side], last)
    return ConfidenceSequence(ends["above"], ends["below"])


def least_items(
    threshold: float,
    bounds: Bounds,
    side: Side = "below",
    *,
    value: float = 0.0,
    alpha: float = 0.05,
    n_items: int | None = None,
    best_stake: bool = True,
) -> int | None:
    """Fewest items after which a certificate is possible, if every item had the same value.

    Parameters
    ----------
    threshold : float
    bounds : Bounds
    side : {"below", "above"}
    value : float
        The items' value: 0 for "no effect at all".
    alpha : float
    n_items : int, optional
        Target *full audit*.
    best_stake : bool
        Bound over all stakes (each bet is the whole capital) instead of the mixture that is really played.

    Returns
    -------
    int or None
        None when such values never certify.

    Examples
    --------
    >>> bounds = Bounds(-0.1042, 0.7222)
    >>> least_items(0.02, bounds), least_items(0.02, bounds, best_stake=False)
    (107, 136)
    """
    _check(np.array([value]), bounds, None)
    need = -math.log(alpha)
    if n_items is not None:
        constant = np.full(n_items, value)
        if not best_stake:
            return int(first_crossing(log_e_process(constant, threshold, bounds, side, n_items=n_items), alpha)) or None
        drawn = np.arange(n_items)
        rest = n_items * threshold - drawn * value
        growth = [_growth(mean, value, bounds, side) for mean in rest / (n_items - drawn)]
        reached = np.cumsum(growth) >= need - ROUNDING
        return int(reached.argmax()) + 1 if reached.any() else None
    growth_each = _growth(threshold, value, bounds, side)
    if growth_each <= 0:
        return None
    if best_stake:
        return max(1, math.ceil(need / growth_each - ROUNDING))
    rates = np.log1p(STAKES * np.expm1(growth_each))

    def capital(count: int) -> float:
        return float(np.logaddexp.reduce(np.log(SHARES) + count * rates))

    # The logarithm of a sum of exponentials is convex: from the first crossing on it stays above.
    low, high = 0, 1
    while capital(high) < need:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if capital(middle) >= need else (middle, high)
    return high


def _growth(mean: float, value: float, bounds: Bounds, side: Side) -> float:
    """Log growth of a capital that is staked whole."""
    if (mean >= bounds.upper) if side == "below" else (mean <= bounds.lower):
        return math.inf
    if (mean <= bounds.lower) if side == "below" else (mean >= bounds.upper):
        return 0.0
    won, kept = (
        (bounds.upper - value, bounds.upper - mean) if side == "below" else (value - bounds.lower, mean - bounds.lower)
    )
    return math.log(won / kept) if won > 0 else -math.inf


def _check(values: Floats, bounds: Bounds, n_items: int | None) -> None:
    slack = ROUNDING * (bounds.upper - bounds.lower)
    # NaN is not inside either.
    outside = ~((values >= bounds.lower - slack) & (values <= bounds.upper + slack))
    if outside.any():
        place = np.argwhere(outside)[0]
        raise UndefinedError(
            f"value {values[tuple(place)]:.6g} is outside the proven range [{bounds.lower:.6g}, {bounds.upper:.6g}]",
            place=f"sequential audit, item {int(place[-1]) + 1} in order",
            remedy="give the debiased values of items with at least the numbers of calls that the bounds were made for",
        )
    if n_items is not None and values.shape[-1] > n_items:
        raise UndefinedError(
            f"{values.shape[-1]} values of {n_items} items",
            place="sequential audit",
            remedy="give each item once, and the number of items of the whole benchmark",
        )
