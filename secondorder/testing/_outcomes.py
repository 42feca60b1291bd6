"""Every outcome of a small experiment with its exact probability, and exact moments over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Any, Literal

import numpy as np

from secondorder.errors import InputError
from secondorder.testing._exact import as_fractions, exact_number

__all__ = ["Outcomes", "enumerate_blocks", "enumerate_levels", "enumerate_outcomes", "exact_mean", "exact_variance"]

LIMIT = 1_000_000


@dataclass(frozen=True, eq=False)
class Outcomes:
    """A finite experiment: every outcome that can happen, and how probable it is.

    Attributes
    ----------
    values : array, shape (M, ...)
        The outcomes, stacked: one call of a batched estimator can take them all.
    probabilities : array of Fraction, shape (M,)
        All positive, sum exactly 1.

    Examples
    --------
    >>> coin = enumerate_outcomes([["1/3", "2/3"]], 2)
    >>> coin
    Outcomes(3 of shape (1, 2))
    >>> for counts, probability in coin:
    ...     print(counts[0], probability)
    [2 0] 1/9
    [1 1] 4/9
    [0 2] 4/9
    """

    values: np.ndarray
    probabilities: np.ndarray

    def __post_init__(self) -> None:
        if len(self.values) != len(self.probabilities) or sum(self.probabilities) != 1:
            raise InputError(
                f"{len(self.values)} outcomes, {len(self.probabilities)} probabilities "
                f"that sum to {sum(self.probabilities)}",
                place="outcomes",
                remedy="give one exact probability per outcome, sum 1",
            )

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[tuple[Any, Fraction]]:
        return zip(self.values, self.probabilities, strict=True)

    def __repr__(self) -> str:
        return f"Outcomes({len(self)} of shape {self.values.shape[1:]})"

    def map(self, function: Callable[[np.ndarray], np.ndarray]) -> Outcomes:
        """The same experiment seen otherwise: `function` turns the stacked values into new stacked values."""
        return Outcomes(function(self.values), self.probabilities)

    def then(self, experiment: Callable[[Any], Outcomes]) -> Outcomes:
        """Two stages: for each outcome the experiment that follows it, all joined.

        Examples
        --------
        Two prompts drawn from a policy of three, then two calls with each:

        >>> laws = as_fractions([["1/2", "1/2"], [1, 0], ["1/4", "3/4"]])
        >>> enumerate_levels(3, 2).then(lambda drawn: enumerate_outcomes(laws[drawn], 2))
        Outcomes(49 of shape (2, 2))
        """
        stages = [(probability, experiment(value)) for value, probability in self]
        values = np.concatenate([stage.values for _, stage in stages])
        return Outcomes(values, np.concatenate([probability * stage.probabilities for probability, stage in stages]))


def enumerate_outcomes(
    law: Any, calls: Any, *, view: Literal["counts", "codes"] = "counts", limit: int = LIMIT
) -> Outcomes:
    """All outcomes of independent calls in every cell of one item, with their exact probabilities.

    Parameters
    ----------
    law : array_like, shape (L_1, ..., L_J, C)
        Class probabilities of each cell, exact (anything that :func:`as_fractions` reads), each row of sum 1.
    calls : int or array_like of int, shape (L_1, ..., L_J)
        Calls per cell.
    view : {"counts", "codes"}
        ``counts``: outcomes are verdict counts, ``(*cells, C)``. ``codes``: outcomes are the classes of the calls in
        their order, ``(*cells, R)`` with R the largest number of calls and -1 where a cell has fewer; for estimators
        that pair calls by their repeat index.
    limit : int
        Largest number of outcomes.

    Raises
    ------
    InputError
        When a row is not a law in exact numbers, or there are too many outcomes.

    Examples
    --------
    >>> outcomes = enumerate_outcomes([["1/2", "1/2"], [0, 1]], 2)
    >>> outcomes.values.tolist()
    [[[2, 0], [0, 2]], [[1, 1], [0, 2]], [[0, 2], [0, 2]]]
    >>> [str(p) for p in outcomes.probabilities]
    ['1/4', '1/2', '1/4']
    """
    laws = _checked_laws(law)
    cells, classes = laws.shape[:-1], laws.shape[-1]
    numbers = np.broadcast_to(np.asarray(calls), cells)
    if not np.issubdtype(numbers.dtype, np.integer) or (numbers < 0).any():
        raise InputError(f"calls per cell are {calls!r}", place="enumerate_outcomes", remedy="give whole numbers >= 0")
    width = int(numbers.max(initial=0))
    one_cell = _count_outcomes if view == "counts" else _code_outcomes
    tables = [one_cell(laws[cell], int(numbers[cell]), width) for cell in np.ndindex(cells)]
    shape = (*cells, classes if view == "counts" else width)
    return _independent(tables, shape, limit)


def enumerate_blocks(joint: Outcomes, repeats: int, *, limit: int = LIMIT) -> Outcomes:
    """All outcomes of independent, identically distributed repeat blocks whose calls may depend on each other.

    Inside a block anything goes: a seed that all cells share, a drift that hits all of them.

    Parameters
    ----------
    joint : Outcomes
        One block: ``joint.values`` has the shape ``(M, *cells)``, a class code per cell.
    repeats : int
        Number of blocks R.

    Returns
    -------
    Outcomes
        Codes of shape ``(*cells, R)``.

    Examples
    --------
    One fair seed decides the verdict of both cells, always alike:

    >>> seed = Outcomes(np.array([[0, 0], [1, 1]]), as_fractions(["1/2", "1/2"]))
    >>> enumerate_blocks(seed, 2).values.tolist()
    [[[0, 0], [0, 0]], [[0, 1], [0, 1]], [[1, 0], [1, 0]], [[1, 1], [1, 1]]]
    """
    blocks = _independent([list(joint)] * repeats, (repeats, *joint.values.shape[1:]), limit)
    return blocks.map(lambda values: np.moveaxis(values, 1, -1))


def enumerate_levels(policy: Any, size: int, *, replace: bool = True) -> Outcomes:
    """All draws of a random facet's levels, as index vectors of length `size`.

    Parameters
    ----------
    policy : int or array_like
        Number of equally probable levels, or the exact probability of each.
    size : int
        Levels drawn.
    replace : bool
        Independent draws from the policy (True), or without replacement from a list of equally probable levels.

    Raises
    ------
    InputError
        When probabilities do not sum to 1, or draws without replacement are asked of an uneven policy.

    Examples
    --------
    >>> [(drawn.tolist(), str(p)) for drawn, p in enumerate_levels(["1/3", "2/3"], 2)]
    [([0, 0], '1/9'), ([0, 1], '2/9'), ([1, 0], '2/9'), ([1, 1], '4/9')]
    >>> enumerate_levels(3, 2, replace=False).values.tolist()
    [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]
    """
    weights = as_fractions([Fraction(1, policy)] * policy) if isinstance(policy, int) else _checked_laws(policy)
    if replace:
        draws = [draw for draw in product(range(len(weights)), repeat=size) if all(weights[k] for k in draw)]
        chances = [math.prod((weights[k] for k in draw), start=Fraction(1)) for draw in draws]
    else:
        if len(set(weights)) != 1 or size > len(weights):
            raise InputError(
                f"{size} levels without replacement from probabilities {[str(weight) for weight in weights]}",
                place="enumerate_levels",
                remedy="a list is drawn from evenly, and holds at least as many levels as are drawn",
            )
        draws = list(permutations(range(len(weights)), size))
        chances = [Fraction(1, len(draws))] * len(draws)
    return Outcomes(np.array(draws, dtype=np.int64).reshape(len(draws), size), as_fractions(chances))


def exact_mean(estimator: Callable[[Any], Any], outcomes: Outcomes, *, batched: bool = False) -> Any:
    """Expectation of an estimator over every outcome, as fractions.

    Floating-point results are taken as the binary numbers that they are: the expectation is then exact for the values
    that the code returns, and differs from the truth by the estimator's own rounding alone.

    Parameters
    ----------
    estimator : callable
        Takes one outcome (an entry of ``outcomes.values``) and returns a number, an array, or a mapping of names to
        numbers. With `batched` it takes all outcomes at once and returns arrays with the outcome as first axis.
    outcomes : Outcomes
    batched : bool

    Returns
    -------
    Fraction, array of Fraction, or dict of name to Fraction
        In the form in which the estimator returns its value.

    Raises
    ------
    InputError
        When the estimator returns NaN or infinity for an outcome that can happen.

    Examples
    --------
    The share of agreeing pairs of calls estimates the chance that two calls agree; the squared share does not:

    >>> outcomes = enumerate_outcomes([["1/3", "2/3"]], 2)
    >>> exact_mean(lambda counts: (counts * (counts - 1)).sum() / 2, outcomes)
    Fraction(5, 9)
    >>> exact_mean(lambda counts: ((counts / 2) ** 2).sum(), outcomes)
    Fraction(7, 9)
    """
    if batched:
        result = estimator(outcomes.values)
        if isinstance(result, Mapping):
            return {name: _weighted(values, outcomes) for name, values in result.items()}
        return _weighted(result, outcomes)
    results = [estimator(value) for value in outcomes.values]
    if isinstance(results[0], Mapping):
        return {name: _weighted([result[name] for result in results], outcomes) for name in results[0]}
    return _weighted(results, outcomes)


def exact_variance(estimator: Callable[[Any], Any], outcomes: Outcomes, *, batched: bool = False) -> Any:
    """Variance of an estimator over every outcome, as fractions; arguments as for :func:`exact_mean`.

    Examples
    --------
    >>> outcomes = enumerate_outcomes([["1/3", "2/3"]], 3)
    >>> exact_variance(lambda counts: int(counts[0, 0]), outcomes) == 3 * Fraction(1, 3) * Fraction(2, 3)
    True
    """

    def moments(values: Any) -> Any:
        result = estimator(values)
        if isinstance(result, Mapping):
            return {(name, power): as_fractions(value) ** power for name, value in result.items() for power in (1, 2)}
        value = as_fractions(result)
        return np.stack([value, value**2], axis=-1)

    found = exact_mean(moments, outcomes, batched=batched)
    if isinstance(found, dict):
        return {name: found[name, 2] - found[name, 1] ** 2 for name in dict.fromkeys(name for name, _ in found)}
    return found[..., 1] - found[..., 0] ** 2


def _checked_laws(law: Any) -> np.ndarray:
    laws = as_fractions(law)
    if laws.ndim == 0 or laws.size == 0:
        raise InputError("it holds no classes", place="law", remedy="give probabilities with the class as last axis")
    for index in np.ndindex(laws.shape[:-1]):
        row = laws[index]
        if sum(row) != 1 or min(row) < 0:
            raise InputError(
                f"[{', '.join(str(value) for value in row)}] is not a law: sum {sum(row)}",
                place=f"law at cell {index}" if index else "law",
                remedy='write probabilities as text or fractions, e.g. ["1/3", "2/3"] or ["0.1", "0.9"]',
            )
    return laws


def _count_outcomes(law: np.ndarray, calls: int, width: int) -> list[tuple[tuple[int, ...], Fraction]]:
    """Verdict counts of one cell."""
    found = []
    for counts in _compositions(calls, len(law)):
        ways = math.factorial(calls) // math.prod(map(math.factorial, counts))
        found.append((counts, ways * math.prod((p**k for p, k in zip(law, counts, strict=True)), start=Fraction(1))))
    return [(counts, probability) for counts, probability in found if probability]


def _code_outcomes(law: np.ndarray, calls: int, width: int) -> list[tuple[tuple[int, ...], Fraction]]:
    """Class codes of one cell, filled with -1 to the common width."""
    possible = [code for code in range(len(law)) if law[code]]
    return [
        (codes + (-1,) * (width - calls), math.prod((law[code] for code in codes), start=Fraction(1)))
        for codes in product(possible, repeat=calls)
    ]


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total, -1, -1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)


def _independent(tables: list[list[tuple[Any, Fraction]]], shape: tuple[int, ...], limit: int) -> Outcomes:
    """The product experiment; table i fills row i of the flattened leading axes of `shape`."""
    size = math.prod(len(table) for table in tables)
    if size > limit:
        raise InputError(
            f"{size} outcomes, more than {limit}",
            place="enumeration",
            remedy="take fewer cells, calls or classes, make some cells certain, or raise limit",
        )
    parts = [np.array([value for value, _ in table], dtype=np.int64) for table in tables]
    picks = np.indices([len(table) for table in tables]).reshape(len(tables), size)
    values = np.stack([part[pick] for part, pick in zip(parts, picks, strict=True)], axis=1)
    probabilities = np.array([Fraction(1)], dtype=object)
    for table in tables:
        chances = as_fractions([chance for _, chance in table])
        probabilities = (probabilities[:, None] * chances[None, :]).ravel()
    return Outcomes(values.reshape(size, *shape), probabilities)


def _weighted(results: Any, outcomes: Outcomes) -> Any:
    values = np.asarray(results)
    if len(values) != len(outcomes):
        raise InputError(
            f"{len(values)} results for {len(outcomes)} outcomes",
            place="estimator",
            remedy="a batched estimator keeps the outcome as the first axis",
        )
    flat = values.reshape(len(outcomes), -1)
    means = np.empty(flat.shape[1], dtype=object)
    for column in range(flat.shape[1]):
        total = Fraction(0)
        for row, probability in enumerate(outcomes.probabilities):
            total += probability * _finite(flat[row, column], outcomes, row)
        means[column] = total
    return means.reshape(values.shape[1:]) if values.ndim > 1 else means[0]


def _finite(value: Any, outcomes: Outcomes, row: int) -> Fraction:
    try:
        return exact_number(value)
    except InputError as error:
        raise InputError(
            f"the estimator gives {value!r} for an outcome of probability {outcomes.probabilities[row]}: "
            f"{outcomes.values[row].tolist()}",
            place="exact_mean",
            remedy="its expectation does not exist; restrict the outcomes by declaration if it need not answer there",
        ) from error
