"""Committed results are those of the studies as they are declared, with the replicates that they declare."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondorder.simulate import Study, load_declared, open_study_result

ROOT = Path(__file__).parents[1]
STUDIES = sorted((ROOT / "simulations").glob("*.py"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_results_are_of_the_declared_study(path: Path) -> None:
    """Laws, designs, methods and seed are in the digest: a change to one of them asks for a new run."""
    folder = ROOT / "simulations" / "results" / path.stem
    study = load_declared(path, "STUDY", Study)
    attrs = open_study_result(folder / "results.nc").data.attrs
    assert attrs["digest"] == study.digest()
    assert attrs["replicates"] == study.replicates
    assert {file.name for file in folder.iterdir()} >= {"results.nc", "summary.csv", "figure.png"}


def test_no_results_without_a_study() -> None:
    """Results of a study that was renamed or removed would be read as if they were current."""
    folders = {path.name for path in (ROOT / "simulations" / "results").iterdir() if path.is_dir()}
    assert folders == {path.stem for path in STUDIES}
