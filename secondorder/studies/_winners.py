"""Does a prompt win? Accuracy or correlation with human scores under each prompt, and the differences of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import xarray as xr

from secondorder._labels._results import Table
from secondorder._schema import CLASS, PROMPT, REPEAT
from secondorder.errors import InputError, KernelError
from secondorder.studies._bands import alone, band, check_draws, item_draws
from secondorder.studies._correlations import CORRELATIONS, make_points, weighted
from secondorder.studies._disagreement import Array, class_scores
from secondorder.studies._figures import drawn_measures
from secondorder.studies._layout import By, as_names, group_labels
from secondorder.studies._matches import matches, shares
from secondorder.studies._panel import are_names
from secondorder.studies._parts import Value
from secondorder.studies._ratings import arrange
from secondorder.studies._result import StudyResult, measure_table, measured
from secondorder.studies._scores import Incomplete, ScoreRows, prompt_means, score_rows

__all__ = ["prompt_winners"]

NO_POINTS = "no answer has both a score and a human score"
CONSTANT = "the scores or the human scores do not vary"
NO_RIGHT = "no answer has both a verdict and a right class"
ACCURACY = "accuracy"
LABELS = {ACCURACY: "accuracy", "pearson": "Pearson", "spearman": "Spearman", "kendall": "Kendall τ-b"}


def prompt_winners(
    data: xr.Dataset | xr.DataArray,
    *,
    gold: str = "gold",
    prompt: str = PROMPT,
    by: str | Sequence[str] | None = None,
    system: str | None = None,
    match: str | None = None,
    correlations: Sequence[str] | None = None,
    scores: Mapping[str, float] | None = None,
    valid: tuple[float, float] | None = None,
    incomplete: Incomplete = "common",
    repeat: str = REPEAT,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """Accuracy or correlation with human scores under each prompt, and whether a prompt is better than another.

    The numbers of several prompts against one set of human answers depend on each other; their differences are read
    from item draws that they share.

    Parameters
    ----------
    data : Dataset or DataArray
        A verdict cube, or scores (:func:`make_scores`); repeated calls and orders are averaged.
    gold : str
        Variable or item coordinate of the human scores, or of the right classes.
    prompt, by
        Dimension of the wordings; dimensions or item coordinates to group by (default ``judge``).
    system, match : str, optional
        Where items are answers of several systems: their dimension or coordinate, and the coordinate that says which
        items answer the same thing. Such items are resampled together.
    correlations : sequence of {"pearson", "spearman", "kendall"}, optional
        Default: all three; where classes are words without scores, or a cube says that they are names (``kernel``
        nominal), ``accuracy`` against the right classes instead. The cost of Kendall's tau-b is quadratic in the number
        of different (score, human score) points.
    scores, valid
        Scores of classes; range outside of which a score is invalid (set aside and counted).
    incomplete : {"common", "available"}
        Compare prompts on the answers that have a score under all of them, or each on what it has.
    repeat, level, draws, seed
        Dimension of the calls; percentile band over items.

    Returns
    -------
    StudyResult
        The correlations (or ``accuracy``, ⊥ being wrong) for each group and prompt. ``best_share``: share of draws in
        which the prompt is the best (ties shared); under no difference each of K prompts has about 1/K.
        :func:`differences` gives every pair of prompts.

    Raises
    ------
    CubeError, InputError
        When there are no human scores or no such dimension.

    Examples
    --------
    >>> rows = [{"q": q, "prompt": p, "s": s, "human": h}
    ...         for q, h, a, b in [(1, 1, 1, 2), (2, 2, 2, 2), (3, 3, 3, 1), (4, 5, 5, 4)]
    ...         for p, s in (("A", a), ("B", b))]
    >>> from secondorder.studies import make_scores
    >>> found = prompt_winners(make_scores(rows, item="q", score="s", facets=["prompt"], gold="human"), draws=200)
    >>> found["pearson"].estimate.round(3).to_numpy().tolist()
    [1.0, 0.659]
    """
    check_draws(level=level, draws=draws, seed=seed)
    names = tuple(CORRELATIONS) if correlations is None else as_names(correlations)
    if not names or set(names) - set(CORRELATIONS):
        raise InputError(f"correlations {list(names)}", place="correlations", remedy=f"some of {list(CORRELATIONS)}")
    right = matches(data, gold) if correlations is None and scores is None and _in_words(data) else None
    if right is None:
        asked: dict[str, Any] = {"gold": gold, "scores": scores, "valid": valid}
    else:
        names, asked = (ACCURACY,), {}
    scored = data if right is None else right
    rows = score_rows(scored, prompt=prompt, by=by, system=system, match=match, repeat=repeat, **asked)
    means = prompt_means(rows, incomplete=incomplete)
    compute = _accuracies if right is not None else _correlations
    blocks = item_draws(len(rows.clusters), draws=draws, seed=seed, strata=rows.strata)
    once, held = compute(rows, means, names, blocks)
    grouping: By = (*rows.by, (prompt, rows.prompts))
    used = ~np.isnan(means) if rows.gold is None else ~np.isnan(means) & ~np.isnan(rows.gold)[None, :, None]
    counted = used.sum(1).ravel()
    single = (used & alone(len(rows.clusters), rows.strata)[rows.cluster][:, None]).any(1)
    held[single.ravel()] = np.nan
    values = [
        [_value(float(x), n, name) for x, name in zip(row, names, strict=True)]
        for row, n in zip(once, counted.tolist(), strict=True)
    ]
    calls = rows if right is None else arrange(data, inner=[prompt], by=by)
    found, drawn = measured(
        by=grouping,
        measures=list(names),
        values=values,
        draws=held,
        level=level,
        counts={
            "n_answers": counted,
            "n_invalid": np.repeat(calls.n_invalid, len(rows.prompts)),
            "n_missing": np.repeat(calls.n_missing, len(rows.prompts)),
        },
    )
    found = found.assign(best_share=_best(drawn, prompt))
    table = measure_table("", found, by=grouping, labels=LABELS)
    said = "scores" if right is None else "verdicts"
    notes = [
        f"{', '.join(group) or 'all'}: {invalid} invalid, {missing} missing {said}"
        for group, invalid, missing in zip(group_labels(rows.by), calls.n_invalid, calls.n_missing, strict=True)
        if invalid or missing
    ]
    if right is not None:
        notes.append("Accuracy: share of calls that give the right class, every cell weighing alike; ⊥ is wrong.")
    notes.append(f"Prompts are compared on {'the answers they share' if incomplete == 'common' else 'what each has'}.")
    notes.append("The largest difference is chosen on the data that it is read from: it flatters the best prompt.")
    title = "Accuracy by prompt" if right is not None else "Correlation with human scores by prompt"
    figure = drawn_measures(found, LABELS, title=title)
    return StudyResult(
        "Does a prompt win?", found, (table, _summary(found, drawn, rows.by, prompt)), tuple(notes), drawn, (figure,)
    )


def _in_words(data: xr.Dataset | xr.DataArray) -> TypeGuard[xr.Dataset]:
    """Whether these are verdicts whose classes are no numbers, or are declared to be mere names."""
    if not isinstance(data, xr.Dataset) or "verdict" not in data or CLASS not in data.coords:
        return False
    if are_names(data):
        return True
    try:
        class_scores([str(label) for label in data[CLASS].to_numpy()])
    except KernelError:
        return True
    return False


def _correlations(rows: ScoreRows, means: Array, names: Sequence[str], blocks: Iterable[Array]) -> tuple[Array, Array]:
    """Correlations of every group and prompt, (groups x prompts, names), and their draws, with a last axis."""
    human, n_clusters = rows.gold if rows.gold is not None else np.zeros(0), len(rows.clusters)
    points = [
        make_points(means[g, :, k], human, rows.cluster, n_clusters)
        for g in range(len(means))
        for k in range(len(rows.prompts))
    ]
    drawn = [np.stack([weighted(one, block, names) for one in points]) for block in (np.ones((1, n_clusters)), *blocks)]
    found = np.concatenate(drawn, axis=-1)
    return found[..., 0], found[..., 1:]


def _accuracies(rows: ScoreRows, means: Array, names: Sequence[str], blocks: Iterable[Array]) -> tuple[Array, Array]:
    """The same for the one measure accuracy: `means` are shares of right calls."""
    drawn = [
        np.stack([shares(group, block[:, rows.cluster]) for group in means])
        for block in (np.ones((1, len(rows.clusters))), *blocks)
    ]
    found = np.concatenate(drawn, axis=1).transpose(0, 2, 1).reshape(-1, len(names), sum(len(d[0]) for d in drawn))
    return found[..., 0], found[..., 1:]


def _value(number: float, answers: int, name: str) -> Value:
    reason = CONSTANT if answers else NO_RIGHT if name == ACCURACY else NO_POINTS
    return Value(number, reason if np.isnan(number) else "")


def _best(drawn: xr.DataArray, prompt: str) -> xr.DataArray:
    # A draw in which some prompt has no value tells nothing about the best.
    if not drawn.sizes["draw"]:
        return xr.full_like(drawn.isel(draw=slice(1)).sum("draw"), np.nan)
    top = (drawn == drawn.max(prompt, skipna=False)) & drawn.notnull().all(prompt)
    count = top.sum(prompt)
    return (top / count.where(count > 0)).mean("draw")


def _summary(found: xr.Dataset, drawn: xr.DataArray, by: By, prompt: str) -> Table:
    names = [name for name, _ in by]
    percent = f"{100 * float(found.attrs['level']):g} %"
    rows: list[tuple[str | int | float | None, ...]] = []
    for group in group_labels(by):
        place = dict(zip(names, group, strict=True))
        for measure in found["measure"].to_numpy().tolist():
            here = found.sel(place).sel(measure=measure)
            estimate: Array = here["estimate"].to_numpy().astype(float)
            if np.isnan(estimate).any():
                continue
            best, worst = int(estimate.argmax()), int(estimate.argmin())
            one = drawn.sel(place).sel(measure=measure)
            gap = band(
                one.isel({prompt: best}).to_numpy() - one.isel({prompt: worst}).to_numpy(),
                level=float(found.attrs["level"]),
            )
            labels = found[prompt].to_numpy()
            share = float(here["best_share"][best])
            rows.append(
                (
                    *group,
                    LABELS[measure],
                    str(labels[best]),
                    share,
                    str(labels[worst]),
                    float(estimate[best] - estimate[worst]),
                    gap.lower,
                    gap.upper,
                )
            )
    columns = (*names, "measure", "best", "share", "worst", "diff.", f"lower {percent}", "upper")
    return Table("Best prompt (share of draws in which it is best) against the worst", columns, tuple(rows))
