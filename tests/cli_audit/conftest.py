"""A small audit, its commands, and a finished run of it: what the tests of these commands share."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from secondorder.acquire import SimulatedJudge, read_ledger
from secondorder.cli import _run as command

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


def lay_out(folder: Path, text: str) -> Path:
    items = [json.dumps({"id": f"q{k}", "one": "x", "two": "y"}) + "\n" for k in range(6)]
    (folder / "items.jsonl").write_text("".join(items), encoding="utf-8")
    (folder / "audit.toml").write_text(text, encoding="utf-8")
    return folder / "audit.toml"


@pytest.fixture
def spec(tmp_path):
    """A small audit whose judge is nowhere yet: ``spec(url)`` says where, ``spec(url, (old, new))`` changes it."""

    def write(url: str, *pairs: tuple[str, str]) -> Path:
        text = SPEC.format(url=url)
        for old, new in pairs:
            assert old in text, old
            text = text.replace(old, new)
        return lay_out(tmp_path, text)

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


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """A finished run of the small audit, and what the command printed."""
    folder = tmp_path_factory.mktemp("once")
    with SimulatedJudge() as server:
        lay_out(folder, SPEC.format(url=server.base_url))
        child = started("run", folder)
        out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    return folder, out, err


@pytest.fixture
def run(once, tmp_path):
    """A copy of the finished run's folder."""
    return shutil.copytree(once[0] / "runs" / "small", tmp_path / "run")


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
