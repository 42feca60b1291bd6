"""How sure the numbers are: errors by randomness, tests of facets, signs of dependence, certificates of a stop rule."""

from __future__ import annotations

import math
from collections.abc import Iterator

import xarray as xr

from secondorder._labels._results import Section, Table
from secondorder.report._read import Cell, Row, dataset, groups, names, number, provenance, short

__all__ = ["dependence_warnings", "errors_section", "independence_section", "stop_section", "tests_section"]

REDONE = {
    "items": "other items like these, and their calls",
    "calls": "the calls alone, at these items",
    "prompts": "other levels of the random facet, at these items",
    "items+prompts": "other items and other levels",
}
SHUFFLED = {
    "calls": "Calls are shuffled between the levels of a facet, inside each item: if the facet has no effect on any "
    "item, main or in an interaction, and calls are independent, every shuffle is as likely as what was seen.",
    "labels": "The labels of a facet's levels are shuffled inside each repeat of each item, pairs across repeats are "
    "compared: if the facet has no effect on any item, main or in an interaction, every shuffle is as likely as what "
    "was seen, also where the calls of one repeat depend on each other.",
}
MATTERS, INDEPENDENCE = "Does it matter at all?", "Independence"
CERTIFIED = {"below": "below", "above": "at least", "open": "open at"}


def errors_section(tree: xr.DataTree) -> Section | None:
    """Bands of every component for every randomness."""
    data = dataset(tree, "errors")
    if data is None:
        return None
    components = data.component.values.tolist()
    tables, crossed = [], False
    for name, row in groups(tree, data):
        rows: list[Row] = []
        for covers in data.covers.values.tolist():
            at = row.sel(covers=covers)
            rows.append((covers, REDONE[covers], *(_banded(at.sel(component=c)) for c in components)))
        crossed |= bool((row.se.sel(covers="calls") > row.se.sel(covers="items")).any())
        reasons = [str(text) for text in row.reason.values.ravel() if text]
        notes = [f"Undefined (–): {reason}." for reason in dict.fromkeys(reasons)]
        notes += [f"calls: {text}." for text in row.note.values.tolist() if text]
        tables.append(Table(name, ("covers", "drawn anew", *components), tuple(rows), tuple(notes)))
    text = (
        f"± is one standard error; below it the {100 * float(data.attrs['level']):g} % t band, by what is thought of "
        "as drawn anew. Those over items include the noise of their calls."
    )
    if crossed:
        text += (
            " Where the error of calls is still the larger, items differ in hardly anything but that noise, and both "
            "estimates of it have noise of their own."
        )
    return Section("How sure", text, tuple(tables))


def _banded(at: xr.Dataset) -> str:
    if at.se.isnull():
        return "–"
    return f"±{number(at.se)}\n[{number(at.lower)}, {number(at.upper)}]"


def tests_section(tree: xr.DataTree) -> Section | None:
    """Whether facets matter at all."""
    data = dataset(tree, "tests")
    if data is None:
        return None
    if "reason" in data.attrs:
        return Section(MATTERS, data.attrs["reason"])
    rows: list[Row] = []
    for name, row in groups(tree, data):
        for k in range(data.sizes["test"]):
            at = row.isel(test=k)
            values = (float(at.estimate), _p(float(at.pvalue)), int(at.n_found))
            rows.append((name, str(at.facet.values), str(at.component.values), *values))
    text = (
        f"{SHUFFLED[data.attrs['hypothesis']]} {int(data.attrs['draws'])} shuffles, ties counted; single items at a "
        "false discovery rate of 5 %. All rows of a facet test that one hypothesis, no effect at all: a small p of an "
        "interaction is no evidence for an interaction where main effects exist; its band says how large it is. p is "
        "not adjusted for the number of rows, facets or judges."
    )
    columns = ("judge", "shuffled", "statistic", "estimate", "p", "items with an effect")
    return Section(MATTERS, text, (_told_apart(tree, Table("", columns, tuple(rows))),))


def independence_section(tree: xr.DataTree) -> Section | None:
    """Detectors of dependence, and what hangs on it."""
    data = dataset(tree, "independence")
    if data is None:
        return None
    if "reason" in data.attrs:
        return Section(INDEPENDENCE, data.attrs["reason"])
    rows: list[Row] = []
    causes = []
    called = names(tree)
    for k in range(data.sizes["detector"]):
        at = data.isel(detector=k)
        label = str(at.group.values)
        group = called.get(label, short(label))
        # A detector that counts has no p value: it found something, or it did not.
        tested = bool(at.statistic.notnull())
        chances = (_p(float(at.pvalue)), _p(float(at.adjusted))) if tested else ("–", "–")
        suspicious = bool(at.suspicious)
        rows.append((group, str(at["name"].values), float(at.statistic), *chances, "yes" if suspicious else "no"))
        if suspicious:
            note = str(at.note.values)
            causes.append(f"{group}: {at.cause.values}{f' ({note})' if note else ''}.")
    tests = Table("Tests", ("judge", "test", "statistic", "p", "p (Holm)", "suspicious"), tuple(rows))
    said = " ".join(causes) if causes else "No test rejects; that is no proof of independence."
    text = (
        "Exact tests of what breaks the independence of calls: repeats are shuffled, everything else stays. p (Holm) "
        f"is adjusted for all tests of a judge. {said} Where calls at one repeat depend on each other, pairs across "
        "repeats are still unbiased: a clear difference between the two rows is a sign by itself."
    )
    both = Table("What hangs on it", *_effects(tree))
    return Section(INDEPENDENCE, text, (_told_apart(tree, tests), _told_apart(tree, both)))


def dependence_warnings(tree: xr.DataTree) -> Iterator[str]:
    """One sentence for every test of independence that rejects."""
    data = dataset(tree, "independence")
    if data is None or "detector" not in data.dims:
        return
    called = names(tree)
    for k in data.suspicious.values.nonzero()[0]:
        at = data.isel(detector=int(k))
        label, name = str(at.group.values), str(at["name"].values)
        how = f", p {_p(float(at.adjusted))}" if bool(at.statistic.notnull()) else ""
        if name.startswith("soft verdicts"):
            yield (
                f"The verdicts that calls of {called.get(label, short(label))} sampled contradict their soft verdicts "
                f"({name}{how}): see Soft verdicts."
            )
            continue
        yield (
            f"The calls of {called.get(label, short(label))} do not look independent ({name}{how}), and the estimates "
            "assume that they are: see Independence."
        )


def _effects(tree: xr.DataTree) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    data = tree["/independence/effects"].to_dataset()
    components = data.component.values.tolist()
    rows: list[Row] = []
    for name, row in groups(tree, data):
        for pairs, title in (("complete", "complete pairs"), ("across_repeats", "across repeats")):
            cells: list[Cell] = [float(row[pairs].sel(component=component)) for component in components]
            rows.append((name, title, *cells))
    return ("judge", "pairs", *components), tuple(rows)


def stop_section(tree: xr.DataTree) -> Section | None:
    """Certificates of the stop rule, and the calls that it saved."""
    data = dataset(tree, "stop")
    if data is None:
        return None
    rows: list[Row] = []
    for name, row in groups(tree, data):
        said = f"{row.component.values} {CERTIFIED[str(row.verdict.values)]} {float(row.tau):g}"
        after = int(row.stopped_at)
        band = f"[{number(row.lower)}, {number(row.upper)}]"
        counts = (int(row.saved), int(row.planned))
        rows.append((name, said, after if after >= 0 else None, int(row.n_items), band, *counts))
    text = (
        "The audit was planned to stop once a certificate is there. A certificate is false with probability "
        f"{float(data.alpha.values[0]):g} at most, whenever one stops; it is about the value that the whole audit "
        "would have reported. Bands and tests in other sections are those of a number of items that was fixed "
        "beforehand, and do not hold for one that the numbers chose."
    )
    columns = ("judge", "certificate", "after items", "items looked at", "band, valid at any time", "calls saved", "of")
    return Section("Stop rule", text, (Table("", columns, tuple(rows)),))


def _told_apart(tree: xr.DataTree, table: Table) -> Table:
    """The table without its column of judges where there is only one group."""
    if len(provenance(tree, "groups")) > 1:
        return table
    return Table(table.title, table.columns[1:], tuple(row[1:] for row in table.rows), table.notes)


def _p(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1g}"
