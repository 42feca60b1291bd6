"""Random checks of a mean that state how often they fail without cause, and what they can see."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from secondorder.errors import InputError

__all__ = [
    "FailureRate",
    "MeanCheck",
    "assert_mean",
    "detectable_discrepancy",
    "failure_rate",
    "required_values",
]


@dataclass(frozen=True, eq=False)
class MeanCheck:
    """Result of :func:`assert_mean`; prints as a table.

    Attributes
    ----------
    n : int
        Number of values.
    mean, expected, standard_error : array, shape (k,)
    detectable : array, shape (k,)
        Smallest true discrepancy that a check of this size finds with the probability `power`.
    false_fail_rate, power : float
    failed : array of bool, shape (k,)
    """

    n: int
    mean: np.ndarray
    expected: np.ndarray
    standard_error: np.ndarray
    detectable: np.ndarray
    false_fail_rate: float
    power: float
    failed: np.ndarray

    def __str__(self) -> str:
        lines = [f"{'mean':>12} {'expected':>12} {'difference':>12} {'SE':>10} {'detectable':>10}"]
        for row in zip(self.mean, self.expected, self.standard_error, self.detectable, self.failed, strict=True):
            mean, expected, error, detectable, failed = row
            line = f"{mean:12.6g} {expected:12.6g} {mean - expected:12.3g} {error:10.3g} {detectable:10.3g}"
            lines.append(f"{line}  differs" if failed else line)
        lines.append(
            f"{self.n} values; fails without cause at a rate of at most {self.false_fail_rate:g};\n"
            f"finds a discrepancy of the size 'detectable' with probability {self.power:g}"
        )
        return "\n".join(lines)


def assert_mean(
    values: Any,
    expected: Any,
    *,
    bounds: tuple[float, float] | None = None,
    false_fail_rate: float = 1e-6,
    must_detect: float | None = None,
    power: float = 0.99,
) -> MeanCheck:
    """Fail when independent values cannot have the expected mean.

    Without `bounds` the test is Student's t, whose false-failure rate is exact for normal values and otherwise holds
    for large samples; far in the tail it needs more of them than usual, above all where values are skewed. With
    `bounds` it is a betting test whose rate holds at every sample size for any values in that range; it sees
    discrepancies about a tenth larger.

    Parameters
    ----------
    values : array_like, shape (n,) or (n, k)
        Independent values, one row per replicate; k quantities at once.
    expected : float or array_like, shape (k,)
        Claimed means.
    bounds : (float, float), optional
        Range that the values cannot leave.
    false_fail_rate : float
        Probability that the check fails although all claims are true; shared out evenly over the k quantities.
    must_detect : float, optional
        Discrepancy that the check has to be able to see. When the values are too few for it, the check is refused: a
        test that cannot fail proves nothing.
    power : float
        Probability with which a discrepancy of the detectable size is found.

    Returns
    -------
    MeanCheck

    Raises
    ------
    AssertionError
        When a mean differs, or a value is not finite.
    InputError
        When the check itself is unsound: too few values, values outside the bounds, or `must_detect` out of reach.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> check = assert_mean(rng.random(10_000), 0.5, must_detect=0.03)
    >>> bool(check.detectable[0] < 0.03)
    True
    >>> assert_mean(rng.random(10_000), 0.53)
    Traceback (most recent call last):
      ...
    AssertionError: 1 of 1 means differ
    ...

    References
    ----------
    Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting. J. R. Stat. Soc. B 86.
    """
    table, claims = _checked(values, expected)
    n, k = table.shape
    rate = _checked_rate(false_fail_rate, "false_fail_rate") / k
    finite = np.isfinite(table)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        count = np.count_nonzero(~finite)
        raise AssertionError(f"{count} of {table.size} values are not finite, the first in row {row}, column {column}")
    mean, deviation = table.mean(0), table.std(0, ddof=1)
    error = deviation / math.sqrt(n)
    if bounds is None:
        # Rounding: values that are all alike have no spread, yet their mean may miss the claim by the last digit.
        slack = 8 * np.finfo(float).eps * np.maximum(np.abs(mean), np.abs(claims))
        failed = np.abs(mean - claims) > np.maximum(_t_quantile(rate, n) * error, slack)
    else:
        low, high = _checked_bounds(table, bounds)
        failed = np.array(
            [
                _betting_log_wealth((table[:, j] - low) / (high - low), (claims[j] - low) / (high - low), rate)
                >= -math.log(rate)
                for j in range(k)
            ]
        )
    detectable = np.array(
        [
            detectable_discrepancy(sd, n, false_fail_rate=rate, power=power, bounded=bounds is not None)
            for sd in deviation
        ]
    )
    check = MeanCheck(n, mean, claims, error, detectable, false_fail_rate, power, failed)
    if failed.any():
        raise AssertionError(f"{np.count_nonzero(failed)} of {k} means differ\n{check}")
    if must_detect is not None and detectable.max() > must_detect:
        wanted = required_values(
            float(deviation.max()), must_detect, false_fail_rate=rate, power=power, bounded=bounds is not None
        )
        raise InputError(
            f"{n} values find a discrepancy of {detectable.max():.3g} with probability {power:g}, not {must_detect:g}",
            place="assert_mean",
            remedy=f"give about {wanted} values",
        )
    return check


def detectable_discrepancy(
    sd: float, n: int, *, false_fail_rate: float = 1e-6, power: float = 0.99, bounded: bool = False
) -> float:
    """Smallest discrepancy of a mean that :func:`assert_mean` finds with probability `power`.

    ``sd / sqrt(n) * (q + z)`` with z the normal quantile of `power` and q the two-sided t quantile of
    `false_fail_rate`, or ``sqrt(2 log(2 / rate))`` for the bounded test. It can, and should, be computed before the
    run.

    Parameters
    ----------
    sd : float
        Standard deviation of one value.
    n : int
        Number of values.
    false_fail_rate, power : float
        For k quantities at once divide the rate by k.
    bounded : bool
        For the test with `bounds`.

    Examples
    --------
    >>> round(detectable_discrepancy(0.25, 10_000), 4)
    0.0181
    """
    rate, z = _checked_rate(false_fail_rate, "false_fail_rate"), _normal_quantile(_checked_rate(power, "power"))
    if n < 2 or not sd >= 0:
        raise InputError(f"sd = {sd} and n = {n}", place="detectable_discrepancy", remedy="give sd >= 0 and n >= 2")
    quantile = math.sqrt(2 * math.log(2 / rate)) if bounded else _t_quantile(rate, n)
    return sd / math.sqrt(n) * (quantile + z)


def required_values(
    sd: float, discrepancy: float, *, false_fail_rate: float = 1e-6, power: float = 0.99, bounded: bool = False
) -> int:
    """Number of values with which :func:`assert_mean` finds `discrepancy` with probability `power`.

    Examples
    --------
    >>> required_values(0.25, 0.0181)
    9948
    """
    if not discrepancy > 0:
        raise InputError(f"discrepancy {discrepancy}", place="required_values", remedy="give a discrepancy > 0")
    options = {"false_fail_rate": false_fail_rate, "power": power}
    low, high = 1, 2
    while detectable_discrepancy(sd, high, bounded=bounded, **options) > discrepancy:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if detectable_discrepancy(sd, middle, bounded=bounded, **options) > discrepancy:
            low = middle
        else:
            high = middle
    return high


@dataclass(frozen=True)
class FailureRate:
    """How often a random check failed: result of :func:`failure_rate`.

    Attributes
    ----------
    failed, runs : int
    lower, upper : float
        Exact (Clopper-Pearson) confidence limits of the rate.
    confidence : float
        Of the interval from `lower` to `upper`.
    """

    failed: int
    runs: int
    lower: float
    upper: float
    confidence: float

    def __str__(self) -> str:
        return (
            f"{self.failed} of {self.runs} runs failed: rate {self.failed / self.runs:.4g}, "
            f"between {self.lower:.4g} and {self.upper:.4g} with confidence {self.confidence:g}"
        )


def failure_rate(check: Callable[[int], object], seeds: Iterable[int], *, confidence: float = 0.99) -> FailureRate:
    """How often a random check fails: without a fault its false-failure rate, with a planted one its power.

    Parameters
    ----------
    check : callable
        Takes a seed and raises AssertionError when it fails. Every other exception is passed on.
    seeds : iterable of int
    confidence : float
        Of the two-sided limits.

    Examples
    --------
    >>> def check(seed, shift=0.0):
    ...     values = np.random.default_rng(seed).normal(shift, 1, 50)
    ...     assert_mean(values, 0, false_fail_rate=0.05)
    >>> honest = failure_rate(check, range(400))
    >>> honest.lower < 0.05 < honest.upper
    True
    >>> failure_rate(lambda seed: check(seed, shift=1.0), range(100)).failed
    100
    """
    runs = failed = 0
    for seed in seeds:
        runs += 1
        try:
            check(seed)
        except AssertionError:
            failed += 1
    if not runs:
        raise InputError("no seeds", place="failure_rate", remedy="give at least one seed")
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    lower = float(betaincinv(failed, runs - failed + 1, tail)) if failed else 0.0
    upper = float(betaincinv(failed + 1, runs - failed, 1 - tail)) if failed < runs else 1.0
    return FailureRate(failed, runs, lower, upper, confidence)


def _betting_log_wealth(x: np.ndarray, m: float, rate: float) -> float:
    """Largest log wealth, over the run, of a gambler who bets against the mean m of values in [0, 1].

    Under the claim the wealth is a non-negative martingale from 1, so it ever reaches ``1 / rate`` with probability at
    most `rate`. Half of it is bet on "larger", half on "smaller".
    """
    if not 0 <= m <= 1 or (m == 0 and x.max() > 0) or (m == 1 and x.min() < 1):
        return math.inf
    count = np.arange(1, len(x) + 1)
    running = (0.5 + np.cumsum(x)) / (count + 1)
    spread = (0.25 + np.cumsum((x - running) ** 2)) / (count + 1)
    # Each stake uses the values before it alone.
    before = np.concatenate([[0.25], spread[:-1]])
    stake = np.sqrt(2 * math.log(2 / rate) / (len(x) * before))
    # Three quarters of what would lose everything on the worst value.
    up = np.minimum(stake, 0.75 / m if m > 0 else math.inf)
    down = np.minimum(stake, 0.75 / (1 - m) if m < 1 else math.inf)
    larger, smaller = np.cumsum(np.log1p(up * (x - m))), np.cumsum(np.log1p(-down * (x - m)))
    return float(np.logaddexp(larger, smaller).max() - math.log(2))


def _checked(values: Any, expected: Any) -> tuple[np.ndarray, np.ndarray]:
    table = np.asarray(values, dtype=float)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) < 2 or table.shape[1] == 0:
        raise InputError(
            f"values of shape {np.shape(values)}",
            place="assert_mean",
            remedy="give (n,) or (n, k) with at least two independent rows",
        )
    claims = np.asarray(expected, dtype=float)
    if claims.shape not in ((), (table.shape[1],)) or not np.isfinite(claims).all():
        raise InputError(
            f"expected is {expected!r} for {table.shape[1]} quantities",
            place="assert_mean",
            remedy="give one finite expectation per column",
        )
    return table, np.broadcast_to(claims, (table.shape[1],))


def _checked_bounds(table: np.ndarray, bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = float(bounds[0]), float(bounds[1])
    outside = (table < low) | (table > high)
    if not low < high or outside.any():
        found = f"value {table[outside][0]:g}" if low < high else "an empty range"
        raise InputError(
            f"{found} with bounds ({low:g}, {high:g})",
            place="assert_mean",
            remedy="give the range that no value can leave; the rate of false failures rests on it",
        )
    return low, high


def _checked_rate(value: float, name: str) -> float:
    if not 0 < value < 1:
        raise InputError(f"{name} is {value}", place="random check", remedy="give a probability between 0 and 1")
    return float(value)


def _t_quantile(rate: float, n: int) -> float:
    from scipy.special import stdtrit

    return float(-stdtrit(n - 1, rate / 2))


def _normal_quantile(probability: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(probability))
