"""Items: rows of a table of texts, taken as they stand, with the checks that a plan needs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from secondorder._canon import join_key
from secondorder.acquire._gate import gate_fields
from secondorder.acquire._prompts import build_prompts, fields_of
from secondorder.acquire._rows import read_rows
from secondorder.acquire._spec import AuditSpec, ItemsSpec
from secondorder.acquire._strict import shown
from secondorder.errors import TableError

__all__ = ["Item", "read_items", "select_items"]


class Item(msgspec.Struct, frozen=True):
    """One item, reduced to what the audit uses.

    Attributes
    ----------
    id : str
        Label; composite keys are joined by :func:`secondorder._canon.join_key`.
    fields : dict of str to str
        The fields that prompts show, and the two candidates' fields.
    stratum, gold : str
        Empty where none is declared (``gold`` also where the item has none).
    """

    id: str
    fields: dict[str, str]
    stratum: str = ""
    gold: str = ""


def read_items(spec: AuditSpec, folder: Path) -> list[Item]:
    """Read the items of an audit.

    Every row of the file is checked, also those that ``limit`` or ``per_stratum`` leaves out.

    Parameters
    ----------
    spec : AuditSpec
        A loaded spec.
    folder : Path
        Folder that ``items.file`` is relative to (that of ``audit.toml``).

    Raises
    ------
    TableError
        When the file cannot be read; on a missing field, an empty or repeated id, an empty stratum, or a gold label
        that is no class. The message names the row.
    """
    path = folder / spec.items.file
    items = list(_checked(read_rows(path), spec, str(path)))
    if not items:
        raise TableError("holds no item", place=str(path), remedy="write at least one row")
    return select_items(items, spec.items)


def select_items(items: Iterable[Item], spec: ItemsSpec) -> list[Item]:
    """The first `limit` items, or the first `per_stratum` of each stratum, in file order."""
    if spec.per_stratum is None:
        return list(items)[: spec.limit]
    seen: dict[str, int] = {}
    kept = []
    for item in items:
        seen[item.stratum] = seen.get(item.stratum, 0) + 1
        if seen[item.stratum] <= spec.per_stratum:
            kept.append(item)
    return kept


def _checked(rows: Iterator[tuple[int, Mapping[str, str]]], spec: AuditSpec, path: str) -> Iterator[Item]:
    items = spec.items
    keys = [items.id] if isinstance(items.id, str) else items.id
    shown_in_prompts = fields_of(build_prompts(spec), pairwise=items.pair is not None)
    used = (*sorted(shown_in_prompts), *(items.pair or ()))
    sources = dict.fromkeys(shown_in_prompts, "a prompt shows it")
    sources |= dict.fromkeys(items.pair or (), "items.pair names it")
    sources |= dict.fromkeys(keys, "items.id names it")
    if spec.gate is not None:
        looked_at = gate_fields(spec.gate.content)
        sources |= dict.fromkeys(looked_at, "the gate looks at it")
        used = tuple(dict.fromkeys((*used, *looked_at)))
    for key in ("stratum", "gold"):
        if (name := getattr(items, key)) is not None:
            sources[name] = f"items.{key} names it"
    first_seen: dict[str, int] = {}
    for number, row in rows:
        place = f"{path} row {number}"
        for name, source in sources.items():
            if name not in row:
                close = difflib.get_close_matches(name, row, n=1)
                hint = f"did you mean '{close[0]}'?" if close else f"fields that hold text or numbers: {', '.join(row)}"
                raise TableError(f"field '{name}' is missing ({source})", place=place, remedy=hint)
        for key in keys:
            if not row[key]:
                raise TableError(f"id field '{key}' is empty", place=place, remedy="give every item an id")
        label = join_key([row[key] for key in keys])
        before = first_seen.setdefault(label, number)
        if before != number:
            raise TableError(
                f"id {shown(label)} stands already in row {before}",
                place=place,
                remedy='make ids unique, or name several fields: items.id = ["question", "opponent"]',
            )
        gold = row[items.gold] if items.gold else ""
        if gold and gold not in spec.verdict.classes:
            raise TableError(
                f"gold '{items.gold}' is {shown(gold)}",
                place=place,
                remedy=f"use the words of verdict.classes ({', '.join(spec.verdict.classes)}), or leave it empty",
            )
        stratum = row[items.stratum] if items.stratum else ""
        if items.stratum and not stratum:
            raise TableError(f"stratum '{items.stratum}' is empty", place=place, remedy="name the item's stratum")
        yield Item(label, {name: row[name] for name in used}, stratum, gold)
