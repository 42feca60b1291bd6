"""From the calls that a reader found to a :class:`Log`: copies, repeats, and which columns are facets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from secondorder._labels._columns import natural_order, shown
from secondorder._schema import BOTTOM, ITEM, JUDGE, ORDER, PROMPT, REPEAT
from secondorder.errors import TableError
from secondorder.interop._files import Source
from secondorder.interop._log import Log
from secondorder.interop._verdicts import MISSING, Said

__all__ = ["SINGLE", "Cached", "Call", "finish"]

SINGLE = "single"
"""Order of a judgement that shows one candidate, as in an audit."""

Cached = Literal["refuse", "drop", "keep"]
"""What to do with answers that the tool took from its cache although their cell has another one."""

SHOWN = 5
LONG_TEXT = 40
"""Characters from which an identical answer is no coincidence of a short label."""


@dataclass(frozen=True)
class Call:
    """One call as a reader found it.

    Attributes
    ----------
    place : str
        Where in the file.
    judge, item, prompt, order : str
    said : Said
    repeat : str or None
        None: the calls of a cell are numbered in the order in which they are given.
    cached : bool
        The tool says that the answer came from its cache.
    request : str
        What keeps requests of one cell apart in the tool's cache.
    more : mapping
        Further columns; further facets among them.
    """

    place: str
    judge: str
    item: str
    said: Said
    prompt: str = "default"
    order: str = SINGLE
    repeat: str | None = None
    cached: bool = False
    request: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)


def finish(
    tool: str,
    files: Sequence[Source],
    calls: Sequence[Call],
    *,
    cached: Cached = "refuse",
    classes: Sequence[str] | None = None,
    facets: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Log:
    """Make a log of calls.

    Parameters
    ----------
    tool : str
    files : sequence of Source
    calls : sequence of Call
        In file order, or in that of time.
    cached : {"refuse", "drop", "keep"}
    classes : sequence of str, optional
        Default: the verdicts found, in natural order.
    facets : sequence of str
        Columns of ``more`` that may be facets besides prompt and order.
    notes : sequence of str

    Raises
    ------
    TableError
        When there is no call, an answer from a cache stands for a repeat, or two calls have one place.
    """
    source = files[0].name if len(files) == 1 else f"{len(files)} files"
    if not calls:
        raise TableError("no judgement was found", place=source, remedy=f"is it a log of {tool}, and has it ended?")
    named = (PROMPT, ORDER, *facets)
    found, said = _without_copies(calls, named, cached)
    numbered = any(call.repeat is None for call in found)
    repeats = _numbers(found, named) if numbered else [call.repeat or "" for call in found]
    _refuse_duplicates(found, named, repeats)
    rows = tuple(_row(call, repeat) for call, repeat in zip(found, repeats, strict=True))
    chosen, nested = _facets(rows, named)
    notes = (*notes, *said, *nested, *_same_texts(found, named))
    if classes is None:
        labels = sorted({call.said.verdict for call in found if call.said.status == "valid"})
        classes = [labels[k] for k in natural_order(labels)] if labels else None
    declaration: dict[str, Any] = {
        "item": ITEM,
        "facets": chosen,
        "verdict": "verdict",
        "by": JUDGE,
        "classes": None if classes is None else list(classes),
        "invalid": [BOTTOM],
        "missing": [MISSING],
        **({"number_repeats": True} if numbered else {"repeat": REPEAT}),
    }
    return Log(tool, source, files[0].sha256 if len(files) == 1 else None, rows, declaration, tuple(notes))


def _cell(call: Call, facets: Sequence[str]) -> tuple[str, ...]:
    return (call.judge, call.item, *(_level(call, name) for name in facets))


def _level(call: Call, name: str) -> str:
    return {PROMPT: call.prompt, ORDER: call.order}[name] if name in (PROMPT, ORDER) else str(call.more[name])


def _row(call: Call, repeat: str) -> dict[str, Any]:
    verdict, status, reason = call.said
    names = {JUDGE: call.judge, ITEM: call.item, PROMPT: call.prompt, ORDER: call.order, REPEAT: repeat}
    end = {"verdict": verdict, "status": status, "reason": reason, "cached": call.cached, "place": call.place}
    return {**names, **end, **call.more}


def _without_copies(calls: Sequence[Call], facets: Sequence[str], cached: Cached) -> tuple[list[Call], list[str]]:
    """Calls without answers that a cache gave once more.

    Of the calls that the tool's cache cannot tell apart, those that went to the judge are kept, and where none did,
    one: that the answer was fetched in an earlier run makes it no worse, but it is one answer.
    """
    alike: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for k, call in enumerate(calls):
        alike[(*_cell(call, facets), call.request)].append(k)
    copies: set[int] = set()
    for members in alike.values():
        stored = [k for k in members if calls[k].cached]
        copies.update(stored if len(stored) < len(members) else stored[1:])
    if not copies:
        return list(calls), []
    count = f"{len(copies)} answer{'s come' if len(copies) > 1 else ' comes'} from the tool's cache"
    if cached == "keep":
        return list(calls), [f"{count} and count as calls, as declared: each has to be an entry of its own there."]
    if cached == "drop":
        kept = [call for k, call in enumerate(calls) if k not in copies]
        return kept, [f"{count}: copies of another call's answer, left out."]
    places = ", ".join(calls[k].place for k in sorted(copies)[:SHOWN])
    raise TableError(
        f"{count} although the cell has another: a copy is no repeat",
        place=places,
        remedy="run the tool without its cache, or say cached='drop' (leave copies out, counted) or cached='keep' (its "
        "cache holds one entry per repeat)",
    )


def _numbers(calls: Sequence[Call], facets: Sequence[str]) -> list[str]:
    seen: Counter[tuple[str, ...]] = Counter()
    numbers = []
    for call in calls:
        cell = _cell(call, facets)
        numbers.append(str(seen[cell]))
        seen[cell] += 1
    return numbers


def _refuse_duplicates(calls: Sequence[Call], facets: Sequence[str], repeats: Sequence[str]) -> None:
    first: dict[tuple[str, ...], Call] = {}
    twice = []
    for call, repeat in zip(calls, repeats, strict=True):
        before = first.setdefault((*_cell(call, facets), repeat), call)
        if before is not call:
            twice.append((before, call, repeat))
    if twice:
        before, call, repeat = twice[0]
        more = f" (one of {len(twice)} such calls)" if len(twice) > 1 else ""
        raise TableError(
            f"item {shown(call.item)}, repeat {shown(repeat)} was judged before, at {before.place}{more}",
            place=call.place,
            remedy="give one log of every call: was a file read twice, or a run added to an old one?",
        )


def _facets(rows: Sequence[Mapping[str, Any]], named: Sequence[str]) -> tuple[list[str], list[str]]:
    """Columns that are facets: those with one level, and those that differ within an item."""
    chosen, notes = [], []
    for name in named:
        levels: dict[tuple[str, str], set[str]] = defaultdict(set)
        for row in rows:
            levels[row[JUDGE], row[ITEM]].add(row[name])
        size = len(set().union(*levels.values()))
        if size == 1 or max(map(len, levels.values())) > 1:
            chosen.append(name)
        else:
            notes.append(
                f"Column {name!r} has {size} values, one per item: it is no facet here, and what it does cannot be "
                f"told from the items (stratum={name!r} shows it apart)."
            )
    # A cube has at least one facet; with nothing that varies within an item its cells are incomplete, and it says so.
    return chosen or [named[0]], notes


def _same_texts(calls: Sequence[Call], facets: Sequence[str]) -> list[str]:
    texts: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for call in calls:
        text = call.more.get("text")
        if isinstance(text, str) and len(text) >= LONG_TEXT:
            texts[_cell(call, facets)].append(text)
    repeated = [cell for cell in texts.values() if len(cell) > 1]
    same = sum(len(set(cell)) == 1 for cell in repeated)
    if not same:
        return []
    return [
        f"In {same} of {len(repeated)} cells all repeats are one text, to the letter: greedy decoding, a fixed seed, "
        "or a cache that the log does not show."
    ]
