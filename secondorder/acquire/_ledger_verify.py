"""Hold a ledger to everything it states: hashes derived again, the design covered, one outcome per call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from secondorder._canon import sha256_hex, sha256_lines
from secondorder._schema import INVALID_REASONS, MISSING_REASONS, NOT_CALLED_REASONS
from secondorder.acquire._ledger_read import LedgerReader, Record, read_ledger
from secondorder.acquire._seeds import call_id
from secondorder.acquire._types import Outcome
from secondorder.errors import CorruptFileError

__all__ = ["Difference", "verify_ledger"]

REASONS_OF = {
    "valid": ("",),
    "invalid": INVALID_REASONS,
    "no_completion": MISSING_REASONS,
    "not_called": NOT_CALLED_REASONS,
}


class Difference(msgspec.Struct, frozen=True):
    """One place where a ledger is not what it states."""

    place: str
    stated: str
    found: str

    def __str__(self) -> str:
        return f"{self.place}: stated {self.stated}, found {self.found}"


def verify_ledger(
    path: str | Path,
    *,
    calls_sha256: str | None = None,
    manifest_sha256: str | None = None,
    again: Callable[[Record], Outcome | None] | None = None,
) -> list[Difference]:
    """Derive every hash of a ledger again and check its rules.

    Parameters
    ----------
    path : path
        A ledger.
    calls_sha256, manifest_sha256 : str, optional
        What the manifest beside it states.
    again : callable, optional
        Derives the outcome of a completed call again from its stored bytes (None: cannot say); a verdict that its own
        answer does not bear out is a difference.

    Returns
    -------
    list of Difference
        Empty when the ledger is what it states.

    Raises
    ------
    InputError, CorruptFileError, SchemaError
        When it cannot be opened as a ledger at all.
    """
    with read_ledger(path) as ledger:
        found: list[Difference] = []
        for check in (_pages, _calls, partial(_responses, again=again), _rules, _seal):
            try:
                found += check(ledger)
            except CorruptFileError as error:
                found.append(Difference("rows", "readable", error.problem))
        for key, stated in (("calls_sha256", calls_sha256), ("manifest_sha256", manifest_sha256)):
            if stated is not None and ledger.meta.get(key) != stated:
                found.append(Difference(f"manifest {key}", stated, str(ledger.meta.get(key))))
        return found


def _pages(ledger: LedgerReader) -> Iterator[Difference]:
    for (line,) in ledger.query("PRAGMA integrity_check(20)"):
        if line != "ok":
            yield Difference("pages", "ok", line)


def _calls(ledger: LedgerReader) -> Iterator[Difference]:
    wrong: list[Difference] = []
    count = 0

    def lines() -> Iterator[bytes]:
        nonlocal count
        for call in ledger.calls():
            if call.rank != count:
                wrong.append(Difference(f"call {call.id}", f"rank {count}", f"rank {call.rank}"))
            count += 1
            identity = call_id(call.judge, call.item, call.prompt, call.order, call.repeat)
            if identity != call.id:
                wrong.append(Difference(f"call {call.id} identity", call.id, identity))
            digest = sha256_hex(call.request)
            if digest != call.request_sha256:
                wrong.append(Difference(f"call {call.id} request", call.request_sha256, digest))
            yield f"{call.id}\t{digest}".encode()

    digest = sha256_lines(lines())
    yield from wrong
    if count != ledger.n_calls:
        yield Difference("number of calls", str(ledger.n_calls), str(count))
    if digest != ledger.meta["calls_sha256"]:
        yield Difference("calls_sha256", ledger.meta["calls_sha256"], digest)


def _responses(ledger: LedgerReader, again: Callable[[Record], Outcome | None] | None) -> Iterator[Difference]:
    for record in ledger.attempts(bodies=True):
        place = f"call {record.call.id} attempt {record.number}"
        digest = "" if record.response is None else sha256_hex(record.response)
        if digest != record.response_sha256:
            yield Difference(f"{place} response", record.response_sha256, digest)
        if record.outcome is not None and record.outcome.reason not in REASONS_OF[record.outcome.status]:
            words = " | ".join(REASONS_OF[record.outcome.status])
            yield Difference(f"{place} reason of {record.outcome.status}", words, record.outcome.reason)
        derived = None if again is None or record.outcome is None else again(record)
        if derived is not None and derived != record.outcome:
            yield Difference(f"{place} outcome", str(record.outcome), str(derived))


def _rules(ledger: LedgerReader) -> Iterator[Difference]:
    for statement, stated in _RULES:
        for identity, value in ledger.query(statement):
            yield Difference(f"call {identity}", stated, str(value))


_RULES = (
    (
        "SELECT call, count(*) FROM attempt WHERE status IS NOT NULL GROUP BY call HAVING count(*) > 1",
        "one terminal outcome",
    ),
    (
        "SELECT call, group_concat(number) FROM intent GROUP BY call "
        "HAVING min(number) <> 1 OR max(number) <> count(*)",
        "attempts numbered 1, 2, …",
    ),
    (
        "SELECT a.call, a.number FROM attempt a WHERE a.number > 0 AND NOT EXISTS "
        "(SELECT 1 FROM intent i WHERE i.call = a.call AND i.number = a.number)",
        "an intent before every attempt",
    ),
    (
        "SELECT call, count(*) FROM attempt WHERE class = 'completed' GROUP BY call HAVING count(*) > 1",
        "no attempt after a completion",
    ),
    (
        "SELECT a.call, a.number FROM attempt a WHERE NOT EXISTS (SELECT 1 FROM call c WHERE c.rank = a.call)",
        "attempts of planned calls only",
    ),
)


def _seal(ledger: LedgerReader) -> Iterator[Difference]:
    stated = ledger.meta.get("outcomes_sha256")
    if stated is not None and stated != (digest := ledger.digest()):
        yield Difference("outcomes_sha256", stated, digest)
