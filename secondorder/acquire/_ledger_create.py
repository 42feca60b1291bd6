"""A new ledger, or the calls of another plan in one that nobody has called from: completely or not at all."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path

from secondorder._schema import LEDGER_SCHEMA
from secondorder._version import __version__
from secondorder.acquire import _ledger_codec as codec
from secondorder.acquire._ledger_codec import Codec
from secondorder.acquire._ledger_lock import FileLock
from secondorder.acquire._ledger_schema import TABLES, connect_write, guard
from secondorder.acquire._types import Call
from secondorder.errors import InputError

__all__ = ["create_ledger", "replan_ledger"]

SAMPLE = 2000
"""Calls whose requests the shared dictionary is trained on: the first in send order."""


def create_ledger(path: str | Path, calls: Iterable[Call], *, calls_sha256: str, manifest_sha256: str) -> int:
    """Write a new ledger that holds the planned calls, completely or not at all.

    Parameters
    ----------
    path : path
        File to create.
    calls : iterable of Call
        In send order, ranks from 0; consumed as a stream.
    calls_sha256, manifest_sha256 : str
        Digests that :func:`verify_ledger` holds the ledger to.

    Returns
    -------
    int
        Number of calls stored.

    Raises
    ------
    InputError
        When the file exists, or two calls share an identity or a rank.
    StorageError
        When the disk fails or is full; nothing is left behind.
    """
    path = Path(path)
    with guard(path):
        lock = FileLock(path)
        part = path.with_name(path.name + ".part")
        try:
            if path.exists():
                raise InputError("a ledger is already here", place=str(path), remedy="resume it or give a new --out")
            part.unlink(missing_ok=True)
            count = _fill(part, calls, {"calls_sha256": calls_sha256, "manifest_sha256": manifest_sha256})
            os.replace(part, path)
            _sync_folder(path.parent)
        except sqlite3.IntegrityError as error:
            raise InputError(f"two planned calls share an identity ({error})", place=str(path)) from error
        finally:
            part.unlink(missing_ok=True)
            lock.release()
    return count


def replan_ledger(
    path: str | Path,
    calls: Iterable[Call],
    *,
    calls_sha256: str,
    manifest_sha256: str,
    before: Callable[[], object],
    after: Callable[[], object],
) -> bool:
    """Put the calls of another plan into a ledger whose calls have never been announced, all or none.

    Parameters
    ----------
    path : path
        A ledger made by :func:`create_ledger`.
    calls, calls_sha256, manifest_sha256
        As for :func:`create_ledger`.
    before, after : callable
        Done around the change while no other process may write the ledger; neither when it is left as it was.

    Returns
    -------
    bool
        False when anything was called, or announced: the ledger is as it was.

    Raises
    ------
    LockedError
        When another process writes this ledger.
    StorageError
        When the disk fails or is full; the ledger is as it was.
    """
    path = Path(path)
    with guard(path):
        lock = FileLock(path)
        try:
            with closing(connect_write(path)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                used = "SELECT EXISTS (SELECT 1 FROM intent) OR EXISTS (SELECT 1 FROM attempt)"
                if connection.execute(used).fetchone()[0]:
                    return False
                before()
                for table in ("attempt", "intent", "call", "dictionary", "meta"):
                    connection.execute(f"DROP TABLE {table}")
                _insert(connection, calls, {"calls_sha256": calls_sha256, "manifest_sha256": manifest_sha256})
                connection.execute("COMMIT")  # left before this line, the connection closes and nothing has changed
            after()
        finally:
            lock.release()
    return True


def _fill(part: Path, calls: Iterable[Call], digests: dict[str, str]) -> int:
    connection = sqlite3.connect(part, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = OFF")  # a crash leaves only the .part file, which counts for nothing
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        count = _insert(connection, calls, digests)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")
    finally:
        connection.close()
    with open(part, "rb") as file:
        os.fsync(file.fileno())
    return count


def _insert(connection: sqlite3.Connection, calls: Iterable[Call], digests: dict[str, str]) -> int:
    """Tables and rows of a ledger, inside the transaction that is open; the number of calls."""
    stream = iter(calls)
    head = list(islice(stream, SAMPLE))
    dictionaries = {codec.PLAIN: b"", codec.RESPONSE: codec.RESPONSE_SKELETON}
    dictionaries[codec.REQUEST] = codec.train([call.request for call in head[:: max(1, len(head) // 1000)]])
    pack = Codec(dictionaries)
    for statement in _statements(TABLES):
        connection.execute(statement)
    connection.executemany("INSERT INTO dictionary VALUES (?, ?)", sorted(dictionaries.items()))
    count = 0
    everything = chain(head, stream)
    del head
    while chunk := [_call_row(call, pack) for call in islice(everything, 1000)]:
        connection.executemany("INSERT INTO call VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", chunk)
        count += len(chunk)
    meta = digests | {"schema": LEDGER_SCHEMA, "n_calls": str(count), "written_by": f"secondorder {__version__}"}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", sorted(meta.items()))
    return count


def _statements(script: str) -> Iterator[str]:
    """One after the other: a script run as a whole would end the transaction that it stands in."""
    statement = ""
    for piece in script.split(";"):
        statement += f"{piece};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _call_row(call: Call, pack: Codec) -> tuple[object, ...]:
    request = pack.compress(codec.REQUEST, call.request)
    digest = bytes.fromhex(call.request_sha256)
    labels = (call.judge, call.item, call.prompt, call.order, call.repeat, int(call.warmup), call.seed)
    return (call.rank, call.id, *labels, codec.REQUEST, request, digest)


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
