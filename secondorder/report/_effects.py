"""What moves the verdicts: the answer, components, prefixes, judges, strata, items."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import xarray as xr

from secondorder import plot
from secondorder._labels._results import Figure, Section, Table
from secondorder.report._figures import prefix_figure
from secondorder.report._inference import dependence_warnings
from secondorder.report._read import (
    ALL,
    Cell,
    Row,
    banded,
    dataset,
    facets,
    groups,
    names,
    number,
    ordering,
    percent,
    provenance,
    short,
    source,
    value,
)

__all__ = [
    "answer_section",
    "comparison_section",
    "components_section",
    "items_section",
    "prefixes_section",
    "strata_section",
]

MOST_ITEM_ROWS = 200
SAID_IN_SENTENCES = 3
SAME = 1e-12
SOFT_NOISE = "Plug-in measures count as an effect what noise is left in soft verdicts"


def answer_section(tree: xr.DataTree) -> Section:
    """The result in sentences, and judges side by side."""
    data, main = tree["/components"].to_dataset(), facets(tree)
    found = list(groups(tree, data))
    said = list(_warnings(tree))
    said += [_said(name, row, main) for name, row in found] if len(found) <= SAID_IN_SENTENCES else []
    counted = SOFT_NOISE if _all_soft(data) else "Plug-in measures count call noise as an effect of the facets"
    said.append(
        f"{counted}; the debiased estimates do not. A negative estimate is sampling noise around a small component, "
        "shown as it is."
    )
    rows: list[Row] = []
    for name, row in found:
        largest = str(row.largest.values)
        part = f"{source(largest)}, {percent(value(row, largest, 'share'), 0)}" if largest else "–"
        cells: list[Cell] = [name, banded(row.sel(component="total")), part]
        for facet in main[:2]:
            cells += [value(row, facet), value(row, facet, "plugin")]
        rows.append(tuple(cells))
    columns = ["judge", "P(disagree)" if data.attrs["kernel"] == "nominal" else "mean disagreement", "largest part"]
    columns += [text for facet in main[:2] for text in (facet, f"{facet}, plug-in")]
    tables = (Table("", tuple(columns), tuple(rows)),) if len(found) > 1 else ()
    return Section("The answer", "\n\n".join(said), tables)


def _warnings(tree: xr.DataTree) -> Iterator[str]:
    """What makes the estimates wrong whatever their bands say."""
    yield from _copies(tree)
    yield from dependence_warnings(tree)


def _copies(tree: xr.DataTree) -> Iterator[str]:
    data = dataset(tree, "integrity")
    if data is None or "repeated_ids" not in data:
        return
    for name, row in groups(tree, data):
        if not int(row.repeated_ids):
            continue
        varied = int(row.varied_ids) if "varied_ids" in row else 0
        if varied:
            yield (
                f"{name}: {int(row.repeated_ids)} of its {int(row.completed)} calls share a response id with another, "
                f"but under {varied} of these {int(row.shared_ids)} ids the verdicts differ: the server's ids are not "
                "unique, and say nothing of copies."
            )
        else:
            yield (
                f"Do not rely on {name}: {int(row.repeated_ids)} of its {int(row.completed)} calls share a response id "
                "with another, and its verdict. They are copies of an answer, not calls, and copies inside a cell turn "
                "call noise into effects."
            )


def _said(name: str, row: xr.Dataset, main: list[str]) -> str:
    total = row.sel(component="total")
    how = "disagree with probability" if row.attrs["kernel"] == "nominal" else "differ by a mean disagreement of"
    if np.isnan(float(total.estimate)):
        return f"{name}: the debiased components are undefined. {_sentence(str(total.reason.values))}"
    whom = "" if name == ALL else f" to {name}"
    lines = [f"Two calls{whom} on one item {how} {banded(total, apart=' ', digits=3)}."]
    largest, second = str(row.largest.values), str(row.second.values)
    if largest:
        share = f"{number(value(row, largest), 3)}, {percent(value(row, largest, 'share'), 0)} of it"
        lines.append(f"The largest part is {source(largest)}: {share}{_lead(row, source(second))}.")
    inflated = [abs(value(row, facet, "inflation")) > SAME for facet in main]
    if main and any(inflated) and not np.isnan([value(row, facet) for facet in main]).any():
        lines.append(
            f"Plug-in measures would report {_ranked(row, main, 'plugin')}; debiased it is {_debiased(row, main)}."
        )
    return " ".join(lines)


def _lead(row: xr.Dataset, second: str) -> str:
    if np.isnan(float(row.lead_lower)):
        return f", ahead of {second} by {number(row.lead, 3)} (without a band)"
    lead = f"{number(row.lead, 3)} [{number(row.lead_lower, 3)}, {number(row.lead_upper, 3)}]"
    if float(row.lead_lower) > 0:
        return f", ahead of {second} by {lead}"
    return f"; its lead over {second}, {lead}, is not settled"


def _ranked(row: xr.Dataset, main: list[str], field: str = "estimate") -> str:
    ordered = sorted(main, key=lambda facet: -value(row, facet, field))
    values = [value(row, facet, field) for facet in ordered]
    return ordering([f"{short(facet)} {number(x, 3)}" for facet, x in zip(ordered, values, strict=True)], values)


def _debiased(row: xr.Dataset, main: list[str]) -> str:
    """The facets as an ordering where the band of every step stays above 0, and as a list where one does not."""
    ordered = sorted(main, key=lambda facet: -value(row, facet))
    if all(value(row, facet, "step_lower") > 0 for facet in ordered[:-1]):
        return _ranked(row, main)
    listed = ", ".join(f"{short(facet)} {number(value(row, facet), 3)}" for facet in ordered)
    return f"{listed}, in an order that is not settled"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def components_section(tree: xr.DataTree) -> Section:
    """Every component debiased beside plug-in, with bands, inflation and what was left out."""
    data, prefixes = tree["/components"].to_dataset(), dataset(tree, "prefixes")
    found = provenance(tree, "groups")
    whole = max(group["repeats"][1] for group in found)
    scaled = None if prefixes is None or whole not in prefixes.depth else prefixes.scaled_excess.sel(depth=whole)
    set_aside = provenance(tree, "settings")["invalid_as"] == "missing"
    tables = []
    for k, (name, row) in enumerate(groups(tree, data)):
        rows = []
        for component in data.component.values.tolist():
            at = row.sel(component=component)
            cells: list[Cell] = [component, float(at.estimate), float(at.lower), float(at.upper)]
            cells += [percent(value(row, component, "share")), float(at.plugin), float(at.inflation)]
            if scaled is not None:
                cells.append(float(scaled.isel(group=k).sel(component=component)))
            if "above_tau" in row:
                cells += [_above(at.estimate, at.above_tau), _above(at.plugin, at.plugin_above_tau)]
            rows.append(tuple(cells))
        columns = ["component", "debiased", "lower", "upper", "share", "plug-in", "inflation"]
        columns += ["R × inflation"] if scaled is not None else []
        columns += ["above τ", "plug-in above τ"] if "above_tau" in row else []
        tables.append(Table(name, tuple(columns), tuple(rows), _notes(row, found[k], set_aside)))
    attrs = data.attrs
    figures = []
    if not np.isnan(data.estimate).any():
        figures.append(Figure("Components", plot.to_svg(plot.components(data), identity="components")))
    if data.sizes["group"] <= 2:
        figures.append(Figure("Bands", plot.to_svg(plot.bands(data), identity="bands")))
    text = (
        f"Bands: {100 * float(attrs['level']):g} %, {attrs['interval']}, covering {attrs['covers']}. Inflation is "
        "plug-in minus debiased. "
    )
    text += (
        "Of soft verdicts it is what noise is left in them: none where all calls of a cell list the same."
        if _all_soft(data)
        else "With complete pairs, equal weights and the same number R of calls in every cell it is an exact multiple "
        "of the call component in every sample, and R times it has the same mean at every R."
    )
    return Section("Components, debiased beside plug-in", text, tuple(tables), tuple(figures))


def _all_soft(data: xr.Dataset) -> bool:
    return "soft" in data and bool(data.soft.all())


def _above(estimate: xr.DataArray, above: xr.DataArray) -> str:
    return "–" if np.isnan(float(estimate)) else "yes" if bool(above) else "no"


def _notes(row: xr.Dataset, group: dict[str, Any], set_aside: bool) -> tuple[str, ...]:
    dropped = group["items_dropped"]
    invalid = f"and {int(row.n_invalid)} ⊥ set aside" if set_aside else f"of them {int(row.n_invalid)} ⊥"
    notes = [
        f"{int(row.n_items)} items, {int(row.n_calls)} completed calls, {invalid}; "
        f"{int(row.n_missing)} calls without verdict."
    ]
    if dropped:
        listed = "; ".join(f"{entry['item']}: {entry['reason']}" for entry in dropped[:5])
        notes.append(f"{len(dropped)} items left out: {listed}{' …' if len(dropped) > 5 else ''}.")
    notes.extend(f"Undefined (–): {reason}." for reason in dict.fromkeys(e["reason"] for e in group["undefined"]))
    notes.extend(group["notes"])
    return tuple(notes)


def prefixes_section(tree: xr.DataTree) -> Section | None:
    """The same estimates from the first 2, 4, 8 … repeats."""
    data = dataset(tree, "prefixes")
    if data is None or data.sizes.get("depth", 0) < 2:
        return None
    main = facets(tree)
    tables = []
    for name, row in groups(tree, data):
        rows: list[Row] = []
        for component in ("call", *main, "total"):
            for depth in data.depth.values.tolist():
                at = row.sel(depth=depth, component=component)
                values = (float(at.plugin), float(at.inflation), float(at.scaled_excess))
                rows.append((component, depth, banded(at), *values, int(at.n_items)))
        columns = ("component", "R", "debiased", "plug-in", "inflation", "R × inflation", "items")
        tables.append(Table(name, columns, tuple(rows)))
    text = (
        "The same estimates from the first repeats alone. The plug-in nears the debiased value as 1/R: effects fall, "
        "call and total rise. R times its inflation stays level but for chance, because it is made of call noise alone."
    )
    if _all_soft(tree["/components"].to_dataset()):
        text = f"The same estimates from the first repeats alone. {SOFT_NOISE}, and that falls as 1/R."
    return Section("With fewer repeats", text, tuple(tables), (prefix_figure(data, main),) if main else ())


def comparison_section(tree: xr.DataTree) -> Section | None:
    """Judges against each other, on shared items."""
    rankings, differences = dataset(tree, "comparison/rankings"), dataset(tree, "comparison/differences")
    if rankings is None or differences is None:
        return None

    called, components = names(tree), tree["/components"].to_dataset()

    def line(row: xr.Dataset, measure: str) -> str:
        labels = [called.get(label, label) for label in row[measure].values.tolist()]
        return ordering(labels, row[f"{measure}_values"].values.tolist())

    orderings: list[Row] = []
    for name in rankings.component.values.tolist():
        row = rankings.sel(component=name)
        orderings.append((name, line(row, "debiased"), line(row, "plugin"), percent(row.top_differs)))
    rows: list[Row] = []
    for k in range(differences.sizes["difference"]):
        at = differences.isel(difference=k)
        pair = [called[str(at[end].values)] for end in ("a", "b")]
        rows.append((str(at.component.values), *pair, banded(at), float(at.plugin)))
    attrs, method = tree["/comparison"].attrs, components.attrs["interval"]
    how = "paired t intervals" if method == "t" else f"{method} bands of whole items, drawn with all their values"
    note = "The last column is the share of whole-item draws in which the two measures put different judges first."
    columns = ("component", "debiased", "plug-in", "top differs in")
    figures = tuple(
        Figure(f"{facet} by judge", plot.to_svg(plot.bands(components, component=facet), identity=f"judges-{facet}"))
        for facet in facets(tree)
    )
    return Section(
        "Judges compared",
        f"On {attrs['n_items']} shared items. Differences are taken item by item; their bands are {how}.",
        (
            Table("Largest first", columns, tuple(orderings), (note, *json.loads(attrs.get("notes", "[]")))),
            Table("Differences", ("component", "a", "b", "a - b, debiased", "plug-in"), tuple(rows)),
        ),
        figures,
    )


def strata_section(tree: xr.DataTree) -> Section | None:
    """Components of each stratum of items."""
    data = dataset(tree, "strata")
    if data is None:
        return None
    tables = []
    components = data.component.values.tolist()
    for name, row in groups(tree, data):
        rows: list[Row] = []
        for stratum in data.stratum.values.tolist():
            at = row.sel(stratum=stratum)
            rows.append((stratum, int(at.n_items), *(banded(at.sel(component=c)) for c in components)))
        tables.append(Table(name, ("stratum", "items", *components), tuple(rows)))
    return Section("Strata", "Debiased components of each stratum of items, with bands over its items.", tuple(tables))


def items_section(tree: xr.DataTree) -> Section:
    """Each item's own values."""
    data = tree["/items"].to_dataset()
    strata = data.stratum.values if "stratum" in data.coords else None
    figures, tables = [], []
    for k, (name, row) in enumerate(groups(tree, data)):
        drawn = plot.to_svg(plot.items(row), identity=f"items-{k}")
        figures.append(Figure(f"Items of {name}", drawn, name if data.sizes["group"] > 1 else ""))
        order = np.argsort(-row.value.sel(component="total").fillna(-np.inf).values, kind="stable")
        rows: list[Row] = []
        for i in order[:MOST_ITEM_ROWS]:
            cells: list[Cell] = [str(data.item.values[i])]
            cells += [] if strata is None else [str(strata[i])]
            rows.append((*cells, *(float(v) for v in row.value.values[i])))
        note = (f"The first {MOST_ITEM_ROWS} of {data.sizes['item']} items.",) if len(order) > MOST_ITEM_ROWS else ()
        columns = ["item", *([] if strata is None else ["stratum"]), *data.component.values.tolist()]
        tables.append(Table(f"{name}: items by total disagreement", tuple(columns), tuple(rows), note))
    text = "Each item's own debiased values: one dot per item, and the mean of all as a black mark."
    return Section("Items", text, tuple(tables), tuple(figures))
