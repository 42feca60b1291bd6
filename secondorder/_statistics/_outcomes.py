"""What became of the calls: outcomes with reasons, match with gold, and signs that something went wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._attributes import class_labels, load
from secondorder._labels._columns import natural_order
from secondorder._labels._cube import by_text, groups
from secondorder._schema import CODE_MISSING, ITEM, REASONS, REPEAT, STATUS
from secondorder._statistics._origins import shared_ids

__all__ = ["gold_match", "integrity", "outcome_counts"]


def outcome_counts(cube: xr.Dataset) -> xr.Dataset:
    """Planned calls of every group by outcome and reason.

    Returns
    -------
    Dataset, dims (group, outcome)
        ``count`` and its ``share`` of the planned calls; an outcome is a status, followed by its reason:
        ``invalid: truncated``.
    """
    found: dict[str, dict[str, int]] = {}
    for by, part in groups(cube):
        status, reason = load(part["status"]), load(part["reason"])
        counts = {}
        for code, word in enumerate(STATUS):
            for why in np.unique(reason[status == code]):
                label = f"{word}: {REASONS[why]}" if why else word
                counts[label] = int(((status == code) & (reason == why)).sum())
        found[by_text(by)] = counts
    order = [f"{word}: {why}" if why else word for word in STATUS for why in REASONS]
    outcomes = [label for label in order if any(label in counts for counts in found.values())]
    table = np.array([[counts.get(label, 0) for label in outcomes] for counts in found.values()])
    share = table / table.sum(1, keepdims=True)
    return xr.Dataset(
        {"count": (("group", "outcome"), table), "share": (("group", "outcome"), share)},
        coords={"group": list(found), "outcome": outcomes},
    )


def gold_match(cube: xr.Dataset) -> xr.Dataset:
    """Share of completed calls that give the gold label, where items have one; a tie or ⊥ is no match.

    Returns
    -------
    Dataset, dims (group)
        ``match``, ``n_calls``, ``n_items``, and ``stratum_match`` by (group, stratum) where items have strata; empty
        where the cube has no gold labels.
    """
    if "gold" not in cube.coords:
        return xr.Dataset()
    classes = class_labels(cube)
    strata = _in_order(cube["stratum"].values.tolist()) if "stratum" in cube.coords else []
    found: dict[str, tuple[float, int, int]] = {}
    by_stratum = []
    for by, part in groups(cube):
        codes = load(part["verdict"].transpose(ITEM, ...))
        gold = np.array([classes.index(label) if label in classes else CODE_MISSING for label in part["gold"].values])
        codes = codes.reshape(len(gold), -1)
        done = (codes != CODE_MISSING) & (gold != CODE_MISSING)[:, None]
        hits = done & (codes == gold[:, None])
        found[by_text(by)] = _share(hits, done), int(done.sum()), int((gold != CODE_MISSING).sum())
        own = part["stratum"].values if strata else None
        by_stratum.append([_share(hits[own == name], done[own == name]) for name in strata])
    names = ("match", "n_calls", "n_items")
    match = xr.Dataset(
        {name: ("group", [row[k] for row in found.values()]) for k, name in enumerate(names)},
        coords={"group": list(found)},
    )
    if strata:
        match["stratum_match"] = (("group", "stratum"), by_stratum)
        match = match.assign_coords(stratum=strata)
    return match


def _in_order(strata: list[str]) -> list[str]:
    names = list(dict.fromkeys(strata))
    return [names[k] for k in natural_order(names)]


def _share(hits: NDArray[np.bool_], done: NDArray[np.bool_]) -> float:
    return float(hits.sum() / done.sum()) if done.any() else np.nan


def integrity(cube: xr.Dataset) -> xr.Dataset:
    """Whether the design was covered, what it took, and what looks like a copy or a drift.

    Returns
    -------
    Dataset, dims (group)
        ``planned``, ``completed``, ``not_called``, ``cells``, ``cells_short`` (fewer than two completed calls);
        ``first_sent`` and ``last_sent`` (Unix time) where the cube carries times; ``attempts`` and ``retried`` where it
        carries attempts; where it carries ids ``repeated_ids`` (calls that share a response id with another call),
        ``shared_ids`` (such ids) and ``varied_ids`` (those whose calls have different verdicts: no copies);
        ``drift``, ``drift_se``, ``drift_class`` where it carries send ranks: the change of a class's probability from
        the first to the last call sent, by a line fitted within cells, for the class whose change is the most standard
        errors from 0 (the most of as many tries as there are classes).
    """
    rows = []
    labels = []
    for by, part in groups(cube):
        labels.append(by_text(by))
        codes = load(part["verdict"].transpose(..., REPEAT))
        status = load(part["status"])
        done = (codes != CODE_MISSING).sum(-1)
        row: dict[str, Any] = {
            "planned": int(codes.size),
            "completed": int(done.sum()),
            "not_called": int((status == STATUS.index("not_called")).sum()),
            "cells": int(done.size),
            "cells_short": int((done < 2).sum()),
        }
        if "sent" in part:
            sent = load(part["sent"])
            row["first_sent"], row["last_sent"] = (
                (float(np.nanmin(sent)), float(np.nanmax(sent))) if np.isfinite(sent).any() else (np.nan, np.nan)
            )
        if "attempts" in part:
            attempts = load(part["attempts"])
            row["attempts"] = int(attempts[attempts > 0].sum())
            row["retried"] = int((attempts > 1).sum())
        if (shared := shared_ids(part)) is not None:
            row["repeated_ids"], row["shared_ids"], row["varied_ids"] = shared
        if "send_rank" in part:
            rank = load(part["send_rank"].transpose(*part["verdict"].transpose(..., REPEAT).dims))
            row |= _drift(codes, rank, class_labels(part))
        rows.append(row)
    names = list(dict.fromkeys(name for row in rows for name in row))
    return xr.Dataset(
        {name: ("group", [row.get(name, np.nan) for row in rows]) for name in names}, coords={"group": labels}
    )


def _drift(codes: NDArray[Any], rank: NDArray[Any], classes: tuple[str, ...]) -> dict[str, Any]:
    """Steepest slope of a class's indicator on send rank (scaled to the whole run), both centred within cells."""
    done = codes != CODE_MISSING
    span = float(np.ptp(rank[done])) if done.any() else 0.0
    span = span or 1.0
    time = _centred(np.where(done, rank / span, 0.0), done)
    weight = float((time**2).sum())
    best = {"drift": np.nan, "drift_se": np.nan, "drift_class": ""}
    if weight == 0:
        return best
    largest = -1.0
    for code, label in enumerate(classes):
        hit = _centred(np.where(done, codes == code, 0.0), done)
        slope = float((time * hit).sum()) / weight
        # Centring ties the residuals of a cell to each other: cells are the independent units, not calls.
        se = float(((time * (hit - slope * time)).sum(-1) ** 2).sum()) ** 0.5 / weight
        z = abs(slope) / se if se > 0 else 0.0
        if z > largest:
            largest = z
            best = {"drift": slope, "drift_se": se, "drift_class": label}
    return best


def _centred(values: NDArray[Any], done: NDArray[np.bool_]) -> NDArray[np.float64]:
    mean = values.sum(-1, keepdims=True) / np.maximum(done.sum(-1, keepdims=True), 1)
    return np.where(done, values - mean, 0.0)
