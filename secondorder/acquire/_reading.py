"""What an HTTP answer means: a completion, or no completion and what to do about it. Pure: no network, no clock.

The same function reads a response when it arrives and when it is read back from the ledger, so re-parsing never
needs another call. The line that matters: a *completed* call (text came back, whatever it says) is final; only a call
with *no completion* may be sent again.
"""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

__all__ = ["Completion", "Failure", "Reading", "decode_json", "failure_of_status"]

Remedy = Literal["retry", "rejected", "fatal"]


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """Text came back; nothing here is ever a ground for another attempt.

    Attributes
    ----------
    text : str
        What the judge said; empty when it said nothing.
    finish_reason : str
        As the server wrote it; empty when it wrote none.
    bottom : str
        ⊥ by protocol, before any parser: ``"filtered"``, ``"refusal"``, else ``""``.
    id, model, fingerprint, tier, provider : str
        Metadata of the response, for the independence checks; empty when absent.
    created : float or None
        Server's time stamp, unix seconds.
    prompt_tokens, completion_tokens, cached_tokens : int or None
        Usage as reported.
    """

    text: str
    finish_reason: str = ""
    bottom: Literal["", "filtered", "refusal"] = ""
    id: str = ""
    model: str = ""
    fingerprint: str = ""
    tier: str = ""
    provider: str = ""
    created: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


class Failure(msgspec.Struct, frozen=True):
    """No completion.

    Attributes
    ----------
    reason : str
        One of :data:`secondorder._schema.MISSING_REASONS`.
    remedy : {"retry", "rejected", "fatal"}
        Send the same bytes again by the frozen law; end this call; stop this judge.
    detail : str
        One line for the ledger and for messages.
    """

    reason: str
    remedy: Remedy
    detail: str = ""


Reading = Completion | Failure


def decode_json(body: bytes) -> Any:
    """Decode a response body; NaN, a byte-order mark, broken UTF-8 and lone surrogates do not lose a completion.

    Raises
    ------
    ValueError
        When the body is not JSON even so.
    """
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return json.loads(body.decode("utf-8-sig", errors="replace"))


def failure_of_status(status: int, message: str = "", code: str = "") -> Failure:
    """Classify an HTTP status that is not a success.

    408, 504 and 524 are timeouts of the far side: like our own they censor long outputs, so they count with them.
    A 429 that says that the quota is used up cannot be cured by waiting, nor can 401, 402, 403, 404 or a redirect:
    they stop the judge and leave its other calls uncalled, to be resumed.

    Examples
    --------
    >>> failure_of_status(503).remedy, failure_of_status(413).remedy, failure_of_status(401).remedy
    ('retry', 'rejected', 'fatal')
    """
    detail = f"HTTP {status}: {message}" if message else f"HTTP {status}"
    if status in (408, 504, 524):
        return Failure("timeout", "retry", detail)
    if status == 429:
        return Failure("rate_limited", "fatal" if code == "insufficient_quota" else "retry", detail)
    if status in (409, 425) or status >= 500:
        return Failure("http_error", "retry", detail)
    if status < 400 or status in (401, 402, 403, 404, 405, 410):
        return Failure("http_error", "fatal", detail)
    return Failure("rejected", "rejected", detail)
