"""Commands of inference: one call of each is the Python call, and wrong calls are one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import secondorder as so
from secondorder.cli import main

ANSWERS = ["old", "new", "tie"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    generator = np.random.default_rng(1)
    lines = ["judge,q,prompt,run,verdict"]
    for judge in ("kestrel", "plover"):
        for q in range(12):
            lean = generator.dirichlet([4, 3, 2])
            for prompt in ("p1", "p2", "p3"):
                law = 0.6 * lean + 0.4 * np.eye(3)[0 if prompt == "p1" else 1]
                lines += [
                    f"{judge},q{q},{prompt},{r},{ANSWERS[generator.choice(3, p=law / law.sum())]}" for r in range(4)
                ]
    path = tmp_path_factory.mktemp("table") / "calls.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


COLUMNS = ["--item", "q", "--facet", "prompt", "--repeat", "run", "--verdict", "verdict", "--classes", "old,new,tie"]


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return int(str(stop.value.code)), out, err


def one_judge(table: Path) -> Any:
    return so.read_table(
        table, item="q", facets=["prompt"], repeat="run", verdict="verdict", classes=ANSWERS, where=["judge=kestrel"]
    )


def test_tests_of_facets(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "test", table, *COLUMNS, "--by", "judge", "--format", "json", "--draws", 99)
    plain = json.loads(out)
    assert code == 0
    assert plain["schema"] == "secondorder.tests/1"
    expected = so.permutation_test(one_judge(table), "prompt", draws=99)
    found = plain["tests"][0]["groups"][0]["tests"][0]
    assert (found["component"], found["estimate"]) == ("prompt", pytest.approx(expected.estimate[0, 0]))
    assert found["p"] == expected.pvalue
    assert len(found["items"]) == 12
    code, out, _ = run(capsys, "test", table, *COLUMNS, "--by", "judge", "--hypothesis", "benchmark", "--draws", 99)
    assert code == 0
    assert "not adjusted for the number of rows, facets or groups" in out
    assert out.count("Effects on a benchmark of 12 items") == 2
    assert "benchmark as a whole" in out


def test_certificates(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = (table, *COLUMNS, "--where", "judge=kestrel", "--component", "prompt")
    code, out, _ = run(capsys, "certify", *common, "--tau", 0.5, "--format", "json")
    entry = json.loads(out)["certificates"][0]
    assert (code, entry["verdict"]) == (0, "below")
    assert entry["stopped_at"] == so.certify(so.decompose(one_judge(table)), "prompt", 0.5).stopped_at
    code, out, _ = run(capsys, "certify", *common, "--tau", 0.0001, "--target", "population")
    assert code == 1
    assert "Certificate: prompt against 0.0001" in out


def test_contrasts(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = (table, *COLUMNS, "--where", "judge=kestrel", "--draws", 500)
    code, out, _ = run(
        capsys, "contrast", *common, "--of", "prompt / total", "--of", "call - prompt", "--format", "json"
    )
    entries = json.loads(out)["groups"][0]["contrasts"]
    expected = so.contrasts(so.decompose(one_judge(table), draws=500), ["prompt / total", "call - prompt"])
    assert code == 0
    assert [entry["estimate"] for entry in entries] == pytest.approx(expected.estimate.tolist())
    code, out, _ = run(capsys, "contrast", *common, "--interval", "simultaneous")
    assert code == 0
    assert "together (simultaneous)" in out


def test_draws(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import xarray as xr

    common = (table, *COLUMNS, "--where", "judge=kestrel", "--draws", 40, "--chains", 2, "--tune", 20)
    code, out, _ = run(capsys, "posterior", *common, "--mass", 1.0, "--output", tmp_path / "draws.nc")
    assert code == 0
    assert "mass 1.0" in out
    with xr.open_datatree(tmp_path / "draws.nc", engine="h5netcdf") as tree:
        assert tree["posterior"].value.shape == (2, 40, 3)
    code, out, _ = run(capsys, "posterior", table, *COLUMNS, "--where", "judge=kestrel", "--bootstrap", "--draws", 100)
    assert code == 0
    assert "prompt, plugin" in out


def test_check_against_a_table(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = table.read_text(encoding="utf-8").splitlines()
    # The same cells with other calls: repeats turned round, twice.
    more = [rows[0]] + [
        ",".join([*row.split(",")[:3], str(7 - int(row.split(",")[3]) - 4 * half), row.split(",")[4]])
        for half in (0, 1)
        for row in rows[1:]
    ]
    other = tmp_path / "reference.csv"
    other.write_text("\n".join(more) + "\n", encoding="utf-8")
    code, out, _ = run(capsys, "check", table, *COLUMNS, "--by", "judge", "--reference", other, "--format", "json")
    plain = json.loads(out)
    assert code in (0, 1)
    assert plain["suspicious"] is bool(code)
    assert {row["repeats"] for row in plain["reference"]["errors"]} == {2, 4}


def test_a_cube_of_a_run_is_read_as_its_audit_declared(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = {"item": "q", "facets": ["prompt"], "repeat": "run", "verdict": "verdict"}
    cube = so.read_table(table, **columns, classes=ANSWERS, where=["judge=kestrel"])
    scores = {"old": 1.0, "new": 3.0, "tie": 2.0}
    analysis = {"kernel": "interval", "scores": scores, "pairs": "across-repeats"}
    path = tmp_path / "cube.nc"
    so.save_cube(cube.assign_attrs(analysis=json.dumps(analysis)), path)
    declared = so.decompose(cube, kernel="interval", scores=scores, pairs="across-repeats")
    asked = ("--of", "prompt", "--draws", 100, "--format", "json")
    _, out, _ = run(capsys, "contrast", path, *asked)
    assert json.loads(out)["groups"][0]["contrasts"][0]["estimate"] == declared["prompt"].estimate
    # Another kernel leaves the declared scores behind.
    _, out, _ = run(capsys, "contrast", path, *asked, "--kernel", "nominal")
    nominal = so.decompose(cube, kernel="nominal", pairs="across-repeats")
    assert json.loads(out)["groups"][0]["contrasts"][0]["estimate"] == nominal["prompt"].estimate
    _, out, _ = run(capsys, "certify", path, "--component", "prompt", "--tau", 0.5, "--format", "json")
    first = json.loads(out)["certificates"][0]
    assert first["stopped_at"] == so.certify(declared, "prompt", 0.5).stopped_at
    for command in (["check"], ["test", "--draws", 99], ["posterior", "--draws", 40, "--tune", 20]):
        code, _, err = run(capsys, command[0], path, *command[1:])
        assert code in (0, 1), err


def test_a_budget_with_its_contours(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = (table, *COLUMNS, "--where", "judge=kestrel", "--output", tmp_path / "contours.svg")
    for goal, component in ((["--se", "call=0.01"], "call"), ([], "prompt")):
        code, out, _ = run(capsys, "budget", *common, *goal)
        assert code == 0
        assert f"SE of {component}" in out
        svg = (tmp_path / "contours.svg").read_text(encoding="utf-8")
        assert svg.startswith("<svg")
        assert f"predicted SE of {component}" in svg


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["certify", "--component", "wording", "--tau", "0.1"], "no component 'wording'"),
        (["certify", "--component", "prompt"], "--tau"),
        (["contrast", "--of", "prompt+total"], "no component, difference or ratio"),
        (["test", "--effect", "order"], "no facet 'order'"),
        (["posterior", "--mass", "0"], "mass: 0.0 is not a finite number > 0"),
        (["posterior", "--output", "draws.csv"], "suffix '.csv'"),
        (["posterior", "--shape", "1e308"], "prior shape: 1e+308 is not between"),
        (["certify", "--component", "prompt", "--tau", "nan"], "tau: nan is not a finite number"),
        (["check", "--seed", "-1"], "seed: -1 is not a whole number"),
        (["check", "--reference", "none.csv"], "none.csv: there is no such file"),
        (["budget", "--calls", "1500.7"], '"1500.7" into int'),
        (["posterior", "--chains", "2.5"], '"2.5" into int'),
        (["budget", "--calls", "-1"], "--calls: -1 is not a whole number"),
        (["budget", "--se", "prompt=.1", "--se", "prompt=.2"], "'prompt' is given twice"),
        (["budget", "--se", "prompt"], "not COMPONENT=VALUE"),
        (["budget", "--power", "prompt=0.1"], "not EFFECT,POWER"),
        (["check", "--draws", "20"], "20 shuffles cannot reject"),
    ],
)
def test_a_wrong_call_is_one_line(
    table: Path, command: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *flags = command
    code, out, err = run(capsys, name, table, *COLUMNS, "--where", "judge=kestrel", *flags)
    assert (code, out) == (2, "")
    assert words in " ".join(err.split())
    assert err.count("\n") == 1


def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("test", "certify", "contrast", "posterior", "check", "budget"):
        code, out, _ = run(capsys, name, "--help")
        assert code == 0
        assert "INPUT" in out


def test_what_stands_beside_a_posterior_and_a_plan(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(
        capsys, "posterior", table, *COLUMNS, "--where", "judge=kestrel", "--draws", 40, "--tune", 20, "--chains", 2
    )
    assert code == 0
    assert "debiased" in out.splitlines()[0]
    assert "frequentist bias" in out
    assert f"{so.decompose(one_judge(table))['prompt'].estimate:.4f}" in out
    code, out, _ = run(capsys, "budget", table, *COLUMNS, "--where", "judge=kestrel", "--calls", 720)
    assert code == 0
    assert "cells" in out.splitlines()[1]
    assert "SE covers other items and their calls" in " ".join(out.split())
    for command in (["posterior"], ["budget", "--calls", 720]):
        code, _, err = run(capsys, command[0], table, *COLUMNS, "--by", "judge", *command[1:])
        assert code == 2
        assert "--where judge=kestrel" in err
    _, _, err = run(capsys, "budget", table, *COLUMNS, "--where", "judge=kestrel", "--se", ".01")
    assert "write --se prompt=0.01" in err
    with pytest.raises(so.errors.InputError, match=r"0\.01 names no component"):
        so.budget(one_judge(table), se=0.01)  # type: ignore[arg-type]
    with pytest.raises(so.errors.InputError, match="not an effect and a power"):
        so.budget(one_judge(table), power={"prompt": 0.02})  # type: ignore[dict-item]
