"""Does a trait of the wording explain an outcome of the prompts? Shares of variance against their chance level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations, product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._results import Table
from secondorder._statistics._checked import MOST_DRAWS, whole
from secondorder.errors import InputError
from secondorder.studies._bands import check_draws
from secondorder.studies._design_figures import draw_impacts
from secondorder.studies._disagreement import Array
from secondorder.studies._parts import Value
from secondorder.studies._result import Drawn, StudyResult, measured, reason_notes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["feature_effects"]

LARGEST_EXACT = 50_000  # so many relabellings at most are enumerated
MEASURES = ("eta2", "slope", "slope_adjusted")
LABELS = {"eta2": "η²", "slope_adjusted": "adjusted"}
ONE_LEVEL = "one level in every family"
FLAT = "the outcomes do not vary, or the other features explain them to the last digit"
NO_GROUPS = "in every family all prompts share a level, have one each, or have equal outcomes"
NO_NUMBERS = "the levels are no numbers"
NO_ROOM = "the other features leave nothing to estimate it from"


def feature_effects(
    outcomes: Mapping[str, float] | pd.Series[Any],
    features: pd.DataFrame | Mapping[str, Mapping[str, Any]],
    *,
    family: Mapping[str, str] | None = None,
    permutations: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> StudyResult:
    """Share of an outcome's variance between the levels of a coded trait, beside what chance gives.

    Parameters
    ----------
    outcomes : mapping of prompt to number
        One outcome for each prompt, such as its mean agreement with the other prompts.
    features : DataFrame (prompt x feature) or mapping of feature to mapping of prompt to level
        Traits that were coded by hand: role, syntax, length, strictness, …
    family : mapping of prompt to label, optional
        Paraphrases of one criterion. Outcomes are compared within families, never between.
    permutations : int
        Random relabellings within families, where there are more than 50 000 in all.
    level, seed
        Confidence of the slopes' t intervals; seed of the relabellings.

    Returns
    -------
    StudyResult
        Over ``feature``: ``eta2`` (mean over families), ``slope`` per step (least squares with family means taken out)
        and ``slope_adjusted`` (all other features held fixed), each with ``pvalue``; ``null_mean``, the mean of eta2
        when the trait means nothing, ``mean((g - 1)/(n - 1))`` for g levels among n prompts.

    Raises
    ------
    InputError
        When a prompt has no level or no family, or an outcome is not finite.

    Notes
    -----
    The null mean is exact for any outcomes: relabelling n values among g groups spreads the n - 1 degrees of freedom
    evenly, of which g - 1 lie between groups. For five paraphrases and two or three levels it is .25 or .5: an eta2 of
    that size says nothing.

    Examples
    --------
    >>> outcomes = {"p1": 0.70, "p2": 0.74, "p3": 0.71, "p4": 0.62, "p5": 0.60}
    >>> found = feature_effects(outcomes, {"strict": {"p1": 1, "p2": 1, "p3": 1, "p4": 0, "p5": 0}})
    >>> eta = found["eta2"].sel(feature="strict")
    >>> round(float(eta.estimate), 3), float(eta.null_mean), round(float(eta.pvalue), 3)
    (0.928, 0.25, 0.1)
    """
    y, table, families = _checked(outcomes, features, family)
    whole(permutations, "permutations", least=1, most=MOST_DRAWS)
    check_draws(level=level, draws=0, seed=seed)
    orders = _orders(families, permutations, seed)
    names = list(table)
    effects = [_effect(y, table[name], families, orders) for name in names]
    slopes = [_slope(y, table, name, families, others=False, level=level) for name in names]
    adjusted = [_slope(y, table, name, families, others=True, level=level) for name in names]
    found, _ = measured(
        by=(("feature", tuple(names)),),
        measures=list(MEASURES),
        values=[[e.value, s.value, a.value] for e, s, a in zip(effects, slopes, adjusted, strict=True)],
        draws=np.zeros((len(names), len(MEASURES), 0)),
        level=level,
    )

    def lay(*columns: Sequence[float]) -> tuple[tuple[str, str], Array]:
        return ("feature", "measure"), np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)

    nothing = [math.nan] * len(names)
    found = found.assign(
        se=lay(nothing, [s.se for s in slopes], [a.se for a in adjusted]),
        lower=lay(nothing, [s.lower for s in slopes], [a.lower for a in adjusted]),
        upper=lay(nothing, [s.upper for s in slopes], [a.upper for a in adjusted]),
        pvalue=lay([e.pvalue for e in effects], [s.pvalue for s in slopes], [a.pvalue for a in adjusted]),
        null_mean=("feature", [e.null_mean for e in effects]),
        n_families=("feature", [e.n_families for e in effects]),
    )
    exact = orders.exact
    notes = (
        f"η²: mean over families; p from {'all' if exact else ''} {len(orders.positions)} relabellings of the prompts "
        "within families.".replace("  ", " "),
        "Chance: mean of (g − 1)/(n − 1) over families, exactly what η² is on average when the trait means nothing.",
        "Slopes: least squares within families, t intervals; adjusted: the other features held fixed.",
    )
    eta = found["estimate"].sel(measure="eta2").to_numpy().astype(float)
    figure = Drawn(
        "Variance of the outcome that a trait explains",
        "Ticks: the mean where the trait means nothing.",
        lambda: draw_impacts(names, {"η²": eta}, {"η²": found["null_mean"].to_numpy().astype(float)}),
    )
    return StudyResult("Traits of the wording", found, (_table(found, names),), notes, None, (figure,))


def _checked(
    outcomes: Mapping[str, float] | pd.Series[Any],
    features: pd.DataFrame | Mapping[str, Mapping[str, Any]],
    family: Mapping[str, str] | None,
) -> tuple[Array, dict[str, list[Any]], NDArray[np.int64]]:
    found = {str(prompt): float(value) for prompt, value in outcomes.items()}
    columns = {str(name): {str(p): x for p, x in column.items()} for name, column in features.items()}
    for name, column in columns.items():
        for prompt in found:
            if prompt not in column:
                raise InputError(f"prompt {prompt!r} has no level", place=f"feature {name}", remedy="code every prompt")
    if not found or not all(math.isfinite(value) for value in found.values()) or not columns:
        raise InputError("outcomes or features are empty, or not finite", place="feature_effects")
    member = dict.fromkeys(found, "") if family is None else {str(p): str(x) for p, x in family.items()}
    absent = [prompt for prompt in found if prompt not in member]
    if absent:
        raise InputError(f"prompt {absent[0]!r} has no family", place="family", remedy="name one for every prompt")
    labels = np.array([member[prompt] for prompt in found])
    table = {name: [column[prompt] for prompt in found] for name, column in columns.items()}
    return np.array(list(found.values())), table, np.unique(labels, return_inverse=True)[1].astype(np.int64)


class _Orders(NamedTuple):
    positions: NDArray[np.int64]  # (relabellings, prompts): prompts only move within their family
    exact: bool


def _orders(families: NDArray[np.int64], wanted: int, seed: int) -> _Orders:
    members = [np.flatnonzero(families == f) for f in range(families.max() + 1)]
    if math.prod(math.factorial(len(own)) for own in members) <= LARGEST_EXACT:
        inside = [list(permutations(own.tolist())) for own in members]
        rows = np.empty((math.prod(map(len, inside)), len(families)), dtype=np.int64)
        for index, choice in enumerate(product(*inside)):
            for own, order in zip(members, choice, strict=True):
                rows[index, own] = order
        return _Orders(rows, True)
    rng = np.random.default_rng(seed)
    rows = np.tile(np.arange(len(families)), (wanted + 1, 1))  # the data themselves first
    for own in members:
        rows[1:, own] = own[np.argsort(rng.random((wanted, len(own))), axis=1)]
    return _Orders(rows, False)


class _Effect(NamedTuple):
    value: Value
    pvalue: float
    null_mean: float
    n_families: int


def _effect(y: Array, levels: list[Any], families: NDArray[np.int64], orders: _Orders) -> _Effect:
    codes = np.unique([str(level) for level in levels], return_inverse=True)[1]
    shares, chance = [], []
    for f in range(families.max() + 1):
        own = families == f
        groups = np.unique(codes[own])
        inside = y[orders.positions[:, own]]  # outcomes that move, levels that stay: (relabellings, prompts)
        centred = inside - inside.mean(1, keepdims=True)
        total = (centred**2).sum(1)
        if len(groups) in (1, own.sum()) or total[0] <= 1e-15 * max(1.0, float((y**2).sum())):
            continue
        between = sum(centred[:, codes[own] == g].sum(1) ** 2 / (codes[own] == g).sum() for g in groups)
        shares.append(between / total)
        chance.append((len(groups) - 1) / (own.sum() - 1))
    if not shares:
        return _Effect(Value(math.nan, NO_GROUPS), math.nan, math.nan, 0)
    eta = np.mean(shares, axis=0)
    at_least = float((eta >= eta[0] - 1e-9).mean())
    return _Effect(Value(float(eta[0])), at_least, float(np.mean(chance)), len(shares))


class _Slope(NamedTuple):
    value: Value
    se: float = math.nan
    lower: float = math.nan
    upper: float = math.nan
    pvalue: float = math.nan


def _slope(
    y: Array, table: dict[str, list[Any]], name: str, families: NDArray[np.int64], *, others: bool, level: float
) -> _Slope:
    from scipy.stats import t

    own = _as_numbers(table[name])
    if own is None:
        return _Slope(Value(math.nan, NO_NUMBERS))
    columns = [own[:, None], (families[:, None] == np.arange(families.max() + 1)).astype(float)]
    for other in table if others else ():
        if other != name:
            numbers = _as_numbers(table[other])
            codes = np.unique([str(level) for level in table[other]], return_inverse=True)[1]
            columns.append(numbers[:, None] if numbers is not None else np.eye(codes.max() + 1)[codes])
    rest = np.concatenate(columns[1:], axis=1)
    # The slope is that of the residuals (Frisch, Waugh, Lovell): what the others explain is taken out of both sides.
    basis, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    basis = basis[:, sizes > 1e-10 * sizes[0]]
    x, left = (v - basis @ (basis.T @ v) for v in (own, y))
    df = len(y) - basis.shape[1] - 1
    if x @ x <= 1e-10 * max(1.0, float(own @ own)):
        return _Slope(Value(math.nan, NO_ROOM if others else ONE_LEVEL))
    if left @ left <= 1e-20 * float(y @ y):  # what is left of equal outcomes is rounding
        return _Slope(Value(math.nan, FLAT))
    slope = float(x @ left / (x @ x))
    if df < 1:
        return _Slope(Value(slope))
    se = math.sqrt(float(((left - slope * x) ** 2).sum()) / df / float(x @ x))
    wide = float(t.ppf((1 + level) / 2, df)) * se
    p = float(2 * t.sf(abs(slope) / se, df)) if se > 0 else 0.0
    return _Slope(Value(slope), se, slope - wide, slope + wide, p)


def _as_numbers(levels: list[Any]) -> Array | None:
    try:
        numbers = np.array([float(level) for level in levels])
    except (TypeError, ValueError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def _table(found: xr.Dataset, names: list[str]) -> Table:
    rows: list[tuple[str | int | float | None, ...]] = []
    for name in names:
        one = found.sel(feature=name)
        eta, slope, adjusted = (one.sel(measure=measure) for measure in MEASURES)
        cells = [eta["estimate"], one["null_mean"], eta["pvalue"]]
        cells += [slope["estimate"], slope["pvalue"], adjusted["estimate"], adjusted["pvalue"]]
        rows.append((name, *(float(cell) for cell in cells)))
    columns = ("feature", "η²", "chance", "p", "slope", "p", "adjusted", "p")
    return Table("", columns, tuple(rows), reason_notes(found, by=(("feature", tuple(names)),), labels=LABELS))
