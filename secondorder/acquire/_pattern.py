"""Where the pattern of a ``regex`` contract finds the verdict, within bounds of time."""

from __future__ import annotations

from collections.abc import Callable

import regex

from secondorder.acquire._spec import VerdictSpec
from secondorder.errors import SpecError

__all__ = ["LONGEST_MATCH_S", "make_finder"]

LONGEST_MATCH_S = 5.0
"""Seconds after which a pattern is given up on one answer."""


def make_finder(verdict: VerdictSpec) -> Callable[[str], list[tuple[int, int]]]:
    r"""Spans of the verdict in every match, in order; ``(-1, -1)`` where a match has none.

    The verdict is the group ``verdict``, else the only group, else the whole match.

    The finder raises SpecError on an answer that takes the pattern too long.

    Examples
    --------
    >>> make_finder(VerdictSpec(parser="regex", pattern=r"score: (\d)", classes=["8", "9"]))("score: 8, score: 9")
    [(7, 8), (17, 18)]
    """
    # Unlike re, regex can be told when to give up.
    pattern = regex.compile(verdict.pattern or "")
    group: str | int = "verdict" if "verdict" in pattern.groupindex else pattern.groups

    def find(text: str) -> list[tuple[int, int]]:
        try:
            return [match.span(group) for match in pattern.finditer(text, timeout=LONGEST_MATCH_S)]
        except TimeoutError:
            raise SpecError(
                f"pattern {verdict.pattern!r} takes more than {LONGEST_MATCH_S:g} s on one answer",
                place="[verdict]",
                remedy="write it without repeats inside repeats, and give a new --out; the answer is stored",
            ) from None

    return find
