"""Judgements of FastChat (MT-Bench): what a line means, and what it must never be taken for."""

from __future__ import annotations

import random

import numpy as np
import pytest

from secondorder import interop
from secondorder._labels._identity import cube_digest
from secondorder._schema import REASONS, STATUS
from secondorder.errors import TableError

from .logs import ends, lines, pair, single, verdicts


def test_games_are_orders_and_the_same_candidate_keeps_its_class(tmp_path):
    log = interop.read_fastchat(
        lines(tmp_path / "gpt-4_pair.jsonl", pair(g1="model_1", g2="model_2"), pair(82, g1="tie", g2="tie"))
    )
    assert [(row["item"], row["order"], row["verdict"]) for row in log] == [
        ("81:1:a:b", "AB", "1"),
        ("81:1:a:b", "BA", "2"),
        ("82:1:a:b", "AB", "tie"),
        ("82:1:a:b", "BA", "tie"),
    ]
    cube = log.to_cube()
    assert cube["class"].values.tolist() == ["1", "2", "tie", "⊥"]
    assert cube.sel(item="81:1:a:b", judge="gpt-4", repeat="0").verdict.squeeze().values.tolist() == [0, 1]


def test_a_pair_met_both_ways_round_is_one_pair(tmp_path):
    # Question 81 judged twice: a against b, and b against a. "b" won game 1 of the second, where it stood first.
    path = lines(
        tmp_path / "x.jsonl", pair(g1="model_1", g2="model_2"), pair(one="b", two="a", g1="model_1", g2="tie", tstamp=2)
    )
    log = interop.read_fastchat(path)
    assert [(row["order"], row["repeat"], row["verdict"]) for row in log] == [
        ("AB", "0", "1"),
        ("BA", "0", "2"),
        ("BA", "1", "2"),
        ("AB", "1", "tie"),
    ]
    assert {row["candidate_1"] for row in log} == {"a"}


def test_the_order_of_lines_changes_no_cube(tmp_path):
    records = [
        pair(q, g1=g, g2=h, tstamp=q + t / 10)
        for q in (81, 82)
        for t, (g, h) in enumerate([("model_1", "tie"), ("tie", "model_2")])
    ]
    shuffled = records[:]
    random.Random(1).shuffle(shuffled)
    assert shuffled != records
    cubes = [interop.read_fastchat(lines(tmp_path / "x.jsonl", *order)).to_cube() for order in (records, shuffled)]
    assert cube_digest(cubes[0]) == cube_digest(cubes[1])


def test_error_is_told_apart_by_the_answer_and_declared_where_there_is_none(tmp_path):
    path = tmp_path / "x.jsonl"
    log = interop.read_fastchat(lines(path, pair(g1="error", g2="error", texts=("$ERROR$", "I cannot say."))))
    assert ends(log) == [("no_completion", "absent"), ("invalid", "unparsed")]
    cube = log.to_cube()
    assert [STATUS[code] for code in cube.status.values.ravel()] == ["no_completion", "invalid"]
    assert [REASONS[code] for code in cube.reason.values.ravel()] == ["absent", "unparsed"]
    bare = {key: value for key, value in pair(g1="error").items() if not key.endswith("judgment")}
    with pytest.raises(TableError, match=r"x\.jsonl line 1 g1_winner: .*error='invalid'"):
        interop.read_fastchat(lines(path, bare))
    assert ends(interop.read_fastchat(path, error="missing"))[0] == ("no_completion", "absent")
    assert ends(interop.read_fastchat(path, error="invalid"))[0] == ("invalid", "unparsed")


def test_a_failed_score_is_no_number(tmp_path):
    # FastChat PR 2074: 8, 9 and -1 averaged to 5.33. Two calls with 8.5, one without a verdict.
    records = [
        single(8, "[[8]]"),
        single(9.0, "[[9]]", tstamp=2),
        single(-1, "no rating", tstamp=3),
        single(100, "[[100]]", tstamp=4),
    ]
    log = interop.read_fastchat(lines(tmp_path / "gpt-4_single.jsonl", *records))
    assert verdicts(log) == ["8", "9", "⊥", "⊥"]
    assert ends(log)[2:] == [("invalid", "unparsed"), ("invalid", "out_of_range")]
    scores = [float(row["verdict"]) for row in log if row["status"] == "valid"]
    assert np.mean(scores) == 8.5
    assert log.to_cube()["class"].values.tolist() == [*map(str, range(1, 11)), "⊥"]


def test_templates_that_are_nested_in_questions_are_no_facet_and_crossed_ones_are(tmp_path):
    nested = [pair(81), pair(101, judge=["gpt-4", "pair-math-v1"])]
    log = interop.read_fastchat(lines(tmp_path / "x.jsonl", *nested))
    assert log.declaration["facets"] == ["order"]
    assert any("'prompt' has 2 values, one per item" in note for note in log.notes)
    assert log.to_cube(stratum="prompt").stratum.values.tolist() == ["pair-v2", "pair-math-v1"]
    crossed = [
        pair(q, judge=["gpt-4", name], tstamp=q + k) for q in (81, 82) for k, name in enumerate(["pair-v2", "own"])
    ]
    log = interop.read_fastchat(lines(tmp_path / "x.jsonl", *crossed))
    assert log.declaration["facets"] == ["prompt", "order"]
    assert log.to_cube().verdict.dims == ("judge", "item", "prompt", "order", "repeat")


def test_answers_with_marks_of_two_verdicts_are_counted(tmp_path):
    said = "[[A]] is better than [[B]]? No: [[B]]."
    log = interop.read_fastchat(lines(tmp_path / "x.jsonl", pair(texts=(said, "[[A]]"))))
    assert any(note.startswith("Answers with marks of more than one verdict: 1.") for note in log.notes)
    assert log.rows[0]["text"] == said


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({**pair(), "winner": "model_1"}, "one winner and no order"),
        ({**pair(), "m1_score": 8, "m2_score": 7}, "made of two single scores"),
        (pair(g1="model_3"), "the winner is 'model_3'"),
        (pair(judge="gpt-4"), "judge is gpt-4"),
        ({"question_id": 81}, "there is no 'judge'"),
        (single(8, "[[8]]"), "mixed"),
    ],
)
def test_lines_that_are_something_else_are_refused_with_their_place(tmp_path, record, words):
    with pytest.raises(TableError, match=words) as caught:
        interop.read_fastchat(lines(tmp_path / "x.jsonl", pair(tstamp=0.5), record))
    assert caught.value.place.startswith("x.jsonl line 2")


def test_a_line_that_was_copied_is_no_repeat(tmp_path):
    with pytest.raises(TableError, match=r"line 2: the line is the same as x\.jsonl line 1"):
        interop.read_fastchat(lines(tmp_path / "x.jsonl", pair(), pair()))


def test_answers_that_repeat_to_the_letter_are_noted(tmp_path):
    said = "After weighing both answers with care I find that [[A]] is better."
    path = lines(tmp_path / "x.jsonl", *(pair(texts=(said, said + str(t)), tstamp=float(t)) for t in range(3)))
    assert any(
        note.startswith("In 1 of 2 cells all repeats are one text") for note in interop.read_fastchat(path).notes
    )
