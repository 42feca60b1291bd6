"""`secondorder study`: what stdout carries and files hold, scores and coordinates of tables, a gate from end to end."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import secondorder as so
from secondorder import studies
from secondorder.acquire import SimulatedJudge, read_ledger
from secondorder.cli import _run
from secondorder.errors import TableError

from .small_audits import YES_OR_NO, changed, lay_out

ROLES = ["--item", "q", "--facet", "prompt", "--repeat", "run", "--verdict", "v", "--by", "judge", "--draws", "50"]


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two judges, five prompts, two calls; an item is easy or hard, and its length says so."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(60):
        hard = rng.random() < 0.4
        right = "AB"[i % 2]
        for judge in ("x", "y"):
            for p in range(5):
                for run in range(2):
                    said = right if rng.random() > (0.4 if hard else 0.05) else "AB"[1 - i % 2]
                    rows.append({"q": f"q{i}", "judge": judge, "prompt": f"p{p}", "run": run, "v": said, "right": right,
                                 "task": "qa" if i % 3 else "chat", "length": 200 if hard else 50 + i % 7,
                                 "system": "s1" if i % 2 else "s2"})  # fmt: skip
    return write(tmp_path_factory.mktemp("study") / "calls.csv", rows)


def study(*arguments: object) -> int:
    return _run(["study", *map(str, arguments)])


# What comes out -------------------------------------------------------------------------------------------------------


def test_agreement_prints_tables_and_is_the_python_call(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert study("agreement", calls, *ROLES, "--coefficient", "cohen", "--format", "json") == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["schema"] == "secondorder.study/1"
    assert (plain["study"], plain["input"], plain["seed"]) == ("agreement", "calls.csv", 0)
    assert [one["title"].split(" over")[0] for one in plain["results"]] == [
        "Agreement of 5 raters: prompt",
        "Repeat-aware agreement",
    ]
    cube = so.read_table(calls, item="q", facets="prompt", repeat="run", verdict="v", by="judge")
    ours = studies.agreement(cube, coefficients=["cohen"], draws=50)
    row = next(row for row in plain["results"][0]["estimates"] if row["judge"] == "y")
    assert row["estimate"] == float(ours["cohen"].estimate.sel(judge="y"))
    assert row["upper"] == float(ours["cohen"].upper.sel(judge="y"))
    assert study("agreement", calls, *ROLES) == 0
    out = capsys.readouterr().out
    assert "Krippendorff α" in out
    assert "call-noise share" in out
    assert max(map(len, out.splitlines())) <= 80


def test_differences_of_a_group_are_those_of_python(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--coefficient", "cohen", "--coefficient", "overlap", "--differences", "judge"]
    assert study("agreement", calls, *ROLES, *flags, "--format", "json") == 0
    plain = json.loads(capsys.readouterr().out)
    shown = [one["tables"][-1] for one in plain["results"]]
    assert [table["title"] for table in shown] == ["Differences by judge"] * 2
    cube = so.read_table(calls, item="q", facets="prompt", repeat="run", verdict="v", by="judge")
    ours = studies.differences(studies.agreement(cube, coefficients=["cohen", "overlap"], draws=50), "judge")
    assert shown[0]["rows"] == [list(row) for row in ours.rows]


def test_orders_that_do_not_say_who_stands_first_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"q": q, "order": order, "v": "AB"[(q + k) % 2], "run": 0} for q in range(6) for k, order in enumerate("xy")
    ]
    flags = ["--item", "q", "--facet", "order", "--repeat", "run", "--verdict", "v", "--draws", "20"]
    table = write(tmp_path / "orders.csv", rows)
    assert study("agreement", table, *flags, "--raters", "repeat") == 0
    shown = capsys.readouterr()
    assert "note: position bias is left out" in shown.err
    assert "Position bias" not in shown.out
    assert study("agreement", table, *flags, "--raters", "repeat", "--first", "x=A", "--first", "y=B") == 0
    assert "Position bias" in capsys.readouterr().out


def test_files_carry_what_their_suffix_says(calls: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / f"o.{kind}" for kind in ("json", "csv", "html")]
    flags = [part for file in files for part in ("--output", file)]
    assert study("aggregate", calls, *ROLES, "--gold", "right", "--rule", "plurality", *flags, "--format", "csv") == 0
    out = capsys.readouterr().out
    assert out == files[1].read_text()
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["study"].split(":")[0].split(" of ")[0] for row in rows} == {
        "Aggregation", "Convergence", "Budget-matched comparison"}  # fmt: skip
    assert next(row for row in rows if row["rule"] == "plurality" and row["measure"] == "accuracy")["estimate"]
    assert len(json.loads(files[0].read_text())["results"]) == 3
    page = files[2].read_text()
    assert page.count("<svg") == 3
    assert " src=" not in page
    assert study("aggregate", calls, *ROLES, "--output", tmp_path / "o.pdf") == 2
    assert ".json or .csv or .html" in capsys.readouterr().err


def test_groups_lengths_and_systems_ride_along_as_coordinates(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coords = ["--coord", "task", "--coord", "length", "--coord", "system", "--gold", "right", "--classes", "A,B"]
    assert study("agreement", calls, *ROLES, *coords, "--group", "task", "--coefficient", "overlap") == 0
    assert "chat" in capsys.readouterr().out
    # A score is needed for a slope: labels have none, and the message says so.
    assert study("agreement", calls, *ROLES, *coords, "--length", "length") == 2
    assert "has no score" in capsys.readouterr().err
    scores = ["--class-score", "A=1", "--class-score", "B=0"]
    assert study("agreement", calls, *ROLES, *coords, "--length", "length", *scores, "--format", "json") == 0
    slope = json.loads(capsys.readouterr().out)["results"][-1]
    whole = so.read_table(calls, item="q", facets="prompt", repeat="run", verdict="v", by="judge", coords=["length"])
    ours = studies.verbosity_bias(whole, length="length", scores={"A": 1, "B": 0}, draws=0)
    shown = {(row["judge"], row["measure"]): row["estimate"] for row in slope["estimates"]}
    assert {judge for judge, _ in shown} == {"x", "y"}
    assert "slope" in {measure for _, measure in shown}
    assert all(
        shown[judge, measure] == float(ours.data["estimate"].sel(judge=judge, measure=measure))
        for judge, measure in shown
    )
    assert study("agreement", calls, *ROLES, "--class-score", "A=much") == 2
    assert "tie=0.5" in capsys.readouterr().err
    cube = so.read_table(calls, item="q", facets="prompt", repeat="run", verdict="v", by="judge",
                         coords=["length", "task"])  # fmt: skip
    assert cube["length"].dtype == np.int64
    assert cube["task"].to_numpy().tolist()[:3] == ["chat", "qa", "qa"]


def test_lottery_reads_scores_that_are_no_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    rows = [
        {"q": q, "system": s, "prompt": p, "run": r, "score": round(3 + 0.3 * k + rng.normal(), 2), "human": 3 + k,
         "id": f"{q}-{s}"}
        for q in range(20) for k, s in enumerate(("a", "b", "c")) for p in ("p1", "p2", "p3") for r in range(2)
    ]  # fmt: skip
    table = write(tmp_path / "scores.csv", rows)
    similar = write(tmp_path / "sim.csv", [{"a": "p1", "b": "p2", "s": 0.9}, {"a": "p1", "b": "p3", "s": 0.8},
                                           {"a": "p2", "b": "p3", "s": 0.7}])  # fmt: skip
    base = [table, "--item", "id", "--facet", "prompt", "--repeat", "run", "--score", "score", "--draws", "40"]
    found = study("lottery", *base, "--gold", "human", "--coord", "system", "--coord", "q", "--system", "system",
                  "--match", "q", "--valid", "-10,10", "--splits", "5", "--format", "json")  # fmt: skip
    assert found == 0
    plain = json.loads(capsys.readouterr().out)
    assert len(plain["results"]) == 2
    traits = write(
        tmp_path / "traits.csv", [{"p": f"p{k}", "role": "judge" if k % 2 else "none", "set": "s"} for k in range(1, 6)]
    )
    outcome = write(tmp_path / "outcome.csv", [{"p": f"p{k}", "kappa": 0.5 + k / 10} for k in range(1, 6)])
    assert study("lottery", "-", "--features", traits, "--outcomes", outcome, "--family", "set") == 0
    assert "role" in capsys.readouterr().out
    votes = [{**row, "score": str(round(float(row["score"])))} for row in rows]  # type: ignore[arg-type]
    flags = ["--item", "id", "--facet", "prompt", "--repeat", "run", "--draws", "40"]
    classes = [*flags, "--verdict", "score", "--similarity", similar]
    assert study("lottery", write(tmp_path / "v.csv", votes), *classes) == 0
    assert "pearson" in capsys.readouterr().out
    for wrong, words in (
        (["--score", "score", "--verdict", "score"], "exclude each other"),
        (["--score", "score", "--classes", "1,2"], "belongs to --verdict"),
        (["--score", "score", "--valid", "1"], "LO,HI"),
        (["--score", "score"], "there is nothing to study"),
    ):
        assert study("lottery", table, *flags, *wrong) == 2
        assert words in capsys.readouterr().err


def test_designs_on_scales_and_on_a_binary_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(2)
    bounds = {"1-7": (1, 7), "stars": (0, 10)}
    rows = []
    for q in range(30):
        human = float(rng.uniform(2, 6))
        for model, shift in (("a", 0.4), ("b", -0.2), ("c", 0.0)):
            for scale, (low, high) in bounds.items():
                share = (human + shift + rng.uniform(-0.5, 0.5) - 1) / 6
                score = low + share * (high - low)
                rows.append({"q": q, "model": model, "scale": scale, "score": score, "human": human,
                             "task": "t1" if q % 2 else "t2"})  # fmt: skip
    table = write(tmp_path / "designs.csv", rows)
    base = ["--item", "q", "--facet", "model", "--facet", "scale", "--score", "score", "--gold", "human"]
    rest = ["--coord", "task", "--group", "task", "--bounds", "stars=0,10", "--permutations", "19", "--draws", "50"]
    assert study("design", table, *base, *rest, "--without", "model=a", "--vary", "model") == 0
    out = capsys.readouterr().out
    for title in (
        "Share of designs, by level",
        "Mean over designs, by level",
        "driven by model a",
        "Impact of each design choice",
        "Sources of variance",
        "Ensembles",
    ):
        assert title in out
    assert study("design", table, *base, "--permutations", "0") == 2
    assert "scale 'stars' has no bounds" in capsys.readouterr().err
    verdicts = [
        {"q": q, "detail": d, "model": m, "v": str(rng.random() < 0.6).upper(), "right": str(q % 2 == 1).upper()}
        for q in range(40) for d in ("base", "long") for m in ("a", "b")
    ]  # fmt: skip
    binary = write(tmp_path / "binary.csv", verdicts)
    flags = ["--item", "q", "--facet", "detail", "--facet", "model", "--verdict", "v", "--gold", "right",
             "--number-repeats", "--accept", "TRUE", "--reference", "detail=long", "--permutations", "19"]  # fmt: skip
    assert study("design", binary, *flags, "--draws", "50") == 0
    assert "long (ref.)" in capsys.readouterr().out


def test_designs_of_three_classes_need_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    rows: list[dict[str, object]] = [
        {"q": q, "model": m, "run": 0, "v": ("A", "B", "tie")[rng.integers(3)], "right": "AB"[q % 2]}
        for q in range(20) for m in ("a", "b", "c")
    ]  # fmt: skip
    flags = ["--item", "q", "--facet", "model", "--repeat", "run", "--verdict", "v", "--gold", "right",
             "--permutations", "9", "--draws", "20"]  # fmt: skip
    table = write(tmp_path / "three.csv", rows)
    for wrong, words in (([], "--class-score CLASS=NUMBER"), (["--accept", "A"], "need scores (--class-score)")):
        assert study("design", table, *flags, *wrong) == 2
        assert words in capsys.readouterr().err
    scores = {"A": 1.0, "tie": 0.5, "B": 0.0}
    given = [part for name, score in scores.items() for part in ("--class-score", f"{name}={score}")]
    assert study("design", table, *flags, *given, "--accept", "A") == 2
    assert "stands beside --accept" in capsys.readouterr().err
    assert study("design", table, *flags, *given, "--format", "json") == 0
    shown = json.loads(capsys.readouterr().out)["results"][0]["estimates"]
    found = {row["model"]: row["estimate"] for row in shown if row["measure"] == "bias"}
    for model in "abc":  # by hand: judge minus right answer
        gaps = [scores[str(row["v"])] - scores[str(row["right"])] for row in rows if row["model"] == model]
        assert found[model] == pytest.approx(np.mean(gaps))


def test_paraphrases_from_a_table_and_from_an_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"prompt": "P1", "text": "Is {{x}} good? Yes or No."},
        {"prompt": "P2", "text": "Is {{x}} fine? Yes or No."},
    ]
    table = write(tmp_path / "prompts.csv", rows)
    ratings = write(tmp_path / "human.csv", [{"prompt": "P2", "ann": 90, "ben": 80}])
    flags = ["--answer", "Yes", "--answer", "No", "--rating", f"human={ratings}"]
    assert study("paraphrase", table, *flags) == 0
    assert "mean of ann" in capsys.readouterr().out
    broken = write(tmp_path / "broken.csv", [*rows, {"prompt": "P3", "text": "Is {{y}} good? Yes."}])
    assert study("paraphrase", broken, *flags[:4], "--format", "json") == 1
    json.loads(capsys.readouterr().out)
    assert study("paraphrase", table, "--text", "words") == 2
    from secondorder.acquire import write_template

    write_template(tmp_path / "audit")
    assert study("paraphrase", tmp_path / "audit" / "audit.toml") == 0
    out = capsys.readouterr().out
    assert "markdown" in out
    assert "do not keep the contract" not in out


# Tables ---------------------------------------------------------------------------------------------------------------


def test_coordinates_are_constant_numbers_or_labels(tmp_path: Path) -> None:
    rows = [{"q": q, "p": p, "r": 0, "v": "A", "n": n, "code": c, "part": x}
            for q, n, c, x in (("a", "1.5", "007", "1"), ("b", "", "8", "2")) for p in "xy"]  # fmt: skip
    asked = {"item": "q", "facets": "p", "repeat": "r", "verdict": "v"}
    cube = so.make_cube(rows, **asked, coords=["n", "code", "part"])  # type: ignore[arg-type]
    np.testing.assert_array_equal(cube["n"], [1.5, np.nan])
    assert cube["code"].to_numpy().tolist() == ["007", "8"]
    assert cube["part"].dtype == np.int64
    so.save_cube(cube, tmp_path / "cube.nc")
    with so.open_cube(tmp_path / "cube.nc") as again:
        assert again["code"].to_numpy().tolist() == ["007", "8"]
        np.testing.assert_array_equal(again["n"], cube["n"])
    rows[1]["n"] = "2.5"
    with pytest.raises(TableError, match="coordinate 'n' of item a is"):
        so.make_cube(rows, **asked, coords=["n"])  # type: ignore[arg-type]
    for wrong, words in (("verdict", "cannot be called"), ("p", "both a facet and a coordinate")):
        with pytest.raises(TableError, match=words):
            so.make_cube([{**row, "verdict": "x"} for row in rows], **asked, coords=[wrong])  # type: ignore[arg-type]
    with pytest.raises(TableError, match="not constant within item"):
        studies.make_scores(
            [{"q": "a", "p": k, "s": 1, "n": k} for k in "xy"], item="q", score="s", facets=["p"], coords=["n"]
        )


def test_bad_requests_exit_2_with_one_line(calls: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = write(tmp_path / "twice.csv", [{"q": "q1", "n": 1}, {"q": "q1", "n": 2}])
    for arguments, words in (
        (["agreement", calls, *ROLES, "--raters", "size"], "size"),
        (["agreement", calls, *ROLES, "--human", calls, "--raters", "judge"], "--human"),
        (["agreement", calls, *ROLES, "--first", "AB=A"], "--first needs a facet `order`"),
        (["agreement", calls, *ROLES, "--differences", "task"], "one of judge"),
        (["gate", calls, *ROLES, "--signal", "words:text"], "audit.toml"),
        (["gate", calls, *ROLES, "--features", bad], "stands twice"),
        (["gate", calls, *ROLES, "--save", tmp_path / "gate.pkl"], ".json"),
        (["gate", calls, *ROLES, "--save", bad, "--features", bad], "ends with .json"),
        (["agreement", calls, *ROLES, "--output", calls], "what the command reads"),
        (["agreement", calls, *ROLES, "--human", bad, "--output", bad], "what the command reads"),
        (["aggregate", calls, *ROLES, "--rule", "best"], "rules"),
        (["aggregate", calls, *ROLES, "--seed", "-1"], "--seed: -1 is not a whole number"),
        (["aggregate", calls, *ROLES, "--where", "run=0", "--calls", "3"], "--calls needs repeats"),
        (["lottery", calls, "--score", "run", "--class-score", "A=1"], "--class-score stands beside --score"),
        (["paraphrase", tmp_path / "none.csv"], "none.csv"),
    ):
        code = study(*arguments)
        err = capsys.readouterr().err
        assert code == 2, arguments
        assert words in err, err
        assert len(err.strip().splitlines()) == 1


# A gate from end to end -----------------------------------------------------------------------------------------------


def test_a_gate_is_trained_on_one_audit_and_decides_the_calls_of_the_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [{"id": f"q{i}", "text": "word " * (i % 9 + 1)} for i in range(40)]
    gated = tmp_path / "gated.toml"
    with SimulatedJudge(process=False) as server:
        asked = YES_OR_NO.format(url=server.base_url)
        pilot = lay_out(tmp_path, changed(asked, ('"small"', '"pilot"'), ("seed = 7", "seed = 1")), items)
        assert _run(["acquire", str(pilot)]) == 0
        assert _run(["cube", str(pilot)]) == 0
        capsys.readouterr()
        flags = ["--signal", "verdict", "--signal", "words:text", "--stop", "decided", "--threshold", "0.6"]
        assert study("gate", pilot, *flags, "--draws", "50", "--save", tmp_path / "gate.json") == 0
        assert "calls behind the gate" in capsys.readouterr().out
        more = '\n[gate]\nfile = "gate.json"\n'
        gated.write_text(changed(asked, ('"small"', '"gated"'), ("seed = 7", "seed = 2")) + more)
        assert _run(["run", str(gated)]) == 0
    assert "not called" in capsys.readouterr().err
    gate = studies.open_gate(tmp_path / "gate.json")
    assert [signal.name for signal in gate.signals] == ["verdict", "words:text"]
    with read_ledger(tmp_path / "runs" / "gated" / "ledger.sqlite") as ledger:
        ended = {(r.call.item, r.call.prompt): r.outcome for r in ledger.outcomes() if r.outcome is not None}
    for i in range(40):
        first = ended[f"q{i}", "p1"]
        said = np.array([first.verdict or "⊥"], dtype=object)
        words = np.array([i % 9 + 1])
        opened = bool(gate.opens({"verdict": said, "words:text": words})[0])
        assert (ended[f"q{i}", "p2"].reason == "gate") == (not opened)
    assert any(outcome.reason == "gate" for outcome in ended.values())
    assert study("aggregate", tmp_path / "runs" / "gated", "--rule", "plurality", "--draws", "20") == 0
