"""Standard errors for each randomness: calls, prompts, items and prompts together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secondorder._statistics._settings import Covers
from secondorder.core._intervals import ItemErrors
from secondorder.errors import UndefinedError

if TYPE_CHECKING:
    from secondorder._statistics._group import Group

__all__ = ["group_errors"]


def group_errors(group: Group, covers: Covers) -> ItemErrors:
    """Errors of every component of a group for a randomness other than items."""
    raise UndefinedError(f"covers {covers!r} is not yet in this version", place="--covers", remedy="use --covers items")
