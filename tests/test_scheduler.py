"""Every planned call ends exactly once, whatever the server, the disk, the user or the power does."""

from __future__ import annotations

import hashlib
import itertools
import json
import runpy
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondorder.acquire._http import JudgeLine
from secondorder.acquire._judge import Fault, SimulatedJudge
from secondorder.acquire._ledger import Ledger
from secondorder.acquire._ledger_read import read_ledger
from secondorder.acquire._ledger_verify import verify_ledger
from secondorder.acquire._outcome import outcome_of, reread
from secondorder.acquire._retry import Backoff, Pace, retry_after_s
from secondorder.acquire._scheduler import run_calls
from secondorder.acquire._silence import SILENT, SILENT_ITEMS, Silence, Unanswered
from secondorder.acquire._spec import LimitsSpec, PriceSpec, RetrySpec
from secondorder.acquire._types import Outcome
from secondorder.errors import CorruptFileError, EndpointError, KeyRefusedError, LockedError, SpecError

SCRIPT = Path(__file__).with_name("small_run.py")
small = SimpleNamespace(**runpy.run_path(str(SCRIPT)))

KEY = "sk-planted-0123456789abcdef"
QUICK = Backoff(base_s=0.001, cap_s=0.01)
CALLS = small.make_calls(items=2)


@pytest.fixture
def path(tmp_path):
    return small.plan(tmp_path / "ledger.sqlite", CALLS)


def run(path, base_url, *, judges=("toy",), fields=None, **options):
    specs = {name: small.judge(base_url, **(fields or {})) for name in judges}
    return run_calls(path, specs, **{"parse": small.parse, "seed": 1, "backoff": QUICK, **options})


def outcomes(path) -> dict[str, Outcome]:
    with read_ledger(path) as ledger:
        return {record.call.id: record.outcome for record in ledger.outcomes()}


def counts(path) -> dict[tuple[str | None, str], int]:
    with read_ledger(path) as ledger:
        return {(row.status, row.reason): row.count for row in ledger.counts()}


def served(server: SimulatedJudge) -> Counter:
    return Counter(server.server.served)


# -- the plain run ----------------------------------------------------------------------------------------------------


def test_every_call_ends_with_the_outcome_that_its_law_and_seed_determine(path):
    seen = []
    with SimulatedJudge(process=False) as server:
        summary = run(path, server.base_url, progress=seen.append)
        again = run(path, server.base_url)
        assert served(server) == Counter(call.request_sha256 for call in CALLS)
    assert outcomes(path) == {call.id: small.expected(call) for call in CALLS}
    assert len({outcome.status for outcome in outcomes(path).values()}) == 2  # valid and invalid both occur
    assert (summary.planned, summary.open, summary.missing, again.open) == (len(CALLS), 0, 0, 0)
    assert summary.counts == again.counts
    assert (seen[-1].done, seen[-1].total, seen[-1].in_flight, seen[-1].retries) == (len(CALLS), len(CALLS), 0, 0)
    assert f"{len(CALLS)} calls planned, 0 open" in str(summary)
    with read_ledger(path) as ledger:
        assert ledger.meta["outcomes_sha256"] == ledger.digest()
    assert verify_ledger(path) == []


def test_a_finished_ledger_needs_neither_judge_nor_key(path):
    with SimulatedJudge(process=False) as server:
        first = run(path, server.base_url)
    again = run(path, "http://no-such-host.invalid/v1", fields={"key_env": "NO_SUCH_KEY"})
    assert again.counts == first.counts


def test_progress_and_errors_of_the_callback_reach_the_caller(path):
    def fail(_) -> None:
        raise RuntimeError("no terminal")

    with SimulatedJudge(process=False, latency_s=0.05) as server:
        with pytest.raises(RuntimeError, match="no terminal"):
            run(path, server.base_url, progress=fail, fields={"concurrency": 1})
        run(path, server.base_url)
    assert outcomes(path) == {call.id: small.expected(call) for call in CALLS}


def test_it_runs_inside_a_running_loop_too(path):
    import asyncio

    async def notebook(base_url):
        return run(path, base_url)

    with SimulatedJudge(process=False) as server:
        assert asyncio.run(notebook(server.base_url)).open == 0


def test_nothing_is_sent_before_its_intent_is_on_disk(path, monkeypatch):
    announced = []
    send = JudgeLine.send

    async def looking_first(self, request):
        with read_ledger(path) as ledger:
            rows = ledger.query(
                "SELECT count(*) FROM intent i JOIN call c ON c.rank = i.call WHERE c.request_sha256 = ?",
                (hashlib.sha256(request).digest(),),
            )
            announced.append((request, next(rows)[0]))
        return await send(self, request)

    store = Ledger._store

    def slow_disk(self, *rows):
        time.sleep(0.02)
        return store(self, *rows)

    monkeypatch.setattr(Ledger, "_store", slow_disk)
    monkeypatch.setattr(JudgeLine, "send", looking_first)
    with SimulatedJudge(faults=[Fault(kind="reset", per_call=1)], process=False) as server:
        run(path, server.base_url)
    times: Counter = Counter()
    for request, intents in announced:
        times[request] += 1
        assert intents == times[request]
    assert set(times.values()) == {2}


def test_verdicts_are_borne_out_by_the_stored_answers(path):
    with SimulatedJudge(faults=[Fault(kind="filtered", rate=0.3)], process=False) as server:
        run(path, server.base_url)
        toy = small.judge(server.base_url)

    def again(record, parse=small.parse):
        completion = reread(record, toy)
        return None if completion is None else outcome_of(completion, parse, record.call)

    assert verify_ledger(path, again=again) == []
    assert counts(path)[("invalid", "filtered")] > 0
    other = verify_ledger(path, again=lambda record: again(record, lambda *_: Outcome("invalid", "unparsed")))
    assert len(other) == counts(path)[("valid", "")]


# -- faults of single calls -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "result"),
    [
        ({"kind": "status", "status": 429, "retry_after": 0}, "rate_limited"),
        ({"kind": "status", "status": 500}, "http_error"),
        ({"kind": "status", "status": 504}, "timeout"),
        ({"kind": "reset"}, "connection"),
        ({"kind": "cut"}, "connection"),
        ({"kind": "malformed"}, "malformed"),
        ({"kind": "error_body"}, "error_body"),
        ({"kind": "slow", "seconds": 1.0}, "timeout"),
    ],
)
def test_no_completion_is_sent_again_with_the_same_bytes_until_there_is_one(path, fault, result):
    with SimulatedJudge(faults=[Fault(**fault, per_call=2, rate=0.5)], process=False) as server:
        summary = run(path, server.base_url, fields={"timeout_s": 0.3 if fault["kind"] == "slow" else 30.0})
        log = served(server)
    assert set(log) == {call.request_sha256 for call in CALLS}  # no byte differs between attempts
    assert outcomes(path) == {call.id: small.expected(call) for call in CALLS}
    retried = sum(log.values()) - len(CALLS)
    assert retried > 0
    assert summary.attempts == {("toy", "completed"): len(CALLS), ("toy", result): retried}
    assert max(log.values()) <= 3
    assert verify_ledger(path) == []


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [
        ("empty", Outcome("invalid", "empty")),
        ("truncated", Outcome("invalid", "truncated")),
        ("refusal", Outcome("invalid", "refusal")),
        ("filtered", Outcome("invalid", "filtered")),
    ],
)
def test_a_completed_call_is_never_sent_again_whatever_it_says(path, kind, outcome):
    with SimulatedJudge(faults=[Fault(kind=kind)], process=False) as server:
        run(path, server.base_url)
        assert served(server) == Counter(call.request_sha256 for call in CALLS)
    assert set(outcomes(path).values()) == {outcome}


def test_transport_failure_is_missing_not_invalid(path):
    # Ten items, three lost to 429: seven of ten are shown, the three are not invalid (case 22).
    lost = [f"item{number:03d}" for number in (2, 5, 7)]
    calls = small.make_calls(items=10, prompts=("p1",), orders=("AB",), repeats=1)
    path = small.plan(path.with_name("ten.sqlite"), calls)
    faults = [Fault(kind="status", status=429, contains=item) for item in lost]
    with SimulatedJudge(faults=faults, process=False) as server:
        summary = run(path, server.base_url, retry=RetrySpec(attempts=3))
        log = served(server)
    assert summary.missing == 3
    assert counts(path)[("no_completion", "rate_limited")] == 3
    assert {log[call.request_sha256] for call in calls if call.item in lost} == {3}
    assert {log[call.request_sha256] for call in calls if call.item not in lost} == {1}
    rest = {call.id: small.expected(call) for call in calls if call.item not in lost}
    assert {name: end for name, end in outcomes(path).items() if end.status != "no_completion"} == rest


def test_a_sample_that_ran_twice_counts_once(path):
    # After a 429 the call is sent again: one outcome, the other row is an attempt (case 14).
    with SimulatedJudge(faults=[Fault(kind="status", status=429, per_call=1)], process=False) as server:
        run(path, server.base_url)
    with read_ledger(path) as ledger:
        assert len(list(ledger.outcomes())) == len(CALLS)
        assert len(list(ledger.attempts())) == 2 * len(CALLS)
        assert {record.number for record in ledger.outcomes()} == {2}


def test_a_rejected_request_ends_its_call_at_once(path):
    fault = Fault(kind="status", status=413, contains="item001")
    with SimulatedJudge(faults=[fault], process=False) as server:
        run(path, server.base_url, fields={"concurrency": 1})
        assert set(served(server).values()) == {1}
    assert counts(path)[("no_completion", "rejected")] == 16


def test_the_time_cap_ends_a_call_too(path):
    # The server asks for more time than the law allows: waiting would be pointless.
    fault = Fault(kind="status", status=503, retry_after=100, contains="p1")
    with SimulatedJudge(faults=[fault], process=False) as server:
        run(path, server.base_url, retry=RetrySpec(give_up_after_s=0.05), fields={"concurrency": 32})
        assert set(served(server).values()) == {1}
    assert counts(path)[("no_completion", "http_error")] == 16


# -- caches and shared seeds: the ledger sees them (cases 12 and 13) --------------------------------------------------


@pytest.mark.parametrize("kind", ["cached", "proxy_cached", "duplicated", "fixed_seed"])
def test_dependence_between_repeats_leaves_its_trace(path, kind):
    with SimulatedJudge(faults=[Fault(kind=kind)], process=False) as server:
        run(path, server.base_url, fields={"concurrency": 1})
    texts: dict[tuple[str, str, str], list[str]] = {}
    zero_usage = 0
    with read_ledger(path) as ledger:
        for record in ledger.outcomes(bodies=True):
            call, body = record.call, json.loads(record.response)
            texts.setdefault((call.item, call.prompt, call.order), []).append(body["choices"][0]["message"]["content"])
            zero_usage += record.prompt_tokens == 0
        duplicates = ledger.duplicates()
    if kind == "duplicated":
        assert all(cell[0] == cell[1] and cell[2] == cell[3] for cell in texts.values())
    else:
        assert all(len(set(cell)) == 1 for cell in texts.values())  # "repeats" with one distinct text
    cached = kind == "cached"
    assert sorted(item.kind for item in duplicates) == sorted(["body", "response_id"] * 8 if cached else [])
    assert all(item.inside_cell and len(item.calls) == 4 for item in duplicates)
    assert zero_usage == (24 if kind == "proxy_cached" else 0)


# -- the judge as a whole fails ---------------------------------------------------------------------------------------


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


# -- policies and limits ----------------------------------------------------------------------------------------------


class Patient:
    """Wants nothing of an item before its first call has ended."""

    def __init__(self, calls):
        self.firsts, self.ended = {}, set()
        for call in calls:
            self.firsts.setdefault(call.item, call.id)

    def observe(self, call, outcome):
        self.ended.add(call.id)

    def wanted(self, call):
        first = self.firsts[call.item]
        return "" if call.id == first or first in self.ended else "undecided"


def test_a_policy_that_waits_for_a_call_without_answer_does_not_wait_for_ever(path):
    calls = small.make_calls(items=2, prompts=("p1",), orders=("AB",), repeats=2, shuffled=False)
    path = small.plan(path.with_name("waiting.sqlite"), calls)
    # The first call of the second item fails when all of the first item have ended: nothing else is out then.
    which = " for item001,"
    faults = [Fault(kind="slow", contains=which, seconds=0.5), Fault(kind="reset", contains=which)]
    with SimulatedJudge(faults=faults, process=False) as server:
        run(path, server.base_url, fields={"concurrency": 2}, retry=RetrySpec(attempts=1), policy=Patient(calls))
    assert (None, "") not in counts(path)
    with read_ledger(path) as ledger:
        lost = [record for record in ledger.outcomes() if record.outcome.status == "no_completion"]
    assert len(lost) == 2
    assert all(record.error for record in lost), "the report shows why"


def test_the_limit_of_calls_is_exact_and_the_rest_says_why(path):
    with SimulatedJudge(process=False) as server:
        with Ledger(path):
            pass
        run(path, server.base_url, limits=LimitsSpec(calls=20))
        assert len(server.server.served) == 20
        run(path, server.base_url, limits=LimitsSpec(calls=20))
        assert len(server.server.served) == 20
    assert counts(path)[("not_called", "limit")] == len(CALLS) - 20
    assert len(outcomes(path)) == len(CALLS)
    assert verify_ledger(path) == []


def test_the_limit_of_cost_counts_what_earlier_runs_spent(path):
    price = PriceSpec(input=1e6, output=0.0)  # a dollar per prompt token
    with SimulatedJudge(process=False) as server:
        fields = {"price": price, "concurrency": 1}
        run(path, server.base_url, fields=fields, limits=LimitsSpec(cost_usd=50.0))
        sent = len(server.server.served)
        run(path, server.base_url, fields=fields, limits=LimitsSpec(cost_usd=50.0))
        assert len(server.server.served) == sent
    with read_ledger(path) as ledger:
        (calls, tokens, _) = ledger.usage()["toy"]
    assert calls == sent < len(CALLS)
    assert tokens >= 50
    assert counts(path)[("not_called", "limit")] == len(CALLS) - sent


def test_a_policy_sees_every_outcome_also_of_earlier_runs_and_decides_what_is_called(path):
    class StopAfter:
        def __init__(self, enough: int) -> None:
            self.enough, self.seen = enough, []

        def observe(self, call, outcome) -> None:
            self.seen.append(call.id)

        def wanted(self, call) -> str:
            return "" if call.item == "item000" else "gate" if len(self.seen) < self.enough else "stop_rule"

    first, second = StopAfter(0), StopAfter(0)
    with SimulatedJudge(process=False) as server:
        run(path, server.base_url, policy=first)
        run(path, server.base_url, policy=second)
    assert counts(path)[("not_called", "stop_rule")] == 16
    assert sorted(first.seen) == sorted(call.id for call in CALLS)
    assert second.seen == [call.id for call in CALLS]


def test_warm_ups_go_before_their_cell_and_are_no_verdicts(path):
    calls = small.make_calls(items=3, shuffled=False, warmups=True)
    path = small.plan(path.with_name("cells.sqlite"), calls)
    with SimulatedJudge(process=False, latency_s=0.02) as server:
        summary = run(path, server.base_url, fields={"concurrency": 4})
    assert summary.planned == 3 * 16
    cells: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    with read_ledger(path) as ledger:
        assert ledger.complete()
        for record in ledger.outcomes():
            call = record.call
            cells.setdefault((call.item, call.prompt, call.order), []).append((call.repeat, record.sent))
    for cell in cells.values():
        assert [repeat for repeat, _ in cell] == [-1, 0, 1, 2, 3]
        # Each was sent after the one before it was answered, which takes the judge 20 ms.
        assert all(later[1] - sooner[1] >= 0.019 for sooner, later in itertools.pairwise(cell))


# -- the parser, the file, the user -----------------------------------------------------------------------------------


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
        command = [sys.executable, str(SCRIPT), "run", str(path), server.base_url, "--concurrency", "4"]
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


# -- the law of waiting, as pure functions ----------------------------------------------------------------------------


@given(seed=st.integers(0, 2**53), attempt=st.integers(1, 2000))
def test_backoff_is_deterministic_jittered_and_capped(seed, attempt):
    law = Backoff(base_s=1.0, cap_s=60.0)
    wait = law.wait_s(seed, "call", attempt)
    longest = min(60.0, 2.0 ** min(attempt - 1, 60))
    assert wait == law.wait_s(seed, "call", attempt)
    assert longest / 2 <= wait <= longest
    assert wait != law.wait_s(seed, "other call", attempt)
    assert 7.0 <= law.wait_s(seed, "call", attempt, asked_s=7.0) <= 8.0


@given(
    per_minute=st.floats(0.5, 50_000),
    gaps=st.lists(st.floats(0, 30, allow_subnormal=False), min_size=1, max_size=300),
)
def test_no_minute_holds_more_than_its_share_and_one_seconds_burst(per_minute, gaps):
    pace, now, sends = Pace(per_minute), 0.0, []
    for gap in gaps:
        now += gap
        sends.append(now + pace.reserve(now))
    assert sends == sorted(sends)
    most = per_minute + max(1.0, per_minute / 60.0) + 1
    for first in range(0, len(sends), 7):
        assert sum(sends[first] <= at < sends[first] + 60.0 for at in sends) <= most


def test_an_unlimited_pace_waits_only_when_told_to():
    pace = Pace(None)
    assert pace.reserve(5.0) == 0.0
    pace.hold(9.0)
    assert pace.reserve(5.0) == 4.0
    assert pace.reserve(10.0) == 0.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After": "-3"}, 0.0),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
        ({"Retry-After": "later"}, None),
        ({"Retry-After": formatdate(1_000_030, usegmt=True)}, 30.0),
        ({"Retry-After": formatdate(999_000, usegmt=True)}, 0.0),
        ({"Retry-After": formatdate(2_000_030, usegmt=True), "Date": formatdate(2_000_000, usegmt=True)}, 30.0),
        ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25),
    ],
)
def test_retry_after_is_read(headers, seconds):
    assert retry_after_s(headers, 1_000_000.0) == seconds


# -- a judge that is away ---------------------------------------------------------------------------------------------


class Asked:
    """A call that counts how often its item is asked for."""

    times = 0

    @property
    def item(self) -> str:
        Asked.times += 1
        return "the only one"


@given(
    st.lists(
        st.none() | st.tuples(st.sampled_from(("connection", "http_error", "timeout")), st.integers(0, 3)), max_size=40
    )
)
def test_a_judge_is_away_by_the_calls_since_its_last_answer(events):
    silence, since = Silence(answered=True), []
    for event in events:
        if event is None:
            silence.end()
            since = []
            continue
        reason, item = event
        since.append(event)
        errors, items = "http_error" in {r for r, _ in since}, {i for _, i in since}
        away = len(since) >= SILENT and (not errors or len(items) >= SILENT_ITEMS)
        assert silence.add(Unanswered(SimpleNamespace(item=item), 1, SimpleNamespace(reason=reason))) == away
        assert len(silence) == len(since)


def test_each_unanswered_call_is_looked_at_once():
    silence = Silence(answered=True)
    for _ in range(1000):
        assert not silence.add(Unanswered(Asked(), 1, SimpleNamespace(reason="http_error")))
    assert Asked.times == 1000
