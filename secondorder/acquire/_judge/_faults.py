"""Ways in which the simulated judge fails on request: by a file for a whole run, by a header for one request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from secondorder._canon import blake2b_64
from secondorder.errors import InputError

__all__ = ["FAULT_HEADER", "Fault", "fault_of_header", "read_faults"]

FAULT_HEADER = "X-Simulated-Fault"

Kind = Literal[
    "status",
    "slow",
    "reset",
    "cut",
    "malformed",
    "error_body",
    "filtered",
    "refusal",
    "truncated",
    "empty",
    "duplicated",
    "cached",
    "proxy_cached",
    "fixed_seed",
]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One fault and when it strikes; all conditions must hold, and the first fault that strikes shapes the answer.

    Attributes
    ----------
    kind : str
        ``status`` (with `status`, `retry_after`) · ``slow`` (answers after `seconds`; other faults may follow) ·
        ``reset`` (connection lost before the answer) · ``cut`` (lost in the middle of it) · ``malformed`` (broken JSON)
        · ``error_body`` (HTTP 200 with an error) · ``filtered`` (content filter, HTTP 400) · ``refusal`` ·
        ``truncated`` (half the text, ``finish_reason`` length) · ``empty`` · ``duplicated`` (each answer of a cell is
        given twice) · ``cached`` (a cell gets its first response again, to the byte) · ``proxy_cached`` (the same text
        under a new id and with zero usage) · ``fixed_seed`` (the request's seed is ignored, one seed serves all).
    rate : float
        Share of requests struck, decided by a hash of the request and of how often it came.
    first : int or None
        Only the first so many requests that the server receives.
    per_call : int or None
        Only the first so many times that the same request comes: later attempts get through.
    contains : str
        Only requests whose body contains this text.
    """

    kind: Kind
    rate: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    first: int | None = None
    per_call: int | None = None
    contains: str = ""
    status: int = 500
    retry_after: str | float | None = None
    seconds: float = 1.0

    def strikes(self, body: bytes, sha256: str, received: int, times: int) -> bool:
        """Whether this request is struck: number `received` of the server, coming for the `times`-th time (from 0)."""
        return (
            (self.first is None or received < self.first)
            and (self.per_call is None or times < self.per_call)
            and (not self.contains or self.contains.encode() in body)
            and (self.rate >= 1.0 or blake2b_64(["fault", self.kind, sha256, times]) < self.rate * 2**64)
        )


def read_faults(path: str | Path) -> list[Fault]:
    """Read a fault file: a JSON array of faults.

    Raises
    ------
    InputError
        When it is missing or not such a file.
    """
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=list[Fault])
    except OSError as error:
        raise InputError(error.strerror or str(error), place=str(path)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not a fault file: {error}", place=str(path), remedy='[{"kind": "status", …}]') from error


def fault_of_header(value: str) -> Fault:
    """Fault of one request, from the header ``X-Simulated-Fault: kind; key=value``.

    Raises
    ------
    InputError
        When it names no fault.

    Examples
    --------
    >>> fault = fault_of_header("status; status=429; retry_after=2")
    >>> fault.status, fault.retry_after
    (429, '2')
    """
    kind, *rest = (part.strip() for part in value.split(";"))
    fields = dict(part.partition("=")[::2] for part in rest)
    try:
        return msgspec.convert({"kind": kind, **fields}, Fault, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"{value!r} is no fault: {error}", place=f"header {FAULT_HEADER}") from error
