"""Small experiments whose truth is known and whose outcomes can all be listed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from secondorder._design import Design
from secondorder.errors import InputError
from secondorder.testing._exact import as_fractions, exact_design
from secondorder.testing._oracle import oracle_truth
from secondorder.testing._outcomes import Outcomes, enumerate_blocks, enumerate_levels, enumerate_outcomes

__all__ = ["Experiment", "standard_experiments"]

View = Literal["counts", "codes"]


@dataclass(frozen=True, eq=False)
class Experiment:
    """One item audited under known laws: which levels exist, how they are drawn, how often each cell is called.

    Attributes
    ----------
    design : Design
        Facets as the estimator is told of them; weights in fractions (:func:`exact_design`).
    law : array of Fraction, shape (M_1, ..., M_J, C)
        Class probabilities for every level that exists. For a fixed facet ``M_j`` is its number of levels; for a
        random one the number of levels of its policy, from which ``L_j`` are drawn.
    kernel : array of Fraction, shape (C, C)
    calls : int or array of int, shape (L_1, ..., L_J)
        Calls per cell.
    policies : mapping of name to (int or sequence)
        For every random facet the policy Q: a number of equally probable levels, or their probabilities. Where the
        design declares a population, the levels are drawn without replacement.
    joint : Outcomes, optional
        One repeat block whose calls depend on each other, codes of shape ``(L_1, ..., L_J)``; see :meth:`of_blocks`.

    Examples
    --------
    >>> experiment = Experiment(exact_design({"prompt": 2}), [["1/2", "1/2"], [1, 0]], [[0, 1], [1, 0]], 2)
    >>> experiment.outcomes()
    Outcomes(3 of shape (2, 2))
    >>> experiment.truth()["prompt"]
    Fraction(1, 8)
    """

    design: Design
    law: Any
    kernel: Any
    calls: Any
    policies: Mapping[str, Any] = field(default_factory=dict)
    joint: Outcomes | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "law", as_fractions(self.law))
        object.__setattr__(self, "kernel", as_fractions(self.kernel))
        mass = self.law.sum(-1).ravel()
        cells = zip(mass, self.law.reshape(mass.size, -1), strict=True)
        wrong = [total for total, law in cells if total != 1 or min(law) < 0]
        if wrong:
            raise InputError(
                f"a law sums to {wrong[0]} or has a negative probability",
                place="experiment",
                remedy='give exact probabilities that sum to 1, such as "1/3"',
            )
        random = {
            name for name, kind in zip(self.design.names, self.design.populations, strict=True) if kind is not None
        }
        if set(self.policies) != random:
            raise InputError(
                f"policies for {sorted(self.policies)}, random facets {sorted(random)}",
                place="experiment",
                remedy="give the policy of every random facet and of no other",
            )
        for (name, _), size, found in zip(
            self._policies(), map(len, self._census().weights), self.law.shape[:-1], strict=True
        ):
            if size != found:
                raise InputError(
                    f"laws for {found} levels of {name}, which has {size}",
                    place="experiment",
                    remedy="give the law of every level that exists",
                )

    @classmethod
    def of_blocks(cls, design: Design, joint: Outcomes, kernel: Any, repeats: int) -> Experiment:
        """Repeat blocks that are independent of each other, with any dependence inside a block (shared seeds, drift).

        Parameters
        ----------
        design : Design
            All facets fixed.
        joint : Outcomes
            One block: a class code per cell.
        kernel : array_like, shape (C, C)
        repeats : int

        Examples
        --------
        Both prompts follow one coin. Complete pairs then see an agreement between prompts that is not theirs:

        >>> coin = Outcomes(np.array([[0, 0], [1, 1]]), as_fractions(["1/2", "1/2"]))
        >>> experiment = Experiment.of_blocks(exact_design({"prompt": 2}), coin, [[0, 1], [1, 0]], 2)
        >>> from secondorder.testing import exact_mean, oracle_estimate
        >>> for pairs in ("complete", "across-repeats"):
        ...     estimate = lambda codes: oracle_estimate(codes, experiment.design, experiment.kernel, pairs=pairs)
        ...     print(pairs, exact_mean(estimate, experiment.outcomes("codes"))["prompt"])
        complete -1/8
        across-repeats 0
        >>> experiment.truth()["prompt"]
        Fraction(0, 1)
        """
        classes = len(as_fractions(kernel))
        one_hot = as_fractions(joint.values[..., None] == np.arange(classes))
        law = sum(one_hot * joint.probabilities.reshape(-1, *(1,) * (one_hot.ndim - 1)))
        return cls(design, law, kernel, repeats, joint=joint)

    def outcomes(self, view: View = "counts") -> Outcomes:
        """Every outcome: levels drawn where a facet is random, then the verdicts; see :func:`enumerate_outcomes`."""
        if self.joint is not None:
            codes = enumerate_blocks(self.joint, self.calls)
            if view == "codes":
                return codes
            classes = np.arange(len(self.kernel))
            return codes.map(lambda values: (values[..., None] == classes).sum(-2))
        return self._draw(self.law, [j for j, kind in enumerate(self.design.populations) if kind is not None], view)

    def truth(self) -> dict[str, Fraction]:
        """Every component of the target: the policies themselves, all of their levels with their probabilities."""
        return oracle_truth(self.law, self._census(), self.kernel)

    def _draw(self, law: np.ndarray, axes: list[int], view: View) -> Outcomes:
        if not axes:
            return enumerate_outcomes(law, self.calls, view=view)
        axis, *rest = axes
        size, population = len(self.design.weights[axis]), self.design.populations[axis]
        levels = enumerate_levels(self.policies[self.design.names[axis]], size, replace=math.isinf(population))
        return levels.then(lambda drawn: self._draw(np.take(law, drawn, axis), rest, view))

    def _policies(self) -> list[tuple[str, Any]]:
        return [
            (name, self.policies.get(name, weights))
            for name, weights in zip(self.design.names, self.design.weights, strict=True)
        ]

    def _census(self) -> Design:
        return exact_design(dict(self._policies()))


NOMINAL = as_fractions([[0, 1], [1, 0]])
NOMINAL_3 = as_fractions([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
# Three ordered classes, then invalid.
ORDINAL_INVALID = as_fractions([[0, "1/2", 1, 1], ["1/2", 0, "1/2", 1], [1, "1/2", 0, 1], [1, 1, 1, 0]])
# Scores 1, 2, 4.
INTERVAL = as_fractions([[0, "1/2", "9/2"], ["1/2", 0, 2], ["9/2", 2, 0]])
# Scores 0 and 3, invalid at score 1 with penalty 1/2.
INTERVAL_INVALID = as_fractions([[0, "9/2", 1], ["9/2", 0, "5/2"], [1, "5/2", 0]])
# Squared distances of the points (0, 0), (1, 0), (1/2, 2), as a user may bring them.
POINTS = as_fractions([[0, 1, "17/4"], [1, 0, "17/4"], ["17/4", "17/4", 0]])


def standard_experiments() -> dict[str, Experiment]:
    """Twelve experiments that an unbiased estimator has to pass: what this package holds its own estimators to.

    One to three facets; equal and unequal weights; fixed, random and drawn from a list; two and three calls per cell,
    equal and not; nominal, ordinal, interval, invalid verdicts, and a kernel from points of a plane.

    Returns
    -------
    dict of str to Experiment
        The largest has about two thousand outcomes.

    Examples
    --------
    >>> for name, experiment in list(standard_experiments().items())[:2]:
    ...     print(name, len(experiment.outcomes()))
    one facet, unequal weights, nominal 216
    one facet, ordinal with invalid, unequal n 200
    """
    return {
        "one facet, unequal weights, nominal": Experiment(
            exact_design({"prompt": ["1/2", "1/3", "1/6"]}),
            [["1/3", "1/3", "1/3"], ["1/2", "1/5", "3/10"], ["1/7", "2/7", "4/7"]],
            NOMINAL_3,
            2,
        ),
        "one facet, ordinal with invalid, unequal n": Experiment(
            exact_design({"prompt": ["1/3", "2/3"]}),
            [["1/2", "1/4", "1/8", "1/8"], ["1/10", "2/10", "3/10", "4/10"]],
            ORDINAL_INVALID,
            [2, 3],
        ),
        "one facet, interval, unequal n": Experiment(
            exact_design({"prompt": 2}), [["1/3", "1/3", "1/3"], ["1/2", "1/5", "3/10"]], INTERVAL, [3, 2]
        ),
        "one facet, interval with invalid, unequal n": Experiment(
            exact_design({"prompt": ["1/5", "2/5", "2/5"]}),
            [["1/3", "1/3", "1/3"], ["1/2", "1/2", 0], ["1/7", "2/7", "4/7"]],
            INTERVAL_INVALID,
            [2, 3, 2],
        ),
        "two facets, unequal weights and n, points": Experiment(
            exact_design({"prompt": ["1/4", "3/4"], "order": ["2/5", "3/5"]}),
            [[["1/3", "2/3", 0], ["1/4", 0, "3/4"]], [["1/2", "1/3", "1/6"], [0, "2/5", "3/5"]]],
            POINTS,
            [[2, 3], [2, 2]],
        ),
        "three facets, unequal weights and n": Experiment(
            exact_design({"prompt": ["1/3", "2/3"], "order": 2, "judge": ["1/4", "3/4"]}),
            [
                [[["1/2", "1/2"], [1, 0]], [["1/3", "2/3"], ["1/5", "4/5"]]],
                [[[0, 1], ["2/7", "5/7"]], [["1/6", "5/6"], [1, 0]]],
            ],
            NOMINAL,
            [[[2, 2], [2, 3]], [[2, 2], [2, 2]]],
        ),
        "random facet": Experiment(
            exact_design({"prompt": 2}, random=["prompt"]),
            [["1/3", "1/3", "1/3"], ["1/2", "1/5", "3/10"], [0, "3/7", "4/7"]],
            INTERVAL,
            2,
            {"prompt": ["1/2", "1/3", "1/6"]},
        ),
        "random facet, three levels, unequal n": Experiment(
            exact_design({"prompt": 3}, random=["prompt"]),
            [["1/3", "2/3"], ["6/7", "1/7"]],
            NOMINAL,
            [2, 3, 2],
            {"prompt": ["1/4", "3/4"]},
        ),
        "random facet from a list": Experiment(
            exact_design({"prompt": 2}, random=["prompt"], populations={"prompt": 3}),
            [["1/3", "1/6", "1/6", "1/3"], ["1/2", "1/2", 0, 0], [0, "3/7", 0, "4/7"]],
            ORDINAL_INVALID,
            2,
            {"prompt": 3},
        ),
        "random and fixed facet": Experiment(
            exact_design({"prompt": 2, "order": ["1/3", "2/3"]}, random=["prompt"]),
            [[["1/3", "2/3"], ["1/2", "1/2"]], [["4/5", "1/5"], ["1/7", "6/7"]]],
            NOMINAL,
            [[2, 2], [2, 3]],
            {"prompt": ["1/3", "2/3"]},
        ),
        "two random facets, one from a list": Experiment(
            exact_design({"prompt": 2, "rater": 2}, random=["prompt", "rater"], populations={"rater": 3}),
            [[["1/3", "2/3"], ["1/2", "1/2"], [1, 0]], [["4/5", "1/5"], [0, 1], ["1/7", "6/7"]]],
            NOMINAL,
            2,
            {"prompt": ["1/4", "3/4"], "rater": 3},
        ),
        "three facets: random, fixed, from a list": Experiment(
            exact_design(
                {"prompt": 2, "order": ["1/4", "3/4"], "rater": 2},
                random=["prompt", "rater"],
                populations={"rater": 3},
            ),
            [
                [[["1/3", "2/3"], [1, 0], [0, 1]], [[1, 0], [1, 0], ["2/3", "1/3"]]],
                [[[0, 1], [1, 0], [1, 0]], [["1/2", "1/2"], [0, 1], [1, 0]]],
            ],
            NOMINAL,
            2,
            {"prompt": ["1/3", "2/3"], "rater": 3},
        ),
    }
