"""Votes to one decision: plurality and strict majority with declared ties, mean and median of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondorder._canon import blake2b_64
from secondorder.errors import InputError, TableError
from secondorder.studies._disagreement import Array
from secondorder.studies._parts import Codes, unit_counts

__all__ = ["Ties", "Votes", "check_ties", "chosen", "decision_weights", "score_of_votes", "vote"]

Ties = Literal["abstain", "ordered", "random"]
ABSTAINED = -1


class Votes(NamedTuple):
    """Decisions.

    Attributes
    ----------
    codes : int array
        Class code; -1 where the rule abstains or nobody voted.
    tied : bool array
        Whether several classes have the most votes.
    """

    codes: Codes
    tied: NDArray[np.bool_]


def check_ties(ties: Ties, *, ranked: bool = True) -> None:
    """Refuse an unknown rule for ties, and an order of classes (`ranked`: somebody gave one) that is the alphabet's."""
    if ties not in get_args(Ties):
        raise InputError(f"ties={ties!r}", place="ties", remedy=f"say one of {', '.join(get_args(Ties))}")
    if ties == "ordered" and not ranked:
        raise InputError(
            "the classes were found in the data: a tie would go to the first of the alphabet",
            place="ties",
            remedy="give classes= in their order, or ties='random'",
        )


def decision_weights(counts: Array, *, rule: str, ties: Ties, n_voters: int) -> Array:
    """Probability of each decision at given vote counts: (..., classes + 1), the last for abstaining.

    Parameters
    ----------
    counts : array, shape (..., classes)
    rule : {"plurality", "majority"}
        Most votes; or more than half of the voters asked.
    ties : {"abstain", "ordered", "random"}
        What plurality does where several classes have the most votes: decide nothing, take the first of them in the
        declared order of the classes (which favours that class), or draw one of them.
    n_voters : int
        Voters asked, whether or not they voted.

    Examples
    --------
    >>> decision_weights(np.array([2.0, 2.0, 0.0]), rule="plurality", ties="random", n_voters=4).tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    most = counts.max(-1, keepdims=True)
    if rule == "majority":
        ahead = ((counts == most) & (2 * most > n_voters)).astype(float)
    else:
        ahead = ((counts == most) & (most > 0)).astype(float)
        several = ahead.sum(-1, keepdims=True)
        if ties == "abstain":
            ahead = np.where(several > 1, 0.0, ahead)
        elif ties == "ordered":
            ahead = ahead * (np.cumsum(ahead, axis=-1) == 1)
        else:
            ahead = ahead / np.maximum(several, 1)
    return np.concatenate([ahead, 1 - ahead.sum(-1, keepdims=True)], axis=-1)


def chosen(weights: Array, uniform: Array) -> Codes:
    """One decision from each distribution, by inversion at `uniform`; -1 for abstaining."""
    code = (np.cumsum(weights, axis=-1) <= uniform[..., None]).sum(-1)
    return np.where(code >= weights.shape[-1] - 1, ABSTAINED, code).astype(np.int64)


def tied(counts: Array) -> NDArray[np.bool_]:
    """Whether several classes have the most votes."""
    most = counts.max(-1, keepdims=True)
    return np.asarray(((counts == most) & (most > 0)).sum(-1) > 1)


def uniforms(where: NDArray[np.bool_], labels: Sequence[Sequence[str]], seed: int) -> Array:
    """A number in [0, 1) for every True of `where`: a function of the seed and the labels there, 0 elsewhere.

    It does not depend on which other items there are.
    """
    found = np.zeros(where.shape)
    for index in np.argwhere(where):
        key = [names[i] for names, i in zip(labels, index.tolist(), strict=True)]
        found[tuple(index)] = blake2b_64(["tie", seed, *key]) / 2**64
    return found


def vote(
    codes: ArrayLike,
    *,
    rule: Literal["plurality", "majority"] = "plurality",
    ties: Ties = "abstain",
    n_classes: int | None = None,
    seed: int = 0,
) -> Votes:
    """One decision for each row of votes.

    Parameters
    ----------
    codes : int array, shape (items, voters)
        Class codes from 0; -1 for no vote.
    rule : {"plurality", "majority"}
        Most votes; or more than half of the voters (missing votes count as voters).
    ties : {"abstain", "ordered", "random"}
        For plurality. ``ordered`` takes the first class in the declared order, a bias that is built in and declared;
        ``random`` draws by a hash of `seed` and the row's position.
    n_classes : int, optional
        Default: the largest code + 1.
    seed : int

    Returns
    -------
    Votes

    Raises
    ------
    TableError, InputError
        When the codes are none, or the rule is unknown.

    Examples
    --------
    Two rows of the same votes are tied, in whatever order they came:

    >>> vote([[1, 0, 0, 1], [0, 1, 1, 0], [0, 0, 0, 1]])
    Votes(codes=array([-1, -1,  0]), tied=array([ True,  True, False]))
    """
    check_ties(ties)
    if rule not in ("plurality", "majority"):
        raise InputError(f"rule={rule!r}", place="rule", remedy="say 'plurality' or 'majority'")
    array = np.asarray(codes)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer) or array.min(initial=0) < -1:
        raise TableError(
            f"votes have shape {array.shape} and type {array.dtype}",
            place="codes",
            remedy="give whole-number class codes, item x voter, -1 for no vote",
        )
    size = int(array.max(initial=-1)) + 1 if n_classes is None else n_classes
    counts = unit_counts(array[:, None, :].astype(np.int64), max(size, 1))[:, 0]
    weights = decision_weights(counts, rule=rule, ties=ties, n_voters=array.shape[1])
    draws = uniforms(tied(counts), [[str(row) for row in range(len(array))]], seed)
    return Votes(chosen(weights, draws), tied(counts))


def score_of_votes(counts: Array, scores: Array, rule: str) -> Array:
    """Mean or median score of the votes that have one; NaN where none has.

    Parameters
    ----------
    counts : array, shape (..., classes)
    scores : array, shape (classes,)
        NaN for ⊥.
    rule : {"mean", "median"}
        The median of an even number of votes is the middle of the two central ones.

    Examples
    --------
    >>> counts, scores = np.array([1.0, 0.0, 3.0, 1.0]), np.array([1, 2, 4, np.nan])
    >>> [float(score_of_votes(counts, scores, rule)) for rule in ("mean", "median")]
    [3.25, 4.0]
    """
    order = np.argsort(scores, kind="stable")
    order = order[~np.isnan(scores[order])]
    held, value = counts[..., order], scores[order]
    n = held.sum(-1)
    if rule == "mean":
        return np.asarray(np.divide(held @ value, n, out=np.full(n.shape, np.nan), where=n > 0))
    if not len(value):
        return np.full(n.shape, np.nan)
    upto = np.cumsum(held, axis=-1)
    low, high = ((upto < rank[..., None]).sum(-1) for rank in (np.ceil(n / 2), np.floor(n / 2) + 1))
    last = len(value) - 1
    return np.where(n > 0, (value[np.minimum(low, last)] + value[np.minimum(high, last)]) / 2, np.nan)
