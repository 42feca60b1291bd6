"""``manifest.json``: what was asked, without times or paths; and what changed between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from secondorder._canon import blake2b_64, canonical_json, sha256_hex, sha256_lines
from secondorder._schema import MANIFEST_SCHEMA
from secondorder.acquire._census import CensusProof, message_bytes, prove_census
from secondorder.acquire._contract import complete
from secondorder.acquire._facets import facet_levels, facet_weights
from secondorder.acquire._gate import gate_signals
from secondorder.acquire._items import Item
from secondorder.acquire._parsers import parser_version
from secondorder.acquire._prompts import Prompt, Template, build_prompts
from secondorder.acquire._spec import AuditSpec, GateSpec
from secondorder.acquire._strict import shown

__all__ = ["compare_manifests", "describe", "manifest_bytes", "prompt_texts"]

PACE = frozenset({"concurrency", "requests_per_minute", "price", "key_env"})
"""Keys of a judge that say how fast and by whose account its calls are sent, not what is asked."""


def describe(spec: AuditSpec, items: Sequence[Item], prompts: Sequence[Prompt]) -> dict[str, Any]:
    """Everything in the manifest but its calls: spec with all defaults, facets, prompts, items, parsers."""
    written = msgspec.to_builtins(spec)
    written["items"]["file"] = PurePath(spec.items.file.replace("\\", "/")).name
    if spec.gate is not None:
        written["gate"]["file"] = PurePath(spec.gate.file.replace("\\", "/")).name
    weights = facet_weights(spec)
    proof = _template_proof(spec, prompts)
    lines = [canonical_json([item.id, item.fields, item.stratum, item.gold]) for item in items]
    return {
        "schema": MANIFEST_SCHEMA,
        "spec": written,
        "facets": [
            {
                "name": name,
                "kind": spec.prompts.policy if name == "prompt" else "fixed",
                "levels": levels,
                "weights": weights.get(name),
            }
            for name, levels in facet_levels(spec).items()
        ],
        "prompts": [
            {
                "id": prompt.id,
                "levels": prompt.levels,
                "weight": prompt.weight,
                "sha256": sha256_hex(message_bytes(_shown_messages(prompt))),
                "verdict": msgspec.to_builtins(complete(prompt.verdict)),
            }
            for prompt in prompts
        ],
        **({} if spec.gate is None else {"gate_signals": _signals(spec.gate, items)}),
        "census": None if proof is None else msgspec.to_builtins(proof),
        "parsers": {name: parser_version(name) for name in sorted({prompt.verdict.parser for prompt in prompts})},
        "items": {
            "ids": [item.id for item in items],
            "strata": [item.stratum for item in items] if spec.items.stratum else None,
            "gold": [item.gold for item in items] if spec.items.gold else None,
            "digests": [f"{blake2b_64(line.decode()):016x}" for line in lines],
            "sha256": sha256_lines(lines),
        },
    }


def _signals(gate: GateSpec, items: Sequence[Item]) -> dict[str, list[str | int]]:
    """What the gate looks at, in the order of the items."""
    return gate_signals(gate.content, [item.fields for item in items], [item.stratum for item in items])


def manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """Bytes of ``manifest.json``; its digest is their SHA-256."""
    return canonical_json(manifest)


def compare_manifests(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What changed in what is asked, one line per key, as ``design.repeats: 4 → 8``.

    The pace of sending is not compared: ``concurrency``, ``requests_per_minute``, ``price`` and ``key_env`` of a judge,
    and ``[limits]`` may change between two runs of one folder. Digests are named only where no key explains them.
    """
    spec = [
        f"{path}: {before} → {after}"
        for path, before, after in _changes(old.get("spec"), new.get("spec"), ())
        if not _is_pace(path)
    ]
    spec += _item_changes(old.get("items", {}), new.get("items", {}))
    if spec:
        return spec
    was, now = ({key: value for key, value in side.items() if key not in ("spec", "items")} for side in (old, new))
    return [f"{path}: {before} → {after}" for path, before, after in _changes(was, now, ())]


def _is_pace(path: str) -> bool:
    parts = path.split(".")
    return parts[0] == "limits" or (parts[0] == "judges" and not PACE.isdisjoint(parts))


def _changes(old: Any, new: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted(old.keys() | new.keys()):
            yield from _changes(old.get(key), new.get(key), (*path, str(key)))
    elif old != new:
        before, after = ("none" if value is None else shown(value) for value in (old, new))
        yield ".".join(path), before, after


def _item_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    before, after = (dict(zip(side.get("ids", ()), side.get("digests", ()), strict=True)) for side in (old, new))
    kinds = {
        "added": [label for label in after if label not in before],
        "removed": [label for label in before if label not in after],
        "changed": [label for label in after if label in before and after[label] != before[label]],
    }
    lines = [
        f"items: {len(labels)} {kind} ({', '.join(labels[:3])}{', …' if len(labels) > 3 else ''})"
        for kind, labels in kinds.items()
        if labels
    ]
    if not lines and list(before) != list(after):
        lines = ["items: their order"]
    return lines


def prompt_texts(spec: AuditSpec) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Templates of the wordings, all messages of each in one text, and the answers that each asks for.

    Returns
    -------
    texts, answers : dict
        By prompt.
    """
    prompts = build_prompts(spec)
    texts = {prompt.id: "\n\n".join(message["content"] for message in _shown_messages(prompt)) for prompt in prompts}
    contracts = {prompt.id: complete(prompt.verdict) for prompt in prompts}
    return texts, {name: list(one.labels) or list(one.classes) for name, one in contracts.items()}


def _shown_messages(prompt: Prompt) -> list[dict[str, str]]:
    """Messages with their names in place: no item's text."""
    return [{"role": role, "content": _unparse(template)} for role, template in prompt.messages]


def _unparse(template: Template) -> str:
    parts = list(template)
    parts[1::2] = [f"{{{{{name}}}}}" for name in template[1::2]]
    return "".join(parts)


def _template_proof(spec: AuditSpec, prompts: Sequence[Prompt]) -> CensusProof | None:
    if not spec.prompts.census:
        return None
    return prove_census(
        {prompt.id: message_bytes(_shown_messages(prompt)) for prompt in prompts},
        {prompt.id: prompt.inserted.encode() for prompt in prompts},
    )
