"""A small audit, its commands, and a finished run of it: what the tests of these commands share."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from secondorder.acquire import SimulatedJudge, read_ledger
from secondorder.cli import _run as command

from ..small_audits import PAIRWISE, changed, lay_out

SPEC = changed(
    PAIRWISE, ("seed = 7", "seed = 3"), ("concurrency = 8", "concurrency = 4"), ("{text}", "{id}"),
    ("attempts = 1", "attempts = 2"),
)  # fmt: skip
ITEMS = [{"id": f"q{k}", "one": "x", "two": "y"} for k in range(6)]
CALLS = len(ITEMS) * 2 * 2 * 2


@pytest.fixture
def spec(tmp_path):
    """A small audit whose judge is nowhere yet: ``spec(url)`` says where, ``spec(url, (old, new))`` changes it."""

    def write(url: str, *pairs: tuple[str, str]) -> Path:
        return lay_out(tmp_path, changed(SPEC.format(url=url), *pairs), ITEMS)

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
        lay_out(folder, SPEC.format(url=server.base_url), ITEMS)
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
