"""The stage that makes calls. It loads no statistics: a run begins, and resumes, in a fraction of a second."""

from __future__ import annotations

from collections.abc import Callable

from secondorder._audit._folder import RunFolder
from secondorder.acquire import (
    AuditSpec,
    Ledger,
    LedgerReader,
    Progress,
    Summary,
    make_parse,
    read_ledger,
    run_calls,
    spec_from_manifest,
)

__all__ = ["OnProgress", "acquire_stage", "said_of_calls"]

OnProgress = Callable[[Progress], None]


def acquire_stage(folder: RunFolder, spec: AuditSpec | None = None, *, progress: OnProgress | None = None) -> Summary:
    """Call every planned call that has no outcome yet.

    Parameters
    ----------
    folder : RunFolder
        With manifest and ledger.
    spec : AuditSpec, optional
        Where the pace of sending (concurrency, rate, limits, name of the key's variable) is taken from, which may
        differ from the manifest's. Default: the manifest's.
    progress : callable, optional
    """
    spec = spec or spec_from_manifest(folder.read_manifest())
    with read_ledger(folder.ledger) as reader:
        if reader.complete():
            return _sealed(reader)
    return run_calls(
        folder.ledger,
        spec.judges,
        parse=make_parse(spec),
        seed=spec.seed,
        retry=spec.retry,
        limits=spec.limits,
        progress=progress,
    )


def _sealed(reader: LedgerReader) -> Summary:
    """A ledger to which nothing can be added: no judge has to be there, and the folder may be read-only."""
    if "outcomes_sha256" not in reader.meta:  # killed between the last outcome and the seal
        with Ledger(reader.path) as ledger:
            ledger.set_meta("outcomes_sha256", reader.digest())
    return Summary(tuple(reader.counts()), reader.attempt_counts(), 0.0)


def said_of_calls(summary: Summary) -> str:
    """What became of the planned calls, on one line."""
    counts: dict[str, int] = {}
    for row in summary.counts:
        counts[row.status or "open"] = counts.get(row.status or "open", 0) + row.count
    words = {"valid": "valid", "invalid": "⊥", "no_completion": "missing", "not_called": "not called", "open": "open"}
    said = ", ".join(f"{counts[status]:,} {word}" for status, word in words.items() if status in counts)
    retried = sum(summary.attempts.values()) - summary.planned
    more = f"; {retried:,} further attempts" if retried > 0 else ""
    return f"{summary.planned:,} calls ({said}{more}), {summary.seconds:.1f} s"
