"""The census of formats: one criterion in several wrappers, everything else the same bytes, proved by hash."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from secondorder._canon import sha256_hex
from secondorder.errors import SpecError

__all__ = ["WRAPPERS", "CensusProof", "message_bytes", "prove_census"]

WRAPPERS: dict[str, Callable[[str], str]] = {
    "none": lambda criterion: criterion,
    "upper": lambda criterion: f"CRITERION:\n{criterion}",
    "title": lambda criterion: f"Criterion:\n{criterion}",
    "brackets": lambda criterion: f"[Criterion]\n{criterion}\n[/Criterion]",
    "xml": lambda criterion: f"<criterion>\n{criterion}\n</criterion>",
    "markdown": lambda criterion: f"## Criterion\n{criterion}",
}


class CensusProof(msgspec.Struct, frozen=True):
    """What all prompts of a census share, and what each puts in between.

    Attributes
    ----------
    before_sha256, after_sha256 : str
        SHA-256 of the bytes before and after the wrapped criterion: one value for all prompts.
    inserted_sha256 : dict of str to str
        SHA-256 of each prompt's wrapped criterion.
    """

    before_sha256: str
    after_sha256: str
    inserted_sha256: dict[str, str]


def message_bytes(messages: Sequence[Mapping[str, str]]) -> bytes:
    """Messages as bytes that the proof can cut: role, zero byte, content, zero byte."""
    return b"".join(f"{message['role']}\0{message['content']}\0".encode() for message in messages)


def prove_census(whole: Mapping[str, bytes], inserted: Mapping[str, bytes]) -> CensusProof:
    """Prove that prompts differ in their wrapped criterion alone.

    The proof knows nothing of templates: it looks for one place at which every prompt can be cut into the same bytes,
    its own insertion, and the same bytes again.

    Parameters
    ----------
    whole : mapping of str to bytes
        Each prompt's messages (:func:`message_bytes`).
    inserted : mapping of str to bytes
        Each prompt's wrapped criterion.

    Raises
    ------
    SpecError
        When a byte outside the insertions differs.

    Examples
    --------
    >>> proof = prove_census({"none": b"<c>", "upper": b"<C:c>"}, {"none": b"c", "upper": b"C:c"})
    >>> proof.before_sha256 == sha256_hex(b"<")
    True
    """
    first = next(iter(whole))
    text, own = whole[first], inserted[first]
    at = text.find(own)
    while at >= 0:
        before, after = text[:at], text[at + len(own) :]
        if all(whole[name] == before + inserted[name] + after for name in whole):
            return CensusProof(
                sha256_hex(before), sha256_hex(after), {name: sha256_hex(part) for name, part in inserted.items()}
            )
        at = text.find(own, at + 1)
    raise SpecError(
        f"the prompts {', '.join(whole)} differ outside their wrappers",
        place="[prompts] census",
        remedy="a census is made from one template: use variants for other wordings",
    )
