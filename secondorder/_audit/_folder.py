"""A run's folder: where its artifacts lie, and small text files written whole."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from secondorder._schema import MANIFEST_SCHEMA, check_schema
from secondorder.errors import CorruptFileError, InputError

__all__ = ["FILES", "RunFolder", "run_folder"]

FILES = frozenset({"manifest.json", "ledger.sqlite", "cube.nc", "null.nc", "estimates.nc", "report.html"})

STALE_S = 600.0


@dataclass(frozen=True)
class RunFolder:
    """Paths of a run: ``manifest.json``, ``ledger.sqlite``, ``cube.nc``, ``estimates.nc``, ``report.html``."""

    path: Path

    @property
    def manifest(self) -> Path:
        """What was asked."""
        return self.path / "manifest.json"

    @property
    def ledger(self) -> Path:
        """What happened."""
        return self.path / "ledger.sqlite"

    @property
    def cube(self) -> Path:
        """Verdicts and call metadata, labelled."""
        return self.path / "cube.nc"

    @property
    def null(self) -> Path:
        """The same of the null block, where there is one."""
        return self.path / "null.nc"

    @property
    def estimates(self) -> Path:
        """Everything the report shows."""
        return self.path / "estimates.nc"

    @property
    def report(self) -> Path:
        """One file to open in a browser."""
        return self.path / "report.html"

    def sweep(self) -> None:
        """Remove what killed writers left beside the artifacts, once it is too old to be another process's work."""
        for path in self.path.glob(".*.*"):
            left_over = path.is_dir() and any(path.name.startswith(f".{name}.") for name in FILES)
            if left_over and time.time() - path.stat().st_mtime > STALE_S:
                shutil.rmtree(path, ignore_errors=True)

    @property
    def gated(self) -> bool:
        """Whether the run was planned behind a gate."""
        spec = self.read_manifest().get("spec")
        return isinstance(spec, dict) and spec.get("gate") is not None

    def read_manifest(self) -> dict[str, Any]:
        """The manifest of the folder.

        Raises
        ------
        InputError
            When the folder holds none.
        CorruptFileError
            When it is no JSON object.
        """
        try:
            text = self.manifest.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise InputError(
                "there is no manifest.json", place=str(self.path), remedy="plan first: secondorder plan audit.toml"
            ) from None
        except (OSError, UnicodeDecodeError) as error:
            raise CorruptFileError(
                f"it cannot be read ({error})", place=str(self.manifest), remedy=_WRITE_AGAIN
            ) from error
        try:
            manifest = json.loads(text)
        except ValueError as error:
            raise CorruptFileError(
                f"it is not JSON ({error})", place=str(self.manifest), remedy=_WRITE_AGAIN
            ) from error
        if not isinstance(manifest, dict):
            raise CorruptFileError("it is not a JSON object", place=str(self.manifest), remedy=_WRITE_AGAIN)
        check_schema(manifest.get("schema"), MANIFEST_SCHEMA, place=str(self.manifest))
        return manifest


_WRITE_AGAIN = "remove it and plan again: audit.toml says what it held, and the ledger is held to it"


def run_folder(path: str | os.PathLike[str]) -> RunFolder:
    """The run that a path names: its folder, or one of the files in it.

    Raises
    ------
    InputError
        When there is no run.
    """
    given = Path(path)
    folder = RunFolder(given.parent if given.name in FILES and not given.is_dir() else given)
    if not folder.manifest.is_file() and not folder.ledger.is_file():
        raise InputError(
            "no run is here", place=str(given), remedy="give the folder that holds manifest.json, or plan first"
        )
    return folder
