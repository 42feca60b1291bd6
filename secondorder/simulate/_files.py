"""Finding and loading the files in which studies and claims are declared."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeVar

from secondorder._canon import sha256_hex
from secondorder.errors import SpecError, StorageError

__all__ = ["declarations", "find_declaration", "load_declared", "load_module", "make_folder"]

Kind = Literal["simulations", "validation"]
T = TypeVar("T")

SHIPPED = Path(__file__).resolve().parents[1] / "_shipped"
CHECKOUT = Path(__file__).resolve().parents[2]
"""Where the declarations lie when the package is installed from a checkout (``pip install -e``)."""


def declarations(kind: Kind) -> dict[str, Path]:
    """Every declaration by name: those of the local folder first, then those that ship with the package.

    Parameters
    ----------
    kind : {"simulations", "validation"}
        Also the name of the local folder, beside which the command runs.
    """
    found: dict[str, Path] = {}
    for folder in (Path(kind), SHIPPED / kind, CHECKOUT / kind):
        for path in sorted(folder.glob("*.py")):
            if not path.name.startswith("_"):
                found.setdefault(path.stem, path)
    return dict(sorted(found.items()))


def find_declaration(name: str, kind: Kind) -> Path:
    """The file of a declaration: a path wins, then the local folder, then what ships with the package.

    Raises
    ------
    SpecError
        Naming what there is.
    """
    path = Path(name)
    if path.suffix == ".py":
        if path.is_file():
            return path
        raise SpecError("there is no such file", place=name, remedy="give the path of a declaration")
    known = declarations(kind)
    if name in known:
        return known[name]
    what = "study" if kind == "simulations" else "claim"
    raise SpecError(
        f"there is no {what} {name!r}",
        place=f"{kind}/",
        remedy=f"give a path, or one of {', '.join(known)}" if known else "give the path of a file",
    )


def make_folder(folder: Path) -> Path:
    """The folder, made if need be.

    Raises
    ------
    StorageError
        When the disk refuses.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"no folder can be made ({error.strerror})", place=str(folder)) from error
    return folder


def load_declared(path: Path | str, name: str, kind: type[T]) -> T:
    """The variable `name` of a file, which has to be a `kind`.

    Parameters
    ----------
    path : path
    name : str
        ``STUDY`` or ``CLAIM``.
    kind : type
        :class:`Study` or :class:`Claim`.

    Raises
    ------
    SpecError
        When the file cannot be run, or does not declare it.
    """
    try:
        module = load_module(path)
    except SpecError:
        raise
    except (Exception, SystemExit) as error:
        raise SpecError(f"{type(error).__name__}: {error}", place=str(path), remedy="mend the file") from error
    declared = getattr(module, name, None)
    if not isinstance(declared, kind):
        raise SpecError(
            f"it declares no {name}" if declared is None else f"{name} is a {type(declared).__name__}",
            place=str(path),
            remedy=f"write {name} = {kind.__name__}(...)",
        )
    return declared


def load_module(path: Path | str) -> ModuleType:
    """Run a file once per process, under a name that its path decides, so that its functions can be pickled."""
    resolved = Path(path).resolve()
    name = f"secondorder_declared_{resolved.stem}_{sha256_hex(str(resolved).encode())[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, resolved)
    if spec is None or spec.loader is None:
        raise SpecError("it is not a Python file", place=str(path), remedy="give a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
