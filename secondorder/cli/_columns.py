"""Flags that every command on a table, a cube or a run shares: which columns hold what, and what verdicts mean."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from secondorder.cli import STDIN

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Columns", "Source", "Verdicts"]

COLUMNS = Group("Columns of a table", sort_key=1)
MEANING = Group("What the verdicts mean", sort_key=2)

Source = Annotated[str, Parameter(name="INPUT")]
One = Annotated[str | None, Parameter(group=COLUMNS)]
Several = Annotated[list[str] | None, Parameter(group=COLUMNS, negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class Columns:
    """Columns of a table; all of them are refused beside a cube or a run, which know theirs.

    Parameters
    ----------
    item
        Column that identifies the item; several make a composite key.
    facet
        Column that is a crossed source of variation, such as prompt or order; repeat the flag for several. Their
        order names the interactions.
    random
        This facet's levels are a sample from a policy (default: a fixed census).
    weight
        COL:LEVEL=W, weight of a level; all levels of COL, summing to 1. Default: equal.
    repeat
        Column of the repeat index.
    number_repeats
        Number the rows of a cell instead; duplicated rows can then not be seen.
    verdict
        Column of the verdict.
    by
        One group per value, compared on shared items; several make a composite.
    stratum
        Column of the item's stratum.
    gold
        Column of the item's right answer.
    coord
        Further column that is constant within an item (a task, a length, a system), kept as a coordinate.
    where
        COL=VALUE or COL!=VALUE: rows to keep (all must hold).
    classes
        Valid verdicts in order, separated by commas. Default: the sorted set of verdicts found (nominal kernel only).
    invalid
        Label that means a completed but invalid verdict (⊥); "" for the empty one.
    missing
        Label that means no completion.
    """

    item: Several = None
    facet: Several = None
    random: Several = None
    weight: Several = None
    repeat: One = None
    number_repeats: Annotated[bool, Parameter(group=COLUMNS, negative="")] = False
    verdict: One = None
    by: Several = None
    stratum: One = None
    gold: One = None
    coord: Several = None
    where: Several = None
    classes: Annotated[str | None, Parameter(group=MEANING, allow_leading_hyphen=True)] = None
    invalid: Annotated[list[str] | None, Parameter(group=MEANING, negative="")] = None
    missing: Annotated[list[str] | None, Parameter(group=MEANING, negative="")] = None

    @property
    def given(self) -> bool:
        """Whether any flag is set."""
        return self != Columns()

    def open(self, source: str) -> xr.Dataset:
        """The cube that a command's input names."""
        from secondorder.cli._source import open_source

        given = {entry.name: _as_typed(getattr(self, entry.name)) for entry in fields(self)}
        given["facets"], given["weights"], given["coords"] = (given.pop(name) for name in ("facet", "weight", "coord"))
        return open_source(source, given)


def _as_typed(value: Any) -> Any:
    """A lone ``-`` is standard input where a file is asked for; as a label or a column it is itself."""
    if isinstance(value, list):
        return [_as_typed(entry) for entry in value]
    return "-" if value == STDIN else value


@Parameter(name="*")
@dataclass(frozen=True)
class Verdicts:
    """How verdicts are compared; what is not said is as the audit of a run declared it.

    Parameters
    ----------
    kernel
        How far apart two verdicts are. Must be named when every class is a number; otherwise nominal.
    invalid_as
        What ⊥ is: class, missing, midpoint, or SCORE,PENALTY (the last two under --kernel interval). Default: class.
    incomplete
        Cells with too few calls: refuse the table, or drop their items and count them. Default: refuse; in a run,
        drop-item.
    """

    kernel: Annotated[Literal["nominal", "ordinal", "interval"] | None, Parameter(group=MEANING)] = None
    invalid_as: Annotated[str | None, Parameter(group=MEANING)] = None
    incomplete: Annotated[Literal["refuse", "drop-item"] | None, Parameter(group=MEANING)] = None

    @property
    def given(self) -> dict[str, Any]:
        """The flags that are set, as arguments of :func:`secondorder.decompose`."""
        from secondorder._statistics._kernel import parse_invalid_as

        invalid = None if self.invalid_as is None else parse_invalid_as(self.invalid_as)
        flags = {"kernel": self.kernel, "invalid": invalid, "incomplete": self.incomplete}
        return {name: value for name, value in flags.items() if value is not None}

    def options(self, cube: xr.Dataset, *more: str) -> dict[str, Any]:
        """Arguments of :func:`secondorder.decompose`: what an acquired cube was declared with, but for the flags set.

        `more` names further options of a declared analysis that the command goes by.
        """
        from secondorder._audit._options import options_beside

        wanted = ("kernel", "scores", "invalid", "incomplete", *more)
        return {name: value for name, value in options_beside(cube, self.given).items() if name in wanted}
