"""Planning: from a spec and its items to the manifest and the very bytes of every call, in send order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from secondorder._canon import blake2b_64, sha256_hex, sha256_lines
from secondorder.acquire._census import message_bytes, prove_census
from secondorder.acquire._contract import complete
from secondorder.acquire._endpoint import build_body
from secondorder.acquire._facets import facet_levels
from secondorder.acquire._items import Item
from secondorder.acquire._layout import Layout
from secondorder.acquire._manifest import describe, manifest_bytes
from secondorder.acquire._prompts import NULL_PREFIX, Prompt, build_prompts, render
from secondorder.acquire._seeds import call_id
from secondorder.acquire._spec import AuditSpec
from secondorder.acquire._types import Call, Outcome
from secondorder.acquire._verdict import make_reader
from secondorder.errors import SpecError

__all__ = ["Calls", "Plan", "is_null", "make_parse", "plan"]


def is_null(prompt: str) -> bool:
    """Whether a call's prompt label is a hidden id of the ``[null]`` block, which is no part of the design."""
    return prompt.startswith(NULL_PREFIX)


MOST_CALLS = 10_000_000


class Calls:
    """The planned calls in send order: counted, iterable again and again, made only when asked for."""

    def __init__(self, spec: AuditSpec, items: Sequence[Item], prompts: Sequence[Prompt], layout: Layout) -> None:
        self._spec, self._items, self._prompts, self._layout = spec, items, prompts, layout

    def __len__(self) -> int:
        return len(self._layout)

    def __iter__(self) -> Iterator[Call]:
        return (self[rank] for rank in range(len(self)))

    def __getitem__(self, rank: int) -> Call:
        judge, number, slot, prompt, seed = self._layout.place(rank)
        item, config = self._items[number], self._spec.judges[judge]
        sent = seed if config.seeds else None
        messages = render(self._prompts[slot.prompt], _values(item, self._spec.items.pair, slot.order))
        request = build_body(config, messages, sent)
        return Call(
            id=call_id(judge, item.id, prompt, slot.order, slot.repeat),
            rank=rank,
            judge=judge,
            item=item.id,
            prompt=prompt,
            order=slot.order,
            repeat=slot.repeat,
            warmup=slot.warmup,
            seed=sent,
            request=request,
            request_sha256=sha256_hex(request),
        )


class Plan:
    """A planned audit.

    Attributes
    ----------
    spec : AuditSpec
        What was declared.
    manifest : dict
        Content of ``manifest.json`` (:func:`secondorder.acquire._manifest.manifest_bytes`).
    calls : Calls
        Every planned call in send order.
    notes : tuple of str
        What a user should know before the first call.
    """

    def __init__(self, spec: AuditSpec, manifest: dict[str, Any], calls: Calls, notes: tuple[str, ...]) -> None:
        self.spec, self.manifest, self.calls, self.notes = spec, manifest, calls, notes

    def __repr__(self) -> str:
        return f"Plan({self.spec.name!r}, {len(self.calls)} calls, {self.manifest['calls_sha256'][:12]}…)"


def plan(spec: AuditSpec, items: Sequence[Item]) -> Plan:
    """Plan every call of an audit: a pure function of the spec and its items.

    The manifest's ``calls`` counts the design, ``null_calls`` the null block, ``warmup_calls`` the warm-up calls;
    ``calls_sha256`` is the SHA-256 over ``call id TAB request SHA-256 LF`` of all of them in send order.

    The null block (``[null]``) repeats the first wording on some items (the first by hash) under ``ids`` hidden ids,
    with labels ``null/1`` … in the place of the prompt. Seed and rank belong to the execution slot and are fixed
    before hidden ids are assigned to the slots of an item–order–repeat block by a hash-ranked permutation.

    Parameters
    ----------
    spec : AuditSpec
        A loaded spec (:func:`secondorder.acquire._load.load_spec`).
    items : sequence of Item
        Its items (:func:`secondorder.acquire._items.read_items`).

    Raises
    ------
    SpecError
        When the null block asks for more items than there are, a census does not differ in its wrappers alone, or the
        design has more than ten million calls.
    """
    prompts = build_prompts(spec)
    per_item = len(prompts) * len(facet_levels(spec)["order"])
    blocks = len(spec.judges) * len(items)
    designed = blocks * per_item * spec.design.repeats
    if designed > MOST_CALLS:
        raise SpecError(
            f"the design has {designed:,} calls, and a ledger is made for {MOST_CALLS:,} at most",
            place="[design]",
            remedy="lower repeats, take fewer items, or plan several audits",
        )
    chosen = _null_items(spec, items)
    layout = Layout(
        seed=spec.seed,
        judges=sorted(spec.judges),
        items=[item.id for item in items],
        prompts=[prompt.id for prompt in prompts],
        orders=facet_levels(spec)["order"],
        repeats=spec.design.repeats,
        send=spec.design.send,
        null_items=frozenset(chosen),
        null_ids=spec.null.ids if spec.null else 0,
    )
    if spec.prompts.census:
        _prove_rendered(spec, items[0], prompts)
    calls = Calls(spec, items, prompts, layout)
    null_cells = len(spec.judges) * len(chosen) * len(facet_levels(spec)["order"])
    hidden = null_cells * spec.design.repeats * (spec.null.ids if spec.null else 0)
    manifest = describe(spec, items, prompts) | {
        "null": {"prompt": prompts[0].id, "items": chosen, "ids": _hidden_ids(spec)} if spec.null else None,
        "calls": designed,
        "null_calls": hidden,
        "warmup_calls": len(calls) - designed - hidden,
        "calls_sha256": sha256_lines(f"{call.id}\t{call.request_sha256}".encode() for call in calls),
    }
    return Plan(spec, json.loads(manifest_bytes(manifest)), calls, _notes(spec, items, len(calls)))


def make_parse(spec: AuditSpec) -> Callable[[str, str, Call], Outcome]:
    """What an answer means: ``parse(text, finish_reason, call)`` of a completed call, by the contract of its wording.

    Calls of the null block read as the first wording does.
    """
    prompts = build_prompts(spec)
    readers = {prompt.id: make_reader(complete(prompt.verdict)) for prompt in prompts}
    first = prompts[0].id

    def parse(text: str, finish_reason: str, call: Call) -> Outcome:
        return readers[first if is_null(call.prompt) else call.prompt](text, finish_reason, call.order)

    return parse


def _hidden_ids(spec: AuditSpec) -> list[str]:
    return [f"{NULL_PREFIX}{number + 1}" for number in range(spec.null.ids)] if spec.null else []


def _null_items(spec: AuditSpec, items: Sequence[Item]) -> list[str]:
    if spec.null is None:
        return []
    if spec.null.items > len(items):
        raise SpecError(
            f"items is {spec.null.items}, and the audit has {len(items)}",
            place="[null]",
            remedy=f"write {len(items)} or fewer",
        )
    labels = [item.id for item in items]
    ranked = sorted(labels, key=lambda label: (blake2b_64(["null", spec.seed, label]), label))
    chosen = set(ranked[: spec.null.items])
    return [label for label in labels if label in chosen]


def _values(item: Item, pair: tuple[str, str] | None, order: str) -> Mapping[str, str]:
    """Fields of an item, and its two candidates as the order shows them."""
    if pair is None:
        return item.fields
    one, two = (item.fields[name] for name in pair)
    return {**item.fields, "first": one if order == "AB" else two, "second": two if order == "AB" else one}


def _prove_rendered(spec: AuditSpec, item: Item, prompts: Sequence[Prompt]) -> None:
    """Prove the census once more on the messages that are sent for one item, in every order."""
    for order in facet_levels(spec)["order"]:
        values = _values(item, spec.items.pair, order)
        prove_census(
            {prompt.id: message_bytes(render(prompt, values)) for prompt in prompts},
            {prompt.id: prompt.inserted.encode() for prompt in prompts},
        )


def _notes(spec: AuditSpec, items: Sequence[Item], planned: int) -> tuple[str, ...]:
    notes = []
    limit = spec.limits.calls
    if limit is not None and planned > limit:
        notes.append(f"[limits] calls = {limit} is less than the {planned} planned calls: the run will stop there")
    texts = len({tuple(sorted(item.fields.items())) for item in items})
    if texts < len(items):
        notes.append(f"{len(items) - texts} of {len(items)} items repeat the texts of another: they are not new items")
    return tuple(notes)
