"""The command line: one file per family of commands, each loaded when it is used.

``main`` turns every error into one line on stderr and the exit code of its branch; stdout carries results alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from secondorder._version import __version__
from secondorder.errors import SecondOrderError

__all__ = ["STDIN", "app", "main"]

STDIN = "stdin:"
"""What a lone ``-`` becomes before parsing, where it would pass for an option."""

app = App(
    name="secondorder",
    help="How much of an LLM judge's verdict is the answer, and how much is the prompt, the order, or the dice.",
    version=__version__,
    # Errors are printed by main, as one line.
    print_error=False,
    exit_on_error=False,
    result_action="return_value",
)

COMMANDS = {
    "decompose": ("secondorder.cli._decompose:decompose", "Decompose a table of verdicts, a cube or a run."),
}

for _name, (_path, _help) in COMMANDS.items():
    app.command(_path, name=_name, help=_help)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: ``sys.argv[1:]``.
    """
    sys.exit(_run(sys.argv[1:] if arguments is None else list(arguments)))


def _run(arguments: list[str]) -> int:
    try:
        code = app([STDIN if argument == "-" else argument for argument in arguments])
        sys.stdout.flush()
    except SecondOrderError as error:
        _complain(str(error))
        return error.exit_code
    except CycloptsError as error:
        _complain(f"{' '.join(str(error).split())} Try --help.")
        return 2
    except KeyboardInterrupt:
        _complain("interrupted")
        return 130
    except BrokenPipeError:
        # The reader went away (secondorder … | head): nothing is wrong, and nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _complain(f"{where}{error.strerror or error}")
        return 3
    return code if isinstance(code, int) else 0


def _complain(line: str) -> None:
    print(f"secondorder: {line}", file=sys.stderr)
