"""Parsers: from the text of a completed answer to what it says, or to the reason why it says nothing certain.

A parser never guesses: a text that holds no verdict, or more than one, gives a reason. What each parser accepts:

``label``
    The answer *is* a label, decoration and a lead-in (``Answer: **A**.``) apart; or it holds marks ``[[A]]``, and all
    marks say the same. Whatever stands in double brackets is a mark. Labels in running text are no verdict: ``A`` is
    also an article, and "B is worse" names B. Two different ones make the answer *ambiguous*, else it is *unparsed*.
``last-line``
    The same rule on the last line that is not blank; marks elsewhere in the answer that say otherwise make it
    *ambiguous*.
``regex``
    Every match of `pattern` says the same: the group ``verdict``, else the only group, else the whole match. A pattern
    that takes seconds on one answer backtracks without end: that is an error of the contract, never a verdict.
``json``
    The whole answer, or its only fenced block, is one JSON object without repeated keys; `field` (dots descend) holds
    text, a number or a truth value.
``score``
    The answer *is* a plain number (``7``, ``Score: 7``, ``7/10`` when 10 ends the range), or its marks agree on one.
    Numbers in running text are no verdict.
``package.module:function``
    ``function(text)`` returns a label, None for unparsed, or an :class:`Outcome` that is invalid with its reason.

A saying that is no label is read as a number where all classes are numbers; a number outside the range, or equal to no
class, is *out_of_range*.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from secondorder.acquire._pattern import make_finder
from secondorder.acquire._spec import VerdictSpec
from secondorder.acquire._texts import Labels, as_number, last_line, marks_of, numbers_in, without_lead
from secondorder.acquire._types import Outcome
from secondorder.errors import SpecError

__all__ = ["PARSERS", "Parse", "make_parser", "parser_version"]

Said = tuple[str | None, str]
"""A meaning and an empty reason, or None and a reason."""

Parse = Callable[[str], Said]

_FENCE = re.compile(r"^[ \t]{0,3}```[^\n`]*\n(.*?)^[ \t]{0,3}```[ \t]*$", re.DOTALL | re.MULTILINE)
_SHARE = re.compile(r"([^/]{1,64})/([^/]{1,64})")


def make_parser(verdict: VerdictSpec) -> Parse:
    """The parser that a (complete and checked) verdict contract declares.

    Returns
    -------
    callable
        From text to ``(meaning, "")`` or ``(None, reason)``; a meaning is ``first``, ``second`` or a class.
    """
    build = PARSERS.get(verdict.parser)
    return build[1](verdict) if build else _own(verdict)


def parser_version(parser: str) -> str:
    """Version of a parser: a change of its rule changes the manifest.

    An own function's is its ``__version__`` (its module's where it has none), else a hash of its source.
    """
    if parser in PARSERS:
        return PARSERS[parser][0]
    function = _load(parser)
    version = getattr(function, "__version__", None) or getattr(inspect.getmodule(function), "__version__", None)
    if version is not None:
        return str(version)
    try:
        return "sha256:" + hashlib.sha256(inspect.getsource(function).encode()).hexdigest()
    except (OSError, TypeError):
        raise SpecError(
            f"parser '{parser}' has neither a version nor readable source",
            place="[verdict]",
            remedy="give the function a __version__",
        ) from None


def _label(verdict: VerdictSpec) -> Parse:
    labels = Labels(verdict.labels)
    return lambda text: _by_label(text, labels)


def _by_label(text: str, labels: Labels) -> Said:
    marks = marks_of(text)
    if marks:
        return labels.agreed(marks)
    meaning = labels.meaning(text) or labels.meaning(without_lead(text))
    if meaning is not None:
        return meaning, ""
    return None, "ambiguous" if len(labels.meanings_in(text)) > 1 else "unparsed"


def _last_line(verdict: VerdictSpec) -> Parse:
    labels = Labels(verdict.labels)

    def parse(text: str) -> Said:
        meaning, reason = _by_label(last_line(text), labels)
        if meaning is not None and any(labels.meaning(mark) != meaning for mark in marks_of(text)):
            return None, "ambiguous"
        return meaning, reason

    return parse


def _regex(verdict: VerdictSpec) -> Parse:
    find, say = make_finder(verdict), _saying(verdict)

    def parse(text: str) -> Said:
        said = {say(text[max(start, 0) : max(stop, 0)]) for start, stop in find(text)}
        if len(said) > 1:
            return None, "ambiguous"
        return said.pop() if said else (None, "unparsed")

    return parse


def _json(verdict: VerdictSpec) -> Parse:
    path = (verdict.field or "").split(".")
    say = _saying(verdict)

    def parse(text: str) -> Said:
        blocks = _FENCE.findall(text)
        value = _decode(text)
        if value is _BROKEN and len(blocks) > 1:
            return None, "ambiguous"
        if value is _BROKEN and blocks:
            value = _decode(blocks[0])
        if value is _REPEATED:
            return None, "ambiguous"
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, bool):
            value = "true" if value else "false"
        return say(value) if isinstance(value, str) else (None, "unparsed")

    return parse


_BROKEN: Any = object()
_REPEATED: Any = object()


def _decode(text: str) -> Any:
    """Parsed JSON, its numbers as they are written; a mark where it is none, or where an object repeats a key."""
    repeated = False

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        table = dict(found)
        repeated |= len(table) < len(found)
        return table

    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_int=str, parse_float=str, parse_constant=refuse)
    except (ValueError, RecursionError):
        return _BROKEN
    return _REPEATED if repeated else value


def _score(verdict: VerdictSpec) -> Parse:
    to_class = _scale(verdict)
    top = Decimal(str(verdict.range[1])) if verdict.range else None

    def number_in(text: str) -> Decimal | None:
        for part in (text, without_lead(text)):
            share = _SHARE.fullmatch(part.strip())
            if share and (whole := as_number(share[2])) is not None and whole == top:
                part = share[1]
            if (number := as_number(part)) is not None:
                return number
        return None

    def parse(text: str) -> Said:
        numbers = {number_in(mark) for mark in marks_of(text)} or {number_in(text)}
        if len(numbers) > 1:
            return None, "ambiguous"
        number = numbers.pop()
        if number is not None:
            return to_class(number)
        return None, "ambiguous" if len(numbers_in(text)) > 1 else "unparsed"

    return parse


def _own(verdict: VerdictSpec) -> Parse:
    function = _load(verdict.parser)
    say = _saying(verdict)

    def parse(text: str) -> Said:
        try:
            answer = function(text)
        except Exception as error:
            raise SpecError(
                f"parser '{verdict.parser}' raised {type(error).__name__}: {error}",
                place="[verdict]",
                remedy="return None for a text that it cannot read",
            ) from error
        if answer is None:
            return None, "unparsed"
        if isinstance(answer, str):
            return say(answer)
        if isinstance(answer, Outcome) and answer.status == "invalid":
            return None, answer.reason
        raise SpecError(
            f"parser '{verdict.parser}' returned {type(answer).__name__}",
            place="[verdict]",
            remedy="return a label, None, or an invalid Outcome with its reason",
        )

    return parse


def _load(parser: str) -> Callable[[str], object]:
    module, _, name = parser.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SpecError(
            f"parser '{parser}' cannot be imported: {error}",
            place="[verdict]",
            remedy="install its package, or put its folder on PYTHONPATH",
        ) from None
    if not callable(function):
        raise SpecError(f"parser '{parser}' is not a function", place="[verdict]", remedy="name a function of the text")
    return function  # type: ignore[no-any-return]


def _saying(verdict: VerdictSpec) -> Parse:
    """What one extracted text means: a label; else, where all classes are numbers, a number on the scale."""
    labels = Labels(verdict.labels)
    numeric = all(as_number(name) is not None for name in verdict.classes)
    to_class = _scale(verdict) if numeric else None

    def say(text: str) -> Said:
        meaning = labels.meaning(text)
        if meaning is not None:
            return meaning, ""
        number = as_number(text)
        return to_class(number) if to_class and number is not None else (None, "unparsed")

    return say


def _scale(verdict: VerdictSpec) -> Callable[[Decimal], Said]:
    classes = {as_number(name): name for name in verdict.classes}
    return lambda number: (classes[number], "") if number in classes else (None, "out_of_range")


PARSERS: dict[str, tuple[str, Callable[[VerdictSpec], Parse]]] = {
    "label": ("1", _label),
    "last-line": ("1", _last_line),
    "regex": ("2", _regex),
    "json": ("1", _json),
    "score": ("1", _score),
}
"""Name to version and builder: the one list of parsers."""
