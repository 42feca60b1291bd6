"""Loading an audit and planning it into a folder: the manifest, and a ledger that holds every planned call."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from secondorder._audit._folder import RunFolder, write_bytes
from secondorder._canon import sha256_hex
from secondorder.acquire._items import Item, read_items
from secondorder.acquire._ledger import create_ledger
from secondorder.acquire._ledger_read import read_ledger
from secondorder.acquire._load import load_spec
from secondorder.acquire._manifest import compare_manifests, manifest_bytes
from secondorder.acquire._plan import Plan, plan
from secondorder.acquire._spec import AuditSpec
from secondorder.errors import SpecError, StorageError

__all__ = ["Audit", "load_audit", "plan_audit", "planned_folder"]

SHOWN_CHANGES = 6


@dataclass(frozen=True)
class Audit:
    """An audit that has been read and checked, with its items.

    Attributes
    ----------
    spec : AuditSpec
    items : tuple of Item
    folder : Path
        Folder of ``audit.toml``.
    """

    spec: AuditSpec
    items: tuple[Item, ...]
    folder: Path

    @property
    def out(self) -> Path:
        """Default place of the run: ``runs/<audit name>`` beside the spec."""
        return self.folder / "runs" / self.spec.name


def load_audit(path: str | os.PathLike[str]) -> Audit:
    """Read an ``audit.toml`` and its items, checking both.

    Parameters
    ----------
    path : path
        The file, or the folder that holds it.

    Raises
    ------
    SpecError, TableError, InputError
        Naming file and key or row; nothing has been started.
    """
    file = Path(path)
    file = file / "audit.toml" if file.is_dir() else file
    spec = load_spec(file)
    return Audit(spec, tuple(read_items(spec, file.parent)), file.parent)


def plan_audit(audit: Audit) -> Plan:
    """Plan every call of an audit: a pure function of the spec and its items; nothing is written or called."""
    return plan(audit.spec, audit.items)


def planned_folder(audit: Audit, out: str | os.PathLike[str] | None = None) -> tuple[RunFolder, Plan]:
    """The audit's folder with manifest and ledger, made if they are not there, compared if they are.

    Raises
    ------
    SpecError
        When the folder holds another audit; the changed keys are listed.
    StorageError
        When the folder cannot be written.
    """
    folder = RunFolder(Path(out) if out is not None else audit.out)
    planned = plan_audit(audit)
    if folder.manifest.exists():
        _refuse_changes(folder, planned)
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the folder cannot be made ({error.strerror})", place=str(folder.path), remedy="choose another: --out DIR"
        ) from error
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
    else:
        with read_ledger(folder.ledger) as reader:
            if reader.meta.get("calls_sha256") != planned.manifest["calls_sha256"]:
                raise SpecError(
                    "the ledger holds the calls of another plan than manifest.json",
                    place=str(folder.ledger),
                    remedy="choose a new folder: --out DIR",
                )
    return folder, planned


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
