"""The budget-matched comparison against every choice of calls, and its averages against the law."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, product
from statistics import mean, median

import numpy as np
import pytest
import xarray as xr

from secondorder import studies
from secondorder.errors import CubeError, InputError
from secondorder.studies import match_budget
from secondorder.studies._call_laws import repeats_law
from secondorder.studies._moments import outcome_values, repeats_moments, subsets_moments

from .small_cubes import cube_of
from .voting import Decision, decide

Votes = tuple[int, ...]


def mean_over(cases: Iterator[object], value: Callable[..., Fraction]) -> Fraction:
    found = [value(case) for case in cases]
    return sum(found, Fraction(0)) / len(found)


def chance(decision: Decision, label: int | None) -> Fraction:
    return decision.get(label, Fraction(0))


def agree(first: Decision, second: Decision) -> Fraction:
    return sum((p * chance(second, label) for label, p in first.items() if label is not None), Fraction(0))


def disjoint(size: int, m: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for first in combinations(range(size), m):
        for second in combinations([i for i in range(size) if i not in first], m):
            yield first, second


@pytest.mark.parametrize(("rule", "ties"), [("plurality", "random"), ("plurality", "abstain"), ("majority", "random")])
@pytest.mark.parametrize("m", [1, 2])
def test_budget_matched_numbers_equal_every_choice_of_disjoint_calls(rule: str, ties: str, m: int) -> None:
    rng = np.random.default_rng(10 * m)
    verdict = rng.integers(0, 3, (3, 2, 4, 4))  # item, judge, prompt, repeat
    right = [0, 1, 2]
    cube = cube_of(verdict, ("item", "judge", "prompt", "repeat"), list("ABC"), gold=("item", list("ABC")))
    found = match_budget(cube, calls=[m], rule=rule, ties=ties, draws=0).data["estimate"].isel(calls=0)  # type: ignore

    def take(i: int, cells: Sequence[tuple[int, int, int]]) -> Decision:
        return decide([int(verdict[i][cell]) for cell in cells], rule, ties)

    def sets(source: str) -> Iterator[tuple[list[tuple[int, int, int]], list[tuple[int, int, int]], str]]:
        if source == "repeats":
            for j, k in product(range(2), range(4)):
                for a, b in disjoint(4, m):
                    yield [(j, k, r) for r in a], [(j, k, r) for r in b], "shared"
                for other in [x for x in range(4) if x != k]:
                    for a, b in product(combinations(range(4), m), repeat=2):
                        yield [(j, k, r) for r in a], [(j, other, r) for r in b], "fresh"
        for levels, held in ((4, 2), (2, 4)):
            if source != ("prompts" if levels == 4 else "judges") or m > levels:
                continue

            def at(h: int, level: int, r: int, flip: bool = levels == 2) -> tuple[int, int, int]:
                return (level, h, r) if flip else (h, level, r)

            for h in range(held):
                for subset in combinations(range(levels), m):
                    for a in product(range(4), repeat=m):
                        for b in product(range(4), repeat=m):
                            if all(x != y for x, y in zip(a, b, strict=True)):
                                first = [at(h, level, r) for level, r in zip(subset, a, strict=True)]
                                yield first, [at(h, level, r) for level, r in zip(subset, b, strict=True)], "shared"
                for one, two in disjoint(levels, m):
                    for a, b in product(product(range(4), repeat=m), repeat=2):
                        first = [at(h, level, r) for level, r in zip(one, a, strict=True)]
                        yield first, [at(h, level, r) for level, r in zip(two, b, strict=True)], "fresh"

    for source in ("repeats", "prompts", "judges"):
        every = list(sets(source))
        for kind in ("shared", "fresh"):
            pairs = [(a, b) for a, b, what in every if what == kind]
            got = float(found.sel(source=source, measure=f"stability_{kind}"))
            if not pairs:
                assert np.isnan(got)
                continue
            value = mean_over(
                ((i, a, b) for i in range(3) for a, b in pairs), lambda x: agree(take(x[0], x[1]), take(x[0], x[2]))
            )
            assert got == pytest.approx(float(value), abs=1e-12), (source, kind)
        firsts = [a for a, _, what in every if what == "shared"]
        correct = mean_over(((i, a) for i in range(3) for a in firsts), lambda x: chance(take(*x), right[x[0]]))
        assert float(found.sel(source=source, measure="accuracy")) == pytest.approx(float(correct), abs=1e-12)
        silent = mean_over(((i, a) for i in range(3) for a in firsts), lambda x: chance(take(*x), None))
        assert float(found.sel(source=source, measure="abstained")) == pytest.approx(float(silent), abs=1e-12)


def test_scores_at_equal_calls_equal_every_choice() -> None:
    rng = np.random.default_rng(4)
    verdict = rng.integers(0, 5, (6, 3, 4))
    verdict[0, 0, 0] = 5  # ⊥ has no score
    human = rng.normal(size=6)
    cube = cube_of(verdict, ("item", "prompt", "repeat"), [*"12345", "⊥"], gold=("item", human))
    for rule, score in (("mean", mean), ("median", median)):
        found = match_budget(cube, calls=[2], rule=rule, draws=0).data["estimate"].isel(calls=0)
        pairs: dict[str, list[tuple[float, float, float]]] = {"repeats": [], "prompts": []}

        def value(i: int, cells: list[tuple[int, int]], score: Callable[..., float] = score) -> float:
            valid = [float(verdict[i][cell]) + 1 for cell in cells if verdict[i][cell] < 5]
            return float(score(valid)) if valid else float("nan")

        for i in range(6):
            for k in range(3):
                for a, b in disjoint(4, 2):
                    pairs["repeats"].append((value(i, [(k, r) for r in a]), value(i, [(k, r) for r in b]), human[i]))
            for subset in combinations(range(3), 2):
                for a, b in product(product(range(4), repeat=2), repeat=2):
                    if a[0] != b[0] and a[1] != b[1]:
                        first, second = (list(zip(subset, c, strict=True)) for c in (a, b))
                        pairs["prompts"].append((value(i, first), value(i, second), human[i]))
        fresh = [
            (value(i, [(k, r) for r in a]), value(i, [(other, r) for r in b]))
            for i in range(6)
            for k, other in product(range(3), repeat=2)
            if k != other
            for a, b in product(combinations(range(4), 2), repeat=2)
        ]
        x, y = np.array([row for row in fresh if not np.isnan(row).any()]).T
        got = found.sel(measure="reliability_fresh")
        assert float(got.sel(source="repeats")) == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-12)
        assert np.isnan(float(got.sel(source="prompts")))  # three prompts hold no two sets of two
        for source, rows in pairs.items():
            x, y, h = np.array(rows).T
            both = ~np.isnan(x) & ~np.isnan(y)
            got = found.sel(source=source)
            assert float(got.sel(measure="pearson")) == pytest.approx(np.corrcoef(x, h)[0, 1], abs=1e-12)
            assert float(got.sel(measure="reliability_shared")) == pytest.approx(
                np.corrcoef(x[both], y[both])[0, 1], abs=1e-12
            )


def test_averages_over_every_data_set_are_the_truth_at_the_law() -> None:
    """Two prompts with laws p, four calls each: all 256 data sets, weighted; the truth from fresh independent calls."""
    laws = (Fraction(1, 3), Fraction(3, 4))  # probability of class 1 under each prompt
    sets, weights = [], []
    for calls in product(product((0, 1), repeat=4), repeat=2):
        ones = [sum(c) for c in calls]
        sets.append([[[4 - n, n] for n in ones]])
        weights.append(np.prod([float(p**n * (1 - p) ** (4 - n)) for p, n in zip(laws, ones, strict=True)]))
    counts, weight = np.array(sets, dtype=float), np.array(weights)

    def law_of(prompts: Sequence[int]) -> dict[Votes, Fraction]:
        found = {}
        for votes in product((0, 1), repeat=len(prompts)):
            chances = [laws[k] if v else 1 - laws[k] for k, v in zip(prompts, votes, strict=True)]
            found[votes] = Fraction(1)
            for p in chances:
                found[votes] *= p
        return found

    def truth(first: Sequence[int], second: Sequence[int]) -> float:
        total = Fraction(0)
        for (a, p), (b, q) in product(law_of(first).items(), law_of(second).items()):
            total += p * q * agree(decide(a, "plurality", "random"), decide(b, "plurality", "random"))
        return float(total)

    outcome = outcome_values(2, 2, None, rule="plurality", ties="random")
    means, shared, fresh = repeats_moments(counts, outcome)
    assert shared.products is not None
    assert fresh.products is not None
    of_repeats = np.mean([truth([k, k], [k, k]) for k in (0, 1)])
    assert weight @ np.trace(shared.products[:, :2, :2], axis1=1, axis2=2) == pytest.approx(of_repeats, abs=1e-12)
    of_two = truth([0, 0], [1, 1])
    assert weight @ np.trace(fresh.products[:, :2, :2], axis1=1, axis2=2) == pytest.approx(of_two, abs=1e-12)
    accuracy = np.mean(
        [float(sum(p * chance(decide(v, "plurality", "random"), 1) for v, p in law_of([k, k]).items())) for k in (0, 1)]
    )
    assert weight @ means[:, 1] == pytest.approx(accuracy, abs=1e-12)
    _, mixed, none = subsets_moments(counts, outcome, what="prompts")
    assert mixed.products is not None
    of_prompts = truth([0, 1], [0, 1])
    assert weight @ np.trace(mixed.products[:, :2, :2], axis1=1, axis2=2) == pytest.approx(of_prompts, abs=1e-12)
    assert none.products is None
    # Comparing overlapping subsets of the same four calls, as is done by resampling, is far from the truth.
    cells = counts.reshape(-1, 2)
    _, law = repeats_law(cells, 2)
    decided = law @ outcome.value[:, :2]
    overlapping = (decided * decided).sum(1).reshape(-1, 2).mean(1)
    assert weight @ overlapping > of_repeats + 0.05


def test_single_calls_at_equal_budget_are_the_agreements_of_the_repeat_aware_study(
    judge_consistency: xr.Dataset,
) -> None:
    cube = judge_consistency
    found = match_budget(cube, by="judge", calls=[1, 5, 11], draws=0)
    aware = studies.repeat_agreement(cube, draws=0)
    stability = found.data["estimate"].sel(source="repeats", calls=1)
    for ours, theirs in (("stability_shared", "within"), ("stability_fresh", "across")):
        np.testing.assert_allclose(stability.sel(measure=ours), aware[theirs].estimate, atol=1e-12)
    last = found["stability_shared"].sel(source="repeats", calls=11)
    assert last.estimate.isnull().all()
    assert "need 22 calls per cell, there are 20" in str(last.reason[0].item())
    assert (
        found["stability_shared"].estimate.sel(source="repeats", calls=5) > stability.sel(measure="stability_shared")
    ).all()
    assert "judges" in str(found["accuracy"].reason.sel(source="judges", calls=5)[0].item())


def test_missing_calls_are_refused_or_left_out_and_bands_pair_the_sources() -> None:
    rng = np.random.default_rng(8)
    right = rng.integers(0, 2, 80)
    wrong = rng.random((80, 4, 6)) < rng.beta(1, 2, (80, 4, 1))
    verdict = np.where(wrong, 1 - right[:, None, None], right[:, None, None])
    verdict[5, 1, 3] = -1
    cube = cube_of(verdict, ("item", "prompt", "repeat"), ["A", "B"], gold=("item", np.array(["A", "B"])[right]))
    with pytest.raises(CubeError, match="1 items lack calls"):
        match_budget(cube)
    found = match_budget(cube, incomplete="drop-item", calls=[3], draws=400)
    assert (found.data["n_items"] == 79).all()
    gap = studies.differences(found, "source")
    row = next(row for row in gap.rows if row[:2] == ("repeats", "prompts") and "accuracy" in row)
    # Prompts err independently here, calls of one prompt do not: three prompts are surely better than three repeats.
    assert float(row[-1]) < 0  # type: ignore[arg-type]
    apart = cube.assign_coords(task=("item", ["x"] * 5 + ["y"] + ["x"] * 74))
    lost = match_budget(apart, by="task", incomplete="drop-item", calls=[3], draws=0).data.sel(task="y", calls=3)
    assert set(lost["reason"].sel(source="prompts").to_numpy().tolist()) == {"no item has all of its calls"}
    verdict[:, 3, 0] = -1
    short = cube_of(verdict, ("item", "prompt", "repeat"), ["A", "B"])
    with pytest.raises(CubeError, match="no item has 6 calls in every cell"):
        match_budget(short, incomplete="drop-item")
    with pytest.raises(InputError, match="say one of plurality, majority, mean, median"):
        match_budget(cube, rule="dawid_skene")
    with pytest.raises(InputError, match="whole numbers from 1"):
        match_budget(cube, calls=[0])
