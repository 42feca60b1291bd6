"""Running a study: points, blocks, processes, shards."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from secondorder.errors import SpecError, WorldError
from secondorder.simulate._block import Simulator, replicates_per_block
from secondorder.simulate._files import load_module, make_folder
from secondorder.simulate._prepared import Prepared, prepare
from secondorder.simulate._result import StudyResult, assemble
from secondorder.simulate._shards import Shard, ShardHeader, load_shards, save_shard
from secondorder.simulate._study import Study, point_label

__all__ = ["Progress", "run_study"]

Progress = Callable[[int, int], None]
Sums = NDArray[np.float64]

# Blocks per shard: about a second of work, so that little is lost and little is written.
SHARD_BLOCKS = 64
# Jobs handed to an executor at a time, so that a long study does not queue all its arrays.
IN_FLIGHT = 32


class _Job(NamedTuple):
    """Blocks of one point, and how many replicates of each count."""

    point: int
    first: int
    valid: tuple[int, ...]


class _Task(NamedTuple):
    """A point as it is run."""

    study: Study
    label: str
    prepared: Prepared

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What a simulator is made of; the study itself holds functions that other processes need not have."""
        study = self.study
        return self.prepared, tuple(study.methods), study.seed, f"{study.name} {self.label}", study.level

    def payload(self) -> bytes:
        """The same as bytes for another process."""
        try:
            return pickle.dumps(self.arguments)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise SpecError(
                f"a method cannot be sent to other processes ({error})",
                place=f"study {self.study.name}",
                remedy="define it at the top of the study's file, or run in one process",
            ) from error


def run_study(
    study: Study,
    *,
    replicates: int | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
    shard_blocks: int = SHARD_BLOCKS,
    source: Path | str | None = None,
) -> StudyResult:
    """Run every point of a study.

    The digits depend on the study and the number of replicates alone: not on the executor, the number of its
    processes, the size of shards, or whether the run was interrupted. A study that is run again with more replicates
    keeps those it has.

    Parameters
    ----------
    study : Study
    replicates : int, optional
        Data sets per point; default: the study's.
    out : path, optional
        Folder for shards, so that a run can be resumed; default: nothing is written.
    resume : bool
        Go on from the shards in `out`.
    executor : concurrent.futures.Executor, optional
        Runs the blocks: threads share compiled programs and suit the built-in methods, processes suit slow methods of
        one's own and must be spawned, not forked. Default: this process.
    progress : callable, optional
        Called with (replicates done, replicates in all).
    shard_blocks : int
        Blocks per shard.
    source : path, optional
        File that the study was loaded from, for methods of its own that other processes have to load.

    Returns
    -------
    StudyResult

    Raises
    ------
    SpecError
        When a mechanism is contradictory, or `out` holds shards of another study or version.

    Examples
    --------
    >>> from secondorder.simulate import Mechanism, Study, laws
    >>> def mechanism(R):
    ...     return Mechanism(laws.exchangeable([0.5, 0.5], {"prompt": 3}), repeats=R)
    >>> study = Study("null", "How large is the plug-in's bias?", {"R": (2,)}, mechanism, replicates=4000, seed=1)
    >>> result = run_study(study)
    >>> abs(float(result.data.bias.sel(estimator="plugin", estimand="prompt", R=2)) - 1 / 6) < 0.02
    True
    """
    wanted = study.replicates if replicates is None else replicates
    if wanted < 1:
        raise SpecError(f"{wanted} replicates", place=f"study {study.name}", remedy="give at least 1")
    points = study.points()
    mechanisms = [study.mechanism_at(point) for point in points]
    prepared = [prepare(mechanism, study.estimands) for mechanism in mechanisms]
    names = {point.names for point in prepared}
    if len(names) > 1:
        raise SpecError(
            f"its points have different estimands: {sorted(names)}",
            place=f"study {study.name}",
            remedy="name the estimands that all points have",
        )
    tasks = [_Task(study, point_label(point), ready) for point, ready in zip(points, prepared, strict=True)]
    digest = study.digest(mechanisms)
    folder = None if out is None else _shard_folder(Path(out), resume)
    done = _finished(folder, study, digest, [point_label(point) for point in points])
    needed = [_valid_per_block(replicates_per_block(ready, study.methods), wanted) for ready in prepared]
    results: list[dict[int, Sums]] = [
        {block: sums for block, (valid, sums) in done[i].items() if block < len(need) and valid == need[block]}
        for i, need in enumerate(needed)
    ]
    total = wanted * len(points)
    finished = sum(needed[i][block] for i, have in enumerate(results) for block in have)
    if progress is not None:
        progress(finished, total)
    place = None if source is None else str(source)
    for job, sums in _run(_jobs(needed, results, shard_blocks), tasks, place, executor):
        results[job.point].update(zip(range(job.first, job.first + len(job.valid)), sums, strict=True))
        if folder is not None:
            label = point_label(points[job.point])
            header = ShardHeader(study=study.name, digest=digest, point=label, first=job.first, valid=job.valid)
            save_shard(folder, Shard(header, sums))
        finished += sum(job.valid)
        if progress is not None:
            progress(finished, total)
    # Block by block in their order: the last digit does not depend on who finished first.
    added = [np.add.reduce([have[block] for block in sorted(have)], axis=0) for have in results]
    return assemble(study, digest, wanted, prepared, added)


def _shard_folder(out: Path, resume: bool) -> Path:
    folder = out / "shards"
    if folder.is_dir() and not resume and any(folder.glob("*.npz")):
        raise SpecError(
            "it holds shards of an earlier run", place=str(folder), remedy="go on with --resume, or give another --out"
        )
    return make_folder(folder)


def _finished(folder: Path | None, study: Study, digest: str, labels: list[str]) -> list[dict[int, tuple[int, Sums]]]:
    done: list[dict[int, tuple[int, Sums]]] = [{} for _ in labels]
    if folder is None:
        return done
    for header, sums in load_shards(folder, study.name, digest):
        have = done[labels.index(header.point)]
        for offset, valid in enumerate(header.valid):
            # A longer run counts more replicates of what was then its last block: the fuller one is kept.
            block = header.first + offset
            if block not in have or have[block][0] < valid:
                have[block] = (valid, sums[offset])
    return done


def _valid_per_block(size: int, replicates: int) -> list[int]:
    whole, rest = divmod(replicates, size)
    return [size] * whole + ([rest] if rest else [])


def _jobs(needed: list[list[int]], results: list[dict[int, Sums]], shard_blocks: int) -> Iterator[_Job]:
    for point, need in enumerate(needed):
        for start in range(0, len(need), shard_blocks):
            run: list[int] = []
            for block in range(start, min(start + shard_blocks, len(need))):
                if block in results[point]:
                    if run:
                        yield _Job(point, block - len(run), tuple(run))
                    run = []
                else:
                    run.append(need[block])
            if run:
                yield _Job(point, min(start + shard_blocks, len(need)) - len(run), tuple(run))


def _run(
    jobs: Iterable[_Job], tasks: list[_Task], source: str | None, executor: Executor | None
) -> Iterator[tuple[_Job, Sums]]:
    # Jobs come point by point: what a point needs is made once, and dropped with its last job.
    @lru_cache(maxsize=1)
    def simulator(point: int) -> Simulator:
        return _make_simulator(tasks[point].arguments)

    @lru_cache(maxsize=1)
    def payload(point: int) -> bytes:
        return tasks[point].payload()

    if executor is None:
        for job in jobs:
            yield job, _run_blocks(simulator(job.point), job)
        return
    waiting: dict[Future[Sums], _Job] = {}
    queue = iter(jobs)
    try:
        while True:
            for job in islice(queue, IN_FLIGHT - len(waiting)):
                if isinstance(executor, ThreadPoolExecutor):
                    future = executor.submit(_run_blocks, simulator(job.point), job)
                else:
                    future = executor.submit(_run_elsewhere, payload(job.point), job, source)
                waiting[future] = job
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), _outcome(future)
    finally:
        for future in waiting:
            future.cancel()


def _outcome(future: Future[Sums]) -> Sums:
    try:
        return future.result()
    except BrokenExecutor as error:
        remedy = "finished blocks are kept where --out was given: go on with --resume"
        raise WorldError("a worker process ended", place="simulate", remedy=remedy) from error


def _run_blocks(simulator: Simulator, job: _Job) -> Sums:
    done: list[Sums] = []
    ahead = None
    for offset, count in enumerate(job.valid):
        # The next block is under way while the last one is fetched; one only, so that memory stays bounded.
        following = simulator.sums(job.first + offset, count)
        if ahead is not None:
            done.append(np.asarray(ahead))
        ahead = following
    done.append(np.asarray(ahead))
    return np.stack(done)


def _make_simulator(arguments: tuple[Any, ...]) -> Simulator:
    prepared, methods, seed, stream, level = arguments
    return Simulator(prepared, methods, seed=seed, stream=stream, level=level)


def _run_elsewhere(payload: bytes, job: _Job, source: str | None) -> Sums:
    return _run_blocks(_simulator(payload, source), job)


# A process meets the same point again and again: its tables and compiled functions are kept, two points at a time.
@lru_cache(maxsize=2)
def _simulator(payload: bytes, source: str | None) -> Simulator:
    if source is not None:
        load_module(Path(source))
    return _make_simulator(pickle.loads(payload))
