"""What a gate is worth on items, or data sets, that it was not trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._results import Table
from secondorder._schema import ITEM, PROMPT
from secondorder.studies._bands import check_draws, resampled_sums
from secondorder.studies._disagreement import Array
from secondorder.studies._gate_cases import Cases, make_cases
from secondorder.studies._gate_figure import draw_curve
from secondorder.studies._gate_fit import OutOfFold, matthews, out_of_fold
from secondorder.studies._parts import Value, quotient
from secondorder.studies._ratings import Invalid
from secondorder.studies._result import Drawn, StudyResult, measure_table, measured
from secondorder.studies._stopping import Stop
from secondorder.studies._votes import Ties, check_ties

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["evaluate_gate"]

MEASURES = {
    "needs": "needs aggregation",
    "tpr": "TPR (opens where needed)",
    "tnr": "TNR (shut where stable)",
    "mcc": "Matthews correlation",
    "recovered": "full decisions recovered",
    "recovered_alone": "… by the first voter alone",
    "recovered_split": "… where no class has a majority",
    "calls": "calls behind the gate",
    "calls_stable": "… of stable cases",
    "calls_needs": "… of needing cases",
    "calls_full": "calls of full aggregation",
    "saved": "saved of asking everybody",
    "saved_full": "saved of full aggregation",
    "accuracy": "accuracy behind the gate",
    "accuracy_alone": "… of the first voter",
    "accuracy_full": "… of full aggregation",
}
REASONS = {
    "tpr": "no case needs aggregation",
    "calls_needs": "no case needs aggregation",
    "tnr": "no case is stable",
    "calls_stable": "no case is stable",
    "mcc": "the cases, or the gate's decisions, are all alike",
    "recovered_split": "every case has a majority",
}
NO_RIGHT = "there are no right classes"
CURVE = 101


def evaluate_gate(
    data: xr.Dataset | xr.DataArray,
    *,
    voters: str = PROMPT,
    first: str | None = None,
    signals: tuple[str, ...] = ("verdict",),
    features: pd.DataFrame | None = None,
    classifier: Any = None,
    split: str = ITEM,
    folds: int = 5,
    threshold: float | None = None,
    stop: Stop | None = None,
    ties: Ties = "abstain",
    gold: str = "gold",
    invalid: Invalid = "class",
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """Train gates on some items and judge them on the others: how many calls they save, and what is lost.

    A gate sees the first voter's verdict and other signals, and says whether the other voters are asked. Positive means
    *needs aggregation*: the first verdict is not the plurality's (a tie has none, so a tied case needs aggregation
    under ``ties="abstain"``).

    Parameters
    ----------
    data : Dataset or DataArray
        A verdict cube; a case is an item under one combination of the dimensions that are no voters.
    voters : str
        Dimension of the voters.
    first : str, optional
        The voter that is always asked. Default: the first.
    signals : tuple of str
        ``"verdict"``: the first verdict; ``"soft"``: its class probabilities, where the cube has them; a dimension
        (``"order"``, ``"judge"``) or a coordinate of the items, labels or numbers.
    features : DataFrame, optional
        More signals, one row for each item: lengths, embeddings (one column for each dimension), …
    classifier : object, optional
        Any scikit-learn classifier with ``predict_proba``; it is cloned. Default: logistic regression.
    split : str
        ``"item"``: test items were not seen in training; or a coordinate of the items, such as ``"dataset"``: each of
        its levels is judged by a gate that was trained on the other levels alone.
    folds : int
        Of the split by items.
    threshold : float, optional
        Probability from which on the gate opens. Default: the largest Matthews correlation among training cases, found
        out of fold among these.
    stop : {"decided", "majority"}, optional
        When full aggregation stops asking (see :func:`convergence`); default: it asks everybody.
    ties : {"abstain", "ordered", "random"}
        Of the plurality.
    gold, invalid
        As in :func:`aggregate`.
    level, draws, seed
        Percentile band over items; the gates' decisions are held, so it does not cover their training.

    Returns
    -------
    StudyResult
        Shares and mean calls by name (see the table). ``curve_*`` over ``threshold``: one threshold for all cases.

    Raises
    ------
    CubeError, InputError
        When a signal is not there, no case is complete, or scikit-learn is not installed.

    Notes
    -----
    Calls are counted case by case: 1 behind a shut gate, what full aggregation asks for behind an open one. Their mean
    follows from the error rates by :func:`gate_costs`, where the costs of full aggregation are those of the cases for
    which the gate opens.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> hard = rng.random(300) < 0.3
    >>> wrong = rng.random((300, 5)) < np.where(hard, 0.4, 0.02)[:, None]
    >>> cube = xr.Dataset({"verdict": (("item", "prompt"), wrong.astype(int))},
    ...                   coords={"class": ["A", "B"], "hard": ("item", hard.astype(float))})
    >>> found = evaluate_gate(cube, signals=("verdict", "hard"), draws=0)
    >>> [round(float(found[name].estimate), 2) for name in ("recovered_alone", "recovered", "calls")]
    [0.92, 0.98, 1.59]
    """
    check_draws(level=level, draws=draws, seed=seed)
    check_ties(ties)
    cases = make_cases(
        data,
        voters=voters,
        first=first,
        signals=signals,
        features=features,
        split=split,
        stop=stop,
        ties=ties,
        gold=gold,
        invalid=invalid,
        seed=seed,
    )
    rows = np.arange(len(cases.item))
    judged = out_of_fold(cases, rows, classifier, threshold, by_group=split != ITEM, folds=folds, seed=seed)
    columns = _columns(cases, judged.probability >= judged.threshold)
    per_item = np.zeros((len(cases.items), columns.shape[1]))
    np.add.at(per_item, cases.item, columns)
    drawn = resampled_sums(per_item, draws=draws, seed=seed, strata=cases.strata)
    numbers = _read(np.concatenate([per_item.sum(0)[None], drawn]), len(cases.voters))
    found, held = measured(
        by=(),
        measures=list(MEASURES),
        values=[[_value(float(x), name) for x, name in zip(numbers[0], MEASURES, strict=True)]],
        draws=numbers[1:].T[None],
        level=level,
        counts={
            "n_cases": np.array([len(rows)]),
            "n_items": np.array([len(set(cases.item.tolist()))]),
            "n_left_out": np.array([cases.left_out]),
        },
    )
    found = found.assign(_curve(cases, judged))
    found.attrs.update(
        voters=voters, first=cases.voters[0], n_voters=len(cases.voters), split=split, folds=judged.folds
    )
    name = "logistic regression" if classifier is None else type(classifier).__name__
    return StudyResult(
        f"Gate before {len(cases.voters)} {voters}s: {name}",
        found,
        (
            measure_table("", found, by=(), labels=MEASURES, counts=("n_cases", "n_items", "n_left_out")),
            _curve_table(found),
        ),
        _notes(cases, judged, split, stop),
        held,
        (Drawn("Cost curve", CAPTION, lambda: draw_curve(found)),),
    )


CAPTION = "Line: one threshold for all cases. Dot: the gate, its thresholds chosen in training. Squares: no gate."


def _columns(cases: Cases, opens: NDArray[np.bool_]) -> Array:
    """What a case adds to each sum."""
    needs, known = cases.needs, cases.right >= 0
    decision = np.where(opens, cases.full, cases.first)
    split = ~cases.majority
    calls = np.where(opens, cases.cost, 1.0)
    parts = (
        np.ones(len(needs)),
        needs & opens,
        needs & ~opens,
        ~needs & opens,
        ~needs & ~opens,
        opens | ~needs,  # behind an open gate the full decision is what is decided
        split & (opens | ~needs),
        split,
        calls,
        calls * ~needs,
        calls * needs,
        cases.cost,
        known,
        known & (decision == cases.right),
        known & (cases.first == cases.right),
        known & (cases.full == cases.right),
    )
    return np.stack(parts, axis=-1).astype(float)


def _read(sums: Array, n_voters: int) -> Array:
    """Sums of columns to measures, in the order of ``MEASURES``."""
    n, hit, missed, false, shut, same, same_split, split, calls, calls_s, calls_n, full, known, *right = (
        sums[..., k] for k in range(sums.shape[-1])
    )
    needs, stable = hit + missed, false + shut
    mean, cost = quotient(calls, n), quotient(full, n)
    return np.stack(
        [
            quotient(needs, n),
            quotient(hit, needs),
            quotient(shut, stable),
            matthews(hit, missed, false, shut),
            quotient(same, n),
            quotient(stable, n),
            quotient(same_split, split),
            mean,
            quotient(calls_s, stable),
            quotient(calls_n, needs),
            cost,
            1 - mean / n_voters,
            1 - quotient(mean, cost),
            *(quotient(x, known) for x in right),
        ],
        axis=-1,
    )


def _value(number: float, name: str) -> Value:
    return Value(number, REASONS.get(name, NO_RIGHT) if np.isnan(number) else "")


def _curve(cases: Cases, judged: OutOfFold) -> dict[str, xr.DataArray]:
    """Error rates, calls and recovered decisions at one threshold for all cases."""
    limits = np.linspace(0, 1, CURVE)
    numbers = np.stack(
        [_read(_columns(cases, judged.probability >= limit).sum(0), len(cases.voters)) for limit in limits], axis=-1
    )
    told = ("tpr", "tnr", "calls", "recovered", "accuracy")
    place = {name: index for index, name in enumerate(MEASURES)}
    return {
        f"curve_{name}": xr.DataArray(numbers[place[name]], dims="threshold", coords={"threshold": limits})
        for name in told
    }


def _curve_table(found: xr.Dataset) -> Table:
    told = ("tpr", "tnr", "calls", "recovered")
    rows = tuple(
        (float(limit), *(float(found[f"curve_{name}"].sel(threshold=limit)) for name in told))
        for limit in found["threshold"].to_numpy()[10:-1:10]
    )
    return Table("One threshold for all cases", ("threshold", "TPR", "TNR", "calls", "recovered"), rows)


def _notes(cases: Cases, judged: OutOfFold, split: str, stop: str | None) -> tuple[str, ...]:
    low, high = float(judged.threshold.min()), float(judged.threshold.max())
    kept = "items" if split == ITEM else f"whole levels of {split}"
    return (
        f"First: {cases.voters[0]!r}; behind the gate: {', '.join(map(repr, cases.voters[1:]))}.",
        f"Signals: {', '.join(cases.values)}. Training and test differ in {kept} ({judged.folds} folds).",
        f"Thresholds {low:.3f} to {high:.3f}. Full aggregation "
        + ("asks everybody." if stop is None else f"stops when the outcome is settled ({stop})."),
        "The gates are held in the bands: their training is not drawn anew.",
    )
