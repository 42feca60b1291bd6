"""``secondorder init | plan | acquire | cube | report | run | demo``: an audit, stage by stage or whole."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from secondorder.cli._streams import say, show

if TYPE_CHECKING:
    from secondorder._audit._folder import RunFolder
    from secondorder._audit._plan import Audit
    from secondorder.acquire import Plan, Summary

Spec = Annotated[Path, Parameter(name="SPEC")]
Run = Annotated[Path, Parameter(name="RUN")]

SPEC = Path("audit.toml")
COST_SAMPLE = 2000
CHARACTERS_PER_TOKEN = 4


def init(folder: Annotated[Path, Parameter(name="DIR")] = Path("."), /) -> int:
    """Write a commented audit.toml and four items to begin with; nothing is overwritten.

    Parameters
    ----------
    folder
        Where to write; made when it is missing.
    """
    from secondorder.acquire import write_template

    for path in write_template(folder):
        show(path)
    say(f"next: say in {folder / 'audit.toml'} what to ask of which judge, then: {_line('plan', folder)}")
    return 0


def plan(spec: Spec = SPEC, /, *, out: Path | None = None) -> int:
    """Plan every call of an audit: writes manifest.json and a ledger with the calls; nothing is called.

    Parameters
    ----------
    spec
        An audit.toml, or the folder that holds it.
    out
        Folder of the run. Default: runs/NAME beside the spec.
    """
    from secondorder._audit._plan import load_audit, planned_folder

    audit = load_audit(spec)
    folder, planned = planned_folder(audit, out)
    _warn(audit, planned)
    show(_plan_table(audit, planned, folder))
    say(f"next: {_line('run', spec, out)}")
    return 0


def acquire(run: Run = SPEC, /, *, out: Path | None = None) -> int:
    """Make every planned call that has no outcome yet; the same command again goes on where it stopped.

    Parameters
    ----------
    run
        The folder of a run, or its audit.toml, which is planned where it is not yet.
    out
        Folder of the run, with an audit.toml. Default: runs/NAME beside it.
    """
    from secondorder._audit._calls import acquire_stage
    from secondorder.cli._progress import Watch

    folder, audit = _planned(run, out)
    with _resumable("acquire", run, out, folder), Watch() as watch:
        summary = acquire_stage(folder, None if audit is None else audit.spec, progress=watch.progress)
    show(summary)
    return _code(summary)


def cube(run: Run = SPEC, /) -> int:
    """Join the outcomes of a ledger to a labelled cube of verdicts: writes cube.nc.

    Parameters
    ----------
    run
        The folder of a run, its ledger.sqlite, or its audit.toml.
    """
    from secondorder._audit._plan import find_target
    from secondorder._audit._run import cube_stage, said_of_file
    from secondorder.acquire import read_ledger

    folder = find_target(run).folder
    say(f"cube: {said_of_file(cube_stage(folder, note=say), folder.cube)}")
    with read_ledger(folder.ledger) as reader:
        still_open = sum(row.count for row in reader.counts() if row.status is None)
    if still_open:
        say(f"note: {still_open:,} calls have not ended yet; they stand in the cube as missing (interrupted)")
    show(folder.cube)
    return 0


def report(run: Run = SPEC, /) -> int:
    """Show the estimates of a run in one HTML file: writes report.html.

    Parameters
    ----------
    run
        The folder of a run, its estimates.nc, or its audit.toml.
    """
    from secondorder._audit._plan import find_target
    from secondorder._audit._run import report_stage, said_of_file

    folder = find_target(run).folder
    say(f"report: {said_of_file(report_stage(folder), folder.report)}")
    show(folder.report)
    return 0


def run(spec: Spec = SPEC, /, *, out: Path | None = None) -> int:
    """Run a whole audit: plan, acquire, cube, decompose, report; the same command again goes on where it stopped.

    Prints the decomposition under the declared analysis; behind a gate, the decisions. The exit code is 1 when calls
    are missing at the end.

    Parameters
    ----------
    spec
        An audit.toml, the folder that holds it, or the folder of a run.
    out
        Folder of the run. Default: runs/NAME beside the spec.
    """
    from secondorder._audit._calls import acquire_stage, said_of_calls
    from secondorder.cli._progress import Watch
    from secondorder.errors import CubeError

    folder, audit = _planned(spec, out)
    with _resumable("run", spec, out, folder), Watch() as watch:
        summary = acquire_stage(folder, None if audit is None else audit.spec, progress=watch.progress)
        watch.note(f"acquire: {said_of_calls(summary)}")
        # Loaded only here: the first call does not wait for the statistics.
        if folder.gated:
            from secondorder._audit._gated import finish_gated

            show(finish_gated(folder, summary, note=watch.note))
            return _code(summary)
        from secondorder._audit._run import finish_run
        from secondorder.cli._words import in_flags

        try:
            done = finish_run(folder, summary, note=watch.note)
        except CubeError as error:
            if not _lost(summary):
                raise
            # Every call has ended, and too many of them without an answer: that is a result, not bad input.
            watch.note(f"nothing can be estimated: {in_flags(error)}")
            return _code(summary)
    show(done.decomposition)
    return _code(summary)


def demo(folder: Annotated[Path, Parameter(name="DIR")] = Path("secondorder-demo"), /) -> int:
    """Audit a simulated judge on this machine and show the estimates beside the truth.

    50 pairs of answers, 6 formats of one prompt, both orders, 4 repeats: 2,400 calls over HTTP. DIR then holds
    everything that an audit leaves: the specification, the items, manifest, ledger, cube, estimates and report, and
    laws.json, which says how the judge answers.

    Parameters
    ----------
    folder
        Where to leave everything; made when it is missing.
    """
    from secondorder._audit._demo import run_demo
    from secondorder._audit._folder import RunFolder
    from secondorder.cli._progress import Watch

    with _resumable("demo", folder, None, RunFolder(folder)), Watch() as watch:
        done = run_demo(folder, progress=watch.progress, note=watch.note)
    show(done)
    return _code(done.run.summary)


def _planned(given: Path, out: Path | None) -> tuple[RunFolder, Audit | None]:
    """The planned folder that a command is pointed at, with the warnings of its audit where there is one."""
    from secondorder._audit._plan import find_target, planned_folder

    target = find_target(given, out)
    if target.audit is not None:
        folder, planned = planned_folder(target.audit, target.folder.path)
        _warn(target.audit, planned)
        say(f"plan: {len(planned.calls):,} calls in {folder.path}")
    return target.folder, target.audit


def _warn(audit: Audit, planned: Plan) -> None:
    from secondorder.acquire import spec_warnings

    for line in spec_warnings(audit.spec, file=str(audit.file)):
        say(f"warning: {line}")
    for line in planned.notes:
        say(f"note: {line}")


def _code(summary: Summary) -> int:
    """Exit code of an ended acquisition: 1 when the design has holes."""
    lost = _lost(summary)
    if lost:
        say(f"calls are missing: {', '.join(f'{count:,} {reason}' for reason, count in lost.items())}")
    return 1 if lost else 0


def _lost(summary: Summary) -> dict[str, int]:
    """Calls without verdict that were wanted, by reason; a stop rule or a gate does not want them."""
    lost: dict[str, int] = {}
    for row in summary.counts:
        if row.status == "no_completion" or (row.status == "not_called" and row.reason == "limit"):
            lost[row.reason] = lost.get(row.reason, 0) + row.count
    return lost


@contextmanager
def _resumable(command: str, given: Path, out: Path | None, folder: RunFolder) -> Iterator[None]:
    """Say after Ctrl-C what is stored and how to go on."""
    try:
        yield
    except KeyboardInterrupt:
        from secondorder.acquire import read_ledger

        stored = ""
        if folder.ledger.exists():
            with read_ledger(folder.ledger) as reader:
                counts = reader.counts()
            ended = sum(row.count for row in counts if row.status is not None)
            stored = f"{ended:,} of {sum(row.count for row in counts):,} calls are done and stored; "
        raise KeyboardInterrupt(f"{stored}go on with: {_line(command, given, out)}") from None


def _line(command: str, given: Path, out: Path | None = None) -> str:
    """A command line to type."""
    more = [] if out is None else ["--out", str(out)]
    return shlex.join(["secondorder", command, str(given), *more])


def _plan_table(audit: Audit, planned: Plan, folder: RunFolder) -> str:
    from secondorder._labels._results import Table, render_table

    manifest, spec = planned.manifest, audit.spec
    strata = manifest["items"]["strata"]
    items = f"{len(audit.items):,}" + (
        "" if strata is None else f" in {len(set(strata))} strata ({spec.items.stratum})"
    )
    rows = [("judges", ", ".join(f"{name} ({spec.judges[name].model})" for name in sorted(spec.judges)))]
    rows.append(("items", items))
    rows += [
        (facet["name"], f"{', '.join(facet['levels'])} ({facet['kind']})")
        for facet in manifest["facets"]
        if len(facet["levels"]) > 1
    ]
    rows += [("repeats", str(spec.design.repeats)), ("sent", spec.design.send), ("calls", f"{manifest['calls']:,}")]
    more = (("null block", manifest["null_calls"]), ("warm-ups", manifest["warmup_calls"]))
    rows += [(name, f"{count:,} further calls") for name, count in more if count]
    if (cost := _cost_usd(planned)) is not None:
        rows.append(("cost", f"at most about {cost:,.2f} USD ({CHARACTERS_PER_TOKEN} characters a token)"))
    rows.append(("calls sha256", manifest["calls_sha256"][:16] + "…"))
    # A path is copied: it stays on one line, however long it is.
    width = max(len(label) for label, _ in rows)
    return f"{render_table(Table('', ('audit', spec.name), tuple(rows)))}\n{'folder':<{width}}  {folder.path}"


def _cost_usd(planned: Plan) -> float | None:
    """Cost of all calls by the declared prices, prompts counted by their characters, answers at their longest."""
    judges = planned.spec.judges
    if all(judge.price is None for judge in judges.values()):
        return None
    ranks = range(0, len(planned.calls), max(1, len(planned.calls) // COST_SAMPLE))
    total = 0.0
    for rank in ranks:
        call = planned.calls[rank]
        judge = judges[call.judge]
        if judge.price is not None:
            longest = next((judge.body[key] for key in ("max_tokens", "max_completion_tokens") if key in judge.body), 0)
            total += len(call.request) / CHARACTERS_PER_TOKEN * judge.price.input + longest * judge.price.output
    return total / 1e6 * len(planned.calls) / len(ranks)
