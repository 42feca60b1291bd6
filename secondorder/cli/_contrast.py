"""``secondorder contrast``: differences and ratios of components, and bands that hold together."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Group, Parameter

from secondorder.cli._columns import Columns, Source, Verdicts
from secondorder.cli._progress import working
from secondorder.cli._soft import say_soft
from secondorder.cli._streams import show, show_json

_CONTRAST = Group("Contrasts", sort_key=3)


def contrast(
    source: Source,
    /,
    *,
    columns: Columns = Columns(),  # noqa: B008  (frozen)
    verdicts: Verdicts = Verdicts(),  # noqa: B008
    of: Annotated[list[str] | None, Parameter(group=_CONTRAST, negative="")] = None,
    interval: Annotated[Literal["t", "percentile", "bca", "simultaneous"], Parameter(group=_CONTRAST)] = "t",
    level: Annotated[float, Parameter(group=_CONTRAST)] = 0.95,
    draws: Annotated[int, Parameter(group=_CONTRAST)] = 20_000,
    seed: Annotated[int, Parameter(group=_CONTRAST)] = 0,
    format: Annotated[Literal["table", "json"], Parameter(group=_CONTRAST)] = "table",
) -> int:
    """Differences and ratios of components with bands over items, from joint draws.

    Parameters
    ----------
    source
        A table, a cube (.nc .zarr), a run folder, or - for CSV on stdin.
    of
        "prompt - order", "prompt / total" or a component. Repeat for several. Default: every component.
    interval
        How bands are made; simultaneous: they hold for all contrasts together.
    level
        Confidence level.
    draws
        Whole-item resamples.
    seed
        Their seed.
    format
        What stdout carries.
    """
    from secondorder._statistics._contrast import contrasts
    from secondorder._statistics._decompose import decompose

    with working("reading"):
        cube = columns.open(source)
    say_soft(cube)
    result = decompose(cube, level=level, draws=draws, seed=seed, **verdicts.options(cube, "pairs"))
    found = [(group.by, contrasts(result.select(**dict(group.by)), of, method=interval)) for group in result.groups]
    if format == "json":
        entries = [{"by": dict(by), **part.to_dict()} for by, part in found]
        plain = {"schema": "secondorder.contrasts/1", "groups": entries}
        show_json(plain)
    else:
        show("\n\n".join(f"{', '.join(by.values())}\n{part}" if by else str(part) for by, part in found))
    return 0
