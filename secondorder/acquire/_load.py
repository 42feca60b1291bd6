"""Reading ``audit.toml``: from the file's bytes to a checked spec with every default filled."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from secondorder._schema import SPEC_SCHEMA, check_schema
from secondorder.acquire._contract import complete
from secondorder.acquire._endpoint import endpoint_of
from secondorder.acquire._gate import read_gate
from secondorder.acquire._rules import check_spec
from secondorder.acquire._spec import AuditSpec
from secondorder.acquire._strict import Place, build
from secondorder.errors import SpecError

__all__ = ["load_spec", "parse_spec", "spec_from_manifest"]


def load_spec(path: str | os.PathLike[str]) -> AuditSpec:
    """Read and check an ``audit.toml``.

    Parameters
    ----------
    path : path-like
        The file. ``items.file`` stays relative to its folder (see :func:`secondorder.acquire._items.read_items`).

    Returns
    -------
    AuditSpec
        With every default filled.

    Raises
    ------
    SpecError
        When the file cannot be read, or says something that is not valid: one line with place, value and remedy.
    SchemaError
        When it declares another schema, or one that a newer version reads.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SpecError(
            f"cannot be read: {reason}", place=str(path), remedy="'secondorder init DIR' writes a commented one"
        ) from None
    except UnicodeDecodeError as error:
        raise SpecError(
            f"byte {error.start} is not UTF-8", place=str(path), remedy="save the file in the encoding UTF-8"
        ) from None
    return parse_spec(text, file=str(path), folder=Path(path).parent)


def parse_spec(text: str, *, file: str = "audit.toml", folder: Path | None = None) -> AuditSpec:
    """The same from the text of the file; `file` is what messages call it, `folder` where it lies (default: here)."""
    try:
        raw: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        # Also numbers of thousands of digits, and brackets in brackets without end.
        what = "it is nested too deep" if isinstance(error, RecursionError) else error
        raise SpecError(f"is not valid TOML: {what}", place=file, remedy="mend that line") from None
    if "schema" not in raw:
        raise SpecError(
            "key 'schema' is missing", place=file, remedy=f'write schema = "{SPEC_SCHEMA}" on the first line'
        )
    check_schema(raw["schema"], SPEC_SCHEMA, place=file)
    spec = build(AuditSpec, raw, Place(file))
    if spec.gate is not None:
        if spec.gate.content:
            raise SpecError("content is given", place=f"{file} [gate]", remedy="name the gate's file alone")
        content = read_gate((folder or Path()) / spec.gate.file, place=f"{file} [gate]")
        spec = msgspec.structs.replace(spec, gate=msgspec.structs.replace(spec.gate, content=content))
    check_spec(spec, file=file)
    return _fill(spec)


def spec_from_manifest(manifest: dict[str, Any]) -> AuditSpec:
    """The spec that a manifest was planned from, for re-reading its answers.

    Raises
    ------
    SpecError
        When the manifest does not hold one.
    """
    try:
        return msgspec.convert(manifest["spec"], AuditSpec)
    except (KeyError, msgspec.ValidationError) as error:
        raise SpecError(f"holds no valid spec: {error}", place="manifest.json", remedy="plan the audit again") from None


def _fill(spec: AuditSpec) -> AuditSpec:
    """Defaults that depend on other keys."""
    judges = {
        name: msgspec.structs.replace(judge, seeds=endpoint_of(judge).takes_seed) if judge.seeds is None else judge
        for name, judge in spec.judges.items()
    }
    analysis = msgspec.structs.replace(spec.analysis, kernel=spec.analysis.kernel or "nominal")
    return msgspec.structs.replace(spec, judges=judges, analysis=analysis, verdict=complete(spec.verdict))
