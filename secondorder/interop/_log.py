"""The calls that another tool logged, as rows, with the declaration that makes them a cube."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from secondorder._labels._attributes import class_labels
from secondorder._labels._read import make_cube
from secondorder._labels._results import Table, printed, render_table
from secondorder._schema import BOTTOM, CLASS, INVALID_REASONS, MISSING_REASONS, REASONS, STATUS

__all__ = ["Log"]

Row = Mapping[str, Any]

P_SECOND = "p_second"
"""Column of rows with a soft verdict: the probability of candidate 2."""


@printed
@dataclass(frozen=True, eq=False)
class Log:
    """Calls that another tool logged.

    Iterating gives the rows; ``so.make_cube(log.rows, **log.declaration)`` gives a cube, :meth:`to_cube` one that also
    keeps why calls are ⊥ or missing, when they were made, and soft verdicts.

    Attributes
    ----------
    tool : str
        Name of the tool, and of the format where it has several.
    source : str
        Name of the file, or how many they are.
    sha256 : str or None
        Of the file, where it is one.
    rows : tuple of mapping
        One per call, every value plain: ``judge, item, prompt, order, repeat, verdict, status, reason, cached, place``
        and columns of the tool's own. ``verdict`` is a class, ``⊥``, or the empty text for a call without completion;
        ``status`` and ``reason`` are in the words of a cube; ``place`` says where in the file the call stands.
    declaration : mapping
        Keyword arguments of :func:`secondorder.make_cube` for these rows.
    notes : tuple of str
        What was left out, and what to beware of.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import secondorder as so
    >>> path = pathlib.Path(tempfile.mkdtemp(), "gpt-4_pair.jsonl")
    >>> _ = path.write_text(
    ...     '{"question_id": 81, "model_1": "a", "model_2": "b", "g1_winner": "model_1", "g2_winner": "tie", '
    ...     '"judge": ["gpt-4", "pair-v2"], "g1_judgment": "[[A]]", "g2_judgment": "[[C]]", "turn": 1, "tstamp": 0.5}')
    >>> log = so.interop.read_fastchat(path)
    >>> [(row["order"], row["verdict"]) for row in log]
    [('AB', '1'), ('BA', 'tie')]
    >>> log.to_cube().sizes["order"]
    2
    """

    tool: str
    source: str
    sha256: str | None
    rows: tuple[Row, ...]
    declaration: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_cube(
        self,
        *,
        facets: Sequence[str] | None = None,
        classes: Sequence[str] | None = None,
        stratum: str | None = None,
        gold: str | None = None,
    ) -> xr.Dataset:
        """The cube of these calls.

        Parameters
        ----------
        facets, classes : sequence of str, optional
            In place of those of the declaration.
        stratum, gold : str, optional
            Columns of the rows that are constant within an item.

        Returns
        -------
        xarray.Dataset
            With the reasons of ⊥ and missing calls, ``sent`` and ``latency_ms`` where the log has times, and ``soft``
            where it has probabilities. It is marked ``independence: untestable``.

        Raises
        ------
        TableError, DesignError
            As for :func:`secondorder.make_cube`.
        """
        given = {"facets": facets, "classes": classes, "stratum": stratum, "gold": gold}
        declared = {**self.declaration, **{name: value for name, value in given.items() if value is not None}}
        cube = make_cube(self.rows, **declared)
        parent = {**json.loads(cube.attrs["parent"]), "name": self.source, "sha256": self.sha256}
        imported = {"tool": self.tool, "notes": list(self.notes)}
        cube = cube.assign_attrs(
            parent=json.dumps(parent, ensure_ascii=False), imported=json.dumps(imported, ensure_ascii=False)
        )
        return _with_metadata(cube, self.rows)

    def tables(self) -> tuple[Table, ...]:
        """What was read."""
        ends = Counter((row["status"], row["reason"]) for row in self.rows)
        verdicts = Counter(row["verdict"] for row in self.rows if row["status"] == "valid" and P_SECOND not in row)
        soft = sum(P_SECOND in row for row in self.rows)
        rows: list[tuple[str, str]] = [
            ("calls", f"{len(self.rows):,} from {self.source}"),
            ("judges", _listed({row["judge"] for row in self.rows})),
            ("items", f"{len({row['item'] for row in self.rows}):,}"),
        ]
        rows += [(name, _listed({row[name] for row in self.rows})) for name in self.declaration["facets"]]
        rows.append(("verdicts", ", ".join(f"{name} {count:,}" for name, count in sorted(verdicts.items())) or "none"))
        rows += [("soft verdicts", f"{soft:,}")] if soft else []
        for status, word in (("invalid", BOTTOM), ("no_completion", "missing")):
            found = [f"{reason} {count:,}" for (kind, reason), count in sorted(ends.items()) if kind == status]
            rows += [(word, ", ".join(found))] if found else []
        return (Table("", ("log", self.tool), tuple(rows), self.notes),)

    def __str__(self) -> str:
        return render_table(self.tables()[0])


def _listed(labels: set[str], most: int = 6) -> str:
    ordered = sorted(labels)
    shown = ", ".join(ordered[:most])
    return shown if len(ordered) <= most else f"{shown} and {len(ordered) - most} more"


def _with_metadata(cube: xr.Dataset, rows: Sequence[Row]) -> xr.Dataset:
    """Reasons, times and soft verdicts of the rows, each at its place in the grid."""
    verdict = cube["verdict"]
    at = _places(cube, rows)
    status, reason = cube["status"].to_numpy(), cube["reason"].to_numpy().copy()
    words = np.array([REASONS.index(row["reason"]) for row in rows])
    # A reason stands only where the declaration made of the call what the log says that it is.
    for kind, reasons in (("invalid", INVALID_REASONS), ("no_completion", MISSING_REASONS)):
        ours = np.isin(words, [REASONS.index(word) for word in reasons]) & (status[at] == STATUS.index(kind))
        reason[tuple(axis[ours] for axis in at)] = words[ours]
    cube = cube.assign(reason=cube["reason"].copy(data=reason))
    for name in ("sent", "latency_ms"):
        values = np.array([row.get(name, np.nan) for row in rows], dtype=float)
        if np.isfinite(values).any():
            grid = np.full(verdict.shape, np.nan)
            grid[at] = values
            cube[name] = (verdict.dims, grid)
    return _with_soft(cube, rows, at) if any(P_SECOND in row for row in rows) else cube


def _places(cube: xr.Dataset, rows: Sequence[Row]) -> tuple[Any, ...]:
    """Index arrays of the rows in the grid: dimensions and columns have the same names."""
    verdict = cube["verdict"]
    axes = []
    for dim in map(str, verdict.dims):
        position = {label: k for k, label in enumerate(cube[dim].to_numpy().tolist())}
        axes.append(np.array([position[row[dim]] for row in rows]))
    return tuple(axes)


def _with_soft(cube: xr.Dataset, rows: Sequence[Row], at: tuple[Any, ...]) -> xr.Dataset:
    """Probability vectors over the classes; hard verdicts of the same log are vectors with a single one."""
    classes = class_labels(cube)
    codes = cube["verdict"].to_numpy().copy()
    soft = np.eye(len(classes))[codes]
    soft[codes < 0] = np.nan
    status, reason = cube["status"].to_numpy().copy(), cube["reason"].to_numpy().copy()
    one, two = classes.index("1"), classes.index("2")
    for k, row in enumerate(rows):
        if P_SECOND not in row:
            continue
        place = tuple(int(axis[k]) for axis in at)
        vector = np.zeros(len(classes))
        vector[one], vector[two] = 1.0 - row[P_SECOND], row[P_SECOND]
        soft[place] = vector
        # The code of a soft verdict says that there is one; the vector is what counts.
        codes[place], status[place], reason[place] = (two if row[P_SECOND] > 0.5 else one), STATUS.index("valid"), 0
    return cube.assign(
        verdict=cube["verdict"].copy(data=codes),
        status=cube["status"].copy(data=status),
        reason=cube["reason"].copy(data=reason),
        soft=((*cube["verdict"].dims, CLASS), soft),
    )
