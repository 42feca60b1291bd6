"""What was asked, and where the numbers come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import xarray as xr

from secondorder._labels._results import Section, Table
from secondorder.report._read import Row, provenance

__all__ = ["asked_section", "asked_title", "headline", "provenance_section"]

BY_CELL = "repeats of a cell one after the other, each cell after a warm-up call outside the design"
SENDING = {
    "shuffled": "shuffled over the whole design",
    "by-item": "item by item, shuffled inside",
    "by-cell": BY_CELL,
}


def asked_title(tree: xr.DataTree) -> str:
    """Name of the audit, or of the table."""
    asked = provenance(tree, "asked")
    return str(asked["spec"]["name"] if asked else provenance(tree, "source")["name"])


def headline(tree: xr.DataTree) -> str:
    """The design on one line."""
    found = provenance(tree, "groups")
    facets = {name: len(info["levels"]) for name, info in found[0]["facets"].items()}
    sizes = [f"{count} levels of {name}" for name, count in facets.items() if count > 1]
    low, high = found[0]["repeats"]
    repeats = f"{low} call{'s' * (low != 1)}" if low == high else f"{low} to {high} calls"
    items = int(tree["/components"].n_items.max())
    judges = f"{len(found)} judges, " if len(found) > 1 else ""
    return judges + " × ".join([f"{items} items", *sizes, repeats])


def asked_section(tree: xr.DataTree) -> Section:
    """The declaration: judges, items, facets, calls, verdicts, analysis."""
    asked, settings = provenance(tree, "asked"), provenance(tree, "settings")
    rows: list[Row] = []
    if asked is not None:
        spec = asked["spec"]
        rows.append(("audit", f"{spec['name']}, seed {spec['seed']}"))
        rows.extend((f"judge {name}", _judge(judge)) for name, judge in spec["judges"].items())
        rows.append(("items", f"{asked['items']['n']} from {spec['items']['file']}"))
        rows.extend(_facets({facet["name"]: facet for facet in asked["facets"]}))
        rows.append(("calls", f"{spec['design']['repeats']} per cell, {asked['calls']} in all"))
        rows.append(("order of sending", SENDING[spec["design"]["send"]]))
        if spec["prompts"]["criterion"]:
            rows.append(("criterion", spec["prompts"]["criterion"]))
        if asked["census"] is not None:
            rows.append(("census", "the prompts differ in the format of the criterion alone (proved by hash)"))
        cut = {"invalid": "an answer cut at the token limit is ⊥", "parse": "answers cut at the token limit are read"}
        rows.append(("verdict", f"parser {spec['verdict']['parser']}; {cut[spec['verdict']['truncated']]}"))
        if spec["verdict"]["labels"]:
            rows.append(("labels", ", ".join(f"{key} → {value}" for key, value in spec["verdict"]["labels"].items())))
    else:
        table = provenance(tree, "source")
        rows.append(("table", f"{table['name']}, {table['rows_used']} of {table['rows']} rows used"))
        rows.extend(_facets(provenance(tree, "groups")[0]["facets"]))
    rows.append(("classes", ", ".join(settings["classes"]) + ("" if settings["classes_declared"] else " (as found)")))
    rows.append(("analysis", f"{settings['kernel']} kernel, {settings['pairs']} pairs of calls"))
    rows.append(("bands", f"{100 * settings['level']:g} %, {settings['interval']}, covering {settings['covers']}"))
    if settings.get("tau") is not None:
        rows.append(("threshold τ", f"{settings['tau']:g}"))
    tables = [Table("", ("", ""), tuple(rows))]
    if asked is not None:
        tables.append(Table("Prompts", ("", ""), tuple(_prompts(asked["spec"]["prompts"]))))
    return Section("What was asked", "", tuple(tables))


def _prompts(prompts: Mapping[str, Any]) -> Iterator[Row]:
    """Templates as they were declared, one row per message."""
    for variant in prompts["variants"] or [{"id": "", **prompts}]:
        messages = variant.get("messages") or [
            {"role": role, "content": variant.get(role) or prompts.get(role) or ""} for role in ("system", "user")
        ]
        for message in messages:
            if message["content"]:
                yield f"{variant['id']} {message['role']}".strip(), message["content"]


def _judge(judge: Mapping[str, Any]) -> str:
    body = ", ".join(f"{key} = {value}" for key, value in judge["body"].items())
    note = f"; {judge['note']}" if judge.get("note") else ""
    soft = judge.get("soft")
    verdicts = "" if soft is None else f"; soft verdicts, token = {soft['token']}, {soft['top_logprobs']} listed"
    sent = body or "no sampling field sent"
    return f"{judge['model']} at {judge['base_url']} ({judge['endpoint']}); {sent}{verdicts}{note}"


def _facets(facets: Mapping[str, Any]) -> list[Row]:
    kinds = {"fixed": "a full list", "random": "a sample of a policy"}
    return [
        (name, f"{len(info['levels'])}, {kinds.get(info['kind'], info['kind'])}: {', '.join(_levels(info))}")
        for name, info in facets.items()
        if len(info["levels"]) > 1
    ]


def _levels(facet: Mapping[str, Any]) -> list[str]:
    weights = facet.get("weights")
    if not weights or max(weights) - min(weights) < 1e-12:
        return list(facet["levels"])
    return [f"{level} ({weight:g})" for level, weight in zip(facet["levels"], weights, strict=True)]


def provenance_section(tree: xr.DataTree) -> Section:
    """Version and digests."""
    attrs, table = tree["/provenance"].attrs, provenance(tree, "source")
    rows: list[Row] = [
        ("secondorder", str(attrs["version"])),
        ("made from", str(table["name"])),
        ("its SHA-256", str(table["sha256"])),
    ]
    if "cube" in attrs:
        rows.append(("digest of the cube", str(attrs["cube"])))
    return Section("Provenance", "", (Table("", ("", ""), tuple(rows)),))
