"""Training a gate, and splits that keep items or whole data sets apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._schema import ITEM, PROMPT
from secondorder._statistics._checked import whole
from secondorder.errors import InputError
from secondorder.studies._disagreement import Array
from secondorder.studies._gate import Gate
from secondorder.studies._gate_cases import Cases, make_cases
from secondorder.studies._ratings import Invalid
from secondorder.studies._signals import encode, fit_signals
from secondorder.studies._stopping import Stop
from secondorder.studies._votes import Ties, check_ties

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OutOfFold", "best_threshold", "fit_cases", "fit_gate", "matthews", "out_of_fold"]

INNER_FOLDS = 5


class OutOfFold(NamedTuple):
    """What gates say of cases that they were not trained on.

    Attributes
    ----------
    probability : array, shape (cases,)
    threshold : array, shape (cases,)
        That of the gate which judged the case.
    folds : int
    """

    probability: Array
    threshold: Array
    folds: int


def fit_gate(
    data: xr.Dataset | xr.DataArray,
    *,
    voters: str = PROMPT,
    first: str | None = None,
    signals: tuple[str, ...] = ("verdict",),
    features: pd.DataFrame | None = None,
    classifier: Any = None,
    threshold: float | None = None,
    stop: Stop | None = None,
    ties: Ties = "abstain",
    invalid: Invalid = "class",
    seed: int = 0,
) -> Gate:
    """Train a gate on all items of a cube; see :func:`evaluate_gate` for what it is worth on others.

    Parameters
    ----------
    data, voters, first, signals, features, classifier, threshold, stop, ties, invalid, seed
        As in :func:`evaluate_gate`.

    Returns
    -------
    Gate
        It can be saved where `classifier` is the default one.

    Raises
    ------
    CubeError, InputError
        When a signal is not there, or all cases are alike: a gate has then nothing to learn.

    Examples
    --------
    >>> verdict = [[k % 2, *[1] * 4] for k in range(40)]
    >>> cube = xr.Dataset({"verdict": (("item", "prompt"), verdict)},
    ...                   coords={"class": ["A", "B"], "prompt": ["p1", "p2", "p3", "p4", "p5"]})
    >>> gate = fit_gate(cube)
    >>> gate.opens({"verdict": np.array(["A", "B"])}).tolist()
    [True, False]
    """
    check_ties(ties)
    cases = make_cases(
        data,
        voters=voters,
        first=first,
        signals=signals,
        features=features,
        split=ITEM,
        stop=stop,
        ties=ties,
        gold="",
        invalid=invalid,
        seed=seed,
    )
    if len(set(cases.needs.tolist())) < 2:
        raise InputError(
            f"all {len(cases.needs)} cases are {'unstable' if cases.needs[0] else 'stable'}",
            place="fit_gate",
            remedy="a gate needs cases of both kinds",
        )
    _check_threshold(threshold)
    if threshold is None:
        threshold = _chosen_threshold(cases, np.arange(len(cases.item)), classifier, seed)
    return fit_cases(
        cases, np.arange(len(cases.item)), classifier, threshold, voters=voters, stop=stop, invalid=invalid
    )


def fit_cases(
    cases: Cases,
    rows: NDArray[np.int64],
    classifier: Any,
    threshold: float,
    *,
    voters: str = PROMPT,
    stop: Stop | None = None,
    invalid: Invalid = "class",
) -> Gate:
    """A gate trained on some of the cases."""
    values = {name: column[rows] for name, column in cases.values.items()}
    signals = fit_signals(values)
    x, y = encode(signals, values), cases.needs[rows]
    coefficients, fitted = _fitted(classifier, x, y)
    training = {
        "items": len(set(cases.item[rows].tolist())),
        "cases": len(rows),
        "needs_aggregation": float(y.mean()),
    }
    return Gate(
        voters=voters,
        first=cases.voters[0],
        others=cases.voters[1:],
        classes=cases.classes,
        invalid=invalid,
        stop=stop,
        signals=signals,
        threshold=threshold,
        coefficients=coefficients,
        classifier=fitted,
        training=training,
    )


def _fitted(classifier: Any, x: Array, y: NDArray[np.bool_]) -> tuple[tuple[float, ...] | None, Any]:
    """Coefficients of the default classifier, or the other one, fitted."""
    try:
        from sklearn.base import clone
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        raise InputError(
            "scikit-learn is not installed", place="gate", remedy="pip install 'secondorder[gates]'"
        ) from None
    if classifier is not None:
        return None, clone(classifier).fit(x, y.astype(int))
    if len(set(y.tolist())) < 2:  # the share of cases alone, held off 0 and 1 by half a case
        share = (y.sum() + 0.5) / (len(y) + 1)
        return (*[0.0] * x.shape[1], float(np.log(share / (1 - share)))), None
    model = LogisticRegression(max_iter=1000).fit(x, y.astype(int))
    return (*map(float, model.coef_[0]), float(model.intercept_[0])), None


def folds_of(
    cases: Cases, rows: NDArray[np.int64], *, by_group: bool, folds: int, seed: int
) -> list[NDArray[np.bool_]]:
    """Test masks over `rows` that never cut an item; or one for each data set."""
    if by_group:
        labels = cases.group[rows]
        return [labels == label for label in sorted(set(labels.tolist()))]
    items = np.unique(cases.item[rows])
    order = np.random.default_rng(seed).permutation(items)
    return [np.isin(cases.item[rows], part) for part in np.array_split(order, min(folds, len(items))) if len(part)]


def out_of_fold(
    cases: Cases,
    rows: NDArray[np.int64],
    classifier: Any,
    threshold: float | None,
    *,
    by_group: bool,
    folds: int,
    seed: int,
) -> OutOfFold:
    """Probabilities of cases from gates that saw neither their item nor (`by_group`) their data set.

    Without a threshold each gate takes the best one of its own training cases, found out of fold among these.
    """
    _check_threshold(threshold)
    whole(folds, "folds", least=2)
    masks = folds_of(cases, rows, by_group=by_group, folds=folds, seed=seed)
    if len(masks) < 2:
        raise InputError("one fold", place="split", remedy="give two items or data sets, or more")
    probability, limit = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    for test in masks:
        train = rows[~test]
        cut = _chosen_threshold(cases, train, classifier, seed) if threshold is None else threshold
        gate = fit_cases(cases, train, classifier, cut)
        held: Mapping[str, NDArray[Any]] = {name: column[rows[test]] for name, column in cases.values.items()}
        probability[test], limit[test] = gate.probability(held), cut
    return OutOfFold(probability, limit, len(masks))


def _check_threshold(threshold: float | None) -> None:
    if threshold is not None and not 0 <= threshold <= 1:
        raise InputError(f"{threshold} is no probability", place="threshold", remedy="give a number from 0 to 1")


def _chosen_threshold(cases: Cases, rows: NDArray[np.int64], classifier: Any, seed: int) -> float:
    inner = out_of_fold(cases, rows, classifier, 0.5, by_group=False, folds=INNER_FOLDS, seed=seed)
    return best_threshold(inner.probability, cases.needs[rows])


def best_threshold(probability: Array, needs: NDArray[np.bool_]) -> float:
    """Threshold of the largest Matthews correlation, halfway between two probabilities; 0.5 where all are alike."""
    order = np.argsort(-probability, kind="stable")
    ranked, hits = probability[order], np.cumsum(needs[order])
    last = np.flatnonzero(np.diff(ranked))  # the gate opens for the cases up to here
    if not len(last):
        return 0.5
    hit, opened = hits[last].astype(float), last + 1.0
    false, total = opened - hit, float(needs.sum())
    found = matthews(hit, total - hit, false, len(needs) - total - false)
    if np.isnan(found).all():
        return 0.5
    best = last[int(np.nanargmax(found))]
    return float(ranked[best] + ranked[best + 1]) / 2


def matthews(hit: Array, missed: Array, false: Array, shut: Array) -> Array:
    """Matthews correlation of true positives, false negatives, false positives and true negatives."""
    scale = np.sqrt((hit + false) * (hit + missed) * (shut + false) * (shut + missed))
    return np.asarray(np.divide(hit * shut - false * missed, scale, out=np.full(scale.shape, np.nan), where=scale > 0))
