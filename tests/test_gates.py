"""Gates: the paper's cost derivation, disjoint splits, measures case by case, and saved files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from secondorder.errors import CorruptFileError, CubeError, InputError, SchemaError
from secondorder.studies import evaluate_gate, fit_gate, gate_costs, open_gate
from secondorder.studies._gate_cases import make_cases
from secondorder.studies._gate_fit import best_threshold, folds_of, matthews, out_of_fold

from .small_cubes import PROMPTS, panel


def value(found: object, name: str) -> float:
    return float(found[name].estimate)  # type: ignore[index]


# Costs ----------------------------------------------------------------------------------------------------------------


def test_costs_are_those_of_the_paper() -> None:
    found = gate_costs(tpr=0.8506, tnr=0.6942, stable=0.44, cost_stable=4.247)
    assert found.calls_stable == pytest.approx(1.993, abs=5e-4)
    assert found.saved_stable == pytest.approx(0.601, abs=5e-4)
    assert found.calls == pytest.approx(2.98, abs=5e-3)
    assert found.saved == pytest.approx(0.40, abs=5e-3)
    assert gate_costs(tpr=1, tnr=1, stable=1, cost_stable=5).calls == 1
    assert gate_costs(tpr=1, tnr=0, stable=0.3, cost_stable=4, cost_needs=5).calls == pytest.approx(0.3 * 4 + 0.7 * 5)
    for wrong in ({"tpr": 1.2}, {"stable": -0.1}, {"cost_stable": 6.0}, {"cost_needs": 0.5}):
        with pytest.raises(InputError, match=f"{next(iter(wrong))}=.*between"):
            gate_costs(**{"tpr": 0.5, "tnr": 0.5, "stable": 0.5, "cost_stable": 4.0, **wrong})


def test_calls_follow_from_the_error_rates_by_the_derivation() -> None:
    found = evaluate_gate(panel(), signals=("verdict", "hard"), draws=0)
    derived = gate_costs(
        tpr=value(found, "tpr"), tnr=value(found, "tnr"), stable=1 - value(found, "needs"), cost_stable=5
    )
    for name in ("calls", "calls_stable", "calls_needs", "saved"):
        assert value(found, name) == pytest.approx(getattr(derived, name), abs=1e-12)


# Evaluation -----------------------------------------------------------------------------------------------------------


def test_measures_are_those_of_the_cases_one_by_one() -> None:
    cube = panel()
    found = evaluate_gate(cube, signals=("verdict", "hard"), threshold=0.4, stop="decided", draws=0)
    asked = {"voters": "prompt", "first": None, "signals": ("verdict", "hard"), "features": None, "split": "item"}
    cases = make_cases(cube, **asked, stop="decided", ties="abstain", gold="gold", invalid="class", seed=0)
    rows = np.arange(len(cases.item))
    judged = out_of_fold(cases, rows, None, 0.4, by_group=False, folds=5, seed=0)
    totals: Counter[str] = Counter()
    for i, said in enumerate(cube["verdict"].to_numpy().tolist()):
        counts = Counter(said)
        most = max(counts.values())
        leaders = [c for c, k in counts.items() if k == most]
        full = leaders[0] if len(leaders) == 1 else None
        votes = next(
            (
                m
                for m in range(1, 6)
                if (top := [*sorted(Counter(said[:m]).values(), reverse=True), 0])[0] - top[1] > 5 - m
            ),
            5,
        )
        opens, needs = bool(judged.probability[i] >= 0.4), said[0] != full
        decision = full if opens else said[0]
        right = {"A": 0, "B": 1, "C": 2}[str(cube["gold"][i].item())]
        if 2 * most <= 5:
            totals.update(split=1, recovered_split=decision == full)
        totals.update(
            needs=needs, hit=needs and opens, shut=not needs and not opens, recovered=decision == full,
            calls=votes if opens else 1, full=votes, right=decision == right, alone=said[0] == right,
            right_full=full == right,
        )  # fmt: skip
    n = len(rows)
    assert value(found, "needs") == pytest.approx(totals["needs"] / n)
    assert value(found, "tpr") == pytest.approx(totals["hit"] / totals["needs"])
    assert value(found, "tnr") == pytest.approx(totals["shut"] / (n - totals["needs"]))
    assert value(found, "recovered") == pytest.approx(totals["recovered"] / n)
    assert value(found, "calls") == pytest.approx(totals["calls"] / n)
    assert value(found, "calls_full") == pytest.approx(totals["full"] / n)
    assert value(found, "accuracy") == pytest.approx(totals["right"] / n)
    assert value(found, "accuracy_alone") == pytest.approx(totals["alone"] / n)
    assert value(found, "accuracy_full") == pytest.approx(totals["right_full"] / n)
    assert totals["split"] > 10
    assert value(found, "recovered_split") == pytest.approx(totals["recovered_split"] / totals["split"])
    assert value(found, "saved_full") == pytest.approx(1 - totals["calls"] / totals["full"])
    # A hard item fails .3 x .4 of first votes; a gate that sees hardness must beat the first voter alone.
    assert value(found, "recovered") > value(found, "recovered_alone") + 0.03


def test_matthews_and_thresholds_equal_scikit_learn() -> None:
    from sklearn.metrics import matthews_corrcoef

    rng = np.random.default_rng(1)
    needs = rng.random(80) < 0.4
    probability = np.round(np.clip(needs * 0.2 + rng.random(80) * 0.8, 0, 1), 2)
    for limit in (0.2, 0.5, 0.7):
        opens = probability >= limit
        parts = [(needs & opens).sum(), (needs & ~opens).sum(), (~needs & opens).sum(), (~needs & ~opens).sum()]
        ours = matthews(*(np.array(float(x)) for x in parts))
        assert float(ours) == pytest.approx(matthews_corrcoef(needs, opens), abs=1e-12)
    every = np.unique(probability)
    best = max(matthews_corrcoef(needs, probability >= cut) for cut in (every[1:] + every[:-1]) / 2)
    found = best_threshold(probability, needs)
    assert matthews_corrcoef(needs, probability >= found) == pytest.approx(best, abs=1e-12)
    assert best_threshold(np.full(5, 0.3), np.array([1, 0, 1, 0, 1], dtype=bool)) == 0.5


def test_no_item_and_no_data_set_is_on_both_sides() -> None:
    cube = panel(60).expand_dims(order=["AB", "BA"])
    asked = {"voters": "prompt", "first": "p2", "signals": ("verdict", "order"), "features": None}
    cases = make_cases(cube, **asked, split="task", stop=None, ties="abstain", gold="", invalid="class", seed=0)
    assert cases.voters == ("p2", "p1", "p3", "p4", "p5")
    rows = np.arange(len(cases.item))
    assert len(rows) == 120
    for by_group, key in ((False, cases.item), (True, cases.group)):
        masks = folds_of(cases, rows, by_group=by_group, folds=5, seed=3)
        assert np.sum(masks, axis=0).tolist() == [1] * 120
        for test in masks:
            assert not set(key[test].tolist()) & set(key[~test].tolist())
    found = evaluate_gate(panel(), signals=("verdict", "hard"), split="task", draws=50)
    assert found.data.attrs["folds"] == 3
    assert "whole levels of task" in str(found)
    assert bool(found["calls"].lower < found["calls"].estimate)


def test_a_leak_would_show() -> None:
    """Labels of the items carry no signal across items: on unseen ones the gate is no better than chance."""
    rng = np.random.default_rng(7)
    cube = panel(300).drop_vars(["hard", "gold"])
    noise = pd.DataFrame({f"e{k}": rng.normal(size=300) for k in range(150)}, index=cube["item"].to_numpy())
    found = evaluate_gate(cube, signals=(), features=noise, threshold=0.3, draws=0)
    # Under no signal the Matthews correlation has sd 1/sqrt(300) = .058 or so: .25 is beyond 4 sd; trained and judged
    # on the same cases the same gate has more than .9.
    assert abs(value(found, "mcc")) < 0.25
    gate = fit_gate(cube, signals=(), features=noise, threshold=0.3)
    needs = make_cases(
        cube, voters="prompt", first=None, signals=(), features=noise, split="item", stop=None, ties="abstain",
        gold="", invalid="class", seed=0,
    ).needs  # fmt: skip
    opens = gate.opens({name: noise[name].to_numpy() for name in noise})
    parts = [(needs & opens).sum(), (needs & ~opens).sum(), (~needs & opens).sum(), (~needs & ~opens).sum()]
    assert matthews(*(np.array(float(x)) for x in parts)) > 0.9


def test_any_classifier_and_soft_verdicts() -> None:
    from sklearn.ensemble import RandomForestClassifier

    cube = panel(200)
    soft = np.full((200, 5, 3), 0.1)
    np.put_along_axis(soft, cube["verdict"].to_numpy()[..., None], 0.8, axis=2)
    cube = cube.assign(soft=(("item", "prompt", "class"), soft))
    forest = RandomForestClassifier(20, random_state=0)
    found = evaluate_gate(cube, signals=("soft", "hard"), classifier=forest, draws=0)
    assert value(found, "recovered") > value(found, "recovered_alone")
    gate = fit_gate(cube, signals=("soft", "hard"), classifier=forest)
    with pytest.raises(InputError, match="RandomForestClassifier cannot be written"):
        gate.save("gate.json")
    for wrong, words in (
        ({"folds": 0}, "folds: 0 is not a whole number >= 2"),
        ({"threshold": np.nan}, "no probability"),
    ):
        with pytest.raises(InputError, match=words):
            evaluate_gate(cube, signals=("soft", "hard"), draws=0, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no signal 'length'"):
        fit_gate(cube, signals=("length",))
    with pytest.raises(InputError, match="all 200 cases are stable"):
        fit_gate(cube.assign(verdict=cube["verdict"] * 0))
    with pytest.raises(CubeError, match="no case has a vote"):
        fit_gate(cube.assign(verdict=cube["verdict"] * 0 - 1))


# Files ----------------------------------------------------------------------------------------------------------------


def test_a_saved_gate_is_the_same_gate_and_holds_no_code(tmp_path: Path) -> None:
    cube = panel()
    gate = fit_gate(cube, signals=("verdict", "hard", "task"), stop="decided")
    gate.save(tmp_path / "gate.json")
    again = open_gate(tmp_path / "gate.json")
    assert again == gate
    values = {
        "verdict": np.array(["A", "C", "⊥"]),
        "hard": np.array([0.1, 0.9, 0.5]),
        "task": np.array(["qa", "qa", "?"]),
    }
    np.testing.assert_array_equal(again.probability(values), gate.probability(values))
    stored = json.loads((tmp_path / "gate.json").read_text())
    assert stored["schema"] == "secondorder.gate/1"
    assert stored["others"] == PROMPTS[1:]
    assert stored["training"]["items"] == 400
    from sklearn.linear_model import LogisticRegression

    other = fit_gate(
        cube,
        signals=("verdict", "hard", "task"),
        stop="decided",
        classifier=LogisticRegression(max_iter=1000),
        threshold=gate.threshold,
    )
    np.testing.assert_allclose(other.probability(values), gate.probability(values), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"schema": "secondorder.cube/1"}, SchemaError),
        ({"schema": "secondorder.gate/9"}, SchemaError),
        ({"signals": [{"name": "verdict"}]}, CorruptFileError),
        ({"coefficients": [1.0]}, CorruptFileError),
        ({"threshold": "high"}, CorruptFileError),
        ({"stop": "never"}, CorruptFileError),
    ],
)
def test_damaged_gates_are_refused(tmp_path: Path, change: dict[str, object], error: type[Exception]) -> None:
    path = tmp_path / "gate.json"
    fit_gate(panel(100)).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(error):
        open_gate(path)
    path.write_text("{")
    with pytest.raises(CorruptFileError):
        open_gate(path)
    with pytest.raises(InputError, match=r"none\.json"):
        open_gate(tmp_path / "none.json")
