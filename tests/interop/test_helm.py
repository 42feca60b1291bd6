"""Scenario states of HELM: trials, perturbations and the verdicts of annotators."""

from __future__ import annotations

import pytest

from secondorder import interop
from secondorder.errors import TableError

from .logs import ends, helm, state, verdicts


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
