"""Where in an answer a parser finds its verdict: which characters say it, in the same words as the parsers' rules."""

from __future__ import annotations

from collections.abc import Callable

from secondorder.acquire._pattern import make_finder
from secondorder.acquire._spec import VerdictSpec
from secondorder.acquire._texts import SPACE, Labels, as_number, bare, last_line, mark_spans, without_lead

__all__ = ["PLACED", "Place", "make_places"]

Place = tuple[int, int]
"""First character of a saying, and the one behind its last."""

PLACED = ("label", "last-line", "regex", "score")
"""Parsers whose verdict has places in the text; ``json`` and own functions read the answer as a whole."""


def make_places(verdict: VerdictSpec) -> Callable[[str], list[Place]]:
    r"""Places of the verdict in an answer that the contract's parser reads as valid, in order.

    Every place that says the verdict counts: two marks that agree are two places.

    Examples
    --------
    >>> from secondorder.acquire._spec import VerdictSpec
    >>> places = make_places(VerdictSpec(parser="last-line", classes=["8", "9"], labels={"8": "8", "9": "9"}))
    >>> text = "8 of 10 facts hold.\\\n**8**"
    >>> [text[slice(*place)] for place in places(text)], places(text)
    (['8'], [(23, 24)])
    """
    if verdict.parser == "regex":
        return make_finder(verdict)
    if verdict.parser == "score":
        return _numbers
    labels = Labels(verdict.labels)

    def is_label(part: str) -> bool:
        return labels.meaning(part) is not None

    def places(text: str) -> list[Place]:
        marks = mark_spans(text)
        line = last_line(text) if verdict.parser == "last-line" else text
        start = len(text.rstrip(SPACE)) - len(line) if verdict.parser == "last-line" else 0
        if any(place[0] >= start for place in marks):
            return marks
        return [*marks, *_said(line, start, is_label)]

    return places


def _numbers(text: str) -> list[Place]:
    marks = mark_spans(text)
    if marks:
        return [place for start, stop in marks for place in _number(text[start:stop], start)]
    return _number(text, 0)


def _number(text: str, start: int) -> list[Place]:
    """The number that a text is, without the ``/10`` behind it."""
    return [
        (first, first + len(bare(text[first - start : stop - start].partition("/")[0])))
        for first, stop in _said(text, start, lambda part: as_number(part.partition("/")[0]) is not None)
    ]


def _said(text: str, start: int, is_said: Callable[[str], bool]) -> list[Place]:
    """The bare word of a text that is a saying, as it stands or behind its lead-in."""
    for part in (text, without_lead(text)):
        if is_said(part):
            word = bare(part)
            first = start + len(text) - len(part) + part.index(word)
            return [(first, first + len(word))]
    return []
