"""The command line: one file per family of commands, each loaded when it is used.

``main`` turns every error into one line on stderr and the exit code of its branch; stdout carries results alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, get_args

from cyclopts import App, ArgumentCollection, CoercionError, CycloptsError, UnusedCliTokensError

from secondorder._version import __version__
from secondorder.cli._streams import make_ready, say
from secondorder.cli._words import in_flags, running
from secondorder.errors import SecondOrderError

__all__ = ["STDIN", "app", "main"]

STDIN = "stdin:"
"""What a lone ``-`` becomes before parsing, where it would pass for an option."""

COMMANDS = {
    "budget": ("secondorder.cli._budget:budget", "Plan items and repeats from a pilot."),
    "certify": ("secondorder.cli._certify:certify", "Certify that a component is below a threshold."),
    "check": ("secondorder.cli._check:check", "Look for what breaks the independence of calls."),
    "contrast": ("secondorder.cli._contrast:contrast", "Differences and ratios of components with joint bands."),
    "posterior": ("secondorder.cli._posterior:posterior", "Draws of a Bayesian companion, or of the bootstrap."),
    "test": ("secondorder.cli._permute:permute", "Test that a facet has no effect, or that judges do not differ."),
    "demo": ("secondorder.cli._audit:demo", "Audit a simulated judge here; see estimates beside the truth."),
    "init": ("secondorder.cli._audit:init", "Write an audit.toml to begin with."),
    "run": ("secondorder.cli._audit:run", "Run an audit: plan, acquire, cube, decompose, report."),
    "plan": ("secondorder.cli._audit:plan", "Plan every call of an audit."),
    "doctor": ("secondorder.cli._doctor:doctor", "Look at an audit's judges before its first call."),
    "acquire": ("secondorder.cli._audit:acquire", "Make the calls that have no outcome yet."),
    "cube": ("secondorder.cli._audit:cube", "Join a ledger's outcomes to a cube of verdicts."),
    "decompose": ("secondorder.cli._decompose:decompose", "Decompose a table of verdicts, a cube or a run."),
    "report": ("secondorder.cli._audit:report", "Show a run's estimates in one HTML file."),
    "study": ("secondorder.cli._study:study", "Agreement, lottery, aggregation, gates, designs, paraphrases."),
    "simulate": ("secondorder.cli._simulate:simulate", "Run a simulation study with known truth."),
    "validate": ("secondorder.cli._validate:validate", "Check the claims of this package; keep the evidence."),
    "ledger": ("secondorder.cli._ledger:ledger", "Verify a run's ledger, or export its rows."),
}
"""Every command: where it is, and its line in the list of commands. The order is that of the list."""


def _make_app(*, listing: bool) -> App:
    """The command line; for the list of commands alone with its short lines, which nothing has to be imported for.

    A command's own help is its docstring, which a short line would replace.
    """
    made = App(
        name="secondorder",
        help="How much of an LLM judge's verdict is the answer, and how much is the prompt, the order, or the dice.",
        version=__version__,
        # Errors are printed by main, as one line.
        print_error=False,
        exit_on_error=False,
        result_action="return_value",
        config=_refuse_rounding,
        # main says on Ctrl-C what is stored; cyclopts would exit without a word.
        suppress_keyboard_interrupt=False,
    )
    for position, (name, (path, line)) in enumerate(COMMANDS.items()):
        made.command(path, name=name, help=line if listing else None, sort_key=position)
    return made


def _refuse_rounding(_app: App, _commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse ``2.5`` where a whole number is asked for; cyclopts would round it without a word."""
    for argument in arguments:
        for token in argument.tokens:
            if "." in token.value and _is_whole(argument.hint):
                raise CoercionError(argument=argument, token=token, target_type=int)


def _is_whole(hint: Any) -> bool:
    """Whether a type is int, or that or None, or a list of it."""
    return hint is int or any(map(_is_whole, get_args(hint)))


app = _make_app(listing=False)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: ``sys.argv[1:]``.
    """
    make_ready()
    sys.exit(_run(sys.argv[1:] if arguments is None else list(arguments)))


def _run(arguments: list[str]) -> int:
    chosen = app if arguments and arguments[0] in COMMANDS else _make_app(listing=True)
    running.set((chosen, arguments))
    try:
        code = chosen([STDIN if argument == "-" else argument for argument in arguments])
        sys.stdout.flush()
    except SecondOrderError as error:
        _complain(in_flags(error))
        return error.exit_code
    except UnusedCliTokensError as error:
        unused = error.unused_tokens or []
        what = f"{unused[0]!r} is one argument too many: a flag takes one value, give it again for each further one"
        _complain(f"{what}. Try --help.")
        return 2
    except CycloptsError as error:
        _complain(f"{' '.join(str(error).split())} Try --help.")
        return 2
    except KeyboardInterrupt as error:
        _complain(f"interrupted: {error}" if str(error) else "interrupted")
        return 130
    except BrokenPipeError:
        # The reader went away (secondorder … | head): nothing is wrong, and nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError as error:
        why = f" ({error})" if str(error) else ""
        _complain(f"the memory of this machine does not suffice{why}; take fewer items, levels or draws at a time")
        return 3
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _complain(f"{where}{error.strerror or error}")
        return 3
    return code if isinstance(code, int) else 0


def _complain(line: str) -> None:
    say(f"secondorder: {line}")
