"""From ledger rows to the cube: every planned call has its place, whatever became of it.

The null block goes to a cube of its own, and warm-up calls to none: neither is part of the design.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from secondorder._audit._folder import RunFolder
from secondorder._audit._origins import NO_ORIGIN, Origin, Origins
from secondorder._audit._soft import Softener, SoftVectors
from secondorder._design import Facet
from secondorder._labels._columns import natural_order
from secondorder._labels._cube import new_cube
from secondorder._labels._identity import cube_digest
from secondorder._schema import BOTTOM, CODE_MISSING, ITEM, JUDGE, ORDER, PROMPT, REASONS, REPEAT, STATUS
from secondorder.acquire import AuditSpec, LedgerReader, Record, is_null, read_ledger, reread, spec_from_manifest
from secondorder.errors import CorruptFileError, CubeError

__all__ = ["Grid", "cube_of_run", "design_grid", "ledger_digest"]

NOT_ENDED = "interrupted"
SHOWN, LOOKED_AT, LONGEST_ANSWER = 3, 30, 200


def ledger_digest(folder: RunFolder) -> str:
    """Identity of a run's ledger: its terminal outcomes in call order."""
    with read_ledger(folder.ledger) as reader:
        return reader.digest()


def cube_of_run(folder: RunFolder) -> tuple[xr.Dataset, xr.Dataset | None]:
    """The cube of a run's design, and that of its null block where there is one.

    A call that has not ended yet stands as no completion with reason ``interrupted``.

    Raises
    ------
    CorruptFileError
        When the ledger's outcomes have changed since the last call ended.
    """
    manifest = folder.read_manifest()
    with read_ledger(folder.ledger) as reader:
        origin = {"name": folder.ledger.name, "sha256": _digest(reader)}
        spec = spec_from_manifest(manifest)
        origins, null_origins = Origins(spec), Origins(spec)
        soften = Softener(spec)
        design = _Cells(design_grid(manifest), soften)
        null = _Cells(_null_grid(manifest), soften) if manifest.get("null") else None
        for record in reader.outcomes(bodies="response"):
            if record.call.warmup:
                continue
            if null is not None and is_null(record.call.prompt):
                null.put(record, null_origins.add(record))
            else:
                design.put(record, origins.add(record))
        design_only = {
            "duplicates": _duplicates(reader),
            "asked": _asked(manifest),
            "answers": _answers(reader, spec),
            "regimes": origins.regimes,
        }
    null_only = {"regimes": null_origins.regimes}
    return design.cube(origin, design_only), None if null is None else null.cube(origin, null_only)


def _digest(reader: LedgerReader) -> str:
    """Identity of the outcomes, which has to be the one that was stored with the last of them."""
    digest = reader.digest()
    if reader.meta.get("outcomes_sha256", digest) != digest:
        raise CorruptFileError(
            "its outcomes are not those that were stored",
            place=str(reader.path),
            remedy="'secondorder ledger verify' says which differ; restore a copy",
        )
    return digest


@dataclass(frozen=True)
class Grid:
    """Where calls stand: dimensions with their labels, and the levels that a prompt's id stands for."""

    labels: Mapping[str, Sequence[str]]
    facets: Sequence[Facet]
    levels_of: Mapping[str, Mapping[str, str]]
    classes: Sequence[str]
    analysis: Mapping[str, Any]
    strata: Sequence[str] | None = None
    gold: Sequence[str] | None = None


def design_grid(manifest: Mapping[str, Any]) -> Grid:
    """Where the calls of a manifest's design stand."""
    spec, items = manifest["spec"], manifest["items"]
    order = natural_order(items["ids"])
    return Grid(
        labels={
            JUDGE: sorted(spec["judges"]),
            ITEM: [items["ids"][k] for k in order],
            **{entry["name"]: entry["levels"] for entry in manifest["facets"]},
            REPEAT: [str(repeat) for repeat in range(spec["design"]["repeats"])],
        },
        facets=[
            Facet(entry["name"], entry["kind"] if len(entry["levels"]) > 1 else "fixed", entry["weights"])
            for entry in manifest["facets"]
        ],
        levels_of={prompt["id"]: prompt["levels"] or {PROMPT: prompt["id"]} for prompt in manifest["prompts"]},
        # A wording may use some of the classes; the spec's are those of all wordings.
        classes=[*spec["verdict"]["classes"], BOTTOM],
        analysis=spec["analysis"],
        strata=None if items["strata"] is None else [items["strata"][k] for k in order],
        gold=None if items["gold"] is None else [items["gold"][k] for k in order],
    )


def _null_grid(manifest: Mapping[str, Any]) -> Grid:
    """Hidden ids in the place of wordings, on the items of the null block."""
    design, null = design_grid(manifest), manifest["null"]
    return Grid(
        labels={
            JUDGE: design.labels[JUDGE],
            ITEM: [null["items"][k] for k in natural_order(null["items"])],
            PROMPT: null["ids"],
            ORDER: design.labels[ORDER],
            REPEAT: design.labels[REPEAT],
        },
        facets=[Facet(PROMPT), Facet(ORDER)],
        levels_of={name: {PROMPT: name} for name in null["ids"]},
        classes=design.classes,
        analysis=design.analysis,
    )


class _Cells:
    """Arrays over a grid that ledger records are put into."""

    def __init__(self, grid: Grid, soften: Softener) -> None:
        self.grid, self._soften = grid, soften
        shape = tuple(len(names) for names in grid.labels.values())
        # Flat positions add up: one step per label of every dimension.
        strides = [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape))]
        step = {
            dim: {label: k * stride for k, label in enumerate(names)}
            for (dim, names), stride in zip(grid.labels.items(), strides, strict=True)
        }
        self._judge, self._item, self._order = step[JUDGE], step[ITEM], step[ORDER]
        self._prompt = {
            name: sum(step[facet][level] for facet, level in levels.items()) for name, levels in grid.levels_of.items()
        }
        self._code = {label: k for k, label in enumerate(grid.classes)}
        self._shape = shape
        self._status = {word: code for code, word in enumerate(STATUS)}
        self._reason = {word: code for code, word in enumerate(REASONS)}
        size = int(np.prod(shape, dtype=np.int64))
        self.verdict = np.full(size, CODE_MISSING, dtype=np.int16)
        self.status = np.full(size, self._status["no_completion"], dtype=np.int8)
        self.reason = np.full(size, self._reason[NOT_ENDED], dtype=np.int8)
        self.attempts = np.zeros(size, dtype=np.int32)
        self.send_rank = np.full(size, -1, dtype=np.int32)
        self.sent = np.full(size, np.nan)
        self.latency_ms = np.full(size, np.nan)
        # The hash of the server's response id; 0 where it gave none.
        self.response_key = np.zeros(size, dtype=np.int64)
        self.regime = np.full(size, NO_ORIGIN.regime, dtype=np.int32)
        self.cached = np.zeros(size, dtype=np.int8)
        self._soft = SoftVectors(size, grid.classes) if soften.judges else None

    def put(self, record: Record, origin: Origin) -> None:
        call, outcome = record.call, record.outcome
        assert outcome is not None
        at = self._judge[call.judge] + self._item[call.item] + self._prompt[call.prompt] + self._order[call.order]
        at += call.repeat
        if outcome.status == "valid":
            if outcome.verdict not in self._code:
                raise CubeError(
                    f"call {call.id} has the verdict {outcome.verdict!r}, which is no class",
                    place="ledger.sqlite",
                    remedy=f"classes: {', '.join(self.grid.classes)}",
                )
            self.verdict[at] = self._code[outcome.verdict]
        elif outcome.status == "invalid":
            self.verdict[at] = self._code[BOTTOM]
        self.status[at] = self._status[outcome.status]
        self.reason[at] = self._reason[outcome.reason]
        soft = self._soften(record)
        if soft is not None and soft.reason:
            # Completed, and undefined: no class, not even that of the sampled token.
            self.verdict[at], self.status[at] = CODE_MISSING, self._status["invalid"]
            self.reason[at] = self._reason[soft.reason]
        elif soft is not None and self._soft is not None:
            self._soft.put(at, soft)
        self.attempts[at] = record.number
        self.send_rank[at] = call.rank
        self.regime[at], self.cached[at] = origin
        if record.sent is not None:
            self.sent[at] = record.sent
        if record.latency_ms is not None:
            self.latency_ms[at] = record.latency_ms
        if record.response_key is not None:
            self.response_key[at] = record.response_key

    def cube(self, origin: Mapping[str, Any], more: Mapping[str, Any]) -> xr.Dataset:
        grid, planned = self.grid, self.verdict.size
        calls = ("attempts", "send_rank", "sent", "latency_ms", "regime", "cached", "response_key")
        made = new_cube(
            self.verdict.reshape(self._shape),
            labels=grid.labels,
            classes=grid.classes,
            facets=grid.facets,
            status=self.status.reshape(self._shape),
            reason=self.reason.reshape(self._shape),
            stratum=grid.strata,
            gold=grid.gold,
            calls={name: getattr(self, name).reshape(self._shape) for name in calls},
            attributes={
                "classes_declared": True,
                "invalid": [],
                "missing": [],
                "independence": "testable",
                "kernel": grid.analysis["kernel"],
                "analysis": dict(grid.analysis),
                **more,
            },
        )
        if self._soft is not None:
            made = self._soft.added_to(made, self._soften.judges)
        # The parent is no part of the content, so it can hold its digest.
        parent = {**origin, "rows": planned, "rows_used": planned, "content": cube_digest(made)}
        return made.assign_attrs(parent=json.dumps(parent))


def _duplicates(reader: LedgerReader) -> dict[str, int]:
    """Calls whose answer another call has too: by the id that the server gave, and by identical bytes."""
    found = {"response_id": 0, "response_id_inside_cell": 0, "body": 0, "body_inside_cell": 0}
    for duplicate in reader.duplicates():
        found[duplicate.kind] += len(duplicate.calls)
        found[f"{duplicate.kind}_inside_cell"] += len(duplicate.calls) if duplicate.inside_cell else 0
    return found


def _answers(reader: LedgerReader, spec: AuditSpec) -> list[dict[str, str]]:
    """Answers that were no verdict, and errors in the place of answers: of each kind the first different ones."""
    rows = []
    for kind in reader.counts():
        if kind.status not in ("invalid", "no_completion"):
            continue
        texts: dict[str, None] = {}
        for record in reader.ended(kind.judge, kind.status, kind.reason, limit=LOOKED_AT):
            completion = reread(record, spec.judges[kind.judge])
            text = record.error if completion is None else completion.text
            texts[text if len(text) <= LONGEST_ANSWER else f"{text[:LONGEST_ANSWER]}…"] = None
        rows += [
            {"judge": kind.judge, "outcome": f"{kind.status}: {kind.reason}", "text": text}
            for text in list(texts)[:SHOWN]
        ]
    return rows


def _asked(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked, as the report shows it: the spec and the wordings, without the items' texts."""
    small = {key: manifest[key] for key in ("spec", "facets", "prompts", "census", "parsers", "null", "calls")}
    small["items"] = {"n": len(manifest["items"]["ids"]), "sha256": manifest["items"]["sha256"]}
    return dict(json.loads(json.dumps(small)))
