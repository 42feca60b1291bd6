"""Design choices at the size of the study that names them: 120 designs on 600 items, with tests and bands.

    python benchmarks/designs.py

Prints the seconds of each part; the tests of one choice are timed against a loop that recomputes every design.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import xarray as xr

from secondorder.studies import dominant_source, ensembles, factor_effects, judge_designs

ITEMS, LOOP = 600, 5
SIZES = {"detail": 3, "scale": 4, "model": 10}


def main() -> None:
    """Print one line for each part."""
    rng = np.random.default_rng(0)
    human = rng.uniform(2, 6, ITEMS)
    score = human + rng.normal(0, 0.3, (10, 1)) + rng.normal(0, 0.5, (*SIZES.values(), ITEMS))
    data = xr.Dataset({"score": ((*SIZES, "item"), score), "gold": ("item", human)})
    asked = {"factors": list(SIZES), "scale": "none"}
    for name, study in {
        "designs, 2 000 draws": lambda: judge_designs(data, **asked),  # type: ignore[arg-type]
        "impacts, 499 relabellings": lambda: factor_effects(data, **asked),  # type: ignore[arg-type]
        "sources of variance": lambda: dominant_source(data, **asked),  # type: ignore[arg-type]
        "ensembles of 2 to 5": lambda: ensembles(data, **asked),  # type: ignore[arg-type]
    }.items():
        begin = perf_counter()
        study()
        print(f"{name:28} {perf_counter() - begin:6.1f} s")
    begin = perf_counter()
    for _ in range(LOOP):
        shuffled = rng.permuted(score, axis=2)
        for cell in shuffled.reshape(-1, ITEMS):
            pooled = np.concatenate([cell, human]).var(ddof=1)
            _ = (cell - human).mean(), np.abs(cell - human).mean(), 1 - ((cell - human) ** 2).mean() / (2 * pooled)
    loop = (perf_counter() - begin) / LOOP * 499 * len(SIZES)
    print(f"{'the same tests in a loop':28} {loop:6.1f} s (errors alone, without pairs and ranks)")


if __name__ == "__main__":
    main()
