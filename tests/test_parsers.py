"""Parsers: every ambiguous text is ⊥ with a reason, none is guessed; the order is undone in one place."""

from __future__ import annotations

import itertools
import json
import textwrap
from collections import Counter

import pytest

from secondorder._schema import INVALID_REASONS
from secondorder.acquire._contract import complete
from secondorder.acquire._parsers import PARSERS, parser_version
from secondorder.acquire._spec import VerdictSpec
from secondorder.acquire._types import Outcome
from secondorder.acquire._verdict import make_reader, restore
from secondorder.errors import SpecError

PAIR = {"A": "first", "B": "second", "TIE": "tie"}
SCALE = [str(number) for number in range(1, 11)]


def reader(parser: str = "label", **keys):
    keys.setdefault("labels", PAIR if "classes" not in keys else {})
    keys.setdefault("classes", ["1", "2", "tie"])
    return make_reader(complete(VerdictSpec(parser=parser, **keys)))


def said(read, text: str, order: str = "AB") -> str:
    """The verdict, or the reason why there is none."""
    outcome = read(text, "stop", order)
    assert (outcome.status == "valid") == (outcome.verdict is not None) == (outcome.reason == "")
    assert outcome.reason in ("", *INVALID_REASONS)
    return outcome.verdict or outcome.reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A", "1"),
        (" b\n", "2"),
        ("**B**.", "2"),
        ("▁A", "1"),
        ('"TIE"', "tie"),
        ("Tie!", "tie"),
        ("(A)", "1"),
        ("[[A]]", "1"),
        ("Answer: B", "2"),
        ("**Answer:** B", "2"),
        ("Final answer:\nA", "1"),
        ("My final verdict is **TIE**.", "tie"),
        ("Response B", "2"),
        ("The better response is: [A]", "1"),
        ("Assistant A was careless, so I choose [[B]].", "2"),
        ("[[A]] … in short [[A]]", "1"),
        ("A and B", "ambiguous"),
        ("[[A]] is better than [[B]]", "ambiguous"),
        ("I conclude that [[B]] is better than [[A]].", "ambiguous"),
        ("A\nB", "ambiguous"),
        ("A or TIE?", "ambiguous"),
        ("[[A]] or [[C]]", "ambiguous"),
        ("[[C]]", "unparsed"),
        ("A is better", "unparsed"),
        ("A detailed answer wins", "unparsed"),
        ("Response B is worse than the other", "unparsed"),
        ("The answer is not A", "unparsed"),
        ("The worse response: A", "unparsed"),
        ("BANANA", "unparsed"),
        ("ABBA", "unparsed"),
        ("SPA B", "unparsed"),
        ("A?", "unparsed"),
        ("~~A~~", "unparsed"),
        ("A/B", "ambiguous"),
        ("C", "unparsed"),
        ("I'm sorry, I cannot help with that.", "unparsed"),
        ("", "empty"),
        (" \n\t\u200b", "empty"),
        ("...", "unparsed"),
    ],
)
def test_label(text, expected):
    assert said(reader(), text) == expected


def test_a_word_is_not_its_part():
    """Case 17: "CORRECT" in "INCORRECT"."""
    read = reader(labels={"CORRECT": "yes", "INCORRECT": "no"}, classes=["yes", "no"])
    assert said(read, "INCORRECT") == "no"
    assert said(read, "The answer is INCORRECT.") == "no"
    assert said(read, "It is INCORRECT to call this CORRECT") == "ambiguous"


def test_a_label_that_begins_another_is_told_from_it():
    read = reader(labels={"A": "good", "A+": "best"}, classes=["good", "best"])
    assert [said(read, text) for text in ("A+", "Answer: A+", "A", "A+ or A", "A+, yes: A+")] == [
        "best",
        "best",
        "good",
        "ambiguous",
        "unparsed",
    ]


def test_case_matters_only_where_it_tells_labels_apart():
    read = reader(labels={"a": "x", "A": "y"}, classes=["x", "y"])
    assert [said(read, text) for text in ("a", "A")] == ["x", "y"]
    assert said(reader(labels={"Äpfel": "x"}, classes=["x"]), "ÄPFEL") == "x"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Both are fine, A is longer.\n\nB", "2"),
        ("Assistant A's answer …\n\n[A]\n", "1"),
        ("reasons\nTherefore, my verdict is: **[[B]]**", "2"),
        ("reasons\nTherefore **[[A]]** provides the better answer to the second question.", "1"),
        ("Assistant A's answer is right.\nSo [[A]] is better than [[B]]", "ambiguous"),
        ("[[C]] tied first\n[[B]] is better", "ambiguous"),
        ("A\n\nbecause it is short", "unparsed"),
        ("thus Assistant A is better than Assistant B", "ambiguous"),
        ("\n\n", "empty"),
        ("A\u2028B", "ambiguous"),
    ],
)
def test_last_line(text, expected):
    assert said(reader("last-line"), text) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"^\s*(A|B|TIE)\b", " A. Response A", "1"),
        (r"^\s*(A|B|TIE)\b", "The A", "unparsed"),
        (r"verdict: (?P<verdict>\w+) \((\d+)\)", "verdict: B (3)", "2"),
        (r"\[\[(\w+)\]\]", "[[A]] then [[A]]", "1"),
        (r"\[\[(\w+)\]\]", "[[A]] then [[B]]", "ambiguous"),
        (r"\[\[(\w+)\]\]", "[[A]] then [[D]]", "ambiguous"),
        (r"\[\[(\w+)\]\]", "[[D]]", "unparsed"),
        (r"TIE|A|B", "xTIEx", "tie"),
    ],
)
def test_regex(pattern, text, expected):
    assert said(reader("regex", pattern=pattern), text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"winner": "A"}', "1"),
        (' {"why": "B is long", "winner": "tie"}\n', "tie"),
        ('```json\n{"winner": "B"}\n```', "2"),
        ('Here it is:\n```\n{"winner": "B"}\n```\nThank you.', "2"),
        ('```json\n{"winner": "B"}\n```\n```json\n{"winner": "A"}\n```', "ambiguous"),
        ('{"winner": "A", "winner": "B"}', "ambiguous"),
        ('{"notes": [{"x": 1, "x": 2}], "winner": "B"}', "ambiguous"),
        ('{"winner": "A"} {"winner": "B"}', "unparsed"),
        ('The winner is {"winner": "A"}', "unparsed"),
        ('{"winner": ["A"]}', "unparsed"),
        ('{"winner": null}', "unparsed"),
        ('{"winner": "C"}', "unparsed"),
        ('{"Winner": "A"}', "unparsed"),
        ('{"winner": NaN}', "unparsed"),
        ('["A"]', "unparsed"),
        ("A", "unparsed"),
        ('{"winner": "A"', "unparsed"),
        ("[" * 200_000, "unparsed"),
        ("", "empty"),
    ],
)
def test_json(text, expected):
    assert said(reader("json", field="winner"), text) == expected


def test_json_reads_numbers_truth_values_and_inner_fields():
    read = reader("json", field="result.score", classes=SCALE)
    wanted = {"7": "7", "7.0": "7", '"7"': "7", "11": "out_of_range", "6.5": "out_of_range", "true": "unparsed"}
    assert {value: said(read, f'{{"result": {{"score": {value}}}}}') for value in wanted} == wanted
    yes = reader("json", field="ok", classes=["true", "false"])
    assert said(yes, '{"ok": false}') == "false"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", "7"),
        (" **7**.", "7"),
        ("7.0", "7"),
        ("Score: 7", "7"),
        ("Rating: [[9]]", "9"),
        ("9/10", "9"),
        ("Score: 9 / 10", "9"),
        ("[[9/10]] and [[9]]", "9"),
        ("9/12", "ambiguous"),
        ("[[8]] or [[9]]", "ambiguous"),
        ("There are 5 reasons why this is a score of 9", "ambiguous"),
        ("I give it a 7", "unparsed"),
        ("<7", "unparsed"),
        (".7", "unparsed"),
        ("7%", "unparsed"),
        ("seven", "unparsed"),
        ("7e0", "ambiguous"),
        ("-1", "out_of_range"),
        ("\u22121", "out_of_range"),
        ("0", "out_of_range"),
        ("11", "out_of_range"),
        ("6.5", "out_of_range"),
        ("", "empty"),
    ],
)
def test_score(text, expected):
    assert said(reader("score", classes=SCALE), text) == expected


def test_a_failed_judgement_is_not_a_score():
    """Case 15: 8, 9 and a failure stored as −1 have the mean 8.5 over two, with one invalid."""
    read = reader("score", classes=SCALE)
    outcomes = [read(text, "stop", "single") for text in ("8", "9", "-1")]
    scores = [float(outcome.verdict) for outcome in outcomes if outcome.verdict]
    assert (sum(scores) / len(scores), len(scores)) == (8.5, 2)
    assert [outcome.reason for outcome in outcomes] == ["", "", "out_of_range"]


def test_signed_scales_and_half_points():
    read = reader("score", classes=["-3", "-1.5", "0", "1.5", "3"])
    assert [said(read, text) for text in ("-3", "+1.50", "\u22121.5", "0", "1")] == [
        "-3",
        "1.5",
        "-1.5",
        "0",
        "out_of_range",
    ]


def test_a_malformed_verdict_is_no_tie():
    """Case 18: 2 wins, 6 losses and 2 malformed are .20/.60/.20, the last in a class of their own."""
    texts = ["A"] * 2 + ["B"] * 6 + ["neither, really", "A B"]
    found = Counter(said(reader(), text) for text in texts)
    assert found == {"1": 2, "2": 6, "unparsed": 1, "ambiguous": 1}


@pytest.mark.parametrize("rule", ["invalid", "parse"])
@pytest.mark.parametrize("cut", ["length", "max_tokens"])
def test_an_answer_cut_before_any_text_is_truncated(rule, cut):
    """Case 19: reasoning used max_tokens up."""
    read = reader(truncated=rule)
    assert read("", cut, "AB") == read(" \n", cut, "AB") == Outcome("invalid", "truncated")
    assert read("", "stop", "AB") == Outcome("invalid", "empty")
    wanted = Outcome("invalid", "truncated") if rule == "invalid" else Outcome("valid", "", "1")
    assert read("A", cut, "AB") == wanted
    assert read("A", "stop", "AB") == Outcome("valid", "", "1")


def test_the_order_is_undone_once():
    for order, verdicts in (("AB", ["1", "2", "tie"]), ("BA", ["2", "1", "tie"])):
        assert [said(reader(), text, order) for text in ("A", "B", "TIE")] == verdicts
        assert [restore(meaning, order) for meaning in ("first", "second", "tie")] == verdicts
    named = reader(labels={"left": "first", "right": "second", "one": "1"})
    assert [said(named, text, "BA") for text in ("left", "right", "one")] == ["2", "1", "1"]


VOCABULARY = ("A", "B", "TIE", "[[A]]", "[[B]]", "\n", "Answer:", "**", "better")
SWAP = {"A": "B", "B": "A", "[[A]]": "[[B]]", "[[B]]": "[[A]]"}


@pytest.mark.parametrize("parser", ["label", "last-line"])
def test_no_text_favours_a_label(parser):
    """Exhaustive: exchanging the two labels in any text of up to four tokens exchanges the two verdicts."""
    read = reader(parser)
    mirror = {"1": "2", "2": "1"}
    for length in range(1, 5):
        for tokens in itertools.product(VOCABULARY, repeat=length):
            one = said(read, " ".join(tokens))
            other = said(read, " ".join(SWAP.get(token, token) for token in tokens))
            assert other == mirror.get(one, one), tokens


@pytest.mark.parametrize("parser", ["label", "last-line"])
def test_two_different_marks_never_give_a_verdict(parser):
    read = reader(parser)
    for tokens in itertools.product(VOCABULARY, repeat=4):
        if "[[A]]" in tokens and "[[B]]" in tokens:
            assert said(read, " ".join(tokens)) in ("ambiguous", "unparsed"), tokens


def test_a_pattern_that_backtracks_without_end_is_an_error_and_no_verdict(monkeypatch):
    monkeypatch.setattr("secondorder.acquire._pattern.LONGEST_MATCH_S", 0.1)
    parse = reader("regex", pattern="^(?P<verdict>A)(a|aa|a?)+b$")
    assert (said(parse, "Aaab"), said(parse, "c")) == ("1", "unparsed")
    with pytest.raises(SpecError, match=r"aa\|a\?\)\+b\$' takes more than 0.1 s on one answer"):
        said(parse, "A" + "a" * 60 + "!")


@pytest.mark.data
def test_real_answers_with_no_mark_or_several(data_dir):
    """49 real answers: conflicting marks are ⊥ under every rule, and no answer without marks is guessed."""
    with (data_dir / "position_bias" / "parse_edge_cases.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    labels = {"A": "first", "B": "second", "C": "tie"}
    by_label, by_last = reader(labels=labels), reader("last-line", labels=labels)
    first, last = (reader("regex", labels=labels, pattern=p) for p in (r"(?s)^.*?\[\[(\w)\]\]", r"(?s)^.*\[\[(\w)\]\]"))
    found: Counter[str] = Counter()
    for row in rows:
        shown = row["tail"].count("[[")
        text = " … ".join([*(f"[[{mark}]]" for mark in row["marks"][: len(row["marks"]) - shown]), row["tail"]])
        answers = {said(by_label, text), said(by_last, text)}
        if len(set(row["marks"])) > 1:
            assert not answers & {"1", "2", "tie"}, text
            assert said(by_label, text) == "ambiguous"
            found["conflict"] += 1
            found["first and last differ"] += said(first, text) != said(last, text)
        elif row["marks"]:
            wanted = {"A": "1", "B": "2", "C": "tie"}[row["marks"][0]]
            assert said(by_label, text) == wanted
            assert answers <= {wanted, "unparsed", "ambiguous"}
            found["agreed"] += 1
        else:
            assert said(by_label, text) in ("unparsed", "ambiguous")
            found["last line is a label" if said(by_last, text) in ("1", "2") else "no mark"] += 1
    assert found == {"agreed": 11, "conflict": 8, "first and last differ": 6, "no mark": 28, "last line is a label": 2}


OWN = """
from secondorder.acquire._types import Outcome

def winner(text):
    if "crash" in text:
        raise ZeroDivisionError("no verdicts here")
    if "number" in text:
        return 3
    if "sorry" in text:
        return Outcome("invalid", "refusal")
    return "A" if "alpha" in text else None

def versioned(text):
    return text
versioned.__version__ = "2.1"
not_callable = 3
"""


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    (tmp_path / "own_parser_module.py").write_text(textwrap.dedent(OWN))
    monkeypatch.syspath_prepend(str(tmp_path))
    return "own_parser_module"


def test_an_own_function(own_module):
    read = reader(f"{own_module}:winner")
    assert said(read, "alpha", "BA") == "2"
    assert said(read, "beta") == "unparsed"
    assert said(read, "sorry") == "refusal"
    with pytest.raises(SpecError, match=r"raised ZeroDivisionError: no verdicts here.*return None"):
        read("crash", "stop", "AB")
    with pytest.raises(SpecError, match=r"returned int.*return a label"):
        read("number", "stop", "AB")


def test_versions_of_parsers(own_module):
    assert {name: parser_version(name) for name in PARSERS} == {
        **dict.fromkeys(PARSERS, "1"),
        "regex": "2",
    }
    assert parser_version(f"{own_module}:versioned") == "2.1"
    assert parser_version(f"{own_module}:winner").startswith("sha256:")
    for name, wrong in (
        ("no_such_module:f", "cannot be imported"),
        (f"{own_module}:no_such", "cannot be imported"),
        (f"{own_module}:not_callable", "not a function"),
        ("builtins:len", "neither a version nor readable source"),
    ):
        with pytest.raises(SpecError, match=wrong):
            parser_version(name)


@pytest.mark.parametrize(
    "text",
    ["[" * 1_000_000, "[[" * 500_000 + "C", "A " * 500_000, "7" * 1_000_000, "*" * 1_000_000, "Answer:" * 150_000,
     "```\n" * 200_000, "<script>alert(1)</script>" * 40_000, "\x00" * 1_000_000],
)  # fmt: skip
def test_a_megabyte_on_one_line_is_read_and_is_no_verdict(text):
    for read in (reader(), reader("last-line"), reader("json", field="winner"), reader("score", classes=SCALE)):
        assert read(text, "stop", "AB").status == "invalid"
