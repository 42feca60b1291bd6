"""A small study and its whole run."""

from __future__ import annotations

import pytest

from secondorder.simulate import Mechanism, Study, StudyResult, laws, run_study

FACETS = {"prompt": 2, "order": 2}
# More than two blocks of 8192, and a last one that is not full.
REPLICATES = 20_000


def mechanism(R: int) -> Mechanism:
    return Mechanism(laws.exchangeable([0.6, 0.4], FACETS), repeats=R)


STUDY = Study("small", "Is it unbiased?", {"R": (2, 3)}, mechanism, replicates=REPLICATES, seed=5)


@pytest.fixture(scope="session")
def whole() -> StudyResult:
    return run_study(STUDY)


def same(one: StudyResult, other: StudyResult) -> bool:
    return bool((one.data["sums"].values == other.data["sums"].values).all())
