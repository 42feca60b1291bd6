"""Item-bootstrap bands of agreement against a loop over the `krippendorff` package, in one run.

    python benchmarks/agreement.py

10 000 items, 12 raters, 2 000 item draws. The loop is timed on fewer draws and scaled (its cost per draw is constant);
each side reads the same ratings. The exit code is 1 where alpha's band is less than 20 times as fast.
"""

from __future__ import annotations

import sys
from time import perf_counter

import krippendorff
import numpy as np
import xarray as xr

from secondorder.studies import COEFFICIENTS, agreement

ITEMS, RATERS, DRAWS, LOOP_DRAWS, LEAST = 10_000, 12, 2_000, 10, 20


def loop_seconds(codes: np.ndarray, metric: str) -> float:
    """Seconds of DRAWS calls of the package on resampled items, scaled from LOOP_DRAWS."""
    rng = np.random.default_rng(0)
    table = codes.T.astype(float)
    begin = perf_counter()
    for _ in range(LOOP_DRAWS):
        krippendorff.alpha(table[:, rng.integers(0, ITEMS, ITEMS)], level_of_measurement=metric)
    return (perf_counter() - begin) * DRAWS / LOOP_DRAWS


def our_seconds(ratings: xr.DataArray, coefficients: list[str], metric: str) -> float:
    """Best of three runs of the labelled function, bands and table included."""
    times = []
    for _ in range(3):
        begin = perf_counter()
        agreement(ratings, raters="rater", coefficients=coefficients, metric=metric, draws=DRAWS)
        times.append(perf_counter() - begin)
    return min(times)


def main() -> int:
    """Print one line for each metric; 0 when every ratio is large enough."""
    rng = np.random.default_rng(1)
    quality = rng.normal(size=(ITEMS, 1))
    codes = np.clip(np.round(quality + rng.normal(size=(ITEMS, RATERS))) + 2, 0, 4).astype(int)
    ratings = xr.DataArray(codes, dims=("item", "rater"))
    slow = False
    for metric in ("nominal", "ordinal", "interval"):
        theirs = loop_seconds(codes, metric)
        ours = our_seconds(ratings, ["krippendorff"], metric)
        slow = slow or theirs < LEAST * ours
        print(f"alpha, {metric:9}  loop {theirs:6.2f} s   bands {ours:5.2f} s   ratio {theirs / ours:6.1f}")
    theirs, ours = loop_seconds(codes, "nominal"), our_seconds(ratings, list(COEFFICIENTS), "nominal")
    print(
        f"all {len(COEFFICIENTS)} coefficients, loop of alpha alone   bands {ours:5.2f} s   ratio {theirs / ours:6.1f}"
    )
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
