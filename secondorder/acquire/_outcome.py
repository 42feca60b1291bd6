"""From one attempt's exchange to its ledger row, and from a completed one to the call's outcome."""

from __future__ import annotations

from collections.abc import Callable

from secondorder._canon import blake2b_64
from secondorder.acquire._endpoint import endpoint_of
from secondorder.acquire._http import Exchange
from secondorder.acquire._ledger import Attempt
from secondorder.acquire._ledger_read import Record
from secondorder.acquire._reading import Completion, Failure
from secondorder.acquire._spec import JudgeSpec
from secondorder.acquire._types import Call, Outcome
from secondorder.errors import SecondOrderError, SpecError

__all__ = ["Parser", "attempt_of", "outcome_of", "reread"]

Parser = Callable[[str, str, Call], Outcome]
"""``(text, finish_reason, call) -> Outcome`` of a completed call: valid, or invalid with its reason."""


def outcome_of(completion: Completion, parse: Parser, call: Call) -> Outcome:
    """Terminal outcome of a completed call: ⊥ where the protocol already says so, else what the parser says.

    Raises
    ------
    SpecError
        When the parser itself fails; the answer is stored and parsed again on resume.
    """
    if completion.bottom:
        return Outcome("invalid", completion.bottom)
    try:
        return parse(completion.text, completion.finish_reason, call)
    except SecondOrderError:
        raise
    except Exception as error:
        raise SpecError(
            f"the parser failed on call {call.id}: {type(error).__name__}: {error}",
            remedy="the answer is stored: mend the parser and give the same command again",
        ) from error


def reread(record: Record, judge: JudgeSpec) -> Completion | None:
    """Completion that a stored record holds, read again from its bytes; None where there was no completion.

    The record must have been read with its bodies. With :func:`outcome_of` this parses anew without a call.
    """
    if record.response is None or record.http_status is None or record.result not in ("completed", "reparsed"):
        return None
    reading = endpoint_of(judge).read(record.http_status, record.response)
    return reading if isinstance(reading, Completion) else None


def attempt_of(
    call: Call,
    number: int,
    result: str,
    exchange: Exchange | None = None,
    outcome: Outcome | None = None,
    error: str = "",
) -> Attempt:
    """Ledger row of an attempt; without an exchange, of what never came to one, and `error` says why."""
    if exchange is None:
        return Attempt(call=call.rank, number=number, result=result, outcome=outcome, error=error)
    reading = exchange.reading
    usage = reading if isinstance(reading, Completion) else None
    return Attempt(
        call=call.rank,
        number=number,
        result=result,
        outcome=outcome,
        sent=exchange.sent,
        latency_ms=exchange.latency_ms,
        http_status=exchange.status,
        headers=exchange.headers,
        response=exchange.body,
        response_key=_signed(blake2b_64(usage.id)) if usage is not None and usage.id else None,
        prompt_tokens=None if usage is None else usage.prompt_tokens,
        completion_tokens=None if usage is None else usage.completion_tokens,
        error=reading.detail if isinstance(reading, Failure) else "",
    )


def _signed(value: int) -> int:
    """Fit an unsigned 64-bit hash into SQLite's signed integer."""
    return value - 2**64 if value >= 2**63 else value
