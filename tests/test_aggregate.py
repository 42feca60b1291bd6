"""Rules of aggregation, convergence, and the budget-matched comparison against exhaustive enumeration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, permutations, product
from pathlib import Path
from statistics import mean, median

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder import studies
from secondorder.errors import CubeError, InputError, TableError, UndefinedError
from secondorder.studies import aggregate, convergence, convergence_cost, dawid_skene, match_budget, vote
from secondorder.studies._call_laws import repeats_law
from secondorder.studies._error_rates import label_free_rates, weighted_majority
from secondorder.studies._moments import outcome_values, repeats_moments, subsets_moments
from secondorder.studies._stopping import stop_law, stop_times

Votes = tuple[int, ...]
Decision = dict[int | None, Fraction]


def cube_of(verdict: object, dims: tuple[str, ...], classes: list[str], **coords: object) -> xr.Dataset:
    return xr.Dataset({"verdict": (dims, np.asarray(verdict))}, coords={"class": classes, **coords})


def decide(votes: Sequence[int], rule: str, ties: str) -> Decision:
    """The rules once more, on a list of votes; None abstains."""
    counts = Counter(votes)
    most = max(counts.values())
    ahead = sorted(label for label, n in counts.items() if n == most)
    if rule == "majority":
        return {ahead[0]: Fraction(1)} if 2 * most > len(votes) else {None: Fraction(1)}
    if len(ahead) == 1 or ties == "ordered":
        return {ahead[0]: Fraction(1)}
    return {None: Fraction(1)} if ties == "abstain" else {label: Fraction(1, len(ahead)) for label in ahead}


# Votes ----------------------------------------------------------------------------------------------------------------


def test_tied_votes_do_not_go_to_the_first_letter() -> None:
    votes = cube_of([[1, 0, 0, 1], [0, 1, 1, 0]], ("item", "prompt"), ["A", "B"], gold=("item", ["A", "B"]))
    assert aggregate(votes, rules=["plurality"], draws=0).data["decision"].to_numpy().ravel().tolist() == ["", ""]
    assert vote([[1, 0, 0, 1], [0, 1, 1, 0]], ties="ordered").codes.tolist() == [0, 0]
    many = vote([[1, 0, 0, 1], [0, 1, 1, 0]] * 1000, ties="random", seed=1)
    assert many.tied.all()
    # Binomial(2000, 1/2): beyond 4.5 sd with probability 7e-6; a fixed choice is 45 sd away.
    assert abs(many.codes.mean() - 0.5) < 4.5 * 0.5 / np.sqrt(2000)


def test_a_drawn_tie_belongs_to_its_item() -> None:
    verdict = np.tile([0, 1], (40, 1))
    cube = cube_of(verdict, ("item", "prompt"), ["A", "B"], item=[f"q{i}" for i in range(40)])
    whole = aggregate(cube, rules=["plurality"], ties="random", draws=0).data["decision"]
    part = aggregate(cube.isel(item=slice(5, 40, 3)), rules=["plurality"], ties="random", draws=0).data["decision"]
    assert (part == whole.sel(item=part["item"])).all()
    assert set(whole.to_numpy().ravel()) == {"A", "B"}


@pytest.mark.parametrize("ties", ["abstain", "ordered", "random"])
@pytest.mark.parametrize("rule", ["plurality", "majority"])
def test_every_vote_of_four_is_decided_as_by_hand(rule: str, ties: str) -> None:
    every = list(product(range(3), repeat=4))
    found = vote(every, rule=rule, ties=ties)  # type: ignore[arg-type]
    for votes, code in zip(every, found.codes.tolist(), strict=True):
        allowed = {-1 if label is None else label for label in decide(votes, rule, ties)}
        assert code in allowed


def test_mean_median_and_missing_votes() -> None:
    verdict = [[0, 4, 1, -1], [5, 2, 3, 4], [5, 5, 5, 5], [-1, -1, -1, -1]]  # class 5 is ⊥
    human = [2.0, 4.0, 1.0, 3.0]
    cube = cube_of(verdict, ("item", "prompt"), [*"12345", "⊥"], gold=("item", human))
    found = aggregate(cube, rules=["mean", "median", "plurality", "majority"], draws=0)
    value = found.data["value"].isel(event=0)
    np.testing.assert_allclose(value.sel(rule="mean"), [8 / 3, 4, np.nan, np.nan])
    np.testing.assert_allclose(value.sel(rule="median"), [2, 4, np.nan, np.nan])
    assert found.data["decision"].sel(rule="plurality").to_numpy().ravel().tolist() == ["", "", "⊥", ""]
    assert int(found.data["n_events"][0]) == 3
    assert int(found.data["n_invalid"][0]) == 5
    assert str(found["accuracy"].reason.sel(rule="mean").item()) == "a score is no class"
    three = cube_of([[0, 0, 1, -1]], ("item", "prompt"), ["A", "B"])
    assert aggregate(three, rules=["majority"], draws=0).data["decision"].item() == ""  # 2 of 4 asked are no majority


def test_accuracy_and_correlation_are_those_of_the_decisions() -> None:
    rng = np.random.default_rng(3)
    right = rng.integers(0, 5, 60)
    verdict = np.clip(right[:, None] + rng.integers(-1, 2, (60, 5)), 0, 4)
    cube = cube_of(verdict, ("item", "prompt"), list("12345"), gold=("item", [str(c + 1) for c in right]))
    found = aggregate(cube, draws=300)
    data = found.data.isel(event=0)
    for rule in ("single", "plurality", "dawid_skene", "weighted"):
        said = data["decision"].sel(rule=rule)
        assert float(found["accuracy"].estimate.sel(rule=rule)) == pytest.approx((said == cube["gold"]).mean().item())
    for rule in ("single", "mean", "median"):
        value = data["value"].sel(rule=rule).to_numpy()
        expected = np.corrcoef(value, right + 1)[0, 1]
        assert float(found["pearson"].estimate.sel(rule=rule)) == pytest.approx(expected, abs=1e-12)
    gap = studies.differences(found, "rule")  # shared draws: a paired band is tighter than two single ones
    row = next(row for row in gap.rows if row[:3] == ("single", "plurality", "accuracy"))
    single = found["accuracy"].se.sel(rule=["single", "plurality"]).to_numpy()
    assert float(row[5]) - float(row[4]) < 2 * 1.96 * np.hypot(*single)  # type: ignore[arg-type]


def test_bad_requests_are_named() -> None:
    cube = cube_of([[0, 1]], ("item", "prompt"), ["A", "B"], gold=("item", ["C"]))
    with pytest.raises(CubeError, match="'C' is no class"):
        aggregate(cube)
    for wrong in ({"rules": ["vote"]}, {"ties": "first"}, {"default": "p9"}, {"correlations": ["r"]}):
        with pytest.raises(InputError):
            aggregate(cube.drop_vars("gold"), **wrong)  # type: ignore[arg-type]
    with pytest.raises(CubeError, match="one voter"):
        aggregate(cube.isel(prompt=[0]))
    with pytest.raises(TableError, match="whole-number"):
        vote([[0.5]])


# Voters with error rates of their own ---------------------------------------------------------------------------------

FORMULA = [
    [(1 if (t * t + 3 * t) % 7 < 3 else 0) ^ (1 if (t * (w + 2) + w * w) % (4 + w) == 0 else 0) for w in range(5)]
    for t in range(40)
]


def test_dawid_skene_equals_crowd_kit() -> None:
    # crowd-kit 1.4.2, DawidSkene(n_iter=5000, tol=0), Python 3.11, numpy 2.4.6, pandas 3.1.1, 2026-11-30. It keeps
    # every probability above 1e-10, which moves the last digits.
    fit = dawid_skene(np.eye(2)[FORMULA], tolerance=0, steps=5000)
    assert fit.converged
    np.testing.assert_allclose(fit.prior, [0.8286928071, 0.1713071929], atol=2e-6)
    np.testing.assert_allclose(fit.confusion[:, 0, 0], [0.599975, 0.724032, 0.635013, 0.663696, 0.784368], atol=2e-6)
    np.testing.assert_allclose(fit.confusion[:, 1, 1], [0.9836234, 1, 0.7153133, 1, 1], atol=2e-6)
    posterior = np.zeros(40)
    posterior[[7, 8, 21, 25, 39]], posterior[[11, 35]], posterior[14] = 0.98030646, 0.9192691, 0.11221722
    np.testing.assert_allclose(fit.posterior[:, 1], posterior, atol=2e-6)


def test_dawid_skene_climbs_and_takes_repeats_and_gaps() -> None:
    rng = np.random.default_rng(2)
    right = rng.integers(0, 3, 60)
    said = np.where(rng.random((60, 4)) < 0.7, right[:, None], rng.integers(0, 3, (60, 4)))
    votes = np.eye(3)[said] * rng.integers(0, 3, (60, 4, 1))
    votes[7] = 0
    likelihoods = [dawid_skene(votes, steps=k).log_likelihood for k in range(1, 30)]
    assert (np.diff(likelihoods) >= -1e-9).all()
    fit = dawid_skene(votes)
    assert np.isnan(fit.posterior[7]).all()
    np.testing.assert_allclose(np.delete(fit.posterior, 7, axis=0).sum(1), 1)
    relabelled = dawid_skene(votes[:, :, [2, 0, 1]])
    np.testing.assert_allclose(relabelled.posterior, fit.posterior[:, [2, 0, 1]], atol=1e-9)
    with pytest.raises(UndefinedError, match="no task"):
        dawid_skene(np.zeros((3, 2, 2)))
    with pytest.raises(TableError):
        dawid_skene([[0, 1], [1, 0]])


def test_error_rates_are_exact_at_exact_moments() -> None:
    """A table that holds every vote pattern in proportion to its law gives the law back."""
    sensitivity, specificity, share = (0.9, 0.8, 0.7), (0.8, 0.9, 0.6), 0.3
    rows: list[tuple[int, ...]] = []
    for votes in product((0, 1), repeat=3):
        positive = np.prod([s if v else 1 - s for s, v in zip(sensitivity, votes, strict=True)])
        negative = np.prod([1 - s if v else s for s, v in zip(specificity, votes, strict=True)])
        rows += [votes] * round(100_000 * (share * positive + (1 - share) * negative))
    found = label_free_rates(rows, n_classes=2)
    np.testing.assert_allclose(found.confusion[:, 1, 1], sensitivity, atol=1e-3)
    np.testing.assert_allclose(found.confusion[:, 0, 0], specificity, atol=1e-3)
    assert found.prior[1] == pytest.approx(share, abs=1e-3)
    posterior = weighted_majority([[1, 1, 1], [0, 0, 0], [-1, -1, -1]], found)
    assert posterior[0, 1] == pytest.approx(0.3 * 0.504 / (0.3 * 0.504 + 0.7 * 0.2 * 0.1 * 0.4), abs=2e-3)
    assert np.isnan(posterior[2]).all()


def test_one_rate_for_more_classes_and_the_gain_of_weights() -> None:
    rng = np.random.default_rng(5)
    right = rng.integers(0, 4, 20_000)
    accuracy = np.array([0.9, 0.4, 0.4, 0.4, 0.4])
    wrong = (right[:, None] + rng.integers(1, 4, (20_000, 5))) % 4
    said = np.where(rng.random((20_000, 5)) < accuracy, right[:, None], wrong)
    found = label_free_rates(said, n_classes=4)
    # The standard error of each accuracy is below .006: beyond 5 sd with probability 3e-6.
    np.testing.assert_allclose(found.confusion[:, 0, 0], accuracy, atol=0.03)
    gain = (weighted_majority(said, found).argmax(1) == right).mean() - (vote(said).codes == right).mean()
    assert gain > 0.15
    with pytest.raises(TableError, match="three voters"):
        label_free_rates(said[:, :2], n_classes=4)
    with pytest.raises(UndefinedError, match="no more than chance"):
        label_free_rates([[0, 1, 0], [1, 0, 1]], n_classes=2)


# Convergence ----------------------------------------------------------------------------------------------------------


def stopped(votes: Sequence[int], rule: str) -> int:
    """First m at which a rule holds; len + 1 for never."""
    size = len(votes)
    for m in range(1, size + 1):
        ranked = [*sorted(Counter(votes[:m]).values(), reverse=True), 0]
        if ranked[0] > size // 2 if rule == "majority" else ranked[0] - ranked[1] > size - m:
            return m
    return size + 1


@pytest.mark.parametrize("rule", ["majority", "decided"])
def test_stopping_times_equal_every_order_by_hand(rule: str) -> None:
    for size in (2, 4, 5):
        for votes in {tuple(sorted(v)) for v in product(range(3), repeat=size)}:
            one_hot = np.eye(3)[list(votes)]
            declared = stop_times(one_hot, rule=rule)  # type: ignore[arg-type]
            assert declared.tolist() == [float(stopped(votes, rule) == m) for m in range(1, size + 2)]
            orders = [stopped(order, rule) for order in permutations(votes)]
            expected = [orders.count(m) / len(orders) for m in range(1, size + 2)]
            law = stop_law(one_hot.sum(0)[None], rule=rule, n_voters=size)[0]  # type: ignore[arg-type]
            np.testing.assert_allclose(law, expected, atol=1e-12)


def test_a_decided_outcome_cannot_change_and_an_undecided_one_can() -> None:
    for votes in product(range(2), repeat=5):
        m = stopped(votes, "decided")
        for k in range(1, 5):
            ends = {
                max(Counter(v).items(), key=lambda x: (x[1], -x[0]))[0]
                for rest in product(range(2), repeat=5 - k)
                for v in [(*votes[:k], *rest)]
            }
            assert (len(ends) == 1) == (k >= m)


def test_cost_of_full_aggregation_is_the_paper_s() -> None:
    assert convergence_cost({3: 0.3768, 5: 0.2105}, voters=5) == pytest.approx(4.2464, abs=1e-12)
    with pytest.raises(InputError):
        convergence_cost({3: 0.9, 5: 0.2}, voters=5)
    with pytest.raises(InputError):
        convergence_cost({6: 0.2}, voters=5)


def test_consensus_of_the_default() -> None:
    verdict = [[0, 0, 0, 1, 1], [0, 1, 0, 1, 2], [1, 0, 0, 0, 0], [2, 2, 2, 2, 2], [0, 0, -1, 0, 0]]
    cube = cube_of(verdict, ("item", "prompt"), list("ABC"), prompt=list("vwxyz"))
    found = convergence(cube, draws=0)
    got = {name: float(found[name].estimate) for name in found.data["measure"].to_numpy()}
    assert int(found.data["n_events"]) == 4
    assert int(found.data["n_left_out"]) == 1
    assert got["default_is_plurality"] == 0.5  # item 2 is tied, item 3 disagrees
    assert got["default_is_clear_plurality"] == pytest.approx(2 / 3)
    assert (got["plurality"], got["majority"], got["unanimous"]) == (0.75, 0.75, 0.25)
    assert [got[f"majority_{k}"] for k in ("stop_3", "stop_4", "stop_5", "never")] == [0.5, 0.25, 0, 0.25]
    assert got["majority_calls"] == (3 + 5 + 4 + 3) / 4
    other = convergence(cube, default="w", draws=0)
    assert float(other["default_is_plurality"].estimate) == 0.75
    tied = convergence(cube_of([[0, 1]], ("item", "prompt"), ["A", "B"]), draws=0)
    assert "tied" in str(tied["default_is_clear_plurality"].reason.item())


# At equal calls -------------------------------------------------------------------------------------------------------


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


def test_single_calls_at_equal_budget_are_the_agreements_of_the_repeat_aware_study(data_dir: Path) -> None:
    cube = so.read_table(
        data_dir / "judge_consistency" / "calls.csv",
        item="item",
        facets=["prompt"],
        repeat="repeat",
        verdict="verdict",
        invalid=[""],
        by="judge",
    )
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
    with pytest.raises(InputError):
        match_budget(cube, rule="dawid_skene")
    with pytest.raises(InputError):
        match_budget(cube, calls=[0])


def test_equally_probable_classes_are_tied_as_votes_are() -> None:
    """Two voters who split as often either way give no class more weight: the alphabet decides nothing."""
    verdict = [[0, 0], [1, 1], [0, 1], [1, 0]] * 3
    cube = xr.Dataset({"verdict": (("item", "prompt"), verdict)}, coords={"class": ["a", "b"]})
    split = [row[0] != row[1] for row in verdict]
    for ties, said in (("abstain", {""}), ("ordered", {"a"}), ("random", {"a", "b"})):
        found = aggregate(cube, rules=["dawid_skene"], ties=ties, draws=0).data["decision"].to_numpy().ravel()  # type: ignore[arg-type]
        assert set(found[split].tolist()) == said
        assert "" not in found[np.logical_not(split)].tolist()


def test_a_fit_that_did_not_converge_is_marked_in_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    from secondorder.studies import _rules

    rng = np.random.default_rng(0)
    cube = xr.Dataset(
        {"verdict": (("judge", "item", "prompt"), rng.integers(0, 2, (2, 30, 3)))},
        coords={"judge": ["a", "b"], "prompt": ["p1", "p2", "p3"], "class": ["A", "B"], "gold": ("item", ["A"] * 30)},
    )
    asked = {"rules": ["plurality", "dawid_skene"], "draws": 0}
    monkeypatch.setattr(_rules, "dawid_skene", lambda votes: dawid_skene(votes, steps=2))
    rows = aggregate(cube, **asked).tables[0].rows  # type: ignore[arg-type]
    assert [row[:2] for row in rows] == [(judge, rule) for judge in "ab"
                                         for rule in ("plurality", "dawid_skene (no convergence)")]  # fmt: skip
