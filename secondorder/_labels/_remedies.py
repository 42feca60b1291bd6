"""What to do about answers that are no verdict, by reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["REMEDIES"]

_FORM = "ask for the answer in the form that [verdict] reads, or change labels and parser"

REMEDIES: Final[Mapping[str, str]] = {
    "empty": "no visible text: does the judge reason until the limit?",
    "unparsed": _FORM,
    "ambiguous": _FORM,
    "out_of_range": _FORM,
    "refusal": "the judge refused: look at the item and the prompt",
    "truncated": "raise max_tokens, or ask for the label alone",
    "filtered": "the content filter answered: look at the item, or at the service's settings",
    "declared": "look at these answers, and at what another reading of ⊥ gives",
}
"""By the reasons of :data:`secondorder._schema.INVALID_REASONS`."""
