"""Joint bootstrap draws against scipy.stats.bootstrap on the same statistic, in one run.

Run: ``python benchmarks/bootstrap.py [--items 419] [--draws 20000] [--columns 5]``. The opponent gets the statistic in
the form that it is fastest with (vectorised mean, percentile interval, items drawn jointly for all columns), once with
its defaults and once with the best of three batch sizes.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

from secondorder.core._intervals import percentile_interval
from secondorder.core._resampling import resample


def best(function: Callable[[], object], repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=419)
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--alone", action="store_true", help="leave the opponent out (its memory grows with the items)")
    options = parser.parse_args()
    values = np.random.default_rng(0).gamma(0.5, size=(options.items, options.columns))

    def ours(workers: int | None) -> object:
        base = resample(values, seed=0, n_draws=options.draws, workers=workers)
        return percentile_interval(base.errors, base.draws)

    ours(1)
    single, threaded = best(lambda: ours(1), options.repeats), best(lambda: ours(None), options.repeats)
    print(f"{options.draws} joint draws, {options.columns} columns, {options.items} items")
    print(f"secondorder, one thread        {single:8.3f} s")
    print(f"secondorder, default           {threaded:8.3f} s")
    print(f"peak memory of the process     {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10:8.0f} MiB")
    if options.alone:
        return
    from scipy.stats import bootstrap

    def scipys(batch: int | None) -> object:
        return bootstrap(
            (values.T,), np.mean, axis=-1, n_resamples=options.draws, method="percentile", batch=batch, rng=0
        )

    plain = best(lambda: scipys(None), options.repeats)
    batched = min(best(lambda batch=batch: scipys(batch), options.repeats) for batch in (100, 500, 2000))
    print(f"scipy.stats.bootstrap          {plain:8.3f} s   ratio {plain / threaded:5.1f}")
    print(f"scipy.stats.bootstrap, batched {batched:8.3f} s   ratio {batched / threaded:5.1f}")


if __name__ == "__main__":
    main()
