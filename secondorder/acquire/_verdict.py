"""From a completed answer to the outcome of its call: the ⊥ rule, and the one place where the order is undone."""

from __future__ import annotations

from collections.abc import Callable

from secondorder.acquire._parsers import make_parser
from secondorder.acquire._reading import Completion
from secondorder.acquire._spec import VerdictSpec
from secondorder.acquire._texts import SPACE
from secondorder.acquire._types import Outcome

__all__ = ["CUT", "FIRST", "SECOND", "Reader", "make_reader", "restore"]

FIRST = "first"
SECOND = "second"

CUT = frozenset({"length", "max_tokens", "max_output_tokens", "MAX_TOKENS"})
"""Finish reasons that mean: cut at the token limit."""

Reader = Callable[[Completion, str], Outcome]
"""``read(completion, order)``: the outcome of a completed call."""


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
    """The reader of one verdict contract (see :func:`secondorder.acquire._contract.contract_of`).

    What the endpoint says about the answer comes before what the answer says: a filtered or refused answer is ⊥, and
    so is one that was cut at the token limit, unless the contract says ``truncated = "parse"``. A cut answer without
    visible text is ``truncated`` under both rules: reasoning used the limit up. Texts are never searched for refusals.
    """
    parse = make_parser(verdict)

    def read(completion: Completion, order: str) -> Outcome:
        if completion.bottom:
            return Outcome("invalid", completion.bottom)
        blank = not completion.text.strip(SPACE)
        if completion.finish_reason in CUT and (blank or verdict.truncated == "invalid"):
            return Outcome("invalid", "truncated")
        if blank:
            return Outcome("invalid", "empty")
        meaning, reason = parse(completion.text)
        return Outcome("invalid", reason) if meaning is None else Outcome("valid", "", restore(meaning, order))

    return read
