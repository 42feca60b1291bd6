"""The five stages of a run, each of which does nothing when its input has not changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import xarray as xr

from secondorder._atomic import write_bytes
from secondorder._audit._analyse import decompose_declared, estimates_of, null_digest
from secondorder._audit._calls import OnProgress, acquire_stage, said_of_calls
from secondorder._audit._cube import cube_of_run, ledger_digest
from secondorder._audit._folder import RunFolder
from secondorder._audit._plan import ANEW, Audit, Target, find_target, planned_folder
from secondorder._canon import canonical_json, sha256_hex
from secondorder._labels._attributes import attribute
from secondorder._labels._files import open_cube, save_cube
from secondorder._labels._identity import cube_digest
from secondorder._labels._results import printed
from secondorder._statistics._decomposition import Decomposition
from secondorder._statistics._tree import open_estimates, save_estimates
from secondorder._version import __version__
from secondorder.acquire import Summary
from secondorder.errors import CorruptFileError, SecondOrderError, SpecError
from secondorder.report import report_html

__all__ = [
    "Run",
    "cube_stage",
    "decompose_stage",
    "finish_run",
    "report_stage",
    "run_audit",
    "said_of_file",
]

Note = Callable[[str], None]
T = TypeVar("T")


@printed
@dataclass(frozen=True, eq=False)
class Run:
    """A finished run; prints as its decomposition, with what became of the calls.

    Attributes
    ----------
    folder : Path
        Where its artifacts lie.
    summary : Summary
        What became of the planned calls.
    decomposition : Decomposition
        Under the declared analysis.
    report : Path
        One HTML file.
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
    note: Note | None = None,
) -> Run:
    """Plan, acquire, cube, decompose, report; the same call again resumes where it stopped.

    Parameters
    ----------
    audit : Audit or path
        A loaded audit, the path of an ``audit.toml``, or the folder of a run that has begun.
    out : path, optional
        Folder of the run. Default: ``runs/<audit name>`` beside the spec.
    progress : callable, optional
        Called with the state of the acquisition about ten times a second.
    note : callable, optional
        Called with one line of text per stage.

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
    A judge on this machine, from the first call to the report:

    >>> import tempfile
    >>> from pathlib import Path
    >>> import secondorder as so
    >>> from secondorder.acquire import SimulatedJudge, write_template
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = write_template(folder)
    >>> spec = folder / "audit.toml"
    >>> with SimulatedJudge() as judge:  # doctest: +SKIP
    ...     _ = spec.write_text(spec.read_text().replace("http://127.0.0.1:8000/v1", judge.base_url))
    ...     run = so.run_audit(spec)
    >>> print(run.decomposition)  # doctest: +SKIP
    """
    target = Target(_folder_of(audit, out), audit) if isinstance(audit, Audit) else find_target(audit, out)
    if target.audit is not None:
        _, planned = planned_folder(target.audit, target.folder.path)
        if note is not None and ANEW in planned.notes:
            note(f"plan: {ANEW}")
    if target.folder.gated:
        raise SpecError("the audit has a [gate]", place=str(target.folder.path), remedy="run it with run_gated")
    spec = None if target.audit is None else target.audit.spec
    summary = acquire_stage(target.folder, spec, progress=progress)
    if note is not None:
        note(f"acquire: {said_of_calls(summary)}")
    return finish_run(target.folder, summary, note=note)


def finish_run(folder: RunFolder, summary: Summary, *, note: Note | None = None) -> Run:
    """Everything after the calls: cube, decompose, report."""
    tell = note or (lambda line: None)
    folder.sweep()
    tell(f"cube: {said_of_file(cube_stage(folder, note=note), folder.cube)}")
    result, written = decompose_stage(folder, note=note)
    tell(f"decompose: {said_of_file(written, folder.estimates)}")
    tell(f"report: {said_of_file(report_stage(folder), folder.report)}")
    return Run(folder.path, summary, result, folder.report)


def _folder_of(audit: Audit, out: str | os.PathLike[str] | None) -> RunFolder:
    return RunFolder(audit.out if out is None else Path(out))


def said_of_file(written: bool, path: Path) -> str:
    """What a stage did, for a person."""
    return f"wrote {path}" if written else f"{path} is up to date"


def cube_stage(folder: RunFolder, *, note: Note | None = None) -> bool:
    """Write ``cube.nc`` from the ledger, and ``null.nc`` where there is a null block.

    Returns
    -------
    bool
        False when the cube of that very ledger was there already.
    """
    null_wanted = bool(folder.read_manifest().get("null"))
    files = [folder.cube, folder.null] if null_wanted else [folder.cube]
    if all(path.exists() for path in files):
        found = [_or_none(partial(_loaded, path), note) for path in files]
        digest = ledger_digest(folder)
        if all(cube is not None and attribute(cube, "parent", {}).get("sha256") == digest for cube in found):
            return False
    cube, null = cube_of_run(folder)
    if null is not None:
        save_cube(null, folder.null)
    save_cube(cube, folder.cube)
    return True


def decompose_stage(folder: RunFolder, *, note: Note | None = None) -> tuple[Decomposition, bool]:
    """Write ``estimates.nc`` from the cube under the declared analysis.

    Returns
    -------
    decomposition : Decomposition
    written : bool
        False when the estimates of that very cube were there already.

    Raises
    ------
    SpecError
        When the run is behind a gate: its cells are filled or empty by their verdicts.
    """
    if folder.gated:
        raise SpecError(
            "what is called behind a gate depends on the verdicts: components cannot be estimated from it",
            place=str(folder.path),
            remedy="aggregate it: secondorder study aggregate RUN",
        )
    cube = _loaded(folder.cube)
    null = _loaded(folder.null) if folder.null.exists() else None
    if folder.estimates.exists():
        made_of = _or_none(lambda: dict(open_estimates(folder.estimates)["/provenance"].attrs), note) or {}
        known = tuple(made_of.get(name) for name in ("cube", "null", "version"))
        if known == (cube_digest(cube), null_digest(null), __version__):
            return decompose_declared(cube), False
    result, tree = estimates_of(cube, null)
    save_estimates(tree, folder.estimates)
    return result, True


def _loaded(path: Path) -> xr.Dataset:
    """A cube of this run, held to the digest that it was written with.

    Raises
    ------
    CorruptFileError
        When it does not read, or its values are not those that were written.
    """
    remedy = "remove it: it is made again from the ledger"
    try:
        with open_cube(path) as cube:
            loaded = cube.load()
        content = cube_digest(loaded)
    except (OSError, RuntimeError, ValueError) as error:
        if isinstance(error, SecondOrderError):
            raise
        raise CorruptFileError(f"its values cannot be read ({error})", place=str(path), remedy=remedy) from error
    if attribute(loaded, "parent", {}).get("content") != content:
        raise CorruptFileError("its values are not those that were written", place=str(path), remedy=remedy)
    return loaded


def report_stage(folder: RunFolder) -> bool:
    """Write ``report.html`` from the estimates.

    Returns
    -------
    bool
        False when the report of those very estimates was there already.
    """
    tree = open_estimates(folder.estimates)
    mark = f"<!-- estimates {sha256_hex(canonical_json(tree['/provenance'].attrs))} -->\n".encode()
    if folder.report.exists() and folder.report.read_bytes().endswith(mark):
        return False
    write_bytes(folder.report, report_html(tree).encode() + b"\n" + mark)
    return True


def _or_none(read: Callable[[], T], note: Note | None) -> T | None:
    """What a derived file says; None when it is damaged, because it can be made again."""
    try:
        return read()
    except CorruptFileError as error:
        if note is not None:
            note(f"{error.place}: {error.problem}; it is made again")
        return None
