"""Every planned call ends exactly once, whatever the server does."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter

import pytest

from secondorder.acquire._http import JudgeLine
from secondorder.acquire._judge import Fault, SimulatedJudge
from secondorder.acquire._ledger import Ledger
from secondorder.acquire._ledger_read import read_ledger
from secondorder.acquire._ledger_verify import verify_ledger
from secondorder.acquire._outcome import outcome_of, reread
from secondorder.acquire._spec import RetrySpec
from secondorder.acquire._types import Outcome

from .. import small_run as small
from .conftest import CALLS, counts, outcomes, run, served

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
