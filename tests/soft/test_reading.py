"""The soft verdict of one answer: which token it is, what it says, and why there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from secondorder._schema import REASONS
from secondorder.acquire import SoftVerdict
from secondorder.acquire._load import parse_spec
from secondorder.errors import SpecError

from .conftest import FIRST, HALVES, LINE, NO_SOFT, SCORES, answer, listed, plan_of, read, rounded, spec_text

GIVEN = (round(4 / 7, 9), round(2 / 7, 9))
"""Of HALVES, given that the token says a verdict: .5 and .25 of the .75 that do and the .125 that may."""


@pytest.mark.parametrize(
    ("text", "entries", "changes"),
    [
        ("A", answer(("A", HALVES)), [FIRST]),
        ("It depends", answer(("It", HALVES), " depends"), [FIRST]),  # ⊥ was drawn; the law of the token is the same
        ("A", answer(("A", HALVES)), []),
        ("Answer: A.", answer("Answer", ":", (" A", listed((" A", 0.5), (" B", 0.25), (" the", 0.125))), "."), []),
        ("[[A]]", answer("[[", ("A", HALVES), "]]"), []),
        ("B is short: [[A]]", answer("B", " is", " short", ":", " [[", ("A", HALVES), "]]"), []),
        ("B is short.\nA", answer("B", " is", " short", ".", "\n", ("A", HALVES)), [LINE]),
        ("B is short.\nAnswer: A\n", answer("B is short.", "\nAnswer: ", ("A", HALVES), "\n"), [LINE]),
        (
            "A is long. Verdict: A",
            answer("A", " is long. Verdict:", (" A", listed((" A", 0.5), (" B", 0.25), (" D", 0.125)))),
            [('"label"', "\"regex\"\npattern = 'Verdict: ([ABC])'")],
        ),
    ],
)
def test_the_token_is_the_one_in_which_the_parser_finds_the_verdict(text, entries, changes):
    one, other = (0.5, 0.25) if FIRST in changes else GIVEN
    assert rounded(read(text, entries, *changes)) == {"1": one, "2": other}
    assert rounded(read(text, entries, *changes, order="BA")) == {"2": one, "1": other}


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
    entries = answer("Score", ": ", ("8", listed(("8", 0.5), ("9", 0.25))), "/", "9")
    score = ('"label"', '"score"\nrange = [0, 9]')
    assert rounded(read("Score: 8/9", entries, *SCORES, score, order="single")) == {"8": 0.5, "9": 0.25}


def test_tokens_are_laid_over_the_visible_text():
    hidden = answer("<think>", "B", "</think>", "\n\n", ("A", HALVES), "<|im_end|>")
    assert rounded(read("A", hidden)) == dict(zip("12", GIVEN, strict=True))
    assert rounded(read("A", hidden, FIRST)) == {"1": 0.5, "2": 0.25}
    raw = answer("▁B▁is", "▁short", ".\n", ("▁A", listed(("▁A", 0.5), ("▁B", 0.25))))
    assert rounded(read("B is short.\n A", raw, LINE)) == {"1": 0.5, "2": 0.25}
    split = [{"token": "\ufffd", "bytes": [part], "top_logprobs": []} for part in "甲".encode()]
    assert rounded(read("甲\nA", [*split, *answer("\n", ("A", HALVES))], LINE)) == dict(zip("12", GIVEN, strict=True))


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


def test_the_first_token_behind_a_sampled_hidden_reason_is_not_the_law_of_the_cell():
    """The marks of an empty reason are the same in every call; a reason that could have been another is not."""
    marks = [{"token": token, "logprob": -0.001} for token in ("<think>", "\n\n", "</think>", "\n\n")]
    reason = {"token": "B is short", "logprob": -1.2}
    end = answer(("A", HALVES))
    law = rounded(read("A", end, FIRST))
    assert rounded(read("A", [*marks, *end], FIRST)) == law
    assert read("A", [*marks[:2], reason, *marks[2:], *end], FIRST) == SoftVerdict(reason="not_first")
    assert read("A", [{"token": "<think>"}, *end], FIRST) == SoftVerdict(reason="not_first")
    assert rounded(read("A", [*marks[:2], reason, *marks[2:], *end])) == dict(zip("12", GIVEN, strict=True))


@pytest.mark.parametrize("field", ["temperature = true", "best_of = 3", "use_beam_search = true", "ignore_eos = true"])
def test_what_bends_the_law_or_is_no_number_is_refused(field):
    name = field.split(" ")[0]
    change = ("temperature = 1.0", field if name == "temperature" else f"temperature = 1.0, {field}")
    with pytest.raises(SpecError, match=name):
        parse_spec(spec_text(change))
