"""Under each hypothesis the debiased statistic has mean exactly zero over all shuffles of any data."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import numpy as np

import secondorder as so
from secondorder.simulate import Claim, Finding

NOMINAL = 1.0 - np.eye(3)
ORDINAL = np.abs(np.subtract.outer(range(3), range(3))) / 2


def check(quick: bool) -> Iterator[Finding]:
    """All shuffles of calls across three prompts; all relabellings inside repeats; all relabellings inside items."""
    design = so.Design.balanced({"prompt": 3})
    prompt = (so.standard_components(("prompt",))[1],)
    for number in range(1 if quick else 4):
        generator = np.random.default_rng(number)
        for name, kernel in (("nominal", NOMINAL), ("ordinal", ORDINAL)):
            calls = generator.integers(3, size=6)
            shuffled = np.array(list(permutations(calls.tolist()))).reshape(-1, 3, 2)
            cells = so.core.cells_from_counts(np.eye(3)[shuffled].sum(2))
            mean = float(np.asarray(so.core.complete_pairs(cells, design, prompt, kernel)).mean())
            yield Finding.close(f"calls across prompts, {name}, {calls.tolist()}", mean, 0.0, 1e-13)
            blocks = calls.reshape(3, 2)
            orders = [np.array(order) for order in permutations(range(3))]
            labels = np.stack([np.stack([blocks[a, 0], blocks[b, 1]], -1) for a, b in product(orders, orders)])
            across = so.core.across_repeats(np.eye(3)[labels], design, prompt, kernel)
            yield Finding.close(
                f"labels in repeats, {name}, {calls.tolist()}", float(np.asarray(across).mean()), 0.0, 1e-13
            )
            means = np.eye(3)[generator.integers(3, size=(3, 3, 2))].mean(2)
            every = np.stack([np.stack([means[i][o] for i, o in enumerate(c)]) for c in product(orders, repeat=3)])
            item = so.Design(("item", "prompt"), ((1 / 3,) * 3, (1 / 3,) * 3), (float("inf"), None))
            wide = next(c for c in so.standard_components(item.names) if c.name == "prompt")
            ones = np.full(every.shape[:-1], 2.0)
            values = so.core.plugin(so.core.Cells(ones, every, ones), item, (wide,), kernel)
            yield Finding.close(f"levels inside items, {name}", float(np.asarray(values).mean()), 0.0, 1e-13)


CLAIM = Claim(
    name="permutations_exact",
    statement="Over all shuffles that a hypothesis makes equally likely, the debiased statistic has mean exactly zero.",
    check=check,
    detectable="1e-13 over all 720, 36 and 216 shuffles",
)
