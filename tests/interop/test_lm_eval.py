"""Samples of lm-evaluation-harness: responses are repeats, filters are not."""

from __future__ import annotations

import pytest

from secondorder import interop
from secondorder.errors import TableError

from .logs import sample, task_file, verdicts


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


def test_a_parser_of_ones_own_that_breaks_is_named(tmp_path):
    path = task_file(tmp_path / "m", "t", sample(0, ["A", "B"], "A"))
    with pytest.raises(TableError, match=r"jsonl line 1: parse raised ZeroDivisionError"):
        interop.read_lm_eval(path, parse=lambda text: text[1 // 0])
    with pytest.raises(TableError, match="parse returned 7"):
        interop.read_lm_eval(path, parse=lambda text: 7)
