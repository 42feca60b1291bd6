"""``secondorder check``: do the calls look independent, and what hangs on it?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from secondorder.cli._columns import Columns, Source, Verdicts
from secondorder.cli._progress import working
from secondorder.cli._streams import show, show_json

_CHECK = Group("Check", sort_key=3)


def check(
    source: Source,
    /,
    *,
    columns: Columns = Columns(),  # noqa: B008  (frozen)
    verdicts: Verdicts = Verdicts(),  # noqa: B008
    reference: Annotated[str | None, Parameter(group=_CHECK)] = None,
    alpha: Annotated[float, Parameter(group=_CHECK)] = 0.05,
    draws: Annotated[int, Parameter(group=_CHECK)] = 999,
    seed: Annotated[int, Parameter(group=_CHECK)] = 0,
    format: Annotated[Literal["table", "json"], Parameter(group=_CHECK)] = "table",
) -> int:
    """Look for what breaks independence, and show both estimates. Exit code 1 when a detector rejects.

    Parameters
    ----------
    source
        A table, a cube (.nc .zarr), a run folder, or - for CSV on stdin.
    reference
        A table, cube or run of the same cells with more repeats, from calls of its own: both estimators are compared
        with it.
    alpha
        Level for all detectors of a judge together (Holm). Judges are not adjusted for each other: with several, the
        exit code is 1 by chance more often than this.
    draws
        Shuffles for exact p values.
    seed
        Seed of the shuffles.
    format
        What stdout carries.
    """
    from secondorder._statistics._dependence import check_independence
    from secondorder._statistics._reference import compare_reference

    with working("reading"):
        cube = columns.open(source)
    options = verdicts.options(cube)
    with working("shuffling"):
        report = check_independence(cube, draws=draws, seed=seed, alpha=alpha, **options)
    against = None
    if reference is not None:
        # A table has the same columns; a cube or a run knows its own.
        is_table = not Path(reference).is_dir() and Path(reference).suffix not in (".nc", ".zarr", ".toml")
        against = compare_reference(cube, (columns if is_table else Columns()).open(reference), **options)
    if format == "json":
        plain = report.to_dict()
        if against is not None:
            plain["reference"] = against.to_dict()
        show_json(plain)
    else:
        show(report if against is None else f"{report}\n\n{against}")
    return 1 if report.suspicious else 0
