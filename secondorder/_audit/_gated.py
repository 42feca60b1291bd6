"""A run behind a gate ends with its decisions: what was called depends on the verdicts, so nothing is decomposed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from secondorder._audit._calls import OnProgress, acquire_stage, said_of_calls
from secondorder._audit._folder import RunFolder
from secondorder._audit._plan import Audit, Target, find_target, planned_folder
from secondorder._audit._run import cube_stage, said_of_file
from secondorder._labels._files import open_cube
from secondorder._labels._results import printed
from secondorder.acquire import Summary
from secondorder.errors import SpecError
from secondorder.studies import StudyResult, aggregate

__all__ = ["GatedRun", "finish_gated", "run_gated"]

Note = Callable[[str], None]


@printed
@dataclass(frozen=True, eq=False)
class GatedRun:
    """A finished run behind a gate; prints as its decisions, with what became of the calls.

    Attributes
    ----------
    folder : Path
        Where its artifacts lie: manifest, ledger and cube.
    summary : Summary
        What became of the planned calls; those that the gate did not want are ``not_called: gate``.
    decisions : StudyResult
        Plurality of the calls that were made (:func:`secondorder.studies.aggregate`): behind a shut gate the first
        verdict.
    """

    folder: Path
    summary: Summary
    decisions: StudyResult

    def __str__(self) -> str:
        return f"{self.decisions}\n\n{self.summary}"


def run_gated(
    audit: Audit | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    progress: OnProgress | None = None,
    note: Note | None = None,
) -> GatedRun:
    """Plan, acquire behind the gate, cube, and aggregate; the same call again resumes where it stopped.

    Parameters
    ----------
    audit, out, progress, note
        As for :func:`secondorder.run_audit`; the audit has a table ``[gate]``.

    Returns
    -------
    GatedRun

    Raises
    ------
    SpecError
        When the audit has no gate.
    InputError, WorldError
        As :func:`secondorder.run_audit`.

    Examples
    --------
    An audit without the table is no gated one:

    >>> import tempfile
    >>> import secondorder as so
    >>> from secondorder.acquire import write_template
    >>> folder = tempfile.mkdtemp()
    >>> _ = write_template(folder)
    >>> so.run_gated(folder)
    Traceback (most recent call last):
    secondorder.errors.SpecError: ...: the audit has no [gate]; run it with run_audit
    """
    if isinstance(audit, Audit):
        target = Target(RunFolder(audit.out if out is None else Path(out)), audit)
    else:
        target = find_target(audit, out)
    if target.audit is not None:
        planned_folder(target.audit, target.folder.path)
    if not target.folder.gated:
        raise SpecError("the audit has no [gate]", place=str(target.folder.path), remedy="run it with run_audit")
    summary = acquire_stage(target.folder, None if target.audit is None else target.audit.spec, progress=progress)
    if note is not None:
        note(f"acquire: {said_of_calls(summary)}")
    return finish_gated(target.folder, summary, note=note)


def finish_gated(folder: RunFolder, summary: Summary, *, note: Note | None = None) -> GatedRun:
    """Everything after the calls: the cube and its decisions."""
    tell = note or (lambda line: None)
    folder.sweep()
    tell(f"cube: {said_of_file(cube_stage(folder, note=note), folder.cube)}")
    tell("decompose: left out, since what is called behind a gate depends on the verdicts")
    with open_cube(folder.cube) as cube:
        return GatedRun(folder.path, summary, aggregate(cube.load(), rules=["plurality"]))
