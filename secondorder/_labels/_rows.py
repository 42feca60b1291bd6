"""Text columns to a cube: codes, checks and one scatter; no loop over rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from secondorder._design import Facet
from secondorder._labels._attributes import Parent
from secondorder._labels._checks import INVALID, NO_COMPLETION, NOT_CALLED, VALID
from secondorder._labels._columns import Column, IntArray, Rows, as_numbers, natural_order, shown, stack
from secondorder._labels._cube import new_cube, smallest_int
from secondorder._labels._roles import Condition, Roles
from secondorder._schema import BOTTOM, CODE_MISSING, ITEM, REASONS, REPEAT
from secondorder.errors import TableError

__all__ = ["cube_of_rows", "filtered"]

SHOWN = 5
"""Rows that a message lists before it counts the rest."""
MOST_FOUND_CLASSES = 1000
LARGE_GRID, EMPTIEST = 1 << 24, 64
"""A grid of more cells than this, and of more than this many cells per row, is a mistake in the columns."""

ABSENT, DECLARED = REASONS.index("absent"), REASONS.index("declared")


def cube_of_rows(rows: Rows, roles: Roles) -> xr.Dataset:
    """Lay the rows of a table out as a cube.

    Raises
    ------
    TableError
        When a label is not declared, rows repeat a call, or a property of an item is not constant.
    """
    if not rows.size:
        raise TableError("the table has a header and no rows", place=rows.name, remedy="give one row per call")
    _refuse_unstorable(rows)
    kept = filtered(rows, roles.where)
    verdict = kept.columns[roles.verdict]
    classes, declared_invalid = _alphabet(kept, verdict, roles)
    axes = _axes(kept, roles)
    shape = tuple(len(axis.labels) for axis in axes.values())
    _refuse_large_grid(rows, roles, axes)
    cells = _cells(axes, shape)
    if roles.repeat is None:
        axes[REPEAT] = _numbered(cells)
        shape = (*shape, len(axes[REPEAT].labels))
        cells = cells * shape[-1] + axes[REPEAT].codes
    else:
        _refuse_duplicates(kept, axes, cells, math.prod(shape))
    codes, status, reason = _scattered(verdict, cells, shape, classes, declared_invalid, roles)
    if roles.group is not None:
        _mark_foreign(status, reason, axes, roles.group)
    items = axes[ITEM]
    with_bottom = bool(declared_invalid)
    return new_cube(
        codes,
        labels={name: axis.labels for name, axis in axes.items()},
        classes=(*classes, BOTTOM) if with_bottom else classes,
        facets=_bound(roles.facets, axes),
        status=status,
        reason=reason,
        stratum=_property(kept, roles.stratum, "stratum", items),
        gold=_gold(kept, roles, items),
        coords={name: as_numbers(_property(kept, name, "coordinate", items) or []) for name in roles.coords},
        attributes={
            **({"by": list(roles.by)} if roles.by else {}),
            "classes_declared": roles.classes is not None,
            "invalid": list(declared_invalid),
            "missing": list(roles.missing),
            "repeats_numbered": roles.repeat is None,
            "independence": "untestable",
            "parent": Parent(
                name=rows.name,
                sha256=rows.sha256,
                rows=rows.size,
                rows_used=kept.size,
                where=tuple(str(condition) for condition in roles.where),
                columns=roles.as_words(),
            ),
        },
    )


def _refuse_unstorable(rows: Rows) -> None:
    """Labels that no file can hold: NUL, and half of a character pair (JSON escapes can write both)."""
    for name, column in rows.columns.items():
        if _storable("".join(column.labels)):
            continue
        label = next(label for label in column.labels if not _storable(label))
        raise TableError(
            f"column {name!r} holds {label[:60]!r}, which is not text",
            place=_place(rows, _first_row(column, label)),
            remedy="remove NUL characters and unpaired surrogates",
        )


def _storable(text: str) -> bool:
    try:
        return b"\0" not in text.encode("utf-8")
    except UnicodeEncodeError:
        return False


def filtered(rows: Rows, where: Sequence[Condition]) -> Rows:
    """The rows on which all conditions hold."""
    if not where:
        return rows
    keep = np.ones(rows.size, dtype=bool)
    for condition in where:
        column = rows.columns[condition.column]
        equal = np.array([label == condition.value for label in column.labels])
        if not equal.any():
            # Both leave no doubt that the value is wrong: = would keep no row, and != would drop none.
            raise TableError(
                f"no row has {condition}" if condition.equal else f"no row is dropped by {condition}",
                place=f"{rows.name} column {condition.column!r}",
                remedy=f"its values: {_some(sorted(column.labels))}",
            )
        keep &= equal[column.codes] == condition.equal
    kept = np.flatnonzero(keep)
    if not kept.size:
        raise TableError(
            f"no row is left where {' and '.join(map(str, where))}", place=rows.name, remedy="drop a condition"
        )
    columns = {name: column.take(kept) for name, column in rows.columns.items()}
    return replace(
        rows,
        size=kept.size,
        columns=columns,
        place=lambda positions: rows.place([int(kept[position]) for position in positions]),
    )


def _plain(label: str) -> str:
    """A label without what a hand or a program changes by mistake: case, and blanks around it."""
    return label.strip().casefold()


def _some(labels: Sequence[str], most: int = 10) -> str:
    listed = ", ".join(shown(label) for label in labels[:most])
    return listed if len(labels) <= most else f"{listed} and {len(labels) - most} more"


def _alphabet(rows: Rows, verdict: Column, roles: Roles) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Valid classes in order, and the labels that mean ⊥ (the label ⊥ itself always does)."""
    invalid = roles.invalid
    if BOTTOM in verdict.labels and BOTTOM not in (*invalid, *roles.missing):
        invalid = (*invalid, BOTTOM)
    others = [label for label in verdict.labels if label not in (*invalid, *roles.missing)]
    if "" in others:
        row = _first_row(verdict, "")
        raise TableError(
            f"column {roles.verdict!r} is empty{_so_do(_count(verdict, '') - 1)}",
            place=_place(rows, row),
            remedy='say what an empty verdict means: invalid=[""] (completed, ⊥) or missing=[""] (no completion)',
        )
    if roles.classes is not None:
        unknown = [label for label in others if label not in roles.classes]
        if unknown:
            label = min(unknown, key=lambda name: _first_row(verdict, name))
            more = sum(_count(verdict, name) for name in unknown) - 1
            meant = next((name for name in roles.classes if _plain(name) == _plain(label)), None)
            remedy = (
                f"the classes are {_some(roles.classes)}: add it to them, or declare it "
                "as an invalid label (invalid=[...]: ⊥) or a missing one (missing=[...])"
            )
            if meant is not None:
                remedy = f"it differs from the class {shown(meant)} in case or blanks only: mend the file"
            raise TableError(
                f"verdict {shown(label)} is not a declared class{_so_do(more)}"
                f"{f' (not declared: {_some(sorted(unknown))})' if len(unknown) > 1 else ''}",
                place=_place(rows, _first_row(verdict, label)),
                remedy=remedy,
            )
        return roles.classes, invalid
    if not others:
        raise TableError(
            "every verdict is declared invalid or missing",
            place=f"{rows.name} column {roles.verdict!r}",
            remedy="name the valid labels in classes",
        )
    if len(others) > MOST_FOUND_CLASSES:
        raise TableError(
            f"column {roles.verdict!r} has {len(others)} different values",
            place=rows.name,
            remedy="is it the verdict? name the valid labels in classes",
        )
    return tuple(others[position] for position in natural_order(others)), invalid


def _so_do(more: int) -> str:
    return f", as in {more} more row{'s' * (more > 1)}" if more else ""


def _first_row(column: Column, label: str) -> int:
    return int((column.codes == column.labels.index(label)).argmax())


def _count(column: Column, label: str) -> int:
    return int((column.codes == column.labels.index(label)).sum())


def _place(rows: Rows, row: int) -> str:
    return f"{rows.name} {rows.place([row])[0]}"


def _axes(rows: Rows, roles: Roles) -> dict[str, Column]:
    """Dimension to the label of every row, in the order of the cube's dimensions."""
    axes = {roles.group: stack([rows.columns[name] for name in roles.by])} if roles.group is not None else {}
    axes[ITEM] = stack([rows.columns[name] for name in roles.item])
    for facet in roles.facets:
        axes[facet.name] = rows.columns[facet.name].sorted()
    if roles.repeat is not None:
        axes[REPEAT] = rows.columns[roles.repeat].sorted()
    return axes


def _cells(axes: dict[str, Column], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Position of every row in the flattened cube."""
    cells = np.zeros(len(next(iter(axes.values())).codes), dtype=np.int64)
    for axis, size in zip(axes.values(), shape, strict=True):
        cells *= size
        cells += axis.codes
    return cells


def _refuse_large_grid(rows: Rows, roles: Roles, axes: dict[str, Column]) -> None:
    size = math.prod(len(axis.labels) for axis in axes.values())
    if size <= max(LARGE_GRID, EMPTIEST * rows.size):
        return
    sizes = {name: len(axis.labels) for name, axis in axes.items() if name != ITEM}
    widest = max(sizes, key=lambda name: sizes[name])
    column = roles.repeat if widest == REPEAT else widest
    raise TableError(
        f"{rows.size} rows would lie in a grid of {size} calls: column {column!r} has {sizes[widest]} values",
        place=rows.name,
        remedy="a facet's levels and the repeats' labels are shared by the items: name other columns",
    )


def _numbered(cells: IntArray) -> Column:
    """Number of every row within its cell, in the order of the rows."""
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    sizes = np.diff(np.append(begins, len(cells)))
    numbers = np.empty(len(cells), dtype=np.int64)
    numbers[order] = np.arange(len(cells)) - np.repeat(begins, sizes)
    return Column(numbers, tuple(str(number) for number in range(int(sizes.max()))))


def _refuse_duplicates(rows: Rows, axes: dict[str, Column], cells: IntArray, size: int) -> None:
    taken = np.zeros(size, dtype=bool)
    taken[cells] = True
    extra = len(cells) - int(np.count_nonzero(taken))
    if not extra:
        return
    later = np.flatnonzero(pd.Series(cells).duplicated().to_numpy())[:SHOWN]
    listed = []
    for row in later.tolist():
        first = int((cells == cells[row]).argmax())
        call = ", ".join(f"{name}={shown(axis.labels[axis.codes[row]])}" for name, axis in axes.items())
        listed.append(f"{' and '.join(rows.place([first, row]))} ({call})")
    more = f" and {extra - len(later)} more" if extra > len(later) else ""
    raise TableError(
        f"{extra} row{'s repeat calls' if extra > 1 else ' repeats a call'} that an earlier row has: "
        f"{'; '.join(listed)}{more}",
        place=rows.name,
        remedy="keep one outcome per call, name the column that tells the rows apart (an item, facet or by column), "
        "or say number_repeats=True if they are separate calls",
    )


def _scattered(
    verdict: Column,
    cells: IntArray,
    shape: tuple[int, ...],
    classes: Sequence[str],
    invalid: Sequence[str],
    roles: Roles,
) -> tuple[NDArray[Any], NDArray[np.int8], NDArray[np.int8]]:
    """Class code, status and reason of every call of the grid."""
    meaning = {label: (code, VALID, 0) for code, label in enumerate(classes)}
    meaning |= {label: (len(classes), INVALID, DECLARED) for label in invalid}
    meaning |= dict.fromkeys(roles.missing, (CODE_MISSING, NO_COMPLETION, ABSENT))
    kind = smallest_int(len(classes) - (not invalid))
    per_label = np.array([meaning[label] for label in verdict.labels], dtype=np.int64)
    size = math.prod(shape)
    codes = np.full(size, CODE_MISSING, dtype=kind)
    status = np.full(size, NO_COMPLETION, dtype=np.int8)
    reason = np.full(size, ABSENT, dtype=np.int8)
    for column, grid in enumerate((codes, status, reason)):
        grid[cells] = per_label[:, column].astype(grid.dtype)[verdict.codes]
    return codes.reshape(shape), status.reshape(shape), reason.reshape(shape)


def _mark_foreign(status: NDArray[np.int8], reason: NDArray[np.int8], axes: dict[str, Column], group: str) -> None:
    """Items and repeats for which a group has no row at all were not called: they are no part of that group."""
    for name, other in ((ITEM, 1), (REPEAT, status.ndim - 1)):
        present = np.zeros((status.shape[0], status.shape[other]), dtype=bool)
        present[axes[group].codes, axes[name].codes] = True
        if not present.all():
            where = np.moveaxis(status, other, 1)
            where[~present] = NOT_CALLED
            np.moveaxis(reason, other, 1)[~present] = ABSENT


def _bound(facets: Sequence[Facet], axes: dict[str, Column]) -> list[Facet]:
    """The declared facets, after their weights have been held against the levels found."""
    for facet in facets:
        if len(axes[facet.name].labels) > 1 or facet.kind == "fixed":
            facet.bind(axes[facet.name].labels)
    return list(facets)


def _property(rows: Rows, name: str | None, role: str, items: Column) -> list[str] | None:
    """The value of a column for every item."""
    if name is None:
        return None
    column = rows.columns[name]
    of_item = np.empty(len(items.labels), dtype=np.int64)
    of_item[items.codes[::-1]] = column.codes[::-1]
    other = of_item[items.codes] != column.codes
    if other.any():
        row = int(other.argmax())
        item = items.codes[row]
        second = int(((items.codes == item) & (column.codes == of_item[item])).argmax())
        values = [shown(column.labels[column.codes[at]]) for at in (row, second)]
        raise TableError(
            f"{role} {name!r} of item {shown(items.labels[item])} is {values[0]} here and {values[1]} in "
            f"{rows.place([second])[0]}",
            place=_place(rows, row),
            remedy="it has to be constant within an item: repair it, or make it part of the item's key",
        )
    return [column.labels[code] for code in of_item.tolist()]


def _gold(rows: Rows, roles: Roles, items: Column) -> list[str] | None:
    """Gold labels in the words of the declared classes; the empty text is no label."""
    labels = _property(rows, roles.gold, "gold", items)
    if labels is None or roles.classes is None:
        return labels
    strange = next((position for position, label in enumerate(labels) if label not in (*roles.classes, "")), None)
    if strange is not None:
        row = int((items.codes == strange).argmax())
        raise TableError(
            f"gold label {shown(labels[strange])} is not a declared class",
            place=_place(rows, row),
            remedy=f"the classes are {_some(roles.classes)}; leave it empty where there is none",
        )
    return labels
