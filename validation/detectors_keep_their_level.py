"""Tests of independence reject independent calls no more often than they say, and shared seeds nearly always."""

from __future__ import annotations

from typing import Any

import numpy as np

from secondorder import core
from secondorder.simulate import Claim, Dependence, Draw, Estimate, Expect, Mechanism, Method, Study, laws

NAMES = ("repeat alignment", "repeat alignment, items", "first repeat", "copies of the first", "halves, contiguous",
         "halves, interleaved", "neighbours")  # fmt: skip
ALONG = NAMES[2:]
FACETS = {"prompt": 4, "order": 2}


def mechanism(seeds: str) -> Mechanism:
    """Ten items without effects; with shared seeds only alignment has something to find."""
    law = laws.exchangeable([0.5, 0.3, 0.2], FACETS).isel(item=[0] * 10)
    law = law.assign_coords(item=[str(i) for i in range(10)])
    truth = {name: float(seeds == "shared" and name == "repeat alignment") for name in NAMES}
    return Mechanism(law, repeats=4, dependence=Dependence("seed") if seeds == "shared" else None, truth=truth)


def tests(draw: Draw) -> Estimate:
    """Each test at 5 %, 99 shuffles."""
    codes = np.asarray(draw.codes)
    codes = codes.reshape(*codes.shape[:2], -1, codes.shape[-1])
    value, reject = (np.full((len(codes), len(NAMES)), np.nan) for _ in range(2))
    for b, verdicts in enumerate(codes):
        seed = int((verdicts.astype(np.int64).ravel() * np.arange(1, verdicts.size + 1)).sum())
        found: dict[str, Any] = {
            test.name: test for test in core.independence_tests(verdicts, draw.kernel, seed=seed, n_draws=99)
        }
        value[b] = [found[name].statistic for name in NAMES]
        reject[b] = [found[name].pvalue <= 0.05 for name in NAMES]
    return Estimate(value, reject=reject)


STUDY = Study(
    name="detectors_keep_their_level",
    aims="Do tests of independence keep their level, also when what they do not test is broken?",
    factors={"seeds": ("own", "shared")},
    mechanism=mechanism,
    methods=(Method("tests", tests, calls=True),),
    estimands=NAMES,
    replicates=8_000,
    seed=15,
)

CLAIM = Claim(
    name="detectors_keep_their_level",
    statement="Tests of independence reject at most 5 % of independent runs; those along repeats of shared seeds too.",
    study=STUDY,
    expects=(
        Expect("size", "tests", at_most=0.05, where={"seeds": "own"}, estimands=NAMES),
        Expect("size", "tests", at_most=0.05, where={"seeds": "shared"}, estimands=ALONG),
        Expect("power", "tests", at_least=0.99, where={"seeds": "shared"}, estimands=NAMES[:1]),
    ),
    false_alarm=1e-6,
    quick_replicates=600,
)
