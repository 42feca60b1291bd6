"""Logs of OpenAI evals: choices, samples judged twice, and runs as repeats."""

from __future__ import annotations

import pytest

from secondorder import interop
from secondorder.errors import TableError

from .logs import choice, lines, oaieval, verdicts


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
