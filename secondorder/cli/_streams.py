"""The three standard streams: ready for any text, and what goes to them cannot act on a terminal."""

from __future__ import annotations

import codecs
import json
import os
import shutil
import sys
import textwrap
from contextlib import suppress
from typing import Any, TextIO

from secondorder._visible import visible

__all__ = ["make_ready", "say", "show", "show_json"]


def make_ready() -> None:
    """Open closed streams on the null device, and let every text through whatever the encoding is.

    A stream that the caller closed is None in Python, and the next file that is opened takes its number: what is meant
    for the stream would go into that file.
    """
    codecs.register_error("secondorder", _escape)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  (open to the end)
        elif mode == "w" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="secondorder")


def _escape(error: UnicodeError) -> tuple[str, int]:
    """What an encoding has no bytes for, as JSON writes it: JSON stays JSON, and a table says what stands there."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def show(result: object, *, end: str = "\n") -> None:
    """Print a result, or a path, to stdout."""
    print(visible(str(result), keep="\n"), end=end, flush=True)


def show_json(plain: Any) -> None:
    """Print plain values to stdout as JSON."""
    print(json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=2))


def say(line: str) -> None:
    """Print a note to stderr; work does not stop because nobody can read it.

    A terminal gets it broken between words; a file or a pipe as one line, to be searched.
    """
    with suppress(OSError):
        shown = visible(line, keep="\n")
        if sys.stderr.isatty():
            width = shutil.get_terminal_size().columns
            parts = (
                textwrap.wrap(part, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
                for part in shown.split("\n")
            )
            shown = "\n".join("\n".join(part) for part in parts)
        print(shown, file=sys.stderr, flush=True)
