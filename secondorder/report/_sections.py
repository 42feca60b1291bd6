"""Sections of the report, each read off the estimates tree: plain tables, texts and figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from secondorder import plot
from secondorder._labels._results import Figure, Section, Table, format_number

__all__ = ["sections"]

MOST_ITEM_ROWS = 200
Cell = str | int | float | None
Row = tuple[Cell, ...]


def sections(tree: xr.DataTree) -> Iterator[Section]:
    """Every section that the tree has something for, in reading order."""
    for make in (
        _answer, _asked, _components, _prefixes, _comparison, _strata, _items, _outcomes, _gold, _sensitivity, _null,
        _integrity, _provenance,
    ):  # fmt: skip
        section = make(tree)
        if section is not None:
            yield section


def _get(tree: xr.DataTree, name: str) -> xr.Dataset | None:
    if name not in tree.children and "/" not in name:
        return None
    try:
        data: xr.Dataset = tree[f"/{name}"].to_dataset()
    except KeyError:
        return None
    return data if data.variables or data.attrs else None


def _groups(data: xr.Dataset) -> Iterator[tuple[str, xr.Dataset]]:
    for k, label in enumerate(data.group.values.tolist()):
        name = label.partition(" = ")[2] if label.count(" = ") == 1 else label
        yield name or "all calls", data.isel(group=k)


def _facets(tree: xr.DataTree) -> list[str]:
    names = [str(name) for name in tree["/components"].component.values]
    return [name for name in names if name not in ("call", "total") and ":" not in name]


def _number(value: Any, digits: int = 4) -> str:
    return format_number(float(value), digits)


def _answer(tree: xr.DataTree) -> Section:
    data = tree["/components"].to_dataset()
    nominal = data.attrs["kernel"] == "nominal"
    facets = _facets(tree)[:2]
    rows: list[Row] = []
    for name, row in _groups(data):
        total = float(row.estimate.sel(component="total"))
        largest = str(row.largest.values)
        source = "–"
        if largest and total > 0:
            settled = "" if float(row.lead_lower) > 0 else ", lead unsettled"
            source = f"{_source(largest)} ({100 * float(row.estimate.sel(component=largest)) / total:.0f} %{settled})"
        values: list[Cell] = [name, total, source]
        for facet in facets:
            values += [float(row.estimate.sel(component=facet)), float(row.plugin.sel(component=facet))]
        rows.append(tuple(values))
    columns = ["judge", "P(disagree)" if nominal else "mean disagreement", "largest source"]
    for facet in facets:
        columns += [facet, f"{facet}, plug-in"]
    text = (
        "How often two calls on one item disagree, what most of it comes from, and what the usual plug-in measure "
        "would have reported. The plug-in counts call noise as an effect of prompt or order; the debiased estimates "
        "do not. A negative estimate is sampling noise around a small component, shown as it is."
    )
    return Section("The answer", text, (Table("", tuple(columns), tuple(rows)),))


def _source(component: str) -> str:
    return "call noise" if component == "call" else component


def _asked(tree: xr.DataTree) -> Section | None:
    provenance = tree["/provenance"].attrs
    asked = json.loads(provenance.get("asked", "null"))
    settings = json.loads(provenance["settings"])
    rows: list[Row] = []
    if asked is not None:
        spec = asked["spec"]
        rows.append(("audit", spec["name"]))
        rows.append(("seed", str(spec["seed"])))
        for name, judge in spec["judges"].items():
            body = ", ".join(f"{key}={value}" for key, value in judge["body"].items())
            rows.append((f"judge {name}", f"{judge['model']} at {judge['base_url']} ({judge['endpoint']}); {body}"))
        rows.append(("items", f"{asked['items']['n']} from {spec['items']['file']}"))
        rows.extend(_facet_rows({f["name"]: f for f in asked["facets"]}))
        rows.append(("repeats", str(spec["design"]["repeats"])))
        rows.append(("sending", spec["design"]["send"]))
        rows.append(("planned calls", str(asked["calls"])))
        if spec["prompts"]["criterion"]:
            rows.append(("criterion", spec["prompts"]["criterion"]))
        if asked["census"] is not None:
            rows.append(("census", "the wordings differ in the wrapper of the criterion alone (proved by hash)"))
        rows.append(("verdict", f"parser {spec['verdict']['parser']}; cut answers: {spec['verdict']['truncated']}"))
    else:
        source = json.loads(provenance["source"])
        rows.append(("table", f"{source['name']} ({source['rows_used']} of {source['rows']} rows used)"))
        groups = json.loads(provenance["groups"])
        rows.extend(_facet_rows(groups[0]["facets"]))
    rows.append(("classes", ", ".join(settings["classes"]) + ("" if settings["classes_declared"] else " (as found)")))
    rows.append(("kernel", settings["kernel"]))
    rows.append(("pairs of calls", settings["pairs"]))
    rows.append(("bands", f"{100 * settings['level']:g} % {settings['interval']}, over {settings['covers']}"))
    return Section("What was asked", "", (Table("", ("", ""), tuple(rows)),))


def _facet_rows(facets: Mapping[str, Any]) -> list[Row]:
    return [
        (f"facet {name}", f"{info['kind']}: {', '.join(info['levels'])}")
        for name, info in facets.items()
        if len(info["levels"]) > 1
    ]


def _components(tree: xr.DataTree) -> Section:
    data = tree["/components"].to_dataset()
    provenance = json.loads(tree["/provenance"].attrs["groups"])
    tables = []
    for k, (name, row) in enumerate(_groups(data)):
        rows = tuple(
            (
                component,
                float(row.estimate[j]),
                float(row.plugin[j]),
                float(row.inflation[j]),
                float(row.lower[j]),
                float(row.upper[j]),
            )
            for j, component in enumerate(data.component.values.tolist())
        )
        dropped = provenance[k]["items_dropped"]
        notes = [
            f"{int(row.n_items)} items, {int(row.n_calls)} completed calls, of them {int(row.n_invalid)} ⊥; "
            f"{int(row.n_missing)} calls without verdict."
        ]
        if dropped:
            notes.append(
                f"{len(dropped)} items left out: "
                + "; ".join(f"{entry['item']}: {entry['reason']}" for entry in dropped[:5])
                + (" …" if len(dropped) > 5 else "")
            )
        reasons = dict.fromkeys(entry["reason"] for entry in provenance[k]["undefined"])
        notes.extend(f"Undefined (–): {reason}." for reason in reasons)
        notes.extend(provenance[k]["notes"])
        if str(row.largest.values):
            notes.append(
                f"{row.largest.values} leads {row.second.values} by {_number(row.lead)} "
                f"[{_number(row.lead_lower)}, {_number(row.lead_upper)}]."
            )
        columns = ("component", "debiased", "plug-in", "inflation", "lower", "upper")
        tables.append(Table(name, columns, rows, tuple(notes)))
    attrs = data.attrs
    figures = []
    if data.sizes["group"] <= 2:
        figures.append(Figure("Bands", plot.to_svg(plot.bands(data), identity="bands")))
    if not np.isnan(data.estimate).any():
        figures.insert(0, Figure("Components", plot.to_svg(plot.components(data), identity="components")))
    text = (
        f"Bands: {100 * float(attrs['level']):g} %, {attrs['interval']}, covering {attrs['covers']}. Inflation is "
        "plug-in minus debiased: for complete blocks an exact multiple of the call component."
    )
    return Section("Components, debiased beside plug-in", text, tuple(tables), tuple(figures))


def _prefixes(tree: xr.DataTree) -> Section | None:
    data = _get(tree, "prefixes")
    if data is None or data.sizes.get("depth", 0) < 2:
        return None
    tables, figures = [], []
    for facet in _facets(tree):
        rows = []
        for name, row in _groups(data.sel(component=facet)):
            for depth in data.depth.values.tolist():
                at = row.sel(depth=depth)
                rows.append(
                    (name, depth, float(at.estimate), float(at.plugin), float(at.scaled_excess), int(at.n_items))
                )
        columns = ("judge", "R", "debiased", "plug-in", "R × excess", "items")
        tables.append(Table(facet, columns, tuple(rows)))
        svg = plot.to_svg(plot.prefixes(data, facet), identity=f"prefixes-{facet}")
        figures.append(Figure(f"{facet} by repeats", svg))
    text = (
        "The same estimates from the first repeats alone. The plug-in falls towards the debiased value as 1/R; the "
        "excess times R stays level, because it is a multiple of call noise."
    )
    return Section("With fewer repeats", text, tuple(tables), tuple(figures))


def _comparison(tree: xr.DataTree) -> Section | None:
    rankings, differences = _get(tree, "comparison/rankings"), _get(tree, "comparison/differences")
    if rankings is None or differences is None:
        return None

    def names(labels: Any) -> str:
        return " > ".join(label.partition(" = ")[2] or label for label in labels.values.tolist())

    orderings = Table(
        "Largest first",
        ("component", "debiased", "plug-in", "top differs in"),
        tuple(
            (name, names(row.debiased), names(row.plugin), f"{100 * float(row.top_differs):.1f} %")
            for name, row in ((name, rankings.sel(component=name)) for name in rankings.component.values.tolist())
        ),
        ("The last column is the share of whole-item draws in which the two measures put different judges first.",),
    )
    rows: tuple[Row, ...] = tuple(
        (
            str(differences.component.values[k]),
            str(differences.a.values[k]).partition(" = ")[2],
            str(differences.b.values[k]).partition(" = ")[2],
            float(differences.estimate[k]),
            float(differences.plugin[k]),
            float(differences.lower[k]),
            float(differences.upper[k]),
        )
        for k in range(differences.sizes["difference"])
    )
    columns = ("component", "a", "b", "a - b debiased", "plug-in", "lower", "upper")
    figures = tuple(
        Figure(
            f"{facet} by judge",
            plot.to_svg(plot.bands(tree["/components"].to_dataset(), component=facet), identity=f"judges-{facet}"),
        )
        for facet in _facets(tree)
    )
    text = f"On {tree['/comparison'].attrs['n_items']} shared items; an item's values of all judges are drawn together."
    return Section("Judges compared", text, (orderings, Table("Differences", columns, rows)), figures)


def _strata(tree: xr.DataTree) -> Section | None:
    data = _get(tree, "strata")
    if data is None:
        return None
    tables = []
    for name, row in _groups(data):
        rows = []
        for stratum in data.stratum.values.tolist():
            at = row.sel(stratum=stratum)
            rows.append(
                (
                    stratum,
                    int(at.n_items),
                    *(float(at.estimate.sel(component=c)) for c in data.component.values.tolist()),
                )
            )
        tables.append(Table(name, ("stratum", "items", *data.component.values.tolist()), tuple(rows)))
    return Section("Strata", "Debiased components of each stratum of items.", tuple(tables))


def _items(tree: xr.DataTree) -> Section:
    data = tree["/items"].to_dataset()
    figures, tables = [], []
    components = data.component.values.tolist()
    for k, (name, row) in enumerate(_groups(data)):
        svg = plot.to_svg(plot.items(row), identity=f"items-{k}")
        figures.append(Figure(f"Items of {name}", svg))
        order = np.argsort(-row.value.sel(component="total").fillna(-np.inf).values, kind="stable")
        rows: tuple[Row, ...] = tuple(
            (str(data.item.values[i]), *(float(v) for v in row.value.values[i])) for i in order[:MOST_ITEM_ROWS]
        )
        note = (f"The first {MOST_ITEM_ROWS} of {data.sizes['item']} items.",) if len(order) > MOST_ITEM_ROWS else ()
        tables.append(Table(f"{name}: items by total disagreement", ("item", *components), rows, note))
    return Section("Items", "Each item's own debiased values.", tuple(tables), tuple(figures))


def _outcomes(tree: xr.DataTree) -> Section | None:
    data = _get(tree, "outcomes")
    if data is None:
        return None
    names = [name for name, _ in _groups(data)]
    rows = tuple(
        (outcome, *(int(row["count"].sel(outcome=outcome)) for _, row in _groups(data)))
        for outcome in data.outcome.values.tolist()
    )
    text = (
        "invalid: completed, but no verdict under the frozen rule; it is the class ⊥. no_completion: nothing came "
        "back; it is missing, not ⊥. not_called: withheld by a limit or a stop rule."
    )
    return Section("Outcomes of the planned calls", text, (Table("", ("outcome", *names), rows),))


def _gold(tree: xr.DataTree) -> Section | None:
    data = _get(tree, "gold")
    if data is None or "match" not in data:
        return None
    rows = tuple(
        (name, f"{100 * float(row.match):.1f} %", int(row.n_calls), int(row.n_items)) for name, row in _groups(data)
    )
    text = "Share of completed calls that give the gold label; a tie or ⊥ is no match."
    return Section("Match with gold", text, (Table("", ("judge", "match", "calls", "items"), rows),))


def _sensitivity(tree: xr.DataTree) -> Section | None:
    data = _get(tree, "sensitivity")
    if data is None or data.sizes.get("rule", 0) < 2:
        return None
    tables = []
    for name, row in _groups(data):
        rows = []
        for rule in data.rule.values.tolist():
            at = row.sel(rule=rule)
            values = tuple(float(at.estimate.sel(component=c)) for c in data.component.values.tolist())
            rows.append((rule, int(at.n_items), *values))
        tables.append(Table(name, ("rule", "items", *data.component.values.tolist()), tuple(rows)))
    text = (
        "Debiased components under other rules for ⊥ and for timeouts. Dropping ⊥ conditions on a valid verdict: it "
        "shows how much hangs on the rule, and is no estimator of the declared components."
    )
    return Section("If ⊥ had meant something else", text, tuple(tables))


def _null(tree: xr.DataTree) -> Section | None:
    data = _get(tree, "null")
    if data is None:
        return None
    rows = []
    for name, row in _groups(data):
        for pairs in data.pairs.values.tolist():
            at = row.sel(pairs=pairs, component="prompt")
            rows.append((name, pairs, float(at.estimate), float(at.plugin), float(at.lower), float(at.upper)))
    columns = ("judge", "pairs", "debiased", "plug-in", "lower", "upper")
    text = (
        "Hidden ids on byte-identical requests: the true prompt component is 0. The plug-in shows its floor of call "
        "noise; the debiased band should cover 0."
    )
    return Section("Null block", text, (Table("Prompt component", columns, tuple(rows)),))


LABELS = {
    "planned": "planned calls",
    "completed": "completed calls",
    "not_called": "not called",
    "cells": "cells",
    "cells_short": "cells with fewer than two completed calls",
    "attempts": "attempts sent",
    "retried": "calls that needed a retry",
    "repeated_ids": "calls that share a response id with another",
}


def _integrity(tree: xr.DataTree) -> Section | None:
    data = _get(tree, "integrity")
    if data is None:
        return None
    names = [name for name, _ in _groups(data)]
    rows: list[Row] = [
        (label, *(int(row[key]) for _, row in _groups(data))) for key, label in LABELS.items() if key in data
    ]
    duplicates = json.loads(tree["/provenance"].attrs.get("duplicates", "null"))
    if duplicates is not None:
        spread = ("",) * (len(names) - 1)
        rows.append(("answers identical to the byte, all judges", duplicates["body"], *spread))
        rows.append(("of them inside one cell", duplicates["body_inside_cell"], *spread))
    if "drift" in data:
        rows.append(
            (
                "drift over the run (class: change ± SE)",
                *(
                    f"{row.drift_class.values}: {float(row.drift):+.3f} ± {float(row.drift_se):.3f}"
                    for _, row in _groups(data)
                ),
            )
        )
    settings = json.loads(tree["/provenance"].attrs["settings"])
    text = (
        "The estimates assume that the calls of a cell are independent. This table came without response ids and "
        "times: independence is untestable here."
        if settings["independence"] == "untestable"
        else "The estimates assume that the calls of a cell are independent; the common breaches would show here."
    )
    return Section("Integrity", text, (Table("", ("", *names), tuple(rows)),))


def _provenance(tree: xr.DataTree) -> Section:
    attrs = tree["/provenance"].attrs
    source = json.loads(attrs["source"])
    rows = (
        ("secondorder", str(attrs["version"])),
        ("input", str(source["name"])),
        ("its SHA-256", str(source["sha256"])),
        *([("cube digest", str(attrs["cube"]))] if "cube" in attrs else []),
    )
    return Section("Provenance", "", (Table("", ("", ""), rows),))
