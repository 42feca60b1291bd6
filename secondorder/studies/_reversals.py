"""Do prompts reverse the ranking of systems, and more often than the dice alone would?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._results import Table
from secondorder._schema import PROMPT, REPEAT
from secondorder._statistics._checked import MOST_DRAWS, whole
from secondorder.errors import CubeError
from secondorder.studies._bands import alone, check_draws, item_draws
from secondorder.studies._call_noise import noise_reversals
from secondorder.studies._disagreement import Array
from secondorder.studies._figures import drawn_ranks
from secondorder.studies._layout import group_labels
from secondorder.studies._parts import Value
from secondorder.studies._ranks import compare, pair_tau, signs, system_means, system_ranks
from secondorder.studies._result import StudyResult, measure_table, measured
from secondorder.studies._scores import Incomplete, ScoreRows, prompt_means, score_rows

__all__ = ["rank_reversals"]

MEASURES = {
    "tau": "Kendall τ-b",
    "reversals": "pairs reversed",
    "ties": "pairs tied",
    "adjacent": "neighbours reversed",
    "rank_changes": "ranks changed",
    "top_changes": "best system changed",
    "reversals_half": "reversed, half the calls",
    "reversals_noise": "… by call noise alone",
    "reversals_excess": "… difference of the two",
}
SURE = ("kept", "reversed", "undecided")
NOISE = ("reversals_half", "reversals_noise", "reversals_excess")
# Which calls fall into which half is no property of the items: an error over splits stands in for a band.
UNBANDED = dict.fromkeys(("reversals_half", "reversals_noise"), "given these items; its error over splits is noted")
NO_CALLS = "no cell with two valid calls: call noise is not identifiable; R >= 2 is needed"
NO_MEAN = "a system has no score under some prompt"
ALL_TIED = "under some prompt all systems are tied"
MOST_PROMPTS = 8  # whose pairs fit a table
BLOCK = 4_000_000  # comparisons of systems that are held at a time


def rank_reversals(
    data: xr.Dataset | xr.DataArray,
    *,
    system: str = "system",
    prompt: str = PROMPT,
    by: str | Sequence[str] | None = None,
    match: str | None = None,
    scores: Mapping[str, float] | None = None,
    valid: tuple[float, float] | None = None,
    incomplete: Incomplete = "common",
    repeat: str = REPEAT,
    splits: int = 50,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """Rank systems by mean score under each prompt, and count what changes between prompts.

    Parameters
    ----------
    data : Dataset or DataArray
        A verdict cube, or scores (:func:`make_scores`); repeated calls and orders are averaged.
    system : str
        Dimension, or coordinate of the items, that names the system of an answer.
    prompt, by
        Dimension of the wordings; dimensions or item coordinates to group by (default ``judge``).
    match : str, optional
        Where `system` is a coordinate of the items: the coordinate that says which items of different systems answer
        the same thing. They are resampled together; without it every system's items are resampled apart.
    scores, valid
        Scores of classes; range outside of which a score is invalid (set aside and counted).
    incomplete : {"common", "available"}
        Rank each prompt on the answers that have a score under all of them, or on what it has.
    repeat : str
        Dimension of the calls of a cell.
    splits : int
        Random splits of the calls of every cell for the reversals from call noise.
    level, draws, seed
        Percentile band over items.

    Returns
    -------
    StudyResult
        Means over pairs of prompts: ``tau`` (tau-b), ``reversals`` (share of pairs of systems in opposite order),
        ``ties`` (share tied under either prompt, neither kept nor reversed), ``adjacent`` (share reversed among pairs
        that are neighbours under one of the two), ``rank_changes``, ``top_changes``. With two or more calls in the
        cells: ``reversals_half`` (two prompts, each from half of its calls), ``reversals_noise`` (one prompt against
        itself, each time from half of its calls, disjoint) and their difference. Also ``mean`` and ``rank`` by system
        and prompt, ``rank_range``, ``tau_pairs`` by prompt and other prompt, and ``sure_kept``, ``sure_reversed``,
        ``sure_undecided``: shares of pairs whose order holds in `level` of the draws under both prompts, or does not.

    Raises
    ------
    CubeError, InputError
        When there are fewer than two systems or prompts, or no such dimension.

    Notes
    -----
    Resampled items carry item noise of their own, so that near-equal systems swap more often in the draws than in the
    data, and a band can lie above its own estimate. ``sure_reversed`` counts the reversals that item sampling cannot
    explain; ``reversals_excess`` has the same item noise on both sides. The reversals by call noise hold for these
    items and have a Monte Carlo error over splits (in the notes) in place of a band.

    Examples
    --------
    >>> from secondorder.studies import make_scores
    >>> rows = [{"q": q, "system": s, "prompt": p, "score": x}
    ...         for q, table in enumerate([{"a": (5, 2), "b": (3, 3)}, {"a": (4, 3), "b": (4, 5)}])
    ...         for s, pair in table.items() for p, x in zip("xy", pair)]
    >>> data = make_scores(rows, item="q", score="score", facets=["system", "prompt"])
    >>> found = rank_reversals(data, draws=0)
    >>> float(found["reversals"].estimate), found.data["rank"].to_numpy().tolist()
    (1.0, [[1.0, 2.0], [2.0, 1.0]])
    """
    check_draws(level=level, draws=draws, seed=seed)
    whole(splits, "splits", least=1, most=MOST_DRAWS)
    rows = score_rows(data, prompt=prompt, by=by, system=system, match=match, scores=scores, valid=valid, repeat=repeat)
    if len(rows.systems) < 2 or len(rows.prompts) < 2:
        raise CubeError(
            f"{len(rows.systems)} systems and {len(rows.prompts)} prompts", place="cube", remedy="give two or more"
        )
    means = prompt_means(rows, incomplete=incomplete)
    members = (rows.system[None, :] == np.arange(len(rows.systems))[:, None]).astype(float)
    ones = np.ones((1, means.shape[1]))
    orders = np.concatenate([system_means(group, ones, members) for group in means])  # (groups, systems, prompts)
    shares = [
        _shares(rows, g, means[g], members, splits=splits, level=level, draws=draws, seed=seed)
        for g in range(len(means))
    ]
    found, drawn = measured(
        by=rows.by,
        measures=list(MEASURES),
        values=[one.values for one in shares],
        draws=np.stack([one.draws for one in shares]),
        level=level,
        unbanded=UNBANDED,
        counts={
            "n_answers": (~np.isnan(means)).all(-1).sum(1),
            "n_invalid": rows.n_invalid,
            "n_missing": rows.n_missing,
            **{f"sure_{name}": np.array([one.sure[i] for one in shares]) for i, name in enumerate(SURE)},
        },
    )
    found = _with_ranks(found, rows, orders, prompt)
    found.attrs.update(splits=splits, incomplete=incomplete)
    counted = ("n_answers", "n_invalid", "n_missing")
    noisy = any(one.sizes[1] > 0 for one in shares)
    shown = found if noisy else found.sel(measure=[name for name in MEASURES if name not in NOISE])
    tables = [measure_table("", shown, by=rows.by, labels=MEASURES, counts=counted)]
    if draws:
        tables.append(_sure_table(found, rows, level))
    if 2 < len(rows.prompts) <= MOST_PROMPTS:
        tables.append(_tau_table(found, rows))
    tables.append(_range_table(found, rows))
    return StudyResult(
        f"Rank reversals of {len(rows.systems)} systems between {len(rows.prompts)} prompts",
        found,
        tuple(tables),
        _notes(shares, splits, incomplete, draws),
        drawn,
        (drawn_ranks(found, prompt=prompt, by=rows.by),),
    )


class _Shares(NamedTuple):
    values: list[Value]
    draws: Array  # (measures, draws)
    sure: Array  # shares of pairs surely kept, surely reversed, undecided
    sizes: NDArray[np.int64]
    spread: Array


def _shares(
    rows: ScoreRows, g: int, means: Array, members: Array, *, splits: int, level: float, draws: int, seed: int
) -> _Shares:
    calls = rows.values[g]
    repeated = bool(((~np.isnan(calls)).sum(-1) >= 2).any())
    n_systems, n_prompts = len(members), means.shape[1]

    def measures(weights: Array) -> tuple[Array, Array, NDArray[np.int64], Array]:
        of_systems = system_means(means, weights, members)
        found = compare(of_systems)
        noise = np.full((3, len(weights)), np.nan)
        spread, sizes = np.full(2, np.nan), np.zeros(2, dtype=np.int64)
        if repeated:
            across, within, spread, sizes = noise_reversals(calls, weights, members, splits=splits, seed=seed)
            noise = np.stack([across, within, across - within])
        return np.concatenate([np.stack(found), noise]), signs(of_systems), sizes, spread

    point, sign, sizes, spread = measures(np.ones((1, len(means))))
    held, agree = [np.zeros((len(MEASURES), 0))], np.zeros(sign.shape[1:])
    step = max(1, BLOCK // (n_systems * n_systems * n_prompts))
    for block in item_draws(len(rows.clusters), draws=draws, seed=seed, strata=rows.strata):
        for start in range(0, len(block), step):
            part, side, _, _ = measures(block[start : start + step][:, rows.cluster])
            held.append(part)
            agree += (side == sign).sum(0)
    drawn = np.concatenate(held, axis=1)
    scored = ~np.isnan(means).all(1)
    lone = bool((scored & alone(len(rows.clusters), rows.strata)[rows.cluster]).any())
    if lone:
        drawn = np.full_like(drawn, np.nan)
    compared = not np.isnan(point[list(MEASURES).index("reversals"), 0])
    values = [_value(name, float(x), compared=compared) for name, x in zip(MEASURES, point[:, 0], strict=True)]
    sure = _sure(sign[0], agree, draws=draws, level=level) if draws and not lone else np.full(3, np.nan)
    return _Shares(values, drawn, sure, sizes, spread)


def _sure(sign: Array, agree: Array, *, draws: int, level: float) -> Array:
    # Of all (pair of systems, pair of prompts): orders that hold in `level` of the draws under both prompts and are
    # the same, or opposite; the rest is undecided by these items.
    if np.isnan(sign).any():
        return np.full(3, np.nan)
    k, other = np.triu_indices(sign.shape[-1], 1)
    sure = (agree >= level * draws) & (sign != 0)
    product = np.where(sure[:, k] & sure[:, other], sign[:, k] * sign[:, other], 0.0)
    return np.array([(product > 0).mean(), (product < 0).mean(), (product == 0).mean()])


def _value(name: str, number: float, *, compared: bool) -> Value:
    if not np.isnan(number):
        return Value(number)
    return Value(number, NO_CALLS if name in NOISE else ALL_TIED if compared else NO_MEAN)


def _with_ranks(found: xr.Dataset, rows: ScoreRows, orders: Array, prompt: str) -> xr.Dataset:
    dims = tuple(name for name, _ in rows.by)
    shape = tuple(len(levels) for _, levels in rows.by)
    ranks, _ = system_ranks(orders)
    tau = pair_tau(signs(orders))

    def lay(array: Array, *tail: str) -> tuple[tuple[str, ...], Array]:
        return (*dims, *tail), array.reshape((*shape, *array.shape[1:]))

    return found.assign(
        mean=lay(orders, "system", prompt),
        rank=lay(ranks, "system", prompt),
        rank_range=lay(ranks.max(-1) - ranks.min(-1), "system"),
        tau_pairs=lay(tau, prompt, "other"),
    ).assign_coords({"system": list(rows.systems), prompt: list(rows.prompts), "other": list(rows.prompts)})


def _sure_table(found: xr.Dataset, rows: ScoreRows, level: float) -> Table:
    names = [name for name, _ in rows.by]
    body: list[tuple[str | int | float | None, ...]] = []
    for group in group_labels(rows.by):
        here = found.sel(dict(zip(names, group, strict=True)))
        body.append((*group, *(float(here[f"sure_{name}"]) for name in SURE)))
    title = f"Pairs of systems whose order holds in {100 * level:g} % of the draws under both prompts"
    return Table(title, (*names, "kept", "reversed", "undecided"), tuple(body))


def _tau_table(found: xr.Dataset, rows: ScoreRows) -> Table:
    names = [name for name, _ in rows.by]
    body: list[tuple[str | int | float | None, ...]] = []
    for group in group_labels(rows.by):
        matrix = found["tau_pairs"].sel(dict(zip(names, group, strict=True))).to_numpy().astype(float)
        for k, label in enumerate(rows.prompts[:-1]):
            # Above the diagonal: the rest would say the same again.
            cells = [None if other <= k else float(matrix[k, other]) for other in range(1, len(rows.prompts))]
            body.append((*group, label, *cells))
    return Table("Kendall τ-b of the systems between two prompts", (*names, "prompt", *rows.prompts[1:]), tuple(body))


def _range_table(found: xr.Dataset, rows: ScoreRows) -> Table:
    names = [name for name, _ in rows.by]
    body: list[tuple[str | int | float | None, ...]] = []
    for group in group_labels(rows.by):
        here = found.sel(dict(zip(names, group, strict=True)))
        ranks = here["rank"].to_numpy()
        for s, label in enumerate(rows.systems):
            if np.isnan(ranks[s]).any():
                continue
            body.append((*group, label, *(int(rank) for rank in ranks[s]), int(np.ptp(ranks[s]))))
    return Table("Rank under each prompt", (*names, "system", *rows.prompts, "range"), tuple(body))


def _notes(shares: Sequence[_Shares], splits: int, incomplete: Incomplete, draws: int) -> tuple[str, ...]:
    notes = [f"Prompts are compared on {'the answers they share' if incomplete == 'common' else 'what each has'}."]
    if draws:
        notes.append("Resampled items add item noise: near-equal systems swap more often in draws than in the data.")
    noisy = [one for one in shares if one.sizes[1] > 0]
    if not noisy:
        notes.append(f"Reversals from call noise: {NO_CALLS}.")
    else:
        low, high = min(int(one.sizes[0]) for one in noisy), max(int(one.sizes[1]) for one in noisy)
        error = max(float(np.nanmax(one.spread, initial=0.0)) for one in noisy)
        calls = str(low) if low == high else f"{low} to {high}"
        notes.append(
            f"Call noise: resampled, {splits} random splits within cells into two halves of {calls} calls; "
            f"Monte Carlo standard error at most {error:.4f}."
        )
    return tuple(notes)
