"""Shapes such as ``(*batch, item, class)`` in docstrings, where the star would open an emphasis for Sphinx."""

from __future__ import annotations

import re
from typing import Any

CODE = re.compile(r"(``.*?``)")
STAR = re.compile(r"(?<![\w*\\`])\*(?=\w+\s*[,)])")


def escape(line: str) -> str:
    """Escape the stars of shapes outside of code."""
    if line.lstrip().startswith((">>>", "...")):
        return line
    return "".join(part if k % 2 else STAR.sub(r"\\*", part) for k, part in enumerate(CODE.split(line)))


def _process(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    lines[:] = map(escape, lines)


def setup(app: Any) -> dict[str, bool]:
    """Run before numpydoc reads the docstring."""
    app.connect("autodoc-process-docstring", _process, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
