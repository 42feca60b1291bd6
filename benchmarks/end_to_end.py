"""From a CSV file of 2.4 million calls to JSON, as a command, against what pandas alone needs to read that table.

    python benchmarks/end_to_end.py [--items 50000] [--passes 3]

The opponent reads the file as text, factorises every column and looks for duplicates: what any such program has to do
before its first number. Both run in processes of their own, in turn; the ratio is taken pair by pair.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

PROMPTS = ("none", "upper", "title", "brackets", "xml", "markdown")
PANDAS = """
import sys, pandas as pd
table = pd.read_csv(sys.argv[1], dtype=str, keep_default_na=False)
for column in table.columns:
    pd.factorize(table[column])
table.duplicated(subset=["item", "prompt", "order", "run"]).any()
"""
FLAGS = (
    *("--item", "item", "--facet", "prompt", "--facet", "order", "--repeat", "run", "--verdict", "verdict"),
    *("--classes", "1,2,tie", "--invalid", "", "--format", "json"),
)


def write(path: Path, items: int) -> int:
    rng = np.random.default_rng(0)
    item, prompt, order, run = np.indices((items, len(PROMPTS), 2, 4)).reshape(4, -1)
    table = pd.DataFrame(
        {
            "item": np.char.add("q", item.astype(str)),
            "prompt": np.array(PROMPTS)[prompt],
            "order": np.array(["AB", "BA"])[order],
            "run": run,
            "verdict": np.array(["1", "2", "tie", ""])[rng.integers(0, 4, item.size)],
        }
    )
    table.sample(frac=1, random_state=0).to_csv(path, index=False)
    return len(table)


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=50_000)
    parser.add_argument("--passes", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "calls.csv"
        rows = write(path, options.items)
        pairs = []
        for _ in range(options.passes):
            alone = seconds([sys.executable, "-c", PANDAS, str(path)])
            whole = seconds([sys.executable, "-m", "secondorder", "decompose", str(path), *FLAGS])
            pairs.append((alone, whole))
    print(f"{rows} calls")
    for name, column in (("pandas: read, factorise, duplicates", 0), ("secondorder decompose, CSV to JSON", 1)):
        print(f"{name:38} median {statistics.median(pair[column] for pair in pairs):7.2f} s")
    ratio = statistics.median(whole / alone for alone, whole in pairs)
    print(f"ratio, pair by pair                    median {ratio:7.2f}")


if __name__ == "__main__":
    main()
