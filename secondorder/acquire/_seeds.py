"""Identities, seeds and ranks of calls: pure functions of the audit seed through BLAKE2b.

Each is the hash of a canonical JSON list (:func:`secondorder._canon.blake2b_64`). The lists of one cell share all but
their last numbers, so the shared beginning is hashed once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

from secondorder._canon import canonical_json

__all__ = ["CellHash", "call_id", "hidden_places", "unique_seeds"]

SEED_RANGE = 2**31 - 1


class CellHash:
    """Hashes of canonical lists that begin alike.

    Parameters
    ----------
    begin : sequence
        Shared beginning of the lists.
    size : int
        Bytes of the digest.

    Examples
    --------
    >>> from secondorder._canon import blake2b_64
    >>> int.from_bytes(CellHash(["a", 1], 8).digest(2, 3), "big") == blake2b_64(["a", 1, 2, 3])
    True
    """

    def __init__(self, begin: Sequence[str | int], size: int) -> None:
        self._begun = hashlib.blake2b(canonical_json(list(begin))[:-1], digest_size=size)

    def digest(self, *end: int) -> bytes:
        """Digest of the list that ends with these numbers."""
        whole = self._begun.copy()
        whole.update(f",{','.join(map(str, end))}]".encode())
        return whole.digest()

    def rank(self, name: str) -> int:
        """Digest of the list that ends with an identity (hex digits), as a number."""
        whole = self._begun.copy()
        whole.update(f',"{name}"]'.encode())
        return int.from_bytes(whole.digest(), "big")


def call_id(judge: str, item: str, prompt: str, order: str, repeat: int) -> str:
    """Identity of a call: 32 hex digits of BLAKE2b over its place in the design; a repeat is part of it."""
    return CellHash([judge, item, prompt, order], 16).digest(repeat).hex()


def unique_seeds(seed: int, judge: str, item: str, places: Iterable[tuple[str, str, int]]) -> Iterator[int]:
    """Seeds of all calls of one judge on one item, in the order of `places` (prompt, order, repeat).

    Each is ``1 + BLAKE2b-64([audit seed, judge, item, prompt, order, repeat, n]) mod (2³¹ − 1)`` with the smallest
    n ≥ 0 that is new within (judge, item): servers keep the low 32 bits, and −1 and 2³² − 1 mean *random* there.
    """
    taken: set[int] = set()
    cells: dict[tuple[str, str], CellHash] = {}
    for prompt, order, repeat in places:
        cell = cells.get((prompt, order))
        if cell is None:
            cell = cells[prompt, order] = CellHash([seed, judge, item, prompt, order], 8)
        n = 0
        while (value := 1 + int.from_bytes(cell.digest(repeat, n), "big") % SEED_RANGE) in taken:
            n += 1
        taken.add(value)
        yield value


def hidden_places(seed: int, judge: str, item: str, order: str, repeat: int, slots: int) -> list[int]:
    """Which hidden id (from 0) each slot of one item–order–repeat block gets: a hash-ranked permutation."""
    block = CellHash(["hidden", seed, judge, item, order, repeat], 8)
    ranked = sorted(range(slots), key=lambda slot: (block.digest(slot), slot))
    places = [0] * slots
    for place, slot in enumerate(ranked):
        places[slot] = place
    return places
