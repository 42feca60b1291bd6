"""A full disk: one line at every stage, what is stored is kept, and no half file stays."""

from __future__ import annotations

import subprocess
import sys

import pytest

from secondorder.acquire import SimulatedJudge, verify_ledger

from .conftest import CALLS, error_of, outcomes


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
