"""The one tree of errors, and the exit code that each branch carries.

Every message says where the fault is (file, row, key), what was found there and what to do about it. The command line
prints ``str(error)`` as a single line and exits with :attr:`SecondOrderError.exit_code`.
"""

from __future__ import annotations

from secondorder._visible import visible

__all__ = [
    "CorruptFileError",
    "CubeError",
    "DesignError",
    "EndpointError",
    "InputError",
    "KernelError",
    "KeyRefusedError",
    "LockedError",
    "SchemaError",
    "SecondOrderError",
    "SpecError",
    "StorageError",
    "TableError",
    "UndefinedError",
    "WorldError",
]


class SecondOrderError(Exception):
    """Root of every error that this package raises on purpose.

    Parameters
    ----------
    problem : str
        What is wrong, with the offending value.
    place : str, optional
        Where: a file, a row, a key, an argument.
    remedy : str, optional
        What the user can do.

    Examples
    --------
    >>> print(InputError("column 'wording' is missing", place="calls.csv", remedy="columns: item, prompt"))
    calls.csv: column 'wording' is missing; columns: item, prompt
    """

    exit_code = 1

    def __init__(self, problem: str, *, place: str | None = None, remedy: str | None = None) -> None:
        self.problem = problem
        self.place = place
        self.remedy = remedy
        super().__init__(problem)

    def __str__(self) -> str:
        line = self.problem if self.place is None else f"{self.place}: {self.problem}"
        if self.remedy is not None:
            line = f"{line}; {self.remedy}"
        return visible(" ".join(line.split()))

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling of exceptions (process pools need it).
        return (_rebuild, (type(self), self.problem, self.place, self.remedy))


def _rebuild(kind: type[SecondOrderError], problem: str, place: str | None, remedy: str | None) -> SecondOrderError:
    return kind(problem, place=place, remedy=remedy)


class InputError(SecondOrderError, ValueError):
    """Bad input or configuration: nothing was started (exit code 2)."""

    exit_code = 2


class TableError(InputError):
    """A verdict table cannot be read as a cube."""


class CubeError(InputError):
    """A cube does not have the declared form, or its cells do not suffice for what is asked."""


class DesignError(InputError):
    """A declaration of facets, weights or components contradicts itself or the data."""


class KernelError(InputError):
    """A disagreement kernel is not one, or does not fit the classes."""


class SpecError(InputError):
    """An ``audit.toml``, a study or a claim is not valid."""


class SchemaError(InputError):
    """A file declares a schema that this version does not read."""


class UndefinedError(InputError):
    """The requested number does not exist for these data (the message says why)."""


class LockedError(InputError):
    """Another process holds the ledger (the message names its process id)."""


class WorldError(SecondOrderError, RuntimeError):
    """The world failed; what was stored is kept (exit code 3)."""

    exit_code = 3


class EndpointError(WorldError):
    """The judge's endpoint cannot be reached or refuses to serve."""


class KeyRefusedError(EndpointError):
    """The endpoint refused the key (401 or 403)."""


class StorageError(WorldError):
    """The disk failed or is full."""


class CorruptFileError(WorldError):
    """A file that this package wrote earlier no longer reads as what it was."""
