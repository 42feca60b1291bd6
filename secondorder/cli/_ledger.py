"""``secondorder ledger verify | export``: hold a ledger to what it states, and take its rows elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from secondorder.cli._streams import say, show

if TYPE_CHECKING:
    from secondorder.acquire import Outcome, Record

SHOWN = 50

Run = Annotated[Path, Parameter(name="RUN")]

ledger = App(name="ledger", help="Verify a run's ledger, or export its rows.")


@ledger.command
def verify(run: Run, /) -> int:
    """Hold a ledger to everything it states: hashes, rules, the manifest beside it, and every verdict to its answer.

    Nothing is called: verdicts are read again from the stored bytes. Prints what differs from what is stated; the
    exit code is then 1.

    Parameters
    ----------
    run
        The folder of a run or its audit.toml, or a ledger.sqlite.
    """
    from secondorder.acquire import read_ledger, verify_ledger

    path, manifest = _ledger_and_manifest(run)
    if manifest is None:
        found = verify_ledger(path)
    else:
        digests = {"calls_sha256": str(manifest.get("calls_sha256")), "manifest_sha256": _digest(path)}
        found = verify_ledger(path, **digests, again=_reader(manifest))
    if found:
        show(f"{path}: {len(found)} difference{'s' * (len(found) > 1)}")
        for difference in found[:SHOWN]:
            show(difference)
        if len(found) > SHOWN:
            show(f"… and {len(found) - SHOWN} more")
        return 1
    with read_ledger(path) as reader:
        ended = sum(row.count for row in reader.counts() if row.status is not None)
        held = "it is what it and its manifest state" if manifest else "it is what it states; no manifest is beside it"
        show(f"{path}: {reader.n_calls:,} calls, {ended:,} ended; {held}\noutcomes {reader.digest()}")
    return 0


@ledger.command
def export(
    run: Run,
    /,
    output: Path,
    *,
    rows: Literal["outcomes", "attempts"] = "outcomes",
    bodies: Annotated[bool, Parameter(negative="--no-bodies")] = True,
) -> int:
    """Write a ledger as a table for other tools.

    Parameters
    ----------
    run
        The folder of a run or its audit.toml, or a ledger.sqlite; it may be one that is being written.
    output
        File to write, .jsonl or .parquet.
    rows
        One row per call that has ended, or one per attempt.
    bodies
        With the text of requests and responses.
    """
    from secondorder.acquire import export_ledger
    from secondorder.cli._write import check_outputs

    path, _ = _ledger_and_manifest(run)
    check_outputs([output], (".jsonl", ".parquet"), [run, path])
    count = export_ledger(path, output, rows=rows, bodies=bodies)
    show(output)
    say(f"{count:,} {rows}")
    return 0


def _ledger_and_manifest(run: Path) -> tuple[Path, dict[str, Any] | None]:
    """Path of a ledger, and the manifest beside it where there is one."""
    from secondorder._audit._folder import RunFolder
    from secondorder._audit._plan import find_target

    path = run / "ledger.sqlite" if run.is_dir() else run
    if run.suffix == ".toml" or (run.is_dir() and not path.is_file()):
        path = find_target(run).folder.ledger
    folder = RunFolder(path.parent)
    beside = path.name == folder.ledger.name and folder.manifest.is_file()
    return path, folder.read_manifest() if beside else None


def _digest(ledger: Path) -> str:
    from secondorder._canon import sha256_hex

    return sha256_hex(ledger.with_name("manifest.json").read_bytes())


def _reader(manifest: dict[str, Any]) -> Callable[[Record], Outcome | None] | None:
    """What a stored answer says by the parser of the manifest; None, with a note, where that parser is not here."""
    from secondorder.acquire import make_parse, outcome_of, reread, spec_from_manifest
    from secondorder.errors import SpecError

    spec = spec_from_manifest(manifest)
    try:
        parse = make_parse(spec)
    except SpecError as error:
        say(f"note: verdicts are not read again: {error}")
        return None

    def again(record: Record) -> Outcome | None:
        completion = reread(record, spec.judges[record.call.judge])
        return None if completion is None else outcome_of(completion, parse, record.call)

    return again
