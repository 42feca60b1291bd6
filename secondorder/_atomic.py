"""Files that are written whole or not at all: a reader sees the old content or the new, never a part."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from secondorder.errors import StorageError

__all__ = ["replacing", "write_bytes"]

REMEDY = "make room or choose another place, then run the same command again"


@contextmanager
def replacing(target: Path, *, remedy: str = REMEDY) -> Iterator[Path]:
    """A path beside `target` to write a file to; it takes the target's place when the block ends well.

    A symbolic link stays: the file that it leads to is replaced.

    Raises
    ------
    StorageError
        When the disk refuses; the old file stays as it was.
    """
    place = Path(os.path.realpath(target))
    try:
        holder = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
        try:
            fresh = holder / place.name
            yield fresh
            with fresh.open("rb") as file:
                os.fsync(file.fileno())
            os.replace(fresh, place)
        finally:
            shutil.rmtree(holder, ignore_errors=True)
    except OSError as error:
        raise StorageError(
            f"it cannot be written ({error.strerror or error})", place=str(target), remedy=remedy
        ) from error


def write_bytes(target: Path, data: bytes | memoryview, *, remedy: str = REMEDY) -> None:
    """Write a file whole: see :func:`replacing`."""
    with replacing(target, remedy=remedy) as fresh:
        fresh.write_bytes(data)
