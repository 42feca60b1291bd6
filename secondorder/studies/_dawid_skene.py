"""Dawid and Skene's model: every voter has error rates of its own, and the right class of each task is unobserved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from secondorder.errors import TableError, UndefinedError
from secondorder.studies._disagreement import Array

__all__ = ["Skills", "dawid_skene"]


class Skills(NamedTuple):
    """A fitted model.

    Attributes
    ----------
    posterior : array, shape (tasks, classes)
        Probability of each class being the right one; NaN for a task without votes.
    prior : array, shape (classes,)
    confusion : array, shape (voters, classes, classes)
        ``[v, right, said]``; NaN rows where no posterior mass has that right class for the voter.
    log_likelihood : float
    steps : int
    converged : bool
        Whether the last step raised the log-likelihood by no more than the tolerance.
    """

    posterior: Array
    prior: Array
    confusion: Array
    log_likelihood: float
    steps: int
    converged: bool


def dawid_skene(votes: ArrayLike, *, steps: int = 1000, tolerance: float = 1e-8) -> Skills:
    """Maximum likelihood of voters' error rates and of the right classes, by expectation-maximisation.

    Parameters
    ----------
    votes : array, shape (tasks, voters, classes)
        How often each voter said each class; a voter may vote on a task several times, or never.
    steps : int
        Most steps.
    tolerance : float
        Largest gain in log-likelihood per task at which the climb has ended.

    Returns
    -------
    Skills

    Raises
    ------
    TableError
        When `votes` is no table of counts.
    UndefinedError
        When no task has a vote.

    Notes
    -----
    The climb starts from the shares of votes, and no smoothing is added. The model assumes that voters err
    independently given the right class, which prompts of one model do not: their common errors look like skill.

    References
    ----------
    A. P. Dawid and A. M. Skene, Applied Statistics 28 (1979), 20-28.

    Examples
    --------
    >>> votes = np.eye(2)[[[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]]]
    >>> dawid_skene(votes).posterior.round(3).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    """
    counts = np.asarray(votes, dtype=float)
    if counts.ndim != 3 or not np.isfinite(counts).all() or (counts < 0).any():
        raise TableError(f"votes have shape {counts.shape}", place="votes", remedy="give counts, task x voter x class")
    voted = counts.sum((1, 2)) > 0
    if not voted.any():
        raise UndefinedError("no task has a vote", place="dawid_skene", remedy="give at least one")
    held = counts[voted]
    posterior = held.sum(1) / held.sum((1, 2))[:, None]
    before, step, converged = -np.inf, 0, False
    prior, confusion = _maximise(held, posterior)
    while step < steps and not converged:
        step += 1
        posterior, likelihood = _expect(held, prior, confusion)
        converged = likelihood - before <= tolerance * len(held)
        before = likelihood
        if not converged:
            prior, confusion = _maximise(held, posterior)
    whole = np.full((len(counts), counts.shape[2]), np.nan)
    whole[voted] = posterior
    return Skills(whole, prior, confusion, float(before), step, bool(converged))


def _maximise(counts: Array, posterior: Array) -> tuple[Array, Array]:
    said = np.einsum("tc,tvs->vcs", posterior, counts)
    total = said.sum(-1, keepdims=True)
    return posterior.mean(0), np.divide(said, total, out=np.full(said.shape, np.nan), where=total > 0)


def _expect(counts: Array, prior: Array, confusion: Array) -> tuple[Array, float]:
    with np.errstate(divide="ignore"):
        # Where a voter's row has no mass every law maximises the likelihood: take the even one.
        rates, weight = np.log(np.nan_to_num(confusion, nan=1 / counts.shape[2])), np.log(prior)
    # A rate of 0 makes a class impossible only where that vote was cast: 0 * -inf is no vote, not NaN.
    impossible = np.isneginf(rates)
    joint = weight + np.einsum("tvs,vcs->tc", counts, np.where(impossible, 0.0, rates))
    joint = np.where(np.einsum("tvs,vcs->tc", counts, impossible.astype(float)) > 0, -np.inf, joint)
    top = joint.max(-1, keepdims=True)
    scaled = np.exp(joint - top)
    total = scaled.sum(-1, keepdims=True)
    return scaled / total, float((top + np.log(total)).sum())
