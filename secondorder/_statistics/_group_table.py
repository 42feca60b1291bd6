"""A group of a decomposition as it is printed: components in rows, and below them what they need to be understood."""

from __future__ import annotations

import math

from secondorder._design import standard_components
from secondorder._labels._cube import by_text
from secondorder._labels._results import Table
from secondorder._schema import BOTTOM
from secondorder._statistics._group import Estimate, Group
from secondorder._statistics._kernel import INDEFINITE
from secondorder._statistics._settings import Settings

__all__ = ["above", "group_table"]

FEW_ITEMS = 10
"""Below this many items a table says that its bands over items are hardly more than a guess."""
RANKS = 12
"""Up to this many ranked classes are all named."""


def group_table(group: Group, settings: Settings) -> Table:
    """Components of a group, with what a reader has to know of them below."""
    band = f"{100 * settings.level:g}% band ({settings.interval}, {settings.covers})"
    columns = ["component", "debiased", "plug-in", "inflation", "lower", "upper"]
    if settings.tau is not None:
        columns.append(f"> {settings.tau:g}")
    rows: list[tuple[str | int | float | None, ...]] = []
    for estimate in group.estimates:
        row: list[str | int | float | None] = [
            estimate.component,
            estimate.estimate,
            estimate.plugin,
            estimate.inflation,
            estimate.lower,
            estimate.upper,
        ]
        if settings.tau is not None:
            row.append(_flags(estimate, settings.tau))
        rows.append(tuple(row))
    least, most = group.repeats
    facets = " x ".join(f"{len(info.levels)} {name}" for name, info in group.facets.items())
    calls = f"{least} call{'s' * (least != 1)}" if least == most else f"{least}-{most} calls"
    items = f"{len(group.items)} item{'s' * (len(group.items) != 1)}"
    aside = settings.invalid_as == "missing"
    invalid = f"{group.n_invalid} ⊥ set aside" if aside else f"of them {group.n_invalid} ⊥"
    title = (f"{by_text(group.by)}: " if group.by else "") + (
        f"{items}{' x ' if facets else ''}{facets} x {calls}; "
        f"{group.n_calls} completed, {invalid}, {_missing(group, settings)}"
    )
    strata = "" if group.strata is None else f" in {len(set(group.strata))} strata"
    notes = [f"lower, upper: {band}{strata}; kernel {_kernel(settings)}, pairs {settings.pairs}"]
    if len(group.items) < FEW_ITEMS:
        notes.append(f"{items}: a band over items is wide, and may reach beyond what is possible")
    if group.items_dropped:
        notes.append(
            f"{len(group.items_dropped)} {'item' if len(group.items_dropped) == 1 else 'items'} dropped: "
            + "; ".join(f"{entry['item']} ({entry['reason']})" for entry in group.items_dropped[:3])
            + (" …" if len(group.items_dropped) > 3 else "")
        )
    if settings.tau is not None:
        notes.append(f"> {settings.tau:g}: is the debiased estimate above it (and the plug-in)? No test: see certify")
    below = [
        entry.component for entry in group.estimates if entry.upper < 0 and _never_negative(group, entry.component)
    ]
    if below:
        notes.append(
            f"{', '.join(below)}: the whole band is below 0, where no true value is: one of the bands that miss"
        )
    reasons: dict[str, list[str]] = {}
    for entry in group.undefined:
        names = reasons.setdefault(entry.reason, [])
        if entry.component not in names:
            names.append(entry.component)
    notes.extend(f"– {', '.join(names)}: {reason}" for reason, names in reasons.items())
    notes.extend(group.all_notes)
    return Table(title, tuple(columns), tuple(rows), tuple(notes))


def _missing(group: Group, settings: Settings) -> str:
    """Calls that failed, apart from places of the grid that a table has no row for."""
    if not group.n_absent:
        return f"{group.n_missing} missing"
    if settings.missing:  # the table's own label for it is kept as an empty place
        return f"{group.n_missing} missing or without a row"
    failed = group.n_missing - group.n_absent
    places = f"{group.n_absent} place{'s' * (group.n_absent != 1)} without a call"
    return f"{failed} missing, {places}" if failed else places


def _kernel(settings: Settings) -> str:
    """The kernel's name; for ranks with the classes from one end to the other, which decide every number."""
    if settings.kernel != "ordinal":
        return settings.kernel
    valid = [label for label in settings.classes if label != BOTTOM]
    shown = valid if len(valid) <= RANKS else [*valid[: RANKS - 2], "…", valid[-1]]
    return f"ordinal: {' < '.join(shown)}"


def _never_negative(group: Group, component: str) -> bool:
    """Whether no law can make a component negative: those of the decomposition, under a kernel of negative type."""
    standard = {known.name for known in standard_components(group.design.names)}
    return component in standard and INDEFINITE not in group.notes


def above(value: float, tau: float) -> bool | None:
    """Whether a value is above the threshold; None where it is undefined."""
    return None if math.isnan(value) else value > tau


def _flags(estimate: Estimate, tau: float) -> str:
    words = {None: "–", True: "yes", False: "no"}
    return f"{words[above(estimate.estimate, tau)]} ({words[above(estimate.plugin, tau)]})"
