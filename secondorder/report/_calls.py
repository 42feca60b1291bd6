"""What became of the calls: outcomes, integrity, and what hangs on the invalid ones."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime

import xarray as xr

from secondorder._labels._results import Section, Table
from secondorder.report._asked import BY_CELL
from secondorder.report._read import Row, banded, dataset, groups, number, percent, provenance

__all__ = [
    "gold_section",
    "integrity_section",
    "null_section",
    "outcomes_section",
    "sensitivity_section",
    "soft_section",
]

DISAGREE = 0.05


def outcomes_section(tree: xr.DataTree) -> Section | None:
    """Every planned call by outcome and reason."""
    data = dataset(tree, "outcomes")
    if data is None:
        return None
    names = [name for name, _ in groups(tree, data)]
    rows: list[Row] = []
    for outcome in data.outcome.values.tolist():
        row: list[str | int] = [outcome]
        for _, group in groups(tree, data.sel(outcome=outcome)):
            row += [int(group["count"]), percent(group.share)]
        rows.append(tuple(row))
    columns = ["outcome"] + [part for name in names for part in (name, "share")]
    text = (
        "invalid: completed, but no verdict under the frozen rule; it is the class ⊥. no_completion: nothing came "
        "back; it is missing, not ⊥. not_called: withheld by a limit or a stop rule."
    )
    tables = [Table("", tuple(columns), tuple(rows))]
    answers = provenance(tree, "answers")
    if answers:
        shown = tuple((entry["judge"], entry["outcome"], entry["text"] or "(nothing)") for entry in answers)
        tables.append(Table("In their own words: the first answers that differ", ("judge", "outcome", "text"), shown))
    return Section("Outcomes of the calls", text, tuple(tables))


def soft_section(tree: xr.DataTree) -> Section | None:
    """Soft verdicts: where their mass stands, and whether what the same calls sampled follows them."""
    data = dataset(tree, "soft")
    if data is None:
        return None
    rows: list[Row] = []
    tables, contradicted = [], []
    for name, row in groups(tree, data):
        rows.append((name, int(row.n_calls), percent(row.listed), percent(row.other), percent(row.unlisted)))
        classes: list[Row] = []
        for label in data["class"].values.tolist():
            at = row.sel({"class": label})
            most = at.soft + (0.0 if label == data["class"].values[-1] else row.other + row.unlisted)
            classes.append((label, percent(at.sampled), percent(at.soft), percent(most)))
        notes = [
            f"Sampled against soft: all calls p = {number(row.total_pvalue)}; smallest p of {int(row.n_cells)} cells "
            f"{number(row.cell_pvalue)} (Holm), {int(row.n_rejected)} rejected."
        ]
        undefined = {word: int(count) for word, count in zip(data.reason.values, row.undefined.values, strict=True)}
        if any(undefined.values()):
            why = ", ".join(f"{word} {count}" for word, count in undefined.items() if count)
            notes.append(f"Completed calls without a soft verdict, left out: {why}.")
        title = f"{name}: classes"
        tables.append(
            Table(title, ("class", "sampled", "soft", "soft, with all of ⊥'s mass"), tuple(classes), tuple(notes))
        )
        if float(row.pvalue) <= DISAGREE:
            contradicted.append(name)
    text = (
        "Verdicts are probabilities of the token that says them. Mass on what says no verdict, and what no listed "
        "token accounts for, counts as ⊥ and is not shared out: the share of a class lies between its soft share and "
        "the last column. The same calls also sampled a verdict each; a multinomial test holds them against their "
        "probabilities."
    )
    if contradicted:
        text += (
            f" It fails for {', '.join(contradicted)}: the numbers of this report are not those of the answers that "
            "the judge gave."
        )
    columns = ("judge", "calls", "on tokens that say a verdict", "on what says none", "unlisted")
    return Section("Soft verdicts", text, (Table("Probability", columns, tuple(rows)), *tables))


def gold_section(tree: xr.DataTree) -> Section | None:
    """Match with the gold labels, over all and by stratum."""
    data = dataset(tree, "gold")
    if data is None or "match" not in data:
        return None
    parts = list(groups(tree, data))
    rows: list[Row] = [("all items", *(percent(row.match) for _, row in parts))]
    if "stratum_match" in data:
        rows.extend(
            (stratum, *(percent(row.stratum_match.sel(stratum=stratum)) for _, row in parts))
            for stratum in data.stratum.values.tolist()
        )
    notes = tuple(
        f"{name}: {int(row.n_calls)} calls on {int(row.n_items)} items with a gold label." for name, row in parts
    )
    text = "Share of completed calls that give the gold label; a tie or ⊥ is no match, unless it is the gold label."
    if dataset(tree, "soft") is not None:
        text += " Of the verdicts that the calls sampled, not of the soft ones."
    return Section("Match with gold", text, (Table("", ("", *(name for name, _ in parts)), tuple(rows), notes),))


def sensitivity_section(tree: xr.DataTree) -> Section | None:
    """Components under other rules for ⊥ and for timeouts."""
    data = dataset(tree, "sensitivity")
    if data is None or data.sizes.get("rule", 0) < 2:
        return None
    tables = []
    components = data.component.values.tolist()
    for name, row in groups(tree, data):
        rows: list[Row] = []
        for rule in data.rule.values.tolist():
            at = row.sel(rule=rule)
            rows.append((rule, int(at.n_items), *(banded(at.sel(component=c)) for c in components)))
        tables.append(Table(name, ("rule", "items", *components), tuple(rows)))
    text = (
        "Debiased components under other rules for ⊥ and for timeouts. Dropping ⊥ conditions on a valid verdict: it "
        "shows how much hangs on the rule, and is no estimator of the declared components."
    )
    return Section("If ⊥ had meant something else", text + _timeouts(tree, data), tuple(tables))


def _timeouts(tree: xr.DataTree, data: xr.Dataset) -> str:
    """Where the line for timeouts places them, or that there were none."""
    settings = provenance(tree, "settings")
    if "timeouts as ⊥" in data.rule.values:
        placed = settings["kernel"] == "interval" and settings["invalid_as"] == "class"
        return " ⊥ was given no place among the scores: timeouts as ⊥ stand at the midpoint." if placed else ""
    # An imported table says that a call is missing, not why.
    return " No call timed out." if provenance(tree, "asked") is not None else ""


def null_section(tree: xr.DataTree) -> Section | None:
    """The block of byte-identical requests under hidden ids."""
    data = dataset(tree, "null")
    if data is None:
        return None
    rows: list[Row] = []
    for name, row in groups(tree, data):
        for pairs in data.pairs.values.tolist():
            at = row.sel(pairs=pairs, component="prompt")
            rows.append((name, pairs, banded(at), float(at.plugin), int(at.n_items)))
    text = (
        "Hidden ids on byte-identical requests: the true prompt component is 0. The plug-in shows its floor of call "
        "noise; the debiased band should cover 0."
    )
    columns = ("judge", "pairs", "debiased", "plug-in", "items")
    return Section("Null block", text, (Table("Prompt component", columns, tuple(rows)),))


COUNTS = {
    "planned": "planned calls",
    "completed": "completed calls",
    "not_called": "not called",
    "cells": "cells",
    "cells_short": "cells with fewer than two completed calls",
    "attempts": "attempts sent",
    "retried": "calls that needed a retry",
    "repeated_ids": "calls that share a response id with another",
}
TIMES = {"first_sent": "first call sent", "last_sent": "last call sent"}


def integrity_section(tree: xr.DataTree) -> Section | None:
    """Whether the design was covered, and the traces that copies and drift leave."""
    data = dataset(tree, "integrity")
    if data is None:
        return None
    parts = list(groups(tree, data))
    rows: list[Row] = [(label, *(int(row[key]) for _, row in parts)) for key, label in COUNTS.items() if key in data]
    duplicates = json.loads(tree["/provenance"].attrs.get("duplicates", "null"))
    if duplicates is not None:
        spread = ("",) * (len(parts) - 1)
        rows.append(("whole responses, ids and times too, identical to the byte", duplicates["body"], *spread))
        rows.append(("of them inside one cell", duplicates["body_inside_cell"], *spread))
    if "drift" in data:
        rows.append(("drift: class, change over the run ± SE", *(_drift(row) for _, row in parts)))
    rows.extend((label, *(_time(float(row[key])) for _, row in parts)) for key, label in TIMES.items() if key in data)
    if provenance(tree, "settings")["independence"] == "untestable":
        text = (
            "The estimates assume that the calls of a cell are independent. This table came without response ids and "
            "times: independence is untestable here."
        )
    else:
        text = "The estimates assume that the calls of a cell are independent; the common breaches would show here."
    asked = provenance(tree, "asked")
    if asked is not None and asked["spec"]["design"]["send"] == "by-cell":
        text += f" Calls were sent by cell: {BY_CELL}. A drift of the judge would look like a difference between cells."
    return Section("Integrity", text, (Table("", ("", *(name for name, _ in parts)), tuple(rows)),))


def _drift(row: xr.Dataset) -> str:
    if math.isnan(float(row.drift)):
        return "–"
    return f"{row.drift_class.values}: {float(row.drift):+.3f} ± {float(row.drift_se):.3f}"


def _time(seconds: float) -> str:
    return "–" if math.isnan(seconds) else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
