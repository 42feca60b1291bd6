"""Rules of aggregation: every vote by hand, voters with error rates of their own, another program."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder import studies
from secondorder.errors import CubeError, InputError, TableError, UndefinedError
from secondorder.studies import aggregate, dawid_skene, vote
from secondorder.studies._error_rates import label_free_rates, weighted_majority

from .small_cubes import cube_of
from .voting import decide

Votes = tuple[int, ...]

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
    nobody = vote([[-1, -1], [1, 1]], rule=rule, ties=ties)  # type: ignore[arg-type]
    assert nobody.codes.tolist() == [-1, 1]
    assert not nobody.tied.any()


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
        assert float(found["abstained"].estimate.sel(rule=rule)) == pytest.approx((said == "").mean().item())
    for rule in ("single", "mean", "median"):
        value = data["value"].sel(rule=rule).to_numpy()
        expected = np.corrcoef(value, right + 1)[0, 1]
        assert float(found["pearson"].estimate.sel(rule=rule)) == pytest.approx(expected, abs=1e-12)
    gap = studies.differences(found, "rule")  # shared draws: a paired band is tighter than two single ones
    row = next(row for row in gap.rows if row[:3] == ("single", "plurality", "accuracy"))
    single = found["accuracy"].se.sel(rule=["single", "plurality"]).to_numpy()
    assert float(row[5]) - float(row[4]) < 2 * 1.96 * np.hypot(*single)  # type: ignore[arg-type]
    # Both tables call a measure alike, and what has no value has no row.
    assert {row[2] for row in gap.rows} <= set(found.tables[0].columns)
    assert found.tables[0].columns.count("upper") == found.tables[0].columns.count("lower 95 %") > 0
    assert "" not in found.tables[0].columns
    nominal = aggregate(cube_of(verdict, ("item", "prompt"), list("abcde")), draws=50)
    left = studies.differences(nominal, "rule")
    assert all(row[3] is not None and not np.isnan(float(row[3])) for row in left.rows)
    assert any(note.startswith("– left out: ") and "accuracy" in note for note in left.notes)


def test_bad_requests_are_named() -> None:
    cube = cube_of([[0, 1]], ("item", "prompt"), ["A", "B"], gold=("item", ["C"]))
    with pytest.raises(CubeError, match="'C' is no class"):
        aggregate(cube)
    for wrong, words in (
        ({"rules": ["vote"]}, "'vote'.*; some of single, plurality"),
        ({"ties": "first"}, "ties='first'; say one of abstain"),
        ({"default": "p9"}, "no voter 'p9'"),
        ({"correlations": ["r"]}, "'r'.*; some of .*'pearson'"),
    ):
        with pytest.raises(InputError, match=words):
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
    silent = ~votes.any((1, 2))
    assert np.isnan(fit.posterior[silent]).all()
    np.testing.assert_allclose(fit.posterior[~silent].sum(1), 1)
    relabelled = dawid_skene(votes[:, :, [2, 0, 1]])
    np.testing.assert_allclose(relabelled.posterior, fit.posterior[:, [2, 0, 1]], atol=1e-9)
    with pytest.raises(UndefinedError, match="no task"):
        dawid_skene(np.zeros((3, 2, 2)))
    with pytest.raises(TableError, match="task x voter x class"):
        dawid_skene([[0, 1], [1, 0]])


def test_an_invalid_verdict_is_said_but_never_right() -> None:
    # Where it could be right, a few invalid votes hold a class up that does not exist.
    rng = np.random.default_rng(3)
    right = rng.integers(0, 2, 400)
    said = np.where(rng.random((400, 5)) < 0.75, right[:, None], 1 - right[:, None])
    said[rng.random((400, 5)) < 0.03] = 2
    said[0] = 2
    fit = dawid_skene(np.eye(3)[said], right=2)
    assert (fit.posterior[:, 2] == 0).all()
    assert fit.prior[2] == 0
    np.testing.assert_allclose(fit.posterior.sum(1), 1)
    np.testing.assert_allclose(fit.confusion[:, :2].sum(-1), 1)
    # An even start for the task of which nothing valid is known; its posterior comes from what invalid votes tell.
    assert 0 < fit.posterior[0, 0] < 1
    cube = cube_of(said, ("item", "prompt"), ["A", "B", "⊥"], gold=("item", np.array(["A", "B"])[right].tolist()))
    found = aggregate(cube, rules=["plurality", "dawid_skene"], draws=0)
    decisions = found.data["decision"].sel(rule="dawid_skene").to_numpy()
    assert set(decisions.ravel().tolist()) == {"A", "B"}
    with pytest.raises(InputError, match="right=4"):
        dawid_skene(np.eye(3)[said], right=4)


def test_one_invalid_verdict_makes_no_third_answer_of_a_weighted_majority() -> None:
    """Error rates of two classes stay those of two classes: for another judge, too."""
    rng = np.random.default_rng(0)
    right = (rng.random(400) < 0.85).astype(int)
    said = np.where(rng.random((400, 5)) < [0.95, 0.7, 0.7, 0.7, 0.6], right[:, None], 1 - right[:, None])
    one = said.copy()
    one[0] = 2
    cube = cube_of(np.stack([said, one]), ("judge", "item", "prompt"), ["A", "B", "⊥"], judge=["x", "y"])
    found = aggregate(cube, rules=["weighted"], draws=0)
    aside = aggregate(cube, rules=["weighted"], draws=0, invalid="missing")
    xr.testing.assert_equal(found.data["decision"], aside.data["decision"])
    assert found.data["decision"].sel(judge="y").to_numpy().ravel()[0] == ""
    assert "weighted: ⊥ is no vote." in found.notes


def test_a_class_that_few_votes_hold_up_is_doubted() -> None:
    """Twenty tasks of one mind, ten split ones in which one voter of five says C: the fit gives C all of the ten."""
    split = ["CABAB", "ACBBA", "BACAB", "ABBCA", "BBAAC"] * 2
    for third, doubted in (("C", True), ("A", False)):
        tasks = ["AAAAA"] * 10 + ["BBBBB"] * 10 + [task.replace("C", third) for task in split]
        cube = cube_of([["ABC".index(vote) for vote in task] for task in tasks], ("item", "prompt"), list("ABC"))
        notes = aggregate(cube, rules=["dawid_skene"], draws=0).notes
        said = "34 % of the decisions and 7 % of the votes are 'C': few votes can hold a class up that is not there"
        assert any(said in note for note in notes) is doubted
        assert any("% of the decisions" in note for note in notes) is doubted


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


def test_the_order_and_number_of_tasks_change_no_error_rate() -> None:
    """Tasks with the same votes are one row of the fit; twice the data have twice its log-likelihood."""
    rng = np.random.default_rng(7)
    votes = np.eye(3)[rng.integers(0, 3, (40, 4))]
    votes[3] = 0  # nobody voted
    once, mixed = dawid_skene(votes), rng.permutation(40)
    twice = dawid_skene(np.concatenate([votes, votes[mixed]]))
    np.testing.assert_allclose(twice.confusion, once.confusion, atol=1e-9)
    np.testing.assert_allclose(twice.posterior, once.posterior[[*range(40), *mixed]], atol=1e-9)
    assert twice.log_likelihood == pytest.approx(2 * once.log_likelihood, rel=1e-12)
    with pytest.raises(UndefinedError, match="no task"):
        dawid_skene(np.zeros((0, 3, 2)))


def test_an_ordered_tie_needs_an_order() -> None:
    """Classes that were found stand in the order of the alphabet: taking the first would be a bias nobody declared."""
    rows = [
        {"q": q, "p": p, "v": v} for q, pair in enumerate(("AB", "BA", "AA")) for p, v in zip("xy", pair, strict=True)
    ]
    asked: dict[str, Any] = {"item": "q", "facets": ["p"], "verdict": "v", "number_repeats": True}
    found, declared = so.make_cube(rows, **asked), so.make_cube(rows, **asked, classes=["B", "A"])
    with pytest.raises(InputError, match="first of the alphabet"):
        aggregate(found, voters="p", ties="ordered", draws=0)
    with pytest.raises(InputError, match="first of the alphabet"):
        studies.match_budget(found, prompt="p", ties="ordered", draws=0)
    said = aggregate(declared, voters="p", rules=["plurality"], ties="ordered", draws=0).data["decision"]
    assert said.to_numpy().ravel().tolist() == ["B", "B", "A"]


def test_names_in_digits_have_no_mean() -> None:
    """A cube whose kernel is nominal says that its classes 1 and 2 are candidates."""
    cube = xr.Dataset({"verdict": (("item", "prompt"), [[0, 0, 1], [1, 1, 0]])}, coords={"class": ["1", "2"]})
    assert "mean" in aggregate(cube, draws=0).data["rule"]
    named = cube.assign_attrs(kernel="nominal")
    assert not {"mean", "median"} & set(aggregate(named, draws=0).data["rule"].to_numpy().tolist())
    assert "mean" in aggregate(named, scores={"1": 0, "2": 1}, draws=0).data["rule"]


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
    monkeypatch.setattr(_rules, "dawid_skene", lambda votes, right: dawid_skene(votes, right=right, steps=2))
    rows = aggregate(cube, **asked).tables[0].rows  # type: ignore[arg-type]
    assert [row[:2] for row in rows] == [(judge, rule) for judge in "ab"
                                         for rule in ("plurality", "dawid_skene (no convergence)")]  # fmt: skip
