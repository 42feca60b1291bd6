"""How many votes does a panel need? Consensus of the default voter, and when votes settle the outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._results import Table
from secondorder._schema import PROMPT
from secondorder.errors import InputError
from secondorder.studies._bands import check_draws, resampled_sums
from secondorder.studies._convergence_figure import MOST_GROUPS, draw_convergence
from secondorder.studies._disagreement import Array
from secondorder.studies._figures import part_shown
from secondorder.studies._layout import By, as_names, group_labels
from secondorder.studies._panel import Panel, make_panel
from secondorder.studies._parts import Value, quotient
from secondorder.studies._ratings import Invalid
from secondorder.studies._result import Drawn, StudyResult, measure_table, measured
from secondorder.studies._stopping import STOPS, Stop, stop_law, stop_times
from secondorder.studies._votes import tied

__all__ = ["convergence", "convergence_cost"]

CONSENSUS = {
    "default_is_plurality": "default = plurality",
    "default_is_clear_plurality": "default = plurality, untied",
    "plurality": "untied plurality",
    "majority": "strict majority",
    "unanimous": "unanimous",
}
NO_EVENT = "no event in which every voter voted"
NO_CLEAR = "every event is tied"
MOST_TIMES, QUANTILES = 6, (0.5, 0.9)
CAPTION = "Solid: majority; dashed: decided. What the lines do not reach is never settled."


def convergence_cost(stopped: Mapping[int, float], *, voters: int) -> float:
    """Mean number of votes: shares of events settled after so many votes, all others asked to the end.

    Parameters
    ----------
    stopped : mapping of int to float
        Share of events that stop after this many votes.
    voters : int

    Raises
    ------
    InputError
        When the shares are none, or a time lies outside 1..voters.

    Examples
    --------
    The prompt-lottery study: 37.68 % settled after 3 of 5, 21.05 % after 5, the rest never:

    >>> round(convergence_cost({3: 0.3768, 5: 0.2105}, voters=5), 3)
    4.246
    """
    total = sum(stopped.values())
    if min(stopped.values(), default=0.0) < 0 or total > 1 + 1e-9:
        raise InputError(f"shares sum to {total:g}", place="stopped", remedy="give shares between 0 and 1")
    if any(not 1 <= m <= voters for m in stopped):
        raise InputError(f"times {sorted(stopped)}", place="stopped", remedy=f"give times in 1..{voters}")
    return sum(m * share for m, share in stopped.items()) + (1 - total) * voters


def convergence(
    data: xr.Dataset | xr.DataArray,
    *,
    voters: str | Sequence[str] = PROMPT,
    default: str | None = None,
    order: Literal["declared", "any"] = "declared",
    by: str | Sequence[str] | None = None,
    invalid: Invalid = "class",
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """How often the default voter speaks for the panel, and after how many votes the outcome is settled.

    Parameters
    ----------
    data : Dataset or DataArray
        A verdict cube.
    voters : str or sequence of str
        Whose verdicts are votes.
    default : str, optional
        The voter that would be asked alone. Default: the first.
    order : {"declared", "any"}
        Votes come in the order of the voters, or in any order: then shares are exact averages over all orders.
    by, invalid
        As in :func:`aggregate`.
    level, draws, seed
        Percentile band over items.

    Returns
    -------
    StudyResult
        For each group the shares of events in which the default's vote is the plurality (a tie is none; also among
        untied events alone), in which a plurality is untied, a class has a strict majority, all agree. For each rule
        (``majority``: the first m at which a class has more than half of all votes; ``decided``: the lead over the
        runner-up exceeds the votes left) the shares that stop after m votes, and never; the mean number of ``calls``,
        and what it saves.

    Raises
    ------
    CubeError, InputError
        When there are fewer than two voters, or no such default.

    Notes
    -----
    Events in which a voter gave no vote are left out and counted. ``majority`` is the rule of the prompt-lottery study;
    ``decided`` stops as soon as no further vote can change the plurality, never later.

    Examples
    --------
    >>> verdict = [[0, 0, 0, 1, 1], [0, 1, 0, 1, 0], [0, 1, 2, 0, 1], [1, 0, 0, 0, 0]]
    >>> cube = xr.Dataset({"verdict": (("item", "prompt"), verdict)}, coords={"class": ["A", "B", "tie"]})
    >>> found = convergence(cube, draws=0)
    >>> [float(found[name].estimate) for name in ("majority_stop_3", "majority_never", "majority_calls")]
    [0.25, 0.25, 4.25]
    """
    check_draws(level=level, draws=draws, seed=seed)
    if order not in ("declared", "any"):
        raise InputError(f"order={order!r}", place="order", remedy="say 'declared' or 'any'")
    panel = make_panel(data, voters=voters, default=default, by=by, gold="", scores=None, invalid=invalid)
    n_voters, by_ = len(panel.voters), panel.laid.by
    complete: NDArray[np.bool_] = np.asarray((panel.laid.codes >= 0).all(-1))
    measures = _measures(n_voters)
    columns = (_columns(panel, order) * complete[..., None]).sum(2)  # (groups, items, columns)
    flat = columns.transpose(1, 0, 2).reshape(columns.shape[1], -1)
    drawn = resampled_sums(flat, draws=draws, seed=seed, strata=panel.laid.strata)
    sums = np.concatenate([flat.sum(0)[None], drawn]).reshape(1 + draws, len(columns), -1)
    numbers = _read(sums, n_voters).transpose(1, 2, 0)  # (groups, measures, 1 + draws)
    found, held = measured(
        by=by_,
        measures=measures,
        values=[
            [_value(float(x), name, events=bool(own.any())) for x, name in zip(row, measures, strict=True)]
            for row, own in zip(numbers[..., 0], complete, strict=True)
        ],
        draws=numbers[..., 1:],
        level=level,
        counts={
            "n_events": complete.sum((1, 2)),
            "n_left_out": (panel.voted & ~complete).sum((1, 2)),
            "n_invalid": panel.laid.n_invalid,
        },
    )
    default = panel.voters[panel.default]
    found.attrs.update(voters=":".join(as_names(voters)), n_voters=n_voters, default=default, order=order)
    consensus = measure_table(
        "",
        found.sel(measure=list(CONSENSUS)),
        by=by_,
        labels=CONSENSUS,
        counts=("n_events", "n_left_out", "n_invalid"),
    )
    notes = (
        f"Default voter: {default!r}. An event is an item{''.join(f' × {name}' for name in panel.laid.rest)}.",
        *(f"{name}: {said}." for name, said in STOPS.items()),
        f"Votes come in the order of the cube, {panel.voters[0]!r} first."
        if order == "declared"
        else "Averages over all orders of the voters.",
    )
    return StudyResult(
        f"Convergence of {n_voters} votes: {' × '.join(as_names(voters))}",
        found,
        (consensus, _stop_table(found, by_, n_voters)),
        notes,
        held,
        (
            Drawn(
                "Events settled after so many votes",
                CAPTION + part_shown(by_, MOST_GROUPS),
                lambda: draw_convergence(found, by_),
            ),
        ),
    )


def _times(n_voters: int) -> range:
    """Votes after which either rule can hold."""
    return range(n_voters // 2 + 1, n_voters + 1)


def _measures(n_voters: int) -> list[str]:
    names = list(CONSENSUS)
    for rule in STOPS:
        names += [f"{rule}_stop_{m}" for m in _times(n_voters)]
        names += [f"{rule}_{what}" for what in ("never", "calls", "saved")]
    return names


def _columns(panel: Panel, order: str) -> Array:
    """What an event adds to, (groups, items, events, columns): consensus, stopping times of both rules, 1."""
    counts, n_voters = panel.counts, len(panel.voters)
    codes = panel.laid.codes
    clear = ~tied(counts)
    first = codes[..., panel.default]
    agrees = clear & (first == counts.argmax(-1))
    most = counts.max(-1)
    parts = [agrees, clear, most > n_voters // 2, most == n_voters]
    columns = [np.stack(parts, axis=-1).astype(float)]
    for rule in get_args(Stop):
        if order == "declared":
            votes = (codes[..., None] == np.arange(counts.shape[-1])).astype(float)
            law = stop_times(votes, rule=rule)
        else:
            cases = counts.reshape(-1, counts.shape[-1])
            law = stop_law(cases, rule=rule, n_voters=n_voters).reshape(*counts.shape[:-1], -1)
        columns.append(law[..., n_voters // 2 :])
    return np.concatenate([*columns, np.ones((*counts.shape[:-1], 1))], axis=-1)


def _read(sums: Array, n_voters: int) -> Array:
    """Sums of columns to measures."""
    share = quotient(sums, sums[..., -1:])
    agrees, clear, majority, unanimous = (share[..., k] for k in range(4))
    read = [agrees, quotient(agrees, clear), clear, majority, unanimous]
    times, start = _times(n_voters), 4
    for _ in STOPS:
        law = share[..., start : start + len(times) + 1]
        calls = law @ np.array([*times, n_voters], dtype=float)
        read += [*(law[..., k] for k in range(law.shape[-1])), calls, 1 - calls / n_voters]
        start += law.shape[-1]
    return np.stack(read, axis=-1)


def _value(number: float, name: str, *, events: bool) -> Value:
    if not np.isnan(number):
        return Value(number)
    return Value(number, NO_CLEAR if events and name == "default_is_clear_plurality" else NO_EVENT)


def _stop_table(found: xr.Dataset, by: By, n_voters: int) -> Table:
    names, times = [name for name, _ in by], _times(n_voters)
    many = len(times) > MOST_TIMES
    told = [f"{round(100 * share)} % after" for share in QUANTILES] if many else [f"after {m}" for m in times]
    columns = (*names, "rule", *told, "never", "calls", "saved")
    rows: list[tuple[str | int | float | None, ...]] = []
    for group in group_labels(by):
        one = found["estimate"].sel(dict(zip(names, group, strict=True)))
        for rule in STOPS:
            shares = [float(one.sel(measure=f"{rule}_stop_{m}")) for m in times]
            upto = np.cumsum(shares)
            late = [
                next((m for m, x in zip(times, upto, strict=True) if x >= share - 1e-9), None) for share in QUANTILES
            ]
            rest = [float(one.sel(measure=f"{rule}_{what}")) for what in ("never", "calls", "saved")]
            rows.append((*group, rule, *(late if many else shares), *rest))
    return Table(f"Votes until the outcome is settled, of {n_voters}", columns, tuple(rows))
