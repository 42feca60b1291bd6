"""The ledger's reading half: streams of calls, outcomes and attempts, counts, duplicates, and its digest.

Nothing here loads a ledger into memory, and nothing blocks its writer.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import msgspec
import zstandard

from secondorder._canon import canonical_json, sha256_lines
from secondorder.acquire._ledger_codec import Codec
from secondorder.acquire._ledger_schema import connect_read, guard, read_meta
from secondorder.acquire._types import Call, Outcome, Status
from secondorder.errors import CorruptFileError

__all__ = ["Duplicate", "LedgerReader", "OutcomeCount", "PendingCall", "Record", "read_ledger"]


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of one planned call; terminal when it has an outcome.

    Attributes
    ----------
    call : Call
        The planned call; its `request` is empty unless bodies were asked for.
    number : int
        Attempt number from 1, so at a terminal record the number of attempts; 0 when the call was never sent.
    result : str
        ``"completed"``, a reason for no completion, ``"not_called"`` or ``"reparsed"``.
    sent : float or None
        Unix time of sending.
    latency_ms : float or None
        From sending to the last byte.
    response : bytes or None
        Body of the response as received; None without one, and unless it was asked for.
    """

    call: Call
    number: int
    result: str
    outcome: Outcome | None
    sent: float | None
    latency_ms: float | None
    http_status: int | None
    headers: dict[str, str]
    response_key: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    response: bytes | None
    response_sha256: str
    error: str


class PendingCall(msgspec.Struct, frozen=True):
    """A planned call without terminal outcome.

    Attributes
    ----------
    announced : int
        Highest attempt number announced so far.
    used : int
        Attempts that count against the law of retries.
    """

    call: Call
    announced: int
    used: int


class OutcomeCount(msgspec.Struct, frozen=True):
    """How many calls of one judge (warm-ups apart) ended in one way; status None: not ended yet."""

    judge: str
    status: Status | None
    reason: str
    count: int


class Duplicate(msgspec.Struct, frozen=True):
    """Calls of one judge whose completed responses are one response.

    Attributes
    ----------
    kind : str
        ``"response_id"`` (the server gave the same id) or ``"body"`` (identical to the byte).
    calls : tuple of str
        Identities of the calls, in send order.
    inside_cell : bool
        Whether two of them belong to the same cell, where the estimators need independent calls.
    """

    kind: str
    judge: str
    calls: tuple[str, ...]
    inside_cell: bool


def read_ledger(path: str | Path) -> LedgerReader:
    """Open a ledger for reading, also while another process writes it.

    Raises
    ------
    InputError
        When there is no file.
    CorruptFileError, SchemaError, StorageError
        When it is no ledger, a newer one, or cannot be read.
    """
    return LedgerReader(path)


class LedgerReader:
    """Read-only view of a ledger; a context manager. Made by :func:`read_ledger`."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with guard(self.path):
            self._connection = connect_read(self.path)
            try:
                self.meta = read_meta(self._connection, self.path)
                self._codec = Codec.load(self._connection)
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @property
    def n_calls(self) -> int:
        """Number of planned calls, warm-ups included."""
        return int(self.meta["n_calls"])

    def calls(self) -> Iterator[Call]:
        """Planned calls with the bytes of their requests, in send order."""
        for row in self.query(f"SELECT {_CALL} FROM call c ORDER BY c.rank"):
            yield self._call(row, request=True)

    def outcomes(self, *, bodies: bool | Literal["response"] = False) -> Iterator[Record]:
        """Terminal records in call order: one per planned call that has ended.

        Parameters
        ----------
        bodies : bool or "response"
            Also decompress request and response, or the response alone.
        """
        yield from self._records(
            "FROM call c JOIN attempt a ON a.call = c.rank AND a.status IS NOT NULL ORDER BY c.rank", bodies
        )

    def ended(self, judge: str, status: Status, reason: str, *, limit: int) -> list[Record]:
        """First calls of a judge (warm-ups apart) that ended in one way, with their bodies, in call order."""
        source = (
            "FROM call c JOIN attempt a ON a.call = c.rank AND a.status = ? AND a.reason = ? "
            "WHERE c.judge = ? AND c.warmup = 0 ORDER BY c.rank LIMIT ?"
        )
        return list(self._records(source, True, (status, reason, judge, limit)))

    def attempts(self, *, bodies: bool = False) -> Iterator[Record]:
        """Every stored attempt in the order stored, with the call it belongs to."""
        yield from self._records("FROM attempt a JOIN call c ON c.rank = a.call ORDER BY a.seq", bodies)

    def pending(self, judge: str, *, after: int, limit: int) -> list[PendingCall]:
        """Next planned calls of a judge that have no terminal outcome, in send order, from rank ``after + 1``."""
        rows = self.query(
            f"SELECT {_CALL}, (SELECT max(i.number) FROM intent i WHERE i.call = c.rank), {_USED} FROM call c "
            "WHERE c.rank > ? AND c.judge = ? AND NOT EXISTS "
            "(SELECT 1 FROM attempt a WHERE a.call = c.rank AND a.status IS NOT NULL) ORDER BY c.rank LIMIT ?",
            (after, judge, limit),
        )
        return [PendingCall(self._call(row, request=True), row[-2] or 0, row[-1]) for row in rows]

    def unknown(self) -> list[tuple[int, int, int]]:
        """Announced attempts of open calls that left no record, because their process ended: (rank, number, used)."""
        rows = self.query(
            f"SELECT c.rank, i.number, {_USED} FROM intent i JOIN call c ON c.rank = i.call WHERE NOT EXISTS "
            "(SELECT 1 FROM attempt a WHERE a.call = i.call AND a.status IS NOT NULL) AND NOT EXISTS "
            "(SELECT 1 FROM attempt a WHERE a.call = i.call AND a.number = i.number AND a.status IS NULL)"
        )
        return [(rank, number, used) for rank, number, used in rows]

    def unparsed(self) -> list[Record]:
        """Completed attempts whose call has no outcome yet: the answer is here, its parser failed."""
        return list(
            self._records(
                "FROM attempt a JOIN call c ON c.rank = a.call WHERE a.status IS NULL AND a.class = 'completed' "
                "AND NOT EXISTS (SELECT 1 FROM attempt t WHERE t.call = a.call AND t.status IS NOT NULL)",
                True,
            )
        )

    def counts(self) -> list[OutcomeCount]:
        """Calls by judge, status and reason, warm-ups apart; calls that have not ended have status None."""
        rows = self.query(
            "SELECT c.judge, a.status, coalesce(a.reason, ''), count(*) FROM call c LEFT JOIN attempt a "
            "ON a.call = c.rank AND a.status IS NOT NULL WHERE c.warmup = 0 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
        )
        return [OutcomeCount(*row) for row in rows]

    def attempt_counts(self) -> dict[tuple[str, str], int]:
        """Attempts that were announced and ended, by (judge, result), warm-ups included."""
        rows = self.query(
            "SELECT c.judge, a.class, count(*) FROM attempt a JOIN call c ON c.rank = a.call "
            "WHERE a.class NOT IN ('not_called', 'reparsed', 'unsent') GROUP BY 1, 2 ORDER BY 1, 2"
        )
        return {(judge, result): count for judge, result, count in rows}

    def judges(self) -> dict[str, int]:
        """Judges that the planned calls name, and how many of their calls are warm-ups."""
        rows = self.query("SELECT judge, sum(warmup) FROM call GROUP BY 1 ORDER BY 1")
        return {str(judge): int(warmups) for judge, warmups in rows}

    def complete(self) -> bool:
        """Whether every planned call, warm-ups included, has its terminal outcome."""
        ((ended,),) = self.query("SELECT count(*) FROM attempt WHERE status IS NOT NULL")
        return bool(ended == self.n_calls)

    def usage(self) -> dict[str, tuple[int, int, int]]:
        """Per judge: calls sent at least once, prompt tokens and completion tokens of all answers."""
        rows = self.query(
            "SELECT c.judge, count(DISTINCT a.call), coalesce(sum(a.prompt_tokens), 0), "
            "coalesce(sum(a.completion_tokens), 0) FROM attempt a JOIN call c ON c.rank = a.call "
            "WHERE a.class NOT IN ('not_called', 'reparsed', 'unsent') GROUP BY 1"
        )
        return {judge: (sent, prompt, completion) for judge, sent, prompt, completion in rows}

    def duplicates(self) -> list[Duplicate]:
        """Responses that stand for several calls: an id that the server gave twice, or bodies identical to the byte."""
        return [*self._duplicates("response_id", "response_key"), *self._duplicates("body", "response_sha256")]

    def _duplicates(self, kind: str, column: str) -> Iterator[Duplicate]:
        answers = f"a.class = 'completed' AND a.http_status < 300 AND a.{column} IS NOT NULL"
        joined = "attempt a JOIN call c ON c.rank = a.call"
        rows = self.query(
            f'SELECT c.judge, a.{column}, c.id, c.item, c.prompt, c."order" FROM {joined} WHERE {answers} '
            f"AND (c.judge, a.{column}) IN "
            f"(SELECT c.judge, a.{column} FROM {joined} WHERE {answers} GROUP BY 1, 2 HAVING count(*) > 1) "
            "ORDER BY 1, 2, c.rank"
        )
        for (judge, _), group in groupby(rows, key=lambda row: row[:2]):
            calls = list(group)
            yield Duplicate(kind, judge, tuple(row[2] for row in calls), len({row[3:] for row in calls}) < len(calls))

    def digest(self) -> str:
        """Identity of the ledger: SHA-256 of its terminal outcomes in call order, not of file bytes."""
        rows = self.query(
            "SELECT c.id, a.status, a.reason, a.verdict FROM call c JOIN attempt a ON a.call = c.rank "
            "AND a.status IS NOT NULL ORDER BY c.rank"
        )
        return sha256_lines(canonical_json(list(row)) for row in rows)

    def query(self, statement: str, values: tuple[object, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows of a read-only SQL statement, as a stream."""
        with guard(self.path):
            for row in self._connection.execute(statement, values):  # noqa: UP028 (a stream may outlive the reader)
                yield row

    # -- rows to structures -------------------------------------------------------------------------------------------

    def _records(
        self, source: str, bodies: bool | Literal["response"], values: tuple[object, ...] = ()
    ) -> Iterator[Record]:
        request = bodies is True
        call = _CALL if request else _CALL.replace("c.codec, c.request,", "NULL, NULL,")
        response = "a.codec, a.response" if bodies else "NULL, NULL"
        for row in self.query(f"SELECT {call}, {_ATTEMPT}, {response} {source}", values):
            number, result, status, reason, verdict, sent, latency, http, headers, *rest = row[_CALL_WIDTH:]
            key, prompt_tokens, completion_tokens, response_sha256, error, codec, blob = rest
            yield Record(
                call=self._call(row, request=request),
                number=number,
                result=result,
                outcome=None if status is None else Outcome(status, reason, verdict),
                sent=sent,
                latency_ms=latency,
                http_status=http,
                headers=msgspec.json.decode(headers) if headers else {},
                response_key=key,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                response=None if blob is None else self._unpack(codec, blob, row[0]),
                response_sha256="" if response_sha256 is None else response_sha256.hex(),
                error=error or "",
            )

    def _call(self, row: tuple[Any, ...], *, request: bool) -> Call:
        rank, identity, judge, item, prompt, order, repeat, warmup, seed, codec, blob, sha256 = row[:_CALL_WIDTH]
        body = self._unpack(codec, blob, rank) if request else b""
        cell = (judge, item, prompt, order, repeat)
        return Call(identity, rank, *cell, bool(warmup), seed, body, sha256.hex())

    def _unpack(self, codec: int, blob: bytes, rank: int) -> bytes:
        if codec not in self._codec:
            self._codec = Codec.load(self._connection)  # learned by the writer since we opened the file
        try:
            return self._codec.decompress(codec, blob)
        except (zstandard.ZstdError, KeyError) as error:
            raise CorruptFileError(
                f"stored bytes of call {rank} do not unpack ({error})",
                place=str(self.path),
                remedy="'secondorder ledger verify' lists what else is wrong; restore a copy",
            ) from error


_CALL = (
    'c.rank, c.id, c.judge, c.item, c.prompt, c."order", c.repeat, c.warmup, c.seed, '
    "c.codec, c.request, c.request_sha256"
)
_CALL_WIDTH = 12
# A refusal of the whole judge (401 …) and an attempt that was announced but never sent are not held against the call.
_USED = (
    "(SELECT count(*) FROM attempt u "
    "WHERE u.call = c.rank AND u.status IS NULL AND u.class NOT IN ('refused', 'unsent'))"
)
_ATTEMPT = (
    "a.number, a.class, a.status, a.reason, a.verdict, a.sent, a.latency_ms, a.http_status, a.headers, a.response_key, "
    "a.prompt_tokens, a.completion_tokens, a.response_sha256, a.error"
)
