"""The engine draws the multinomial: the probability of every composition, by counting it."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from secondorder.simulate import Claim, Draw, Expect, Mechanism, Method, Study, laws

LAW = (0.6, 0.3, 0.1)


def compositions(R: int) -> list[tuple[int, ...]]:
    """Every possible table of counts of one cell."""
    return [counts for counts in product(range(R + 1), repeat=3) if sum(counts) == R]


def probability(counts: tuple[int, ...]) -> float:
    """Multinomial probability, by factorials."""
    ways = math.factorial(sum(counts)) / math.prod(map(math.factorial, counts))
    return ways * math.prod(p**k for p, k in zip(LAW, counts, strict=True))


def mechanism(route: str) -> Mechanism:
    """Three calls in each of two cells of one law, drawn at once or one by one."""
    law = laws.exchangeable(LAW, {"prompt": 2})
    truth = {str(counts): probability(counts) for counts in compositions(3)}
    # Under a drift from the law to itself the engine has to draw call by call.
    return Mechanism(law, repeats=3, truth=truth, drift_to=law if route == "calls" else None)


def frequency(draw: Draw) -> np.ndarray:
    """Share of the two cells that show each composition."""
    counts = np.asarray(draw.counts)[:, 0]
    return np.stack([(counts == c).all(-1).mean(-1) for c in compositions(3)], axis=-1)


STUDY = Study(
    name="draws",
    aims="Does every table of counts come up with its multinomial probability?",
    factors={"route": ("counts", "calls")},
    mechanism=mechanism,
    methods=(Method("frequency", frequency),),
    estimands=tuple(str(counts) for counts in compositions(3)),
    replicates=4_000_000,
    seed=11,
)

CLAIM = Claim(
    name="draws_follow_the_law",
    statement="Counts drawn by one uniform number per cell, and calls drawn one by one, follow the multinomial law.",
    study=STUDY,
    expects=(Expect("bias", "frequency", equals=0.0),),
    false_alarm=1e-6,
    quick_replicates=400_000,
)
