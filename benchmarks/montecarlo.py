"""The paper's twelve designs: this package's engine beside a version on numpy.random.Generator.multinomial.

Run ``python benchmarks/montecarlo.py`` (a million data sets per design; ``--replicates`` for less). The engine runs in
``--threads`` of this process or in ``--processes`` that are spawned, the NumPy version in one process.
Both sides draw the counts of every cell, compute plug-in and debiased values of all five components per data set and
keep the sums from which bias, mean squared error and the share of negative values follow. The NumPy version is
vectorised over data sets, in batches that stay in cache; the engine's time includes compilation.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import get_context
from pathlib import Path

import numpy as np

BATCH = 8192


def numpy_components(counts: np.ndarray, R: int) -> tuple[np.ndarray, np.ndarray]:
    """Plug-in and debiased call, prompt, order, interaction and total of counts (B, K, O, C), nominal kernel."""
    p = counts / R
    square = (p * p).sum(-1)
    same = square.mean((1, 2))
    prompt = (p.mean(2) ** 2).sum(-1).mean(1)
    order = (p.mean(1) ** 2).sum(-1).mean(1)
    overall = (p.mean((1, 2)) ** 2).sum(-1)
    K, orders = counts.shape[1:3]
    # Agreement of distinct calls in a cell, and what it takes away from the means that hold self-pairs.
    excess = ((1 - square) / (R - 1)).mean((1, 2))
    found = []
    for H_XO, H_X, H_O, H_0 in (
        (same, prompt, order, overall),
        (same - excess, prompt - excess / orders, order - excess / K, overall - excess / (K * orders)),
    ):
        found.append(np.stack([1 - H_XO, H_X - H_0, H_O - H_0, H_XO - H_X - H_O + H_0, 1 - H_0], axis=-1))
    return found[0], found[1]


def numpy_study(replicates: int) -> dict[tuple[int, int, str], np.ndarray]:
    """Mean plug-in and debiased prompt component per design."""
    rng = np.random.default_rng(1)
    base = np.array([0.4, 0.3, 0.2, 0.1])
    means = {}
    for K in (5, 6):
        scores = np.linspace(-1, 1, K)
        shift = np.sqrt(0.015 / (scores**2).mean()) * scores[:, None, None] * np.array([1, -1, 0, 0])
        for R in (2, 4, 8):
            for law in ("null", "nonzero"):
                cells = np.broadcast_to(base + (law == "nonzero") * shift, (K, 2, 4))
                sums = np.zeros((2, 5, 4))
                for start in range(0, replicates, BATCH):
                    size = min(BATCH, replicates - start)
                    both = numpy_components(rng.multinomial(R, cells, size=(size, K, 2)), R)
                    for i, values in enumerate(both):
                        sums[i, :, 0] += values.sum(0)
                        sums[i, :, 1] += (values**2).sum(0)
                        sums[i, :, 2] += (values**4).sum(0)
                        sums[i, :, 3] += (values < -1e-10).sum(0)
                means[K, R, law] = sums[:, 1, 0] / replicates
    return means


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()

    from secondorder.simulate import Study, load_declared, run_study

    path = Path(__file__).parents[1] / "simulations" / "paper_calibration.py"
    start, start_cpu = time.perf_counter(), time.process_time()
    pool: AbstractContextManager[Executor | None] = nullcontext(None)
    if options.processes > 1:
        pool = ProcessPoolExecutor(options.processes, mp_context=get_context("spawn"))
    elif options.threads > 1:
        pool = ThreadPoolExecutor(options.threads)
    with pool as executor:
        result = run_study(
            load_declared(path, "STUDY", Study), replicates=options.replicates, executor=executor, source=path
        )
    ours, ours_cpu = time.perf_counter() - start, time.process_time() - start_cpu
    start, start_cpu = time.perf_counter(), time.process_time()
    means = numpy_study(options.replicates)
    theirs, theirs_cpu = time.perf_counter() - start, time.process_time() - start_cpu

    data = result.data
    print(f"{'K':>2} {'R':>2} {'law':>8} {'plug-in':>9} {'NumPy':>9} {'debiased':>9} {'NumPy':>9}")
    for (K, R, law), (plug, debiased) in means.items():
        cell = data.sel(K=K, R=R, law=law, estimand="prompt")
        value = (cell["bias"] + cell["truth"]).sel(estimator=["plugin", "debiased"]).values
        print(f"{K:2d} {R:2d} {law:>8} {value[0]:9.5f} {plug:9.5f} {value[1]:9.5f} {debiased:9.5f}")
    how = f"{options.threads} threads, {options.processes} processes"
    print(f"{12 * options.replicates:,} data sets; engine with {how}")
    print(f"time: engine {ours:.1f} s, NumPy {theirs:.1f} s, ratio {theirs / ours:.1f}")
    if options.processes == 1:
        # On a busy machine the processor's seconds say more than the clock's.
        print(f"processor time: engine {ours_cpu:.1f} s, NumPy {theirs_cpu:.1f} s, ratio {theirs_cpu / ours_cpu:.1f}")


if __name__ == "__main__":
    main()
