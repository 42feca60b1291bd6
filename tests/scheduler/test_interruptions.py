"""Every planned call ends exactly once, whatever the parser, the disk, the user or the power does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from secondorder.acquire._judge import SimulatedJudge
from secondorder.acquire._ledger import Ledger
from secondorder.acquire._ledger_read import read_ledger
from secondorder.acquire._ledger_verify import verify_ledger
from secondorder.errors import CorruptFileError, LockedError, SpecError

from .. import small_run as small
from .conftest import CALLS, outcomes, run, served


def test_a_failing_parser_loses_no_answer_and_no_call_is_repeated(path):
    def broken(text, finish_reason, call):
        raise ValueError("no such verdict")

    with SimulatedJudge(process=False) as server:
        with pytest.raises(SpecError, match=r"the parser failed on call \w+: ValueError: no such verdict.*stored"):
            run(path, server.base_url, parse=broken, fields={"concurrency": 2})
        assert outcomes(path) == {}
        run(path, server.base_url)
        assert served(server) == Counter(call.request_sha256 for call in CALLS)
    assert outcomes(path) == {call.id: small.expected(call) for call in CALLS}
    assert verify_ledger(path) == []


def test_a_judge_that_is_not_given_is_named(path):
    with pytest.raises(SpecError, match=r"calls of judge 'toy'.*judges given: other"):
        run(path, "http://127.0.0.1:1/v1", judges=("other",))


def test_a_damaged_request_is_not_sent(path):
    import sqlite3

    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER call_no_update")
    connection.execute("UPDATE call SET request = (SELECT request FROM call WHERE rank = 0) WHERE rank = 5")
    connection.commit()
    connection.close()
    with SimulatedJudge(process=False) as server:
        with pytest.raises(CorruptFileError, match=f"the stored request of call {CALLS[5].id} has changed"):
            run(path, server.base_url)
        assert max(served(server).values(), default=0) <= 1


def test_a_second_run_of_the_same_ledger_stops_at_once(path):
    with SimulatedJudge(process=False) as server, Ledger(path), pytest.raises(LockedError):
        run(path, server.base_url)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize(("number", "times"), [(signal.SIGINT, 1), (signal.SIGINT, 2), (signal.SIGTERM, 1)])
def test_ctrl_c_and_a_polite_kill_are_resumable(path, number, times):
    calls = small.make_calls(items=6)
    path = small.plan(path.with_name("long.sqlite"), calls)
    with SimulatedJudge(process=False, latency_s=0.1) as server:
        command = [sys.executable, small.__file__, "run", str(path), server.base_url, "--concurrency", "4"]
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while len(server.server.served) < 10:
            time.sleep(0.01)
        for _ in range(times):
            child.send_signal(number)
            time.sleep(0.02)
        _, error = child.communicate(timeout=30)
        assert (child.returncode, error) == (130, "")
        time.sleep(0.3)
        sent = len(server.server.served)
        with read_ledger(path) as ledger:
            stored = ledger.attempt_counts()
            if times == 1:  # softly: what was in flight has ended and is stored
                assert stored == {("toy", "completed"): sent}
                assert ledger.unknown() == []
        done = outcomes(path)
        run(path, server.base_url)
        assert all(served(server)[call.request_sha256] == 1 for call in calls if call.id in done)
    assert outcomes(path) == {call.id: small.expected(call) for call in calls}
    assert verify_ledger(path) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_killed_ten_times_and_resumed_nothing_is_lost_or_doubled(tmp_path):
    # Full size: python tests/small_run.py kill --calls 2400 --kills 10
    report = small.kill_and_resume(tmp_path, n_calls=400, kills=10)
    assert report["attempts"]["completed"] == 400
    assert report["attempts"]["interrupted"] > 0  # the kills did strike calls in flight
