"""The ledger keeps what it was given, admits one outcome per call, and gives it all back."""

from __future__ import annotations

import json
import os
import sqlite3

import msgspec
import pytest

from secondorder.acquire._ledger import Attempt, Ledger
from secondorder.acquire._ledger_create import create_ledger
from secondorder.acquire._ledger_export import export_ledger
from secondorder.acquire._ledger_read import read_ledger
from secondorder.acquire._ledger_verify import verify_ledger
from secondorder.acquire._types import Outcome
from secondorder.errors import InputError, StorageError

from .. import small_run as small
from .conftest import CALLS, completed, fill, response

# -- what goes in comes out -------------------------------------------------------------------------------------------


def test_calls_come_back_byte_for_byte(path):
    with read_ledger(path) as ledger:
        assert list(ledger.calls()) == CALLS
        assert ledger.n_calls == len(CALLS)
        assert [row.count for row in ledger.counts()] == [len(CALLS)]
        assert list(ledger.outcomes()) == []
        assert not ledger.complete()
    assert verify_ledger(path) == []


def test_outcomes_and_attempts_come_back(path):
    with Ledger(path) as ledger:
        ledger.intend([(3, 1), (0, 1)]).result()
        ledger.record(
            Attempt(call=3, number=1, result="timeout", sent=1.5, latency_ms=9.0, error="no answer within timeout_s")
        )
        ledger.record(completed(0, outcome=Outcome("invalid", "unparsed"), headers={"x-request-id": "r"}))
        ledger.intend([(3, 2)]).result()
        ledger.record(completed(3, 2, prompt_tokens=10, completion_tokens=2))
        ledger.record(Attempt(call=1, number=0, result="not_called", outcome=Outcome("not_called", "limit")))
    with read_ledger(path) as ledger:
        records = list(ledger.outcomes(bodies=True))
        assert [record.call.rank for record in records] == [0, 1, 3]
        assert [record.outcome for record in records] == [
            Outcome("invalid", "unparsed"),
            Outcome("not_called", "limit"),
            Outcome("valid", verdict="1"),
        ]
        assert [record.number for record in records] == [1, 0, 2]
        assert records[0].headers == {"x-request-id": "r"}
        assert (records[0].response, records[1].response, records[2].response) == (response(0), None, response(3))
        assert records[2].call == CALLS[3]
        replace = msgspec.structs.replace
        bare = [replace(record, call=replace(record.call, request=b"")) for record in records]
        assert list(ledger.outcomes(bodies="response")) == bare
        assert [(record.call.rank, record.result) for record in ledger.attempts()] == [
            *((3, "timeout"), (0, "completed"), (3, "completed"), (1, "not_called"))
        ]
        assert ledger.attempt_counts() == {("toy", "completed"): 2, ("toy", "timeout"): 1}
        assert ledger.usage() == {"toy": (2, 10, 2)}
        assert [pending.call.rank for pending in ledger.pending("toy", after=-1, limit=3)] == [2, 4, 5]
        assert {(row.status, row.reason): row.count for row in ledger.counts()} == {
            (None, ""): len(CALLS) - 3,
            ("invalid", "unparsed"): 1,
            ("not_called", "limit"): 1,
            ("valid", ""): 1,
        }
    assert verify_ledger(path) == []


def test_an_answer_of_any_size_survives(path):
    body = os.urandom(3_000_000)
    fill(path, range(5))
    with Ledger(path) as ledger:
        ledger.intend([(5, 1)]).result()
        ledger.record(completed(5, response=body))
    with read_ledger(path) as ledger:
        assert [record.response for record in ledger.outcomes(bodies=True)][-1] == body


def test_a_dictionary_learned_on_the_way_disturbs_no_row(tmp_path):
    calls = small.make_calls(items=80)
    path = small.plan(tmp_path / "ledger.sqlite", calls)
    with read_ledger(path) as early:
        fill(path, range(640))
        fill(path, range(640, 1280))
        codecs = dict(early.query("SELECT codec, count(*) FROM attempt GROUP BY 1"))
        assert set(codecs) == {2, 3}
        assert sum(codecs.values()) == len(calls)
        assert [record.response for record in early.outcomes(bodies=True)] == [response(rank) for rank in range(1280)]
    assert verify_ledger(path) == []


def test_repeated_calls_are_refused(tmp_path):
    with pytest.raises(InputError, match="share an identity"):
        create_ledger(tmp_path / "x.sqlite", [CALLS[0], CALLS[0]], calls_sha256="", manifest_sha256="")
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_is_not_overwritten(path):
    before = path.read_bytes()
    with pytest.raises(InputError, match="already here"):
        small.plan(path, CALLS)
    assert path.read_bytes() == before


# -- one outcome, append only -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE attempt SET verdict = '2'",
        "DELETE FROM attempt",
        "UPDATE call SET item = 'x'",
        "DELETE FROM call",
        "DELETE FROM intent",
        "UPDATE meta SET value = 'x'",
        "UPDATE dictionary SET bytes = x''",
    ],
)
def test_nothing_is_changed_or_deleted(path, statement):
    fill(path)
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(statement)
    connection.close()


def test_after_its_outcome_a_call_takes_no_row(path):
    fill(path, [0])
    for attempt in (completed(0, 2), Attempt(call=0, number=2, result="timeout")):
        with pytest.raises(sqlite3.IntegrityError, match="terminal outcome"), Ledger(path) as ledger:
            ledger.record(attempt)
    with pytest.raises(sqlite3.IntegrityError, match="terminal outcome"), Ledger(path) as ledger:
        ledger.intend([(0, 2)]).result()
    with read_ledger(path) as ledger:
        assert len(list(ledger.attempts())) == 1


def test_a_refused_row_is_reported_and_what_was_stored_before_stays(path):
    fill(path, [0])
    with pytest.raises(sqlite3.IntegrityError), Ledger(path) as ledger:
        ledger.record(Attempt(call=10_000, number=1, result="timeout"))
    with read_ledger(path) as ledger:
        assert len(list(ledger.outcomes())) == 1


def test_an_intent_without_its_record_is_an_unknown_outcome(path):
    with Ledger(path) as ledger:
        ledger.intend([(0, 1), (1, 1)]).result()
        ledger.record(completed(0))
        ledger.flush()
    with read_ledger(path) as ledger:
        assert ledger.unknown() == [(1, 1, 0)]
        assert [(pending.announced, pending.used) for pending in ledger.pending("toy", after=0, limit=1)] == [(1, 0)]
    assert verify_ledger(path) == []  # a crash is no difference


# -- duplicates (cases 12 and 13) -------------------------------------------------------------------------------------


def test_one_response_for_several_calls_is_reported(path):
    cell = [call for call in CALLS if (call.item, call.prompt, call.order) == ("item000", "p1", "AB")]
    elsewhere = next(call for call in CALLS if call.item == "item001")
    one, two, three, four = (call.rank for call in cell)
    with Ledger(path) as ledger:
        ledger.intend([(rank, 1) for rank in (one, two, three, four, elsewhere.rank)]).result()
        for rank in (one, two):  # a cache: the same response to the byte
            ledger.record(completed(rank, response=response(0, "same"), response_key=7))
        for rank in (three, elsewhere.rank):  # the same id, other bytes, another cell
            ledger.record(completed(rank, response_key=8))
        ledger.record(completed(four))
    with read_ledger(path) as ledger:
        found = ledger.duplicates()
    first, second = sorted([one, two]), sorted([three, elsewhere.rank])
    assert {(item.kind, item.calls, item.inside_cell) for item in found} == {
        ("response_id", tuple(CALLS[rank].id for rank in first), True),
        ("response_id", tuple(CALLS[rank].id for rank in second), False),
        ("body", tuple(CALLS[rank].id for rank in first), True),
    }


# -- export -----------------------------------------------------------------------------------------------------------


def test_export_is_complete_and_the_same_in_both_formats(path, tmp_path):
    import pyarrow.parquet as pq

    with Ledger(path) as ledger:
        ledger.intend([(rank, 1) for rank in range(3)]).result()
        ledger.record(Attempt(call=2, number=1, result="connection", sent=1.0, error="reset"))
        for rank in range(2):
            ledger.record(completed(rank))
    lines, table = tmp_path / "out.jsonl", tmp_path / "out.parquet"
    assert export_ledger(path, lines) == export_ledger(path, table) == 2
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert rows == pq.read_table(table).to_pylist()
    assert rows[0]["call"] == CALLS[0].id
    assert rows[0]["request"].encode() == CALLS[0].request
    assert rows[0]["response"].encode() == response(0)
    assert (rows[0]["status"], rows[0]["verdict"], rows[0]["attempt"]) == ("valid", "1", 1)
    assert export_ledger(path, lines, rows="attempts", bodies=False) == 3
    row = json.loads(lines.read_text().splitlines()[0])
    assert (row["result"], row["status"], "request" in row) == ("connection", None, False)


def test_export_of_an_empty_ledger_and_of_an_unknown_format(path, tmp_path):
    import pyarrow.parquet as pq

    assert export_ledger(path, tmp_path / "out.jsonl") == export_ledger(path, tmp_path / "out.parquet") == 0
    assert "verdict" in pq.read_table(tmp_path / "out.parquet").column_names
    with pytest.raises(InputError, match=r"write \.jsonl or \.parquet"):
        export_ledger(path, tmp_path / "out.xlsx")
    with pytest.raises(StorageError):
        export_ledger(path, tmp_path / "absent" / "out.jsonl")
