"""From a completed answer to the outcome of its call: the ⊥ rule, and the one place where the order is undone."""

from __future__ import annotations

from collections.abc import Callable

from secondorder.acquire._parsers import make_parser
from secondorder.acquire._spec import VerdictSpec
from secondorder.acquire._texts import SPACE
from secondorder.acquire._types import Outcome

__all__ = ["CUT", "FIRST", "SECOND", "Reader", "make_reader", "restore"]

FIRST = "first"
SECOND = "second"

CUT = frozenset({"length", "max_tokens", "max_output_tokens", "MAX_TOKENS"})
"""Finish reasons that mean: cut at the token limit."""

Reader = Callable[[str, str, str], Outcome]
"""``read(text, finish_reason, order)``: the outcome of a completed call."""


def restore(meaning: str, order: str) -> str:
    """Class of a meaning: positions become candidates, classes stay.

    Order ``AB`` shows ``pair[0]`` first, and candidate 1 is ``pair[0]``.

    Examples
    --------
    >>> restore("first", "AB"), restore("first", "BA"), restore("tie", "BA")
    ('1', '2', 'tie')
    """
    if meaning not in (FIRST, SECOND):
        return meaning
    return "1" if (meaning == FIRST) == (order == "AB") else "2"


def make_reader(verdict: VerdictSpec) -> Reader:
    """The reader of one complete verdict contract (see :func:`secondorder.acquire._contract.contract_of`).

    An answer that was cut at the token limit is ⊥, unless the contract says ``truncated = "parse"``; without visible
    text it is ``truncated`` under both rules: reasoning used the limit up. Texts are never searched for refusals.

    Examples
    --------
    >>> from secondorder.acquire._spec import VerdictSpec
    >>> read = make_reader(VerdictSpec(parser="label", classes=["1", "2"], labels={"A": "first", "B": "second"}))
    >>> read("**B**", "stop", "BA").verdict, read("A or B", "stop", "AB").reason, read("", "length", "AB").reason
    ('1', 'ambiguous', 'truncated')
    """
    parse = make_parser(verdict)

    def read(text: str, finish_reason: str, order: str) -> Outcome:
        blank = not text.strip(SPACE)
        if finish_reason in CUT and (blank or verdict.truncated == "invalid"):
            return Outcome("invalid", "truncated")
        if blank:
            return Outcome("invalid", "empty")
        meaning, reason = parse(text)
        return Outcome("invalid", reason) if meaning is None else Outcome("valid", "", restore(meaning, order))

    return read
