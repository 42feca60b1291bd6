"""Do similar prompts give similar verdicts? Correlation of similarity with agreement over pairs of prompts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from secondorder._labels._results import Table
from secondorder._schema import PROMPT, REPEAT
from secondorder.errors import CubeError, InputError
from secondorder.studies._bands import band, check_draws, resampled_sums
from secondorder.studies._disagreement import Array, disagreement
from secondorder.studies._figures import drawn_pairs
from secondorder.studies._layout import By, group_labels
from secondorder.studies._parts import Value, quotient, unit_counts
from secondorder.studies._ratings import Incomplete, Invalid, arrange, check_cube, complete_items
from secondorder.studies._result import StudyResult, measured

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["similarity_stability"]

MEASURES = ("pearson", "spearman")
LARGEST_EXACT = 7  # 7! = 5040 relabellings are enumerated
RANDOM = 9999
NO_ITEM = "no item has a call under every prompt"
FLAT = "similarity or agreement does not vary over the pairs of prompts"


def similarity_stability(
    data: xr.Dataset | xr.DataArray,
    similarity: pd.DataFrame | Mapping[tuple[str, str], float],
    *,
    prompt: str = PROMPT,
    by: str | Sequence[str] | None = None,
    weights: str | ArrayLike = "nominal",
    scores: Mapping[str, float] | None = None,
    invalid: Invalid = "class",
    incomplete: Incomplete = "refuse",
    repeat: str = REPEAT,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """Correlation, over pairs of prompts, of their similarity with the agreement of their verdicts.

    Parameters
    ----------
    data : Dataset or DataArray
        A verdict cube.
    similarity : DataFrame or mapping of (prompt, prompt) to number
        Similarity of every two prompts (of embeddings, of words, as rated); symmetric.
    prompt, by, repeat
        Dimension of the wordings; grouping (default ``judge``); dimension of the calls of a cell.
    weights, scores, invalid, incomplete
        As in :func:`repeat_agreement`; a cell needs one call.
    level, draws, seed
        Percentile band over items.

    Returns
    -------
    StudyResult
        ``pearson`` and ``spearman`` for each group, with ``pvalue``; ``pooled`` the same over all pairs of all groups.
        ``agreement`` of every two prompts.

    Raises
    ------
    CubeError, InputError
        When there are fewer than three prompts, or a similarity is missing or not symmetric.

    Notes
    -----
    Pairs that share a prompt depend on each other, so the p-value relabels prompts (Mantel): all of them up to seven
    prompts, 9999 at random beyond. It is two-sided. The band covers items only, not the choice of prompts.

    Examples
    --------
    >>> verdict = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0], [0, 1, 1]]
    >>> cube = xr.Dataset({"verdict": (("item", "prompt"), verdict)},
    ...                   coords={"prompt": ["a", "b", "c"], "class": ["no", "yes"]})
    >>> found = similarity_stability(cube, {("a", "b"): 0.9, ("a", "c"): 0.5, ("b", "c"): 0.6}, draws=0)
    >>> round(float(found["pearson"].estimate), 3), round(float(found["pearson"].pvalue), 3)
    (0.961, 0.333)
    """
    check_draws(level=level, draws=draws, seed=seed)
    cube = check_cube(data)
    repeated = repeat in cube["verdict"].dims
    laid = arrange(cube, inner=[prompt, repeat] if repeated else [prompt], by=by, invalid=invalid)
    codes = laid.codes if repeated else laid.codes[..., None]
    prompts = laid.inner[0]
    if len(prompts) < 3:
        raise CubeError(f"{len(prompts)} prompts", place=prompt, remedy="a correlation over pairs needs three or more")
    matrix = _matrix(similarity, prompts)
    weight = 1 - disagreement(weights, laid.classes, scores=scores, ranked=laid.ranked)
    counts = unit_counts(codes, len(laid.classes))
    n = counts.sum(-1)
    kept = complete_items(laid, n, need=1, incomplete=incomplete, facet=prompt)
    k, other = np.triu_indices(len(prompts), 1)
    share = counts / np.maximum(n, 1)[..., None]
    across = np.einsum("gioka,ab,giolb->gikl", share, weight, share, optimize=True)[..., k, other] / share.shape[2]
    columns = np.concatenate([np.ones((*kept.shape, 1)), across], axis=-1) * kept[..., None]

    sums = resampled_sums(
        columns.transpose(1, 0, 2).reshape(columns.shape[1], -1), draws=draws, seed=seed, strata=laid.strata
    ).reshape((draws, *columns.shape[::2]))
    once, resampled = _means_of(columns.sum(1)[None]), _means_of(sums)
    relabelled = _relabelled(matrix, seed)
    every = range(len(columns))
    studies = [_study(chosen, once, resampled, relabelled) for chosen in (*([g] for g in every), list(every))]
    found, drawn = measured(
        by=laid.by,
        measures=list(MEASURES),
        values=[
            [Value(float(x), (FLAT if own.any() else NO_ITEM) if np.isnan(x) else "") for x in one.point]
            for one, own in zip(studies[:-1], kept, strict=True)
        ],
        draws=np.stack([one.draws for one in studies[:-1]]),
        level=level,
        counts={"n_items": kept.sum(1)},
    )
    dims = tuple(name for name, _ in laid.by)
    shape = tuple(len(levels) for _, levels in laid.by)
    means = np.full((len(columns), len(prompts), len(prompts)), np.nan)
    means[:, k, other] = means[:, other, k] = once[0]
    pooled = studies[-1]
    pooled_bands = [band(row, level=level) for row in pooled.draws]
    found = found.assign(
        pvalue=((*dims, "measure"), np.stack([one.pvalue for one in studies[:-1]]).reshape((*shape, len(MEASURES)))),
        pooled=("measure", pooled.point),
        pooled_lower=("measure", [one.lower for one in pooled_bands]),
        pooled_upper=("measure", [one.upper for one in pooled_bands]),
        pooled_pvalue=("measure", pooled.pvalue),
        agreement=((*dims, prompt, "other"), means.reshape((*shape, *means.shape[1:]))),
        similarity=((prompt, "other"), matrix),
    ).assign_coords({prompt: list(prompts), "other": list(prompts)})
    exact = len(prompts) <= LARGEST_EXACT
    least = 1 / math.factorial(len(prompts)) if exact else 1 / (RANDOM + 1)
    notes = (
        f"p: two-sided, {'all' if exact else RANDOM} relabellings of {len(prompts)} prompts (at least {least:.2g}).",
    )
    figure = drawn_pairs(found, prompt=prompt, by=laid.by)
    return StudyResult("Similarity of prompts and agreement", found, (_table(found, laid.by),), notes, drawn, (figure,))


def _matrix(similarity: pd.DataFrame | Mapping[tuple[str, str], float], prompts: Sequence[str]) -> Array:
    if isinstance(similarity, Mapping):
        pairs = {(str(a), str(b)): float(x) for (a, b), x in similarity.items()}
    else:
        pairs = {(str(a), str(b)): float(x) for a, row in similarity.iterrows() for b, x in row.items()}
    matrix = np.ones((len(prompts), len(prompts)))
    for i, a in enumerate(prompts):
        for j, b in enumerate(prompts):
            if i == j:
                continue
            value = pairs.get((a, b), pairs.get((b, a)))
            if value is None or not math.isfinite(value):
                raise InputError(f"no similarity of {a!r} and {b!r}", place="similarity", remedy="give every pair")
            if abs(value - pairs.get((b, a), value)) > 1e-9:
                raise InputError(f"{a!r}, {b!r}: {value:g} one way, {pairs[b, a]:g} the other", place="similarity")
            matrix[i, j] = value
    return matrix


def _relabelled(matrix: Array, seed: int) -> Array:
    # Similarities of the pairs under relabellings of the prompts, the identity first: (relabellings, pairs).
    size = len(matrix)
    if size <= LARGEST_EXACT:
        orders = np.array(list(permutations(range(size))))
    else:
        rng = np.random.default_rng(seed)
        orders = np.stack([np.arange(size), *(rng.permutation(size) for _ in range(RANDOM))])
    k, other = np.triu_indices(size, 1)
    return np.asarray(matrix[orders[:, k], orders[:, other]])


def _means_of(sums: Array) -> Array:
    # (draws, groups, 1 + pairs) -> (draws, groups, pairs)
    return quotient(sums[..., 1:], sums[..., :1])


class _Study(NamedTuple):
    point: Array
    pvalue: Array
    draws: Array


def _study(chosen: list[int], once: Array, drawn: Array, relabelled: Array) -> _Study:
    # All pairs of prompts of the chosen groups together; the similarities are the same in every group.
    x = np.tile(relabelled, (1, len(chosen)))
    y = once[:, chosen].reshape(1, -1)
    values = np.stack([_correlation(name, x, y) for name in MEASURES])
    extreme = (np.abs(values) >= np.abs(values[:, :1]) - 1e-9).mean(1)
    flat = np.isnan(values[:, 0])
    held = np.stack([_correlation(name, x[:1], drawn[:, chosen].reshape(len(drawn), x.shape[1])) for name in MEASURES])
    return _Study(values[:, 0], np.where(flat, np.nan, extreme), held)


def _correlation(name: str, x: Array, y: Array) -> Array:
    from scipy.stats import rankdata

    if name == "spearman":
        x, y = rankdata(x, axis=-1), rankdata(y, axis=-1) if len(y) else y
    x, y = x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True)
    scale = np.sqrt((x * x).sum(-1) * (y * y).sum(-1))
    both = (x * y).sum(-1)
    return np.asarray(np.divide(both, scale, out=np.full(both.shape, np.nan), where=scale > 1e-12))


def _table(found: xr.Dataset, by: By) -> Table:
    names = [name for name, _ in by]
    rows: list[tuple[str | int | float | None, ...]] = []
    for group in group_labels(by):
        for measure in MEASURES:
            one = found.sel(dict(zip(names, group, strict=True))).sel(measure=measure)
            rows.append((*group, measure, *(float(one[key]) for key in ("estimate", "lower", "upper", "pvalue"))))
    if len(group_labels(by)) > 1:
        for measure in MEASURES:
            one = found.sel(measure=measure)
            keys = ("pooled", "pooled_lower", "pooled_upper", "pooled_pvalue")
            rows.append(("all", *[""] * (len(names) - 1), measure, *(float(one[key]) for key in keys)))
    percent = f"{100 * float(found.attrs['level']):g} %"
    return Table("", (*names, "correlation", "estimate", f"lower {percent}", "upper", "p"), tuple(rows))
