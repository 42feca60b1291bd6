"""Tables of the ledger, its connections, and what SQLite's errors mean to a user."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from secondorder._schema import LEDGER_SCHEMA, STATUS, check_schema
from secondorder.errors import CorruptFileError, InputError, SecondOrderError, StorageError

__all__ = ["TABLES", "connect_read", "connect_write", "guard", "read_meta"]

APPLICATION_ID = 0x32ED_1CA1

_APPEND_ONLY = "".join(
    f"""
CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;"""
    for table in ("meta", "dictionary", "call", "intent", "attempt")
    for verb in ("update", "delete")
)

_CLOSED = "".join(
    f"""
CREATE TRIGGER {table}_closed BEFORE INSERT ON {table}
WHEN EXISTS (SELECT 1 FROM attempt a WHERE a.call = NEW.call AND a.status IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the call has its terminal outcome'); END;"""
    for table in ("intent", "attempt")
)

_STATUSES = ", ".join(f"'{status}'" for status in STATUS)

TABLES = f"""
PRAGMA application_id = {APPLICATION_ID};
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE dictionary (codec INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
CREATE TABLE call (
    rank INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, judge TEXT NOT NULL, item TEXT NOT NULL, prompt TEXT NOT NULL,
    "order" TEXT NOT NULL, repeat INTEGER NOT NULL, warmup INTEGER NOT NULL, seed INTEGER,
    codec INTEGER NOT NULL, request BLOB NOT NULL, request_sha256 BLOB NOT NULL
);
CREATE TABLE intent (
    call INTEGER NOT NULL REFERENCES call(rank), number INTEGER NOT NULL, at REAL NOT NULL, PRIMARY KEY (call, number)
) WITHOUT ROWID;
CREATE TABLE attempt (
    seq INTEGER PRIMARY KEY, call INTEGER NOT NULL REFERENCES call(rank), number INTEGER NOT NULL, class TEXT NOT NULL,
    status TEXT CHECK (status IN ({_STATUSES})), reason TEXT, verdict TEXT,
    sent REAL, latency_ms REAL, http_status INTEGER, headers TEXT, response_key INTEGER,
    prompt_tokens INTEGER, completion_tokens INTEGER,
    codec INTEGER, response BLOB, response_sha256 BLOB, error TEXT,
    CHECK ((status IS 'valid') = (verdict IS NOT NULL)), CHECK ((status IS NULL) = (reason IS NULL))
);
CREATE UNIQUE INDEX one_outcome ON attempt (call) WHERE status IS NOT NULL;
CREATE UNIQUE INDEX open_attempt ON attempt (call, number) WHERE status IS NULL;
{_APPEND_ONLY}{_CLOSED}
"""


@contextmanager
def guard(path: Path) -> Iterator[None]:
    """Turn SQLite's and the system's errors inside the block into one line that says how to go on.

    Raises
    ------
    StorageError
        Disk full or failing, or the file cannot be opened or written.
    CorruptFileError
        The file does not read as a ledger any more.
    """
    try:
        yield
    except (SecondOrderError, sqlite3.IntegrityError, sqlite3.ProgrammingError):
        raise  # ours already, or a fault of this program, which needs its traceback
    except sqlite3.DatabaseError as error:
        raise _explain(error, path) from error
    except OSError as error:
        raise StorageError(error.strerror or str(error), place=str(path), remedy=_GO_ON) from error


_GO_ON = "everything stored is kept: make room or mend the disk, then give the same command again"


def _explain(error: sqlite3.DatabaseError, path: Path) -> SecondOrderError:
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if primary in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        what = "the disk is full" if primary == sqlite3.SQLITE_FULL else "the disk failed or is full"
        return StorageError(f"{what} ({error})", place=str(path), remedy=_GO_ON)
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StorageError(
            "another program keeps the file locked", place=str(path), remedy="close it, then give the command again"
        )
    if primary in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StorageError(f"cannot be opened or written ({error})", place=str(path), remedy="check its permissions")
    return CorruptFileError(
        f"does not read as a ledger any more ({error})",
        place=str(path),
        remedy="keep the file, restore a copy, or give a new --out; 'secondorder ledger export' saves what still reads",
    )


def connect_write(path: Path) -> sqlite3.Connection:
    """Connection of the one writer: WAL, every commit on disk before it returns."""
    pragmas = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")
    return _connect(path.resolve().as_uri() + "?mode=rw", *(f"PRAGMA {pragma}" for pragma in pragmas))


def connect_read(path: Path) -> sqlite3.Connection:
    """Connection that never writes; works while a writer is at it, and on a read-only disk.

    Raises
    ------
    InputError
        When there is no such file.
    """
    if not path.is_file():
        raise InputError("no ledger here", place=str(path), remedy="plan the audit first")
    uri = path.resolve().as_uri()
    probe = "SELECT 1 FROM sqlite_master"
    try:
        return _connect(f"{uri}?mode=ro", probe)
    except sqlite3.OperationalError:
        # WAL needs a writable folder for its index, unless the file is declared immutable (an archive).
        if path.with_name(path.name + "-wal").exists():
            raise
        return _connect(f"{uri}?mode=ro&immutable=1", probe)


def _connect(uri: str, *first: str) -> sqlite3.Connection:
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30.0, check_same_thread=False)
    try:
        for statement in first:
            connection.execute(statement).fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def read_meta(connection: sqlite3.Connection, path: Path) -> dict[str, str]:
    """Key and value pairs of a ledger whose schema this version reads.

    Raises
    ------
    CorruptFileError
        When the file is an SQLite file but not a ledger.
    SchemaError
        When it was written by a newer version.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        raise CorruptFileError("is not a ledger", place=str(path), remedy="give the ledger.sqlite of a run")
    meta = dict(connection.execute("SELECT key, value FROM meta"))
    check_schema(meta.get("schema"), LEDGER_SCHEMA, place=str(path))
    return meta
