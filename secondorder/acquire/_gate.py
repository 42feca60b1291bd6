"""The gate of an audit: its file as plain data, and its signals of the items. What it decides is built above."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from secondorder._schema import GATE_SCHEMA, check_schema
from secondorder.acquire._strict import shown
from secondorder.errors import SpecError

__all__ = ["CALL_SIGNALS", "gate_fields", "gate_signals", "read_gate"]

CALL_SIGNALS = ("verdict", "judge", "order")
"""Signals that a call has itself."""

STRATUM = "stratum"
WORDS = "words:"


def read_gate(path: Path, *, place: str) -> dict[str, Any]:
    """The content of a gate's file.

    Raises
    ------
    SpecError, SchemaError
        When it cannot be read, or is no gate.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SpecError(f"file {shown(path.name)} cannot be read: {reason}", place=place, remedy=_TRAIN) from None
    except ValueError as error:
        raise SpecError(f"file {shown(path.name)} is no JSON: {error}", place=place, remedy=_TRAIN) from None
    check_schema(content.get("schema") if isinstance(content, dict) else None, GATE_SCHEMA, place=str(path))
    try:
        names = [content["first"], *content["others"], *(signal["name"] for signal in content["signals"])]
    except (KeyError, TypeError):
        names = [None]
    if not all(isinstance(name, str) for name in names):
        raise SpecError(f"file {shown(path.name)} holds no gate", place=place, remedy=_TRAIN)
    return dict(content)


_TRAIN = "train one: secondorder study gate INPUT --save gate.json"


def gate_fields(content: Mapping[str, Any]) -> list[str]:
    """Fields of the items that a gate looks at: named as they are, or counted in words as ``words:FIELD``."""
    names = [str(signal["name"]) for signal in content["signals"]]
    return [name.removeprefix(WORDS) for name in names if name not in (*CALL_SIGNALS, STRATUM)]


def gate_signals(
    content: Mapping[str, Any], fields: Sequence[Mapping[str, str]], strata: Sequence[str]
) -> dict[str, list[str | int]]:
    """The gate's signals of every item, from the items' fields and strata.

    Examples
    --------
    >>> content = {"signals": [{"name": "verdict"}, {"name": "words:question"}, {"name": "stratum"}]}
    >>> gate_signals(content, [{"question": "Is it so?"}], ["easy"])
    {'words:question': [3], 'stratum': ['easy']}
    """
    found: dict[str, list[str | int]] = {}
    for signal in content["signals"]:
        name = str(signal["name"])
        if name in CALL_SIGNALS:
            continue
        if name == STRATUM:
            found[name] = list(strata)
        elif name.startswith(WORDS):
            found[name] = [len(item[name.removeprefix(WORDS)].split()) for item in fields]
        else:
            found[name] = [item[name] for item in fields]
    return found
