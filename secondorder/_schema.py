"""Names that files, cubes and results share: one place, so that no two modules spell them apart."""

from __future__ import annotations

from typing import Final

from secondorder.errors import SchemaError

__all__ = [
    "BOTTOM",
    "CODE_MISSING",
    "CUBE_SCHEMA",
    "DECOMPOSITION_SCHEMA",
    "ESTIMATES_SCHEMA",
    "GATE_SCHEMA",
    "INVALID_REASONS",
    "LEDGER_SCHEMA",
    "MANIFEST_SCHEMA",
    "MISSING_REASONS",
    "NOT_CALLED_REASONS",
    "REASONS",
    "RESERVED_FACETS",
    "SOFT_REASONS",
    "SPEC_SCHEMA",
    "STATUS",
    "check_schema",
]

BOTTOM: Final = "⊥"
"""Label of the class of completed but invalid verdicts; always the last class."""

CODE_MISSING: Final = -1
"""Class code of a planned call that has no verdict (no completion, or not called)."""

ITEM: Final = "item"
JUDGE: Final = "judge"
REPEAT: Final = "repeat"
CLASS: Final = "class"
PROMPT: Final = "prompt"
ORDER: Final = "order"

RESERVED_FACETS: Final = frozenset({"call", "total", "item", "repeat", "class"})

SPEC_SCHEMA: Final = "secondorder.audit/1"
MANIFEST_SCHEMA: Final = "secondorder.manifest/1"
LEDGER_SCHEMA: Final = "secondorder.ledger/1"
CUBE_SCHEMA: Final = "secondorder.cube/1"
ESTIMATES_SCHEMA: Final = "secondorder.estimates/1"
DECOMPOSITION_SCHEMA: Final = "secondorder.decomposition/1"
GATE_SCHEMA: Final = "secondorder.gate/1"

STATUS: Final = ("valid", "invalid", "no_completion", "not_called")
"""Terminal outcomes of a planned call; the position is the code stored in the cube (CF ``flag_values``)."""

INVALID_REASONS: Final = (
    "empty",
    "unparsed",
    "ambiguous",
    "out_of_range",
    "refusal",
    "truncated",
    "filtered",
    "declared",
)
"""Why a completed call is ⊥. ``declared``: the imported table's own label for invalid."""

MISSING_REASONS: Final = (
    "absent",
    "timeout",
    "connection",
    "http_error",
    "rate_limited",
    "error_body",
    "rejected",
    "malformed",
    "interrupted",
)
"""Why a planned call has no completion. ``absent``: an imported table has no row, or the declared missing label."""

NOT_CALLED_REASONS: Final = ("stop_rule", "gate", "limit")

SOFT_REASONS: Final = (
    "no_logprobs",
    "bad_logprobs",
    "unaligned",
    "several_places",
    "several_tokens",
    "no_verdict_token",
    "not_first",
)
"""Why a completed call has no soft verdict: in a cube it is invalid and of no class, never its hard verdict."""

REASONS: Final = ("", *INVALID_REASONS, *MISSING_REASONS, *NOT_CALLED_REASONS, *SOFT_REASONS)
"""Every reason; the position is the code stored in the cube (0: valid, no reason)."""


def check_schema(found: object, known: str, *, place: str) -> None:
    """Refuse a file whose schema name is another one, or whose number is newer than this version reads.

    Raises
    ------
    SchemaError
        Naming the place, the schema found and the remedy.
    """
    name, _, number = known.partition("/")
    if not isinstance(found, str) or found.partition("/")[0] != name:
        raise SchemaError(f"schema is {found!r}, not {known!r}", place=place, remedy=f"give a file of {name}")
    suffix = found.partition("/")[2]
    if not suffix.isdigit() or int(suffix) < 1:
        raise SchemaError(f"schema number in {found!r} is not a whole number", place=place, remedy=f"write {known!r}")
    if int(suffix) > int(number):
        raise SchemaError(
            f"schema {found!r} is newer than this version reads ({known!r})",
            place=place,
            remedy="install a newer secondorder (pip install -U secondorder)",
        )
