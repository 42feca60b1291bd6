"""From what a log holds as the judge's word to a class, ⊥ or no completion; the one place where the order is undone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from secondorder._schema import BOTTOM
from secondorder.errors import TableError

__all__ = ["MISSING", "Parse", "Read", "Said", "failure", "invalid", "missing", "reader", "restore"]

MISSING = ""
"""Verdict of a call without completion, in the rows of a log."""

Parse = Callable[[str], str | None]
"""``parse(text)``: the label that an answer gives, None where it gives none."""


class Said(NamedTuple):
    """What became of a call, in the words of the cube: ``status`` and ``reason``."""

    verdict: str
    status: str = "valid"
    reason: str = ""


Read = Callable[[str, str, str], Said]
"""``read(text, order, place)``: what a verdict that stands in a log as text says."""


def invalid(reason: str) -> Said:
    """A completed call without a valid verdict."""
    return Said(BOTTOM, "invalid", reason)


def missing(reason: str = "absent") -> Said:
    """A call that did not complete."""
    return Said(MISSING, "no_completion", reason)


def restore(meaning: str, order: str, place: str) -> str:
    """Class of a label's meaning: ``first`` and ``second`` become candidate ``1`` or ``2`` of the pair.

    Raises
    ------
    TableError
        When the order is not known.
    """
    if meaning not in ("first", "second"):
        return meaning
    if order not in ("AB", "BA"):
        raise TableError(
            f"a label means {meaning!r}, and the order is {order!r}",
            place=place,
            remedy="name the field that holds AB or BA in order=, or map the labels to classes",
        )
    return "1" if (meaning == "first") == (order == "AB") else "2"


def reader(labels: Mapping[str, str] | None, classes: Sequence[str] | None, parse: Parse | None) -> Read:
    """How the text of a verdict is read.

    An answer without text is ⊥ ``empty``; whatever is not in the labels, or not in the declared classes, is ⊥.
    """

    def read(text: str, order: str, place: str) -> Said:
        label = text.strip()
        if not label:
            return invalid("empty")
        if parse is not None:
            parsed = _parsed(parse, text, place)
            if parsed is None:
                return invalid("unparsed")
            label = parsed
        if labels is not None:
            if label not in labels:
                return invalid("unparsed")
            label = restore(labels[label], order, place)
        if label == BOTTOM:
            return invalid("declared")
        if classes is not None and label not in classes:
            return invalid("out_of_range" if _is_number(label) and all(map(_is_number, classes)) else "unparsed")
        return Said(label)

    return read


def _parsed(parse: Parse, text: str, place: str) -> str | None:
    try:
        found = parse(text)
    except Exception as fault:
        raise TableError(
            f"parse raised {type(fault).__name__}: {fault}",
            place=place,
            remedy="return None for a text without a label",
        ) from fault
    if found is not None and not isinstance(found, str):
        raise TableError(f"parse returned {found!r}", place=place, remedy="return the label as text, or None")
    return found


_FAILURES = (
    (r"content.?(filter|polic|management)", "filtered"),
    (r"\b429\b|rate.?limit|quota|too many requests", "rate_limited"),
    (r"time.?d? ?out|\b(408|504|524)\b", "timeout"),
    (r"connection|connect error|econn|enotfound|network|name resolution|socket", "connection"),
    (r"\b(400|413|422)\b|context.?length|too long", "rejected"),
    (r"\b(401|403|404|4\d\d|5\d\d)\b", "http_error"),
    (r"abort|cancel|interrupt", "interrupted"),
)


def failure(message: str) -> Said:
    """What a tool's error message says about the call: no completion, except where a content filter answered.

    Examples
    --------
    >>> failure("API error: 429 Too Many Requests").reason, failure("Request timed out after 300000 ms").reason
    ('rate_limited', 'timeout')
    >>> failure("something broke")
    Said(verdict='', status='no_completion', reason='absent')
    """
    lower = message.lower()
    reason = next((word for pattern, word in _FAILURES if re.search(pattern, lower)), "absent")
    return invalid(reason) if reason == "filtered" else missing(reason)


def _is_number(label: str) -> bool:
    return re.fullmatch(r"[+\-−]?\d+(\.\d+)?", label) is not None
