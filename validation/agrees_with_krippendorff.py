"""Krippendorff's alpha, by the coefficient and from the call component, against the program of that name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

import secondorder as so
from secondorder.simulate import Claim, Finding
from secondorder.studies import coefficient

# Krippendorff's data C: four coders by twelve units, classes 1 to 5; -1 is missing here, classes count from 0.
DATA_C = np.array(
    [
        [0, 1, 2, 2, 1, 0, 3, 0, 1, -1, -1, -1],
        [0, 1, 2, 2, 1, 1, 3, 0, 1, 4, -1, 2],
        [-1, 2, 2, 2, 1, 2, 3, 1, 1, 4, 0, -1],
        [0, 1, 2, 2, 1, 3, 3, 0, 1, 4, 0, -1],
    ]
)
# krippendorff 0.9.0: alpha(reliability_data, level_of_measurement, value_domain=[1, ..., 5]); 30 November 2026.
RECORDED = {"nominal": 0.743421, "ordinal": 0.815388, "interval": 0.849107, "ratio": 0.797403}


def ours(ratings: Any, metric: str, classes: int) -> float:
    """Alpha of coders by units, classes scored 1, 2, ...."""
    found = coefficient(
        "krippendorff", ratings=ratings.T, n_classes=classes, metric=metric, scores=list(range(1, classes + 1))
    )
    return float(found.estimate)


def by_components(counts: Any, kernel: Any) -> float:
    """1 - call / expected: the call component is alpha's observed disagreement when all units have as many values."""
    design = so.Design.balanced({"prompt": 1})
    cells = so.core.cells_from_counts(counts[:, None, :])
    call = float(
        np.asarray(so.core.complete_pairs(cells, design, so.standard_components(design.names), kernel))[:, 0].mean()
    )
    pooled = counts.sum(0)
    total = pooled.sum()
    return 1 - call / float(pooled @ kernel @ pooled / (total * (total - 1)))


def check(quick: bool) -> Iterator[Finding]:
    """Recorded values always; the program itself on random tables where it is installed."""
    for metric, value in RECORDED.items():
        yield Finding.close(f"data C, {metric}", ours(DATA_C, metric, 5), value, 5e-7)
    if find_spec("krippendorff") is None:
        return
    import krippendorff

    rng = np.random.default_rng(5)
    for table in range(3 if quick else 20):
        ratings = rng.integers(0, 4, (5, 30))
        ratings[rng.random(ratings.shape) < 0.15] = -1
        shown = np.where(ratings < 0, np.nan, ratings + 1.0)
        for metric in RECORDED:
            expected = krippendorff.alpha(
                reliability_data=shown, level_of_measurement=metric, value_domain=[1.0, 2.0, 3.0, 4.0]
            )
            yield Finding.close(f"random table {table}, {metric}", ours(ratings, metric, 4), float(expected), 1e-12)
        complete = rng.integers(0, 4, (5, 30))
        counts = (complete[..., None] == np.arange(4)).sum(0)
        for metric, kernel in (
            ("nominal", so.core.nominal_kernel(4)),
            ("interval", so.core.interval_kernel([1, 2, 3, 4])),
        ):
            expected = krippendorff.alpha(value_counts=counts, level_of_measurement=metric, value_domain=[1, 2, 3, 4])
            what = f"random table {table}, {metric}, from the call component"
            yield Finding.close(what, by_components(counts, kernel), float(expected), 1e-12)


CLAIM = Claim(
    name="agrees_with_krippendorff",
    statement="Alpha equals the krippendorff package's, and follows from the call component on complete tables.",
    check=check,
    detectable="the sixth decimal of recorded values; 1e-12 where krippendorff is installed",
)
