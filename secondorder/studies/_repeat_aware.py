"""Agreement across wordings beside agreement within one: how much of the disagreement is call noise."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from secondorder._labels._attributes import attribute
from secondorder._schema import JUDGE, ORDER, PROMPT, REPEAT
from secondorder.errors import CubeError
from secondorder.studies._bands import alone, check_draws, item_draws
from secondorder.studies._disagreement import Array, disagreement
from secondorder.studies._figures import drawn_measures
from secondorder.studies._parts import SMALLEST_EXPECTED, Value, unit_counts
from secondorder.studies._ratings import Incomplete, Invalid, arrange, check_cube, complete_items
from secondorder.studies._result import StudyResult, measure_table, measured

__all__ = ["repeat_agreement"]


MEASURES = {
    "within": "A within (test–retest)",
    "across": "A across (raw)",
    "jss_difference": "within − across",
    "jss_ratio": "across / within",
    "noise_share": "call-noise share",
    "chance": "chance A, other items",
    "kappa_within": "κ within",
    "kappa_across": "κ across",
    "degradation": "κ within − κ across",
    "deflation_within": "A − κ, within",
    "deflation_across": "A − κ, across",
}
ONE_CALL = "one call per cell: call noise is not identifiable; R >= 2 is needed"
NEEDS_REPEATS = {name for name in MEASURES if name not in ("across", "chance", "kappa_across", "deflation_across")}
NO_CHANCE_GAP = "calls on different items always agree: 1 - chance is 0"


def repeat_agreement(
    data: xr.Dataset | xr.DataArray,
    *,
    facet: str = PROMPT,
    repeat: str = REPEAT,
    by: str | tuple[str, ...] | None = None,
    weights: str | ArrayLike = "nominal",
    scores: Mapping[str, float] | None = None,
    invalid: Invalid = "class",
    incomplete: Incomplete = "refuse",
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """Agreement of two calls under one wording, and under two, on the same chance scale.

    Disagreement across wordings mixes two things: that the wordings differ, and that a judge differs from itself. With
    repeats they come apart.

    Parameters
    ----------
    data : Dataset or DataArray
        A verdict cube.
    facet : str
        What is varied; all other facets are held fixed within a pair of calls.
    repeat : str
        The dimension of exchangeable calls of one cell; for people, the annotators who saw the same wording.
    by : str or sequence of str, optional
        Dimensions or item coordinates to group by; default ``judge`` where it is a dimension.
    weights : {"nominal", "linear", "quadratic", "interval", "ratio"} or array, shape (classes, classes)
        Disagreement D of two classes, scaled to at most 1; agreement is ``1 - D``. Under ``interval`` kappa within is
        the intraclass correlation of single calls.
    scores, invalid
        As in :func:`agreement`.
    incomplete : {"refuse", "drop-item"}
        What happens when a cell has fewer than two calls (fewer than one, where no cell has two).
    level, draws, seed
        Percentile band over items.

    Returns
    -------
    StudyResult
        ``within`` (test-retest agreement), ``across`` (the raw JudgeSense score), ``jss_difference``, ``jss_ratio``,
        ``noise_share = (1 - within) / (1 - across)``, ``chance``, ``kappa_within``, ``kappa_across``,
        ``degradation``, and the deflations ``A - kappa``.

    Raises
    ------
    CubeError
        When cells are incomplete and `incomplete` is ``refuse``; when the facet has one level.

    Notes
    -----
    Every agreement is an unbiased mean over pairs of distinct calls: within a cell ``(y'Wy - n) / (n(n-1))``, across
    cells the product of the shares, ``W = 1 - D``. Both kappas subtract the same chance agreement, that of calls on two
    *different* items; a draw in which an item comes twice does not pair it with itself.

    Examples
    --------
    >>> verdict = [[[0, 0, 0], [0, 0, 1]], [[1, 1, 1], [1, 1, 1]], [[0, 1, 0], [0, 0, 0]]]
    >>> cube = xr.Dataset({"verdict": (("item", "prompt", "repeat"), verdict)}, coords={"class": ["A", "B"]})
    >>> found = repeat_agreement(cube, draws=0)
    >>> round(float(found["within"].estimate), 4), round(float(found["noise_share"].estimate), 4)
    (0.7778, 1.0)
    """
    check_draws(level=level, draws=draws, seed=seed)
    cube = check_cube(data)
    laid = arrange(cube, inner=[facet, repeat], by=by, invalid=invalid)
    if len(laid.inner[0]) < 2:
        raise CubeError(f"one level of {facet!r}", place="facet", remedy="agreement across needs at least two")
    weight = 1 - disagreement(weights, laid.classes, scores=scores, ranked=laid.ranked)
    counts = unit_counts(laid.codes, len(laid.classes))  # (G, N, rest, K, C)
    n = counts.sum(-1)
    repeats = bool((n >= 2).any())
    kept = complete_items(laid, n, need=2 if repeats else 1, incomplete=incomplete, facet=facet)
    linear, square = _item_terms(counts, weight, kept)

    ones = np.ones((1, linear.shape[1]))
    values = [
        [_value(name, row, repeats) for name in row]
        for row in _by_group(_measures(_sums(ones, linear, square), weight))
    ]
    blocks = [
        np.stack(list(_measures(_sums(block, linear, square), weight).values()), axis=1)
        for block in item_draws(linear.shape[1], draws=draws, seed=seed, strata=laid.strata)
    ]
    held = np.concatenate(blocks, axis=-1) if blocks else np.zeros((len(linear), len(MEASURES), 0))
    held[(kept & alone(kept.shape[1], laid.strata)).any(1)] = np.nan
    if not repeats:
        held[:, [name in NEEDS_REPEATS for name in MEASURES]] = np.nan
    present = (laid.codes >= 0).any(axis=(2, 3, 4))
    found, drawn = measured(
        by=laid.by,
        measures=list(MEASURES),
        values=values,
        draws=held,
        level=level,
        counts={
            "n_items": kept.sum(1),
            "n_dropped": (present & ~kept).sum(1),
            "n_invalid": laid.n_invalid,
            "n_missing": laid.n_missing,
        },
    )
    found = found.assign_coords(item=list(laid.items))
    found.attrs.update(facet=facet, seed=seed)
    table = measure_table(
        "", found, by=laid.by, labels=MEASURES, counts=("n_items", "n_dropped", "n_invalid", "n_missing")
    )
    notes = [
        f"Pairs of distinct calls; across: two levels of {facet}"
        + (f", the same {' and '.join(laid.rest)}." if laid.rest else "."),
        f"Within: the same {facet} called twice. Call-noise share: disagreement within one {facet} over disagreement "
        f"across two; the rest is {facet}.",
    ]
    if facet in attribute(cube, "facets", [PROMPT]) and facet not in (JUDGE, ORDER):
        notes.append(
            "Where the levels are wordings, A across is the raw JudgeSense score (JSS); the two rows below it are JSS "
            "corrected for call noise, as a difference and as a ratio."
        )
    figure = drawn_measures(
        found.sel(measure=["within", "across", "kappa_within", "kappa_across"]),
        MEASURES,
        title=f"Agreement within and across levels of {facet}",
    )
    title = f"Repeat-aware agreement over {facet} ({len(laid.inner[0])} levels)"
    return StudyResult(title, found, (table,), tuple(notes), drawn, (figure,))


def _item_terms(counts: Array, weight: Array, kept: NDArray[np.bool_]) -> tuple[Array, Array]:
    # What an item adds to: (1, A_within, A_across, mean law), and the square term of the chance agreement.
    n = counts.sum(-1)
    share = counts / np.maximum(n, 1)[..., None]
    own = ((counts @ weight) * counts).sum(-1)
    within = ((own - n) / np.maximum(n * (n - 1), 1)).mean(axis=(2, 3))
    total = share.sum(3)
    n_levels = share.shape[3]
    equal = ((share @ weight) * share).sum((-1, -2))
    across = ((((total @ weight) * total).sum(-1) - equal) / (n_levels * (n_levels - 1))).mean(2)
    law = share.mean(axis=(2, 3))
    linear = np.concatenate([np.ones((*kept.shape, 1)), within[..., None], across[..., None], law], axis=-1)
    square = np.stack([np.ones(kept.shape), ((law @ weight) * law).sum(-1)], axis=-1)
    return np.where(kept[..., None], linear, 0.0), np.where(kept[..., None], square, 0.0)


def _sums(block: Array, linear: Array, square: Array) -> tuple[Array, Array]:
    # (G, draws, columns); an item drawn w times makes w(w-1) pairs with itself, which the squares take out again.
    return np.asarray(block @ linear), np.asarray((block * block) @ square)


def _measures(sums: tuple[Array, Array], weight: Array) -> dict[str, Array]:
    linear, square = sums
    n, law = linear[..., 0], linear[..., 3:]
    within, across = _over(linear[..., 1], n), _over(linear[..., 2], n)
    chance = _over(((law @ weight) * law).sum(-1) - square[..., 1], n * n - square[..., 0])
    kappa_within, kappa_across = 1 - _over(1 - within, 1 - chance), 1 - _over(1 - across, 1 - chance)
    return {
        "within": within,
        "across": across,
        "jss_difference": within - across,
        "jss_ratio": _over(across, within),
        "noise_share": _over(1 - within, 1 - across),
        "chance": chance,
        "kappa_within": kappa_within,
        "kappa_across": kappa_across,
        "degradation": kappa_within - kappa_across,
        "deflation_within": within - kappa_within,
        "deflation_across": across - kappa_across,
    }


def _over(above: Array, below: Array) -> Array:
    return np.asarray(np.divide(above, below, out=np.full(np.shape(above), np.nan), where=below > SMALLEST_EXPECTED))


def _by_group(measures: Mapping[str, Array]) -> list[dict[str, float]]:
    size = len(next(iter(measures.values())))
    return [{name: float(array[g, 0]) for name, array in measures.items()} for g in range(size)]


def _value(name: str, row: Mapping[str, float], repeats: bool) -> Value:
    number = row[name]
    if not repeats and name in NEEDS_REPEATS:
        return Value(float("nan"), ONE_CALL)
    if not np.isnan(number):
        return Value(number)
    if np.isnan(row["across"]):
        return Value(number, "no item")
    if name == "noise_share":
        return Value(number, "no two calls across the levels disagree")
    if name == "jss_ratio":
        return Value(number, "agreement within a level is 0")
    return Value(number, "fewer than two items" if np.isnan(row["chance"]) else NO_CHANCE_GAP)
