"""Do the bands of demo-size audits cover the truth at their stated rate?

``python benchmarks/coverage_of_demo.py`` simulates 200 audits of the size and law of ``secondorder demo`` (50 pairs in
five topics, 6 prompts, 2 orders, 4 repeats), each through the same cube and the same decomposition, without HTTP:

- *items*: every audit has new pairs of the demo's population, and the band over items is held to the population's
  truth, taken from 100,000 further pairs;
- *calls*: every audit has the demo's own 50 pairs, and the band over calls is held to the truth of those pairs.

Prints, for each component, mean estimate and share of bands that cover, with the Monte Carlo standard error of a rate
of 95 %; exits with 1 when a rate is further than 3.5 of them from it (false alarm over the ten rates: below 1 %; a band
that covers 88 % of the time is found in more than 4 of 5 runs).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from importlib.resources import files

import numpy as np
import xarray as xr

import secondorder as so
from secondorder._audit._demo import demo_laws, law_of_plan
from secondorder._audit._demo_law import TOPICS, cell_law
from secondorder._canon import blake2b_64

PROMPTS = ["none", "upper", "title", "brackets", "xml", "markdown"]
ORDERS = ["AB", "BA"]
CLASSES = ["1", "2", "tie", "⊥"]
REPEATS = 4
LEVEL = 0.95
TOLERANCE = 3.5


def pairs(name: str, per_topic: int) -> list[tuple[str, str, str]]:
    """New pairs of the demo's population: label, topic, better answer (a tie with probability 0.2)."""
    labels = [(f"{name}/{topic}-{k}", topic) for topic in TOPICS for k in range(per_topic)]
    return [(label, topic, ("1", "2", "1", "2", "tie")[blake2b_64(["better", label]) % 5]) for label, topic in labels]


def law_of(items: list[tuple[str, str, str]]) -> xr.DataArray:
    """Class probabilities of every cell."""
    cells = np.array(
        [
            [[_classes(cell_law(label, topic, better, prompt, order), order) for order in ORDERS] for prompt in PROMPTS]
            for label, topic, better in items
        ]
    )
    names = [label for label, _, _ in items]
    coords = {"item": names, "prompt": PROMPTS, "order": ORDERS, "class": CLASSES}
    return xr.DataArray(cells, dims=list(coords), coords=coords)


def _classes(law: dict[str, float], order: str) -> list[float]:
    one, two = ("A", "B") if order == "AB" else ("B", "A")
    return [law[one], law[two], law["TIE"], 1.0 - law["A"] - law["B"] - law["TIE"]]


def audit(law: xr.DataArray, topics: list[str], rng: np.random.Generator) -> so.Decomposition:
    """One audit's calls drawn from a law, as a table, as a cube, decomposed."""
    shape = (*law.shape[:-1], REPEATS)
    codes = (rng.random(shape)[..., None] > law.values.cumsum(-1)[..., None, :-1]).sum(-1)
    rows = {"item": law["item"].values, "prompt": PROMPTS, "order": ORDERS, "repeat": [str(r) for r in range(REPEATS)]}
    table = xr.DataArray(np.array(CLASSES, dtype=object)[codes], dims=list(rows), coords=rows, name="verdict")
    frame = table.to_series().reset_index()
    frame["topic"] = frame["item"].map(dict(zip(rows["item"], topics, strict=True)))
    cube = so.make_cube(
        frame,
        item="item",
        facets=["prompt", "order"],
        repeat="repeat",
        verdict="verdict",
        stratum="topic",
        classes=CLASSES[:-1],
        invalid=["⊥"],
    )
    return so.decompose(cube, level=LEVEL)


def audits(kind: str, n: int, seed: int) -> Iterator[so.Decomposition]:
    rng = np.random.default_rng([seed, len(kind)])
    fixed, topics = demo_law()
    for number in range(n):
        if kind == "items":
            items = pairs(f"audit {number}", 10)
            yield audit(law_of(items), [topic for _, topic, _ in items], rng)
        else:
            yield audit(fixed, topics, rng)


def demo_law() -> tuple[xr.DataArray, list[str]]:
    """Law and topics of the demo's own 50 pairs."""
    loaded = so.load_audit(str(files("secondorder") / "_shipped_data" / "demo"))
    planned = so.plan_audit(loaded)
    return law_of_plan(planned, demo_laws(loaded, planned)), [item.stratum for item in loaded.items]


def study(kind: str, truth: xr.Dataset, n: int, seed: int) -> bool:
    """Print one table; whether every rate is where it should be."""
    names = truth.component.values.tolist()
    true = truth.value.values
    estimates, plugins, covered, widths = (np.zeros((n, len(names))) for _ in range(4))
    for k, found in enumerate(audits(kind, n, seed)):
        bands = np.array([found.interval(name, covers=kind) for name in names])
        estimates[k] = [found[name].estimate for name in names]
        plugins[k] = [found[name].plugin for name in names]
        covered[k] = (bands[:, 0] <= true) & (true <= bands[:, 1])
        widths[k] = bands[:, 1] - bands[:, 0]
    mcse = (LEVEL * (1 - LEVEL) / n) ** 0.5
    print(f"{n} audits, band over {kind} at {LEVEL:.0%}; Monte Carlo standard error of a rate: {mcse:.3f}")
    print(f"{'component':<13}{'truth':>8}{'debiased':>10}{'(se)':>9}{'plug-in':>9}{'width':>8}{'covers':>8}")
    for j, name in enumerate(names):
        print(
            f"{name:<13}{true[j]:8.4f}{estimates[:, j].mean():10.4f}{estimates[:, j].std(ddof=1) / n**0.5:9.4f}"
            f"{plugins[:, j].mean():9.4f}{widths[:, j].mean():8.4f}{covered[:, j].mean():8.3f}"
        )
    print()
    return bool((np.abs(covered.mean(0) - LEVEL) <= TOLERANCE * mcse).all())


def population(n_per_topic: int) -> xr.Dataset:
    return so.decompose_law(law_of(pairs("population", n_per_topic)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicates", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.perf_counter()
    good = [
        study("items", population(20_000), options.replicates, options.seed),
        study("calls", so.decompose_law(demo_law()[0]), options.replicates, options.seed),
    ]
    print(f"{time.perf_counter() - began:.0f} s")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
