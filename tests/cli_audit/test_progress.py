"""While an audit runs: the bar, the lines without a terminal, and Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import pytest

from secondorder.acquire import Progress, SimulatedJudge
from secondorder.cli import _progress

from .conftest import CALLS, error_of, outcomes, started


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
