"""``secondorder decompose``: from a table of verdicts to a debiased decomposition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from secondorder._schema import BOTTOM
from secondorder.cli._columns import Columns, Source, Verdicts
from secondorder.cli._progress import working
from secondorder.cli._streams import say

if TYPE_CHECKING:
    import xarray as xr

    from secondorder._audit._folder import RunFolder
    from secondorder._statistics._decomposition import Decomposition

_ESTIMATE = Group("Estimate and uncertainty", sort_key=3)
_OUTPUT = Group("Output", sort_key=4)


def decompose(
    source: Source,
    /,
    *,
    columns: Columns = Columns(),  # noqa: B008  (frozen)
    verdicts: Verdicts = Verdicts(),  # noqa: B008
    pairs: Annotated[Literal["complete", "across-repeats", "panel"] | None, Parameter(group=_ESTIMATE)] = None,
    covers: Annotated[Literal["items", "calls", "prompts", "items+prompts"] | None, Parameter(group=_ESTIMATE)] = None,
    interval: Annotated[Literal["t", "percentile", "bca", "studentised"] | None, Parameter(group=_ESTIMATE)] = None,
    tau: Annotated[float | None, Parameter(group=_ESTIMATE)] = None,
    level: Annotated[float | None, Parameter(group=_ESTIMATE)] = None,
    draws: Annotated[int | None, Parameter(group=_ESTIMATE)] = None,
    seed: Annotated[int | None, Parameter(group=_ESTIMATE)] = None,
    format: Annotated[Literal["table", "json", "csv"], Parameter(group=_OUTPUT)] = "table",
    output: Annotated[list[Path] | None, Parameter(group=_OUTPUT, negative="")] = None,
) -> int:
    """Decompose verdict variation into call noise, prompt, order and their interactions, debiased beside plug-in.

    With the folder of a run, the analysis is the one that its audit declared before the first call, and estimates.nc
    is written there. With flags of your own beside a run, the result is exploratory: it is printed and goes to the
    files of --output, and estimates.nc stays as it is.

    Parameters
    ----------
    source
        .csv .tsv .jsonl .parquet (also .gz), a cube (.nc .zarr), the folder of a run (or its audit.toml), or - for CSV
        on stdin. With a cube or a run the column flags are refused: the cube knows its columns.
    pairs
        Which pairs of calls are compared. across-repeats survives seeds shared between cells. Default: complete.
    covers
        Which randomness the band covers. Default: items.
    interval
        How the band is made. Default: t.
    tau
        Flag components above this threshold, by both measures.
    level
        Level of the bands. Default: 0.95.
    draws
        Whole-item resamples for bootstrap bands and comparisons. Default: 20000.
    seed
        Seed of the resamples. Default: 0.
    format
        What stdout carries.
    output
        Also write to a file, by suffix: .json .csv .nc .html. Repeat for several.
    """
    from secondorder.cli._source import run_of
    from secondorder.cli._write import check_outputs, show_decomposition, write_decomposition

    outputs = check_outputs(output or [], (".json", ".csv", ".nc", ".html"), [source])
    flags: dict[str, Any] = {
        "pairs": pairs,
        "covers": covers,
        "interval": interval,
        "level": level,
        "draws": draws,
        "seed": seed,
        "tau": tau,
    }
    given = verdicts.given | {name: value for name, value in flags.items() if value is not None}
    need_tree = any(path.suffix in (".nc", ".html") for path in outputs)
    run = run_of(source)
    if run is not None and not given and not columns.given:
        result, tree = _as_declared(run, need_tree)
    else:
        with working("reading"):
            cube = columns.open(source if run is None else str(run.cube))
        result, tree = _estimate(cube, given if run is None else _beside_declared(cube, given), need_tree)
    write_decomposition(result, tree, outputs)
    show_decomposition(result, format)
    return 0


def _estimate(cube: xr.Dataset, options: dict[str, Any], need_tree: bool) -> tuple[Decomposition, xr.DataTree | None]:
    from secondorder._statistics._decompose import decompose as run

    with working("decomposing"):
        if need_tree:
            from secondorder._audit._analyse import estimate_with_studies

            result, tree = estimate_with_studies(cube, options)
        else:
            result, tree = run(cube, **options), None
        # Groups are compared here, where it is seen to take its time, and not on the way to stdout.
        _ = result.comparison
    if not result.settings.classes_declared:
        valid = [label for label in result.settings.classes if label != BOTTOM]
        say(f"note: --classes not given; classes found: {', '.join(valid)}")
    return result, tree


def _as_declared(run: RunFolder, need_tree: bool) -> tuple[Decomposition, xr.DataTree | None]:
    """The stage of a run: its declared analysis, with estimates.nc written where it is not that cube's already."""
    from secondorder._audit._run import decompose_stage, said_of_file
    from secondorder._statistics._tree import open_estimates

    result, written = decompose_stage(run, note=say)
    say(f"decompose: {said_of_file(written, run.estimates)}")
    return result, open_estimates(run.estimates) if need_tree else None


def _beside_declared(cube: xr.Dataset, given: dict[str, Any]) -> dict[str, Any]:
    """Options of an exploratory analysis of a run: what it declared, but for the flags given."""
    from secondorder._audit._options import options_beside

    changed = ", ".join(f"--{name.replace('invalid', 'invalid-as')}" for name in given)
    say(f"note: exploratory ({changed}): not the analysis that the audit declared; estimates.nc stays as it is")
    return options_beside(cube, given)
