"""The world fails: one clear line and the right code for every way, and nothing lost."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from secondorder.acquire import SimulatedJudge, read_ledger

from .conftest import CALLS, error_of, outcomes, started

KEY = "sk-planted-0123456789abcdefghij"


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
