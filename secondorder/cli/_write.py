"""Writing results: stdout carries one form, files carry what their suffix says, written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from secondorder._atomic import write_bytes
from secondorder.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from secondorder._statistics._decomposition import Decomposition

__all__ = ["check_outputs", "show_decomposition", "write_decomposition", "write_text"]


def check_outputs(paths: Sequence[Path], suffixes: Sequence[str]) -> list[Path]:
    """The output paths, refused before any work when a suffix is unknown or a folder is not there.

    Raises
    ------
    InputError
        Naming the path and the suffixes there are.
    """
    for path in paths:
        if path.suffix not in suffixes:
            raise InputError(f"suffix {path.suffix!r}", place=f"--output {path}", remedy=f"use {' '.join(suffixes)}")
        if not path.parent.is_dir():
            raise InputError(f"there is no folder {path.parent}", place=f"--output {path}", remedy="make it first")
    return list(paths)


def show_decomposition(result: Decomposition, form: str) -> None:
    """Print a decomposition to stdout as a table, JSON or CSV."""
    if form == "json":
        print(_json(result))
    elif form == "csv":
        sys.stdout.write(_csv(result))
    else:
        print(result)


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
