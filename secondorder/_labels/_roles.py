"""What the columns of a table are for, checked before anything is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from secondorder._canon import join_key
from secondorder._design import Facet
from secondorder._labels._cube import RESERVED_NAMES
from secondorder._schema import BOTTOM
from secondorder.errors import DesignError, TableError

__all__ = ["Condition", "Roles", "conditions", "declare"]


@dataclass(frozen=True)
class Condition:
    """A condition on rows: a column equals a value, or differs from it."""

    column: str
    equal: bool
    value: str

    def __str__(self) -> str:
        return f"{self.column}{'=' if self.equal else '!='}{self.value}"


@dataclass(frozen=True)
class Roles:
    """Columns and labels as they were declared."""

    item: tuple[str, ...]
    facets: tuple[Facet, ...]
    repeat: str | None
    verdict: str
    by: tuple[str, ...]
    stratum: str | None
    gold: str | None
    coords: tuple[str, ...]
    where: tuple[Condition, ...]
    classes: tuple[str, ...] | None
    invalid: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def group(self) -> str | None:
        """Name of the group dimension."""
        return join_key(self.by) if self.by else None

    def columns(self) -> list[str]:
        """Every column that is read, once."""
        named = [*self.item, *(facet.name for facet in self.facets), self.repeat, self.verdict, *self.by]
        named += [self.stratum, self.gold, *self.coords, *(condition.column for condition in self.where)]
        return list(dict.fromkeys(name for name in named if name is not None))

    def as_words(self) -> dict[str, Any]:
        """Role to column, for the record."""
        return {
            "item": list(self.item),
            "facets": [facet.name for facet in self.facets],
            "repeat": self.repeat,
            "verdict": self.verdict,
            "by": list(self.by),
            "stratum": self.stratum,
            "gold": self.gold,
            **({"coords": list(self.coords)} if self.coords else {}),
        }


def declare(
    *,
    item: str | Sequence[str],
    facets: str | Facet | Sequence[str | Facet],
    repeat: str | None,
    verdict: str,
    classes: Sequence[str] | None,
    invalid: str | Sequence[str],
    missing: str | Sequence[str],
    stratum: str | None,
    gold: str | None,
    coords: str | Sequence[str],
    by: str | Sequence[str] | None,
    where: str | Sequence[str],
    number_repeats: bool,
    random: str | Sequence[str],
    weights: Mapping[str, Mapping[str, float]] | None,
) -> Roles:
    """Turn arguments into roles.

    Raises
    ------
    TableError
        When a role is empty or two roles share a column, or when labels contradict each other.
    DesignError
        When a facet cannot be declared so.
    """
    if number_repeats and repeat is not None:
        raise TableError(
            f"repeat is column {repeat!r}, and the repeats are to be numbered",
            place="repeat",
            remedy="name the column, or number the rows of a cell, not both",
        )
    if repeat is None and not number_repeats:
        raise TableError(
            "no column numbers the repeats",
            place="repeat",
            remedy="name it, or say number_repeats=True, which cannot see duplicate rows",
        )
    roles = Roles(
        item=_names(item, "item"),
        facets=_facets(facets, _names(random, "random"), weights or {}),
        repeat=repeat,
        verdict=verdict,
        by=() if by is None else _names(by, "by"),
        stratum=stratum,
        gold=gold,
        coords=_names(coords, "coords"),
        where=conditions(where),
        classes=None if classes is None else _classes(classes),
        invalid=_names(invalid, "invalid"),
        missing=_names(missing, "missing"),
    )
    if not roles.item:
        raise TableError("no column identifies the item", place="item", remedy="name one column, or several")
    if not roles.facets:
        raise TableError("no facet is named", place="facets", remedy="name at least one crossed column, such as prompt")
    _check_columns(roles)
    _check_labels(roles)
    if roles.classes is not None and BOTTOM in roles.classes:
        # Naming ⊥ among the classes declares that the label ⊥ means invalid.
        return replace(roles, classes=roles.classes[:-1], invalid=(*roles.invalid, BOTTOM))
    return roles


def _names(value: Any, role: str) -> tuple[str, ...]:
    """One text or several, as a tuple."""
    if isinstance(value, str):
        return (value,)
    names = tuple(value) if isinstance(value, Iterable) else (value,)
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise TableError(f"{odd!r} is a {type(odd).__name__}, not text", place=role, remedy="write names as text")
    return names


def _facets(facets: Any, random: tuple[str, ...], weights: Mapping[str, Mapping[str, float]]) -> tuple[Facet, ...]:
    listed = [facets] if isinstance(facets, str | Facet) else list(facets)
    names = [facet.name if isinstance(facet, Facet) else facet for facet in listed]
    for option, given in (("random", random), ("weights", tuple(weights))):
        unknown = [name for name in given if name not in names]
        if unknown:
            raise DesignError(
                f"{unknown[0]!r} is not a facet", place=option, remedy=f"the facets are {', '.join(map(str, names))}"
            )
    found = []
    for facet in listed:
        declared = facet if isinstance(facet, Facet) else Facet(_names(facet, "facets")[0])
        found.append(
            Facet(
                declared.name,
                kind="random" if declared.name in random else declared.kind,
                weights=weights.get(declared.name, declared.weights),
                population=declared.population,
            )
        )
    return tuple(found)


def conditions(where: str | Sequence[str]) -> tuple[Condition, ...]:
    """Conditions from their texts, ``COLUMN=VALUE`` or ``COLUMN!=VALUE``."""
    return tuple(_condition(text) for text in _names(where, "where"))


def _condition(text: str) -> Condition:
    column, equals, value = text.partition("=")
    if not equals or column in ("", "!"):
        raise TableError(f"{text!r} is not a condition", place="where", remedy="write COLUMN=VALUE or COLUMN!=VALUE")
    return Condition(column.removesuffix("!"), not column.endswith("!"), value)


def _classes(classes: Any) -> tuple[str, ...]:
    if isinstance(classes, str):
        raise TableError(f"classes is the text {classes!r}", place="classes", remedy="give a list of labels, in order")
    # Whole numbers are what range() gives; anything else has to be written as it stands in the table.
    names = tuple(str(label) if type(label) is int else label for label in classes)
    return _names(names, "classes")


def _check_columns(roles: Roles) -> None:
    uses: dict[str, str] = {}
    named = [("item", name) for name in roles.item]
    named += [("a facet", facet.name) for facet in roles.facets]
    named += [("the repeat", roles.repeat or ""), ("the verdict", roles.verdict)]
    named += [("by", name) for name in roles.by]
    for role, name in named:
        if name and name in uses:
            raise TableError(
                f"column {name!r} is both {uses[name]} and {role}", place="columns", remedy="give every role its own"
            )
        uses[name] = role
    for name in (*(facet.name for facet in roles.facets), *([roles.group] if roles.group else [])):
        if name in RESERVED_NAMES or "/" in name:
            raise TableError(
                f"a facet or group cannot be called {name!r}",
                place="columns",
                remedy="rename the column: a cube uses that name itself, or cannot store a '/' in it",
            )
    for name in roles.coords:
        if name in RESERVED_NAMES or "/" in name or roles.coords.count(name) > 1:
            raise TableError(
                f"a coordinate cannot be called {name!r}",
                place="coords",
                remedy="name each column once; rename it where a cube uses that name itself",
            )
    properties = [("stratum", roles.stratum), ("gold", roles.gold), *(("a coordinate", name) for name in roles.coords)]
    for role, column in properties:
        if column is not None and uses.get(column, "item") != "item":
            raise TableError(
                f"column {column!r} is both {uses[column]} and {role}",
                place="columns",
                remedy=f"{role} is a property of the item: name a column that is constant within it",
            )


def _check_labels(roles: Roles) -> None:
    uses: dict[str, str] = {}
    for role, labels in (("classes", roles.classes or ()), ("invalid", roles.invalid), ("missing", roles.missing)):
        for label in labels:
            if label in uses:
                raise TableError(
                    f"label {label!r} stands in {uses[label]} and in {role}"
                    if uses[label] != role
                    else f"label {label!r} stands twice",
                    place=role,
                    remedy="a verdict has one meaning: a class, invalid, or missing",
                )
            uses[label] = role
    if roles.classes is None:
        return
    if "" in roles.classes:
        raise TableError(
            "the empty text cannot be a class", place="classes", remedy='declare invalid=[""] or missing=[""]'
        )
    if not [label for label in roles.classes if label != BOTTOM]:
        raise TableError("no valid class is declared", place="classes", remedy="list the labels of valid verdicts")
    if BOTTOM in roles.classes[:-1]:
        raise TableError(
            f"{BOTTOM!r} is not the last class", place="classes", remedy=f"put {BOTTOM} last, or declare it as invalid"
        )
