"""The stage that makes calls. It loads no statistics: a run begins, and resumes, in a fraction of a second."""

from __future__ import annotations

from collections.abc import Callable

from secondorder._audit._folder import RunFolder
from secondorder.acquire import (
    AuditSpec,
    Policy,
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
        # Nothing can be added to it: no judge has to be there, and the folder may be read-only.
        if reader.complete() and "outcomes_sha256" in reader.meta:
            return Summary(tuple(reader.counts()), reader.attempt_counts(), 0.0)
    return run_calls(
        folder.ledger,
        spec.judges,
        parse=make_parse(spec),
        seed=spec.seed,
        retry=spec.retry,
        limits=spec.limits,
        policy=_policy(folder, spec),
        progress=progress,
    )


def _policy(folder: RunFolder, spec: AuditSpec) -> Policy | None:
    if spec.gate is not None:
        return _gate_of(folder)
    if spec.stop is None:
        return None
    # Statistics are loaded for a stop rule alone.
    from secondorder._audit._stop import StopPolicy

    return StopPolicy(folder.read_manifest(), {name: judge.concurrency for name, judge in spec.judges.items()})


def _gate_of(folder: RunFolder) -> Policy:
    """The gate that the manifest holds, with its signals of every item."""
    from secondorder.studies import GatePolicy, gate_from

    manifest = folder.read_manifest()
    gate = gate_from(manifest["spec"]["gate"]["content"], place=f"{folder.manifest} gate")
    columns = manifest["gate_signals"]
    items = {
        label: {name: column[place] for name, column in columns.items()}
        for place, label in enumerate(manifest["items"]["ids"])
    }
    return GatePolicy(gate, items)


def said_of_calls(summary: Summary) -> str:
    """What became of the planned calls, on one line."""
    counts: dict[str, int] = {}
    for row in summary.counts:
        counts[row.status or "open"] = counts.get(row.status or "open", 0) + row.count
    words = {"valid": "valid", "invalid": "⊥", "no_completion": "missing", "not_called": "not called", "open": "open"}
    said = ", ".join(f"{counts[status]:,} {word}" for status, word in words.items() if status in counts)
    attempts = {"failed": 0, "interrupted": 0}
    for (_, result), count in summary.attempts.items():
        if result != "completed":
            attempts["interrupted" if result == "interrupted" else "failed"] += count
    more = "".join(f"; {count:,} {word} attempt{'s' * (count > 1)}" for word, count in attempts.items() if count)
    return f"{summary.planned:,} calls ({said}{more}), {summary.seconds:.1f} s"
