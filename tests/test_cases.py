"""Faults that people met in this job: each kind, and the test that keeps it from coming back.

Numbers are those of a collection of public issues. A fault of calls or of answers runs here as a small audit, from
`audit.toml` over HTTP to the cube; the others are kept where their subject is tested, and this file checks that those
tests exist.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder._audit._calls import acquire_stage
from secondorder._audit._cube import cube_of_run
from secondorder._audit._plan import planned_folder
from secondorder._schema import REASONS
from secondorder.acquire import Fault, SimulatedJudge, messages_key, read_ledger

from .small_audits import lay_out

TESTS = Path(__file__).parent

CASES: dict[int, tuple[str, ...]] = {
    1: (
        "test_agreement.py::test_cases_of_published_faults",
        "test_agreement.py::test_undefined_is_nan_with_its_reason",
    ),
    2: ("test_agreement.py::test_cases_of_published_faults",),
    3: ("test_agreement_bands.py::test_undefined_draws_are_counted_and_left_out_of_the_band",),
    4: (
        "test_agreement.py::test_invalid_is_a_class_and_missing_is_not",
        "test_cube.py::test_case_4_a_missing_call_is_no_category_and_an_invalid_verdict_is",
    ),
    5: ("test_agreement.py::test_krippendorff_data_c",),
    6: ("test_agreement.py::test_a_bare_or_double_array_is_refused",),
    7: ("test_agreement.py::test_cases_of_published_faults",),
    8: ("test_agreement.py::test_cases_of_published_faults",),
    9: ("test_agreement_bands.py::test_repeats_of_an_item_are_not_further_items",),
    10: ("test_order_and_length.py::test_rank_biserial_declares_its_zero_rule",),
    11: ("test_aggregate.py::test_tied_votes_do_not_go_to_the_first_letter",),
    12: (
        "test_testing.py::test_the_cached_run_of_the_cases",
        "test_cases.py::test_case_12_answers_of_one_cache_slot_are_found_and_said",
        "test_cases.py::test_case_12_call_noise_of_a_cached_run_is_booked_as_prompt",
    ),
    13: (
        "test_cases.py::test_case_13_one_seed_for_all_repeats_leaves_one_text",
        "test_cases.py::test_case_13_temperature_zero_is_warned_of",
    ),
    14: ("test_cases.py::test_case_14_a_sample_that_ran_twice_counts_once",),
    15: (
        "test_parsers.py::test_a_failed_judgement_is_not_a_score",
        "test_cube.py::test_case_15_a_failed_judgement_is_no_score",
        "test_lottery.py::test_a_failed_judgement_coded_as_minus_one_is_invalid_not_a_score",
    ),
    16: (
        "test_parsers.py::test_real_answers_with_no_mark_or_several",
        "test_cases.py::test_cases_16_to_18_no_answer_is_guessed",
    ),
    17: ("test_parsers.py::test_a_word_is_not_its_part", "test_cases.py::test_cases_16_to_18_no_answer_is_guessed"),
    18: ("test_cases.py::test_case_18_a_malformed_verdict_is_no_tie",),
    19: ("test_cases.py::test_case_19_reasoning_that_used_up_the_tokens_is_truncated",),
    20: (
        "soft/test_audits.py::test_case_20_the_token_is_that_of_the_verdict_and_not_the_first_equal_one",
        "soft/test_audits.py::test_case_20_no_verdict_token_among_the_listed_ones_is_undefined_and_no_hard_verdict",
    ),
    21: (
        "test_cube.py::test_case_21_a_lost_order_neither_erases_the_other_nor_vanishes",
        "test_order_and_length.py::test_a_missing_order_neither_erases_the_other_nor_vanishes",
    ),
    22: ("test_cases.py::test_case_22_seven_of_ten_items_is_what_the_report_says",),
    23: (
        "test_cube.py::test_case_23_one_call_per_cell_has_no_call_noise",
        "test_decompose.py::test_one_call_per_cell_shows_the_plugin_alone",
    ),
}


@pytest.mark.parametrize("number", range(1, 24))
def test_the_case_has_its_test(number: int) -> None:
    for pointer in CASES[number]:
        file, _, name = pointer.partition("::")
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, pointer


# -- small audits ----------------------------------------------------------------------------------------------------

SPEC = """
schema = "secondorder.audit/1"
name   = "case"
seed   = 1

[judges.toy]
endpoint = "openai-chat"
base_url = "{url}"
model    = "toy"
body     = {{ temperature = {temperature}, top_p = 1.0, max_tokens = 8 }}
concurrency = {concurrency}

[items]
file = "items.jsonl"
id   = "id"
pair = ["one", "two"]

[prompts]
criterion = "Which is better?"
census    = ["none", "xml"]
user      = "{{{{criterion}}}} {{{{id}}}}: {{{{first}}}} or {{{{second}}}}"

[design]
orders  = ["AB"]
repeats = {repeats}

[verdict]
parser  = "label"
labels  = {labels}
classes = ["1", "2", "tie"]

[retry]
attempts = 3
"""
LABELS = '{ A = "first", B = "second", TIE = "tie" }'


def write_audit(folder: Path, url: str = "http://127.0.0.1:9/v1", *, items: int, **fields: Any) -> None:
    rows = [{"id": f"q{number}", "one": "x", "two": "y"} for number in range(items)]
    filled = {"temperature": 1.0, "repeats": 4, "concurrency": 32, "labels": LABELS} | fields
    lay_out(folder, SPEC.format(url=url, **filled), rows)


def answered(
    folder: Path, answers: Sequence[str] | Mapping[str, float], faults: Sequence[Fault] = (), **fields: Any
) -> xr.Dataset:
    """The cube of an audit whose judge answers item k with `answers[k]`, or every item by one law."""
    items = fields.pop("items", len(answers))
    write_audit(folder, items=items, **fields)
    laws = {}
    for call in so.plan_audit(folder).calls:
        law = answers if isinstance(answers, Mapping) else {answers[int(call.item[1:])]: 1.0}
        laws[messages_key(json.loads(call.request)["messages"])] = law
    with SimulatedJudge(laws, list(faults), process=False) as judge:
        write_audit(folder, judge.base_url, items=items, **fields)
        audit = so.load_audit(folder)
        run, _ = planned_folder(audit)
        acquire_stage(run, audit.spec)
    return cube_of_run(run)[0]


def reasons(cube: xr.Dataset) -> list[str]:
    """One reason per item: that of its first call."""
    return [REASONS[code] for code in cube.reason.isel(judge=0, prompt=0, order=0, repeat=0).values]


EVEN = {"A": 0.5, "B": 0.5}


def test_case_12_call_noise_of_a_cached_run_is_booked_as_prompt() -> None:
    def estimates(*cells: str) -> list[float]:
        rows = [
            {"item": "1", "prompt": str(p), "run": str(r), "verdict": verdict}
            for p, said in enumerate(cells)
            for r, verdict in enumerate(said)
        ]
        roles = {"item": "item", "facets": ["prompt"], "repeat": "run", "verdict": "verdict", "classes": ["A", "B"]}
        group = so.decompose(so.make_cube(rows, **roles)).groups[0]
        return [entry.estimate for entry in group.estimates]

    np.testing.assert_allclose(estimates("ABAB", "AABB"), [2 / 3, -1 / 12, 7 / 12], atol=1e-12)
    np.testing.assert_allclose(estimates("AAAA", "BBBB"), [0, 1 / 2, 1 / 2], atol=1e-12)


@pytest.mark.slow
def test_case_12_answers_of_one_cache_slot_are_found_and_said(tmp_path: Path) -> None:
    cube = answered(tmp_path, EVEN, [Fault(kind="cached")], items=6)
    assert all(len(np.unique(cell)) == 1 for cell in cube.verdict.values.reshape(-1, 4))
    assert len(np.unique(cube.response_key)) == 12
    assert json.loads(cube.attrs["duplicates"])["response_id_inside_cell"] == 48
    run = so.run_audit(tmp_path)  # every call is stored: it asks nobody
    assert run.decomposition["call"].estimate == 0
    assert "48 calls share a response id with another, and its verdict: copies of an answer" in str(run.decomposition)
    html = run.report.read_text(encoding="utf-8")
    assert "Do not rely on toy: 48 of its 48 calls share a response id with another" in html
    found = {entry.name for entry in so.check_independence(cube).suspicious}
    assert "repeated ids" in found, found


def test_case_13_one_seed_for_all_repeats_leaves_one_text(tmp_path: Path) -> None:
    cube = answered(tmp_path, EVEN, [Fault(kind="fixed_seed")], items=3, repeats=8)
    assert all(len(np.unique(cell)) == 1 for cell in cube.verdict.values.reshape(-1, 8))
    assert len(np.unique(cube.response_key)) == cube.verdict.size  # new ids: only the verdicts give it away
    fresh = answered(tmp_path / "fresh", EVEN, items=3, repeats=8)
    assert any(len(np.unique(cell)) > 1 for cell in fresh.verdict.values.reshape(-1, 8))
    with read_ledger(tmp_path / "fresh" / "runs" / "case" / "ledger.sqlite") as ledger:
        assert len({(call.item, call.seed) for call in ledger.calls()}) == cube.verdict.size


def test_case_13_temperature_zero_is_warned_of(tmp_path: Path) -> None:
    from secondorder.acquire import spec_warnings

    write_audit(tmp_path, items=1, temperature=0)
    assert any("temperature = 0" in line for line in spec_warnings(so.load_audit(tmp_path).spec))


def test_case_14_a_sample_that_ran_twice_counts_once(tmp_path: Path) -> None:
    clean = answered(tmp_path / "clean", EVEN, items=3)
    cube = answered(tmp_path / "busy", EVEN, [Fault(kind="status", status=429, per_call=1, retry_after=0)], items=3)
    assert (cube.attempts == 2).all()
    assert (cube.status == 0).all()
    np.testing.assert_array_equal(cube.verdict, clean.verdict)
    with read_ledger(tmp_path / "busy" / "runs" / "case" / "ledger.sqlite") as ledger:
        assert len(list(ledger.attempts())) == 2 * cube.verdict.size
        assert len(list(ledger.outcomes())) == cube.verdict.size


def test_cases_16_to_18_no_answer_is_guessed(tmp_path: Path) -> None:
    texts = {
        "I conclude that [[B]] is better than [[A]].": "ambiguous",
        "After all, [[A]] is better than [[B]]": "ambiguous",
        "Both are fine.": "unparsed",
        "A B": "ambiguous",
        "": "empty",
        "[[B]]": "",
    }
    cube = answered(tmp_path / "pairs", list(texts), repeats=2)
    assert reasons(cube) == list(texts.values())
    assert (cube.attempts == 1).all()
    correct = {"INCORRECT": "2", "CORRECT": "1", "It is INCORRECT to say CORRECT": "⊥"}
    labels = '{ CORRECT = "first", INCORRECT = "second" }'
    cube = answered(tmp_path / "words", list(correct), repeats=2, labels=labels)
    names = cube["class"].values[cube.verdict.isel(judge=0, prompt=0, order=0, repeat=0).values]
    assert names.tolist() == list(correct.values())


def test_case_18_a_malformed_verdict_is_no_tie(tmp_path: Path) -> None:
    cube = answered(tmp_path, ["A"] * 2 + ["B"] * 6 + ["neither, really", "A or B"], repeats=2)
    law = so.estimate_law(cube).mean([dim for dim in cube.verdict.dims if dim != "repeat"])
    assert dict(zip(law["class"].values.tolist(), law.values.round(12).tolist(), strict=True)) == {
        "1": 0.2, "2": 0.6, "tie": 0.0, "⊥": 0.2,
    }  # fmt: skip


def test_case_19_reasoning_that_used_up_the_tokens_is_truncated(tmp_path: Path) -> None:
    # Half of the text "A" is nothing at all: completed, cut, empty.
    cube = answered(tmp_path, ["A", "B"], [Fault(kind="truncated")], repeats=2)
    assert reasons(cube) == ["truncated", "truncated"]
    assert (cube.status == 1).all()
    assert (cube.attempts == 1).all()


@pytest.mark.slow
def test_case_22_seven_of_ten_items_is_what_the_report_says(tmp_path: Path) -> None:
    lost = [Fault(kind="status", status=429, contains=f" q{number}: ", retry_after=0) for number in (2, 5, 7)]
    cube = answered(tmp_path, {"A": 0.6, "B": 0.3, "Neither": 0.1}, lost, items=10, repeats=2, concurrency=3)
    kept = [f"q{number}" for number in range(10) if number not in (2, 5, 7)]
    assert set(reasons(cube.drop_sel(item=kept))) == {"rate_limited"}
    invalid = int((cube.status == 1).sum())
    assert 0 < invalid < 28
    run = so.run_audit(tmp_path)
    group = run.decomposition.groups[0]
    assert group.items == tuple(kept)
    assert (group.n_invalid, group.n_missing) == (invalid, 12)
    html = run.report.read_text(encoding="utf-8")
    assert "3 items left out: q2: " in html
    assert "no_completion: rate_limited" in html
