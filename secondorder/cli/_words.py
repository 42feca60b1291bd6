"""Refusals in the words of the command line: where the package names an argument, the flag that sets it.

The package speaks to who calls it (``by='judge'``); here, and only here, that becomes ``--by judge``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from contextvars import ContextVar

from cyclopts import App, CycloptsError

from secondorder.errors import SecondOrderError

__all__ = ["in_flags", "running"]

running: ContextVar[tuple[App, Sequence[str]] | None] = ContextVar("running", default=None)
"""The command line that is being run, and what parses it."""

FLAGS = {
    "coefficients": ("--coefficient",),
    "controls": ("--control",),
    "coords": ("--coord",),
    "facets": ("--facet",),
    "factors": ("--factor",),
    "invalid": ("--invalid-as", "--invalid"),
    "rules": ("--rule",),
    "scales": ("--bounds",),
    "scores": ("--class-score", "--scores"),
    "signals": ("--signal",),
    "weights": ("--weights", "--weight"),
}
"""Flags that are not called as their argument; the first that a command has is meant."""

DIMENSIONS = frozenset({"item", "by", "facet", "judge", "match", "order", "prompt", "repeat", "system"})
"""Names of columns and dimensions: a bare number after them is a label, as in ``item=3, prompt=a``."""

_ARGUMENT = re.compile(
    r"(?<![\w.-])([a-z_]+)="
    r"('[^']*'|\"[^\"]*\"|\[[^]]*\]|\{[^}]*\}|\([^)]*\)|True|-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan|inf)|)"
    r"(?![\w-]|\.\d)"
)
"""An argument with its value; a bare word is a label of the data."""
_ENTRY_PLACE = re.compile(r"(\w+)\['([^']*)'\]")
"""One entry of an argument that is a mapping: ``se['prompt']``."""
_ENTRY = re.compile(r"\s*('[^']*'|\w+): (.+)")


def _flags() -> list[str]:
    """Flags of the command that is being run."""
    if (now := running.get()) is None:
        return []
    try:
        _, apps, _ = now[0].parse_commands(now[1])
        return [name for argument in apps[-1].assemble_argument_collection() for name in argument.names]
    except CycloptsError:
        return []


def in_flags(error: SecondOrderError, flags: Collection[str] | None = None) -> str:
    """The line of an error, with its arguments as flags where the command (by default the running one) has them.

    Examples
    --------
    >>> error = SecondOrderError("draws=3", place="level", remedy="say covers='items', invalid=[''] or seed=0")
    >>> in_flags(error, ["--covers", "--draws", "--level", "--invalid"])
    "--level: --draws 3; say --covers items, --invalid '' or seed=0"
    >>> in_flags(SecondOrderError("give scores={class: number}"), ["--class-score"])
    'give --class-score CLASS=NUMBER'
    """
    known = _flags() if flags is None else flags

    def said(text: str) -> str:
        return _ARGUMENT.sub(lambda found: _flag(found[0], found[1], found[2], known), text)

    place = error.place and (_name(error.place, known) or said(error.place))
    if place and (entry := _ENTRY_PLACE.fullmatch(place)) and (flag := _name(entry[1], known)):
        place = f"{flag} {entry[2]}"
    return str(SecondOrderError(said(error.problem), place=place, remedy=error.remedy and said(error.remedy)))


def _name(argument: str, flags: Collection[str]) -> str:
    """The flag that sets an argument; empty where the command has none."""
    names = FLAGS.get(argument, (f"--{argument.replace('_', '-')}",))
    return next((name for name in names if name in flags), "")


def _flag(text: str, argument: str, value: str, flags: Collection[str]) -> str:
    # Labels that mean ⊥ are a list; what ⊥ is, is a word.
    name = "--invalid" if argument == "invalid" and value.startswith("[") else _name(argument, flags)
    if argument == "kind" and value == "'random'":
        name, value = "--random", "COL"
    if name not in flags or (argument in DIMENSIONS and value.strip("-")[:1].isdigit()):
        return text
    return name if value in ("", "True") else f"{name} {_typed(value)}"


def _typed(value: str) -> str:
    """A value as it is typed in a shell."""
    inside = value[1:-1]
    if value[0] == "{" and (entry := _ENTRY.fullmatch(inside)):
        key, content = entry[1], entry[2].strip("()").replace(" ", "").upper()
        return f"{key.strip(chr(39)) if key[0] == chr(39) else key.upper()}={content}"
    if value[0] == "[":
        return "LABEL" if inside == "..." else shlex.quote(inside.strip("'\""))
    if value[0] == "(":
        return inside.replace(" ", "")
    return shlex.quote(inside) if value[0] in "'\"" else value
