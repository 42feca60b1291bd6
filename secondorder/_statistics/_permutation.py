"""Permutation tests of a facet: does it matter at all, on any item or on the benchmark as a whole?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._design import Facet, listed, standard_components
from secondorder._labels._cube import by_text, with_labels
from secondorder._labels._results import Table, plain, printed, render_table
from secondorder._statistics._checked import check_draws
from secondorder._statistics._decompose import decompose
from secondorder._statistics._group import Group
from secondorder._statistics._kernel import InvalidAs
from secondorder._statistics._repeats import require_named_repeats
from secondorder.core._multiplicity import benjamini_hochberg
from secondorder.core._permutation import PermutationTest, relabelling_test
from secondorder.core._permutation import permutation_test as shuffle_test
from secondorder.errors import InputError

__all__ = ["Hypothesis", "TestResult", "facet_effects", "group_test", "permutation_test"]

Hypothesis = Literal["calls", "labels", "benchmark"]
JOINT = (
    "every row tests that one hypothesis, that {facet} has no effect at all: a small p of an interaction is no "
    "evidence for an interaction where main effects exist (its band in decompose says how large it is)"
)
UNADJUSTED = "p is not adjusted for the number of rows, facets or groups"
MEANINGS: Mapping[str, str] = {
    "calls": "no effect on any item, main or interaction; calls independent",
    "labels": "no effect on any item, main or interaction; calls at one repeat may depend on each other",
    "benchmark": "no effect on the benchmark as a whole; effects on single items allowed",
}


@printed
@dataclass(frozen=True, eq=False)
class TestResult:
    """P values of a permutation test.

    Attributes
    ----------
    facet : str
    hypothesis : str
        What was shuffled, and so what is tested.
    groups : tuple of mapping
        Labels of each group.
    components : tuple of str
        Statistics: the facet and the interactions that contain it.
    estimate, pvalue : array, shape (n_groups, n_components)
        Macroaverage and its share of shuffles at least as large, ties counted.
    item_pvalues, item_adjusted : tuple of array, shape (n_items, n_components)
        Per group, raw and adjusted for the false discovery rate over items (Benjamini and Hochberg); without rows
        under the benchmark hypothesis.
    items : tuple of tuple of str
    draws, seed : int
    """

    __test__ = False  # not a test class, whatever its name begins with

    facet: str
    hypothesis: str
    groups: tuple[Mapping[str, str], ...]
    components: tuple[str, ...]
    estimate: NDArray[np.float64]
    pvalues: NDArray[np.float64]
    item_pvalues: tuple[NDArray[np.float64], ...]
    item_adjusted: tuple[NDArray[np.float64], ...]
    items: tuple[tuple[str, ...], ...]
    draws: int
    seed: int

    @property
    def pvalue(self) -> float:
        """P value of the facet's own component in the only group.

        Raises
        ------
        InputError
            With several groups: read ``pvalues``.
        """
        if len(self.groups) != 1:
            raise InputError(
                f"there are {len(self.groups)} groups", place="pvalue", remedy="read pvalues (groups by components)"
            )
        return float(self.pvalues[0, self.components.index(self.facet)])

    def to_dataset(self) -> xr.Dataset:
        """P values of macroaverages (dims ``group, component``)."""
        labels = [by_text(by) for by in self.groups]
        data = xr.Dataset(
            {
                "estimate": (("group", "component"), self.estimate),
                "pvalue": (("group", "component"), self.pvalues),
            },
            coords={"group": labels, "component": list(self.components)},
            attrs={"facet": self.facet, "hypothesis": self.hypothesis, "draws": self.draws, "seed": self.seed},
        )
        return with_labels(data, self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, schema ``secondorder.test/1``: NaN is None."""
        return {
            "schema": "secondorder.test/1",
            "facet": self.facet,
            "hypothesis": self.hypothesis,
            "draws": self.draws,
            "seed": self.seed,
            "groups": [
                {
                    "by": dict(by),
                    "tests": [
                        {
                            "component": name,
                            "estimate": plain(float(self.estimate[k, j])),
                            "p": plain(float(self.pvalues[k, j])),
                            "items": [
                                {"item": item, "p": plain(float(raw)), "p_adjusted": plain(float(adjusted))}
                                for item, raw, adjusted in zip(
                                    self.items[k], self.item_pvalues[k][:, j], self.item_adjusted[k][:, j], strict=False
                                )
                            ],
                        }
                        for j, name in enumerate(self.components)
                    ],
                }
                for k, by in enumerate(self.groups)
            ],
        }

    def table(self) -> Table:
        """One row per group and component."""
        rows = []
        for k, by in enumerate(self.groups):
            for j, component in enumerate(self.components):
                found: int | None = None
                if len(self.item_adjusted[k]):
                    found = int((self.item_adjusted[k][:, j] <= 0.05).sum())
                values = (float(self.estimate[k, j]), float(self.pvalues[k, j]), found)
                rows.append((", ".join(by.values()) or "all", component, *values))
        return Table(
            f"Permutation test of {self.facet}: {MEANINGS[self.hypothesis]}",
            ("group", "component", "estimate", "p", "items, q <= .05"),
            tuple(rows),
            (f"{self.draws} shuffles; the smallest possible p is {1 / (self.draws + 1):.2g}", *self._cautions()),
        )

    def _cautions(self) -> tuple[str, ...]:
        """What p values of several rows do not say."""
        tested = int((~np.isnan(self.pvalues)).sum(1).max())
        several = tested > 1
        cautions: tuple[str, ...] = (JOINT.format(facet=self.facet),) if several else ()
        if len(self.components) > tested:
            cautions += ("– interactions: no exact p under this hypothesis",)
        return (*cautions, UNADJUSTED)

    def __str__(self) -> str:
        return render_table(self.table())


def permutation_test(
    cube: xr.Dataset,
    facet: str,
    *,
    hypothesis: Hypothesis = "calls",
    draws: int = 999,
    seed: int = 0,
    together: str | Sequence[str] = (),
    facets: str | Facet | Sequence[str | Facet] | None = None,
    kernel: Any = None,
    scores: Mapping[str, float] | None = None,
    invalid: InvalidAs = "class",
    incomplete: str = "refuse",
) -> TestResult:
    """Test that a facet has no effect, by shuffling what would then be exchangeable.

    Parameters
    ----------
    cube : Dataset
        A response-law cube; each group is tested on its own.
    facet : str
        Facet to test, such as ``prompt``.
    hypothesis : {"calls", "labels", "benchmark"}
        ``calls``: calls are shuffled over the facet's levels within item and the other facets: no effect on any item,
        if calls are independent. ``labels``: the levels' labels are shuffled within each repeat, the statistic uses
        across-repeats pairs: the same hypothesis when calls at one repeat may depend on each other. ``benchmark``:
        whole levels are relabelled inside each item, with the item as a random facet: no effect on the benchmark as a
        whole. No exact test exists for an interaction while main effects exist: use an interval.
    draws : int
        Shuffles. To reject single items at false discovery rate q, at least ``n_items / q``.
    seed : int
    together : str or sequence of str
        With ``labels``: facets whose levels share what the levels of `facet` share, and are relabelled together.
    facets, kernel, scores, invalid, incomplete
        As for :func:`secondorder.decompose`.

    Returns
    -------
    TestResult

    Raises
    ------
    InputError
        When the facet is not in the design, has one level, or there are too few calls.

    Examples
    --------
    >>> import secondorder as so
    >>> rows = [
    ...     {"item": item, "prompt": prompt, "run": str(r), "verdict": verdict}
    ...     for item in ("q1", "q2", "q3")
    ...     for prompt, calls in {"a": "AAAA", "b": "BBBB"}.items()
    ...     for r, verdict in enumerate(calls)
    ... ]
    >>> cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=["A", "B"])
    >>> so.permutation_test(cube, "prompt", draws=99).pvalue
    0.01
    """
    if hypothesis not in MEANINGS:
        raise InputError(
            f"{hypothesis!r} is not a hypothesis", place="hypothesis", remedy=f"choose {', '.join(MEANINGS)}"
        )
    check_draws(draws, "draws", least=19)
    if hypothesis == "labels":
        require_named_repeats(cube, "hypothesis='labels'")
    result = decompose(
        cube, facets=facets, kernel=kernel, scores=scores, invalid=invalid, incomplete=incomplete, seed=seed
    )
    found = [group_test(group, facet, hypothesis, draws, seed, listed(together)) for group in result.groups]
    first = result.groups[0]
    names = tuple(component.name for component in facet_effects(first, facet))
    return TestResult(
        facet=facet,
        hypothesis=hypothesis,
        groups=tuple(dict(group.by) for group in result.groups),
        components=names,
        estimate=np.stack([test.estimate for test in found]),
        pvalues=np.stack([test.pvalue for test in found]),
        item_pvalues=tuple(test.item_pvalues for test in found),
        item_adjusted=tuple(_adjusted(test.item_pvalues) for test in found),
        items=tuple(group.items for group in result.groups),
        draws=draws,
        seed=seed,
    )


def facet_effects(group: Group, facet: str) -> tuple[Any, ...]:
    """The facet's component and the interactions that contain it."""
    if facet not in group.design.names:
        info = group.facets.get(facet)
        problem = f"facet {facet!r} has one level" if info is not None else f"there is no facet {facet!r}"
        raise InputError(
            problem, place="permutation_test", remedy=f"facets with several levels: {', '.join(group.design.names)}"
        )
    return tuple(c for c in standard_components(group.design.names) if facet in c.name.split(":"))


def group_test(
    group: Group, facet: str, hypothesis: Hypothesis, draws: int, seed: int, together: Sequence[str] = ()
) -> PermutationTest:
    """The test of a facet in one group."""
    components = facet_effects(group, facet)
    kernel = group.calls.kernel
    if hypothesis == "benchmark":
        if len(group.items) < 2:
            raise InputError(
                "one item", place="permutation_test", remedy="the benchmark hypothesis needs at least two items"
            )
        mean = np.asarray(group.calls.cells().mean)
        main = tuple(component for component in components if component.name == facet)
        test = relabelling_test(mean, group.design, main, kernel, facet, seed=seed, n_draws=draws)
        # Only the main effect vanishes under this hypothesis; the interactions have no p value here.
        return _padded(test, len(components), [component.name == facet for component in components])
    if any(group.reasons):
        raise InputError(next(filter(None, group.reasons)), place="permutation_test")
    return shuffle_test(
        group.calls.verdicts(), group.design, components, kernel, facet,
        seed=seed, n_draws=draws, shuffled=hypothesis, together=together,
    )  # fmt: skip


def _padded(test: PermutationTest, size: int, known: list[bool]) -> PermutationTest:
    estimate, pvalue = np.full(size, np.nan), np.full(size, np.nan)
    estimate[known], pvalue[known] = test.estimate, test.pvalue
    nothing = np.zeros((0, size))
    return test._replace(items=nothing, item_pvalues=nothing, estimate=estimate, pvalue=pvalue)


def _adjusted(pvalues: NDArray[np.float64]) -> NDArray[np.float64]:
    if not len(pvalues):
        return pvalues
    return np.stack([benjamini_hochberg(column) for column in pvalues.T], axis=1)
