"""What planning hands to sending, and what sending hands back: the types between the two halves of acquisition."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Call", "Outcome", "SoftVerdict", "Status"]

Status = Literal["valid", "invalid", "no_completion", "not_called"]


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One planned call: its place in the design and the very bytes that are sent for it.

    Attributes
    ----------
    id : str
        Identity: hex digest over (judge, item, prompt, order, repeat); a repeat is part of it.
    rank : int
        Position in send order, from 0.
    judge, item, prompt, order : str
        Labels of the cell (composite items joined by :func:`secondorder._canon.join_key`; pointwise judging has the
        single order ``"single"``).
    repeat : int
        Planned repeat index, from 0.
    warmup : bool
        True for a recorded call outside the design (``send = "by-cell"``): never a verdict.
    seed : int or None
        Seed sent, None where the endpoint takes none.
    request : bytes
        Body of the HTTP request; a retry sends the same bytes.
    request_sha256 : str
        SHA-256 of `request`.
    """

    id: str
    rank: int
    judge: str
    item: str
    prompt: str
    order: str
    repeat: int
    warmup: bool
    seed: int | None
    request: bytes
    request_sha256: str


class Outcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The one terminal outcome of a planned call.

    Attributes
    ----------
    status : {"valid", "invalid", "no_completion", "not_called"}
        ``valid`` and ``invalid`` are completed calls; ``invalid`` is the class ⊥.
    reason : str
        Empty when valid; else one of :data:`secondorder._schema.REASONS`.
    verdict : str or None
        Label in the words of ``verdict.classes``, candidate restored; None unless valid.
    """

    status: Status
    reason: str = ""
    verdict: str | None = None


class SoftVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A completed call's verdict as probabilities.

    Attributes
    ----------
    probabilities : dict of str to float
        By valid class, candidate restored; what is missing to one is ⊥.
    unlisted : float
        Part of ⊥ that no listed token accounts for.
    reason : str
        Why the call has no soft verdict, one of :data:`secondorder._schema.SOFT_REASONS`; empty where it has.
    """

    probabilities: dict[str, float] = {}
    unlisted: float = 0.0
    reason: str = ""
