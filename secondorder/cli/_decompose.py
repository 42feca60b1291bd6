"""``secondorder decompose``: from a table of verdicts to a debiased decomposition."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Group, Parameter

from secondorder._schema import BOTTOM

_COLUMNS = Group("Columns of a table", sort_key=1)
_MEANING = Group("What the verdicts mean", sort_key=2)
_ESTIMATE = Group("Estimate and uncertainty", sort_key=3)
_OUTPUT = Group("Output", sort_key=4)


def decompose(
    source: Annotated[str, Parameter(name="INPUT")],
    /,
    *,
    item: Annotated[list[str] | None, Parameter(group=_COLUMNS, negative="")] = None,
    facet: Annotated[list[str] | None, Parameter(group=_COLUMNS, negative="")] = None,
    random: Annotated[list[str] | None, Parameter(group=_COLUMNS, negative="")] = None,
    weight: Annotated[list[str] | None, Parameter(group=_COLUMNS, negative="")] = None,
    repeat: Annotated[str | None, Parameter(group=_COLUMNS)] = None,
    number_repeats: Annotated[bool, Parameter(group=_COLUMNS, negative="")] = False,
    verdict: Annotated[str | None, Parameter(group=_COLUMNS)] = None,
    by: Annotated[list[str] | None, Parameter(group=_COLUMNS, negative="")] = None,
    stratum: Annotated[str | None, Parameter(group=_COLUMNS)] = None,
    gold: Annotated[str | None, Parameter(group=_COLUMNS)] = None,
    where: Annotated[list[str] | None, Parameter(group=_COLUMNS, negative="")] = None,
    classes: Annotated[str | None, Parameter(group=_MEANING)] = None,
    invalid: Annotated[list[str] | None, Parameter(group=_MEANING, negative="")] = None,
    missing: Annotated[list[str] | None, Parameter(group=_MEANING, negative="")] = None,
    invalid_as: Annotated[str, Parameter(group=_MEANING)] = "class",
    kernel: Annotated[Literal["nominal", "ordinal", "interval"] | None, Parameter(group=_MEANING)] = None,
    incomplete: Annotated[Literal["refuse", "drop-item"], Parameter(group=_ESTIMATE)] = "refuse",
    pairs: Annotated[Literal["complete", "across-repeats", "panel"], Parameter(group=_ESTIMATE)] = "complete",
    covers: Annotated[Literal["items", "calls", "prompts", "items+prompts"], Parameter(group=_ESTIMATE)] = "items",
    interval: Annotated[Literal["t", "percentile", "bca", "studentised"], Parameter(group=_ESTIMATE)] = "t",
    tau: Annotated[float | None, Parameter(group=_ESTIMATE)] = None,
    level: Annotated[float, Parameter(group=_ESTIMATE)] = 0.95,
    draws: Annotated[int, Parameter(group=_ESTIMATE)] = 20_000,
    seed: Annotated[int, Parameter(group=_ESTIMATE)] = 0,
    format: Annotated[Literal["table", "json", "csv"], Parameter(group=_OUTPUT)] = "table",
    output: Annotated[list[Path] | None, Parameter(group=_OUTPUT, negative="")] = None,
) -> int:
    """Decompose verdict variation into call noise, prompt, order and their interactions, debiased beside plug-in.

    Parameters
    ----------
    source
        .csv .tsv .jsonl .parquet (also .gz), a cube (.nc .zarr), a run folder, or - for CSV on stdin. With a cube or
        a run the column flags are refused: the cube knows its columns.
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
        One decomposition per value, compared on shared items; several make a composite.
    stratum
        Column of the item's stratum.
    gold
        Column of the item's right answer.
    where
        COL=VALUE or COL!=VALUE: rows to keep (all must hold).
    classes
        Valid verdicts in order, separated by commas. Default: the sorted set of verdicts found (nominal kernel only).
    invalid
        Label that means a completed but invalid verdict (⊥); "" for the empty one.
    missing
        Label that means no completion.
    invalid_as
        What ⊥ is: class, missing, midpoint, or SCORE,PENALTY (the last two under --kernel interval).
    kernel
        How far apart two verdicts are. Must be named when every class is a number; otherwise nominal.
    incomplete
        Cells with too few calls: refuse the table, or drop their items and count them.
    pairs
        Which pairs of calls are compared. across-repeats survives seeds shared between cells.
    covers
        Which randomness the band covers.
    interval
        How the band is made.
    tau
        Flag components above this threshold, by both measures.
    level
        Level of the bands.
    draws
        Whole-item resamples for bootstrap bands and comparisons.
    seed
        Seed of the resamples.
    format
        What stdout carries.
    output
        Also write to a file, by suffix: .json .csv .nc .html. Repeat for several.
    """
    from secondorder.cli._source import open_source
    from secondorder.cli._write import check_outputs, show_decomposition, write_decomposition

    outputs = check_outputs(output or [], (".json", ".csv", ".nc", ".html"))
    from secondorder._statistics._decompose import decompose as run
    from secondorder._statistics._kernel import parse_invalid_as

    columns: dict[str, Any] = {
        "item": item,
        "facets": facet,
        "random": random,
        "weights": weight,
        "repeat": repeat,
        "number_repeats": number_repeats,
        "verdict": verdict,
        "by": by,
        "stratum": stratum,
        "gold": gold,
        "where": where,
        "classes": classes,
        "invalid": invalid,
        "missing": missing,
    }
    cube = open_source(source, columns)
    options: dict[str, Any] = {
        "kernel": kernel,
        "invalid": parse_invalid_as(invalid_as),
        "pairs": pairs,
        "covers": covers,
        "interval": interval,
        "level": level,
        "draws": draws,
        "seed": seed,
        "tau": tau,
        "incomplete": incomplete,
    }
    tree = None
    if any(path.suffix in (".nc", ".html") for path in outputs):
        from secondorder._statistics._tree import estimate_all

        result, tree = estimate_all(cube, options)
    else:
        result = run(cube, **options)
    if not result.settings.classes_declared:
        valid = [label for label in result.settings.classes if label != BOTTOM]
        print(f"note: --classes not given; classes found: {', '.join(valid)}", file=sys.stderr)
    write_decomposition(result, tree, outputs)
    show_decomposition(result, format)
    return 0
