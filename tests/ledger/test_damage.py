"""Damage, full disks and second writers: said in one line, and what is stored is kept."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from secondorder.acquire._ledger import Ledger
from secondorder.acquire._ledger_read import read_ledger
from secondorder.acquire._ledger_verify import verify_ledger
from secondorder.errors import CorruptFileError, InputError, LockedError, SchemaError

from .. import small_run as small
from .conftest import CALLS, fill

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
    command = [sys.executable, "-c", textwrap.dedent(script), small.__file__]
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
