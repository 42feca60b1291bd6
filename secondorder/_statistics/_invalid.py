"""A word on ⊥ where it is a large part of the answers: what most of it is, and what to do."""

from __future__ import annotations

import numpy as np
import xarray as xr

from secondorder._labels._attributes import load
from secondorder._labels._remedies import REMEDIES
from secondorder._schema import CODE_MISSING, REASONS

__all__ = ["invalid_notes"]

DECLARED = REASONS.index("declared")
MUCH = 0.1
"""Share of the completed calls above which ⊥ is spoken of."""


def invalid_notes(cube: xr.Dataset, bottom: int | None) -> tuple[str, ...]:
    """One line where more than a tenth of the completed calls is ⊥: the most frequent reason, and its remedy.

    Of all answers, also of items that are left out: ⊥ may be why they are. A cube without reasons declares its ⊥.
    """
    verdict = load(cube["verdict"])
    invalid, completed = verdict == bottom, int((verdict != CODE_MISSING).sum())
    count = int(invalid.sum())
    if count <= MUCH * completed:
        return ()
    known = load(cube["reason"])[invalid] if "reason" in cube else np.full(count, DECLARED)
    codes, counts = np.unique(known, return_counts=True)
    reason = REASONS[codes[counts.argmax()]] or "declared"
    share = f"{count} of {completed} answers are ⊥ ({100 * count / completed:.0f} %)"
    return (f"{share}, {'all' if len(codes) == 1 else 'most often'} {reason}: {REMEDIES[reason]}",)
