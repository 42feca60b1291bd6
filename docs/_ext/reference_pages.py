"""Reference pages made from the code: the public names of Python, and the commands as their ``--help`` has them."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from pathlib import Path

from cyclopts import App

import secondorder
from secondorder.cli import app

GROUPS = {
    "Data": "Tables and files to cubes, and the views of a cube.",
    "Declarations": "What varies, what counts as disagreement, what is estimated.",
    "Decomposition and inference": "Estimates, the truth at a law, comparison.",
    "Audits": "From `audit.toml` to the report.",
    "Results": "Small frozen objects that print as a table.",
}
PYTHON = """# Python

Verbs: `read`, `open`, `save` (files), `make` (memory), `decompose`, `compare`. Data first, everything else by keyword,
one type returned. Names are loaded when they are first used, so `import secondorder` costs milliseconds. Results are
float64 whatever your JAX configuration is, and leave it as it was.
"""
COMMANDLINE = """# Commands

Results go to stdout alone; progress, notes and errors go to stderr. See [exit codes](exit-codes.md) and
[small decisions](decisions.md) (A26).
"""
NAMESPACES = ("acquire", "core", "interop", "plot", "simulate", "studies", "testing")


def write(folder: Path) -> None:
    """Write the generated pages that are not already what they should be (so that rebuilding is cheap)."""
    namespaces = {
        f"secondorder.{info.name}": page
        for info in pkgutil.iter_modules(secondorder.__path__)
        if info.name in NAMESPACES and (page := _namespace(f"secondorder.{info.name}"))
    }
    pages = {
        "python.md": f"{PYTHON}\n{_names()}\n{_contents(list(namespaces))}",
        "commands.md": f"{COMMANDLINE}\n{_commands()}",
        **{f"{name}.md": page for name, page in namespaces.items()},
    }
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def _names() -> str:
    grouped: dict[str, list[str]] = {group: [] for group in GROUPS}
    for module, name in _stub_imports():
        thing = getattr(secondorder, name)
        if not inspect.ismodule(thing):
            grouped[_group(module, thing)].append(f"secondorder.{name}")
    parts = [f"## {group}\n\n{GROUPS[group]}\n\n{_autosummary(names)}" for group, names in grouped.items() if names]
    parts.append(_errors())
    return "\n\n".join(parts) + "\n"


def _contents(names: list[str]) -> str:
    return "## Namespaces\n\n```{toctree}\n:maxdepth: 1\n\n" + "\n".join(names) + "\n```\n"


def _stub_imports() -> list[tuple[str, str]]:
    tree = ast.parse(Path(secondorder.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return [(node.module or "", name.asname or name.name) for node in imports for name in node.names]


def _group(module: str, thing: object) -> str:
    if module.startswith(("_audit", "report")):
        return "Audits"
    if module.startswith("_labels"):
        return "Data"
    if module.startswith("_design") or module.endswith("_kernel"):
        return "Declarations"
    return "Results" if inspect.isclass(thing) else "Decomposition and inference"


def _errors() -> str:
    from secondorder import errors

    rows = []
    for name in errors.__all__:
        kind = getattr(errors, name)
        parent = kind.__mro__[1].__name__
        rows.append(f"| `{name}` | {parent if parent in errors.__all__ else '–'} | {kind.exit_code} | {_first(kind)} |")
    head = "| `secondorder.errors` | under | exit code | |\n|---|---|---|---|\n"
    return "## Errors\n\nOne tree; each message names place, value and remedy.\n\n" + head + "\n".join(rows)


def _namespace(name: str) -> str:
    module = importlib.import_module(name)
    public = [entry for entry in getattr(module, "__all__", ()) if not entry.startswith("__")]
    shown = [entry for entry in public if callable(getattr(module, entry))]
    inner = [entry for entry in public if inspect.ismodule(getattr(module, entry))]
    if not shown and not inner:
        return ""
    parts = [f"# {name}\n\n{_first(module)}"]
    if shown:
        parts.append(_autosummary([f"{name}.{entry}" for entry in shown]))
    for entry in inner:
        deeper = getattr(module, entry)
        names = [f"{name}.{entry}.{part}" for part in getattr(deeper, "__all__", ()) if callable(getattr(deeper, part))]
        parts.append(f"## {name}.{entry}\n\n{_first(deeper)}\n\n{_autosummary(names)}")
    return "\n\n".join(parts) + "\n"


def _autosummary(names: list[str]) -> str:
    listed = "\n".join(f"   {name}" for name in names)
    return f"```{{eval-rst}}\n.. autosummary::\n   :toctree: generated\n\n{listed}\n```"


def _first(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ").replace("``", "`")


def _commands() -> str:
    from secondorder.cli import COMMANDS

    pages = [page for name in COMMANDS for page in _command(app[name], f"secondorder {name}")]
    return "\n\n".join(pages) + "\n"


def _command(command: App, name: str) -> list[str]:
    """A command's help, or those of its commands where it has some."""
    inner = [entry for entry in command if not entry.startswith("-")]
    if inner:
        return [page for entry in inner for page in _command(command[entry], f"{name} {entry}")]
    page = command.generate_docs(heading_level=2, usage_name=name)
    # Of a command inside a family only the first word of `python -m sphinx` is replaced by its name.
    body = page.strip().partition("\n")[2].replace(f"{name} -m sphinx", name)
    return [f"## {name}\n{body}"]
