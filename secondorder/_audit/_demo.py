"""The demo: a whole audit over HTTP on this machine, of a judge whose law is known, with the truth beside the estimate.

Everything in it is a function of the shipped ``audit.toml`` and ``items.jsonl``: the law, the seeds, hence the answers
and every digit of the table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import msgspec
import numpy as np
import xarray as xr

from secondorder._atomic import write_bytes
from secondorder._audit._calls import OnProgress, acquire_stage, said_of_calls
from secondorder._audit._demo_law import cell_law
from secondorder._audit._folder import RunFolder
from secondorder._audit._plan import Audit, load_audit, plan_audit, planned_folder
from secondorder._audit._run import Note, Run, finish_run
from secondorder._labels._results import Table, format_number, printed, render_table
from secondorder._schema import BOTTOM, CLASS, ITEM
from secondorder._statistics._law import decompose_law
from secondorder.acquire import AuditSpec, Plan, SimulatedJudge, make_parse, messages_key, read_ledger, write_laws
from secondorder.errors import InputError, StorageError

__all__ = ["Demo", "demo_laws", "law_of_plan", "run_demo"]

SHIPPED = ("audit.toml", "items.jsonl")


@printed
@dataclass(frozen=True, eq=False)
class Demo:
    """A run of the demo with its truth.

    Attributes
    ----------
    run : Run
    truth : mapping of str to float
        Component to its true value on these items.
    """

    run: Run
    truth: Mapping[str, float]

    def __str__(self) -> str:
        found = self.run.decomposition
        rows = tuple(
            (name, true, found[name].estimate, found[name].lower, found[name].upper, found[name].plugin)
            for name, true in self.truth.items()
        )
        (group,) = found.groups
        strata = "" if group.strata is None else f" in {len(set(group.strata))} strata"
        prompts, orders = (len(group.facets[name].levels) for name in ("prompt", "order"))
        table = Table(
            f"A simulated judge compared {len(group.items)} pairs of answers, {prompts} prompts x {orders} orders x "
            f"{group.repeats[1]} calls.\nHow it answers is known, so the truth is too.\n",
            ("component", "truth", "debiased", "lower", "upper", "plug-in"),
            rows,
            (
                f"lower, upper: {100 * found.settings.level:g}% band over items{strata}; "
                f"{group.n_invalid} of {group.n_calls} answers invalid (⊥)",
            ),
        )
        values = {
            "plug-in": {name: found[name].plugin for name in ("prompt", "order")},
            "truth": {name: self.truth[name] for name in ("prompt", "order")},
            "debiased": {name: found[name].estimate for name in ("prompt", "order")},
        }
        why = {"plug-in": "    it counts call noise as effects"}
        lines = [
            "What moves its verdicts more, the format of the prompt or the order of answers?",
            *(f"  {name:<8}  {_larger_first(pair)}{why.get(name, '')}" for name, pair in values.items()),
        ]
        return "\n".join([render_table(table), "", *lines, "", f"report: {self.run.report}"])


def _larger_first(pair: Mapping[str, float]) -> str:
    ranked = sorted(pair, key=lambda name: -pair[name])
    return " > ".join(f"{name} {format_number(pair[name], 3)}" for name in ranked)


def run_demo(folder: str | os.PathLike[str], *, progress: OnProgress | None = None, note: Note | None = None) -> Demo:
    """Audit the simulated judge and leave every artifact in a folder; the same call again resumes.

    Parameters
    ----------
    folder : path
        Made where it is missing.
    progress, note : callable, optional
        As for :func:`secondorder.run_audit`.

    Raises
    ------
    InputError
        When the folder holds another audit.
    WorldError
        Disk or judge failed; what was stored is kept.
    """
    path = Path(folder)
    _lay_out(path)
    audit = load_audit(path)
    run_folder, planned = planned_folder(audit, path)
    laws = demo_laws(audit, planned)
    if not (path / "laws.json").exists():
        write_laws(path / "laws.json", laws)
    if _complete(run_folder):
        summary = acquire_stage(run_folder, audit.spec)
    else:
        with SimulatedJudge(laws) as judge:
            summary = acquire_stage(run_folder, _at(audit.spec, judge.base_url), progress=progress)
    if note is not None:
        note(f"acquire: {said_of_calls(summary)}")
    run = finish_run(run_folder, summary, note=note)
    true = decompose_law(law_of_plan(planned, laws)).value
    return Demo(run, dict(zip(true.component.values.tolist(), true.values.tolist(), strict=True)))


def demo_laws(audit: Audit, planned: Plan | None = None) -> dict[str, dict[str, float]]:
    """Law of every cell of the demo's plan, by the address of its messages."""
    items = {item.id: item for item in audit.items}
    laws = {}
    for call in (planned or plan_audit(audit)).calls:
        if call.repeat == 0:
            item = items[call.item]
            laws[_address(call.request)] = cell_law(item.id, item.stratum, item.gold, call.prompt, call.order)
    return laws


def law_of_plan(planned: Plan, laws: Mapping[str, Mapping[str, float]]) -> xr.DataArray:
    """Class probabilities of every cell of a plan under laws over answer texts, read by the plan's own parser.

    Returns
    -------
    DataArray, dims (item, facets ..., class)
    """
    manifest = planned.manifest
    parse = make_parse(planned.spec)
    labels = {
        ITEM: manifest["items"]["ids"],
        **{facet["name"]: facet["levels"] for facet in manifest["facets"]},
        CLASS: [*planned.spec.verdict.classes, BOTTOM],
    }
    levels_of = {prompt["id"]: prompt["levels"] or {"prompt": prompt["id"]} for prompt in manifest["prompts"]}
    law = xr.DataArray(np.zeros([len(names) for names in labels.values()]), dims=list(labels), coords=labels)
    position = {dim: {label: k for k, label in enumerate(names)} for dim, names in labels.items()}
    for call in planned.calls:
        if call.repeat != 0:
            continue
        cell = {ITEM: call.item, **levels_of[call.prompt], "order": call.order}
        at = tuple(position[dim][cell[dim]] for dim in labels if dim != CLASS)
        for text, probability in laws[_address(call.request)].items():
            verdict = parse(text, "stop", call).verdict or BOTTOM
            law.values[(*at, position[CLASS][verdict])] += probability
    return law


def _address(request: bytes) -> str:
    return messages_key(json.loads(request)["messages"])


def _at(spec: AuditSpec, base_url: str) -> AuditSpec:
    """The spec with its judges where the simulated one listens: the port is the machine's, not the audit's."""
    judges = {name: msgspec.structs.replace(judge, base_url=base_url) for name, judge in spec.judges.items()}
    return msgspec.structs.replace(spec, judges=judges)


def _complete(folder: RunFolder) -> bool:
    with read_ledger(folder.ledger) as reader:
        return reader.complete()


def _lay_out(folder: Path) -> None:
    """Put the demo's audit and items into the folder; nobody else's are touched."""
    shipped = {name: (files("secondorder") / "_shipped_data" / "demo" / name).read_bytes() for name in SHIPPED}
    for name, data in shipped.items():
        try:
            if (folder / name).read_bytes() != data:
                raise InputError("it is not the demo's", place=str(folder / name), remedy="give another folder")
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            raise InputError("it is a file", place=str(folder), remedy="give a folder") from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the folder cannot be made ({error.strerror})", place=str(folder), remedy="give another folder"
        ) from error
    for name, data in shipped.items():
        if not (folder / name).exists():
            write_bytes(folder / name, data)
