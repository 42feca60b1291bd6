"""The commands of an audit: help, plans, every stage on its own, and what stdout carries."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from secondorder._audit._folder import RunFolder
from secondorder.acquire import Fault, SimulatedJudge
from secondorder.cli import COMMANDS

from .conftest import CALLS, error_of, outcomes

# -- help -------------------------------------------------------------------------------------------------------------


def test_help_of_every_command_says_more_than_the_list_and_loads_nothing_heavy():
    names = [[name] for name in COMMANDS if name != "ledger"] + [["ledger", "verify"], ["ledger", "export"]]
    code = (
        "import sys\nfrom secondorder.cli import _run\n"
        f"for name in {names!r}: assert _run([*name, '--help']) == 0\n"
        "heavy = [m for m in ('jax', 'numpy', 'xarray', 'pandas', 'matplotlib', 'aiohttp') if m in sys.modules]\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Usage: secondorder") == len(names)
    listing = subprocess.run([sys.executable, "-m", "secondorder", "--help"], capture_output=True, text=True).stdout
    where = [listing.index(f"│ {name} ") for name in COMMANDS]
    assert where == sorted(where), "the list stands in the order of work"
    assert "goes on where it stopped" in done.stdout
    assert "goes on where it stopped" not in listing


# -- planning ---------------------------------------------------------------------------------------------------------


def test_init_writes_what_plans_as_it_stands_and_overwrites_nothing(say, tmp_path):
    code, out, err = say("init", tmp_path / "new")
    assert code == 0
    assert out.split() == [str(tmp_path / "new" / "audit.toml"), str(tmp_path / "new" / "items.jsonl")]
    assert "secondorder plan" in err
    code, out, err = say("plan", tmp_path / "new")
    assert code == 0
    assert re.search(r"^calls +192$", out, re.M)
    assert "warning" not in err
    code, out, err = say("init", tmp_path / "new")
    assert (code, out) == (2, "")
    assert "is already there" in error_of(err)


def test_plan_shows_what_will_be_asked_what_it_may_cost_and_warns_on_stderr(say, spec):
    path = spec(
        "http://127.0.0.1:1/v1",
        ("top_p = 1.0, ", ""),
        ("concurrency = 4", "concurrency = 4\nprice = { input = 1000.0, output = 100000.0 }"),
        ("repeats = 2", 'repeats = 2\nsend = "by-cell"\n[null]\nitems = 2\nids = 3\n[limits]\ncalls = 10'),
    )
    code, out, err = say("plan", path)
    assert code == 0
    rows = dict(re.split(r"\s{2,}", line, maxsplit=1) for line in out.splitlines())
    assert rows["folder"].endswith("runs/small")
    assert rows["calls"] == str(CALLS)
    assert rows["null block"] == "24 further calls"
    assert rows["warm-ups"] == "28 further calls"
    assert 100 * 8 * 1e5 / 1e6 <= float(rows["cost"].split()[3]) <= 100 * (8 * 1e5 + 100 * 1e3) / 1e6
    assert rows["prompt"] == "none, xml (fixed)"
    assert "warning: " in err
    assert "top_p" in err
    assert "note: [limits] calls = 10" in err
    assert f"next: secondorder run {path}" in err
    again = say("plan", path)
    assert again[:2] == (code, out)


@pytest.mark.parametrize(
    ("pair", "words"),
    [
        (("seed = 3\n", "seeds = 3\n"), "did you mean"),
        (("{{id}}", "{{key}}"), "'key' is missing"),
        (('id = "id"', 'id = "name"'), "'name' is missing"),
        (("[retry]", '[stop]\ncomponent = "prompt"\ntau = 0.1\n[retry]'), "[stop]"),
    ],
)
def test_a_bad_spec_is_one_line_and_nothing_is_started(say, spec, pair, words, tmp_path):
    path = spec("http://127.0.0.1:1/v1", pair)
    for name in ("plan", "run", "acquire"):
        code, out, err = say(name, path)
        assert (code, out) == (2, "")
        assert words in error_of(err)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("name", ["plan", "acquire", "cube", "decompose", "report", "run"])
def test_nothing_there_is_one_line(say, tmp_path, name):
    code, out, err = say(name, tmp_path / "nowhere")
    assert (code, out) == (2, "")
    assert str(tmp_path / "nowhere") in error_of(err)


def test_stdout_carries_the_result_alone(once, run, say):
    _, out, err = once
    assert [line.partition(":")[0] for line in err.splitlines()] == ["plan", "acquire", "cube", "decompose", "report"]
    assert out.startswith("judge = toy: 6 items x 2 prompt x 2 order x 2 calls; 48 completed")
    assert say("run", run)[:2] == (0, out)
    assert say("decompose", run)[:2] == (0, out)
    assert say("decompose", run / "cube.nc")[:2] == (0, out)
    assert say("cube", run)[:2] == (0, f"{run / 'cube.nc'}\n")
    assert say("report", run / "estimates.nc")[:2] == (0, f"{run / 'report.html'}\n")
    code, out, _ = say("acquire", run)
    assert code == 0
    assert out.splitlines()[-1].startswith("48 calls planned, 0 open, 48 attempts")


def test_stages_one_by_one_are_the_run(once, say, tmp_path, run):
    for name in ("cube.nc", "estimates.nc", "report.html"):
        (run / name).unlink()
    code, _, err = say("decompose", run)
    assert code == 2
    assert "there is no cube yet" in error_of(err)
    assert say("report", run)[0] == 2
    assert say("cube", run)[0] == 0
    assert say("decompose", run)[:2] == (0, once[1])
    assert say("report", run)[0] == 0
    assert (run / "report.html").read_bytes() == (once[0] / "runs" / "small" / "report.html").read_bytes()


def test_own_flags_beside_a_run_are_exploratory(run, say, tmp_path):
    before = (run / "estimates.nc").read_bytes()
    code, out, err = say("decompose", run, "--level", "0.5", "--tau", "0.1", "--output", tmp_path / "x.json")
    assert code == 0
    assert "exploratory (--level, --tau)" in err
    assert "50% band" in out
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8"))["settings"]["level"] == 0.5
    assert (run / "estimates.nc").read_bytes() == before
    code, out, err = say("decompose", run, "--format", "json", "--output", tmp_path / "x.html")
    assert code == 0
    assert "exploratory" not in err
    assert json.loads(out)["settings"]["level"] == 0.95
    assert (tmp_path / "x.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    code, _, err = say("decompose", run, "--item", "id")
    assert code == 2
    assert "--item stands beside a cube" in error_of(err)
    code, _, err = say("decompose", run, "--tau", "0.1", "--output", run / "cube.nc")
    assert code == 2
    assert "cube.nc of the run" in error_of(err)


def test_missing_calls_are_the_exit_code_one(say, spec):
    with SimulatedJudge(faults=[Fault(kind="status", status=504, rate=0.25)], process=False) as server:
        path = spec(server.base_url, ("attempts = 2", "attempts = 1"))
        code, out, err = say("run", path)
    found = outcomes(path.parent / "runs" / "small").values()
    missing = sum(outcome.status == "no_completion" for outcome in found)
    assert 0 < missing < CALLS
    assert code == 1
    assert f"calls are missing: {missing} timeout" in err
    assert say("run", path)[0] == 1, "they stay missing"
    # Which calls fail hangs on their bytes alone: some items are whole, and their numbers are shown.
    assert f"{missing} missing" in out
    assert "items dropped" in out


def test_too_many_missing_calls_to_estimate_anything(say, spec):
    with SimulatedJudge(faults=[Fault(kind="status", status=504, rate=0.6)], process=False) as server:
        path = spec(server.base_url, ("attempts = 2", "attempts = 1"), ("concurrency = 4", "concurrency = 1"))
        code, out, err = say("run", path)
    assert (code, out) == (1, "")
    assert "nothing can be estimated: " in err
    assert "calls are missing: " in err


def test_files_of_a_run_are_found_by_any_of_their_names(run):
    from secondorder._audit._folder import run_folder

    assert {run_folder(run / name) for name in ("cube.nc", "ledger.sqlite", "report.html")} == {RunFolder(run)}
