"""Whether a command's numbers are those of soft verdicts or of sampled ones, on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondorder.cli._streams import say

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["say_sampled", "say_soft"]


def say_soft(cube: xr.Dataset) -> None:
    """Say of every judge with soft verdicts that these are used, and whether sampled ones agree with them."""
    if "soft" not in cube:
        return
    from secondorder._labels._cube import by_text, groups
    from secondorder._statistics._soft import soft_notes

    for by, part in groups(cube):
        for note in soft_notes(part, by, 0):
            say(f"{by_text(by)}: {note}")


def say_sampled(cube: xr.Dataset) -> None:
    """Say that a command takes the verdicts that calls sampled, where soft ones stand beside them."""
    if "soft" in cube:
        say("verdicts here are those that the calls sampled, not the soft ones")
