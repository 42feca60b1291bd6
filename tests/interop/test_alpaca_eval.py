"""Annotations of AlpacaEval: preferences, failures, weights and the order shown."""

from __future__ import annotations

import numpy as np
import pytest

import secondorder as so
from secondorder import interop
from secondorder.errors import TableError

from .logs import annotation, ends, one, verdicts


def test_preferences_are_classes_and_null_is_an_error_that_must_be_understood(tmp_path):
    path = one(
        tmp_path / "annotations.json", [annotation(p, k, raw="M") for k, p in enumerate([1, 2.0, 1.5, 0, None, -1])]
    )
    log = interop.read_alpaca_eval(path)
    assert verdicts(log) == ["1", "2", "tie", "tie", "⊥", "⊥"]
    assert {row["reason"] for row in log if row["status"] == "invalid"} == {"unparsed"}
    path = one(tmp_path / "annotations.json", [annotation(1), annotation(None, 1)])
    with pytest.raises(TableError, match=r"annotations\.json annotation 1 \(from 0\) preference: a null preference"):
        interop.read_alpaca_eval(path)
    assert ends(interop.read_alpaca_eval(path, error="missing"))[1] == ("no_completion", "absent")
    assert ends(interop.read_alpaca_eval(path, error="invalid"))[1] == ("invalid", "unparsed")


def test_ties_and_labels_that_no_judge_gave_are_left_out_and_counted(tmp_path):
    same = {**annotation(1.5, 1), "output_2": "first 1"}
    drawn = annotation(2, 2, is_noisy_label=True)
    log = interop.read_alpaca_eval(one(tmp_path / "a.json", [annotation(1), same, drawn]))
    assert len(log) == 1
    assert [note for note in log.notes if note.startswith("Left out")] == [
        "Left out, pairs of identical outputs (AlpacaEval writes a tie without a call): 1.",
        "Left out, labels that AlpacaEval drew at random (p_label_flip): 1.",
    ]


def test_weighted_preferences_stay_probabilities(tmp_path):
    records = [annotation(p, k, name) for k in (0, 1) for name, p in (("one", 1.25 + k / 2), ("two", 1.5 + k / 4))]
    # A preference of exactly 1.5 is a tie of a hard annotator; of a weighted one it would be a coin, the same mean.
    log = interop.read_alpaca_eval(one(tmp_path / "a.json", records), judge="gpt-4")
    cube = log.to_cube()
    assert cube["class"].values.tolist() == ["1", "2", "tie", "⊥"]
    item = log.rows[2]["item"]
    cell = cube.soft.sel(judge="gpt-4", item=item, repeat="0").squeeze()
    np.testing.assert_array_equal(cell.values, [[0.25, 0.75, 0, 0], [0.25, 0.75, 0, 0]])
    so.decompose(cube)
    rows = so.make_cube(log.rows, **log.declaration)
    assert (rows.verdict.sel(item=item) == -1).all()  # never rounded to a label


def test_the_order_shown_is_the_tools_own_draw(tmp_path):
    # alpaca_eval 0.6.6, RandomSwitchTwoColumnsProcessor(seed=0 and 1) on "instruction 0" … "instruction 7", 2026-11-30.
    switched = {0: [0, 1, 1, 0, 1, 1, 1, 0], 1: [0, 1, 0, 1, 0, 1, 1, 0]}
    path = one(tmp_path / "a.json", [annotation(1, k) for k in range(8)])
    for seed, expected in switched.items():
        log = interop.read_alpaca_eval(path, switch_seed=seed)
        assert [row["order"] for row in log] == ["AB" if not switch else "BA" for switch in expected]
        assert set(verdicts(log)) == {"1"}  # the preference was switched back by the tool
    assert {row["order"] for row in interop.read_alpaca_eval(path)} == {"unknown"}
    stored = one(tmp_path / "b.json", [annotation(1, is_switched_outputs=True)])
    assert interop.read_alpaca_eval(stored).rows[0]["order"] == "BA"


def test_files_are_repeats(tmp_path):
    paths = [one(tmp_path / f"seed{s}.json", [annotation(1 + (s + k) % 2, k) for k in (0, 1)]) for s in range(3)]
    cube = interop.read_alpaca_eval(paths).to_cube()
    assert cube.sizes["repeat"] == 3
    with pytest.raises(TableError, match="was judged before"):
        interop.read_alpaca_eval(one(tmp_path / "twice.json", [annotation(1), annotation(2)]))
