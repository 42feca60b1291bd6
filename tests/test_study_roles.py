"""Studies follow the roles of the dimensions: a table whose columns have other names gives the same numbers."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from secondorder.cli import _run

OURS = {"model": "judge", "template": "prompt", "position": "order"}
ROLES = ["--item", "q", "--repeat", "run", "--gold", "right", "--draws", "20"]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same calls under the names that the package uses, and under other ones."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, object]] = [
        {"q": f"q{i}", "model": m, "template": t, "position": o, "run": run, "right": "AB"[i % 2],
         "v": "AB"[i % 2] if rng.random() < 0.65 + k / 10 else "BA"[i % 2]}
        for i in range(24) for k, m in enumerate("xyz") for t in ("t1", "t2", "t3", "t4")
        for o in ("AB", "BA") for run in range(2)
    ]  # fmt: skip
    rows = [{**row, "s": float(row["v"] == "A") + rng.normal()} for row in rows]
    folder = tmp_path_factory.mktemp("roles")
    for name, names in (("own", {}), ("ours", OURS)):
        with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([names.get(key, key) for key in rows[0]])
            writer.writerows(list(row.values()) for row in rows)
    return {name: folder / f"{name}.csv" for name in ("own", "ours")}


def study(*arguments: object) -> int:
    return _run(["study", *map(str, arguments)])


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("aggregate", ["--verdict", "v"]),
        ("aggregate", ["--verdict", "v", "--voters", "model"]),
        ("agreement", ["--verdict", "v", "--order", "position"]),
        ("agreement", ["--verdict", "v", "--raters", "model", "--order", "position"]),
        ("gate", ["--verdict", "v"]),
        ("lottery", ["--verdict", "v", "--class-score", "A=1", "--class-score", "B=0"]),
    ],
    ids=["aggregate", "aggregate of judges", "agreement", "agreement of judges", "gate", "lottery"],
)
def test_renamed_columns_give_the_same_output(
    tables: dict[str, Path], capsys: pytest.CaptureFixture[str], name: str, flags: list[str]
) -> None:
    found = {}
    for which, names in (("own", {}), ("ours", OURS)):
        roles = {key: names.get(key, key) for key in OURS}
        asked = [names.get(flag, flag) for flag in flags]
        facets = ["--facet", roles["template"], "--facet", roles["position"], "--by", roles["model"]]
        assert study(name, tables[which], *ROLES, *facets, *asked, "--format", "json") == 0
        text = capsys.readouterr().out.replace("own.csv", "ours.csv")
        for theirs, ours in OURS.items():
            text = text.replace(theirs, ours)
        found[which] = text
    assert found["own"] == found["ours"]
    assert '"judge"' in found["own"] or "judges" in found["own"]


def test_scores_are_grouped_as_verdicts_are(tables: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--score", "s", "--by", "model", "--facet", "position", "--facet", "template", "--prompt", "template"]
    plain = ["--item", "q", "--repeat", "run", "--gold", "s2", "--draws", "20"]
    table = tables["own"].with_name("scores.csv")
    with open(tables["own"], encoding="utf-8") as file, open(table, "w", encoding="utf-8", newline="") as out:
        rows = [{**row, "s2": int(row["q"][1:]) % 5} for row in csv.DictReader(file)]
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert study("lottery", table, *plain, *flags, "--format", "csv") == 0
    header = capsys.readouterr().out.splitlines()[0].split(",")
    assert {"model", "template"} <= set(header)


def test_the_budget_compares_judges_and_prompts_of_any_name(
    tables: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    base = [tables["own"], *ROLES, "--facet", "position", "--facet", "template", "--verdict", "v"]
    assert study("aggregate", *base, "--by", "model", "--prompt", "template", "--calls", "3") == 0
    out = capsys.readouterr().out.split("Budget-matched")[1]
    assert "Aggregation of 4" not in out
    assert "it needs 3" not in out.replace("it needs 3 calls per cell", "")
    # Without judges the table says how to name them.
    assert study("aggregate", *base, "--where", "model=x", "--calls", "3") == 0
    assert "--judge" in capsys.readouterr().out
    assert study("aggregate", *base, "--facet", "model", "--judge", "model", "--calls", "3") == 0
    assert "--judge" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "flags", "words"),
    [
        (
            "aggregate",
            ["--judge", "people"],
            "--judge: 'people' is no dimension; dimensions: model, position, template",
        ),
        ("aggregate", ["--judge", "model", "--prompt", "model"], "'model' has two roles"),
        ("agreement", ["--order", "side"], "--order: 'side' is no dimension"),
        ("agreement", ["--first", "AB=A"], "name it with --order"),
        ("lottery", ["--prompt", "wording"], "--prompt: 'wording' is no dimension"),
    ],
)
def test_a_role_that_is_not_there_is_refused_by_its_flag(
    tables: dict[str, Path], capsys: pytest.CaptureFixture[str], name: str, flags: list[str], words: str
) -> None:
    facets = ["--facet", "position", "--facet", "template", "--by", "model", "--verdict", "v"]
    assert study(name, tables["own"], *ROLES, *facets, *flags) == 2
    assert words in capsys.readouterr().err


def test_texts_speak_of_the_dimension(tables: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    base = [tables["own"], *ROLES, "--facet", "template", "--facet", "position", "--by", "model", "--verdict", "v"]
    assert study("agreement", *base, "--raters", "model") == 0
    judges = capsys.readouterr().out
    assert "disagreement within one model" in " ".join(judges.split())
    assert "JSS" not in judges
    assert "wording" not in judges
    assert study("agreement", *base) == 0
    assert "JudgeSense" in capsys.readouterr().out
    assert study("aggregate", *base, "--rule", "single", "--default", "t2") == 0
    assert "the voter 't2' alone" in capsys.readouterr().out


def test_judges_with_calls_missing_are_compared_all_the_same(
    tables: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tables["own"].read_text(encoding="utf-8").splitlines(keepends=True)
    short = tables["own"].with_name("short.csv")
    short.write_text("".join(lines[:-1]), encoding="utf-8")
    flags = [*ROLES, "--facet", "template", "--facet", "position", "--by", "model", "--verdict", "v"]
    assert study("agreement", short, *flags, "--raters", "model") == 0
    shown = capsys.readouterr()
    assert "Agreement of 3 raters: model" in shown.out
    assert "left out" in shown.err
    assert "--incomplete drop-item" in shown.err
    assert study("agreement", short, *flags) == 2
