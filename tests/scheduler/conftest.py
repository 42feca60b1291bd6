"""A planned ledger, and what the tests of the scheduler run and read."""

from __future__ import annotations

from collections import Counter

import pytest

from secondorder.acquire._judge import SimulatedJudge
from secondorder.acquire._ledger_read import read_ledger
from secondorder.acquire._retry import Backoff
from secondorder.acquire._scheduler import run_calls
from secondorder.acquire._types import Outcome

from .. import small_run as small

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
