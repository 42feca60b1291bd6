"""`secondorder simulate`: a study from the docs page, wrong commands, and a run that was killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from secondorder.cli import main
from secondorder.simulate import Study, StudyResult, load_declared, run_study, with_levels
from secondorder.simulate._measures import SUMS

from .conftest import REPLICATES

ROOT = Path(__file__).resolve().parents[2]


def documented_blocks() -> list[str]:
    """The Python blocks of the how-to page: a study, the same from Python, an estimator of one's own."""
    page = (ROOT / "docs" / "howto" / "simulate.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    return blocks


def run_command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *arguments])
    return int(ended.value.code or 0)


def test_a_study_written_from_the_docs_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    first, from_python, own = documented_blocks()
    path = Path("my_study.py")
    path.write_text(first, encoding="utf-8")
    assert run_command(str(path), "--replicates", "2000", "--set", "R=2") == 0
    name = load_declared(path, "STUDY", Study).name
    folder = tmp_path / "runs" / "simulate" / name
    assert {p.name for p in folder.iterdir()} == {"results.nc", "summary.csv", "figure.png", "shards"}
    assert "2000 replicates per point" in capsys.readouterr().out
    # The same again without --resume does not silently mix with what is there.
    assert run_command(str(path), "--replicates", "2000", "--set", "R=2") == 2
    assert run_command(str(path), "--replicates", "2000", "--set", "R=2", "--resume") == 0
    found: dict[str, Any] = {}
    exec(from_python.replace("10_000", "1000"), found)
    assert found["result"].data.sizes == {"R": 3, "share": 2, "estimator": 2, "estimand": 5, "sum": len(SUMS)}
    exec(own, found)
    study = msgspec.structs.replace(found["study"], methods=("debiased", found["mine"]), estimands=("call",))
    table = run_study(with_levels(study, {"R": ["2"]}), replicates=1000)
    assert np.ptp(table.data["bias"].values, axis=-2).max() < 1e-9
    # Equal estimates: what rounding leaves of the error of their ratio is not shown.
    assert "1.00000" not in str(table)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing.py"], "no such file"),
        (["nothing"], "there is no study"),
        ([], "no study is named"),
        (["empty.py"], "declares no STUDY"),
        (["broken.py"], "mend the file"),
        (["leaves.py"], "SystemExit: 0; mend the file"),
        (["half.py"], "SyntaxError"),
        (["stops.py", "--out", "o"], "mechanism(R=2) raises SystemExit: 0"),
        (["empty.py", "--processes", "0"], "at least 1"),
        (["empty.py", "--set", "R"], "FACTOR=LEVEL"),
    ],
)
def test_wrong_commands_are_one_line_and_exit_2(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "leaves.py").write_text("raise SystemExit(0)")
    (tmp_path / "half.py").write_text("STUDY = (")
    (tmp_path / "stops.py").write_text(
        "import sys\nfrom secondorder.simulate import Study\ndef mechanism(R): sys.exit(0)\n"
        "STUDY = Study('x', '', {'R': (2,)}, mechanism, replicates=10, seed=1)\n"
    )
    assert run_command(*arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_a_killed_command_resumes_to_the_same_digits(tmp_path: Path, whole: StudyResult) -> None:
    path = tmp_path / "killed.py"
    path.write_text(
        "from secondorder.simulate import Mechanism, Study, laws\n"
        "def mechanism(R):\n"
        "    return Mechanism(laws.exchangeable([0.6, 0.4], {'prompt': 2, 'order': 2}), repeats=R)\n"
        "STUDY = Study('small', '', {'R': (2, 3)}, mechanism, replicates=40_000_000, seed=5)\n"
    )
    code = "import sys; from secondorder.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "simulate", str(path), "--out", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shards = tmp_path / "out" / "shards"
    deadline = time.monotonic() + 120
    while (
        process.poll() is None and time.monotonic() < deadline and not (shards.is_dir() and list(shards.glob("*.npz")))
    ):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = list(shards.glob("*.npz"))
    assert finished
    study = load_declared(path, "STUDY", Study)
    seen: list[int] = []
    few = run_study(
        study, replicates=REPLICATES, out=tmp_path / "out", resume=True, progress=lambda d, _: seen.append(d)
    )
    assert seen[0] > 0
    assert (few.data["sums"].values == whole.data["sums"].values).all()
