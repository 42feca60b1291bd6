"""Soft verdicts from calls to the report: laws, reasons, servers that list something else, the doctor."""

from __future__ import annotations

import math
import re
from functools import partial

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder._audit._doctor import examine
from secondorder._schema import REASONS, STATUS
from secondorder._statistics._outcomes import outcome_counts
from secondorder.acquire import Call, SoftVerdict
from secondorder.acquire._judge import _server
from secondorder.cli._soft import say_sampled, say_soft
from secondorder.errors import InputError

from .conftest import FIRST, LINE, SCORES, answer, cube_of, judge_of, listed, notes_of, one_word, read, truth_of


def test_case_20_the_token_is_that_of_the_verdict_and_not_the_first_equal_one(tmp_path):
    """ "8" in the reason, then "8": .5 / "9": .5 as the verdict: 8.5, not 8.0; and in a run by every call's tokens."""
    certain, open_ = listed(("8", 0.999)), listed(("8", 0.5), ("9", 0.5))
    entries = answer(("8", certain), " of", " 9", " facts hold.", "\n", ("8", open_))
    soft = read("8 of 9 facts hold.\n8", entries, *SCORES, LINE, order="single")
    assert sum(float(label) * p for label, p in soft.probabilities.items()) == pytest.approx(8.5, abs=1e-12)
    law = {f"8 of 9 facts hold.\n{score}": 0.5 for score in "89"}
    cube = cube_of(tmp_path, lambda call: law, *SCORES, LINE)
    mean = so.estimate_law(cube).sel({"class": ["7", "8", "9"]}).dot(xr.DataArray([7.0, 8.0, 9.0], dims="class"))
    np.testing.assert_allclose(mean, 8.5, atol=1e-12)


def test_case_20_no_verdict_token_among_the_listed_ones_is_undefined_and_no_hard_verdict(tmp_path, monkeypatch):
    soft = read("8", answer(("8", listed(("Good", 0.7), ("Well", 0.2)))), *SCORES, LINE, order="single")
    assert soft == SoftVerdict(reason="no_verdict_token")
    told = _server.logprob_entries
    other = {"Good": 0.7, "Well": 0.3}

    def unrelated(law, text, number):
        return [
            entry | {"top_logprobs": told(other, "Good", number)[0]["top_logprobs"]} for entry in told(law, text, 1)
        ]

    monkeypatch.setattr(_server, "logprob_entries", unrelated)
    cube = cube_of(tmp_path, lambda call: {"8": 1.0}, *SCORES, LINE)
    assert (cube["verdict"] == -1).all()
    assert cube["soft"].isnull().all()
    assert outcome_counts(cube)["outcome"].values.tolist() == ["invalid: no_verdict_token"]


def test_a_call_without_a_soft_verdict_is_no_missing_call(tmp_path):
    cube = cube_of(tmp_path, one_word, FIRST, ("repeats = 2", "repeats = 3")).copy(deep=True)
    place = dict.fromkeys(cube["verdict"].dims, 0)
    cube["verdict"][place], cube["soft"][place] = -1, np.nan
    cube["status"][place], cube["reason"][place] = STATUS.index("invalid"), REASONS.index("several_tokens")
    (group,) = so.decompose(cube).groups
    assert (group.n_calls, group.n_missing) == (cube["verdict"].size - 1, 0)
    assert "1 completed call has no soft verdict (several_tokens 1)" in notes_of(group)


def test_under_the_contract_of_the_first_token_a_soft_verdict_is_the_law_and_one_call_is_enough(tmp_path):
    cube = cube_of(tmp_path, one_word, FIRST, ("repeats = 2", "repeats = 1"))
    true = truth_of(cube)
    np.testing.assert_allclose(so.estimate_law(cube).sel(judge="toy"), true, atol=1e-12)
    known = so.decompose_law(true).value
    # Nothing can be shuffled, but what was sampled is held against its law.
    report = so.check_independence(cube)
    assert "of the verdicts that its calls sampled, not of the soft ones" in " ".join(str(report).split())
    assert [found.name for found in report.detectors] == [
        "soft verdicts, all calls", "soft verdicts, cells",
    ]  # fmt: skip
    (group,) = so.decompose(cube).groups
    for estimate in group.estimates:
        assert math.isnan(estimate.estimate)
        assert "exact where it is the law of the cell, inflated where it is a draw" in estimate.reason
        assert estimate.plugin == pytest.approx(float(known.sel(component=estimate.component)), abs=1e-12)
    assert "90.0 % of the probability is on tokens that say a verdict" in notes_of(group)


JUDGES = """
[judges.hard]
endpoint = "openai-chat"
base_url = "http://127.0.0.1:1/v1"
model    = "toy"
body     = { temperature = 1.0, top_p = 1.0, max_tokens = 50 }

[judges.cold]
endpoint = "openai-chat"
base_url = "http://127.0.0.1:1/v1"
model    = "toy"
body     = { temperature = 1.0, top_p = 1.0, max_tokens = 50 }
soft     = { token = "first", top_logprobs = 19 }

[items]"""


def test_a_run_with_a_soft_judge_a_hard_one_and_one_whose_server_lists_another_law(tmp_path, monkeypatch):
    """The third lists the law of another temperature than it samples at: 128 calls in 64 cells, all equal in truth."""
    told = _server.logprob_entries

    def colder(law, text, number):
        weights = {said: p**3 for said, p in law.items()} if number == 19 else law
        return told({said: p / sum(weights.values()) for said, p in weights.items()}, text, number)

    monkeypatch.setattr(_server, "logprob_entries", colder)
    with judge_of(tmp_path, one_word, FIRST, ("[items]", JUDGES), items=16):
        run = so.run_audit(tmp_path)
    cube = so.open_cube(run.folder / "cube.nc").load()
    assert set(np.unique(cube["soft"].sel(judge="hard"))) == {0.0, 1.0}
    known = so.decompose_law(truth_of(cube)).value
    good = run.decomposition.select(judge="toy")
    for name in good:
        # The law itself: debiased and plug-in agree, without any noise of calls.
        assert good[name].estimate == pytest.approx(float(known.sel(component=name)), abs=1e-12)
        assert good[name].plugin == pytest.approx(good[name].estimate, abs=1e-12)
    notes = {group.by["judge"]: notes_of(group) for group in run.decomposition.groups}
    assert "do not contradict their soft verdicts" in notes["toy"]
    assert "same calls contradict their soft verdicts" in notes["cold"]
    assert "soft" not in notes["hard"]
    html = run.report.read_text()
    assert "It fails for cold: the numbers of this report are not those of the answers" in html
    assert "sampled contradict their soft verdicts (soft verdicts, all calls" in html
    assert "⊥ mass as tie" in html
    # Agreement, position and votes are of hard verdicts, and the report says so wherever it has them.
    studies = re.findall(r'id="(agreement-1|position|judges)"', html)
    assert html.count("Of the verdicts that the calls sampled, not of the soft ones.") == len(studies) == 3
    assert "soft verdicts, token = first, 20 listed" in html
    found = {(d.by["judge"], d.name): d for d in so.check_independence(cube).suspicious}
    assert ("cold", "soft verdicts, all calls") in found
    assert ("toy", "soft verdicts, all calls") not in found


def test_the_mass_that_is_not_listed_is_bottom_and_shown(tmp_path):
    cube = cube_of(tmp_path, one_word, ('{ token = "verdict" }', '{ token = "first", top_logprobs = 1 }'))
    np.testing.assert_allclose(cube["soft"].sum("class"), 1.0, atol=1e-12)
    np.testing.assert_allclose(cube["soft"].sel({"class": "⊥"}), cube["unlisted"], atol=1e-12)
    assert (cube["unlisted"] > 0.4).all()
    (group,) = so.decompose(cube).groups
    assert f"{100 * float(cube['unlisted'].mean()):.1f} % unlisted count as ⊥" in notes_of(group)


def chains(call: Call) -> dict[str, float]:
    """Reasons, and given a reason a law of the verdict in the last line; the reasons name labels, too."""
    shift = 0.1 * (call.prompt == "none")
    laws = {"A is short.": (0.9 - shift, 0.1, shift), "I like C more.": (0.2, 0.3 + shift, 0.5 - shift)}
    return {f"{reason}\n{label}": 0.5 * p for reason, law in laws.items() for label, p in zip("ABC", law, strict=True)}


def test_a_reasoning_judge_gives_the_law_of_its_verdict_token_after_the_sampled_reason(tmp_path):
    cube = cube_of(tmp_path, chains, LINE)
    vectors = cube["soft"].sel(judge="toy", order="AB", prompt="none").values.reshape(-1, 4)
    assert {tuple(row) for row in vectors.round(9).tolist()} == {(0.8, 0.1, 0.1, 0.0), (0.2, 0.4, 0.4, 0.0)}
    # Reasons differ between calls: one call is no law.
    result = so.decompose(cube)
    assert result["call"].plugin < result["call"].estimate
    assert "100.0 % of the probability is on tokens that say a verdict; 0.0 % on what says" in notes_of(
        result.groups[0]
    )
    # What counts verdicts takes no soft ones, and does not take the sampled or the most probable class instead.
    for counted in (so.count, so.posterior, partial(so.budget, se={"prompt": 0.1})):
        with pytest.raises(InputError, match=r"soft verdicts|verdicts are soft"):
            counted(cube)


def test_a_server_without_log_probabilities_leaves_nothing_defined(tmp_path, monkeypatch):
    monkeypatch.setattr(_server, "logprob_entries", lambda law, text, number: [])
    cube = cube_of(tmp_path, lambda call: {"A": 0.5, "B": 0.5}, FIRST)
    assert (cube["verdict"] == -1).all()
    assert cube["soft"].isnull().all()
    assert outcome_counts(cube)["outcome"].values.tolist() == ["invalid: no_logprobs"]
    (group,) = so.decompose(cube, incomplete="drop-item").groups
    assert all(math.isnan(estimate.estimate) and math.isnan(estimate.plugin) for estimate in group.estimates)
    assert "32 completed calls have no soft verdict (no_logprobs 32) and are left out" in notes_of(group)


def test_the_doctor_reads_the_soft_verdict_of_one_real_call(tmp_path, monkeypatch):
    with judge_of(tmp_path / "good", one_word, FIRST):
        good = {found.check: found for found in examine(so.load_audit(tmp_path / "good")).findings}
    assert (good["logprobs"].mark, good["soft verdict"].mark) == ("ok", "ok")
    assert "unlisted 0.000" in good["soft verdict"].seen
    with judge_of(tmp_path / "words", lambda call: {"C D": 1.0}, ("C = ", '"C D" = ')):
        words = {found.check: found for found in examine(so.load_audit(tmp_path / "words")).findings}
    assert words["soft verdict"].seen == "none: several_tokens"
    assert "one token each" in words["soft verdict"].remedy
    monkeypatch.setattr(_server, "logprob_entries", lambda law, text, number: [])
    with judge_of(tmp_path / "none", one_word, FIRST):
        none = {found.check: found for found in examine(so.load_audit(tmp_path / "none")).findings}
    assert none["logprobs"].mark == "problem"
    assert "leave soft out" in none["logprobs"].remedy


def test_commands_say_whether_their_numbers_are_of_soft_or_of_sampled_verdicts(tmp_path, capsys):
    cube = cube_of(tmp_path, one_word, FIRST)
    say_soft(cube)
    said = capsys.readouterr()
    assert not said.out
    assert "toy: soft verdicts: 90.0 % of the probability" in said.err
    assert "toy: the verdicts sampled by the same calls do not contradict" in said.err
    say_sampled(cube)
    assert "those that the calls sampled, not the soft ones" in capsys.readouterr().err
    for say in (say_soft, say_sampled):
        say(cube.drop_vars(["soft", "unlisted"]))
    assert capsys.readouterr().err == ""
