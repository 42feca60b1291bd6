"""Paired comparison by sign flips: are two judges exchangeable on every item?

If two judges answer an item by the same laws in every cell, and each was called as often, nothing changes in
distribution when their calls on that item are swapped: the item's differences of all components change sign together.
So every pattern of signs over items is as likely as what was seen, and the share of patterns that reach the observed
statistic is an exact p value.

The statistic of a column is its mean difference over the root of its mean square, ``m / sqrt(q)``: with N items the
one-sample t statistic is ``sqrt(N - 1) (m / sqrt(q)) / sqrt(1 - m**2 / q)``, which grows with it. Studentised, columns
are comparable, and the test also holds its level for large N when only the means are equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondorder.core._multiplicity import holm

__all__ = ["SignFlipTest", "sign_flip_test"]

Floats = NDArray[np.float64]
TIES = 1e-9
# Signs held at once.
BLOCK = 1 << 22


class SignFlipTest(NamedTuple):
    """Two-sided tests of P pairs in M columns.

    Attributes
    ----------
    estimate : array, shape (P, M)
        Mean difference over items.
    statistic : array, shape (P, M)
        Mean over root mean square, between -1 and 1; 0 where all differences are 0.
    pvalue : array, shape (P, M)
        Share of sign patterns that reach the statistic, ties counted.
    adjusted : array, shape (P, M)
        For all pairs and columns together: the share of patterns in which any column of the pair reaches the
        statistic, times the number of pairs.
    pair_pvalue, pair_adjusted : array, shape (P,)
        Of the pair's largest statistic; adjusted over pairs (Holm).
    patterns : int
        Sign patterns looked at, the observed one included.
    exact : bool
        Whether these are all patterns.
    """

    estimate: Floats
    statistic: Floats
    pvalue: Floats
    adjusted: Floats
    pair_pvalue: Floats
    pair_adjusted: Floats
    patterns: int
    exact: bool


def sign_flip_test(differences: ArrayLike, *, seed: int, n_draws: int = 9999, scale: float = 1.0) -> SignFlipTest:
    """Test that differences are symmetric about 0, item by item.

    Parameters
    ----------
    differences : array, shape (N, P, M)
        Difference of each item for P pairs in M columns, without NaN. All columns of an item flip together.
    seed : int
        Not negative.
    n_draws : int
        Random patterns. Where there are no more patterns than that (``2**N <= n_draws + 1``) all are enumerated.
    scale : float
        Unit of the differences (the kernel's largest disagreement): below ``1e-9`` of it a difference is rounding.

    Returns
    -------
    SignFlipTest

    Notes
    -----
    Raw p values are exact for two judges that are exchangeable on every item. Within a pair one hypothesis has several
    statistics, and the largest of them is compared (max-T); pairs are added up (Bonferroni), because a third judge
    tells nothing of the exchangeability of two. The family-wise error holds for any set of true hypotheses.

    Examples
    --------
    >>> found = sign_flip_test([[[0.2]], [[0.1]], [[0.4]], [[0.3]], [[0.2]]], seed=0)
    >>> found.exact, found.patterns, float(found.pvalue[0, 0])
    (True, 32, 0.0625)
    """
    table = np.asarray(differences, dtype=np.float64)
    table = np.where(np.abs(table) <= TIES * scale, 0.0, table)
    items, pairs, columns = table.shape
    exact = items < 63 and 2**items <= n_draws + 1
    spread = np.sqrt((table**2).mean(0))
    unit = np.where(spread > 0, table / np.where(spread > 0, spread, 1.0), 0.0).reshape(items, pairs * columns)
    observed = unit.mean(0).reshape(pairs, columns)
    least = np.abs(observed) - TIES
    reached, together = (np.zeros((pairs, columns), dtype=np.int64) for _ in range(2))
    largest = np.zeros(pairs, dtype=np.int64)
    blocks = _all_signs(items) if exact else _random_signs(items, seed, n_draws)
    for signs in blocks:
        flipped = np.abs(signs @ unit / items).reshape(-1, pairs, columns)
        top = flipped.max(-1)
        reached += (flipped >= least).sum(0)
        together += (top[..., None] >= least).sum(0)
        largest += (top >= least.max(-1)).sum(0)
    patterns = 2**items if exact else n_draws + 1
    # The enumeration holds the observed pattern; random patterns are beside it.
    own = 0 if exact else 1
    pair = (largest + own) / patterns
    return SignFlipTest(
        table.mean(0),
        observed,
        (reached + own) / patterns,
        np.minimum((together + own) / patterns * pairs, 1.0),
        pair,
        holm(pair),
        patterns,
        exact,
    )


def _all_signs(items: int) -> Iterator[Floats]:
    rows = max(1, BLOCK // max(items, 1))
    for start in range(0, 2**items, rows):
        codes = np.arange(start, min(start + rows, 2**items))
        yield np.where(codes[:, None] >> np.arange(items) & 1, -1.0, 1.0)


def _random_signs(items: int, seed: int, n_draws: int) -> Iterator[Floats]:
    rows = max(1, BLOCK // items)
    for number, start in enumerate(range(0, n_draws, rows)):
        random = np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, number])))
        size = min(rows, n_draws - start)
        bits = np.unpackbits(random.integers(256, size=(size, -(-items // 8)), dtype=np.uint8), axis=1, count=items)
        yield np.where(bits, -1.0, 1.0)
