"""Results of promptfoo: cached answers, failures that look like verdicts, and assertions."""

from __future__ import annotations

import numpy as np
import pytest

import secondorder as so
from secondorder import interop
from secondorder.errors import TableError

from .logs import grade, graded, lines, one, promptfoo, result, verdicts


def runs(answers: dict[int, str], cached: bool) -> list[dict]:
    """One item, wordings with an answer for every repeat; with a cache every answer but the first is a copy."""
    return [
        result(test, text[0] if cached else text[test], prompt=prompt, cached=cached and test > 0)
        for prompt, text in answers.items()
        for test in range(len(text))
    ]


def test_a_cached_answer_is_no_repeat(tmp_path):
    # The true cells A B A B and A A B B give call 2/3, prompt -1/12, total 7/12; served from one cache entry per cell
    # they would give call 0 and a prompt effect (promptfoo issue #360).
    answers = {0: "ABAB", 1: "AABB"}
    true = interop.read_promptfoo(promptfoo(tmp_path / "true.json", *runs(answers, False)), verdict="output")
    found = so.decompose(true.to_cube())
    values = [found[name].estimate for name in ("call", "prompt", "total")]
    np.testing.assert_allclose(values, [2 / 3, -1 / 12, 7 / 12], rtol=1e-14)
    path = promptfoo(tmp_path / "cached.json", *runs({0: "ABAB", 1: "BABA"}, True))
    with pytest.raises(TableError, match="6 answers come from the tool's cache") as caught:
        interop.read_promptfoo(path, verdict="output")
    assert "cached='drop'" in str(caught.value)
    dropped = interop.read_promptfoo(path, verdict="output", cached="drop")
    assert dropped.to_cube().sizes["repeat"] == 1
    assert any(note.startswith("6 answers come from the tool's cache: copies") for note in dropped.notes)
    assert np.isnan(so.decompose(dropped.to_cube())["call"].estimate)
    kept = interop.read_promptfoo(path, verdict="output", cached="keep")
    assert len(kept) == 8
    assert any("as declared" in note for note in kept.notes)


def test_one_answer_from_an_earlier_run_is_one_call(tmp_path):
    path = promptfoo(tmp_path / "x.json", *(result(test, "A", cached=True) for test in range(3)))
    log = interop.read_promptfoo(path, verdict="output", cached="drop")
    assert len(log) == 1
    alone = promptfoo(tmp_path / "y.json", result(0, "A", cached=True), result(1, "B", cached=True, vars={"text": "u"}))
    assert len(interop.read_promptfoo(alone, verdict="output")) == 2


def test_repeats_of_both_orders_lie_side_by_side(tmp_path):
    # Two tests (AB, BA) of one item, repeated three times: tests 0 … 5.
    results = [
        result(2 * repeat + k, said, vars={"text": "t", "order": order})
        for repeat in range(3)
        for k, (order, said) in enumerate([("AB", "A"), ("BA", "B")])
    ]
    log = interop.read_promptfoo(
        promptfoo(tmp_path / "x.json", *results),
        verdict="output",
        order="vars.order",
        labels={"A": "first", "B": "second"},
    )
    assert set(verdicts(log)) == {"1"}
    cube = log.to_cube()
    assert cube.sizes["repeat"] == 3
    assert (cube.verdict >= 0).all()


def test_a_failure_is_no_judgement(tmp_path):
    parts = {
        "fine": grade(True),
        "no": grade(False, "The output is malformed JSON and could not be parsed"),
        "marked": grade(False, "API error: 429 Too Many Requests", metadata={"graderError": True}),
        "old": grade(False, "API call error: Error: Request timed out after 300000 ms"),
        "unread": grade(False, "Could not extract JSON from llm-rubric response"),
        "closedqa": grade(False, "Model grader produced a malformed response:\nhm", "model-graded-closedqa"),
        "silent": grade(False, "No output"),
    }
    results = [
        result(k, "answer", grade=graded(part), vars={"text": name}) for k, (name, part) in enumerate(parts.items())
    ]
    results.append(result(7, error="API error: 500 Internal Server Error", reason=2, vars={"text": "down"}))
    log = interop.read_promptfoo(promptfoo(tmp_path / "x.json", *results))
    assert verdicts(log) == ["pass", "fail", "", "", "⊥", "⊥", "⊥", ""]
    assert [row["reason"] for row in log] == [
        "",
        "",
        "rate_limited",
        "timeout",
        "unparsed",
        "unparsed",
        "empty",
        "http_error",
    ]
    unasked = {"pass": True, "score": 1, "reason": "No assertions", "assertion": None}
    with pytest.raises(TableError, match="no assertion judged this row"):
        interop.read_promptfoo(promptfoo(tmp_path / "y.json", result(0, grade=unasked)))
    assert any(note.endswith("failed assertions, ⊥ or missing here: 5.") for note in log.notes)


def test_the_assertion_is_named_and_several_are_wordings(tmp_path):
    parts = graded(grade(True, metric="short"), grade(False, metric="long"), grade(True, kind="is-json"))
    path = promptfoo(tmp_path / "x.json", *(result(k, "answer", grade=parts) for k in range(2)))
    with pytest.raises(TableError, match=r"result 0 \(from 0\): 3 assertions \(is-json, llm-rubric\)"):
        interop.read_promptfoo(path)
    log = interop.read_promptfoo(path, assertion=["short", "long"])
    assert [(row["prompt"], row["verdict"]) for row in log.rows[:2]] == [("short", "pass"), ("long", "fail")]
    assert log.declaration["facets"] == ["prompt", "order"]
    assert verdicts(interop.read_promptfoo(path, assertion="short", verdict="score")) == ["1", "1"]


def test_graded_answers_are_the_items_and_noise_of_both_is_named(tmp_path):
    results = [result(k, f"answer {k}", grade=graded(grade(k == 0)), prompt=p) for p in (0, 1) for k in range(2)]
    log = interop.read_promptfoo(promptfoo(tmp_path / "x.json", *results))
    assert len({row["item"] for row in log}) == 2
    assert any("of the answers and the judge together" in note for note in log.notes)


def test_older_files_and_json_lines_hold_the_same_rows(tmp_path):
    rows = [result(0, "A"), result(1, "B")]
    for row in rows:
        del row["testIdx"]
    old = one(tmp_path / "v2.json", {"results": {"version": 2, "results": rows, "table": {}, "stats": {}}})
    log = interop.read_promptfoo(old, verdict="output")
    assert [row["repeat"] for row in log] == ["0", "1"]
    assert log.declaration["number_repeats"]
    assert verdicts(interop.read_promptfoo(lines(tmp_path / "x.jsonl", *rows), verdict="output")) == ["A", "B"]
