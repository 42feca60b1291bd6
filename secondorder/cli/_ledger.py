"""``secondorder ledger verify | export``: hold a ledger to what it states, and take its rows elsewhere."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

Run = Annotated[Path, Parameter(name="RUN")]

ledger = App(name="ledger", help="Verify a run's ledger, or export its rows.")


@ledger.command
def verify(run: Run, /) -> int:
    """Derive every hash of a ledger again, check its rules, and hold it to the manifest beside it.

    Prints what differs from what is stated; the exit code is then 1.

    Parameters
    ----------
    run
        The folder of a run, or a ledger.sqlite.
    """
    from secondorder._labels._results import Table, render_table
    from secondorder.acquire import read_ledger, verify_ledger

    path, stated = _ledger_and_manifest(run)
    found = verify_ledger(path, **stated)
    if found:
        rows = tuple((difference.place, difference.stated, difference.found) for difference in found)
        print(render_table(Table(f"{path}: {len(found)} differences", ("place", "stated", "found"), rows)))
        return 1
    with read_ledger(path) as reader:
        ended = sum(row.count for row in reader.counts() if row.status is not None)
        beside = "with the manifest" if stated else "without a manifest"
        print(f"{path}: {reader.n_calls:,} calls, {ended:,} ended, as stated, {beside}\noutcomes {reader.digest()}")
    return 0


@ledger.command
def export(
    run: Run,
    /,
    *,
    output: Path,
    rows: Literal["outcomes", "attempts"] = "outcomes",
    bodies: Annotated[bool, Parameter(negative="--no-bodies")] = True,
) -> int:
    """Write a ledger as a table for other tools.

    Parameters
    ----------
    run
        The folder of a run, or a ledger.sqlite; it may be one that is being written.
    output
        File to write, .jsonl or .parquet.
    rows
        One row per call that has ended, or one per attempt.
    bodies
        With the text of requests and responses.
    """
    from secondorder.acquire import export_ledger

    path, _ = _ledger_and_manifest(run)
    count = export_ledger(path, output, rows=rows, bodies=bodies)
    print(output)
    print(f"{count:,} {rows}", file=sys.stderr)
    return 0


def _ledger_and_manifest(run: Path) -> tuple[Path, dict[str, str]]:
    """Path of a ledger, and the digests that a manifest beside it states."""
    from secondorder._audit._folder import RunFolder
    from secondorder._canon import sha256_hex

    path = run / "ledger.sqlite" if run.is_dir() else run
    folder = RunFolder(path.parent)
    if path.name != folder.ledger.name or not folder.manifest.is_file():
        return path, {}
    data = folder.manifest.read_bytes()
    return path, {"calls_sha256": str(folder.read_manifest().get("calls_sha256")), "manifest_sha256": sha256_hex(data)}
