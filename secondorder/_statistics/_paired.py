"""Do judges differ? Every pair of them, tested over the items that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._design import listed
from secondorder._labels._results import Table, plain, printed, render_table
from secondorder._statistics._checked import check_draws, whole
from secondorder._statistics._comparable import (
    difference_table,
    differing_declarations,
    label_of,
    refuse_other_declarations,
    shared_strata,
    told_apart,
)
from secondorder._statistics._decomposition import Decomposition, required
from secondorder._statistics._group import Group
from secondorder.core._intervals import item_errors, t_interval
from secondorder.core._sign_flips import sign_flip_test
from secondorder.errors import InputError

__all__ = ["PairedTests", "paired_test"]

Floats = NDArray[np.float64]
WHICH = (
    "p (Holm) above says whether a pair differs in something, p (adjusted) in which component; that takes more "
    "evidence, so that a pair can differ without a component that can be named. Fewer components, declared "
    "beforehand, cost less"
)
UNEQUAL = "judges were not called equally often in every cell: these p values are approximate, and need many items"


@printed
@dataclass(frozen=True, eq=False)
class PairedTests:
    """Differences between judges with p values from sign flips of items.

    Attributes
    ----------
    pairs : tuple of (mapping, mapping)
        The two groups of every pair.
    components : tuple of str
        Those tested.
    estimate : array, shape (n_pairs, n_components)
        Debiased difference ``a - b`` on shared items.
    lower, upper : array, shape (n_pairs, n_components)
        Paired t band over items of each difference, not adjusted for their number.
    pvalues, adjusted : array, shape (n_pairs, n_components)
        Two-sided; `adjusted` holds for all pairs and components together (family-wise error). NaN where the component
        is undefined.
    pair_pvalues, pair_adjusted : array, shape (n_pairs,)
        Whether the two judges differ in any component; adjusted over pairs (Holm).
    n_items : int
        Items that all groups have.
    patterns : int
        Sign patterns looked at.
    exact : bool
        Whether these are all patterns.
    seed : int
    level : float
        Of the bands: that of the decompositions.
    notes : tuple of str
    """

    pairs: tuple[tuple[Mapping[str, str], Mapping[str, str]], ...]
    components: tuple[str, ...]
    estimate: Floats
    lower: Floats
    upper: Floats
    pvalues: Floats
    adjusted: Floats
    pair_pvalues: Floats
    pair_adjusted: Floats
    n_items: int
    patterns: int
    exact: bool
    seed: int
    level: float
    notes: tuple[str, ...] = ()

    def to_dataset(self) -> xr.Dataset:
        """Differences and p values (dims ``pair, component``)."""
        names = ("estimate", "lower", "upper", "pvalues", "adjusted")
        return xr.Dataset(
            {name: (("pair", "component"), getattr(self, name)) for name in names}
            | {name: ("pair", getattr(self, name)) for name in ("pair_pvalues", "pair_adjusted")},
            coords={
                "pair": [f"{label_of(a)} - {label_of(b)}" for a, b in self.pairs],
                "component": list(self.components),
            },
            attrs={
                "n_items": self.n_items,
                "patterns": self.patterns,
                "exact": int(self.exact),
                "seed": self.seed,
                "level": self.level,
                "notes": "\n".join(self.notes),
            },
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, schema ``secondorder.paired/1``: NaN is None."""
        return {
            "schema": "secondorder.paired/1",
            "n_items": self.n_items,
            "patterns": self.patterns,
            "exact": self.exact,
            "seed": self.seed,
            "level": self.level,
            "pairs": [
                {
                    "a": dict(a),
                    "b": dict(b),
                    "p": plain(float(self.pair_pvalues[k])),
                    "p_holm": plain(float(self.pair_adjusted[k])),
                    "tests": [
                        {
                            "component": name,
                            "estimate": plain(float(self.estimate[k, j])),
                            "lower": plain(float(self.lower[k, j])),
                            "upper": plain(float(self.upper[k, j])),
                            "p": plain(float(self.pvalues[k, j])),
                            "p_adjusted": plain(float(self.adjusted[k, j])),
                        }
                        for j, name in enumerate(self.components)
                    ],
                }
                for k, (a, b) in enumerate(self.pairs)
            ],
            "notes": list(self.notes),
        }

    def tables(self) -> tuple[Table, ...]:
        """Pairs as a whole, then every component of every pair."""
        pairs = Table(
            f"Judges in pairs, on {self.n_items} shared items",
            ("a", "b", "p", "p (Holm)"),
            tuple(
                (label_of(a), label_of(b), float(self.pair_pvalues[k]), float(self.pair_adjusted[k]))
                for k, (a, b) in enumerate(self.pairs)
            ),
            (
                "p: chance of so large a difference in any component if both judges answered every item by the same "
                "laws; Holm: adjusted over pairs",
            ),
        )
        how = "all sign patterns" if self.exact else f"{self.patterns - 1} random sign patterns and the observed one"
        shown = [(j, k) for j in range(len(self.components)) for k in range(len(self.pairs))]
        numbers = (self.estimate, self.lower, self.upper, self.pvalues, self.adjusted)
        tests = difference_table(
            [self.pairs[k] for _, k in shown],
            ("difference", "lower", "upper", "p", "p (adjusted)"),
            [(self.components[j], *(float(array[k, j]) for array in numbers)) for j, k in shown],
            (
                f"two-sided, {how}, ties counted; adjusted for all {self.estimate.size} tests (max-T in a pair, "
                "Bonferroni over pairs); as tests of one component, whatever the others do, approximate for many items",
                f"lower, upper: paired {100 * self.level:g}% t band over items, not adjusted for the number of tests",
                WHICH,
                *self.notes,
            ),
        )
        return pairs, tests

    def __str__(self) -> str:
        return "\n\n".join(render_table(table) for table in self.tables())


def paired_test(
    a: Decomposition,
    *more: Decomposition,
    components: str | Sequence[str] | None = None,
    draws: int = 9999,
    seed: int = 0,
) -> PairedTests:
    """Test whether judges differ, pair by pair over the items that they share, with control of multiplicity.

    For each pair the hypothesis is that on every item both answer by the same law in every cell, calls independent.
    Swapping the calls of an item between the judges then changes nothing in distribution, so the item's differences of
    all components change sign together; every pattern of signs over items is equally likely, whatever the values are.
    Statistics are studentised means, two-sided.

    Parameters
    ----------
    a, *more : Decomposition
        Two groups at least, in one decomposition or several, under the same facets, classes and kernel.
    components : str or sequence of str, optional
        Those to test, chosen before the values are seen: fewer tests to adjust for. Default: all.
    draws : int
        Random sign patterns; all ``2**n_items`` are enumerated where they are no more than that.
    seed : int

    Returns
    -------
    PairedTests

    Raises
    ------
    InputError
        When there is one group, the declarations differ, no item is shared, or a component does not exist.

    Notes
    -----
    P values are exact when both judges were called equally often in every cell; a note says where they were not. Read
    as a test of equal means of one component, while the judges may differ otherwise, they hold for many items.

    Examples
    --------
    >>> import secondorder as so
    >>> rows = [
    ...     {"judge": judge, "item": str(item), "prompt": prompt, "run": str(r), "verdict": "AB"[(r + k) % 2 * noisy]}
    ...     for judge, noisy in (("steady", 0), ("noisy", 1))
    ...     for item in range(8) for k, prompt in enumerate("pq") for r in range(4)
    ... ]
    >>> cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=["A", "B"],
    ...                     by="judge")
    >>> found = so.paired_test(so.decompose(cube))
    >>> found.n_items, found.exact, found.components[0], float(found.pvalues[0, 0])
    (8, True, 'call', 0.0078125)
    """
    check_draws(draws, "draws", least=19)
    whole(seed, "seed")
    groups = told_apart([group for given in (a, *more) for group in required(given, "paired_test").groups])
    if len(groups) < 2:
        raise InputError("one group", place="paired_test", remedy="give two judges at least: by='judge'")
    for other in groups[1:]:
        refuse_other_declarations(groups[0], other)
    common = set(groups[0].items).intersection(*(other.items for other in groups[1:]))
    shared = [item for item in groups[0].items if item in common]
    if not shared:
        raise InputError(
            "the groups share no item", place="paired_test", remedy="give decompositions of the same items"
        )
    names = groups[0].names if components is None else tuple(dict.fromkeys(listed(components)))
    columns = [groups[0].index(name) for name in names]
    if not columns:
        raise InputError("it is empty", place="components", remedy=f"choose {', '.join(groups[0].names)}")
    rows = [_rows(group, shared) for group in groups]
    values = np.stack([group.values[places][:, columns] for group, places in zip(groups, rows, strict=True)])
    pairs = list(combinations(range(len(groups)), 2))
    known = ~np.isnan(values).any(axis=(0, 1)).reshape(-1)
    shape = (len(pairs), len(known))
    estimate, lower, upper, pvalues, adjusted = (np.full(shape, np.nan) for _ in range(5))
    differences = np.stack([values[i] - values[j] for i, j in pairs], axis=1)
    estimate[:] = differences.mean(0)
    if not known.any():
        reason = next(reason for group in groups for reason in group.reasons if reason)
        raise InputError(reason, place="paired_test", remedy="repeat the calls of a cell")
    settings, strata = groups[0].settings, shared_strata(groups, rows)
    flat = differences[..., known].reshape(len(shared), -1)
    band = t_interval(item_errors(flat, strata, groups[0].scale), settings.level)
    lower[:, known], upper[:, known] = (end.reshape(len(pairs), -1) for end in (band.lower, band.upper))
    found = sign_flip_test(differences[..., known], seed=seed, n_draws=draws, scale=groups[0].scale)
    pvalues[:, known], adjusted[:, known] = found.pvalue, found.adjusted
    return PairedTests(
        tuple((groups[i].by, groups[j].by) for i, j in pairs),
        names,
        estimate,
        lower,
        upper,
        pvalues,
        adjusted,
        found.pair_pvalue,
        found.pair_adjusted,
        len(shared),
        found.patterns,
        found.exact,
        seed,
        settings.level,
        (*differing_declarations(groups), *_unequal_calls(groups, shared)),
    )


def _rows(group: Group, shared: list[str]) -> NDArray[np.int64]:
    position = {item: row for row, item in enumerate(group.items)}
    return np.array([position[item] for item in shared])


def _unequal_calls(groups: list[Group], shared: list[str]) -> tuple[str, ...]:
    """A note where judges were not called equally often, so that their estimates are not exchangeable."""
    counts = []
    for group in groups:
        verdicts = group.calls.verdicts()[_rows(group, shared)]
        made = verdicts >= 0 if group.calls.soft is None else ~np.isnan(verdicts).any(-1)
        counts.append(made.sum(-1))
    equal = all(other.shape == counts[0].shape and (other == counts[0]).all() for other in counts[1:])
    return () if equal else (UNEQUAL,)
