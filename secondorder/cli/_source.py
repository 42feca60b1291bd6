"""Opening what a command names: a table, a cube, or a run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secondorder._design import Facet
from secondorder.cli import STDIN
from secondorder.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from secondorder._audit._folder import RunFolder

__all__ = ["declared_facets", "open_source", "parse_weights", "run_of", "split_classes"]

CUBES = (".nc", ".zarr")
FLAGS = {"facets": "facet", "weights": "weight", "coords": "coord"}


def run_of(source: str) -> RunFolder | None:
    """The run that an input names: its folder, its cube or its ``audit.toml``; None for tables and other cubes."""
    path = Path(source)
    if path.is_dir():
        names_run = (path / "manifest.json").is_file() or (path / "audit.toml").is_file()
    else:
        names_run = path.suffix == ".toml" or (path.name == "cube.nc" and (path.parent / "manifest.json").is_file())
    if source == STDIN or not names_run:
        return None
    from secondorder._audit._plan import find_target

    folder = find_target(path).folder
    if not folder.cube.is_file():
        raise InputError("there is no cube yet", place=str(folder.path), remedy=f"make it: secondorder run {source}")
    return folder


def open_source(source: str, columns: Mapping[str, Any]) -> xr.Dataset:
    """The cube of an input: read from a table with the column flags, or opened, where they are refused.

    Parameters
    ----------
    source : str
        Path of a table, a cube or a run folder, or :data:`secondorder.cli.STDIN`.
    columns : mapping
        Values of the column flags, by the names of :func:`secondorder.read_table`; unset ones are None or False.

    Raises
    ------
    InputError
        When a needed flag is absent, or one stands beside a cube.
    """
    if not source:
        raise InputError("it is empty", place="INPUT", remedy="name a table, a cube or the folder of a run")
    path = Path(source)
    run = run_of(source)
    if source != STDIN and (path.suffix in CUBES or path.is_dir()):
        if run is None and path.suffix not in CUBES:
            raise InputError("this folder is neither a run nor a cube", place=source, remedy=_held(path))
        given = [name for name, value in columns.items() if value]
        if given:
            raise InputError(
                f"--{FLAGS.get(given[0], given[0]).replace('_', '-')} stands beside a cube",
                place=source,
                remedy="leave the column flags out: the cube knows its columns",
            )
        from secondorder._labels._files import open_cube

        return open_cube(run.cube if run is not None else path)
    if run is not None:
        return open_source(str(run.cube), columns)
    return _read(source, columns)


def _held(folder: Path) -> str:
    """What of a folder may be meant."""
    runs = sorted(child.parent for child in folder.glob("*/manifest.json"))
    if runs:
        return f"name one of the {len(runs)} in it, such as {runs[0]}" if len(runs) > 1 else f"did you mean {runs[0]}?"
    return "a run's folder holds manifest.json; a cube is a .nc file or a .zarr folder; a table is a file"


def _read(source: str, columns: Mapping[str, Any]) -> xr.Dataset:
    from secondorder._labels._read import read_table

    for name, flag in (("item", "--item"), ("verdict", "--verdict")):
        if not columns[name]:
            raise InputError(f"{flag} is missing", place=source, remedy=f"name the column: {flag} COL")
    if not columns["repeat"] and not columns["number_repeats"]:
        raise InputError(
            "neither --repeat nor --number-repeats is given",
            place=source,
            remedy="name its column (--repeat COL), or number the rows of a cell (--number-repeats)",
        )
    if columns["repeat"] and columns["number_repeats"]:
        raise InputError("--repeat and --number-repeats exclude each other", place=source, remedy="give one of them")
    return read_table(
        "-" if source == STDIN else source,
        item=columns["item"],
        facets=declared_facets(columns["facets"] or [], columns["random"] or [], columns["weights"] or []),
        repeat=columns["repeat"],
        verdict=columns["verdict"],
        classes=split_classes(columns["classes"]),
        invalid=columns["invalid"] or [],
        missing=columns["missing"] or [],
        stratum=columns["stratum"],
        gold=columns["gold"],
        coords=columns.get("coords") or (),
        by=columns["by"],
        where=columns["where"] or [],
        number_repeats=columns["number_repeats"],
    )


def split_classes(text: str | None) -> list[str] | None:
    """Class labels from ``a,b,c``; a comma inside a label is doubled, blanks around a comma are no part of a label.

    Examples
    --------
    >>> split_classes("A, B, tie"), split_classes("yes,,no,maybe")
    (['A', 'B', 'tie'], ['yes,no', 'maybe'])
    """
    if text is None:
        return None
    labels = [label.replace("\0", ",").strip() for label in text.replace(",,", "\0").split(",")]
    if "" in labels:
        raise InputError(f"{text!r} holds an empty label", place="--classes", remedy="write a,b,c")
    return labels


def declared_facets(facets: Sequence[str], random: Sequence[str], weights: Sequence[str]) -> list[Facet]:
    """Facets with their kinds and weights from the flags; ``--random COL`` alone declares the facet too.

    Raises
    ------
    InputError
        When a weight names no facet or is malformed.
    """
    names = list(dict.fromkeys([*facets, *random]))
    by_facet = parse_weights(weights)
    stray = [name for name in by_facet if name not in names]
    if stray:
        raise InputError(
            f"a weight is given for {stray[0]!r}", place="--weight", remedy=f"facets: {', '.join(names) or 'none'}"
        )
    return [Facet(name, "random" if name in random else "fixed", by_facet.get(name)) for name in names]


def parse_weights(weights: Sequence[str]) -> dict[str, dict[str, float]]:
    """``COL:LEVEL=W`` to a mapping; the first ``=`` from the right and the first ``:`` from the left split.

    Examples
    --------
    >>> parse_weights(["prompt:short=0.25", "prompt:a=b=0.75"])
    {'prompt': {'short': 0.25, 'a=b': 0.75}}
    """
    found: dict[str, dict[str, float]] = {}
    for text in weights:
        place, equals, number = text.rpartition("=")
        column, colon, level = place.partition(":")
        try:
            weight = float(number)
        except ValueError:
            equals = ""
        if not (equals and colon and column):
            raise InputError(
                f"{text!r} is not COL:LEVEL=W", place="--weight", remedy="write for instance prompt:short=0.5"
            )
        if level in found.setdefault(column, {}):
            raise InputError(f"level {level!r} of {column!r} has two weights", place="--weight", remedy="give one")
        found[column][level] = weight
    return found
