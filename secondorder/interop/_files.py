"""JSON and JSON lines, plain or gzipped, with the place of every record; fields by their dotted path."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from secondorder.errors import InputError, SecondOrderError, TableError

__all__ = [
    "ABSENT",
    "Paths",
    "Source",
    "as_list",
    "as_object",
    "json_lines",
    "json_value",
    "listed",
    "needed",
    "pick",
    "pick_or",
    "record_of",
    "short",
    "sources",
]

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""One file, or several that are read as one log."""

ABSENT: Any = object()
"""What :func:`pick` gives where there is no such field."""


class Source:
    """A file that has been read.

    Attributes
    ----------
    path : Path
    name : str
        For messages.
    sha256 : str
        Of the stored bytes.
    text : str
        Empty for a file that another reader opens.
    """

    def __init__(self, path: str | os.PathLike[str], *, text: bool = True) -> None:
        self.path = Path(path)
        self.name = self.path.name
        try:
            stored = self.path.read_bytes()
        except OSError as fault:
            why = (
                "there is no such file"
                if isinstance(fault, FileNotFoundError)
                else f"cannot be read ({fault.strerror})"
            )
            raise InputError(why, place=str(self.path), remedy="check the path") from None
        self.sha256 = hashlib.sha256(stored).hexdigest()
        self.text = ""
        if not text:
            return
        try:
            self.text = (gzip.decompress(stored) if self.name.endswith(".gz") else stored).decode("utf-8-sig")
        except (OSError, EOFError, zlib.error, UnicodeDecodeError) as fault:
            remedy = "copy or export it again"
            raise TableError(f"this is not {_wanted(self.name)} ({fault})", place=self.name, remedy=remedy) from None


def _wanted(name: str) -> str:
    return "gzipped UTF-8 text" if name.endswith(".gz") else "UTF-8 text"


def listed(paths: Paths) -> list[Path]:
    """One path or several, as a list.

    Raises
    ------
    InputError
        When there is none.
    """
    found = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not found:
        raise InputError("no file is given", place="path", remedy="give the path of a log, or several")
    return [Path(path) for path in found]


def sources(paths: Paths) -> list[Source]:
    """The files, in the order given.

    Raises
    ------
    InputError
        When there is none, or one is not there.
    """
    return [Source(path) for path in listed(paths)]


def json_value(source: Source) -> Any:
    """The JSON value that a file holds; NaN and infinities, which some tools write, are read.

    Raises
    ------
    TableError
        Naming the line at fault.
    """
    try:
        return json.loads(source.text)
    except json.JSONDecodeError as fault:
        lines = source.text.lstrip().count("\n") > 0 and fault.msg == "Extra data"
        remedy = "it looks like JSON lines: give the tool's .json file" if lines else "export it again"
        raise TableError(f"not JSON: {fault.msg}", place=f"{source.name} line {fault.lineno}", remedy=remedy) from None
    except RecursionError:
        raise TableError("nested too deeply", place=source.name, remedy="export it again") from None


def json_lines(source: Source) -> Iterator[tuple[str, dict[str, Any]]]:
    """The object on every line that is not blank, with its place.

    Raises
    ------
    TableError
        Naming the line at fault.
    """
    for number, line in enumerate(source.text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{source.name} line {number}"
        try:
            record = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as fault:
            reason = fault.msg if isinstance(fault, json.JSONDecodeError) else "nested too deeply"
            remedy = "was the tool stopped while it wrote? remove the line" if number > 1 else "give a JSON lines file"
            raise TableError(f"not JSON: {reason}", place=place, remedy=remedy) from None
        yield place, as_object(record, place)


def as_object(value: Any, place: str) -> dict[str, Any]:
    """A value that has to be an object.

    Raises
    ------
    TableError
    """
    if not isinstance(value, dict):
        raise TableError(f"this is {_kind(value)}, not an object", place=place, remedy="give the tool's own log")
    return value


def as_list(value: Any, place: str) -> list[Any]:
    """A value that has to be a list.

    Raises
    ------
    TableError
    """
    if not isinstance(value, list):
        raise TableError(f"this is {_kind(value)}, not a list", place=place, remedy="give the tool's own log")
    return value


@contextmanager
def record_of(tool: str, place: str) -> Iterator[None]:
    """Say where a record has not the form that a tool writes, instead of how the reading of it broke.

    Raises
    ------
    TableError
    """
    try:
        yield
    except SecondOrderError:
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as fault:
        raise TableError(
            f"the record has not the form that {tool} writes ({type(fault).__name__}: {fault})",
            place=place,
            remedy="is it that tool's log, as the tool wrote it?",
        ) from fault


def pick(record: Any, path: str) -> Any:
    """The field at a dotted path (numbers index lists); :data:`ABSENT` where there is none.

    Examples
    --------
    >>> pick({"a": [{"b": 7}]}, "a.0.b"), pick({"a": 1}, "a.b") is ABSENT
    (7, True)
    """
    for key in path.split("."):
        if isinstance(record, Mapping) and key in record:
            record = record[key]
        elif isinstance(record, list) and key.isdigit() and int(key) < len(record):
            record = record[int(key)]
        else:
            return ABSENT
    return record


def pick_or(record: Any, path: str, default: Any) -> Any:
    """The field at a dotted path, or a default where there is none."""
    value = pick(record, path)
    return default if value is ABSENT else value


def needed(record: Mapping[str, Any], path: str, place: str) -> Any:
    """The field at a dotted path.

    Raises
    ------
    TableError
        When there is none; the fields that are there are listed.
    """
    value = pick(record, path)
    if value is ABSENT:
        fields = ", ".join(map(str, list(record)[:15]))
        raise TableError(f"there is no {path!r}", place=place, remedy=f"its fields are {fields}; is it another log?")
    return value


def short(value: Any) -> str:
    """A field as one label: text as it stands, a whole float without its zero, anything with parts as JSON.

    Examples
    --------
    >>> short("a"), short(8), short(8.0), short(7.5), short(True), short(None), short([1, "b"])
    ('a', '8', '8', '7.5', 'true', '', '[1, "b"]')
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def digest(value: Any, length: int = 16) -> str:
    """Hex digits that name a value with parts."""
    return hashlib.sha256(short(value).encode("utf-8", "surrogatepass")).hexdigest()[:length]


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(value), "null")
