"""Aggregation: Dawid and Skene at scale, and exact numbers at equal calls against resampling to the same precision.

    python benchmarks/votes.py

Prints one line for each. The exact numbers cover three sources, each from shared and from fresh prompts; resampling is
timed for one of these six, to a Monte Carlo error that shows three digits.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np
import xarray as xr

from secondorder.studies import dawid_skene, match_budget, vote

TASKS, VOTERS, CLASSES = 100_000, 10, 5
ITEMS, PROMPTS, CALLS, M = 1_000, 5, 6, 3
WANTED_SD = 0.0005  # Monte Carlo error of a probability that shows three digits


def said(rng: np.random.Generator, right: np.ndarray, accuracy: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Votes that are right with a probability of their own, else any class."""
    full = right.reshape(-1, *[1] * (len(shape) - 1))
    return np.where(rng.random(shape) < accuracy, full, rng.integers(0, CLASSES, shape))


def many_tasks(rng: np.random.Generator) -> None:
    """Fit of error rates."""
    right = rng.integers(0, CLASSES, TASKS)
    codes = said(rng, right, np.linspace(0.4, 0.9, VOTERS), (TASKS, VOTERS))
    votes = np.eye(CLASSES)[codes]
    begin = perf_counter()
    fit = dawid_skene(votes)
    seconds = perf_counter() - begin
    found = (fit.posterior.argmax(1) == right).mean()
    plain = (vote(codes, ties="random").codes == right).mean()
    print(f"Dawid-Skene, {TASKS:,} x {VOTERS} x {CLASSES}: {seconds:5.1f} s, {fit.steps} steps "
          f"({seconds / fit.steps * 1e3:.0f} ms each); right {found:.3f}, plurality {plain:.3f}")  # fmt: skip


def drawn_plurality(codes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Most votes along the last axis, ties drawn: counts with less than half a vote of noise."""
    counts = (codes[..., None] == np.arange(CLASSES)).sum(-2)
    return (counts + 0.4 * rng.random(counts.shape)).argmax(-1)


def equal_calls(rng: np.random.Generator) -> None:
    """Exact stability of three repeats against random disjoint subsets, in one run."""
    right = rng.integers(0, CLASSES, ITEMS)
    codes = said(rng, right, np.full(1, 0.5), (ITEMS, PROMPTS, CALLS))
    cube = xr.Dataset({"verdict": (("item", "prompt", "repeat"), codes)}, coords={"class": [*map(str, range(CLASSES))]})
    begin = perf_counter()
    exact = match_budget(cube, calls=[M], draws=0)["stability_shared"].estimate
    ours = perf_counter() - begin
    begin = perf_counter()
    rounds, agreed = 20, []
    for _ in range(rounds):
        order = rng.permuted(codes, axis=-1)
        first, second = (drawn_plurality(order[..., k * M : (k + 1) * M], rng) for k in (0, 1))
        agreed.append((first == second).mean())
    sd = np.std(agreed, ddof=1)
    theirs = (perf_counter() - begin) / rounds * max(1.0, (sd / WANTED_SD) ** 2)
    value = float(exact.sel(source="repeats", calls=M))
    print(f"equal calls, {ITEMS:,} items: exact {ours:5.2f} s (three sources), resampling one source to {WANTED_SD:g}: "
          f"{theirs:5.2f} s; {value:.4f} against {np.mean(agreed):.4f}")  # fmt: skip


def main() -> None:
    """Print both."""
    rng = np.random.default_rng(0)
    many_tasks(rng)
    equal_calls(rng)


if __name__ == "__main__":
    main()
