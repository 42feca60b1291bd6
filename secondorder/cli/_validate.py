"""``secondorder validate``: check the claims that this package makes, and keep the evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from secondorder.cli._streams import say, show


def validate(
    *claims: Annotated[str, Parameter(name="CLAIM")],
    quick: Annotated[bool, Parameter(negative="")] = False,
    out: Path = Path("runs/validate"),
    processes: int = 1,
    list: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Check claims: is it true? Exit code 1 when one fails.

    Exact checks cannot fail without cause. Random ones state how often they would, and the discrepancy that they
    would find, before they run. The evidence of each claim is one JSON file.

    Parameters
    ----------
    claims
        Files with one CLAIM, or names of some: in ./validation, or shipped with the package. Default: all.
    quick
        Fewer replicates and cases: less than half of the time, and larger errors go unseen.
    out
        Folder for the evidence.
    processes
        Processes to use for random checks.
    list
        List the claims there are.
    """
    from secondorder._atomic import write_bytes
    from secondorder.cli._running import progress_bar, spawned
    from secondorder.errors import InputError
    from secondorder.simulate._claim import Claim
    from secondorder.simulate._files import declarations, find_declaration, load_declared, make_folder
    from secondorder.simulate._validate import run_claim

    if processes < 1:
        raise InputError(f"{processes} processes", place="--processes", remedy="give at least 1")
    paths = [find_declaration(name, "validation") for name in claims] or [*declarations("validation").values()]
    if not paths:
        raise InputError("there are no claims here", place="validation/", remedy="give the path of a claim")
    # All files are read before the first is run: a fault in the last must not cost the work of the others.
    loaded = [(path, load_declared(path, "CLAIM", Claim)) for path in paths]
    if list:
        return _list([claim for _, claim in loaded])
    import msgspec

    make_folder(out)
    failed = []
    with spawned(processes) as executor:
        for path, claim in loaded:
            with progress_bar(claim.name, "replicates") as progress:
                verdict = run_claim(
                    claim,
                    quick=quick,
                    executor=executor,
                    progress=progress,
                    announce=lambda seen, name=claim.name: say(f"{name}: would see {seen}"),  # type: ignore[misc]
                    source=path,
                )
            evidence = msgspec.json.format(msgspec.json.encode(verdict.evidence()), indent=2)
            write_bytes(out / f"{claim.name}.json", evidence + b"\n")
            show(verdict)
            if not verdict.passed:
                failed.append(claim.name)
    lost = f"; failed: {', '.join(failed)}" if failed else ""
    show(f"{len(loaded) - len(failed)} of {len(loaded)} claims hold{lost}")
    say(f"evidence in {out}")
    return 1 if failed else 0


def _list(claims: list) -> int:  # type: ignore[type-arg]
    from secondorder._labels._results import Table, render_table

    rows = tuple(
        (claim.name, "exact" if claim.is_exact else f"random, {claim.false_alarm:g}", claim.statement)
        for claim in claims
    )
    show(render_table(Table("", ("claim", "false alarm", "statement"), rows)))
    return 0
