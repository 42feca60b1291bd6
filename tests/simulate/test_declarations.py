"""Declarations of studies: what tells two apart, what is refused, and faults in one's own functions."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from secondorder.errors import SpecError
from secondorder.simulate import (
    Draw,
    Estimate,
    Mechanism,
    Method,
    Published,
    Study,
    laws,
    load_declared,
    run_study,
    with_levels,
)
from secondorder.simulate._measures import MEASURES
from secondorder.simulate._prepared import prepare

from .conftest import FACETS, STUDY, mechanism

ROOT = Path(__file__).resolve().parents[2]


def test_the_digest_is_of_what_is_simulated() -> None:
    def rewritten(R: int) -> Mechanism:
        return Mechanism(laws.exchangeable([0.6, 1 - 0.6], dict(FACETS)), repeats=int(R))

    same_study = Study("small", "Other words.", {"R": (2, 3)}, rewritten, replicates=7, seed=5)
    assert same_study.digest() == STUDY.digest()
    assert hash(same_study) == hash(STUDY)
    changes: list[dict[str, Any]] = [
        {"seed": 6}, {"factors": {"R": (2, 4)}}, {"methods": ("debiased",)}, {"level": 0.9}, {"estimands": ("call",)},
        {"mechanism": lambda R: Mechanism(laws.exchangeable([0.61, 0.39], FACETS), repeats=R)},
    ]  # fmt: skip
    options = {"factors": {"R": (2, 3)}, "mechanism": mechanism, "replicates": 7, "seed": 5}
    digests = {Study("small", "", **{**options, **change}).digest() for change in changes}  # type: ignore[arg-type]
    assert len(digests | {STUDY.digest()}) == len(changes) + 1


def test_other_levels_are_parsed_as_their_factor() -> None:
    study = Study("s", "", {"R": (2,), "law": ("null",)}, mechanism, replicates=10, seed=1)
    assert with_levels(study, {"R": ["4", "8"], "law": ["x"]}).factors == {"R": (4, 8), "law": ("x",)}
    with pytest.raises(SpecError, match="its levels are ints"):
        with_levels(study, {"R": ["many"]})
    with pytest.raises(SpecError, match="factors: R, law"):
        with_levels(study, {"K": ["4"]})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": "a b"}, "letters"),
        ({"factors": {}}, "no factor"),
        ({"factors": {"R": ()}}, "list of levels"),
        ({"factors": {"R": (2, 2)}}, "distinct"),
        ({"factors": {"R": (2, "3")}}, "one type"),
        ({"factors": {"estimand": (2,)}}, "Python argument"),
        ({"replicates": 0}, "at least 1"),
        ({"level": 1.0}, "probability"),
        ({"measures": ("speed",)}, "bias"),
        ({"methods": ("bayes",)}, "debiased, plugin"),
        ({"methods": ()}, "at least one"),
    ],
)
def test_wrong_studies_are_refused(change: dict[str, Any], says: str) -> None:
    options = {"name": "s", "aims": "", "factors": {"R": (2,)}, "mechanism": mechanism, "replicates": 10, "seed": 1}
    with pytest.raises(SpecError, match=says):
        Study(**{**options, **change})


def test_faults_in_own_functions_are_named() -> None:
    def fails(draw: Draw) -> Any:
        raise KeyError("x")

    study = {"aims": "", "replicates": 10, "seed": 1}
    with pytest.raises(SpecError, match=r"method bad: it raises KeyError"):
        run_study(Study("s", factors={"R": (2,)}, mechanism=mechanism, methods=(Method("bad", fails),), **study))
    with pytest.raises(SpecError, match=r"mechanism\(K=2\) raises TypeError"):
        run_study(Study("s", factors={"K": (2,)}, mechanism=mechanism, **study))
    for given, words in ((None, r"value has shape \(\)"), (Estimate("x"), "value holds no numbers")):
        odd = Method("odd", lambda draw, given=given: given)  # type: ignore[misc]
        with pytest.raises(SpecError, match=f"method odd: {words}"):
            run_study(Study("s", factors={"R": (2,)}, mechanism=mechanism, methods=(odd,), **study))
    with pytest.raises(SpecError, match="is a int"):
        run_study(Study("s", factors={"K": (2,)}, mechanism=lambda K: K, **study))
    local = Study("s", factors={"R": (2,)}, mechanism=mechanism, methods=(Method("m", lambda draw: draw),), **study)
    spawned = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    with spawned as executor, pytest.raises(SpecError, match="top of the study's file"):
        run_study(local, executor=executor)


def test_a_figure_that_fails_leaves_the_numbers(tmp_path: Path) -> None:
    from secondorder.cli._simulate import _draw

    study = Study("s", "", {"R": (2,)}, mechanism, replicates=10, seed=1, figure=lambda result: None)
    with pytest.raises(SpecError, match=r"its figure cannot be drawn \(AttributeError"):
        _draw(study, None, tmp_path / "figure.png")  # type: ignore[arg-type]


def test_published_numbers_stand_beside_the_studys_own() -> None:
    printed = Published({"R": 2}, "plugin", "prompt", "bias", 0.12, "a table")
    study = Study("p", "", {"R": (2,)}, mechanism, replicates=100, seed=1, published=(printed,), measures=("bias",))
    table = run_study(study).table()
    row = table[(table["estimator"] == "plugin") & (table["estimand"] == "prompt")]
    assert row[["published", "source"]].values.tolist() == [[0.12, "a table"]]


def test_every_declared_study_can_be_read_and_prepared() -> None:
    paths = sorted((ROOT / "simulations").glob("*.py"))
    assert len(paths) > 5
    for path in paths:
        study = load_declared(path, "STUDY", Study)
        assert study.name == path.stem
        assert set(study.measures) <= set(MEASURES)
        first, *_, last = study.points()
        for point in (first, last):
            prepare(study.mechanism_at(point), study.estimands)
