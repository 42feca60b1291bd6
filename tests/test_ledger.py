"""The ledger keeps what it was given, admits one outcome per call, and says so when it is not what it states."""

from __future__ import annotations

import json
import os
import runpy
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from secondorder.acquire._ledger import Attempt, Ledger
from secondorder.acquire._ledger_create import create_ledger
from secondorder.acquire._ledger_export import export_ledger
from secondorder.acquire._ledger_read import read_ledger
from secondorder.acquire._ledger_verify import verify_ledger
from secondorder.acquire._types import Outcome
from secondorder.errors import CorruptFileError, InputError, LockedError, SchemaError, StorageError

small = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("small_run.py"))))

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


# -- identity ---------------------------------------------------------------------------------------------------------


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


# -- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["garbage", "empty", "head", "other"])
def test_a_file_that_is_no_ledger_any_more(path, damage):
    fill(path)
    if damage == "other":
        path.unlink()
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE t (x)")
        connection.commit()
        connection.close()
    else:
        data = path.read_bytes()
        path.write_bytes({"garbage": b"\xff" * 5000, "empty": b"", "head": b"x" * 60 + data[60:]}[damage])
    for use in (read_ledger, Ledger, verify_ledger):
        with pytest.raises(CorruptFileError, match=r"ledger\.sqlite: ") as corrupt:
            use(path)
        assert corrupt.value.exit_code == 3
    assert not path.with_name("ledger.sqlite.lock").exists()


def test_a_page_overwritten_inside_is_found_and_the_rest_is_not_lost_silently(path):
    fill(path)
    data = bytearray(path.read_bytes())
    page = len(data) // 4096 - 1
    data[page * 4096 : page * 4096 + 4096] = b"\xa5" * 4096
    path.write_bytes(bytes(data))
    assert verify_ledger(path) != []


def test_no_ledger_and_a_newer_one(tmp_path, path):
    with pytest.raises(InputError, match="no ledger here"):
        read_ledger(tmp_path / "absent.sqlite")
    with pytest.raises(InputError, match="no ledger here"):
        Ledger(tmp_path / "absent.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("DROP TRIGGER meta_no_update")
    connection.execute("UPDATE meta SET value = 'secondorder.ledger/9' WHERE key = 'schema'")
    connection.commit()
    connection.close()
    for use in (read_ledger, Ledger):
        with pytest.raises(SchemaError, match="newer"):
            use(path)


FULL = """
    import resource, sys
    from pathlib import Path
    from secondorder.acquire._ledger import Attempt, Ledger
    from secondorder.acquire._types import Outcome
    from secondorder.errors import SecondOrderError
    import os
    path = Path(sys.argv[1])
    limit = path.stat().st_size + int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    stored = 0
    try:
        with Ledger(path) as ledger:
            for rank in range(32):
                ledger.intend([(rank, 1)]).result()
                ledger.record(Attempt(call=rank, number=1, result="completed", http_status=200,
                                      outcome=Outcome("valid", verdict="1"), response=os.urandom(20_000)))
                ledger.flush()
                stored += 1
    except SecondOrderError as error:
        print(stored, error.exit_code, type(error).__name__, error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no file-size limit there")
def test_a_full_disk_is_one_line_and_nothing_stored_is_lost(path):
    script = [sys.executable, "-c", textwrap.dedent(FULL), str(path), "200000"]
    done = subprocess.run(script, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    stored, code, kind, line = done.stdout.split(" ", 3)
    assert (code, kind) == ("3", "StorageError")
    assert "everything stored is kept" in line
    assert 0 < int(stored) < 32
    with read_ledger(path) as ledger:
        assert len(list(ledger.outcomes(bodies=True))) == int(stored)
    assert verify_ledger(path) == []
    fill(path, range(int(stored) + 1, 32))  # with room again it goes on


@pytest.mark.skipif(sys.platform == "win32", reason="no file-size limit there")
def test_a_full_disk_at_planning_leaves_nothing(tmp_path):
    script = """
        import resource, runpy, sys
        from pathlib import Path
        from types import SimpleNamespace
        small = SimpleNamespace(**runpy.run_path(sys.argv[1]))
        resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
        try:
            small.plan(Path(sys.argv[2]), small.make_calls(items=50))
        except small.SecondOrderError as error:
            print(error.exit_code, error)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(Path(__file__).with_name("small_run.py"))]
    done = subprocess.run(
        [*command, str(tmp_path / "ledger.sqlite")], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.startswith("3 "), done.stderr
    assert list(tmp_path.iterdir()) == []


# -- one writer -------------------------------------------------------------------------------------------------------


HOLD = """
    import sys, time
    from secondorder.acquire._ledger import Ledger
    with Ledger(sys.argv[1]):
        print("held", flush=True)
        time.sleep(60)
"""


def test_a_second_process_stops_at_once_and_a_killed_holder_does_not_block(path):
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLD), str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LockedError, match=rf"ledger\.sqlite: process {holder.pid} is writing") as locked:
            Ledger(path)
        assert locked.value.exit_code == 2
        with read_ledger(path) as ledger:  # reading is free
            assert ledger.n_calls == len(CALLS)
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    assert path.with_name("ledger.sqlite.lock").exists()  # it could not clean up
    fill(path)
    assert not path.with_name("ledger.sqlite.lock").exists()


def test_the_same_process_cannot_write_twice_either(path):
    with Ledger(path), pytest.raises(LockedError, match=str(os.getpid())):
        Ledger(path)
    fill(path)


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
