"""Prompts: wrappers, the proof of a census, names in templates, and the orders in which candidates are shown."""

from __future__ import annotations

import hashlib
import json

import pytest

from secondorder.acquire._census import WRAPPERS, message_bytes, prove_census
from secondorder.acquire._items import Item
from secondorder.acquire._load import parse_spec
from secondorder.acquire._plan import make_parse, plan
from secondorder.acquire._prompts import build_prompts, fill, parse_template, render
from secondorder.acquire._types import Outcome
from secondorder.errors import SpecError

from .small_specs import ITEMS, NULL, POINTWISE, SMALLEST, planned


def test_the_wrappers_are_the_documented_bytes():
    assert {name: wrap("c") for name, wrap in WRAPPERS.items()} == {
        "none": "c",
        "upper": "CRITERION:\nc",
        "title": "Criterion:\nc",
        "brackets": "[Criterion]\nc\n[/Criterion]",
        "xml": "<criterion>\nc\n</criterion>",
        "markdown": "## Criterion\nc",
    }


def test_a_census_is_one_message_but_for_the_wrapper():
    spec = parse_spec(SMALLEST.replace('["none", "markdown"]', json.dumps(list(WRAPPERS))))
    prompts = build_prompts(spec)
    values = {**ITEMS[0].fields, "first": "x", "second": "y"}
    texts = {prompt.id: message_bytes(render(prompt, values)) for prompt in prompts}
    inserted = {name: wrap(spec.prompts.criterion).encode() for name, wrap in WRAPPERS.items()}
    proof = prove_census(texts, inserted)
    before, after = texts["none"].split(inserted["none"])
    assert proof.before_sha256 == hashlib.sha256(before).hexdigest()
    assert proof.after_sha256 == hashlib.sha256(after).hexdigest()
    assert planned().manifest["census"]["inserted_sha256"]["markdown"] == proof.inserted_sha256["markdown"]


def test_the_census_proof_sees_every_other_byte():
    """Exhaustive: one bit of any byte outside the wrapper, in any prompt, and the proof fails; so does a lost byte."""
    inserted = {name: wrap("is it so?").encode() for name, wrap in WRAPPERS.items()}
    whole = {name: b"before " + text + b" after" for name, text in inserted.items()}
    prove_census(whole, inserted)
    for name, text in whole.items():
        inside = range(7, 7 + len(inserted[name]))
        for at in set(range(len(text))) - set(inside):
            flipped = text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :]
            for spoiled in (flipped, text[:at] + text[at + 1 :]):
                with pytest.raises(SpecError, match="differ outside their wrappers"):
                    prove_census({**whole, name: spoiled}, inserted)


def test_names_are_replaced_once_and_single_braces_are_text():
    template = parse_template('{{a}} {b} {"c": {"d": 1}} {{{a}}} {{ b }}')
    assert fill(template, {"a": "{{b}}", "b": "{{a}}"}) == '{{b}} {b} {"c": {"d": 1}} {{{b}}} {{a}}'
    hostile = Item("h", {"input": "{{first}} {{criterion}}", "output_1": "{{second}}", "output_2": "{{input}}"})
    for call in planned(items=[hostile]).calls:
        content = json.loads(call.request)["messages"][0]["content"]
        shown = {"AB": ("{{second}}", "{{input}}"), "BA": ("{{input}}", "{{second}}")}[call.order]
        assert f"{{{{first}}}} {{{{criterion}}}}\n\nA: {shown[0]}\n\nB: {shown[1]}\n\nAnswer" in content


def test_order_ab_shows_the_first_of_the_pair_first_and_the_verdict_is_restored():
    spec = parse_spec(SMALLEST)
    parse = make_parse(spec)
    for call in planned(SMALLEST + NULL).calls:
        content = json.loads(call.request)["messages"][0]["content"]
        one_first = f"A: one {call.item[1]}" in content
        assert one_first == (call.order == "AB")
        assert parse("A", "stop", call) == Outcome("valid", "", "1" if one_first else "2")


def test_system_text_and_lists_of_messages():
    text = SMALLEST.replace("criterion =", 'system = "Judge {{input}}."\ncriterion =')
    call = planned(text).calls[0]
    assert json.loads(call.request)["messages"][0] == {"role": "system", "content": f"Judge task {call.item[1]}."}
    shots = SMALLEST.replace(
        "user =",
        'messages = [{ role = "user", content = "{{input}}" }, { role = "assistant", content = "A" }, '
        '{ role = "user", content = "{{criterion}} {{first}} {{second}}" }]\nnote =',
    )
    shots = "\n".join(line for line in shots.splitlines() if not line.startswith("note ="))
    roles = [message["role"] for message in json.loads(planned(shots).calls[0].request)["messages"]]
    assert roles == ["user", "assistant", "user"]


@pytest.mark.parametrize(
    ("parser", "answer"),
    [("score", "{}"), ('json"\nfield = "x', '{{"x": {}}}'), ('regex"\npattern = "\\\\d', "it is {}")],
)
def test_a_wording_with_its_own_scale_reads_its_own_answers(parser, answer):
    low = '\n[prompts.variants.verdict]\nclasses = ["1", "2", "3"]\n\n[[prompts.variants]]\nid     = "short-high"'
    text = POINTWISE.replace('\n[[prompts.variants]]\nid     = "short-high"', low).replace('"score"', f'"{parser}"')
    spec = parse_spec(text)
    parse = make_parse(spec)
    calls = {call.prompt: call for call in plan(spec, [Item("s", {"text": "t"})]).calls}
    assert parse(answer.format(5), "stop", calls["long-high"]) == Outcome("valid", "", "5")
    assert parse(answer.format(5), "stop", calls["long-low"]) == Outcome("invalid", "out_of_range")
    assert parse(answer.format(3), "stop", calls["long-low"]) == Outcome("valid", "", "3")


def test_an_item_field_may_be_the_criterion():
    text = POINTWISE.replace("Rate: {{text}}", "{{criterion}} {{text}}")
    calls = planned(text, [Item("s", {"text": "t", "criterion": "own"})]).calls
    contents = {json.loads(call.request)["messages"][0]["content"] for call in calls if call.prompt == "short-low"}
    assert contents == {"own t"}


def test_notes_tell_limits_and_repeated_texts():
    whole = planned(SMALLEST + "\n[limits]\ncalls = 10\n", [*ITEMS, Item("again", ITEMS[0].fields)])
    assert "less than the 96 planned calls" in whole.notes[0]
    assert "1 of 6 items repeat" in whole.notes[1]
