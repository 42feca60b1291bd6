"""Soft verdicts: from listed log-probabilities to the cube, and what is said where they cannot be had.

The simulated judge lists the exact conditional law of its tokens, so the truth of every soft verdict is known.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder._audit._calls import acquire_stage
from secondorder._audit._cube import cube_of_run
from secondorder._audit._doctor import examine
from secondorder._audit._plan import planned_folder
from secondorder._design import Design
from secondorder._schema import REASONS
from secondorder._statistics._components import all_components
from secondorder._statistics._outcomes import outcome_counts
from secondorder.acquire import Call, SimulatedJudge, SoftVerdict, make_soft, messages_key
from secondorder.acquire._judge import _server
from secondorder.acquire._load import parse_spec
from secondorder.acquire._plan import make_parse
from secondorder.acquire._reading import Completion
from secondorder.core._cells import cells_from_soft
from secondorder.core._concordance import concordance
from secondorder.core._estimates import complete_pairs
from secondorder.errors import InputError, SpecError

SPEC = """
schema = "secondorder.audit/1"
name   = "soft"
seed   = 1

[judges.toy]
endpoint = "openai-chat"
base_url = "http://127.0.0.1:1/v1"
model    = "toy"
soft     = { token = "verdict" }
body     = { temperature = 1.0, top_p = 1.0, max_tokens = 50 }

[items]
file = "items.jsonl"
id   = "id"
pair = ["one", "two"]

[prompts]
census    = ["none", "markdown"]
criterion = "Which is better?"
user      = "{{criterion}} A: {{first}} B: {{second}}"

[design]
orders  = ["AB", "BA"]
repeats = 2

[verdict]
parser  = "label"
labels  = { A = "first", B = "second", C = "tie" }
classes = ["1", "2", "tie"]
"""

FIRST = ('{ token = "verdict" }', '{ token = "first" }')
LINE = ('"label"', '"last-line"')


def spec_text(*changes: tuple[str, str]) -> str:
    text = SPEC
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def listed(*pairs: tuple[str, float]) -> list[dict[str, Any]]:
    return [{"token": token, "logprob": math.log(p) if p > 0 else -9999.0} for token, p in pairs]


def answer(*tokens: str | tuple[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Entries of an answer: a token alone is sure; with a list, that is what the server lists there."""
    found = []
    for token in tokens:
        name, alternatives = token if isinstance(token, tuple) else (token, listed((token, 1.0)))
        found.append({"token": name, "logprob": -0.1, "top_logprobs": alternatives})
    return found


def read(
    text: str, entries: Any, *changes: tuple[str, str], order: str = "AB", finish: str = "stop", body: bytes = b""
) -> SoftVerdict:
    """The soft verdict of one answer under the spec with these changes."""
    spec = parse_spec(spec_text(*changes))
    call = Call("id", 0, "toy", "1", "none", order, 0, False, 7, b"", "")
    outcome = make_parse(spec)(text, finish, call)
    sent = body or json.dumps({"choices": [{"logprobs": {"content": entries}}]}).encode()
    return make_soft(spec)(call, outcome, Completion(text=text, finish_reason=finish), sent)


def rounded(soft: SoftVerdict) -> dict[str, float]:
    assert not soft.reason
    return {label: round(p, 9) for label, p in soft.probabilities.items()}


# -- which token, and what it says ------------------------------------------------------------------------------------

HALVES = listed(("A", 0.5), ("B", 0.25), ("Hm", 0.125))


@pytest.mark.parametrize(
    ("text", "entries", "changes"),
    [
        ("A", answer(("A", HALVES)), [FIRST]),
        ("It depends", answer(("It", HALVES), " depends"), [FIRST]),  # ⊥ was drawn; the law of the token is the same
        ("A", answer(("A", HALVES)), []),
        ("Answer: A.", answer("Answer", ":", (" A", listed((" A", 0.5), (" B", 0.25), (" the", 0.1))), "."), []),
        ("[[A]]", answer("[[", ("A", HALVES), "]]"), []),
        ("B is short: [[A]]", answer("B", " is", " short", ":", " [[", ("A", HALVES), "]]"), []),
        ("B is short.\nA", answer("B", " is", " short", ".", "\n", ("A", HALVES)), [LINE]),
        ("B is short.\nAnswer: A\n", answer("B is short.", "\nAnswer: ", ("A", HALVES), "\n"), [LINE]),
        (
            "A is long. Verdict: A",
            answer("A", " is long. Verdict:", (" A", listed((" A", 0.5), (" B", 0.25), (" D", 0.1)))),
            [('"label"', "\"regex\"\npattern = 'Verdict: ([ABC])'")],
        ),
    ],
)
def test_the_token_is_the_one_in_which_the_parser_finds_the_verdict(text, entries, changes):
    assert rounded(read(text, entries, *changes)) == {"1": 0.5, "2": 0.25}
    assert rounded(read(text, entries, *changes, order="BA")) == {"2": 0.5, "1": 0.25}


def test_every_spelling_of_a_label_counts_for_its_class():
    spellings = [
        ("A", 0.3),
        (" A", 0.2),
        ("▁A", 0.1),
        ("**A", 0.1),
        ("a", 0.05),
        ("B", 0.1),
        ("As", 0.05),
        ("A or", 0.05),
    ]
    soft = read("A", answer(("A", listed(*spellings))), FIRST)
    assert rounded(soft) == {"1": 0.75, "2": 0.1}
    assert round(soft.unlisted, 9) == 0.05


def test_a_score_is_read_without_the_top_of_its_range():
    entries = answer("Score", ": ", ("8", listed(("8", 0.5), ("9", 0.25), ("4", 0.25))), "/", "9")
    score = ('"label"', '"score"\nrange = [0, 9]')
    assert rounded(read("Score: 8/9", entries, *SCORES, score, order="single")) == {"8": 0.5, "9": 0.25}


SCORES = [
    ('pair = ["one", "two"]\n', ""),
    ('orders  = ["AB", "BA"]\n', ""),
    (" A: {{first}} B: {{second}}", "{{one}}"),
    ("[verdict]", '[analysis]\nkernel = "interval"\ninvalid = "midpoint"\n\n[verdict]'),
    ('labels  = { A = "first", B = "second", C = "tie" }\nclasses = ["1", "2", "tie"]', 'classes = ["7", "8", "9"]'),
]


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


def test_tokens_are_laid_over_the_visible_text():
    hidden = answer("<think>", "B", "</think>", "\n\n", ("A", HALVES), "<|im_end|>")
    assert rounded(read("A", hidden)) == rounded(read("A", hidden, FIRST)) == {"1": 0.5, "2": 0.25}
    raw = answer("▁B▁is", "▁short", ".\n", ("▁A", listed(("▁A", 0.5), ("▁B", 0.25))))
    assert rounded(read("B is short.\n A", raw, LINE)) == {"1": 0.5, "2": 0.25}
    split = [{"token": "\ufffd", "bytes": [part], "top_logprobs": []} for part in "甲".encode()]
    assert rounded(read("甲\nA", [*split, *answer("\n", ("A", HALVES))], LINE)) == {"1": 0.5, "2": 0.25}


def test_an_answer_that_is_bottom_is_a_draw_of_bottom_unless_the_first_token_is_the_verdict():
    rambling = answer(("It", HALVES), " depends")
    assert read("It depends", rambling) == SoftVerdict()
    assert read("A", answer(("A", HALVES)), finish="length") == SoftVerdict()
    ended = answer(("<|end|>", listed(("A", 0.5), ("<|end|>", 0.5))))
    assert rounded(read("", ended, FIRST)) == {"1": 0.5}


# -- no soft verdict: a reason, and never the hard one -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "entries", "changes", "reason"),
    [
        ("A", [], [], "no_logprobs"),
        ("A", None, [], "no_logprobs"),
        ("A", "A", [], "no_logprobs"),
        ("A", answer(("A", [])), [], "no_logprobs"),
        ("A", [{"token": "A", "logprob": -0.1}], [], "no_logprobs"),
        ("A", answer("B"), [], "unaligned"),
        ("A", answer("token_id:32"), [], "unaligned"),
        ("[[A]] so [[A]]", answer("[[", "A", "]] so [[", "A", "]]"), [], "several_places"),
        ("[[A]]\nA", answer("[[", "A", "]]\n", "A"), [LINE], "several_places"),
        ("TIE", answer("T", "IE"), [("C = ", "TIE = ")], "several_tokens"),
        ("A", answer(("A", listed(("The", 0.6), ("It", 0.4)))), [], "no_verdict_token"),
        ("A", answer(("A", listed(("A", 0.0), ("It", 1.0)))), [], "no_verdict_token"),
        ("The", answer(("The", listed(("The", 1.0)))), [FIRST], "no_verdict_token"),
    ],
)
def test_what_cannot_be_read_has_a_reason_and_no_probabilities(text, entries, changes, reason):
    assert read(text, entries, *changes) == SoftVerdict(reason=reason)
    assert reason in REASONS


HOSTILE: dict[str, Any] = {
    "not a number": [{"token": "A", "logprob": "-0.1"}],
    "nothing": [{"token": "A", "logprob": None}],
    "truth value": [{"token": "A", "logprob": False}],
    "positive": [{"token": "A", "logprob": 0.5}],
    "mass above one": listed(("A", 0.9), ("B", 0.9)),
    "thousands that sum to more": listed(*((f"A{k}", 0.5) for k in range(5000))),
    "no table": ["A"],
    "no token": [{"logprob": -0.1}],
    "token of another kind": [{"token": 7, "logprob": -0.1}],
    "bytes out of range": [{"token": "A", "bytes": [300], "logprob": -0.1}],
    "no list": {"A": -0.1},
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("changes", [(), (FIRST,)])
def test_lists_that_are_no_probabilities_are_refused(kind, changes):
    assert read("A", answer(("A", HOSTILE[kind])), *changes) == SoftVerdict(reason="bad_logprobs")


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e400"])
def test_numbers_that_json_does_not_have_are_refused(value):
    body = b'{"choices":[{"logprobs":{"content":[{"token":"A","top_logprobs":[{"token":"A","logprob":%s}]}]}}]}'
    assert read("A", None, body=body % value.encode()).reason == "bad_logprobs"


@pytest.mark.parametrize("value", ["-Infinity", "-9999.0", "-1e400", "-" + "9" * 400])
def test_an_impossible_token_is_listed_with_probability_zero(value):
    body = (
        b'{"choices":[{"logprobs":{"content":[{"token":"A","top_logprobs":[{"token":"A","logprob":0.0},'
        b'{"token":"B","logprob":%s}]}]}}]}'
    )
    assert rounded(read("A", None, body=body % value.encode())) == {"1": 1.0, "2": 0.0}


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"choices":[]}', b'{"choices":[{"logprobs":7}]}', b"\xff" * 99])
def test_bodies_of_another_shape_have_no_log_probabilities(body):
    assert read("A", None, body=body or b" ").reason == "no_logprobs"


def test_thousands_of_tokens_are_read_and_missing_mass_is_bottom():
    entries = answer(("A", listed(("A", 0.3), *((f"w{k}", 1e-4) for k in range(5000)), ("B", 0.1))))
    soft = read("A", entries, FIRST)
    assert rounded(soft) == {"1": 0.3, "2": 0.1}
    assert soft.unlisted == pytest.approx(0.1)


def test_a_sum_above_one_by_the_rounding_of_print_alone_is_scaled():
    soft = read("A", answer(("A", listed(("A", 0.5003), ("B", 0.5)))), FIRST)
    assert sum(soft.probabilities.values()) == pytest.approx(1.0, abs=1e-15)
    assert soft.unlisted == 0.0
    # Below one nothing is shared out.
    assert rounded(read("A", answer(("A", listed(("A", 0.4997), ("B", 0.5)))), FIRST)) == {"1": 0.4997, "2": 0.5}


# -- what a plan refuses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([("temperature = 1.0", "temperature = 0.7")], "before it"),
        ([("temperature = 1.0, ", "")], "leaves temperature to the server"),
        ([("top_p = 1.0", "top_p = 0.9")], "top_p = 0.9"),
        ([("top_p = 1.0, ", "top_p = 1.0, top_k = 40, ")], "top_k = 40"),
        ([("top_p = 1.0, ", "top_p = 1.0, min_p = 0.05, ")], "min_p"),
        ([("top_p = 1.0, ", "top_p = 1.0, logit_bias = { 32 = 5 }, ")], "logit_bias"),
        ([('"openai-chat"', '"openai-chat"\nflavour = "llama.cpp"')], "leaves top_k to the server"),
        ([("top_p = 1.0, ", "top_p = 1.0, logprobs = true, ")], "'logprobs' beside soft"),
        ([("max_tokens = 50", "max_tokens = 1")], 'token = "first"'),
        ([FIRST, ("max_tokens = 50", "max_tokens = 1")], 'truncated = "parse"'),
        ([('"label"', '"json"\nfield = "winner"')], "parser is \"json\""),
        ([('"label"', '"os.path:basename"')], "os.path:basename"),
        ([("C = ", "AB = ")], 'label "A" begins label "AB"'),
        ([("C = ", '"a-tie" = ')], "begins label"),
        ([("[verdict]", '[analysis]\ninvalid = "missing"\n\n[verdict]')], "spread over the classes"),
        (
            [
                ("[verdict]", '[stop]\ncomponent = "prompt"\ntau = 0.1\n\n[verdict]'),
                ("repeats = 2", 'repeats = 2\nsend = "by-item"'),
            ],
            "stopping looks at sampled verdicts",
        ),
        ([("{ token = ", "{ tokne = ")], "did you mean"),
        ([('{ token = "verdict" }', "{}")], "key 'token' is missing"),
        ([('"verdict" }', '"verdict", top_logprobs = 0 }')], "top_logprobs"),
    ],
)  # fmt: skip
def test_what_is_not_the_sampled_law_of_one_token_is_refused_before_the_first_call(changes, words):
    with pytest.raises(SpecError) as refused:
        parse_spec(spec_text(*changes))
    assert words in str(refused.value)


def test_a_server_that_lists_what_it_samples_from_may_cut_and_temper():
    spec = parse_spec(
        spec_text(('"verdict" }', '"verdict", processed = true }'), ("temperature = 1.0", "temperature = 0.7"))
    )
    assert spec.judges["toy"].soft.processed


def test_the_request_asks_and_without_soft_its_bytes_are_as_before(tmp_path):
    planned = {name: plan_of(tmp_path / name, *changes) for name, changes in {"soft": (), "hard": NO_SOFT}.items()}
    asked = json.loads(planned["soft"].calls[0].request)
    assert (asked.pop("logprobs"), asked.pop("top_logprobs")) == (True, 20)
    assert asked == json.loads(planned["hard"].calls[0].request)
    assert planned["hard"].manifest["spec"]["judges"]["toy"]["soft"] is None
    assert planned["soft"].manifest["spec"]["judges"]["toy"]["soft"]["token"] == "verdict"


# -- from calls to the report ------------------------------------------------------------------------------------------

NO_SOFT = (('soft     = { token = "verdict" }\n', ""),)
Law = Callable[[Call], Mapping[str, float]]


def plan_of(folder: Path, *changes: tuple[str, str], items: int = 4) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    rows = ({"id": f"q{k}", "one": f"one {k}", "two": f"two {k}"} for k in range(items))
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "audit.toml").write_text(spec_text(*changes))
    return so.plan_audit(folder)


@contextmanager
def judge_of(folder: Path, law: Law, *changes: tuple[str, str], items: int = 4) -> Iterator[Path]:
    """An audit's folder while its simulated judge listens."""
    planned = plan_of(folder, *changes, items=items)
    laws = {messages_key(json.loads(call.request)["messages"]): law(call) for call in planned.calls}
    with SimulatedJudge(laws, process=False) as judge:
        file = folder / "audit.toml"
        file.write_text(file.read_text().replace("http://127.0.0.1:1/v1", judge.base_url))
        yield folder


def cube_of(folder: Path, law: Law, *changes: tuple[str, str], items: int = 4) -> Any:
    """Its cube alone."""
    with judge_of(folder, law, *changes, items=items):
        run, _ = planned_folder(so.load_audit(folder))
        acquire_stage(run)
    return cube_of_run(run)[0]


def one_word(call: Call) -> dict[str, float]:
    """A law over answers of one token, another one in every cell."""
    shift = 0.02 * (int(call.item[1:]) % 4) + 0.1 * (call.prompt == "none") + 0.05 * (call.order == "AB")
    return {"A": 0.3 + shift, "B": 0.4 - shift, "C": 0.2, "Neither": 0.1}


def truth_of(cube: Any) -> Any:
    """The law of `one_word` in the layout of a cube's estimated law."""
    true = so.estimate_law(cube).sel(judge="toy").copy()
    for item, prompt, order in itertools.product(*(true[dim].values for dim in ("item", "prompt", "order"))):
        law = one_word(Call("", 0, "toy", item, prompt, order, 0, False, 1, b"", ""))
        first, second = ("1", "2") if order == "AB" else ("2", "1")
        by_class = {first: law["A"], second: law["B"], "tie": law["C"], "⊥": law["Neither"]}
        true.loc[{"item": item, "prompt": prompt, "order": order}] = [by_class[c] for c in true["class"].values]
    return true


def notes_of(group: Any) -> str:
    return "; ".join(group.all_notes)


def test_under_the_contract_of_the_first_token_a_soft_verdict_is_the_law_and_one_call_is_enough(tmp_path):
    cube = cube_of(tmp_path, one_word, FIRST, ("repeats = 2", "repeats = 1"))
    true = truth_of(cube)
    np.testing.assert_allclose(so.estimate_law(cube).sel(judge="toy"), true, atol=1e-12)
    known = so.decompose_law(true).value
    # Nothing can be shuffled, but what was sampled is held against its law.
    assert [found.name for found in so.check_independence(cube).detectors] == [
        "soft verdicts, all calls", "soft verdicts, cells",
    ]  # fmt: skip
    (group,) = so.decompose(cube).groups
    for estimate in group.estimates:
        assert math.isnan(estimate.estimate)
        assert "closed form at these laws" in estimate.reason
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


# -- what is gained, exactly -----------------------------------------------------------------------------------------


def test_soft_estimates_are_unbiased_and_vary_less_by_enumeration():
    """Two prompts, two repeats; in every cell one of two reasons, then one of two verdicts: all 4**4 outcomes."""
    reasons = ((Fraction(1, 3), (Fraction(3, 4), Fraction(1, 4))), (Fraction(2, 3), (Fraction(1, 5), Fraction(4, 5))))
    other = ((Fraction(1, 2), (Fraction(1, 1), Fraction(0, 1))), (Fraction(1, 2), (Fraction(1, 2), Fraction(1, 2))))
    draws = [[(q * p, law, k) for q, law in cell for k, p in enumerate(law)] for cell in (reasons, other)]
    laws = [[sum(q * law[k] for q, law in cell) for k in range(2)] for cell in (reasons, other)]
    mean = [(a + b) / 2 for a, b in zip(*laws, strict=True)]
    true = sum((a - m) ** 2 for law in laws for a, m in zip(law, mean, strict=True)) / 2
    outcomes = list(itertools.product(draws[0], draws[0], draws[1], draws[1]))
    chance = np.array([float(math.prod(entry[0] for entry in outcome)) for outcome in outcomes])
    soft = np.array(
        [[[list(map(float, e[1])) for e in o[:2]], [list(map(float, e[1])) for e in o[2:]]] for o in outcomes]
    )
    hard = np.array([[[np.eye(2)[e[2]] for e in o[:2]], [np.eye(2)[e[2]] for e in o[2:]]] for o in outcomes])
    design = Design.from_facets([so.Facet("prompt")], [("x", "y")])
    component = all_components(design.names, ())
    at = [each.name for each in component].index("prompt")
    kernel = 1.0 - np.eye(2)
    values = {
        name: np.asarray(complete_pairs(cells_from_soft(v, kernel), design, component, kernel))[:, at]
        for name, v in (("soft", soft), ("hard", hard))
    }
    means = {name: float(chance @ v) for name, v in values.items()}
    assert means["soft"] == pytest.approx(float(true), abs=1e-14)
    assert means["hard"] == pytest.approx(float(true), abs=1e-14)
    variance = {name: float(chance @ (v - means[name]) ** 2) for name, v in values.items()}
    assert variance["soft"] < 0.5 * variance["hard"]


# -- the test of agreement -------------------------------------------------------------------------------------------


def test_p_values_of_cells_are_those_of_all_outcomes():
    """Every outcome of three calls with different vectors: the p value is the exact chance of its tail."""
    laws = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.4, 0.4, 0.2]])
    sequences = list(itertools.product(range(3), repeat=3))
    chance = np.array([math.prod(laws[k, c] for k, c in enumerate(s)) for s in sequences])
    expected = laws.sum(0)
    counts = np.array([np.bincount(s, minlength=3) for s in sequences])
    g = 2 * np.where(counts > 0, counts * np.log(np.maximum(counts, 1) / expected), 0.0).sum(1)
    found = concordance(np.broadcast_to(laws, (27, 3, 3)), sequences)
    np.testing.assert_allclose(found.g, g, atol=1e-12)
    np.testing.assert_allclose(found.pvalue, [chance[g >= x - 1e-9].sum() for x in g], atol=1e-12)


def test_drawn_p_values_agree_with_exact_ones(monkeypatch):
    """Ten cells of six calls. A drawn p of 1999 has sd <= .0112: ten within .05 fails by chance in < 1e-4 of seeds."""
    rng = np.random.default_rng(5)
    laws = rng.dirichlet(np.ones(4), (10, 6))
    codes = (rng.random((10, 6, 1)) >= laws.cumsum(-1)[..., :-1]).sum(-1)
    exact = concordance(laws, codes)
    monkeypatch.setattr("secondorder.core._concordance.MOST_STATES", 1)
    drawn = concordance(laws, codes)
    np.testing.assert_allclose(drawn.pvalue, exact.pvalue, atol=0.05)
    monkeypatch.setattr("secondorder.core._concordance.BUDGET", 1)
    np.testing.assert_allclose(concordance(laws, codes).total_pvalue, exact.total_pvalue, atol=0.15)


def test_agreement_keeps_its_level_and_sees_a_shift():
    """200 data sets of 20 cells x 4 calls. Under agreement each of both p values is <= .05 in at most 5 %: more than 24
    of 200 by chance has probability < 1e-4. A shift of .25 in every cell is seen in nearly all."""
    rng = np.random.default_rng(11)
    few = 200
    rejected = {"cells": 0, "total": 0, "shifted": 0}
    for seed in range(few):
        laws = rng.dirichlet(np.ones(3), (20, 1)).repeat(4, axis=1)
        u = rng.random((20, 4, 1))
        found = concordance(laws, (u >= laws.cumsum(-1)[..., :-1]).sum(-1), seed=seed)
        rejected["cells"] += bool((found.adjusted <= 0.05).any())
        rejected["total"] += found.total_pvalue <= 0.05
        shifted = 0.75 * laws + 0.25 * np.array([1.0, 0.0, 0.0])
        moved = concordance(laws, (u >= shifted.cumsum(-1)[..., :-1]).sum(-1), seed=seed)
        rejected["shifted"] += moved.total_pvalue <= 0.05
    assert rejected["cells"] <= 24
    assert rejected["total"] <= 24
    assert rejected["shifted"] >= 150


def test_unlisted_mass_is_no_contradiction_and_impossible_verdicts_are():
    laws = np.array([[[0.9, 0.0, 0.1]] * 4])
    codes = [[0, 0, 0, 1]]
    assert concordance(laws, codes).pvalue[0] == 0.0
    assert concordance(laws, codes, unlisted=np.full((1, 4), 0.1)).pvalue[0] > 0.05
    nothing = concordance(np.full((1, 2, 3), np.nan), [[-1, -1]])
    assert math.isnan(nothing.pvalue[0])
    assert math.isnan(nothing.total_pvalue)
