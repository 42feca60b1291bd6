"""Do sampled verdicts follow the probabilities that were listed for them? Multinomial G, cell by cell and over all.

Given the vectors ``v_r`` of a cell, its sampled verdicts are independent draws from them, so the counts are
Poisson-multinomial: multinomial where the vectors are equal. Where the count vectors are few their law is summed
exactly, otherwise drawn.

All calls together are looked at twice: their shares show a bias, and the sum of ``-log v[c]`` over what they sampled
shows vectors that are too sharp or too flat, as those of another temperature are, though no share moves.

Unlisted mass may be of any class. Cell by cell, and for all calls together, it is shared out as agrees best with the
counts; the test is of the law that this makes.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondorder.core._multiplicity import holm

__all__ = ["Concordance", "concordance"]

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

MOST_STATES = 5_000
BLOCK = 4_000_000
FEWEST, MOST, BUDGET = 199, 1_999, 10_000_000
TIE = 1e-9
LEAST_VARIANCE = 5.0
TINY = 1e-300


class Concordance(NamedTuple):
    """Sampled verdicts against soft ones.

    Attributes
    ----------
    sampled, expected : array, shape (C,)
        Calls of every class: those sampled, and the sum of the vectors.
    g, pvalue, adjusted : array, shape (F,)
        Statistic of every cell, its p value and that adjusted by Holm; NaN for a cell without calls.
    total_g, total_pvalue : float
        The same for all calls together, whose shares show a bias that no single cell can. The p value is twice the
        smaller one of the shares and of how surprising the verdicts are.
    """

    sampled: Floats
    expected: Floats
    g: Floats
    pvalue: Floats
    adjusted: Floats
    total_g: float
    total_pvalue: float


def concordance(
    verdicts: ArrayLike, codes: ArrayLike, *, unlisted: ArrayLike | None = None, seed: int = 0
) -> Concordance:
    """Test the vectors of calls against the verdicts that the same calls sampled.

    Parameters
    ----------
    verdicts : array, shape (F, R, C)
        Soft verdicts, the last class ⊥; NaN where there is none.
    codes : array of int, shape (F, R)
        Class that was sampled; -1 where there is none.
    unlisted : array, shape (F, R), optional
        Mass of ⊥ that no listed token accounts for. It is shared out over the classes as agrees best with the counts,
        in the same shares for all calls of a test: what is not known is no contradiction.
    seed : int
        For p values that are drawn.

    Examples
    --------
    >>> law = np.broadcast_to([0.5, 0.5, 0.0], (3, 4, 3))
    >>> found = concordance(law, [[0, 1, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    >>> found.pvalue.tolist(), found.adjusted.tolist()
    ([1.0, 0.625, 0.125], [1.0, 1.0, 0.375])
    """
    vectors = np.array(verdicts, dtype=np.float64)
    drawn = np.asarray(codes, dtype=np.int64)
    known = (drawn >= 0) & ~np.isnan(vectors).any(-1)
    free = np.zeros(drawn.shape)
    if unlisted is not None:
        free = np.minimum(np.nan_to_num(np.asarray(unlisted, dtype=np.float64)), np.nan_to_num(vectors[..., -1]))
        vectors[..., -1] -= free
    rng = np.random.default_rng(seed)
    g, pvalue = np.full(len(drawn), np.nan), np.full(len(drawn), np.nan)
    sizes = known.sum(1)
    for size in np.unique(sizes[sizes > 0]).tolist():
        cells = np.flatnonzero(sizes == size)
        laws = vectors[cells][known[cells]].reshape(len(cells), size, -1)
        said = drawn[cells][known[cells]].reshape(len(cells), size)
        counts = _counts(said, vectors.shape[-1])
        laws = _completed(laws, free[cells][known[cells]].reshape(len(cells), size), counts)
        g[cells], pvalue[cells] = _cells(laws, counts, rng)
    sampled = _counts(drawn[known], vectors.shape[-1])
    flat = _completed(vectors[known], free[known], sampled)
    total_g, shares_pvalue = _total(flat, sampled, rng)
    surprise = _surprise_pvalue(vectors[known], free[known], drawn[known], rng)
    total_pvalue = float(np.minimum(1.0, 2.0 * np.minimum(shares_pvalue, surprise)))
    return Concordance(sampled, flat.sum(0), g, pvalue, holm(pvalue), total_g, total_pvalue)


def _counts(said: Codes, n_classes: int) -> Floats:
    return np.stack([(said == code).sum(-1) for code in range(n_classes)], -1).astype(np.float64)


def _completed(laws: Floats, free: Floats, counts: Floats) -> Floats:
    """Laws ``(..., n, C)`` with their `free` mass in the shares that make G of the counts ``(..., C)`` smallest.

    G is smallest where every class that gets a share has the same ratio of counts to expectation, and no other class
    a larger one: the largest of the ratios that the classes have together, taken in falling order of their own.
    """
    listed, whole = laws.sum(-2), free.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        order = np.argsort(-np.where(counts > 0, counts / listed, 0.0), axis=-1, kind="stable")
        along = [np.cumsum(np.take_along_axis(values, order, -1), -1) for values in (counts, listed)]
        ratio = (along[0] / (along[1] + whole)).max(-1, keepdims=True)
        shares = np.maximum(counts / ratio - listed, 0.0)
        shares = np.where(whole > 0, shares / shares.sum(-1, keepdims=True), 0.0)
    return np.asarray(laws + free[..., None] * shares[..., None, :])


def _statistic(counts: Floats, expected: Floats) -> Floats:
    """``2 Σ y log(y / E)`` over the last axis; infinite where a class was seen that cannot be."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        terms = np.where(counts > 0, counts * np.log(counts / expected), 0.0)
    return np.asarray(2.0 * terms.sum(-1))


def _tail(statistic: Floats, observed: Floats) -> NDArray[np.bool_]:
    """At least as far from the law, ties counted."""
    with np.errstate(invalid="ignore"):
        return np.asarray(statistic >= observed - TIE * np.maximum(1.0, np.abs(observed)))


def _cells(laws: Floats, counts: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Statistic and p value of the counts ``(F, C)`` of cells ``(F, n, C)`` with equally many calls."""
    n_cells, size, n_classes = laws.shape
    expected = laws.sum(1)
    observed = _statistic(counts, expected)
    pvalue = np.empty(n_cells)
    states = _n_states(size, n_classes)
    if states > MOST_STATES:
        draws = int(np.clip(BUDGET // laws[..., 0].size, FEWEST, MOST))
        for k in range(n_cells):
            law = _statistic(_drawn(laws[k], draws, rng), expected[k])
            pvalue[k] = (1 + _tail(law, observed[k]).sum()) / (draws + 1)
        return observed, pvalue
    step = max(1, BLOCK // (states * n_classes))
    for start in range(0, n_cells, step):
        part = slice(start, start + step)
        chances = _chances(laws[part])
        grid = _statistic(_states(size, n_classes)[None].astype(np.float64), expected[part][:, None])
        pvalue[part] = np.minimum((chances * _tail(grid, observed[part][:, None])).sum(-1), 1.0)
    return observed, pvalue


def _chances(laws: Floats) -> Floats:
    """Probability of every count vector of cells ``(F, n, C)``, one call after the other."""
    n_cells, size, n_classes = laws.shape
    chances = np.ones((n_cells, 1))
    for call in range(size):
        after = np.zeros((n_cells, _n_states(call + 1, n_classes)))
        for code, steps in enumerate(_steps(call, n_classes)):
            after[:, steps] += chances * laws[:, call, code, None]
        chances = after
    return chances


def _n_states(size: int, n_classes: int) -> int:
    states = 1
    for k in range(1, n_classes):
        states = states * (size + k) // k
    return states


@lru_cache(maxsize=64)
def _states(size: int, n_classes: int) -> Codes:
    """Every vector of `n_classes` counts with the sum `size`, in lexicographic order."""
    if n_classes == 1:
        return np.array([[size]])
    parts = []
    for first in range(size + 1):
        rest = _states(size - first, n_classes - 1)
        parts.append(np.concatenate([np.full((len(rest), 1), first), rest], axis=1))
    return np.concatenate(parts)


@lru_cache(maxsize=64)
def _steps(size: int, n_classes: int) -> tuple[Codes, ...]:
    """Where each count vector goes with one more call of each class."""
    place = {state: k for k, state in enumerate(map(tuple, _states(size + 1, n_classes).tolist()))}
    before = _states(size, n_classes)
    unit = np.eye(n_classes, dtype=np.int64)
    return tuple(np.array([place[tuple(row)] for row in (before + unit[code]).tolist()]) for code in range(n_classes))


def _total(laws: Floats, sampled: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Statistic and p value of the shares of all calls ``(n, C)``: drawn, or of the normal law where calls are many."""
    if not len(laws):
        return np.nan, np.nan
    expected = laws.sum(0)
    observed = _statistic(sampled, expected)
    if laws.size > BUDGET // FEWEST:
        return float(observed), _normal_pvalue(laws, sampled - expected)
    draws = int(np.clip(BUDGET // laws.size, FEWEST, MOST))
    tail = _tail(_statistic(_drawn(laws, draws, rng), expected), observed)
    return float(observed), float((1 + tail.sum()) / (draws + 1))


def _surprise_pvalue(listed: Floats, free: Floats, said: Codes, rng: np.random.Generator) -> float:
    """Two-sided p value of the sum of ``-log v[c]`` over calls ``(n, C)``, NaN without any.

    Free mass lies where it makes the sum largest, or smallest: whatever it is of, the tails are at most these.
    """
    if not len(said):
        return np.nan
    scores = -np.log(np.maximum(listed + free[:, None], TINY))
    observed = np.take_along_axis(scores, said[:, None], -1).sum()
    tails = []
    for sign in (1.0, -1.0):
        law = listed.copy()
        law[np.arange(len(law)), (sign * scores).argmax(-1)] += free
        if law.size > BUDGET // FEWEST:
            mean = (law * scores).sum(-1)
            spread = np.sqrt(((law * scores**2).sum(-1) - mean**2).sum())
            above = sign * (observed - mean.sum())
            tails.append(0.5 * math.erfc(above / (spread * math.sqrt(2.0))) if spread > 0 else float(above <= TIE))
            continue
        draws = int(np.clip(BUDGET // law.size, FEWEST, MOST))
        sums = sign * _drawn_sums(law, scores, draws, rng)
        tails.append(float((1 + _tail(sums, sign * observed).sum()) / (draws + 1)))
    return min(1.0, 2.0 * min(tails))


def _drawn_sums(laws: Floats, scores: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Sums over all calls of the scores of drawn classes, shape (draws,)."""
    bounds, steps = np.cumsum(laws, -1)[:, :-1], np.diff(scores, axis=-1)
    step = max(1, BLOCK // max(laws.size, 1))
    parts = []
    for start in range(0, draws, step):
        u = rng.random((min(step, draws - start), len(laws), 1))
        parts.append(scores[:, 0].sum() + ((u >= bounds) * steps).sum((1, 2)))
    return np.concatenate(parts)


def _normal_pvalue(laws: Floats, excess: Floats) -> float:
    """Wald test of the excess of every class, with the exact covariance; classes with little variance are one."""
    from scipy.stats import chi2

    covariance = np.diag(laws.sum(0)) - laws.T @ laws
    rare = np.diag(covariance) < LEAST_VARIANCE
    merge = np.vstack([np.eye(len(rare))[~rare], rare[None]])
    covariance, excess = merge @ covariance @ merge.T, merge @ excess
    values, vectors = np.linalg.eigh(covariance)
    kept = values > TIE * max(values.max(), 1.0)
    if not kept.any():
        return 1.0
    along = vectors[:, kept].T @ excess
    return float(chi2.sf((along**2 / values[kept]).sum(), kept.sum()))


def _drawn(laws: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Counts of every class in draws of all calls ``(n, C)``: shape (draws, C)."""
    counts = np.zeros((draws, laws.shape[-1]))
    bounds = np.cumsum(laws, -1)[:, :-1]
    step = max(1, BLOCK // max(laws.size, 1))
    for start in range(0, draws, step):
        u = rng.random((min(step, draws - start), len(laws), 1))
        # A class is passed where the number lies above its bound: calls beyond bound c are of a later class.
        beyond = (u >= bounds).sum(1)
        passed = np.concatenate([np.full((len(u), 1), len(laws)), beyond, np.zeros((len(u), 1))], axis=1)
        counts[start : start + step] = passed[:, :-1] - passed[:, 1:]
    return counts
