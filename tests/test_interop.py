"""Logs of other tools: what a file means, and what it must never be taken for.

The files are written here in the form of the tool; the version that each form was read from stands in the reader.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import random
from pathlib import Path

import numpy as np
import pytest

import secondorder as so
from secondorder import interop
from secondorder._labels._identity import cube_digest
from secondorder._schema import REASONS, STATUS
from secondorder.errors import InputError, TableError

from .conftest import need


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def one(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def verdicts(log: interop.Log) -> list[str]:
    return [row["verdict"] for row in log]


def ends(log: interop.Log) -> list[tuple[str, str]]:
    return [(row["status"], row["reason"]) for row in log]


# -- FastChat ---------------------------------------------------------------------------------------------------------


def pair(
    question=81, one="a", two="b", g1="model_1", g2="model_1", tstamp=1.0, turn=1, texts=("[[A]]", "[[B]]"), **more
):
    return {
        "question_id": question,
        "model_1": one,
        "model_2": two,
        "g1_winner": g1,
        "g2_winner": g2,
        "judge": ["gpt-4", "pair-v2"],
        "g1_user_prompt": "…",
        "g1_judgment": texts[0],
        "g2_user_prompt": "…",
        "g2_judgment": texts[1],
        "turn": turn,
        "tstamp": tstamp,
        **more,
    }


def single(score, judgment, question=81, turn=1, tstamp=1.0):
    judge = ["gpt-4", "single-v1"]
    line = {"question_id": question, "model": "a", "judge": judge, "user_prompt": "…", "judgment": judgment}
    return {**line, "score": score, "turn": turn, "tstamp": tstamp}


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


# -- AlpacaEval -------------------------------------------------------------------------------------------------------


def annotation(preference, k=0, annotator="gpt4", raw=None, **more):
    outputs = {"output_1": f"first {k}", "output_2": f"second {k}", "generator_1": "base", "generator_2": "new"}
    line = {
        "instruction": f"instruction {k}",
        **outputs,
        "dataset": "d",
        "annotator": annotator,
        "preference": preference,
    }
    return {**line, "price_per_example": 0.01, **({"raw_completion": raw} if raw is not None else {}), **more}


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


# -- lm-evaluation-harness --------------------------------------------------------------------------------------------


def sample(doc_id, resps, filtered, filter="none", **more):
    doc = {"question": f"q{doc_id}", "order": "BA" if doc_id % 2 else "AB"}
    hashes = {"doc_hash": f"d{doc_id}", "prompt_hash": "p", "target_hash": "t"}
    arguments = {"gen_args_0": {"arg_0": "…", "arg_1": {"temperature": 1.0}}}
    line = {
        "doc_id": doc_id,
        "doc": doc,
        "target": "A",
        "arguments": arguments,
        "resps": [resps],
        "filtered_resps": [filtered],
    }
    return {**line, "filter": filter, "metrics": ["exact_match"], **hashes, "exact_match": 0.0, **more}


def task_file(folder: Path, task: str, *records: object) -> Path:
    folder.mkdir(exist_ok=True)
    return lines(folder / f"samples_{task}_2026-11-30T12-00-00.000000.jsonl", *records)


def test_repeats_are_the_responses_of_a_document_and_the_task_is_the_prompt(tmp_path):
    folder = tmp_path / "org__judge"
    files = [
        task_file(
            folder,
            f"pick_{name}",
            sample(0, ["A", "B", "A"], ["A", "B", "A"]),
            sample(1, ["B", "B", "x"], ["B", "B", "[invalid]"]),
        )
        for name in ("short", "long")
    ]
    log = interop.read_lm_eval(files)
    assert {row["judge"] for row in log} == {"org__judge"}
    assert {row["prompt"] for row in log} == {"pick_short", "pick_long"}
    assert verdicts(log)[:6] == ["A", "B", "A", "B", "B", "⊥"]
    assert log.to_cube().sizes == {"judge": 1, "item": 2, "prompt": 2, "order": 1, "repeat": 3, "class": 3}
    assert any("one cache entry" in note for note in log.notes)
    assert {row["prompt"] for row in interop.read_lm_eval({"one": files[0], "two": [files[1]]})} == {"one", "two"}


def test_a_filter_that_keeps_one_response_loses_no_repeat(tmp_path):
    path = task_file(tmp_path / "m", "pick", sample(0, ["A", "B"], "A"), sample(1, ["B", "neither"], "B"))
    with pytest.raises(TableError, match="2 responses, and the filter kept 1"):
        interop.read_lm_eval(path)
    log = interop.read_lm_eval(path, labels={"A": "first", "B": "second"}, order="order")
    assert verdicts(log) == ["1", "2", "1", "⊥"]  # document 1 was shown BA: its B is candidate 1
    log = interop.read_lm_eval(path, parse=lambda text: text if text in ("A", "B") else None)
    assert verdicts(log) == ["A", "B", "B", "⊥"]


def test_filters_are_not_repeats_and_documents_must_be_the_same(tmp_path):
    path = task_file(tmp_path / "m", "t", sample(0, ["A."], "A.", "none"), sample(0, ["A."], "A", "strict"))
    with pytest.raises(TableError, match=r"2 filters stand in it \(none, strict\)"):
        interop.read_lm_eval(path)
    assert verdicts(interop.read_lm_eval(path, filter="strict")) == ["A"]
    with pytest.raises(TableError, match="no filter 'x'"):
        interop.read_lm_eval(path, filter="x")
    other = task_file(tmp_path / "m", "u", {**sample(0, ["A"], "A"), "doc_hash": "another"})
    with pytest.raises(TableError, match="document 0 is not the one of"):
        interop.read_lm_eval([path, other], filter="none")


def test_log_likelihoods_are_no_sampled_verdicts(tmp_path):
    choices = {
        **sample(0, [], []),
        "resps": [[["-1.5", "False"]], [["-0.5", "True"]]],
        "filtered_resps": [["-1.5", "False"], ["-0.5", "True"]],
    }
    with pytest.raises(TableError, match="log-likelihoods"):
        interop.read_lm_eval(task_file(tmp_path / "m", "t", choices))


# -- promptfoo --------------------------------------------------------------------------------------------------------


def result(
    test, output="A", *, prompt=0, cached=False, error=None, reason=0, grade=None, vars=None, provider="openai:judge"
):
    response = {"output": output, "cached": cached, "tokenUsage": {"total": 9}}
    return {
        "promptIdx": prompt,
        "testIdx": test,
        "testCase": {"vars": vars or {"text": "t"}},
        "promptId": f"id{prompt}",
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": "rendered", "label": f"wording {prompt}"},
        "vars": vars or {"text": "t"},
        **({"response": response} if error is None else {}),
        **({"error": error} if error is not None else {}),
        "failureReason": reason,
        "success": reason == 0,
        "score": 1,
        "latencyMs": 12,
        "gradingResult": grade,
        "namedScores": {},
    }


def grade(passed, reason="fine", kind="llm-rubric", *, score=None, cached=0, metadata=None, metric=None):
    assertion = {"type": kind, **({"metric": metric} if metric else {})}
    tokens = {"total": 50, "cached": cached}
    return {
        "pass": passed,
        "score": float(passed) if score is None else score,
        "reason": reason,
        "tokensUsed": tokens,
        "assertion": assertion,
        **({"metadata": metadata} if metadata else {}),
    }


def graded(*parts):
    return {"pass": all(p["pass"] for p in parts), "score": 0.5, "reason": "all", "componentResults": list(parts)}


def promptfoo(path: Path, *results: object) -> Path:
    return one(
        path,
        {
            "evalId": "eval-x",
            "results": {"version": 3, "timestamp": "…", "results": results, "prompts": [], "stats": {}},
            "config": {},
        },
    )


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


# -- HELM -------------------------------------------------------------------------------------------------------------


def state(
    item="id1",
    text="A",
    *,
    random=None,
    cached=False,
    success=True,
    error=None,
    perturbation=None,
    trial=0,
    annotations=None,
    **more,
):
    completions = [{"text": each, "logprob": 0, "tokens": []} for each in ([text] if isinstance(text, str) else text)]
    outcome = {
        "success": success,
        "embedding": [],
        "completions": completions,
        "cached": cached,
        "request_datetime": 1700000000,
    }
    instance = {"input": {"text": "…"}, "references": [], "split": "test", "id": item, **more}
    request = {"model": "org/judge", "prompt": "…", "temperature": 1.0, **({"random": random} if random else {})}
    return {
        "instance": {**instance, **({"perturbation": perturbation} if perturbation else {})},
        "train_trial_index": trial,
        "request": request,
        "result": {**outcome, **({"error": error} if error else {})},
        "num_train_instances": 0,
        "prompt_truncated": False,
        **({"annotations": annotations} if annotations is not None else {}),
    }


def helm(path: Path, *states: object, **adapter: object) -> Path:
    return one(
        path, {"adapter_spec": {"method": "generation", "model": "org/judge", **adapter}, "request_states": states}
    )


def test_trials_are_repeats_and_a_cached_trial_is_a_call_of_its_own(tmp_path):
    path = helm(
        tmp_path / "scenario_state.json",
        *(state(text=said, random=r, cached=True) for said, r in (("A", None), ("B", "1"), ("A", "2"))),
    )
    log = interop.read_helm(path)
    assert [(row["repeat"], row["verdict"]) for row in log] == [("0", "A"), ("1", "B"), ("2", "A")]
    assert log.to_cube().sent.values.ravel().tolist() == [1.7e9] * 3
    again = helm(tmp_path / "again.json", state(text="A", random="1"), state(text="A", random="1", cached=True))
    with pytest.raises(TableError, match="1 answer comes from the tool's cache"):
        interop.read_helm(again)


def test_an_empty_completion_of_a_failed_request_is_missing(tmp_path):
    log = interop.read_helm(
        helm(tmp_path / "s.json", state(text="", success=False, error="Timeout"), state("id2", ""), state("id3", "A"))
    )
    assert ends(log) == [("no_completion", "timeout"), ("invalid", "empty"), ("valid", "")]


def test_perturbations_and_wordings_are_facets_where_an_instance_has_several(tmp_path):
    robust = {"name": "misspelling"}
    files = [
        helm(
            tmp_path / f"{k}.json",
            *(state(i, perturbation=p) for i in ("id1", "id2") for p in (None, robust)),
            instructions=words,
        )
        for k, words in enumerate(["Choose.", "Pick one."])
    ]
    log = interop.read_helm(files)
    assert log.declaration["facets"] == ["prompt", "order", "perturbation", "examples"]
    assert log.to_cube().sizes["perturbation"] == 2
    assert len({row["prompt"] for row in log}) == 2


def test_annotations_are_verdicts_of_judges(tmp_path):
    judged = [
        {"prompt_text": "…", "gpt_score": 1.0},
        {"prompt_text": "…", "gpt_score": 0.0},
        {"prompt_text": "…"},
        {"empty_output_equivalence_judgement": False},
    ]
    path = helm(tmp_path / "s.json", *(state(f"id{k}", annotations={"omni_math": a}) for k, a in enumerate(judged)))
    with pytest.raises(TableError, match=r"request_states\[2\]: annotation 'omni_math.gpt_score' is absent"):
        interop.read_helm(path, verdict="omni_math.gpt_score")
    log = interop.read_helm(path, verdict="omni_math.gpt_score", error="invalid")
    assert verdicts(log) == ["1", "0", "⊥"]
    assert {row["judge"] for row in log} == {"omni_math.gpt_score"}
    assert any(note.endswith("HELM asked no judge: 1.") for note in log.notes)
    with pytest.raises(TableError, match="the annotators: omni_math"):
        interop.read_helm(path, verdict="wildbench.score")


# -- OpenAI evals -----------------------------------------------------------------------------------------------------


def oaieval(path: Path, *events: tuple[str, dict], run="r1", kind="metrics") -> Path:
    spec = {"completion_fns": ["answers", "gpt-4"], "eval_name": "joke.dev.v0", "base_eval": "joke", "split": "dev"}
    spec |= {"run_config": {"eval_spec": {"cls": "…", "args": {"modelgraded_spec": "humor"}}}, "run_id": run}
    head = {"spec": {**spec, "created_by": "", "created_at": "2026-11-30 12:00:00"}}
    body = [
        {
            "run_id": run,
            "event_id": k,
            "sample_id": name,
            "type": kind,
            "data": data,
            "created_by": "",
            "created_at": "2026-11-30 12:00:01+00:00",
        }
        for k, (name, data) in enumerate(events)
    ]
    sampling = {
        "run_id": run,
        "event_id": 9,
        "sample_id": "joke.dev.0",
        "type": "sampling",
        "data": {"sampled": ["…"]},
        "created_by": "",
        "created_at": "",
    }
    return lines(path, head, *body, sampling, {"final_report": {"counts/Yes": 1}})


def choice(word, score):
    return {"choice": word, "score": score}


def test_an_invalid_choice_is_not_the_lowest_score(tmp_path):
    path = oaieval(
        tmp_path / "x.jsonl",
        ("joke.dev.0", choice("Yes", 1.0)),
        ("joke.dev.1", choice("__invalid__", 0.0)),
        ("joke.dev.2", choice("No", 0.0)),
    )
    log = interop.read_openai_evals(path)
    assert verdicts(log) == ["Yes", "⊥", "No"]
    assert (log.rows[0]["judge"], log.rows[0]["prompt"]) == ("gpt-4", "humor")
    assert verdicts(interop.read_openai_evals(path, field="score")) == ["1", "⊥", "0"]
    assert log.to_cube(classes=["Yes", "No"])["class"].values.tolist() == ["Yes", "No", "⊥"]


def test_a_sample_judged_twice_in_a_run_is_one_outcome_or_declared(tmp_path):
    # evals issue #955: after a rate limit a sample was run twice, and both rows were scored.
    path = oaieval(tmp_path / "x.jsonl", ("joke.dev.0", choice("Yes", 1.0)), ("joke.dev.0", choice("No", 0.0)))
    with pytest.raises(TableError, match=r"line 2, x\.jsonl line 3: sample joke\.dev\.0 is judged 2 times"):
        interop.read_openai_evals(path)
    last = interop.read_openai_evals(path, repeated="last")
    assert verdicts(last) == ["No"]
    assert any(note.endswith("judged again in the same run: 1.") for note in last.notes)
    assert verdicts(interop.read_openai_evals(path, repeated="repeats")) == ["Yes", "No"]


def test_runs_are_repeats_and_times_are_kept(tmp_path):
    paths = [
        oaieval(tmp_path / f"{run}.jsonl", ("joke.dev.0", choice(said, 1.0)), run=run)
        for run, said in (("r1", "Yes"), ("r2", "No"))
    ]
    cube = interop.read_openai_evals(paths).to_cube()
    assert cube.sizes["repeat"] == 2
    assert cube.sent.values.ravel().tolist() == [1796040001.0] * 2
    match = oaieval(
        tmp_path / "match.jsonl", ("joke.dev.0", {"correct": True, "picked": "A", "expected": "A"}), kind="match"
    )
    assert verdicts(interop.read_openai_evals(match, event="match", field="picked")) == ["A"]
    assert verdicts(interop.read_openai_evals(match, event="match", field="correct")) == ["true"]


def test_a_log_without_its_spec_is_refused(tmp_path):
    with pytest.raises(TableError, match="no line with the run's spec"):
        interop.read_openai_evals(
            lines(tmp_path / "x.jsonl", {"type": "metrics", "sample_id": "s", "data": {"choice": "A"}})
        )


# -- Inspect ----------------------------------------------------------------------------------------------------------


def inspected(
    item, epoch, value, *, reason=None, explanation=None, error=None, cache=None, scorer="verdict", order="AB"
):
    score = {"value": value, "answer": "…", "reason": reason, "explanation": explanation, "history": []}
    event = {"event": "model", "timestamp": f"2026-11-30T12:00:0{epoch}+00:00", "cache": cache, "model": "m"}
    return {
        "id": item,
        "epoch": epoch,
        "input": "…",
        "target": "A",
        "output": {"completion": "A"},
        "scores": {} if error else {scorer: score},
        "metadata": {"order": order},
        "events": [{"event": "score"}, event],
        **({"error": {"message": error, "traceback": ""}} if error else {}),
    }


def inspect_log(path: Path, *samples: object, roles=None, **args: object) -> Path:
    spec = {"task": "judge", "model": "org/m", "task_args": args, **({"model_roles": roles} if roles else {})}
    return one(path, {"version": 2, "status": "success", "eval": spec, "samples": samples})


def test_epochs_are_repeats_and_an_unscored_sample_is_no_verdict(tmp_path):
    path = inspect_log(
        tmp_path / "log.json",
        inspected("q1", 1, "A"),
        inspected("q1", 2, float("nan"), reason="refusal"),
        inspected("q1", 3, "I", explanation="Grade not found in model output: hm"),
        inspected("q1", 4, "I", explanation="The answer is wrong."),
        inspected("q1", 5, "A", error="Rate limit: 429"),
    )
    log = interop.read_inspect(path)
    assert verdicts(log) == ["A", "⊥", "⊥", "I", ""]
    assert [row["reason"] for row in log] == ["", "refusal", "unparsed", "", "rate_limited"]
    assert any(note.endswith("scores as incorrect, ⊥ here: 1.") for note in log.notes)
    assert np.diff(log.to_cube().sent.values.ravel()).tolist() == [1.0] * 4


def test_prompts_orders_and_judges_come_from_where_they_are_named(tmp_path):
    labels = {"A": "first", "B": "second"}
    files = [
        inspect_log(
            tmp_path / f"{t}.json",
            *(inspected("q", e, said, order=o) for e, (said, o) in enumerate([("A", "AB")], 1)),
            inspected("q", 1, "A", order="BA"),
            template=t,
        )
        for t in ("short", "long")
    ]
    log = interop.read_inspect(files, prompt="task_args.template", order="metadata.order", labels=labels)
    assert [(row["prompt"], row["order"], row["verdict"]) for row in log] == [
        ("short", "AB", "1"),
        ("short", "BA", "2"),
        ("long", "AB", "1"),
        ("long", "BA", "2"),
    ]
    assert {row["judge"] for row in log} == {"org/m"}
    roles = inspect_log(tmp_path / "roles.json", inspected("q", 1, "C"), roles={"grader": {"model": "org/grader"}})
    assert interop.read_inspect(roles).rows[0]["judge"] == "org/grader"
    with pytest.raises(TableError, match="was judged before"):
        interop.read_inspect([files[0], files[0]], prompt="task_args.template", order="metadata.order", labels=labels)


def test_answers_from_the_cache_and_scores_of_several_scorers(tmp_path):
    path = inspect_log(
        tmp_path / "x.json",
        inspected("q", 1, "A"),
        inspected("q", 2, "A", cache="read"),
        inspected("q", 3, "B", cache="write"),
    )
    with pytest.raises(TableError, match="1 answer comes from the tool's cache"):
        interop.read_inspect(path)
    assert [row["repeat"] for row in interop.read_inspect(path, cached="drop")] == ["1", "3"]
    both = inspected("q", 1, "A")
    both["scores"]["other"] = {"value": {"tone": "B"}}
    path = inspect_log(tmp_path / "y.json", both)
    with pytest.raises(TableError, match="it has scores of verdict, other"):
        interop.read_inspect(path)
    with pytest.raises(TableError, match="the score has parts"):
        interop.read_inspect(path, scorer="other")
    assert verdicts(interop.read_inspect(path, scorer="other", value="tone")) == ["B"]


def test_eval_logs_are_read_by_inspect_itself(tmp_path):
    have = importlib.util.find_spec("inspect_ai") is not None
    if not have:
        (tmp_path / "x.eval").write_bytes(b"PK")
        with pytest.raises(InputError, match="reading \\.eval logs needs Inspect"):
            interop.read_inspect(tmp_path / "x.eval")
    need("inspect", have, "pip install 'secondorder[inspect]'")
    from inspect_ai.log import read_eval_log, write_eval_log

    plain = inspect_log(tmp_path / "x.json", inspected("q", 1, "A"))
    value = json.loads(plain.read_text())
    value["eval"] |= {"created": "2026-11-30T12:00:00+00:00", "dataset": {}, "config": {}}
    value["samples"][0]["events"] = []
    log = read_eval_log(str(one(plain, value)))
    write_eval_log(log, str(tmp_path / "x.eval"), format="eval")
    assert verdicts(interop.read_inspect(tmp_path / "x.eval")) == verdicts(interop.read_inspect(plain)) == ["A"]


# -- every reader -----------------------------------------------------------------------------------------------------

READERS = {
    "read_fastchat": ("x.jsonl", lambda path: lines(path, pair())),
    "read_alpaca_eval": ("x.json", lambda path: one(path, [annotation(1)])),
    "read_lm_eval": ("x.jsonl", lambda path: lines(path, sample(0, ["A"], "A"))),
    "read_promptfoo": ("x.json", lambda path: promptfoo(path, result(0, grade=graded(grade(True))))),
    "read_helm": ("x.json", lambda path: helm(path, state())),
    "read_openai_evals": ("x.jsonl", lambda path: oaieval(path, ("s", choice("Yes", 1.0)))),
    "read_inspect": ("x.json", lambda path: inspect_log(path, inspected("q", 1, "A"))),
}
COLUMNS = ["judge", "item", "prompt", "order", "repeat", "verdict", "status", "reason", "cached", "place"]


@pytest.fixture(params=READERS)
def tool(request, tmp_path):
    name, write = READERS[request.param]
    return getattr(interop, request.param), write(tmp_path / name)


def test_rows_are_flat_and_the_declaration_makes_the_same_cube(tool):
    read, path = tool
    log = read(path)
    for row in log:
        assert list(row)[: len(COLUMNS)] == COLUMNS
        assert all(isinstance(value, str | bool | float) for value in row.values())
        assert row["place"].startswith(path.name)
    cube = log.to_cube()
    by_hand = so.make_cube(log.rows, **log.declaration)
    np.testing.assert_array_equal(cube.verdict, by_hand.verdict)
    assert cube.attrs["independence"] == "untestable"
    parent = json.loads(cube.attrs["parent"])
    assert parent["name"] == path.name
    assert parent["sha256"] == log.sha256
    so.save_cube(cube, path.with_suffix(".nc"))
    assert cube_digest(so.open_cube(path.with_suffix(".nc"))) == cube_digest(cube)
    assert str(log).startswith("log")


def test_a_gzipped_log_is_the_same_log(tool):
    read, path = tool
    zipped = path.with_name(path.name + ".gz")
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert [{**row, "place": ""} for row in read(zipped)] == [{**row, "place": ""} for row in read(path)]


def test_a_file_that_is_something_else_is_refused_with_its_name(tool, tmp_path):
    read, path = tool
    stored = path.read_bytes()
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "absent.json")
    wrong = {
        "cut": stored[: len(stored) // 2],
        "empty": b"",
        "other": b'{"hello": 1}\n',
        "list": b"[]",
        "number": b"7\n",
        "binary": b"\xff\xfe\x00",
        "deep": b"[" * 100_000,
    }
    for content in wrong.values():
        path.write_bytes(content)
        with pytest.raises(TableError) as caught:
            read(path)
        assert path.name in str(caught.value)
        assert caught.value.remedy
    with pytest.raises(InputError, match="no file is given"):
        read([])


def test_answers_that_repeat_to_the_letter_are_noted(tmp_path):
    said = "After weighing both answers with care I find that [[A]] is better."
    path = lines(tmp_path / "x.jsonl", *(pair(texts=(said, said + str(t)), tstamp=float(t)) for t in range(3)))
    assert any(
        note.startswith("In 1 of 2 cells all repeats are one text") for note in interop.read_fastchat(path).notes
    )


def places_in(value, at=()):
    yield at
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places_in(value[key], (*at, key))


def with_junk(value, at, junk):
    if not at:
        return junk
    copy = json.loads(json.dumps(value))
    inner = copy
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = junk
    return copy


def test_a_record_with_junk_anywhere_is_read_or_refused_with_its_place(tool):
    read, path = tool
    is_lines = path.suffix == ".jsonl"
    text = path.read_text(encoding="utf-8")
    value = [json.loads(line) for line in text.splitlines()] if is_lines else json.loads(text)
    refused = []
    for at in places_in(value):
        for junk in (None, 7, "x", [], {}):
            spoiled = with_junk(value, at, junk)
            if is_lines and isinstance(spoiled, list):
                lines(path, *spoiled)
            else:
                one(path, spoiled)
            try:
                str(read(path))
            except TableError as error:
                refused.append(str(error))
    assert refused
    assert all(path.name in message for message in refused)


def test_a_parser_of_ones_own_that_breaks_is_named(tmp_path):
    path = task_file(tmp_path / "m", "t", sample(0, ["A", "B"], "A"))
    with pytest.raises(TableError, match=r"jsonl line 1: parse raised ZeroDivisionError"):
        interop.read_lm_eval(path, parse=lambda text: text[1 // 0])
    with pytest.raises(TableError, match="parse returned 7"):
        interop.read_lm_eval(path, parse=lambda text: 7)
