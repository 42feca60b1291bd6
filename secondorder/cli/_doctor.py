"""``secondorder doctor``: look at an audit's judges before the first call of the audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from secondorder.cli._streams import show


def doctor(spec: Annotated[Path, Parameter(name="AUDIT")] = Path("audit.toml"), /) -> int:
    """Look at the judges of an audit before it begins: caches, fixed seeds, keys, models, answers that cannot be read.

    Four answers per judge, none of them part of the audit: a question that is answered differently every time, under
    two seeds and once more under the first, and one call of the audit's own. Shown are what was seen, and what to do.

    Exit code 1 when a problem was found (dependent answers, an answer that the parser cannot read), 3 when a judge
    cannot be asked.

    Parameters
    ----------
    spec
        An audit.toml, or the folder that holds it.
    """
    from secondorder._audit._doctor import examine
    from secondorder._audit._plan import load_audit

    checkup = examine(load_audit(spec))
    show(checkup)
    # The table has said what failed, for every judge.
    return checkup.failures[0].exit_code if checkup.failures else int(bool(checkup.problems))
