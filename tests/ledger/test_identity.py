"""What a ledger states of itself: its digest, and what verifying finds."""

from __future__ import annotations

import sqlite3

import pytest

from secondorder.acquire._ledger import Ledger
from secondorder.acquire._ledger_read import read_ledger
from secondorder.acquire._ledger_verify import verify_ledger
from secondorder.acquire._types import Outcome

from .. import small_run as small
from .conftest import CALLS, completed, fill, response


def test_the_digest_is_of_outcomes_in_call_order_not_of_bytes_or_history(tmp_path):
    digests = []
    for name, ranks, latency in (("a", [0, 1, 2], 1.0), ("b", [2, 0, 1], 7.0)):
        path = small.plan(tmp_path / name, CALLS)
        with Ledger(path) as ledger:
            ledger.intend([(rank, 1) for rank in ranks]).result()
            for rank in ranks:
                ledger.record(completed(rank, latency_ms=latency, response=response(rank, f"{name}{rank}")))
        with read_ledger(path) as ledger:
            digests.append(ledger.digest())
    assert digests[0] == digests[1]
    other = small.plan(tmp_path / "c", CALLS)
    with Ledger(other) as ledger:
        ledger.intend([(rank, 1) for rank in range(3)]).result()
        for rank in range(3):
            ledger.record(completed(rank, outcome=Outcome("valid", verdict="2") if rank == 2 else None))
    with read_ledger(other) as ledger:
        assert ledger.digest() != digests[0]


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("UPDATE call SET request_sha256 = zeroblob(32) WHERE rank = 1", "request"),
        ("UPDATE call SET request = (SELECT request FROM call WHERE rank = 0) WHERE rank = 1", "request"),
        ("UPDATE call SET item = 'other' WHERE rank = 1", "identity"),
        ("DELETE FROM call WHERE rank = 31", "number of calls"),
        ("UPDATE call SET rank = 99 WHERE rank = 31", "rank"),
        ("UPDATE meta SET value = 'x' WHERE key = 'calls_sha256'", "calls_sha256"),
        ("UPDATE attempt SET response = (SELECT response FROM attempt WHERE call = 0) WHERE call = 1", "response"),
        ("UPDATE attempt SET response = x'00' WHERE call = 1", "rows: stated readable"),
        ("UPDATE attempt SET reason = 'because', status = 'invalid', verdict = NULL WHERE call = 1", "because"),
        ("UPDATE attempt SET verdict = '2' WHERE call = 1", "outcomes_sha256"),
        ("DELETE FROM intent WHERE call = 1", "an intent before every attempt"),
        ("INSERT INTO intent VALUES (1, 5, 0.0)", "attempts numbered"),
        (
            "INSERT INTO attempt (call, number, class) VALUES (1, 1, 'completed')",
            "no attempt after a completion",
        ),
    ],
)
def test_verify_finds_what_was_tampered_with(path, statement, found):
    fill(path)
    with Ledger(path) as ledger, read_ledger(path) as reader:
        assert reader.complete()
        ledger.set_meta("outcomes_sha256", reader.digest())
    assert verify_ledger(path) == []
    connection = sqlite3.connect(path)
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute(statement)
    connection.commit()
    connection.close()
    differences = [str(difference) for difference in verify_ledger(path)]
    assert any(found in line for line in differences), differences


def test_verify_holds_the_ledger_to_its_manifest(path):
    with read_ledger(path) as ledger:
        stated = ledger.meta["calls_sha256"]
    assert verify_ledger(path, calls_sha256=stated, manifest_sha256="0" * 64) == []
    (difference,) = verify_ledger(path, calls_sha256="f" * 64)
    assert difference.place == "manifest calls_sha256"
