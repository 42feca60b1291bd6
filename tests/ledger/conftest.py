"""A planned ledger, and rows to store in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from secondorder.acquire._ledger import Attempt, Ledger
from secondorder.acquire._types import Outcome

from .. import small_run as small

CALLS = small.make_calls(items=2)


@pytest.fixture
def path(tmp_path):
    return small.plan(tmp_path / "ledger.sqlite", CALLS)


def response(rank: int, identity: str | None = None) -> bytes:
    return json.dumps({"id": identity or f"id-{rank}", "choices": [{"message": {"content": "A"}}]}).encode()


def completed(rank: int, number: int = 1, outcome: Outcome | None = None, **fields) -> Attempt:
    outcome = outcome or Outcome("valid", verdict="1")
    given = {"http_status": 200, "response": response(rank), "response_key": rank, "sent": 1.0, "latency_ms": 2.0}
    return Attempt(**{"call": rank, "number": number, "result": "completed", "outcome": outcome, **given, **fields})


def fill(path: Path, ranks=None) -> None:
    ranks = range(len(CALLS)) if ranks is None else ranks
    with Ledger(path) as ledger:
        ledger.intend([(rank, 1) for rank in ranks]).result()
        for rank in ranks:
            ledger.record(completed(rank))
