"""Logs of Inspect: epochs, scorers, cached answers and the tool's own format."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest

from secondorder import interop
from secondorder.errors import InputError, TableError

from ..conftest import need
from .logs import inspect_log, inspected, one, verdicts


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
