"""A judge that fails as a whole is stopped, in one line, and costs no call."""

from __future__ import annotations

import traceback

import pytest

from secondorder.acquire._judge import Fault, SimulatedJudge
from secondorder.acquire._ledger_read import read_ledger
from secondorder.acquire._ledger_verify import verify_ledger
from secondorder.acquire._scheduler import run_calls
from secondorder.acquire._spec import RetrySpec
from secondorder.errors import EndpointError, KeyRefusedError, SpecError

from .. import small_run as small
from .conftest import CALLS, QUICK, counts, outcomes, run

KEY = "sk-planted-0123456789abcdef"


def test_a_wrong_key_stops_that_judge_and_loses_nothing(tmp_path, monkeypatch, capfd, caplog):
    monkeypatch.setenv("RIGHT_KEY", KEY)
    monkeypatch.setenv("JUDGE_KEY", KEY.upper())
    calls = small.make_calls(items=2, judges=("open", "shut"))
    path = small.plan(tmp_path / "ledger.sqlite", calls)
    fails_once = [Fault(kind="status", status=500, per_call=1)]
    guarded_judge = SimulatedJudge(faults=fails_once, key_env="RIGHT_KEY", process=False)
    with SimulatedJudge(process=False) as free, guarded_judge as guarded:
        judges = {"open": small.judge(free.base_url), "shut": small.judge(guarded.base_url, key_env="JUDGE_KEY")}
        with pytest.raises(KeyRefusedError, match=r"judge 'shut'.*HTTP 401.*check the key in JUDGE_KEY") as refused:
            run_calls(path, judges, parse=small.parse, seed=1)
        assert refused.value.exit_code == 3
        assert "\n" not in str(refused.value)
        assert outcomes(path) == {call.id: small.expected(call) for call in calls if call.judge == "open"}
        law = RetrySpec(attempts=2)
        for _ in range(3):
            with pytest.raises(KeyRefusedError):
                run_calls(path, judges, parse=small.parse, seed=1, retry=law)
        monkeypatch.setenv("JUDGE_KEY", KEY)
        # A refusal of the judge is not held against its calls: each still has both its attempts, and needs them.
        run_calls(path, judges, parse=small.parse, seed=1, retry=law, backoff=QUICK)
    assert outcomes(path) == {call.id: small.expected(call) for call in calls}
    assert verify_ledger(path) == []
    text = "".join(capfd.readouterr()) + caplog.text + "".join(traceback.format_exception(refused.value))
    assert KEY.lower() not in text.lower()
    for file in tmp_path.rglob("*"):
        assert KEY.lower().encode() not in file.read_bytes().lower(), file


@pytest.mark.parametrize(
    ("base_url", "words"),
    [
        ("http://127.0.0.1:1/v1", r"cannot connect to 127\.0\.0\.1:1"),
        ("http://no-such-host.invalid/v1", r"host 'no-such-host\.invalid' is not known"),
    ],
)
def test_an_unreachable_judge_is_one_line_and_no_call_is_spent(path, base_url, words):
    with pytest.raises(EndpointError, match=words) as unreachable:
        run(path, base_url)
    assert unreachable.value.exit_code == 3
    with read_ledger(path) as ledger:
        assert list(ledger.attempts()) == []
    with SimulatedJudge(process=False) as server:
        run(path, server.base_url)
    assert outcomes(path) == {call.id: small.expected(call) for call in CALLS}


def test_a_missing_key_stops_before_anything_is_sent(path, monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(SpecError, match="NO_SUCH_KEY") as missing:
        run(path, "http://127.0.0.1:1/v1", fields={"key_env": "NO_SUCH_KEY"})
    assert missing.value.exit_code == 2


@pytest.mark.parametrize(
    ("status", "words"), [(404, "check base_url and model"), (402, "account"), (307, "check base_url")]
)
def test_refusals_that_waiting_does_not_cure(path, status, words):
    faults = [Fault(kind="status", status=status)]
    refused = pytest.raises(EndpointError, match=rf"HTTP {status}.*{words}")
    with SimulatedJudge(faults=faults, process=False) as server, refused:
        run(path, server.base_url)
    assert outcomes(path) == {}


UNANSWERED = {
    "rejected": (Fault(kind="status", status=400), r"10 calls in a row were all rejected \(HTTP 400: simulated"),
    "page of a proxy": (Fault(kind="malformed"), "10 calls in a row got no answer"),
    "error in the place of an answer": (Fault(kind="error_body"), "10 calls in a row got no answer"),
}


@pytest.mark.parametrize("what", UNANSWERED)
def test_a_judge_that_never_answered_is_stopped_and_costs_no_call(path, what):
    fault, words = UNANSWERED[what]
    with SimulatedJudge(faults=[fault], process=False) as server:
        with pytest.raises(EndpointError, match=words):
            run(path, server.base_url, fields={"concurrency": 1}, retry=RetrySpec(attempts=1))
        assert len(server.server.served) == 10
    assert counts(path) == {(None, ""): len(CALLS)}
    with SimulatedJudge(process=False) as server:
        run(path, server.base_url, retry=RetrySpec(attempts=1))
    assert outcomes(path) == {call.id: small.expected(call) for call in CALLS}
    assert verify_ledger(path) == []


def test_fewer_calls_all_rejected_are_an_error_too(path):
    calls = small.make_calls(items=1, prompts=("p1",))
    path = small.plan(path.with_name("few.sqlite"), calls)
    useless = pytest.raises(EndpointError, match="8 calls in a row were all rejected")
    with SimulatedJudge(faults=[Fault(kind="status", status=422)], process=False) as server, useless:
        run(path, server.base_url)
    assert counts(path) == {(None, ""): 8}


def test_calls_that_a_judge_rejects_before_it_answers_others_have_ended(path):
    with SimulatedJudge(faults=[Fault(kind="status", status=400, first=3)], process=False) as server:
        run(path, server.base_url, fields={"concurrency": 1})
    assert counts(path)[("no_completion", "rejected")] == 3
    assert (None, "") not in counts(path)


def test_a_dead_server_stops_the_judge_and_costs_no_call(path):
    dead = pytest.raises(EndpointError, match="10 calls in a row got no answer")
    with SimulatedJudge(faults=[Fault(kind="reset")], process=False) as server, dead:
        run(path, server.base_url, fields={"concurrency": 2}, retry=RetrySpec(attempts=2))
    assert counts(path) == {(None, ""): len(CALLS)}
    with SimulatedJudge(process=False) as server:
        run(path, server.base_url, retry=RetrySpec(attempts=2))
    assert {status for status, _ in counts(path)} <= {"valid", "invalid"}
    assert verify_ledger(path) == []


def test_errors_on_one_item_cost_that_item_alone(path):
    # All calls of an item in a row, one at a time: far more than ten failures of one item, and of no other.
    calls = small.make_calls(items=3, prompts=tuple(f"p{k}" for k in range(8)), shuffled=False)
    path = small.plan(path.with_name("one.sqlite"), calls)
    bad = [call for call in calls if call.item == calls[0].item]
    assert len(bad) > 10
    faults = [Fault(kind="status", status=500, contains=f" for {bad[0].item},")]
    with SimulatedJudge(faults=faults, process=False) as server:
        run(path, server.base_url, fields={"concurrency": 1}, retry=RetrySpec(attempts=1))
    ended = counts(path)
    assert ended[("no_completion", "http_error")] == len(bad)
    assert sum(ended.values()) == len(calls) == sum(n for (status, _), n in ended.items() if status is not None)
    assert verify_ledger(path) == []
