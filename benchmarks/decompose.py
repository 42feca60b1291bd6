"""Decompose half a million items from in-memory codes, against the same estimator in plain NumPy, in one run.

    python benchmarks/decompose.py [--items 500000]

Prints seconds (best and median of repeated passes, compilation apart) and two ratios: to plain NumPy, whose layout is
the same (item first), so that the change of layout counts; and to a copy of the codes, the floor of any pass.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from secondorder._design import Design, standard_components
from secondorder.core._balanced import balanced_pairs

PROMPTS, ORDERS, REPEATS, CLASSES = 6, 2, 4, 4


def plain_numpy(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Complete-pair and plug-in components as a careful NumPy user writes them: shares, means, quadratic forms."""
    shares = (codes[..., None] == np.arange(CLASSES)).mean(-2)
    square = (shares**2).sum(-1)
    own = (1 - square) / (REPEATS - 1)

    def disagreement(law: np.ndarray, correction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        plug = 1 - (law**2).sum(-1)
        while plug.ndim > 1:
            plug = plug.mean(-1)
        return plug + correction, plug

    both = disagreement(shares, own.mean((1, 2)))
    prompt = disagreement(shares.mean(2), own.mean((1, 2)) / ORDERS)
    order = disagreement(shares.mean(1), own.mean((1, 2)) / PROMPTS)
    none = disagreement(shares.mean((1, 2)), own.mean((1, 2)) / (PROMPTS * ORDERS))
    debiased, plug = (
        np.stack([b, n - p, n - o, p + o - b - n, n]) for b, p, o, n in zip(both, prompt, order, none, strict=True)
    )
    return debiased, plug


def seconds(work: Callable[[], Any], passes: int) -> list[float]:
    found = []
    for _ in range(passes):
        start = time.perf_counter()
        jax.block_until_ready(work())
        found.append(time.perf_counter() - start)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=500_000)
    items = parser.parse_args().items
    codes = np.random.default_rng(0).integers(CLASSES, size=(items, PROMPTS, ORDERS, REPEATS), dtype=np.int8)
    design = Design.balanced({"prompt": PROMPTS, "order": ORDERS})
    components = standard_components(design.names)
    kernel = 1 - np.eye(CLASSES)

    def ours() -> Any:
        return balanced_pairs(codes, design, components, kernel)

    first = seconds(ours, 1)[0]
    fast = seconds(ours, 7)
    slow = seconds(lambda: plain_numpy(codes), 3)
    copy = seconds(codes.copy, 7)
    for mine, theirs in zip(ours(), plain_numpy(codes), strict=True):
        np.testing.assert_allclose(np.asarray(mine), theirs, atol=1e-12)
    print(f"{items} items x {PROMPTS} x {ORDERS} x {REPEATS}: {codes.size / 1e6:.0f} M calls, same values to 1e-12")
    for name, times in (("secondorder", fast), ("plain NumPy", slow), ("copy of the codes", copy)):
        print(f"{name:20} best {min(times):8.4f} s   median {statistics.median(times):8.4f} s")
    print(f"first pass, with compilation {first:.2f} s")
    print(f"ratio to plain NumPy   {statistics.median(slow) / statistics.median(fast):8.1f} x faster")
    print(f"ratio to a memory copy {statistics.median(fast) / statistics.median(copy):8.1f} x slower")


if __name__ == "__main__":
    main()
