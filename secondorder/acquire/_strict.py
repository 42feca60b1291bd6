"""From parsed TOML to frozen structures: every key and value is checked, every refusal names place, value and remedy.

msgspec checks the values; this module walks the tables so that a refusal can say which table it stands in, which key
was probably meant, and what would be accepted.
"""

from __future__ import annotations

import difflib
import math
import types
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from secondorder.acquire._spec import AuditSpec
from secondorder.errors import SpecError

__all__ = ["Place", "build", "shown"]

T = TypeVar("T", bound=msgspec.Struct)

MAX_SHOWN = 60


class Place:
    """Where in the file: prints as ``audit.toml [judges.mine]``."""

    def __init__(self, file: str, path: tuple[str, ...] = ()) -> None:
        self.file = file
        self.path = path

    def __truediv__(self, key: str) -> Place:
        return Place(self.file, (*self.path, key))

    def __str__(self) -> str:
        return f"{self.file} [{'.'.join(self.path)}]" if self.path else self.file


def shown(value: object) -> str:
    """A value as a reader knows it from the file, cut to a readable length."""
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, str):
        text = f'"{value}"'
    elif isinstance(value, dict):
        text = "a table"
    else:
        text = str(value)
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def build(kind: type[T], raw: object, place: Place) -> T:
    """Make a structure from a parsed table.

    Raises
    ------
    SpecError
        On an unknown key (with the nearest known one), a missing key, or a value of another kind.
    """
    if not isinstance(raw, dict):
        raise SpecError(f"{_last(place)} is {shown(raw)}", place=str(place), remedy=f"write {words(kind)}")
    hints = hints_of(kind)
    for key in raw:
        if key not in hints:
            raise SpecError(f"unknown key '{key}'", place=str(place), remedy=_nearest(key, tuple(hints)))
    required = {field.name for field in msgspec.structs.fields(kind) if field.required}
    for key in hints:
        if key in required and key not in raw:
            raise SpecError(f"key '{key}' is missing", place=str(place), remedy=f"give {words(hints[key])}")
    return kind(**{key: _value(hints[key], value, place, key) for key, value in raw.items()})


def _value(kind: Any, raw: object, place: Place, key: str) -> Any:
    options = _options(kind)
    if isinstance(raw, dict):
        for option in options:
            if _is_struct(option):
                return build(option, raw, place / key)
            if get_origin(option) is dict and get_args(option)[1] is not Any:
                inner = get_args(option)[1]
                return {name: _value(inner, value, place / key, name) for name, value in raw.items()}
    if isinstance(raw, list):
        for option in options:
            if get_origin(option) is list and _is_struct(get_args(option)[0]):
                inner = get_args(option)[0]
                return [build(inner, value, place / f"{key} {number}") for number, value in enumerate(raw, 1)]
    _check_plain(raw, place, key)
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError:
        raise SpecError(f"{key} is {shown(raw)}", place=str(place), remedy=f"give {words(kind)}") from None


def _check_plain(raw: object, place: Place, key: str) -> None:
    """Only what JSON can hold: no dates, no NaN, no infinity, at any depth."""
    if isinstance(raw, dict):
        for name, value in raw.items():
            _check_plain(value, place, f"{key}.{name}")
    elif isinstance(raw, list):
        for value in raw:
            _check_plain(value, place, key)
    elif isinstance(raw, float) and not math.isfinite(raw):
        raise SpecError(f"{key} is {raw}", place=str(place), remedy="give a finite number")
    elif not isinstance(raw, str | int | float | bool):
        raise SpecError(
            f"{key} is the date or time {raw}", place=str(place), remedy="write it as text, between quotation marks"
        )


@cache
def hints_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Types of a structure's fields, in the order of the fields."""
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in msgspec.structs.fields(kind)}


def _options(kind: Any) -> tuple[Any, ...]:
    """The alternatives of a union, without `Annotated` around them."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _options(get_args(kind)[0])
    if origin is Union or origin is types.UnionType:
        return tuple(option for member in get_args(kind) for option in _options(member))
    return (kind,)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _last(place: Place) -> str:
    return place.path[-1] if place.path else "the file"


def _nearest(key: str, known: tuple[str, ...]) -> str:
    word = key.lower().replace("-", "_")
    homes = [home for home, keys in _homes().items() if key in keys]
    for cutoff in (0.8, 0.5):
        close = difflib.get_close_matches(word, known, n=1, cutoff=cutoff)
        if close:
            return f"did you mean '{close[0]}'?"
        if homes:  # a whole key in the wrong table is likelier than a far misspelling
            return f"'{key}' belongs in [{homes[0]}]"
    return f"known keys: {', '.join(known)}"


@cache
def _homes() -> dict[str, tuple[str, ...]]:
    homes: dict[str, tuple[str, ...]] = {}
    for name, kind in hints_of(AuditSpec).items():
        for option in _options(kind):
            if _is_struct(option):
                homes[name] = tuple(hints_of(option))
            elif get_origin(option) is dict and _is_struct(get_args(option)[1]):
                homes[f"{name}.NAME"] = tuple(hints_of(get_args(option)[1]))
    return homes


def words(kind: Any) -> str:
    """What a field accepts, in words.

    Examples
    --------
    >>> words(Annotated[int, msgspec.Meta(ge=1)]), words(Literal["AB", "BA"])
    ('a whole number from 1', '"AB" or "BA"')
    """
    origin = get_origin(kind)
    if origin is Annotated:
        plain, *metas = get_args(kind)
        return words(plain) + "".join(_bounds(meta, plain) for meta in metas)
    if origin is Literal:
        return _either([f'"{value}"' for value in get_args(kind)])
    if origin is Union or origin is types.UnionType:
        return _either([words(member) for member in get_args(kind) if member is not type(None)])
    if origin is list:
        return f"a list, each {words(get_args(kind)[0])}"
    if origin is tuple:
        return f"a list of {len(get_args(kind))}, each {words(get_args(kind)[0])}"
    if origin is dict:
        return "a table"
    if _is_struct(kind):
        return f"a table with the keys {', '.join(hints_of(kind))}"
    return {str: "text", int: "a whole number", float: "a number", bool: "true or false"}[cast(type, kind)]


def _either(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} or {parts[-1]}"


def _bounds(meta: msgspec.Meta, plain: Any) -> str:
    if meta.pattern is not None:
        return " of at most 100 letters, digits, '.', '_' and '-' that begins with a letter or a digit"
    if meta.min_length is not None:
        return ", not empty"
    if meta.gt is not None and meta.lt is not None:
        return f" between {meta.gt} and {meta.lt}"
    if meta.gt is not None:
        return f" above {meta.gt}"
    if meta.le is not None:
        return f" from {meta.ge or 0} to {'2^53' if meta.le == 2**53 else meta.le}"
    return f" from {meta.ge}" if meta.ge else ", not negative"
