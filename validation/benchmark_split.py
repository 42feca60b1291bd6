"""Effects on the benchmark and effects on single items add up to the mean effect on items, in every sample."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import secondorder as so
from secondorder.simulate import Claim, Finding


def check(quick: bool) -> Iterator[Finding]:
    """Random tables, unequal calls: both sides of the identity, computed apart."""
    for number in range(2 if quick else 8):
        generator = np.random.default_rng(number)
        rows = [
            {"item": f"q{i}", "prompt": f"p{k}", "order": o, "run": r, "verdict": "abc"[generator.integers(3)]}
            for i in range(7)
            for k in range(3)
            for o in ("AB", "BA")
            for r in range(int(generator.integers(2, 5)))
        ]
        cube = so.make_cube(
            rows, item="item", facets=["prompt", "order"], repeat="run", verdict="verdict", classes=["a", "b", "c"]
        )
        result = so.decompose(cube)
        split = so.benchmark_effects(result)
        for k, name in enumerate(split.components):
            both = float(split.estimate[k] + split.by_item[k])
            yield Finding.close(f"table {number}: {name}", both, result[name].estimate, 1e-14)


CLAIM = Claim(
    name="benchmark_split",
    statement="The mean effect on items is the effect on the benchmark plus the effect on single items, exactly.",
    check=check,
    detectable="1e-14",
)
