"""The commands of an audit: one clear line and the right code for every way in which the world fails, nothing lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from secondorder._audit._folder import RunFolder
from secondorder.acquire import Fault, Progress, SimulatedJudge, read_ledger, verify_ledger
from secondorder.cli import COMMANDS, _progress
from secondorder.cli import _run as command

KEY = "sk-planted-0123456789abcdefghij"
SPEC = """
schema = "secondorder.audit/1"
name = "small"
seed = 3

[judges.toy]
endpoint = "openai-chat"
base_url = "{url}"
model = "toy"
concurrency = 4
body = {{ temperature = 1.0, top_p = 1.0, max_tokens = 8 }}

[items]
file = "items.jsonl"
id = "id"
pair = ["one", "two"]

[prompts]
census = ["none", "xml"]
criterion = "Which is better?"
user = "{{{{criterion}}}} {{{{id}}}} A: {{{{first}}}} B: {{{{second}}}}"

[design]
orders = ["AB", "BA"]
repeats = 2

[verdict]
parser = "label"
labels = {{ A = "first", B = "second", TIE = "tie" }}
classes = ["1", "2", "tie"]

[retry]
attempts = 2
"""
CALLS = 6 * 2 * 2 * 2


@pytest.fixture
def spec(tmp_path):
    """A small audit whose judge is nowhere yet: ``spec(url)`` says where, ``spec(url, (old, new))`` changes it."""

    def write(url: str, *pairs: tuple[str, str]) -> Path:
        items = [json.dumps({"id": f"q{k}", "one": "x", "two": "y"}) + "\n" for k in range(6)]
        (tmp_path / "items.jsonl").write_text("".join(items), encoding="utf-8")
        text = SPEC.format(url=url)
        for old, new in pairs:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "audit.toml").write_text(text, encoding="utf-8")
        return tmp_path / "audit.toml"

    return write


@pytest.fixture
def say(capfd):
    """Run a command in this process: (code, stdout, stderr)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = command([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, captured.err

    return run


def started(*arguments: object) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "secondorder", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcomes(folder: Path) -> dict:
    with read_ledger(folder / "ledger.sqlite") as reader:
        return {record.call.id: record.outcome for record in reader.outcomes()}


def error_of(err: str) -> str:
    """The one line that says what is wrong; notes of stages stand before it."""
    lines = [line for line in err.splitlines() if line.startswith("secondorder: ")]
    assert len(lines) == 1, err
    assert err.splitlines()[-1] == lines[0]
    return lines[0]


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


# -- the whole way ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """A finished run of the small audit, and what the command printed."""
    folder = tmp_path_factory.mktemp("once")
    items = [json.dumps({"id": f"q{k}", "one": "x", "two": "y"}) + "\n" for k in range(6)]
    (folder / "items.jsonl").write_text("".join(items), encoding="utf-8")
    with SimulatedJudge() as server:
        (folder / "audit.toml").write_text(SPEC.format(url=server.base_url), encoding="utf-8")
        child = started("run", folder)
        out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    return folder, out, err


@pytest.fixture
def run(once, tmp_path):
    """A copy of its folder."""
    return shutil.copytree(once[0] / "runs" / "small", tmp_path / "run")


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
    if out:
        assert f"{missing} missing" in out
    else:
        assert "nothing can be estimated" in err


def test_too_many_missing_calls_to_estimate_anything(say, spec):
    with SimulatedJudge(faults=[Fault(kind="status", status=504, rate=0.6)], process=False) as server:
        path = spec(server.base_url, ("attempts = 2", "attempts = 1"), ("concurrency = 4", "concurrency = 1"))
        code, out, err = say("run", path)
    assert (code, out) == (1, "")
    assert "nothing can be estimated: " in err
    assert "calls are missing: " in err


# -- the world fails --------------------------------------------------------------------------------------------------


def in_no_file(folder: Path, secret: str) -> bool:
    return not any(secret.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_wrong_key_is_one_line_and_the_key_is_nowhere(say, spec, monkeypatch, tmp_path):
    monkeypatch.setenv("TOY_KEY", KEY)
    monkeypatch.setenv("SERVER_KEY", "another-key-entirely")
    with SimulatedJudge(process=False, key_env="SERVER_KEY") as server:
        path = spec(server.base_url, ("concurrency = 4", 'concurrency = 4\nkey_env = "TOY_KEY"'))
        said = [say("run", path), say("acquire", path)]
        for code, out, err in said:
            assert (code, out) == (3, "")
            assert "judge 'toy'" in error_of(err)
            assert "check the key in TOY_KEY" in error_of(err)
        assert outcomes(tmp_path / "runs" / "small") == {}
        monkeypatch.setenv("TOY_KEY", "another-key-entirely")
        said.append(say("run", path))
        assert said[-1][0] == 0
    assert len(outcomes(tmp_path / "runs" / "small")) == CALLS
    assert in_no_file(tmp_path, KEY)
    assert in_no_file(tmp_path, "another-key-entirely")
    assert KEY not in str(said)
    assert "another-key-entirely" not in str(said)


def test_a_key_that_is_not_set_and_one_that_stands_in_the_spec(say, spec, monkeypatch):
    monkeypatch.delenv("TOY_KEY", raising=False)
    path = spec("http://127.0.0.1:1/v1", ("concurrency = 4", 'concurrency = 4\nkey_env = "TOY_KEY"'))
    code, _, err = say("run", path)
    assert code == 2
    assert "TOY_KEY is not set" in error_of(err)
    path = spec("http://127.0.0.1:1/v1", ("concurrency = 4", f'headers = {{ Authorization = "Bearer {KEY}" }}'))
    code, _, err = say("plan", path)
    assert code == 2
    assert KEY not in err


@pytest.mark.parametrize(
    ("url", "words"),
    [("http://127.0.0.1:1/v1", "cannot connect to 127.0.0.1:1"), ("http://no-such-host.invalid/v1", "is not known")],
)
def test_an_unreachable_judge_is_one_line_and_costs_no_attempt(say, spec, url, words, tmp_path):
    path = spec(url)
    code, out, err = say("run", path)
    assert (code, out) == (3, "")
    assert words in error_of(err)
    assert "the same command again" in error_of(err)
    with read_ledger(tmp_path / "runs" / "small" / "ledger.sqlite") as reader:
        assert list(reader.attempts()) == []


def test_a_judge_that_dies_on_the_way_loses_nothing(say, spec, tmp_path):
    with SimulatedJudge(process=False, latency_s=0.02) as server:
        path = spec(server.base_url)
        child = started("run", path)
        while len(server.server.served) < 12 and child.poll() is None:
            time.sleep(0.001)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (3, "")
    assert "the same command again" in error_of(err)
    assert 0 < len(outcomes(tmp_path / "runs" / "small")) < CALLS
    assert say("ledger", "verify", tmp_path / "runs" / "small")[0] == 0


def limited(size: int, *arguments: object) -> tuple[int, str, str]:
    """Run a command in a process whose files cannot grow beyond `size` bytes: a disk that is full, without one."""
    code = (
        f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))\n"
        f"from secondorder.cli import main\nmain({[str(argument) for argument in arguments]!r})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def test_a_full_disk_is_one_line_and_what_is_stored_is_kept(spec, say, tmp_path):
    folder = tmp_path / "runs" / "small"
    with SimulatedJudge(process=False) as server:
        path = spec(server.base_url)
        assert say("plan", path)[0] == 0
        size = (folder / "ledger.sqlite").stat().st_size
        code, out, err = limited(size + 20_000, "acquire", path)
        assert (code, out) == (3, "")
        assert "full" in error_of(err)
        assert str(folder / "ledger.sqlite") in error_of(err)
        kept = outcomes(folder)
        assert verify_ledger(folder / "ledger.sqlite") == []
        assert say("acquire", path)[0] == 0
    found = outcomes(folder)
    assert len(found) == CALLS
    assert {call: found[call] for call in kept} == kept


@pytest.mark.parametrize(
    ("stage", "file"), [("cube", "cube.nc"), ("decompose", "estimates.nc"), ("report", "report.html")]
)
def test_a_full_disk_leaves_the_old_artifact(run, stage, file):
    before = (run / file).read_bytes()
    # Something has changed, so that the stage has to write.
    if stage == "cube":
        (run / file).write_bytes(before[:-1])
        before = before[:-1]
    else:
        (run / file).unlink()
        before = b""
    # Reading a ledger takes 32 kB beside it.
    code, out, err = limited(40_000 if stage == "cube" else 4096, stage, run)
    assert (code, out) == (3, ""), err
    assert str(run / file) in error_of(err)
    assert ((run / file).read_bytes() if (run / file).exists() else b"") == before
    assert {path.name for path in run.iterdir()} <= {
        *("manifest.json", "ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm"),
        *("cube.nc", "estimates.nc", "report.html"),
    }


def test_no_room_to_plan_leaves_nothing_behind(spec, tmp_path):
    path = spec("http://127.0.0.1:1/v1")
    code, out, err = limited(100, "plan", path)
    assert (code, out) == (3, "")
    error_of(err)
    assert not any(file.is_file() for file in (tmp_path / "runs").rglob("*"))


@pytest.mark.parametrize("damage", ["header", "cut", "empty", "text"])
def test_a_corrupt_ledger_is_one_line(run, say, damage):
    path = run / "ledger.sqlite"
    whole = path.read_bytes()
    broken = {"header": b"x" * 100 + whole[100:], "cut": whole[: len(whole) // 3], "empty": b"", "text": b"hello\n"}
    path.write_bytes(broken[damage])
    for name in ("acquire", "run", "cube"):
        code, out, err = say(name, run)
        assert (code, out) == (3, ""), (name, err)
        assert str(path) in error_of(err)
    assert path.read_bytes() == broken[damage], "it is kept as it is"


def test_a_corrupt_manifest_is_one_line_and_can_be_written_again(once, say, tmp_path):
    folder = tmp_path / "audit"
    shutil.copytree(once[0], folder)
    manifest = folder / "runs" / "small" / "manifest.json"
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:100])
    code, _, err = say("run", folder)
    assert code == 3
    assert "remove it and plan again" in error_of(err)
    manifest.unlink()
    assert say("plan", folder)[0] == 0
    assert manifest.read_bytes() == whole


def test_a_second_process_stops_at_once_and_names_the_first(say, spec, tmp_path):
    with SimulatedJudge(process=False, latency_s=0.1) as server:
        path = spec(server.base_url)
        first = started("acquire", path)
        while not server.server.served and first.poll() is None:
            time.sleep(0.001)
        code, out, err = say("run", path)
        assert (code, out) == (2, "")
        assert f"process {first.pid} is writing this ledger" in error_of(err)
        _, err = first.communicate(timeout=60)
        assert first.returncode == 0, err
    assert len(outcomes(tmp_path / "runs" / "small")) == CALLS


def test_a_changed_spec_on_an_old_folder(once, say, tmp_path):
    folder = tmp_path / "audit"
    shutil.copytree(once[0], folder)
    path = folder / "audit.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("repeats = 2", "repeats = 4"), encoding="utf-8")
    before = {file.name: file.read_bytes() for file in (folder / "runs" / "small").iterdir()}
    for name in ("plan", "acquire", "run"):
        code, out, err = say(name, path)
        assert (code, out) == (2, "")
        assert "design.repeats: 2 → 4" in error_of(err)
        assert f"--out {folder / 'runs' / 'small'}-2" in error_of(err)
    after = {file.name: file.read_bytes() for file in (folder / "runs" / "small").iterdir()}
    assert {name: after[name] for name in before if "sqlite-" not in name} == {
        name: data for name, data in before.items() if "sqlite-" not in name
    }
    assert say("plan", path, "--out", folder / "runs" / "small-2")[0] == 0


# -- Ctrl-C -----------------------------------------------------------------------------------------------------------


def test_ctrl_c_stores_what_came_in_and_says_how_to_go_on(spec, say, tmp_path):
    folder = tmp_path / "runs" / "small"
    with SimulatedJudge(process=False, latency_s=0.05) as server:
        path = spec(server.base_url)
        child = started("run", path)
        while len(server.server.served) < 10 and child.poll() is None:
            time.sleep(0.001)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
        assert (child.returncode, out) == (130, "")
        line = error_of(err)
        stored = len(outcomes(folder))
        assert f"{stored} of {CALLS} calls are done and stored; go on with: secondorder run {path}" in line
        assert 10 <= stored < CALLS
        assert "Traceback" not in err
        code, _, _ = say(*line.partition("go on with: secondorder ")[2].split())
        assert code == 0
        assert len(server.server.served) == CALLS, "no call was made twice"


# -- ledger -----------------------------------------------------------------------------------------------------------


def test_ledger_verify_says_what_differs(run, say):
    code, out, _ = say("ledger", "verify", run)
    assert code == 0
    assert "48 calls, 48 ended; it is what it and its manifest state" in out
    data = json.loads((run / "manifest.json").read_bytes())
    data["calls"] += 1
    (run / "manifest.json").write_text(json.dumps(data), encoding="utf-8")
    code, out, _ = say("ledger", "verify", run / "ledger.sqlite")
    assert code == 1
    assert "1 difference\nmanifest manifest_sha256: stated " in out
    (run / "manifest.json").unlink()
    code, out, _ = say("ledger", "verify", run)
    assert code == 0
    assert "no manifest is beside it" in out


def test_ledger_verify_reads_every_verdict_again(run, say):
    import sqlite3

    connection = sqlite3.connect(run / "ledger.sqlite")
    connection.execute("DROP TRIGGER attempt_no_update")
    connection.execute(
        "UPDATE attempt SET verdict = CASE verdict WHEN '1' THEN '2' ELSE '1' END "
        "WHERE seq = (SELECT min(seq) FROM attempt WHERE status = 'valid')"
    )
    connection.commit()
    connection.close()
    code, out, _ = say("ledger", "verify", run)
    assert code == 1
    assert re.search(r"^call \w+ attempt 1 outcome: stated .*verdict='", out, re.M)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_ledger_export(run, say, tmp_path, suffix):
    target = tmp_path / f"calls{suffix}"
    code, out, err = say("ledger", "export", run, "--output", target, "--no-bodies")
    assert (code, out) == (0, f"{target}\n")
    assert "48 outcomes" in err
    if suffix == ".jsonl":
        rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
        assert len(rows) == CALLS
        assert "request" not in rows[0]
        code, out, _ = say(
            *("decompose", target, "--item", "item", "--facet", "prompt", "--facet", "order", "--repeat", "repeat"),
            *("--verdict", "verdict", "--classes", "1,2,tie", "--invalid", "", "--by", "judge"),
        )
        assert code == 0
        assert out.splitlines()[2:6] == say("decompose", run)[1].splitlines()[2:6], "the same digits from the table"
    code, _, err = say("ledger", "export", run, "--output", tmp_path / "calls.xls")
    assert code == 2
    assert ".jsonl or .parquet" in error_of(err)


# -- progress ---------------------------------------------------------------------------------------------------------


def state(**changes) -> Progress:
    fields = {"done": 12, "total": 48, "valid": 9, "invalid": 2, "no_completion": 1, "not_called": 0, "retries": 3}
    return Progress(**{**fields, "in_flight": 4, "rate": 24.4, "eta_s": 75.0, "stopping": False, **changes})


def test_without_a_terminal_there_is_a_line_now_and_then(monkeypatch, capfd):
    with _progress.Watch() as watch:
        watch.progress(state())
        assert capfd.readouterr().err == ""
        monkeypatch.setattr(_progress, "QUIET_S", 0.0)
        watch.progress(state())
    assert capfd.readouterr().err == (
        "acquire: 12 of 48 calls (25%), 24/s  2 ⊥  1 missing  3 retries, 1 min 15 s left\n"
    )


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a pseudo-terminal")
def test_on_a_terminal_there_is_a_bar_on_stderr(spec, tmp_path):
    main, other = os.openpty()
    with SimulatedJudge(process=False, latency_s=0.05) as server:
        child = subprocess.Popen(
            [sys.executable, "-m", "secondorder", "acquire", str(spec(server.base_url))],
            stdout=subprocess.PIPE,
            stderr=other,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
        )
        os.close(other)
        shown = b""
        while True:
            try:
                piece = os.read(main, 4096)
            except OSError:  # the other end is closed
                break
            shown += piece
            if not piece:
                break
        out, _ = child.communicate(timeout=60)
    os.close(main)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert child.returncode == 0, text
    assert re.search(r"━.* +[1-9]\d*/48 ", text)
    assert " ⊥  " in text
    assert " s left" in text
    assert out.decode().splitlines()[-1].startswith("48 calls planned, 0 open")


def test_files_of_a_run_are_found_by_any_of_their_names(run):
    from secondorder._audit._folder import run_folder

    assert {run_folder(run / name) for name in ("cube.nc", "ledger.sqlite", "report.html")} == {RunFolder(run)}
