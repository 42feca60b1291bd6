"""What is called at all, and in which order: policies, limits and warm-ups."""

from __future__ import annotations

import itertools

import pytest

from secondorder.acquire._judge import Fault, SimulatedJudge
from secondorder.acquire._ledger import Attempt, Ledger
from secondorder.acquire._ledger_read import read_ledger
from secondorder.acquire._ledger_verify import verify_ledger
from secondorder.acquire._spec import LimitsSpec, PriceSpec, RetrySpec
from secondorder.acquire._types import Outcome

from .. import small_run as small
from .conftest import CALLS, counts, outcomes, run


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


@pytest.mark.parametrize("reason", ["limit", "gate", "stop_rule"])
def test_a_call_without_answer_that_is_not_wanted_any_more_ends_by_what_stopped_it(path, reason):
    class Refuses:
        def observe(self, call, outcome) -> None: ...

        def wanted(self, call) -> str:
            return reason

    with Ledger(path) as ledger:
        ledger.intend([(0, 1), (1, 1)]).result()
        ledger.record(Attempt(call=0, number=1, result="timeout", prompt_tokens=60))
        ledger.record(Attempt(call=1, number=1, result="unsent"))
    options = {"policy": Refuses()} if reason != "limit" else {"limits": LimitsSpec(cost_usd=50.0)}
    with SimulatedJudge(process=False) as server:
        run(path, server.base_url, fields={"price": PriceSpec(input=1e6, output=0.0)}, **options)
        assert not server.server.served
    with read_ledger(path) as ledger:
        first, second, *_ = ledger.outcomes()
        assert first.outcome == second.outcome == Outcome("not_called", reason)
        assert (first.number, second.number) == (1, 0)
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
