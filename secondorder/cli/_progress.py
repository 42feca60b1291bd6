"""What an audit shows while it goes: a bar on a terminal, a line now and then elsewhere; always on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from secondorder.cli._streams import say

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID
    from rich.status import Status

    from secondorder.acquire import Progress

__all__ = ["Watch", "duration", "working"]

QUIET_S = 15.0
"""Seconds between two lines where stderr is no terminal."""


class Watch:
    """Shows the progress of an acquisition and the notes of stages; a context manager.

    On a terminal the acquisition is a bar that goes away when it ends, and a stage that works without saying anything
    has a spinner. Elsewhere (a log file, a CI job) there is a line every 15 seconds.
    """

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._spinner: Status | None = None
        self._last = time.monotonic()

    def __enter__(self) -> Self:
        self._spin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._clear()
        if self._terminal and error is None:
            print(file=sys.stderr)  # between the notes and the result

    def note(self, line: str) -> None:
        """Print a line; what is shown for the stage before it goes away."""
        self._clear()
        say(line)
        self._spin()

    def progress(self, state: Progress) -> None:
        """Show how an acquisition stands."""
        if self._terminal:
            self._draw(state)
        elif time.monotonic() - self._last >= QUIET_S:
            self._last = time.monotonic()
            share = state.done / state.total if state.total else 1.0
            done = f"{state.done:,} of {state.total:,} calls ({share:.0%})"
            say(f"acquire: {done}, {_details(state)}, {duration(state.eta_s)} left")

    def _draw(self, state: Progress) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bar

            self._clear()
            columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=state.total)
            self._bar.start()
        assert self._task is not None
        left = f"{duration(state.eta_s)} left"
        if state.stopping:
            left = f"stopping: {state.in_flight} calls in flight may still end"
        self._bar.update(self._task, completed=state.done, total=state.total, description=f"{_details(state)}  {left}")

    def _spin(self) -> None:
        if self._terminal:
            from rich.console import Console

            self._spinner = Console(stderr=True).status("")
            self._spinner.start()

    def _clear(self) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._spinner is not None:
            self._spinner.stop()
        self._bar = self._spinner = None


@contextmanager
def working(words: str) -> Iterator[None]:
    """A spinner with words and seconds on a terminal, for as long as the block lasts; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress as Line
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Line(*columns, console=Console(stderr=True), transient=True) as line:
        line.add_task(words)
        yield


def _details(state: Progress) -> str:
    parts = [f"{state.rate:,.0f}/s", f"{state.invalid:,} ⊥"]
    parts += [f"{state.no_completion:,} missing"] if state.no_completion else []
    parts += [f"{state.not_called:,} not called"] if state.not_called else []
    parts += [f"{state.retries:,} retries"] if state.retries else []
    return "  ".join(parts)


def duration(seconds: float | None) -> str:
    """Seconds as a person says them; ``?`` where unknown.

    Examples
    --------
    >>> [duration(seconds) for seconds in (None, 4.2, 75, 7380)]
    ['?', '4 s', '1 min 15 s', '2 h 3 min']
    """
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
