"""One writer per ledger: a lock that the operating system takes back when its holder dies, however it dies."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from secondorder.errors import LockedError, StorageError

__all__ = ["FileLock"]

if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> None:
        # Far behind the text, so that others can still read who holds it.
        os.lseek(descriptor, 1 << 30, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
else:
    import fcntl

    def _try_lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FileLock:
    """Exclusive lock of a ledger, held until :meth:`release` or the end of the process.

    A separate file is locked, not the ledger: closing any handle of an SQLite file would drop SQLite's own locks.

    Raises
    ------
    LockedError
        When another process holds it, with the number of that process.
    StorageError
        When the lock file cannot be created.
    """

    def __init__(self, ledger: Path) -> None:
        self.path = ledger.with_name(ledger.name + ".lock")
        while True:
            try:
                descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            except OSError as error:
                raise StorageError(f"cannot lock: {error.strerror}", place=str(self.path)) from error
            try:
                _try_lock(descriptor)
            except OSError as error:
                holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
                os.close(descriptor)
                raise LockedError(
                    f"process {holder} is writing this ledger",
                    place=str(ledger),
                    remedy="wait until it ends, or stop it; what it has stored stays",
                ) from error
            if _same_file(descriptor, self.path):
                break
            os.close(descriptor)  # released and removed by its holder between our opening and locking it
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor: int | None = descriptor

    def release(self) -> None:
        """Give the lock back and remove its file."""
        if self._descriptor is not None:
            if sys.platform != "win32":  # an open file cannot be removed there
                self.path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


def _same_file(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
