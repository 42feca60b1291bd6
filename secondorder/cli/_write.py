"""Writing results: stdout carries one form, files carry what their suffix says, written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from secondorder._atomic import write_bytes
from secondorder._audit._folder import FILES
from secondorder.cli import STDIN
from secondorder.cli._streams import show, show_json
from secondorder.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from secondorder._statistics._decomposition import Decomposition

__all__ = ["check_outputs", "show_decomposition", "write_decomposition", "write_text"]


def check_outputs(
    paths: Sequence[Path], suffixes: Sequence[str], inputs: Sequence[str | Path | None], *, flag: str = "--output"
) -> list[Path]:
    """The output paths, refused before any work when one cannot be written, or must not be.

    Parameters
    ----------
    paths
        What the flag names.
    suffixes
        Those that the command writes.
    inputs
        What the command reads; None and what is no file protects nothing. An audit stands for the files that it names.
    flag
        The flag, for the message.

    Raises
    ------
    InputError
        Naming the path: an unknown suffix, no folder to write to, a folder in its place, one of the inputs, or a file
        that belongs to a run.
    """
    read = [file for given in inputs if paths and given is not None for file in _files(given)]
    for path in paths:
        problem, remedy = _refused(path, suffixes, read)
        if problem:
            raise InputError(problem, place=f"{flag} {path if path.name else repr('')}", remedy=remedy)
    return list(paths)


def _files(given: str | Path) -> list[str | Path]:
    """The input itself and, of an audit, its spec and what that names."""
    spec_file = Path(given, "audit.toml") if os.path.isdir(given) else Path(given)
    if spec_file.suffix != ".toml" or not spec_file.is_file():
        return [given]
    from secondorder.acquire import load_spec

    spec = load_spec(spec_file)
    named = [spec.items.file] if spec.gate is None else [spec.items.file, spec.gate.file]
    return [given, spec_file, *(spec_file.parent / name for name in named)]


def _refused(path: Path, suffixes: Sequence[str], inputs: Sequence[str | Path]) -> tuple[str, str]:
    """What is wrong with an output and what to do about it; two empty texts where nothing is."""
    target = Path(os.path.realpath(path))
    if path.suffix not in suffixes:
        found = f"suffix {path.suffix!r}" if path.suffix else f"{path.name!r} has no suffix" if path.name else "no file"
        return found, f"name a file that ends with {' or '.join(suffixes)}"
    if target.is_dir():
        return "this is a folder", "give the path of a file"
    if not target.parent.is_dir():
        return f"there is no folder {target.parent if path.is_symlink() else path.parent}", "make it first"
    if any(_same_file(given, target) for given in inputs):
        return "this is what the command reads", "give another file: the input would be lost"
    if target.name in FILES and (target.parent / "manifest.json").is_file():
        return f"this is {target.name} of the run in {path.parent}", "give another file: the run's own would be lost"
    return "", ""


def _same_file(given: str | Path, target: Path) -> bool:
    # A table on standard input is most often a file that the shell opened.
    file: str | Path | int = 0 if given == STDIN else given
    return target.exists() and os.path.exists(file) and os.path.samefile(file, target)


def show_decomposition(result: Decomposition, form: str) -> None:
    """Print a decomposition to stdout as a table, JSON or CSV."""
    if form == "json":
        show_json(result.to_dict())
    elif form == "csv":
        sys.stdout.write(_csv(result))
    else:
        show(result)


def write_decomposition(result: Decomposition, tree: xr.DataTree | None, paths: Sequence[Path]) -> None:
    """Write a decomposition to every path, by suffix; `tree` serves ``.nc`` and ``.html``."""
    for path in paths:
        if path.suffix == ".json":
            write_text(path, _json(result) + "\n")
        elif path.suffix == ".csv":
            write_text(path, _csv(result))
        elif tree is not None and path.suffix == ".nc":
            from secondorder._statistics._tree import save_estimates

            save_estimates(tree, path)
        elif tree is not None:
            from secondorder.report import report_html

            write_text(path, report_html(tree))


def write_text(path: Path, text: str) -> None:
    """Write a text file whole, in UTF-8 and with the line ends that it has."""
    write_bytes(path, text.encode())


def _json(result: Decomposition) -> str:
    return json.dumps(result.to_dict(), ensure_ascii=False, allow_nan=False, indent=2)


def _csv(result: Decomposition) -> str:
    rows = result.rows()
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(key for row in rows for key in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
