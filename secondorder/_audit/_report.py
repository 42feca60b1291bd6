"""One HTML file of whatever there is to show: a run, a cube, a decomposition, estimates."""

from __future__ import annotations

import os
from pathlib import Path

import xarray as xr

from secondorder._atomic import write_bytes
from secondorder._audit._analyse import estimate_with_studies, estimates_of
from secondorder._audit._folder import run_folder
from secondorder._audit._run import Run
from secondorder._labels._attributes import attribute
from secondorder._statistics._decomposition import Decomposition
from secondorder._statistics._tree import open_estimates, result_tree
from secondorder.errors import InputError
from secondorder.report import report_html, sections_html
from secondorder.studies import StudyResult

__all__ = ["write_report"]


def write_report(
    source: Run | Decomposition | StudyResult | xr.Dataset | xr.DataTree | str | os.PathLike[str],
    path: str | os.PathLike[str],
) -> None:
    """Write one HTML file that shows a run, a cube or a result; it opens without a network.

    Parameters
    ----------
    source : Run, Decomposition, StudyResult, Dataset, DataTree or path
        A run, or the path of its folder or of an ``estimates.nc``. A cube: decomposed as its audit declared, or with
        defaults. A decomposition: its components, errors, tests, strata, items and comparison; what needs the cube
        (prefixes, outcomes, sensitivity, independence) is left out. An estimates tree: as it is. A study: its tables
        and figures.
    path : path
        File to write, whole or not at all.

    Raises
    ------
    InputError
        When there is nothing of the kind to show.
    StorageError
        When the disk refuses.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import secondorder as so
    >>> rows = [
    ...     {"item": q, "prompt": p, "run": str(r), "verdict": v}
    ...     for q, said in {"q1": ["AABA", "ABBB"], "q2": ["BBBA", "BBBB"]}.items()
    ...     for p, verdicts in zip("xy", said)
    ...     for r, v in enumerate(verdicts)
    ... ]
    >>> cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=["A", "B"])
    >>> file = Path(tempfile.mkdtemp()) / "report.html"
    >>> so.write_report(so.decompose(cube), file)
    >>> file.read_text()[:15]
    '<!doctype html>'
    """
    if isinstance(source, StudyResult):
        page = sections_html(source.title, "A study of secondorder.", {"study": source.section()})
    else:
        page = report_html(_tree(source))
    write_bytes(Path(path), page.encode())


def _tree(source: Run | Decomposition | xr.Dataset | xr.DataTree | str | os.PathLike[str]) -> xr.DataTree:
    if isinstance(source, xr.DataTree):
        return source
    if isinstance(source, Decomposition):
        return result_tree(source)
    if isinstance(source, xr.Dataset):
        declared = attribute(source, "analysis") is not None
        return (estimates_of(source, None) if declared else estimate_with_studies(source, {}))[1]
    if isinstance(source, Run):
        return open_estimates(run_folder(source.folder).estimates)
    if not isinstance(source, (str, os.PathLike)):
        raise InputError(
            f"a {type(source).__name__} cannot be shown",
            place="write_report",
            remedy="give a run, a cube, a decomposition, a study, or a path",
        )
    given = Path(source)
    return open_estimates(run_folder(given).estimates if given.is_dir() else given)
