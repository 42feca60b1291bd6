"""From ledger rows to the cube: every planned call has its place, whatever became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from secondorder._audit._folder import RunFolder
from secondorder._design import Facet
from secondorder._labels._columns import natural_order
from secondorder._labels._cube import new_cube
from secondorder._schema import BOTTOM, CODE_MISSING, ITEM, JUDGE, REASONS, REPEAT, STATUS
from secondorder.acquire._ledger_read import LedgerReader, Record, read_ledger
from secondorder.acquire._plan import is_null
from secondorder.errors import CubeError

__all__ = ["cube_of_run", "ledger_digest"]

NOT_ENDED = "interrupted"


def ledger_digest(folder: RunFolder) -> str:
    """Identity of a run's ledger: its terminal outcomes in call order."""
    with read_ledger(folder.ledger) as reader:
        return reader.digest()


def cube_of_run(folder: RunFolder) -> tuple[xr.Dataset, xr.Dataset | None]:
    """The cube of a run's design, and that of its null block where there is one.

    A call that has not ended yet stands as no completion with reason ``interrupted``.
    """
    manifest = folder.read_manifest()
    with read_ledger(folder.ledger) as reader:
        parent = {
            "name": "ledger.sqlite",
            "sha256": reader.digest(),
            "rows": manifest["calls"],
            "rows_used": manifest["calls"],
        }
        design = _Grid(manifest, parent, _duplicates(reader))
        null = _NullGrid(manifest, parent) if manifest.get("null") else None
        for record in reader.outcomes():
            if record.call.warmup:
                continue
            if null is not None and is_null(record.call.prompt):
                null.put(record)
            else:
                design.put(record)
    return design.cube(), None if null is None else null.cube()


def _duplicates(reader: LedgerReader) -> dict[str, int]:
    """Calls whose answer another call has too: by the id that the server gave, and by identical bytes."""
    found = {"response_id": 0, "response_id_inside_cell": 0, "body": 0, "body_inside_cell": 0}
    for duplicate in reader.duplicates():
        found[duplicate.kind] += len(duplicate.calls)
        found[f"{duplicate.kind}_inside_cell"] += len(duplicate.calls) if duplicate.inside_cell else 0
    return found


class _Grid:
    """Arrays over (judge, item, facets …, repeat) that ledger records are put into."""

    def __init__(self, manifest: Mapping[str, Any], parent: Mapping[str, Any], duplicates: Mapping[str, int]) -> None:
        self.manifest, self.parent, self.duplicates = manifest, parent, duplicates
        spec = manifest["spec"]
        self.facets = [
            Facet(entry["name"], entry["kind"] if len(entry["levels"]) > 1 else "fixed", entry["weights"])
            for entry in manifest["facets"]
        ]
        self.classes = [*_classes(manifest), BOTTOM]
        self.labels: dict[str, Sequence[str]] = {
            JUDGE: sorted(spec["judges"]),
            ITEM: _natural(manifest["items"]["ids"]),
            **{entry["name"]: entry["levels"] for entry in manifest["facets"]},
            REPEAT: [str(repeat) for repeat in range(spec["design"]["repeats"])],
        }
        self.prompt_levels = {
            prompt["id"]: prompt["levels"] or {"prompt": prompt["id"]} for prompt in manifest["prompts"]
        }
        self.allocate()

    def allocate(self) -> None:
        shape = tuple(len(names) for names in self.labels.values())
        self.index = {dim: {label: k for k, label in enumerate(names)} for dim, names in self.labels.items()}
        self.code = {label: k for k, label in enumerate(self.classes)}
        self.verdict = np.full(shape, CODE_MISSING, dtype=np.int16)
        self.status = np.full(shape, STATUS.index("no_completion"), dtype=np.int8)
        self.reason = np.full(shape, REASONS.index(NOT_ENDED), dtype=np.int8)
        self.attempts = np.zeros(shape, dtype=np.int16)
        self.send_rank = np.full(shape, -1, dtype=np.int32)
        self.sent = np.full(shape, np.nan)
        self.latency_ms = np.full(shape, np.nan)
        # The hash of the server's response id; 0 where it gave none.
        self.response_key = np.zeros(shape, dtype=np.int64)

    def place(self, record: Record) -> tuple[int, ...]:
        call = record.call
        levels = {**self.prompt_levels[call.prompt], "order": call.order}
        labels = {JUDGE: call.judge, ITEM: call.item, **levels, REPEAT: str(call.repeat)}
        return tuple(self.index[dim][labels[dim]] for dim in self.labels)

    def put(self, record: Record) -> None:
        outcome = record.outcome
        assert outcome is not None
        at = self.place(record)
        if outcome.status == "valid":
            if outcome.verdict not in self.code:
                raise CubeError(
                    f"call {record.call.id} has the verdict {outcome.verdict!r}, which is no class",
                    place="ledger.sqlite",
                    remedy=f"classes: {', '.join(self.classes)}",
                )
            self.verdict[at] = self.code[outcome.verdict]
        elif outcome.status == "invalid":
            self.verdict[at] = self.code[BOTTOM]
        self.status[at] = STATUS.index(outcome.status)
        self.reason[at] = REASONS.index(outcome.reason)
        self.attempts[at] = record.number
        self.send_rank[at] = record.call.rank
        if record.sent is not None:
            self.sent[at] = record.sent
        if record.latency_ms is not None:
            self.latency_ms[at] = record.latency_ms
        if record.response_key is not None:
            self.response_key[at] = record.response_key

    def cube(self) -> xr.Dataset:
        items = self.manifest["items"]
        position = {label: k for k, label in enumerate(items["ids"])}
        rows = [position[label] for label in self.labels[ITEM]]
        analysis = self.manifest["spec"]["analysis"]
        return new_cube(
            self.verdict,
            labels=self.labels,
            classes=self.classes,
            facets=self.facets,
            status=self.status,
            reason=self.reason,
            stratum=None if items["strata"] is None else [items["strata"][k] for k in rows],
            gold=None if items["gold"] is None else [items["gold"][k] for k in rows],
            calls={
                name: getattr(self, name) for name in ("attempts", "send_rank", "sent", "latency_ms", "response_key")
            },
            attributes={
                "parent": self.parent,
                "classes_declared": True,
                "invalid": [],
                "missing": [],
                "independence": "testable",
                "kernel": analysis["kernel"],
                "analysis": analysis,
                "duplicates": dict(self.duplicates),
                "asked": _asked(self.manifest),
            },
        )


class _NullGrid(_Grid):
    """The same over hidden ids in the place of wordings, on the items of the null block."""

    def __init__(self, manifest: Mapping[str, Any], parent: Mapping[str, Any]) -> None:
        self.manifest, self.parent = manifest, parent
        super().__init__(manifest, parent, {})
        null = manifest["null"]
        orders = next(entry["levels"] for entry in manifest["facets"] if entry["name"] == "order")
        self.facets = [Facet("prompt"), Facet("order")]
        self.labels = {
            JUDGE: self.labels[JUDGE],
            ITEM: _natural(null["items"]),
            "prompt": null["ids"],
            "order": orders,
            REPEAT: self.labels[REPEAT],
        }
        self.prompt_levels = {name: {"prompt": name} for name in null["ids"]}
        self.allocate()


def _natural(labels: Sequence[str]) -> list[str]:
    return [labels[k] for k in natural_order(labels)]


def _classes(manifest: Mapping[str, Any]) -> list[str]:
    """Classes of the audit: all wordings must share them, or verdicts could not be compared across wordings."""
    found = [prompt["verdict"]["classes"] for prompt in manifest["prompts"]]
    odd = next((k for k, classes in enumerate(found) if classes != found[0]), None)
    if odd is not None:
        names = manifest["prompts"]
        raise CubeError(
            f"wording {names[odd]['id']!r} has the classes {found[odd]}, {names[0]['id']!r} has {found[0]}",
            place="manifest.json",
            remedy="give all wordings the same classes; scales are compared in the study of design choices",
        )
    return list(found[0])


def _asked(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked, as the report shows it: the spec and the wordings, without the items' texts."""
    small = {key: manifest[key] for key in ("spec", "facets", "prompts", "census", "parsers", "null", "calls")}
    small["items"] = {"n": len(manifest["items"]["ids"]), "sha256": manifest["items"]["sha256"]}
    return dict(json.loads(json.dumps(small)))
