"""Error rates of voters from their agreement with each other alone, and the weighted majority that they give."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondorder.errors import TableError, UndefinedError
from secondorder.studies._disagreement import Array

__all__ = ["ErrorRates", "label_free_rates", "weighted_majority"]

STEPS = 500
SETTLED = 1e-12


class ErrorRates(NamedTuple):
    """What is known of each voter.

    Attributes
    ----------
    confusion : array, shape (voters, classes, classes)
        ``[v, right, said]``; rates that the moments put outside [0, 1] stand at the bound.
    prior : array, shape (classes,)
    held : int
        Rates that stood outside and were put at the bound.
    """

    confusion: Array
    prior: Array
    held: int


def label_free_rates(codes: ArrayLike, *, n_classes: int) -> ErrorRates:
    """Error rates of voters without any right answer, from their pairwise (and three-way) agreement.

    Voters are taken to err independently given the right class, and to be right more often than chance on the whole.

    * Two classes: two rates for each voter. The covariance of two voters is ``v_i v_j`` with
      ``v = sqrt(1 - b^2) (sensitivity + specificity - 1)`` and ``b`` the class imbalance, and the third central moment
      of three is ``-2b / sqrt(1 - b^2)`` times ``v_i v_j v_k``.
    * More classes: one accuracy for each voter, errors spread evenly over the other classes: the agreement of two,
      corrected for 1/classes, is ``c_i c_j`` with ``c = (accuracy - 1/C) / (1 - 1/C)``. Equal priors.

    Parameters
    ----------
    codes : int array, shape (tasks, voters)
        Class codes; -1 for no vote.
    n_classes : int

    Returns
    -------
    ErrorRates

    Raises
    ------
    TableError
        When there are fewer than three voters or two classes: agreement then does not say who errs.
    UndefinedError
        When two voters share no task, or agreement is no better than chance.

    References
    ----------
    Parisi, Strino, Nadler and Kluger, PNAS 111 (2014), 1253; Jaffe, Nadler and Kluger, AISTATS 2015, 407.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> right = rng.random(20000) < 0.3
    >>> wrong = rng.random((20000, 4)) < np.where(right[:, None], [0.1, 0.2, 0.3, 0.4], [0.05, 0.1, 0.2, 0.3])
    >>> found = label_free_rates((right[:, None] ^ wrong).astype(int), n_classes=2)
    >>> found.confusion[:, 1, 0].round(1).tolist(), round(float(found.prior[1]), 1)
    ([0.1, 0.2, 0.3, 0.4], 0.3)
    """
    votes = np.asarray(codes)
    if votes.ndim != 2 or votes.shape[1] < 3 or n_classes < 2:
        raise TableError(
            f"votes of shape {votes.shape} in {n_classes} classes",
            place="label_free_rates",
            remedy="agreement says who errs only with three voters or more, and two classes or more",
        )
    there = votes >= 0
    shared = there.astype(float).T @ there.astype(float)
    if (shared == 0).any():
        raise UndefinedError("two voters share no task", place="label_free_rates", remedy="leave one of them out")
    if n_classes == 2:
        confusion, prior = _two_rates(np.where(there, votes, 0) * 2.0 - 1.0, there, shared)
    else:
        confusion, prior = _one_rate(votes, there, shared, n_classes)
    least = 0.5 / len(votes)  # half a task: a rate of exactly 0 would give a single vote infinite weight
    bounded = np.clip(confusion, least, 1 - least)
    bounded = bounded / bounded.sum(-1, keepdims=True)
    return ErrorRates(bounded, prior, int(((confusion < 0) | (confusion > 1)).any(-1).sum()))


def _two_rates(signs: Array, there: NDArray[np.bool_], shared: Array) -> tuple[Array, Array]:
    held = np.where(there, signs, 0.0)
    mean = held.sum(0) / there.sum(0)
    centred = np.where(there, signs - mean, 0.0)
    covariance = (centred.T @ centred) / shared
    strength = _rank_one(covariance)
    above, below = 0.0, 0.0
    for i, j, k in combinations(range(signs.shape[1]), 3):
        n = float((there[:, i] & there[:, j] & there[:, k]).sum())
        if n:
            product = strength[i] * strength[j] * strength[k]
            above += float((centred[:, i] * centred[:, j] * centred[:, k]).sum()) / n * product
            below += product * product
    skew = above / below if below > 0 else 0.0
    imbalance = -skew / np.sqrt(4 + skew * skew)
    odds = np.sqrt((1 - imbalance) / (1 + imbalance))
    sensitivity = (1 + mean + strength * odds) / 2
    specificity = (1 - mean + strength / odds) / 2
    rows = [np.stack([specificity, 1 - specificity], axis=-1), np.stack([1 - sensitivity, sensitivity], axis=-1)]
    return np.stack(rows, axis=1), np.array([(1 - imbalance) / 2, (1 + imbalance) / 2])


def _one_rate(votes: NDArray[np.int64], there: NDArray[np.bool_], shared: Array, size: int) -> tuple[Array, Array]:
    said = np.stack([votes == code for code in range(size)]).astype(float)
    equal = np.einsum("cti,ctj->ij", said, said)
    skill = _rank_one((size * equal / shared - 1) / (size - 1))
    right = 1 / size + (1 - 1 / size) * skill
    confusion = np.repeat(((1 - right) / (size - 1))[:, None, None], size, axis=1).repeat(size, axis=2)
    confusion[:, np.arange(size), np.arange(size)] = right[:, None]
    return confusion, np.full(size, 1 / size)


def _rank_one(matrix: Array) -> Array:
    """The vector whose products come closest to the off-diagonal entries, mostly positive."""
    off = matrix - np.diag(np.diag(matrix))
    if off.sum() <= 0:
        raise UndefinedError(
            "the voters agree no more than chance", place="label_free_rates", remedy="agreement does not say who errs"
        )
    vector: Array = np.maximum(off.sum(1), 0) / np.sqrt(off.sum())
    for _ in range(STEPS):
        before = vector.copy()
        for i in range(len(vector)):  # each entry is the least-squares slope of its row on the others
            others = np.delete(vector, i)
            scale = float(others @ others)
            vector[i] = float(np.delete(off[i], i) @ others) / scale if scale > 0 else 0.0
        if float(np.abs(vector - before).max()) <= SETTLED:
            break
    return -vector if 2 * int((vector > 0).sum()) < len(vector) else vector


def weighted_majority(codes: ArrayLike, rates: ErrorRates) -> Array:
    """Posterior of each class for every task at known error rates, (tasks, classes); NaN where nobody voted.

    Each vote weighs as its log-likelihood ratio: this is the best rule where voters err independently.
    """
    votes = np.asarray(codes)
    joint = np.log(rates.prior)[None, :].repeat(len(votes), axis=0)
    logs = np.log(rates.confusion)
    for voter in range(votes.shape[1]):
        said = votes[:, voter]
        joint += np.where((said >= 0)[:, None], logs[voter][:, np.maximum(said, 0)].T, 0.0)
    joint -= joint.max(-1, keepdims=True)
    weights = np.exp(joint)
    silent = np.all(votes < 0, axis=1, keepdims=True)
    return np.where(silent, np.nan, weights / weights.sum(-1, keepdims=True))
