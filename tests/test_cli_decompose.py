"""The command `decompose`: what stdout carries, what files hold, and one clear line for every wrong call."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import secondorder as so
from secondorder._statistics._tree import open_estimates
from secondorder.cli import _run

HEADER = "item,prompt,order,run,verdict,judge,stratum\n"


def rows(letters: str = "ABAA") -> str:
    lines = [
        f"{item},{prompt},{order},{run},{verdict},{judge},s{item}"
        for judge in ("x", "y")
        for item in ("1", "2", "10")
        for prompt in ("p", "q")
        for order in ("AB", "BA")
        for run, verdict in enumerate(letters if (item, prompt) != ("2", "q") else letters[::-1].replace("A", "B"))
    ]
    return HEADER + "\n".join(lines) + "\n"


COLUMNS = {"--item": ["item"], "--facet": ["prompt", "order"], "--repeat": ["run"], "--verdict": ["verdict"]}
ROLES = [part for flag, names in COLUMNS.items() for name in names for part in (flag, name)] + ["--classes", "A,B,tie"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "calls.csv"
    path.write_text(rows(), encoding="utf-8")
    return path


def run(*arguments: object) -> int:
    return _run(["decompose", *map(str, arguments)])


def test_the_table_fits_eighty_columns(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(table, *ROLES, "--by", "judge", "--tau", "0.02") == 0
    out, err = capsys.readouterr()
    assert max(map(len, out.splitlines())) <= 80
    assert "judge = x: 3 items x 2 prompt x 2 order x 4 calls" in out
    assert "prompt:order" in out
    assert err == ""


def test_json_is_the_result_of_the_python_call(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(table, *ROLES, "--by", "judge", "--format", "json") == 0
    plain = json.loads(capsys.readouterr().out)
    cube = so.read_table(
        table, item="item", facets=["prompt", "order"], repeat="run", verdict="verdict",
        classes=["A", "B", "tie"], by=["judge"],
    )  # fmt: skip
    assert plain == so.decompose(cube).to_dict()


def test_csv_has_a_row_per_group_stratum_and_component(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(table, *ROLES, "--by", "judge", "--stratum", "stratum", "--format", "csv") == 0
    found = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(found) == 2 * (1 + 3) * 5
    assert {row["stratum"] for row in found} == {"", "s1", "s2", "s10"}
    assert found[5]["lower"] == ""


@pytest.mark.parametrize("suffix", [".json", ".csv", ".nc", ".html"])
def test_files_by_suffix(table: Path, tmp_path: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / f"out{suffix}"
    assert run(table, *ROLES, "--by", "judge", "--output", target) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["calls.csv", target.name])
    shown = capsys.readouterr().out
    if suffix == ".nc":
        components = open_estimates(target)["/components"].to_dataset()
        assert components.group.values.tolist() == ["judge = x", "judge = y"]
        return
    text = target.read_text(encoding="utf-8")
    if suffix == ".json":
        assert json.loads(text)["schema"] == "secondorder.decomposition/1"
    elif suffix == ".csv":
        assert len(list(csv.DictReader(io.StringIO(text)))) == 2 * 5
    else:
        assert text.startswith("<!doctype html>")
        numbers = re.findall(r"^call +(\d\.\d+)", shown, re.M)
        assert len(numbers) >= 2
        assert all(f">{number}" in text for number in numbers)


@pytest.mark.parametrize("form", ["tsv", "jsonl", "csv.gz", "stdin", "nc"])
def test_every_form_of_input_gives_the_same_numbers(
    table: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(table, *ROLES, "--by", "judge", "--format", "json") == 0
    expected = json.loads(capsys.readouterr().out)
    text = table.read_text(encoding="utf-8")
    source: object = tmp_path / f"other.{form}"
    roles: list[str] = [*ROLES, "--by", "judge"]
    if form == "tsv":
        Path(str(source)).write_text(text.replace(",", "\t"), encoding="utf-8")
    elif form == "jsonl":
        lines = [json.dumps(row) for row in csv.DictReader(io.StringIO(text))]
        Path(str(source)).write_text("\n".join(lines), encoding="utf-8")
    elif form == "csv.gz":
        Path(str(source)).write_bytes(gzip.compress(text.encode()))
    elif form == "nc":
        cube = so.read_table(
            table, item="item", facets=["prompt", "order"], repeat="run", verdict="verdict",
            classes=["A", "B", "tie"], by=["judge"],
        )  # fmt: skip
        so.save_cube(cube, Path(str(source)))
        roles = []
    else:
        source = "-"
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run(source, *roles, "--format", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["groups"] == expected["groups"]
    assert found["comparison"] == expected["comparison"]


def test_classes_that_were_found_are_announced(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(table, *ROLES[:-2], "--where", "judge=x", "--format", "json") == 0
    out, err = capsys.readouterr()
    assert "classes found: A, B" in err
    assert json.loads(out)["settings"]["classes_declared"] is False


WRONG = {
    "no such file": (["nowhere.csv", *ROLES], "nowhere.csv"),
    "no item": (["calls.csv", *ROLES[2:]], "--item"),
    "no verdict": (["calls.csv", *ROLES[:8], *ROLES[10:]], "--verdict"),
    "no repeat": (["calls.csv", *ROLES[:6], *ROLES[8:]], "--repeat"),
    "both repeats": (["calls.csv", *ROLES, "--number-repeats"], "--number-repeats"),
    "unknown column": (["calls.csv", *ROLES, "--stratum", "strata"], "stratum"),
    "unknown flag": (["calls.csv", *ROLES, "--prompts", "p"], "--prompts"),
    "unknown choice": (["calls.csv", *ROLES, "--pairs", "all"], "all"),
    "not a number": (["calls.csv", *ROLES, "--level", "high"], "high"),
    "level above one": (["calls.csv", *ROLES, "--where", "judge=x", "--level", "95"], "0.95"),
    "negative seed": (["calls.csv", *ROLES, "--where", "judge=x", "--seed", "-1"], "-1"),
    "few draws": (["calls.csv", *ROLES, "--where", "judge=x", "--draws", "3"], "100"),
    "negative tau": (["calls.csv", *ROLES, "--where", "judge=x", "--tau", "-0.1"], "--tau"),
    "duplicates": (["calls.csv", *ROLES], "line 2 and line 50"),
    "weights of an unknown facet": (["calls.csv", *ROLES, "--weight", "judge:x=1"], "judge"),
    "malformed weight": (["calls.csv", *ROLES, "--weight", "prompt=0.5"], "COL:LEVEL=W"),
    "weights that do not sum": (
        ["calls.csv", *ROLES, "--where", "judge=x", "--weight", "prompt:p=0.5", "--weight", "prompt:q=0.6"],
        "sum",
    ),
    "weight of a random facet": (
        ["calls.csv", *ROLES, "--where", "judge=x", "--random", "prompt", "--weight", "prompt:p=1"],
        "random",
    ),
    "weight twice": (["calls.csv", *ROLES, "--weight", "prompt:p=0.5", "--weight", "prompt:p=0.5"], "two weights"),
    "condition without =": (["calls.csv", *ROLES, "--where", "judge"], "judge"),
    "no row left": (["calls.csv", *ROLES, "--where", "judge=z"], "judge=z"),
    "undeclared verdict": (["calls.csv", *ROLES[:-1], "A,tie", "--where", "judge=x"], "verdict B"),
    "empty class": (["calls.csv", *ROLES[:-1], "A,B,", "--where", "judge=x"], "--classes"),
    "reserved facet": (["calls.csv", *ROLES, "--facet", "item"], "item"),
    "invalid-as": (["calls.csv", *ROLES, "--where", "judge=x", "--invalid-as", "never"], "never"),
    "midpoint of labels": (["calls.csv", *ROLES, "--where", "judge=x", "--invalid-as", "midpoint"], "nominal"),
    "interval of labels": (["calls.csv", *ROLES, "--where", "judge=x", "--kernel", "interval"], "'A'"),
    "output suffix": (["calls.csv", *ROLES, "--output", "out.xlsx"], ".xlsx"),
    "output folder": (["calls.csv", *ROLES, "--output", "none/out.json"], "none"),
    "output without a name": (["calls.csv", *ROLES, "--output", ""], "--output '': no file"),
    "output is a folder": (["calls.csv", *ROLES, "--output", "folder.json"], "this is a folder"),
    "output is the input": (["calls.csv", *ROLES, "--output", "./calls.csv"], "what the command reads"),
    "output leads to the input": (["calls.csv", *ROLES, "--output", "link.csv"], "what the command reads"),
    "output is a run's report": (["calls.csv", *ROLES, "--output", "run/report.html"], "report.html of the run in run"),
    "two inputs": (["calls.csv", "more.csv", *ROLES], "more.csv"),
    "wrong suffix": (["calls.txt", *ROLES], "calls.txt"),
    "empty folder": (["folder"], "folder: this folder is neither a run nor a cube; a run's folder holds"),
    "empty folder with flags": (["folder", *ROLES], "neither a run nor a cube"),
    "folder of runs": ([".", *ROLES], "did you mean run?"),
    "bootstrap of calls": (
        ["calls.csv", *ROLES, "--where", "judge=x", "--covers", "calls", "--interval", "bca"],
        "--interval t",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_one_clear_line(
    kind: str, table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, needle = WRONG[kind]
    monkeypatch.chdir(table.parent)
    (table.parent / "calls.txt").write_text(rows(), encoding="utf-8")
    for folder in ("folder", "folder.json", "run"):
        (table.parent / folder).mkdir()
    (table.parent / "run" / "manifest.json").write_text("{}", encoding="utf-8")
    (table.parent / "link.csv").symlink_to(table)
    assert run(*arguments) == 2
    assert table.read_text(encoding="utf-8") == rows()
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("secondorder: ")
    assert needle in err


def test_column_flags_are_refused_beside_a_cube(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cube = so.read_table(
        table, item="item", facets=["prompt", "order"], repeat="run", verdict="verdict", classes=["A", "B"],
        where=["judge=x"],
    )  # fmt: skip
    so.save_cube(cube, tmp_path / "cube.nc")
    assert run(tmp_path / "cube.nc", "--item", "item") == 2
    assert "--item stands beside a cube" in capsys.readouterr().err


def test_a_hyphen_is_a_label_and_may_begin_one(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table.write_text(rows("1-1-").replace(",1,x,", ",-1,x,").replace(",1,y,", ",-1,y,"), encoding="utf-8")
    roles = [*ROLES[:-1], "-1,1", "--where", "judge=x", "--kernel", "interval", "--missing", "-"]
    assert run(table, *roles, "--format", "json", "--incomplete", "drop-item") == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["settings"]["classes"] == ["-1", "1"]
    assert plain["settings"]["missing"] == ["-"]
    assert plain["groups"][0]["n_missing"] > 0


def test_a_link_stays_and_what_it_leads_to_is_replaced(table: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "out.json"
    link.symlink_to(tmp_path / "elsewhere" / "kept.json")
    for _ in ("made", "replaced"):
        assert run(table, *ROLES, "--by", "judge", "--output", link) == 0
        assert link.is_symlink()
        assert json.loads((tmp_path / "elsewhere" / "kept.json").read_text(encoding="utf-8"))["groups"]
        (tmp_path / "elsewhere" / "kept.json").write_text("{}", encoding="utf-8")


def test_a_full_disk_leaves_the_old_file(table: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("old", encoding="utf-8")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (400, 400));"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "from secondorder.cli import _run; sys.exit(_run(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "decompose", str(table), *ROLES, "--by", "judge", "--output", str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) == 1
    assert target.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.glob(".out*")) == []


def test_a_closed_pipe_is_no_error(table: Path) -> None:
    command = f"{sys.executable} -m secondorder decompose {table} {' '.join(ROLES)} --by judge | head -1"
    done = subprocess.run(["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""
