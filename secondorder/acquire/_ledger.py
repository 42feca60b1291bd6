"""The ledger's writing half: what happened, appended by one process, on disk before anything builds on it.

A call is stored when it is planned, an *intent* before each send, an *attempt* after it. Exactly one attempt of a call
is terminal: it carries the outcome. An intent without its attempt is what a crash leaves behind: unknown outcome, which
is no completion, never ⊥.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from secondorder._canon import sha256_hex
from secondorder.acquire import _ledger_codec as codec
from secondorder.acquire._ledger_codec import Codec
from secondorder.acquire._ledger_lock import FileLock
from secondorder.acquire._ledger_schema import connect_read, connect_write, guard, read_meta
from secondorder.acquire._types import Outcome

__all__ = ["Attempt", "Ledger"]

BATCH_ROWS = 64
BATCH_SECONDS = 0.2
LEARN_AFTER = 500


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one attempt at a call; with `outcome` it is the call's last.

    Attributes
    ----------
    call : int
        Rank of the call.
    number : int
        1 for the first attempt; 0 when the call was never sent.
    result : str
        ``"completed"``, a reason for no completion, ``"refused"`` (this stopped the judge), ``"unsent"`` (announced,
        then the run stopped), ``"not_called"``, or ``"reparsed"`` (completed before, parsed later).
    outcome : Outcome or None
        Terminal outcome, when this row is terminal.
    sent : float or None
        Unix time of sending.
    latency_ms : float or None
        From sending to the last byte.
    response_key : int or None
        64-bit hash of the response id that the server gave.
    headers : dict
        Response headers on the allow-list.
    error : str
        One line; never holds a key.
    """

    call: int
    number: int
    result: str
    outcome: Outcome | None = None
    sent: float | None = None
    latency_ms: float | None = None
    http_status: int | None = None
    headers: dict[str, str] = {}
    response: bytes | None = None
    response_key: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    error: str = ""


class Ledger:
    """The one writer of a ledger: rows go through its thread, which commits them in groups.

    Use it as a context manager; leaving it stores what is still under way.

    Parameters
    ----------
    path : path
        A ledger made by :func:`secondorder.acquire._ledger_create.create_ledger`.

    Raises
    ------
    LockedError
        When another process writes this ledger.
    InputError, CorruptFileError, SchemaError, StorageError
        When there is no ledger, or it cannot be read or written.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with guard(self.path):
            connect_read(self.path).close()
            with ExitStack() as undo:
                self._lock = FileLock(self.path)
                undo.callback(self._lock.release)
                self._connection = undo.enter_context(closing(connect_write(self.path)))
                self.meta = read_meta(self._connection, self.path)
                self._codec = Codec.load(self._connection)
                undo.pop_all()
        self._learn: list[bytes] | None = [] if self._codec.response < codec.LEARNED else None
        self._failure: BaseException | None = None
        # The writer is woken by 64 rows, by a barrier or after 200 ms, not by every row: each waking costs the sending
        # thread the interpreter for a while.
        self._entries: deque[Attempt | _Barrier | None] = deque()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._write, name="ledger-writer", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(raising=error is None)

    def intend(self, attempts: Sequence[tuple[int, int]]) -> Future[None]:
        """Announce attempts (rank, number); the future is done when they are on disk, with all rows before them.

        Nothing may be sent before that.
        """
        return self._wait_for(_Barrier(time.time(), Future(), attempts=tuple(attempts)))

    def _wait_for(self, barrier: _Barrier) -> Future[None]:
        self._entries.append(barrier)
        self._wake.set()
        return barrier.done

    def record(self, attempt: Attempt) -> None:
        """Append what came of an attempt; on disk after at most 64 rows or 200 ms.

        Raises
        ------
        StorageError
            When an earlier row could not be stored.
        """
        if self._failure is not None:
            raise self._failure
        self._entries.append(attempt)
        if len(self._entries) >= BATCH_ROWS:
            self._wake.set()

    def flush(self) -> None:
        """Return when everything recorded so far is on disk.

        Raises
        ------
        StorageError
            When it could not be stored.
        """
        self.intend(()).result()

    def close(self, *, raising: bool = True) -> None:
        """Store what is under way, close the file, give the lock back.

        Raises
        ------
        StorageError
            When something recorded could not be stored, and `raising`.
        """
        if self._thread.is_alive():
            self._entries.append(None)
            self._wake.set()
            self._thread.join()
        try:
            with guard(self.path):
                self._connection.close()
        finally:
            self._lock.release()
        if raising and self._failure is not None:
            raise self._failure

    def set_meta(self, key: str, value: str) -> None:
        """Add a key to the ledger's meta table, once; a second value for the same key is refused by the table."""
        self._wait_for(_Barrier(time.time(), Future(), meta=((key, value),))).result()
        self.meta[key] = value

    # -- the writer's thread ------------------------------------------------------------------------------------------

    def _write(self) -> None:
        stop = False
        while not stop:
            self._wake.wait(BATCH_SECONDS)
            self._wake.clear()
            attempts: list[Attempt] = []
            barriers: list[_Barrier] = []
            for _ in range(len(self._entries)):
                entry = self._entries.popleft()
                if isinstance(entry, Attempt):
                    attempts.append(entry)
                elif entry is None:
                    stop = True
                else:
                    barriers.append(entry)
            self._commit(attempts, barriers)

    def _commit(self, attempts: list[Attempt], barriers: list[_Barrier]) -> None:
        if self._failure is None:
            try:
                with guard(self.path):
                    self._store(attempts, barriers)
            except BaseException as error:
                self._failure = error
        for barrier in barriers:
            if not barrier.done.set_running_or_notify_cancel():
                continue
            if self._failure is None:
                barrier.done.set_result(None)
            else:
                barrier.done.set_exception(self._failure)

    def _store(self, attempts: list[Attempt], barriers: list[_Barrier]) -> None:
        intents = [(call, number, barrier.at) for barrier in barriers for call, number in barrier.attempts]
        meta = [pair for barrier in barriers for pair in barrier.meta]
        if not (attempts or intents or meta):
            return
        rows = [self._attempt_row(attempt) for attempt in attempts]
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.executemany(_INSERT_ATTEMPT, rows)
            self._connection.executemany("INSERT INTO intent VALUES (?, ?, ?)", intents)
            self._connection.executemany("INSERT INTO meta VALUES (?, ?)", meta)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        if self._learn is not None and len(self._learn) >= LEARN_AFTER:
            self._learn_dictionary(self._learn)

    def _attempt_row(self, attempt: Attempt) -> tuple[object, ...]:
        outcome, response = attempt.outcome, attempt.response
        if response is not None and self._learn is not None and attempt.result == "completed":
            self._learn.append(response)
        packed: tuple[object, ...] = (None, None, None)
        if response is not None:
            number = self._codec.response
            packed = (number, self._codec.compress(number, response), bytes.fromhex(sha256_hex(response)))
        return (
            attempt.call,
            attempt.number,
            attempt.result,
            *((None, None, None) if outcome is None else (outcome.status, outcome.reason, outcome.verdict)),
            attempt.sent,
            attempt.latency_ms,
            attempt.http_status,
            msgspec.json.encode(attempt.headers).decode() if attempt.headers else None,
            attempt.response_key,
            attempt.prompt_tokens,
            attempt.completion_tokens,
            *packed,
            attempt.error or None,
        )

    def _learn_dictionary(self, samples: list[bytes]) -> None:
        """Train on the first real responses of a ledger; rows from here on use what was learned."""
        self._learn = None
        data = codec.train(samples)
        self._connection.execute("INSERT INTO dictionary VALUES (?, ?)", (codec.LEARNED, data))
        self._codec.add(codec.LEARNED, data)


class _Barrier(msgspec.Struct, frozen=True):
    """Rows to store at once, and the future that waits for them and all before them."""

    at: float
    done: Future[None]
    attempts: tuple[tuple[int, int], ...] = ()
    meta: tuple[tuple[str, str], ...] = ()


_INSERT_ATTEMPT = (
    "INSERT INTO attempt (call, number, class, status, reason, verdict, sent, latency_ms, http_status, headers, "
    "response_key, prompt_tokens, completion_tokens, codec, response, response_sha256, error) "
    f"VALUES ({', '.join('?' * 17)})"
)
