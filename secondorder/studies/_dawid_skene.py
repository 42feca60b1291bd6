"""Dawid and Skene's model: every voter has error rates of its own, and the right class of each task is unobserved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from secondorder.errors import InputError, TableError, UndefinedError
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


def dawid_skene(votes: ArrayLike, *, right: int | None = None, steps: int = 1000, tolerance: float = 1e-8) -> Skills:
    """Maximum likelihood of voters' error rates and of the right classes, by expectation-maximisation.

    Parameters
    ----------
    votes : array, shape (tasks, voters, classes)
        How often each voter said each class; a voter may vote on a task several times, or never.
    right : int, optional
        How many classes, from the first on, can be the right one; those behind them (invalid verdicts) are only said.
        Default: all.
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
    InputError
        When `right` is no number of its classes.
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
    n_tasks, n_voters, n_classes = counts.shape
    if right is not None and not 1 <= right <= n_classes:
        raise InputError(f"right={right}", place="right", remedy=f"give a number from 1 to {n_classes}")
    # Tasks with the same votes have the same posterior: one row for all of them, (rows, voters x classes).
    rows, place, times = np.unique(
        counts.reshape(n_tasks, n_voters * n_classes), axis=0, return_inverse=True, return_counts=True
    )
    voted = rows.sum(1) > 0
    if not voted.any():
        raise UndefinedError("no task has a vote", place="dawid_skene", remedy="give at least one")
    held, weight = rows[voted], times[voted].astype(float)
    posterior = _shares(held.reshape(len(held), n_voters, n_classes).sum(1), n_classes if right is None else right)
    before, step, converged = -np.inf, 0, False
    prior, confusion = _maximise(held, weight, posterior)
    while step < steps and not converged:
        step += 1
        posterior, likelihood = _expect(held, weight, prior, confusion)
        converged = likelihood - before <= tolerance * weight.sum()
        before = likelihood
        if not converged:
            prior, confusion = _maximise(held, weight, posterior)
    whole = np.full((len(rows), n_classes), np.nan)
    whole[voted] = posterior
    return Skills(whole[place.ravel()], prior, confusion, float(before), step, bool(converged))


def _shares(said: Array, right: int) -> Array:
    """Shares of the classes that can be right among the votes for them; even where nobody voted for one."""
    known = np.where(np.arange(said.shape[1]) < right, said, 0.0)
    known[known.sum(1) == 0, :right] = 1.0
    shares: Array = known / known.sum(1, keepdims=True)
    return shares


def _maximise(held: Array, weight: Array, posterior: Array) -> tuple[Array, Array]:
    """Prior, and shares of what each voter said where a class is right, (voters, right, said)."""
    mass = posterior * weight[:, None]
    n_classes = mass.shape[1]
    said = (mass.T @ held).reshape(n_classes, -1, n_classes).swapaxes(0, 1)
    total = said.sum(-1, keepdims=True)
    return mass.sum(0) / weight.sum(), np.divide(said, total, out=np.full(said.shape, np.nan), where=total > 0)


def _expect(held: Array, weight: Array, prior: Array, confusion: Array) -> tuple[Array, float]:
    """Posterior of each row of votes, and the log-likelihood of all tasks."""
    n_classes = len(prior)
    with np.errstate(divide="ignore"):
        # Where a voter's row has no mass every law maximises the likelihood: take the even one.
        rates, start = np.log(np.nan_to_num(confusion, nan=1 / n_classes)), np.log(prior)
    table = rates.swapaxes(1, 2).reshape(-1, n_classes)  # (voters x said, right)
    # A rate of 0 makes a class impossible only where that vote was cast: 0 * -inf is no vote, not NaN.
    impossible = np.isneginf(table)
    joint = start + held @ np.where(impossible, 0.0, table)
    joint = np.where(held @ impossible.astype(float) > 0, -np.inf, joint)
    top = joint.max(-1, keepdims=True)
    scaled = np.exp(joint - top)
    total = scaled.sum(-1, keepdims=True)
    return scaled / total, float(weight @ (top + np.log(total))[:, 0])
