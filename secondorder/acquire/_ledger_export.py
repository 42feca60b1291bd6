"""A ledger as a table for other tools: one row per call or per attempt, JSON lines or Parquet, in a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from secondorder._atomic import replacing
from secondorder.acquire._ledger_read import LedgerReader, Record, read_ledger
from secondorder.errors import InputError

__all__ = ["export_ledger"]

CHUNK = 2000

COLUMNS = {
    "call": "string",
    "rank": "int64",
    "judge": "string",
    "item": "string",
    "prompt": "string",
    "order": "string",
    "repeat": "int64",
    "warmup": "bool",
    "seed": "int64",
    "attempt": "int64",
    "result": "string",
    "status": "string",
    "reason": "string",
    "verdict": "string",
    "sent": "float64",
    "latency_ms": "float64",
    "http_status": "int64",
    "prompt_tokens": "int64",
    "completion_tokens": "int64",
    "headers": "string",
    "error": "string",
    "request_sha256": "string",
    "response_sha256": "string",
}
"""Columns of an export and their Arrow types; ``request`` and ``response`` follow when bodies are asked for."""


def export_ledger(
    path: str | Path, out: str | Path, *, rows: Literal["outcomes", "attempts"] = "outcomes", bodies: bool = True
) -> int:
    """Write a ledger's rows to ``.jsonl`` or ``.parquet``, complete or not at all.

    Parameters
    ----------
    path : path
        A ledger, also one that is being written.
    out : path
        File to write; its suffix is the format.
    rows : {"outcomes", "attempts"}
        One row per call that has ended, in send order; or one per attempt, in the order stored.
    bodies : bool
        Include request and response as text.

    Returns
    -------
    int
        Number of rows written.

    Raises
    ------
    InputError
        When the suffix is another one, or Parquet is asked for without pyarrow.
    CorruptFileError, StorageError
        When the ledger cannot be read to its end, or the disk fails.
    """
    out = Path(out)
    writers: dict[str, Callable[[Iterator[dict[str, Any]], Path], int]] = {
        ".jsonl": _write_jsonl,
        ".parquet": _write_parquet,
    }
    if out.suffix not in writers:
        raise InputError(f"cannot export to {out.suffix!r}", place=str(out), remedy="write .jsonl or .parquet")
    with read_ledger(path) as ledger, replacing(out) as fresh:
        return writers[out.suffix](_rows(ledger, rows, bodies), fresh)


def _rows(ledger: LedgerReader, rows: str, bodies: bool) -> Iterator[dict[str, Any]]:
    records = ledger.outcomes(bodies=bodies) if rows == "outcomes" else ledger.attempts(bodies=bodies)
    return (_flat(record, bodies) for record in records)


def _flat(record: Record, bodies: bool) -> dict[str, Any]:
    call, outcome = record.call, record.outcome
    values = (
        *(call.id, call.rank, call.judge, call.item, call.prompt, call.order, call.repeat, call.warmup, call.seed),
        *(record.number, record.result),
        *((None, None, None) if outcome is None else (outcome.status, outcome.reason, outcome.verdict)),
        *(record.sent, record.latency_ms, record.http_status, record.prompt_tokens, record.completion_tokens),
        *(msgspec.json.encode(record.headers).decode(), record.error, call.request_sha256, record.response_sha256),
    )
    row = dict(zip(COLUMNS, values, strict=True))
    if bodies:
        row["request"] = call.request.decode(errors="replace")
        row["response"] = None if record.response is None else record.response.decode(errors="replace")
    return row


def _write_jsonl(rows: Iterator[dict[str, Any]], part: Path) -> int:
    count = 0
    with open(part, "wb") as file:
        for count, row in enumerate(rows, 1):  # noqa: B007
            file.write(msgspec.json.encode(row) + b"\n")
    return count


def _write_parquet(rows: Iterator[dict[str, Any]], part: Path) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise InputError(
            "Parquet needs pyarrow", place=str(part.with_suffix("")), remedy="pip install 'secondorder[parquet]'"
        ) from error
    first = next(rows, None)
    names = COLUMNS if first is None else dict.fromkeys(first, "string") | COLUMNS
    schema = pa.schema([(name, pa.type_for_alias(kind)) for name, kind in names.items()])
    count = 0
    with pq.ParquetWriter(part, schema, compression="zstd") as writer:
        chunk = [] if first is None else [first, *islice(rows, CHUNK - 1)]
        while chunk:
            writer.write_table(pa.Table.from_pylist(chunk, schema=schema))
            count += len(chunk)
            chunk = list(islice(rows, CHUNK))
    return count
