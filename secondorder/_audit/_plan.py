"""Loading an audit and planning it into a folder: the manifest, and a ledger that holds every planned call."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from secondorder._atomic import write_bytes
from secondorder._audit._folder import FILES, RunFolder, run_folder
from secondorder._canon import sha256_hex
from secondorder.acquire import (
    AuditSpec,
    Item,
    Plan,
    compare_manifests,
    create_ledger,
    load_spec,
    manifest_bytes,
    plan,
    read_items,
    read_ledger,
    replan_ledger,
)
from secondorder.errors import InputError, SpecError, StorageError

__all__ = ["ANEW", "Audit", "Target", "find_target", "load_audit", "plan_audit", "planned_folder"]

SHOWN_CHANGES = 6

ANEW = "planned anew: nothing had been called"
"""Note of a plan that took the place of another one."""


@dataclass(frozen=True)
class Audit:
    """An audit that has been read and checked, with its items.

    Attributes
    ----------
    spec : AuditSpec
        With every default filled.
    items : tuple of Item
        In file order.
    file : Path
        The ``audit.toml``.
    """

    spec: AuditSpec
    items: tuple[Item, ...]
    file: Path

    @property
    def out(self) -> Path:
        """Default place of the run: ``runs/<audit name>`` beside the spec, or that folder itself where it is one."""
        beside = RunFolder(self.file.parent)
        if beside.manifest.is_file() and beside.ledger.is_file():
            return beside.path
        return self.file.parent / "runs" / self.spec.name

    def __repr__(self) -> str:
        return f"Audit({self.spec.name!r}, {len(self.items)} items, {str(self.file)!r})"


@dataclass(frozen=True)
class Target:
    """What a command was pointed at: a run's folder, and its audit where there is an ``audit.toml``."""

    folder: RunFolder
    audit: Audit | None


def load_audit(path: str | os.PathLike[str]) -> Audit:
    """Read an ``audit.toml`` and its items, checking both.

    Parameters
    ----------
    path : path
        The file, or the folder that holds it.

    Returns
    -------
    Audit

    Raises
    ------
    SpecError, SchemaError, TableError, InputError
        Naming file and key or row; nothing has been started.

    Examples
    --------
    >>> import tempfile
    >>> import secondorder as so
    >>> from secondorder.acquire import write_template
    >>> folder = tempfile.mkdtemp()
    >>> _ = write_template(folder)
    >>> so.load_audit(folder)
    Audit('my-judge', 4 items, '...audit.toml')
    """
    file = Path(path)
    file = file / "audit.toml" if file.is_dir() else file
    spec = load_spec(file)
    return Audit(spec, tuple(read_items(spec, file.parent)), file)


def plan_audit(audit: Audit | str | os.PathLike[str]) -> Plan:
    """Plan every call of an audit: a pure function of the spec and its items; nothing is written or called.

    Parameters
    ----------
    audit : Audit or path
        A loaded audit, or the path of an ``audit.toml``.

    Returns
    -------
    Plan
        ``manifest``, ``calls`` (in send order, with the very bytes of each request) and ``notes``.

    Raises
    ------
    InputError
        When the audit is not valid.

    Examples
    --------
    >>> import tempfile
    >>> import secondorder as so
    >>> from secondorder.acquire import write_template
    >>> folder = tempfile.mkdtemp()
    >>> _ = write_template(folder)
    >>> plan = so.plan_audit(folder)
    >>> plan.manifest["calls"], len(plan.manifest["prompts"])
    (192, 6)
    """
    loaded = audit if isinstance(audit, Audit) else load_audit(audit)
    planned = plan(loaded.spec, loaded.items)
    if loaded.spec.stop is None:
        return planned
    # Statistics are loaded for a stop rule alone.
    from secondorder._audit._stop_rule import least_work

    return Plan(planned.spec, planned.manifest, planned.calls, (*planned.notes, least_work(planned.manifest)))


def find_target(path: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> Target:
    """The run that a path stands for: an ``audit.toml``, its folder, a run's folder, or a file in one.

    Parameters
    ----------
    path : path
    out : path, optional
        Folder of the run, where it is not the default one.

    Raises
    ------
    InputError
        When there is nothing of that kind.
    """
    given = Path(path)
    if given.is_dir() and (given / "audit.toml").is_file():
        given = given / "audit.toml"
    if given.suffix == ".toml":
        audit = load_audit(given)
        return Target(RunFolder(Path(out) if out is not None else audit.out), audit)
    if not given.exists():
        raise InputError(
            "there is no such file or folder", place=str(given), remedy="give an audit.toml or the folder of a run"
        )
    if out is not None:
        raise InputError("it is a run already", place=str(given), remedy="leave --out away, or give its audit.toml")
    if not given.is_dir() and given.name not in FILES:
        raise InputError("it is no file of an audit", place=str(given), remedy="give an audit.toml or a run's folder")
    return Target(run_folder(given), None)


def planned_folder(audit: Audit, out: str | os.PathLike[str] | None = None) -> tuple[RunFolder, Plan]:
    """The audit's folder with manifest and ledger, made if they are not there, compared if they are.

    Where another audit was planned there and none of its calls was ever announced, this one takes its place, and the
    plan's notes say so (:data:`ANEW`).

    Raises
    ------
    SpecError
        When the folder holds another audit of which something was called; the changed keys are listed.
    LockedError
        When another process writes the ledger that would be planned anew.
    StorageError
        When the folder cannot be written.
    """
    folder = RunFolder(Path(out) if out is not None else audit.out)
    planned = plan_audit(audit)
    if folder.ledger.exists() and _differs(folder, planned) and _plan_anew(folder, planned):
        return folder, Plan(planned.spec, planned.manifest, planned.calls, (*planned.notes, ANEW))
    if folder.manifest.exists():
        _refuse_changes(folder, planned)
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the folder cannot be made ({error.strerror})", place=str(folder.path), remedy="choose another: --out DIR"
        ) from error
    if folder.ledger.exists():
        _refuse_foreign(folder, planned)
    elif not folder.manifest.exists():
        _refuse_files_of_others(folder)
    data = manifest_bytes(planned.manifest)
    if not folder.manifest.exists():
        write_bytes(folder.manifest, data)
    if not folder.ledger.exists():
        create_ledger(
            folder.ledger,
            planned.calls,
            calls_sha256=planned.manifest["calls_sha256"],
            manifest_sha256=sha256_hex(data),
        )
    return folder, planned


def _differs(folder: RunFolder, planned: Plan) -> bool:
    """Whether manifest or ledger are those of another plan, or what an interrupted planning anew left."""
    with read_ledger(folder.ledger) as reader:
        if reader.meta.get("calls_sha256") != planned.manifest["calls_sha256"]:
            return True
    return folder.manifest.exists() and bool(compare_manifests(folder.read_manifest(), planned.manifest))


def _plan_anew(folder: RunFolder, planned: Plan) -> bool:
    """Take the place of a plan of which nothing was called; False when something was.

    The manifest goes first and comes last, so that a folder that was left between has none, and no call is made from
    it before it is planned again.
    """
    data = manifest_bytes(planned.manifest)

    def clear() -> None:
        for path in (folder.manifest, folder.cube, folder.null):  # cubes of no answers: made again from the ledger
            path.unlink(missing_ok=True)

    return replan_ledger(
        folder.ledger,
        planned.calls,
        calls_sha256=planned.manifest["calls_sha256"],
        manifest_sha256=sha256_hex(data),
        before=clear,
        after=lambda: write_bytes(folder.manifest, data),
    )


def _refuse_changes(folder: RunFolder, planned: Plan) -> None:
    changes = compare_manifests(folder.read_manifest(), planned.manifest)
    if not changes:
        return
    shown = "; ".join(changes[:SHOWN_CHANGES])
    more = f" and {len(changes) - SHOWN_CHANGES} more" if len(changes) > SHOWN_CHANGES else ""
    raise SpecError(
        f"the folder holds another audit ({shown}{more})",
        place=str(folder.path),
        remedy=f"undo the changes, or start a new run: --out {folder.path}-2",
    )


def _refuse_files_of_others(folder: RunFolder) -> None:
    """A run writes over files of certain names: not where no run is."""
    present = sorted(name for name in FILES if (folder.path / name).exists())
    if present:
        raise SpecError(
            f"it holds {present[0]} and no run: the file would be overwritten",
            place=str(folder.path),
            remedy="move the file away, or give another --out DIR",
        )


def _refuse_foreign(folder: RunFolder, planned: Plan) -> None:
    """A ledger is never joined to a manifest that did not plan its calls."""
    with read_ledger(folder.ledger) as reader:
        if reader.meta.get("calls_sha256") != planned.manifest["calls_sha256"]:
            raise SpecError(
                "the ledger holds the calls of another plan", place=str(folder.ledger), remedy="give a new --out DIR"
            )
