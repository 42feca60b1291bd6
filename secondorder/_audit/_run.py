"""The five stages of a run, each of which does nothing when its input has not changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import xarray as xr

from secondorder._audit._analyse import analysis_options, estimates_of
from secondorder._audit._cube import cube_of_run, ledger_digest
from secondorder._audit._folder import RunFolder, write_bytes
from secondorder._audit._plan import Audit, load_audit, planned_folder
from secondorder._labels._attributes import attribute
from secondorder._labels._files import open_cube, save_cube
from secondorder._labels._identity import cube_digest
from secondorder._statistics._decompose import decompose
from secondorder._statistics._decomposition import Decomposition
from secondorder._statistics._tree import open_estimates, save_estimates
from secondorder._version import __version__
from secondorder.acquire._load import spec_from_manifest
from secondorder.acquire._plan import make_parse
from secondorder.acquire._progress import Progress, Summary
from secondorder.acquire._scheduler import run_calls
from secondorder.report import report_html

__all__ = ["Run", "acquire_stage", "cube_stage", "decompose_stage", "report_stage", "run_audit"]

OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run.

    Attributes
    ----------
    folder : Path
        Where its artifacts lie.
    summary : Summary
        What became of the planned calls.
    decomposition : Decomposition
        Under the declared analysis.
    report : Path
    """

    folder: Path
    summary: Summary
    decomposition: Decomposition
    report: Path

    def __str__(self) -> str:
        return f"{self.decomposition}\n\n{self.summary}\n\nreport: {self.report}"


def run_audit(
    audit: Audit | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    progress: OnProgress | None = None,
    stage: Callable[[str], None] | None = None,
) -> Run:
    """Plan, acquire, cube, decompose, report; the same call again resumes where it stopped.

    Parameters
    ----------
    audit : Audit or path
        A loaded audit, or the path of an ``audit.toml``.
    out : path, optional
        Folder of the run. Default: ``runs/<audit name>`` beside the spec.
    progress : callable, optional
        Called with the state of the acquisition about ten times a second.
    stage : callable, optional
        Called with the name of each stage as it begins.

    Returns
    -------
    Run

    Raises
    ------
    InputError
        Bad input: nothing was started.
    WorldError
        Endpoint, key, disk or file failed; what was stored is kept.

    Examples
    --------
    >>> import secondorder as so
    >>> so.run_audit("audit.toml")  # doctest: +SKIP
    """
    tell = stage or (lambda name: None)
    tell("plan")
    loaded = audit if isinstance(audit, Audit) else load_audit(audit)
    folder, _ = planned_folder(loaded, out)
    tell("acquire")
    summary = acquire_stage(folder, progress=progress)
    tell("cube")
    cube_stage(folder)
    tell("decompose")
    result, _ = decompose_stage(folder)
    tell("report")
    report_stage(folder)
    return Run(folder.path, summary, result, folder.report)


def acquire_stage(folder: RunFolder, *, progress: OnProgress | None = None) -> Summary:
    """Call every planned call that has no outcome yet; the judges and the parser are those of the manifest."""
    spec = spec_from_manifest(folder.read_manifest())
    return run_calls(
        folder.ledger,
        spec.judges,
        parse=make_parse(spec),
        seed=spec.seed,
        retry=spec.retry,
        limits=spec.limits,
        progress=progress,
    )


def cube_stage(folder: RunFolder) -> bool:
    """Write ``cube.nc`` from the ledger; False when it is already that ledger's cube."""
    if folder.cube.exists():
        parent: dict[str, Any] = attribute(open_cube(folder.cube), "parent", {})
        if parent.get("sha256") == ledger_digest(folder):
            return False
    cube, null = cube_of_run(folder)
    if null is not None:
        save_cube(null, folder.null)
    save_cube(cube, folder.cube)
    return True


def decompose_stage(folder: RunFolder) -> tuple[Decomposition, bool]:
    """Write ``estimates.nc`` from the cube under the declared analysis.

    Returns
    -------
    decomposition : Decomposition
    written : bool
        False when the estimates of that very cube were there already.
    """
    cube = open_cube(folder.cube).load()
    if _is_of(folder.estimates, cube):
        return decompose(cube, **analysis_options(cube)), False
    null = open_cube(folder.null).load() if folder.null.exists() else None
    result, tree = estimates_of(cube, null)
    save_estimates(tree, folder.estimates)
    return result, True


def _is_of(path: Path, cube: xr.Dataset) -> bool:
    if not path.exists():
        return False
    provenance = open_estimates(path)["/provenance"].attrs
    return bool(provenance.get("cube") == cube_digest(cube) and provenance.get("version") == __version__)


def report_stage(folder: RunFolder) -> Path:
    """Write ``report.html`` from the estimates."""
    write_bytes(folder.report, report_html(open_estimates(folder.estimates)).encode())
    return folder.report
