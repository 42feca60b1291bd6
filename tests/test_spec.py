"""audit.toml: what is accepted, what every default is, what is warned of, and what the starter writes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from secondorder._canon import canonical_json
from secondorder.acquire._items import read_items
from secondorder.acquire._load import load_spec, parse_spec, spec_from_manifest
from secondorder.acquire._plan import plan
from secondorder.acquire._spec import AuditSpec, InvalidScore
from secondorder.acquire._starter import write_template
from secondorder.acquire._warn import spec_warnings
from secondorder.errors import SchemaError, SpecError

from .small_specs import POINTWISE, SMALLEST


def test_the_smallest_spec_gets_the_documented_defaults():
    spec = parse_spec(SMALLEST)
    judge = spec.judges["mine"]
    assert (judge.flavour, judge.transport, judge.concurrency, judge.timeout_s) == ("generic", "direct", 32, 600)
    assert (judge.key_env, judge.headers, judge.requests_per_minute, judge.price, judge.note) == (
        None,
        {},
        None,
        None,
        "",
    )
    assert judge.seeds is True
    assert (spec.design.send, spec.verdict.truncated, spec.prompts.policy) == ("shuffled", "invalid", "fixed")
    assert (spec.retry.attempts, spec.retry.give_up_after_s) == (6, 3600)
    assert (spec.limits.calls, spec.limits.cost_usd, spec.null, spec.stop) == (None, None, None, None)
    analysis = spec.analysis
    assert (analysis.kernel, analysis.invalid, analysis.pairs) == ("nominal", "class", "complete")
    assert (analysis.tau, analysis.level, analysis.draws) == (None, 0.95, 20000)


def test_every_key_of_the_documented_file_is_accepted():
    text = """
schema = "secondorder.audit/1"
name   = "llmbar-wrappers"
seed   = 20261130
[judges.qwen]
endpoint  = "openai-chat"
flavour   = "vllm"
transport = "direct"
base_url  = "http://127.0.0.1:8000/v1"
model     = "Qwen/Qwen3.6-27B"
key_env   = "JUDGE_KEY"
headers   = {}
concurrency = 32
requests_per_minute = 600
timeout_s = 600
price     = { input = 0.25, output = 2.0 }
note      = "vLLM 0.33, chat template at 1f3c2ab"
[judges.qwen.body]
temperature = 1.0
top_p = 1.0
top_k = 0
max_tokens = 8
[items]
file    = "items.jsonl"
id      = "id"
stratum = "subset"
gold    = "label"
pair    = ["output_1", "output_2"]
per_stratum = 10
[prompts]
policy    = "fixed"
criterion = "Which response follows the instruction better?"
census    = ["none", "upper", "title", "brackets", "xml", "markdown"]
system    = ""
user = "{{criterion}} {{input}} {{first}} {{second}}"
[prompts.weights]
none = 0.5
upper = 0.1
title = 0.1
brackets = 0.1
xml = 0.1
markdown = 0.1
[design]
orders  = ["AB", "BA"]
repeats = 4
send    = "by-item"
[verdict]
parser  = "label"
labels  = { A = "first", B = "second", TIE = "tie" }
classes = ["1", "2", "tie"]
truncated = "invalid"
[retry]
attempts = 6
give_up_after_s = 3600
[limits]
calls = 10000
cost_usd = 25.0
[null]
items = 10
ids   = 6
[stop]
component = "prompt"
tau   = 0.02
alpha = 0.05
[analysis]
kernel = "nominal"
invalid = "class"
pairs  = "complete"
tau    = 0.02
level  = 0.95
draws  = 20000
"""
    spec = parse_spec(text)
    assert spec.judges["qwen"].price.output == 2.0
    assert spec.stop.component == "prompt"
    assert spec.null.ids == 6


def test_a_pointwise_spec_with_crossed_facets_and_a_numeric_kernel():
    spec = parse_spec(POINTWISE)
    assert spec.verdict.range == (1.0, 5.0)
    assert spec.design.orders == []
    declared = parse_spec(POINTWISE.replace('"midpoint"', "{ score = 3.0, penalty = 4.5 }"))
    assert declared.analysis.invalid == InvalidScore(score=3.0, penalty=4.5)


def test_the_order_of_tables_and_keys_says_nothing():
    raw = tomllib.loads(SMALLEST)

    def turned(table: dict) -> dict:
        return {key: turned(value) if isinstance(value, dict) else value for key, value in reversed(table.items())}

    assert msgspec.json.encode(turned(raw)) != msgspec.json.encode(raw)
    assert parse_spec(_toml(turned(raw))) == parse_spec(SMALLEST)


def test_a_spec_survives_its_manifest():
    for text in (SMALLEST, POINTWISE, POINTWISE.replace('"midpoint"', "{ score = 3.0, penalty = 4.5 }")):
        spec = parse_spec(text)
        stored = msgspec.json.decode(canonical_json({"spec": msgspec.to_builtins(spec)}))
        assert spec_from_manifest(stored) == spec
    with pytest.raises(SpecError, match="holds no valid spec"):
        spec_from_manifest({"spec": {"name": "x"}})


def _toml(table: dict) -> str:
    """Just enough of a TOML writer for the specs above: strings, numbers, lists, tables as inline tables."""
    return "\n".join(f"{key} = {_value(value)}" for key, value in table.items())


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{key}" = {_value(inner)}' for key, inner in value.items()) + "}"
    return msgspec.json.encode(value).decode()


def test_other_schemas_and_newer_numbers_are_refused():
    with pytest.raises(SchemaError, match="newer than this version reads"):
        parse_spec(SMALLEST.replace("audit/1", "audit/2"))
    with pytest.raises(SchemaError, match=r"is 'secondorder\.cube/1'"):
        parse_spec(SMALLEST.replace("secondorder.audit/1", "secondorder.cube/1"))
    with pytest.raises(SpecError, match="'schema' is missing"):
        parse_spec(SMALLEST.replace('schema = "secondorder.audit/1"', ""))


def test_headers_and_body_fields_that_are_no_keys_pass():
    text = SMALLEST.replace(
        "body     =", 'headers = { X-Title = "audit", anthropic-version = "2023-06-01" }\nbody ='
    ).replace("max_tokens = 8", "max_tokens = 8, stop_token_ids = [1], prompt_cache_key = 'none'")
    assert parse_spec(text).judges["mine"].body["stop_token_ids"] == [1]


def test_files_that_cannot_be_read_give_one_line(tmp_path):
    with pytest.raises(SpecError, match=r"cannot be read: no such file.*secondorder init"):
        load_spec(tmp_path / "audit.toml")
    with pytest.raises(SpecError, match="cannot be read: is a directory"):
        load_spec(tmp_path)
    (tmp_path / "audit.toml").write_bytes(b'name = "\xff"')
    with pytest.raises(SpecError, match="byte 8 is not UTF-8"):
        load_spec(tmp_path / "audit.toml")
    (tmp_path / "audit.toml").write_bytes(b"\xef\xbb\xbf" + SMALLEST.replace("\n", "\r\n").encode())
    assert load_spec(tmp_path / "audit.toml") == parse_spec(SMALLEST)


def test_sampling_fields_left_to_the_server_are_named_by_flavour():
    plain = spec_warnings(parse_spec(SMALLEST))
    assert len(plain) == 1
    assert "top_p" in plain[0]
    assert "[judges.mine]" in plain[0]
    assert "temperature" not in plain[0]
    llama = spec_warnings(parse_spec(SMALLEST.replace("body     =", 'flavour = "llama.cpp"\nbody =')))
    assert all(name in llama[0] for name in ("top_p", "top_k", "min_p", "repeat_penalty"))
    full = SMALLEST.replace("max_tokens = 8", "max_completion_tokens = 8, top_p = 1")
    assert spec_warnings(parse_spec(full)) == []
    reasoning = SMALLEST.replace("temperature = 1.0, max_tokens = 8", "reasoning_effort = 'low', max_tokens = 99")
    assert spec_warnings(parse_spec(reasoning)) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("temperature = 1.0", "temperature = 0", "near-copies"),
        ("max_tokens = 8", "max_tokens = 1", "cuts every answer"),
        ("repeats = 4", "repeats = 1", "no component can be debiased"),
        ("[prompts]", '[prompts]\npolicy = "random"', "full list"),
        ("response follows", "{{response}} follows", "sent as it stands"),
        (', TIE = "tie"', "", "no label means tie"),
    ],
)
def test_what_is_valid_and_still_unwise_is_said(old, new, said):
    assert any(said in line for line in spec_warnings(parse_spec(SMALLEST.replace(old, new))))


def test_init_writes_an_audit_that_plans_as_it_stands(tmp_path):
    written = write_template(tmp_path / "new" / "audit")
    spec = load_spec(written[0])
    assert spec_warnings(spec) == []
    planned = plan(spec, read_items(spec, written[0].parent))
    assert len(planned.calls) == 4 * 6 * 2 * 4
    assert planned.notes == ()
    with pytest.raises(SpecError, match="already there"):
        write_template(tmp_path / "new" / "audit")


def test_the_starter_shows_every_table_and_key():
    from secondorder.acquire import _spec
    from secondorder.acquire._starter import AUDIT_TOML

    shown = set(re.findall(r"^(?:# )?(\w+)\s*=", AUDIT_TOML, re.MULTILINE)) | set(re.findall(r"\{ (\w+) =", AUDIT_TOML))
    rare = {
        "transport",
        "body",
        "scores",
        "system",
        "messages",
        "weights",
        "pattern",
        "field",
        "range",
        "levels",
        "per_stratum",
    }
    for kind in (AuditSpec, _spec.JudgeSpec, _spec.ItemsSpec, _spec.PromptsSpec, _spec.DesignSpec, _spec.VerdictSpec,
                 _spec.RetrySpec, _spec.LimitsSpec, _spec.NullSpec, _spec.StopSpec, _spec.AnalysisSpec):  # fmt: skip
        for field in msgspec.structs.fields(kind):
            if field.name not in rare:
                assert field.name in shown or re.search(rf"\[{field.name}\b|\.{field.name}\]", AUDIT_TOML), field.name


def test_errors_name_the_path_that_was_given(tmp_path):
    path = Path(tmp_path) / "other.toml"
    path.write_text(SMALLEST.replace("repeats = 4", "repeats = 0"))
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    assert str(caught.value).startswith(f"{path} [design]: repeats is 0")
