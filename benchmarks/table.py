"""A CSV of verdicts to a cube, against what pandas alone takes to read it, factorise it and look for duplicates.

Run: ``python benchmarks/table.py [--items 50000] [--prompts 6] [--orders 2] [--calls 4] [--quoted] [--repeats 3]``. The
rows are shuffled. Both sides read the same file in turn within one run; the best of the repeats counts.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from secondorder._labels._files import open_cube, save_cube
from secondorder._labels._identity import cube_digest
from secondorder._labels._read import make_cube, read_table

KEY = ["item", "prompt", "order", "repeat"]
ROLES = {"item": "item", "facets": ["prompt", "order"], "repeat": "repeat", "verdict": "verdict"}


def write_table(path: Path, shape: tuple[int, ...], quoted: bool) -> None:
    rng = np.random.default_rng(0)
    index = rng.permutation(int(np.prod(shape)))
    item, prompt, order, repeat = np.unravel_index(index, shape)
    frame = pd.DataFrame(
        {
            "item": np.char.add("item_", item.astype(str)),
            "prompt": np.char.add("prompt_", prompt.astype(str)),
            "order": np.array(["AB", "BA"])[order % 2],
            "repeat": repeat.astype(str),
            "verdict": np.array(["first", "second", "tie"])[rng.integers(0, 3, index.size)],
        }
    )
    frame.to_csv(path, index=False, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL)


def pandas_alone(path: Path) -> pd.DataFrame:
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    for column in frame:
        pd.factorize(frame[column])
    if frame.duplicated(KEY).any():
        raise ValueError("duplicates")
    return frame


def seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--prompts", type=int, default=6)
    parser.add_argument("--orders", type=int, default=2, choices=(1, 2))
    parser.add_argument("--calls", type=int, default=4)
    parser.add_argument("--quoted", action="store_true", help="quote every field")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    shape = (options.items, options.prompts, options.orders, options.calls)
    with tempfile.TemporaryDirectory() as folder:
        path, stored = Path(folder) / "calls.csv", Path(folder) / "cube.nc"
        write_table(path, shape, options.quoted)
        frame = pandas_alone(path)
        cube = read_table(path, **ROLES)
        save_cube(cube, stored)
        tasks: dict[str, Callable[[], object]] = {
            "pandas: read, factorise, duplicates": lambda: pandas_alone(path),
            "read_table: file to cube": lambda: read_table(path, **ROLES),
            "make_cube: DataFrame of text to cube": lambda: make_cube(frame, **ROLES),
            "save_cube: NetCDF": lambda: save_cube(cube, stored),
            "open_cube": lambda: open_cube(stored).close(),
            "cube_digest": lambda: cube_digest(cube),
        }
        best = dict.fromkeys(tasks, np.inf)
        for _ in range(options.repeats):
            for name, task in tasks.items():
                best[name] = min(best[name], seconds(task))
        print(f"{int(np.prod(shape)):,} rows, {path.stat().st_size / 1e6:.0f} MB")
        reference = next(iter(best.values()))
        for name, time_taken in best.items():
            print(f"{name:38s} {time_taken:7.3f} s   x {time_taken / reference:.2f}")


if __name__ == "__main__":
    main()
