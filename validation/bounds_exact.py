"""Certificates stand on the proven range of an item's value: no outcome leaves it, and some reach its ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import numpy as np

import secondorder as so
from secondorder.simulate import Claim, Finding

SCORES = 0.5 * np.subtract.outer([0.0, 1.0, 3.0], [0.0, 1.0, 3.0]) ** 2
CASES = {
    "K = 3, O = 2, R = 2, two classes": (so.Design.balanced({"prompt": 3, "order": 2}), 1.0 - np.eye(2), 2),
    "K = 3, R = 3, three classes": (so.Design.balanced({"prompt": 3}), 1.0 - np.eye(3), 3),
    "K = 2, R = 2, scores": (so.Design.balanced({"prompt": 2}), SCORES, 2),
}


def check(quick: bool) -> Iterator[Finding]:
    """Every table of counts of small designs."""
    for name, (design, kernel, calls) in list(CASES.items())[: 2 if quick else None]:
        classes, cells = len(kernel), int(np.prod(design.shape))
        single = np.array(
            [np.bincount(found, minlength=classes) for found in combinations_with_replacement(range(classes), calls)]
        )
        picks = np.array(list(product(range(len(single)), repeat=cells)))
        counts = single[picks].reshape(-1, *design.shape, classes)
        components = so.standard_components(design.names)
        values = np.asarray(so.core.complete_pairs(so.core.cells_from_counts(counts), design, components, kernel))
        for j, component in enumerate(components):
            bounds = so.core.item_bounds(design, component, kernel, calls)
            low, high = float(values[:, j].min()), float(values[:, j].max())
            what = f"{name}: {component.name}"
            yield Finding.at_least(f"least value, {what}", low - bounds.lower, -1e-12)
            yield Finding.at_most(f"greatest value, {what}", high - bounds.upper, 1e-12)
            if component.name not in ("call", "total"):
                yield Finding.close(f"least value is reached, {what}", low, bounds.lower, 1e-12)
                yield Finding.close(f"greatest value is reached, {what}", high, bounds.upper, 1e-12)


CLAIM = Claim(
    name="bounds_exact",
    statement="The debiased value of an item cannot leave its proven range, and reaches both ends of it.",
    check=check,
    detectable="1e-12 over every outcome of three designs",
)
