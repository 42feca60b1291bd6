"""Committed results are those of the studies as they are declared, with the replicates that they declare."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from secondorder.simulate import Study, load_declared, open_study_result
from secondorder.simulate._methods import method_names
from secondorder.simulate._prepared import prepare

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "simulations" / "results"
STUDIES = sorted((ROOT / "simulations").glob("*.py"))

pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="a source distribution carries no results")


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_results_are_of_the_declared_study(path: Path) -> None:
    """Grid, methods, seed, replicates and truths are the declaration's: a change to one of them asks for a new run.

    Not the digest: laws made with exponentials differ in their last digit from one processor to another.
    """
    study = load_declared(path, "STUDY", Study)
    data = open_study_result(RESULTS / path.stem).data
    assert data.attrs["seed"] == str(study.seed)
    assert data.attrs["replicates"] == study.replicates
    assert data.attrs["level"] == study.level
    assert list(data["estimator"].values) == list(method_names(study.methods))
    for factor, levels in study.factors.items():
        assert data[factor].values.tolist() == list(levels)
    first, *_, last = study.points()
    for point in (first, last):
        prepared = prepare(study.mechanism_at(point), study.estimands)
        assert tuple(data["estimand"].values) == prepared.names
        np.testing.assert_allclose(data["truth"].sel(point).values, prepared.truth, atol=1e-12)
    assert {file.name for file in (RESULTS / path.stem).iterdir()} >= {"results.nc", "summary.csv", "figure.png"}


def test_no_results_without_a_study() -> None:
    """Results of a study that was renamed or removed would be read as if they were current."""
    assert {path.name for path in RESULTS.iterdir() if path.is_dir()} == {path.stem for path in STUDIES}
