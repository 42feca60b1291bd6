"""Performance measures of a simulation study, each with its Monte Carlo standard error.

Sums over the replicates of a block suffice for all of them, so replicates are never stored; the sums of blocks are
added in the order of the blocks, whoever computed them. Formulas: Morris, White & Crowther (2019), *Using simulation
studies to evaluate statistical methods*, with sample fourth moments in the place of normal ones.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from secondorder.core._precision import compiled

__all__ = ["MEASURES", "SHARES", "SUMS", "block_sums", "measures_from"]

Array = NDArray[np.float64]

NEGATIVE = -1e-10
ZERO_TRUTH = 1e-12

SUMS = (
    "replicates", "values", "e1", "e2", "e3", "e4", "negative",
    "pairs", "m2", "r2", "m4", "r4", "m2r2",
    "limits", "missed_low", "missed_high", "width1", "width2", "decisions", "rejections",
)  # fmt: skip

MEASURES = {
    "bias": "mean error",
    "empirical_se": "standard deviation of the estimates",
    "mse": "mean squared error",
    "mse_ratio": "mean squared error over that of the study's first method",
    "negative": "share of estimates below 0",
    "coverage": "share of intervals that hold the truth",
    "missed_low": "share of intervals that lie below the truth",
    "missed_high": "share of intervals that lie above the truth",
    "width": "mean width of the intervals",
    "size": "share of rejections where the truth is 0",
    "power": "share of rejections where the truth is not 0",
    "failure": "share of replicates without an estimate",
    "interval_failure": "share of replicates without an interval",
}

SHARES = {
    "negative": "values", "coverage": "limits", "missed_low": "limits", "missed_high": "limits",
    "size": "decisions", "power": "decisions", "failure": "replicates", "interval_failure": "replicates",
}  # fmt: skip
"""Measures that are shares, and the sum that counts their trials."""


class Measured(NamedTuple):
    """A measure and its Monte Carlo standard error, arrays of one shape."""

    value: Array
    mcse: Array


@compiled("limited")
def block_sums(
    value: Any, lower: Any, upper: Any, reject: Any, truth: Any, valid: Any, limited: bool = True
) -> jax.Array:
    """Sums over the first `valid` replicates of a block.

    Parameters
    ----------
    value, lower, upper, reject : array, shape (M, E, B)
        By method, estimand and replicate; NaN where there is none. The first method is the reference of ratios.
    truth : array, shape (E,)
    valid : int
    limited : bool
        Whether there are any limits or decisions; without them their sums are 0 and take no time.

    Returns
    -------
    array, shape (M, E, len(SUMS))
    """
    counted = jnp.broadcast_to(jnp.arange(value.shape[-1]) < valid, value.shape)
    target = jnp.broadcast_to(truth[None, :, None], value.shape)
    error = value - target
    present = counted & ~jnp.isnan(error)
    e = jnp.where(present, error, 0.0)
    both = present & jnp.broadcast_to(present[:1], present.shape)
    m2 = jnp.where(both, e**2, 0.0)
    r2 = jnp.where(both, jnp.broadcast_to(e[:1] ** 2, e.shape), 0.0)
    terms = {
        "replicates": counted, "values": present, "e1": e, "e2": e**2, "e3": e**3, "e4": e**4,
        "negative": present & (value < NEGATIVE),
        "pairs": both, "m2": m2, "r2": r2, "m4": m2**2, "r4": r2**2, "m2r2": m2 * r2,
    }  # fmt: skip
    if limited:
        held = counted & ~jnp.isnan(lower) & ~jnp.isnan(upper)
        width = jnp.where(held, upper - lower, 0.0)
        decided = counted & ~jnp.isnan(reject)
        terms |= {
            "limits": held, "missed_low": held & (upper < target), "missed_high": held & (lower > target),
            "width1": width, "width2": width**2,
            "decisions": decided, "rejections": decided & (reject > 0),
        }  # fmt: skip
    nothing = jnp.zeros(value.shape[:2], dtype=jnp.float64)
    sums = [terms[name].astype(jnp.float64).sum(-1) if name in terms else nothing for name in SUMS]
    return jnp.stack(sums, axis=-1)


def measures_from(sums: Array, truth: Array) -> dict[str, Measured]:
    """Every measure of :data:`MEASURES` from added sums.

    Parameters
    ----------
    sums : array, shape (..., E, len(SUMS))
    truth : array, shape (..., E)
        Broadcastable to the sums' leading axes.

    Returns
    -------
    dict of str to Measured
        NaN where a measure does not exist for lack of two values, of intervals or of decisions.
    """
    s = {name: sums[..., i] for i, name in enumerate(SUMS)}
    with np.errstate(invalid="ignore", divide="ignore"):
        n = np.where(s["values"] >= 2, s["values"], np.nan)
        mean = s["e1"] / n
        second, third, fourth = s["e2"] / n, s["e3"] / n, s["e4"] / n
        central2 = np.maximum(second - mean**2, 0.0)
        central4 = np.maximum(fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4, 0.0)
        variance = central2 * n / (n - 1)
        sd = np.sqrt(variance)
        result = {
            "bias": Measured(mean, sd / np.sqrt(n)),
            "empirical_se": Measured(sd, np.sqrt(np.maximum(central4 - central2**2, 0.0) / n) / (2 * sd)),
            "mse": Measured(second, np.sqrt(np.maximum(fourth - second**2, 0.0) / (n - 1))),
            "mse_ratio": _ratio(s),
            "negative": _share(s["negative"], s["values"]),
            "coverage": _share(s["limits"] - s["missed_low"] - s["missed_high"], s["limits"]),
            "missed_low": _share(s["missed_low"], s["limits"]),
            "missed_high": _share(s["missed_high"], s["limits"]),
            "width": _width(s),
            "failure": _share(s["replicates"] - s["values"], s["replicates"]),
            "interval_failure": _share(s["replicates"] - s["limits"], s["replicates"]),
        }
        rejection = _share(s["rejections"], s["decisions"])
    null = np.broadcast_to(np.abs(truth) <= ZERO_TRUTH, rejection.value.shape)
    for name, where in (("size", null), ("power", ~null)):
        result[name] = Measured(np.where(where, rejection.value, np.nan), np.where(where, rejection.mcse, np.nan))
    return {name: result[name] for name in MEASURES}


def _share(part: Array, whole: Array) -> Measured:
    total = np.where(whole > 0, whole, np.nan)
    share = part / total
    return Measured(share, np.sqrt(share * (1 - share) / total))


def _width(s: dict[str, Array]) -> Measured:
    n = np.where(s["limits"] >= 2, s["limits"], np.nan)
    mean = s["width1"] / n
    return Measured(mean, np.sqrt(np.maximum(s["width2"] / n - mean**2, 0.0) / (n - 1)))


def _ratio(s: dict[str, Array]) -> Measured:
    n = np.where(s["pairs"] >= 2, s["pairs"], np.nan)
    own, reference = s["m2"] / n, s["r2"] / n
    ratio = np.where(reference > 0, own / reference, np.nan)
    # Delta method on the two means of squared errors of the same replicates.
    spread = (
        s["m4"] / n - own**2 - 2 * ratio * (s["m2r2"] / n - own * reference) + ratio**2 * (s["r4"] / n - reference**2)
    )
    return Measured(ratio, np.sqrt(np.maximum(spread, 0.0) / (n - 1)) / reference)
