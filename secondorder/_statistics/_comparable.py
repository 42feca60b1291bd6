"""Whether decompositions can be compared: the declarations that have to agree, and those that a reader has to know."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from secondorder._labels._results import Table
from secondorder._statistics._group import Group
from secondorder.errors import InputError

__all__ = [
    "difference_table",
    "differing_declarations",
    "label_of",
    "one_of_groups",
    "refuse_other_declarations",
    "shared_strata",
    "told_apart",
]


def label_of(by: Mapping[str, str]) -> str:
    """What a group is called in a table."""
    return ", ".join(by.values()) if by else "all"


def difference_table(
    pairs: Sequence[tuple[Mapping[str, str], Mapping[str, str]]],
    columns: Sequence[str],
    rows: Sequence[tuple[str, *tuple[float, ...]]],
    notes: tuple[str, ...],
) -> Table:
    """Differences, a row each: a single pair is named above them, several in columns of their own."""
    if len(set(map(str, pairs))) == 1:
        a, b = map(label_of, pairs[0])
        return Table(f"Differences {a} - {b}", ("component", *columns), tuple(rows), notes)
    named = ((row[0], label_of(a), label_of(b), *row[1:]) for (a, b), row in zip(pairs, rows, strict=True))
    return Table("Differences a - b", ("component", "a", "b", *columns), tuple(named), notes)


def one_of_groups(groups: Sequence[Group]) -> str:
    """How a caller gets to one of several groups, with labels that exist."""
    by = groups[0].by
    flags = " ".join(f"--where {shlex.quote(f'{name}={value}')}" for name, value in by.items())
    labels = ", ".join(f"{name}={value!r}" for name, value in by.items())
    return f"keep one, such as {flags} of a table; in Python cube.sel({labels}) or decomposition.select({labels})"


def told_apart(groups: Sequence[Group]) -> list[Group]:
    """The groups; numbered by position where their labels do not tell them apart."""
    labels = [tuple(group.by.items()) for group in groups]
    if len(set(labels)) == len(labels) and () not in labels:
        return list(groups)
    return [replace(group, by={**group.by, "decomposition": str(k + 1)}) for k, group in enumerate(groups)]


def refuse_other_declarations(first: Group, other: Group) -> None:
    """Refuse two groups whose numbers mean different things.

    Raises
    ------
    InputError
        When components, kernel, classes, the meaning of ⊥, or the kinds of facets differ.
    """
    if other.components != first.components:
        raise InputError(
            f"components {list(other.names)} of {label_of(other.by)} differ from {list(first.names)}",
            place="compare",
            remedy="decompose every group with the same facets and components",
        )
    if (
        not np.array_equal(other.calls.kernel, first.calls.kernel)
        or other.settings.classes != first.settings.classes
        or other.settings.invalid_as != first.settings.invalid_as
    ):
        raise InputError(
            f"{label_of(other.by)} was decomposed under another kernel or other classes than {label_of(first.by)}",
            place="compare",
            remedy="declare the same classes, kernel and meaning of ⊥",
        )
    if other.design.populations != first.design.populations:
        raise InputError(
            f"a facet is fixed in {label_of(first.by)} and random in {label_of(other.by)}, or drawn from another list",
            place="compare",
            remedy="declare the facets alike",
        )


def differing_declarations(groups: Sequence[Group]) -> tuple[str, ...]:
    """Differences of declaration under which groups can be compared, but of which a reader has to know."""
    first, notes = groups[0], []
    for name in first.design.names:
        place = first.design.names.index(name)
        levels = {(group.facets[name].levels, group.design.weights[place]) for group in groups}
        if len(levels) > 1 and first.design.populations[place] is None:
            notes.append(f"facet {name} has other levels or weights in some groups: their targets differ")
    pairs = dict.fromkeys(group.settings.pairs for group in groups)
    if len(pairs) > 1:
        notes.append(f"pairs of calls differ: {', '.join(pairs)}")
    soft = [label_of(group.by) for group in groups if group.calls.soft is not None]
    if 0 < len(soft) < len(groups):
        notes.append(f"soft verdicts in {', '.join(soft)} alone: call and total of the others hold the drawing as well")
    return tuple(notes)


def shared_strata(groups: Sequence[Group], rows: Sequence[NDArray[np.int64]]) -> NDArray[np.int64] | None:
    """Strata of the shared items as numbers; None where no group has any.

    Parameters
    ----------
    groups : sequence of Group
    rows : sequence of array of int
        Positions of the shared items in each group.

    Raises
    ------
    InputError
        When an item changes its stratum.
    """
    declared = [
        np.asarray(group.strata, dtype=object)[index]
        for group, index in zip(groups, rows, strict=True)
        if group.strata is not None
    ]
    if not declared:
        return None
    for other in declared[1:]:
        changed = np.flatnonzero(other != declared[0])
        if len(changed):
            item = groups[0].items[rows[0][changed[0]]]
            raise InputError(
                f"item {item!r} is in stratum {declared[0][changed[0]]!r} and in {other[changed[0]]!r}",
                place="compare",
                remedy="give an item the same stratum in every group",
            )
    return np.unique(declared[0].astype(str), return_inverse=True)[1].astype(np.int64)
