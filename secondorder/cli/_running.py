"""What long commands share: a progress bar on a terminal, and processes that are spawned."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

__all__ = ["progress_bar", "spawned"]


@contextmanager
def progress_bar(title: str, unit: str) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr, updated by calls of (done, total); None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=None)

        def update(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield update


@contextmanager
def spawned(processes: int) -> Iterator[Executor | None]:
    """An executor of that many spawned processes; None for one: the work then stays in this process."""
    if processes == 1:
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # JAX has threads of its own: a forked copy of them hangs.
    executor = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    try:
        yield executor
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
