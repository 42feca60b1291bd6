"""Both estimators against an independent run of the same cells with more repeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._checks import check_cube
from secondorder._labels._identity import cube_digest
from secondorder._labels._results import Table, printed, render_table
from secondorder._schema import REPEAT
from secondorder._statistics._decompose import decompose
from secondorder._statistics._group import Group
from secondorder._statistics._repeats import require_named_repeats
from secondorder.errors import InputError

__all__ = ["ReferenceReport", "compare_reference"]


@printed
@dataclass(frozen=True, eq=False)
class ReferenceReport:
    """Mean absolute error over items against a disjoint reference, beside the reference's own noise.

    Attributes
    ----------
    rows : tuple of tuple
        ``(by, component, depth, MAE of plug-in, MAE of debiased)`` for each prefix of repeats.
    halves : tuple of tuple
        ``(by, component, MAE of contiguous halves, MAE of interleaved halves)`` of the reference against itself.
    n_items : int
    """

    rows: tuple[tuple[Mapping[str, str], str, int, float, float], ...]
    halves: tuple[tuple[Mapping[str, str], str, float, float], ...]
    n_items: int

    def tables(self) -> tuple[Table, ...]:
        """Errors by depth, and the reference's own half-to-half errors."""
        errors = tuple((_text(by), name, depth, plug, debiased) for by, name, depth, plug, debiased in self.rows)
        halves = tuple((_text(by), name, one, other) for by, name, one, other in self.halves)
        return (
            Table(
                f"Mean absolute error over {self.n_items} items against the reference",
                ("group", "component", "R", "plug-in", "debiased"),
                errors,
            ),
            Table("Reference, half against half", ("group", "component", "contiguous", "interleaved"), halves),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "n_items": self.n_items,
            "errors": [
                {"by": dict(by), "component": name, "repeats": depth, "plugin": plug, "debiased": debiased}
                for by, name, depth, plug, debiased in self.rows
            ],
            "halves": [
                {"by": dict(by), "component": name, "contiguous": one, "interleaved": other}
                for by, name, one, other in self.halves
            ],
        }

    def __str__(self) -> str:
        return "\n\n".join(render_table(table) for table in self.tables())


def compare_reference(cube: xr.Dataset, reference: xr.Dataset, **declaration: Any) -> ReferenceReport:
    """Compare prefixes of a cube, by both estimators, with the debiased values of a disjoint higher-repeat cube.

    Parameters
    ----------
    cube, reference : Dataset
        The same items and cells; the reference from calls of its own.
    **declaration
        Facets, kernel and so on, as for :func:`secondorder.decompose`.

    Returns
    -------
    ReferenceReport

    Raises
    ------
    InputError
        When the two share no item, are the same calls, or their groups or components differ.

    Examples
    --------
    >>> import secondorder as so
    >>> def cube_of(calls):
    ...     rows = [
    ...         {"item": item, "prompt": prompt, "run": run, "verdict": verdict}
    ...         for item, answers in calls.items()
    ...         for prompt, verdicts in zip("pq", answers)
    ...         for run, verdict in enumerate(verdicts)
    ...     ]
    ...     return so.make_cube(
    ...         rows, item="item", facets="prompt", repeat="run", verdict="verdict", classes=["A", "B"]
    ...     )
    >>> cube = cube_of({"1": ["AB", "BB"], "2": ["AA", "AB"]})
    >>> reference = cube_of({"1": ["ABBA", "BBBA"], "2": ["AAAA", "ABAB"]})
    >>> so.compare_reference(cube, reference).rows[1]
    ({}, 'prompt', 2, 0.104..., 0.0625)
    """
    for part in (cube, reference):
        require_named_repeats(check_cube(part), "a reference comparison")
    if cube_digest(cube) == cube_digest(reference):
        raise InputError("it is the cube itself", place="reference", remedy="give calls of their own")
    if reference.sizes[REPEAT] < 4:
        raise InputError(
            f"it has {reference.sizes[REPEAT]} repeats", place="reference", remedy="its halves need two repeats each"
        )
    truth = _groups(reference, declaration)
    depth = 2 * (reference.sizes[REPEAT] // 2)
    halves = [
        [_groups(reference.isel({REPEAT: half}), declaration) for half in pair]
        for pair in (
            (slice(0, depth // 2), slice(depth // 2, depth)),
            (slice(0, depth, 2), slice(1, depth, 2)),
        )
    ]
    whole = cube.sizes[REPEAT]
    rows: list[tuple[Mapping[str, str], str, int, float, float]] = []
    shared = 0
    for r in (*(2**k for k in range(1, 32) if 2**k < whole), whole):
        for label, group in _groups(cube.isel({REPEAT: slice(0, r)}), declaration).items():
            if label not in truth:
                raise InputError(
                    f"the reference has no group {label!r}", place="reference", remedy=f"it has {', '.join(truth)}"
                )
            mine, theirs = _shared(group, truth[label])
            shared = len(mine)
            other = truth[label].values[theirs]
            plug = np.abs(group.plugin_values[mine] - other).mean(0)
            debiased = np.abs(group.values[mine] - other).mean(0)
            rows.extend((group.by, name, r, float(plug[j]), float(debiased[j])) for j, name in enumerate(group.names))
    own: list[tuple[Mapping[str, str], str, float, float]] = []
    for label, group in truth.items():
        errors = [_half_to_half(one[label], two[label]) for one, two in halves]
        own.extend((group.by, name, float(errors[0][j]), float(errors[1][j])) for j, name in enumerate(group.names))
    return ReferenceReport(tuple(rows), tuple(own), shared)


def _groups(cube: xr.Dataset, declaration: Mapping[str, Any]) -> dict[str, Group]:
    return {_text(group.by): group for group in decompose(cube, **declaration).groups}


def _half_to_half(one: Group, two: Group) -> NDArray[np.float64]:
    mine, theirs = _shared(one, two)
    return np.asarray(np.abs(one.values[mine] - two.values[theirs]).mean(0))


def _shared(group: Group, other: Group) -> tuple[list[int], list[int]]:
    place = {item: k for k, item in enumerate(other.items)}
    mine = [k for k, item in enumerate(group.items) if item in place]
    if not mine:
        raise InputError("cube and reference share no item", place="reference", remedy="give a run of the same items")
    if group.names != other.names:
        raise InputError(
            f"components {list(other.names)} of the reference are not {list(group.names)}", place="reference"
        )
    return mine, [place[group.items[k]] for k in mine]


def _text(by: Mapping[str, str]) -> str:
    return ", ".join(by.values()) or "all"
