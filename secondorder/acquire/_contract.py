"""The verdict contract that each wording ends up with, its defaults filled, and what makes a contract sound."""

from __future__ import annotations

import difflib
import re

import msgspec
import regex

from secondorder._schema import BOTTOM
from secondorder.acquire._parsers import PARSERS
from secondorder.acquire._spec import VariantVerdictSpec, VerdictSpec
from secondorder.acquire._strict import shown
from secondorder.acquire._texts import as_number, bare
from secondorder.acquire._verdict import FIRST, SECOND
from secondorder.errors import SpecError

__all__ = ["all_numbers", "check_contract", "complete", "contract_of"]

_OWN = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_KEYS = {"pattern": ("regex",), "field": ("json",)}


def all_numbers(classes: list[str]) -> bool:
    """Whether every class is a plain number (then the kernel must be named)."""
    return all(as_number(name) is not None for name in classes)


def contract_of(verdict: VerdictSpec, own: VariantVerdictSpec | None) -> VerdictSpec:
    """``[verdict]`` with the keys that a wording changes; see :class:`VariantVerdictSpec` for what is inherited."""
    if own is None:
        return verdict
    changes = {key: value for key, value in msgspec.structs.asdict(own).items() if value is not None}
    if "parser" in changes:
        changes = {"labels": {}, "pattern": None, "field": None, "range": None} | changes
    elif "classes" in changes and "labels" not in changes:
        # A wording with fewer classes keeps the labels that still mean something: what else is said there is ⊥.
        kept = {FIRST, SECOND, *changes["classes"]}
        changes["labels"] = {label: meaning for label, meaning in verdict.labels.items() if meaning in kept}
    return msgspec.structs.replace(verdict, **changes)


def complete(verdict: VerdictSpec) -> VerdictSpec:
    """Fill the defaults: every class is its own label (a score has none); the range is that of the classes."""
    labels = verdict.labels
    if not labels and verdict.parser != "score":
        labels = {name: name for name in verdict.classes}
    bounds = verdict.range
    if bounds is None and all_numbers(verdict.classes):
        numbers = [float(name.replace("\u2212", "-")) for name in verdict.classes]
        bounds = (min(numbers), max(numbers))
    return msgspec.structs.replace(verdict, labels=labels, range=bounds)


def check_contract(verdict: VerdictSpec, *, pairwise: bool, place: str) -> None:
    """Refuse a contract that contradicts itself.

    Raises
    ------
    SpecError
        Naming the key, its value and the remedy.
    """
    _check_parser(verdict, place)
    _check_classes(verdict, pairwise, place)
    _check_labels(verdict, pairwise, place)
    if verdict.range is not None:
        _check_range(verdict, verdict.range, place)


def _check_parser(verdict: VerdictSpec, place: str) -> None:
    parser = verdict.parser
    if parser not in PARSERS and not _OWN.fullmatch(parser):
        close = difflib.get_close_matches(parser, PARSERS, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"say one of {', '.join(PARSERS)} or package.module:function"
        raise SpecError(f"parser is {shown(parser)}", place=place, remedy=hint)
    for key, parsers in _KEYS.items():
        given = getattr(verdict, key) is not None
        if given != (parser in parsers):
            what = f"{key} is given" if given else f"key '{key}' is missing"
            how = f"it belongs to parser = {shown(parsers[0])}" if given else f"parser = {shown(parser)} needs it"
            raise SpecError(f"{what} with parser = {shown(parser)}", place=place, remedy=how)
    if verdict.pattern is not None:
        _check_pattern(verdict.pattern, place)


def _check_pattern(text: str, place: str) -> None:
    try:
        pattern = regex.compile(text)
    except regex.error as error:
        raise SpecError(
            f"pattern {shown(text)} is not a regular expression ({error})",
            place=place,
            remedy="write it between single quotation marks, so that TOML keeps its backslashes",
        ) from None
    if pattern.groups > 1 and "verdict" not in pattern.groupindex:
        raise SpecError(
            f"pattern {shown(text)} has {pattern.groups} groups",
            place=place,
            remedy="call the group that holds the verdict (?P<verdict>…), or make the others (?:…)",
        )


def _check_classes(verdict: VerdictSpec, pairwise: bool, place: str) -> None:
    for number, name in enumerate(verdict.classes):
        if name in verdict.classes[:number]:
            raise SpecError(f"class {shown(name)} stands twice", place=place, remedy="name each class once")
        if name == BOTTOM:
            raise SpecError(
                f"class {shown(name)} is declared", place=place, remedy="leave it out: an invalid verdict is always ⊥"
            )
        if name in (FIRST, SECOND):
            raise SpecError(
                f"class {shown(name)} is the name of a position", place=place, remedy="call the candidates 1 and 2"
            )
    missing = [name for name in ("1", "2") if name not in verdict.classes]
    if pairwise and missing:
        raise SpecError(
            f"classes lack {shown(missing[0])}",
            place=place,
            remedy="with items.pair the class 1 is the first field of the pair and 2 the second",
        )
    numbers = [as_number(name) for name in verdict.classes]
    if verdict.parser == "score" and None in numbers:
        name = verdict.classes[numbers.index(None)]
        raise SpecError(
            f'class {shown(name)} is no number, and parser = "score" reads numbers',
            place=place,
            remedy="name the classes by their numbers, or use the parser label",
        )
    if None not in numbers and len(set(numbers)) < len(numbers):
        raise SpecError("two classes are the same number", place=place, remedy="write each number once")


def _check_labels(verdict: VerdictSpec, pairwise: bool, place: str) -> None:
    if verdict.parser == "score" and pairwise:
        raise SpecError(
            'parser is "score" with items.pair',
            place=place,
            remedy="a score names no candidate: use labels, or leave out items.pair",
        )
    if verdict.parser == "score" and verdict.labels:
        raise SpecError('labels are given with parser = "score"', place=place, remedy="leave them out")
    meanings: dict[str, tuple[str, str]] = {}
    for label, meaning in verdict.labels.items():
        word = bare(label)
        if not word:
            raise SpecError(f"label {shown(label)} is empty", place=place, remedy="write the word that the judge says")
        other, before = meanings.setdefault(word, (label, meaning))
        if before != meaning:
            raise SpecError(
                f"labels {shown(other)} and {shown(label)} are the same word with two meanings",
                place=place,
                remedy="decoration around a label does not count; keep one",
            )
        if meaning in (FIRST, SECOND) and not pairwise:
            raise SpecError(
                f"label {shown(label)} means {shown(meaning)}, and there are no candidates",
                place=place,
                remedy="name the two fields in items.pair, or map the label to a class",
            )
        if meaning not in (FIRST, SECOND, *verdict.classes):
            known = ([FIRST, SECOND] if pairwise else []) + verdict.classes
            raise SpecError(
                f"label {shown(label)} means {shown(meaning)}",
                place=place,
                remedy=f"map it to one of {', '.join(known)}",
            )
    absent = [position for position in (FIRST, SECOND) if position not in verdict.labels.values()]
    if pairwise and absent:
        raise SpecError(
            f"no label means {shown(absent[0])}",
            place=place,
            remedy='with items.pair say what the judge calls the two, as in labels = { A = "first", B = "second" }',
        )


def _check_range(verdict: VerdictSpec, bounds: tuple[float, float], place: str) -> None:
    if verdict.parser in ("label", "last-line") or not all_numbers(verdict.classes):
        raise SpecError(
            f"range is given with parser = {shown(verdict.parser)}",
            place=place,
            remedy="it belongs to parsers that read numbers, with classes that are numbers",
        )
    low, high = bounds
    if not low < high:
        raise SpecError(f"range is [{low:g}, {high:g}]", place=place, remedy="write the lower end first")
    for name in verdict.classes:
        if not low <= float(name.replace("\u2212", "-")) <= high:
            raise SpecError(
                f"class {shown(name)} is outside range = [{low:g}, {high:g}]", place=place, remedy="widen the range"
            )
