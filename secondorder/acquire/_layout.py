"""The planned calls of an audit as numbers, in send order, without their bytes.

Built for ten million calls: one integer for the order and one for the seed of each, no objects.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from secondorder._canon import blake2b_64
from secondorder.acquire._prompts import NULL_PREFIX
from secondorder.acquire._seeds import CellHash, hidden_places, unique_seeds

__all__ = ["WARMUP_REPEAT", "Layout", "Slot", "by_rank"]

WARMUP_REPEAT = -1
"""Repeat index of a warm-up call, which is no repeat."""

SLOT_PREFIX = f"{NULL_PREFIX}slot/"
"""Under this name an execution slot of the null block is hashed, before hidden ids are assigned."""

BUCKET_BITS = 8


class Slot(NamedTuple):
    """A call's place among those of one judge on one item.

    Attributes
    ----------
    name : str
        The prompt's id, or ``null/slot/0`` … in the null block: what seed and rank are hashed from.
    prompt : int
        Position of the wording (the null block uses the first).
    order : str
        Order of the candidates.
    repeat : int
        Repeat index.
    hidden : int or None
        Slot of the null block; None in the design.
    warmup : bool
        Whether the call warms its cell up.
    """

    name: str
    prompt: int
    order: str
    repeat: int
    hidden: int | None
    warmup: bool


class Layout:
    """All calls of an audit: block (judge, item) × slot.

    Parameters
    ----------
    seed : int
        Audit seed.
    judges, items, prompts, orders : sequence of str
        Labels in planned order.
    repeats : int
        Repeats per cell.
    send : str
        ``shuffled``, ``by-item`` or ``by-cell``.
    null_items : frozenset of str
        Items that also carry the null block.
    null_ids : int
        Hidden ids of the null block.
    """

    def __init__(
        self,
        *,
        seed: int,
        judges: Sequence[str],
        items: Sequence[str],
        prompts: Sequence[str],
        orders: Sequence[str],
        repeats: int,
        send: str,
        null_items: frozenset[str] = frozenset(),
        null_ids: int = 0,
    ) -> None:
        self.seed, self.judges, self.items = seed, judges, items
        self.null_items, self.null_ids = null_items, null_ids
        cells = [(name, number, order) for number, name in enumerate(prompts) for order in orders]
        plain = [Slot(name, number, order, r, None, False) for name, number, order in cells for r in range(repeats)]
        hidden = [
            Slot(f"{SLOT_PREFIX}{place}", 0, order, r, place, False)
            for order in orders
            for r in range(repeats)
            for place in range(null_ids)
        ]
        # Warm-up calls come last, so that no seed of the design depends on the send order.
        warm: list[Slot] = []
        warm_hidden: list[Slot] = []
        if send == "by-cell":
            warm = [Slot(name, number, order, WARMUP_REPEAT, None, True) for name, number, order in cells]
            warm_hidden = [Slot(SLOT_PREFIX, 0, order, WARMUP_REPEAT, 0, True) for order in orders]
        self._plain = (*plain, *warm)
        self._with_null = (*plain, *hidden, *warm, *warm_hidden)
        self._width = len(self._with_null)
        self._blocks = len(judges) * len(items)
        self._seeds = [self._block_seeds(block) for block in range(self._blocks)]
        self._order = {"shuffled": self._shuffled, "by-item": self._by_item, "by-cell": self._by_cell}[send]()

    def __len__(self) -> int:
        return len(self._order)

    def place(self, rank: int) -> tuple[str, int, Slot, str, int]:
        """Judge, number of the item, slot, prompt label and seed of the call that is sent at `rank`."""
        block, number = divmod(self._order[rank], self._width)
        judge, item = self._names(block)
        slot = self._slots(item)[number]
        return judge, block % len(self.items), slot, self._label(judge, item, slot), self._seeds[block][number]

    def _names(self, block: int) -> tuple[str, str]:
        judge, item = divmod(block, len(self.items))
        return self.judges[judge], self.items[item]

    def _slots(self, item: str) -> tuple[Slot, ...]:
        return self._with_null if item in self.null_items else self._plain

    def _label(self, judge: str, item: str, slot: Slot) -> str:
        """Prompt label; hidden ids are assigned only here, when seed and rank already belong to the slot."""
        if slot.hidden is None:
            return slot.name
        if slot.warmup:
            return f"{NULL_PREFIX}warmup"
        places = hidden_places(self.seed, judge, item, slot.order, slot.repeat, self.null_ids)
        return f"{NULL_PREFIX}{places[slot.hidden] + 1}"

    def _block_seeds(self, block: int) -> array[int]:
        judge, item = self._names(block)
        places = ((slot.name, slot.order, slot.repeat) for slot in self._slots(item))
        return array("I", unique_seeds(self.seed, judge, item, places))

    def _ranked(self, block: int) -> Iterator[tuple[int, int]]:
        """Rank and number of every call of a block: the rank is ``BLAKE2b-64(["send", audit seed, call id])``."""
        judge, item = self._names(block)
        send = CellHash(["send", self.seed], 8)
        cells: dict[tuple[str, str], CellHash] = {}
        for number, slot in enumerate(self._slots(item), block * self._width):
            cell = cells.get((slot.name, slot.order))
            if cell is None:
                cell = cells[slot.name, slot.order] = CellHash([judge, item, slot.name, slot.order], 16)
            yield send.rank(cell.digest(slot.repeat).hex()), number

    def _shuffled(self) -> array[int]:
        return by_rank(entry for block in range(self._blocks) for entry in self._ranked(block))

    def _by_item(self) -> array[int]:
        """Items in hash order; inside an item the calls of all judges, shuffled."""
        order = array("Q")
        ranks = ((blake2b_64(["item", self.seed, label]), item) for item, label in enumerate(self.items))
        for item in by_rank(ranks):
            blocks = range(item, self._blocks, len(self.items))
            order.extend(number for _, number in sorted(entry for block in blocks for entry in self._ranked(block)))
        return order

    def _by_cell(self) -> array[int]:
        """Cells in hash order; in each its warm-up call, then the repeats in sequence.

        The null block of an item and an order is one cell: its calls share their bytes. Inside a repeat they stand in
        the order of the slots, which knows nothing of the hidden ids.
        """
        plain, with_null = _cells(self._plain), _cells(self._with_null)
        keys = list(with_null)

        def ranks() -> Iterator[tuple[int, int]]:
            for block in range(self._blocks):
                judge, item = self._names(block)
                for key in with_null if item in self.null_items else plain:
                    yield blake2b_64(["cell", self.seed, judge, item, *key]), block * len(keys) + keys.index(key)

        order = array("Q")
        for cell in by_rank(ranks()):
            block, number = divmod(cell, len(keys))
            cells = with_null if self._names(block)[1] in self.null_items else plain
            *repeats, warmup = cells[keys[number]]
            order.extend(block * self._width + slot for slot in (warmup, *repeats))
        return order


def _cells(slots: Sequence[Slot]) -> dict[tuple[str, str], list[int]]:
    """Numbers of the slots that share their bytes, the warm-up call last."""
    cells: dict[tuple[str, str], list[int]] = {}
    for number, slot in enumerate(slots):
        name = slot.name if slot.hidden is None else SLOT_PREFIX
        cells.setdefault((name, slot.order), []).append(number)
    return cells


def by_rank(ranked: Iterable[tuple[int, int]]) -> array[int]:
    """Values in the order of their 64-bit ranks; equal ranks by value.

    Sorted in buckets of the leading bits, so that only a small part is ever held as Python objects.

    Examples
    --------
    >>> by_rank([(2**63, 7), (5, 8), (5, 3)]).tolist()
    [3, 8, 7]
    """
    buckets = [array("Q") for _ in range(1 << BUCKET_BITS)]
    for rank, value in ranked:
        bucket = buckets[rank >> (64 - BUCKET_BITS)]
        bucket.append(rank)
        bucket.append(value)
    order = array("Q")
    while buckets:
        bucket = buckets.pop(0)
        order.extend(value for _, value in sorted(zip(bucket[0::2], bucket[1::2], strict=True)))
    return order
