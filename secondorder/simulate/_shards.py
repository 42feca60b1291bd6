"""Finished blocks on disk: a shard says which study and version it belongs to, and is written whole or not at all."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from secondorder._atomic import replacing
from secondorder._canon import sha256_hex
from secondorder._schema import check_schema
from secondorder._version import __version__
from secondorder.errors import CorruptFileError, SpecError

__all__ = ["SHARD_SCHEMA", "Shard", "ShardHeader", "load_shards", "save_shard"]

SHARD_SCHEMA = "secondorder.shard/1"


class ShardHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a shard holds.

    Attributes
    ----------
    study, digest, version : str
        Name and digest of the study, and the version of this package that ran it.
    point : str
        Label of the point.
    first : int
        Number of its first block.
    valid : tuple of int
        Replicates counted in each block.
    """

    study: str
    digest: str
    point: str
    first: int
    valid: tuple[int, ...]
    version: str = __version__
    schema: str = SHARD_SCHEMA


class Shard(NamedTuple):
    """A header and the sums of its blocks, shape (blocks, methods, estimands, sums)."""

    header: ShardHeader
    sums: NDArray[np.float64]


def save_shard(folder: Path, shard: Shard) -> Path:
    """Write a shard whole or not at all.

    Raises
    ------
    StorageError
        When the disk refuses.
    """
    # Where it starts and how much it counts: runs of other lengths never write over each other's blocks.
    header = shard.header
    name = f"{sha256_hex(header.point.encode())[:12]}-{header.first:06d}-{sum(header.valid)}.npz"
    path = folder / name
    text = np.frombuffer(msgspec.json.encode(header), dtype=np.uint8)
    with replacing(path, remedy="make room, then go on with --resume") as fresh:
        np.savez(fresh, header=text, sums=shard.sums)
    return path


def load_shards(folder: Path, study: str, digest: str) -> list[Shard]:
    """Every shard of a folder, refused when one belongs to another study or version.

    Raises
    ------
    SpecError
        Naming what differs.
    CorruptFileError
        When a file is not a shard that was written whole.
    """
    shards = [_load(path) for path in sorted(folder.glob("*.npz"))]
    for shard in shards:
        header = shard.header
        wrong = None
        if header.study != study or header.digest != digest:
            wrong = f"its shards belong to study {header.study} {header.digest[:12]}, not {study} {digest[:12]}"
        elif header.version != __version__:
            wrong = f"its shards were made by version {header.version}, this is {__version__}"
        if wrong is not None:
            raise SpecError(wrong, place=str(folder), remedy="give another --out, or delete the folder")
    return shards


def _load(path: Path) -> Shard:
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as data:
            raw: Any = json.loads(data["header"].tobytes())
            sums = np.asarray(data["sums"], dtype=np.float64)
        check_schema(raw.get("schema"), SHARD_SCHEMA, place=str(path))
        header = msgspec.convert(raw, ShardHeader)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, msgspec.ValidationError) as error:
        raise CorruptFileError(
            f"not a whole shard ({error})", place=str(path), remedy="delete it and resume"
        ) from error
    if len(sums) != len(header.valid):
        raise CorruptFileError("its header and sums differ in length", place=str(path), remedy="delete it and resume")
    return Shard(header, sums)
