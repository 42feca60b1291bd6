"""Wrong specs: one clear line for each, which names the place, the value and the way out."""

from __future__ import annotations

import pytest

from secondorder.acquire._load import parse_spec
from secondorder.errors import SecondOrderError, SpecError

from .small_specs import POINTWISE, SMALLEST

# (what is changed, into what) and what the one line must name: table, value or key, and the way out.
WRONG = {
    "unknown key": ("repeats = 4", "repeat = 4", ["[design]", "'repeat'", "did you mean 'repeats'?"]),
    "unknown key at the top": ('name   = "my-judge"', 'nam = "x"', ["audit.toml", "'nam'", "'name'"]),
    "key in the wrong table": ("seed   = 1", "seed = 1\nrepeats = 4", ["'repeats'", "belongs in [design]"]),
    "unknown key of a judge": ("model    =", "modell =", ["[judges.mine]", "'modell'", "'model'"]),
    "unknown key far from all": ("repeats = 4", "repeats = 4\nzzz = 1", ["[design]", "'zzz'", "known keys: repeats"]),
    "missing key": ("repeats = 4", "", ["[design]", "'repeats' is missing", "a whole number from 1"]),
    "missing table": (
        '[design]\norders  = ["AB", "BA"]\nrepeats = 4',
        "",
        ["audit.toml: key 'design' is missing", "repeats"],
    ),
    "wrong kind": ("repeats = 4", 'repeats = "4"', ["[design]", 'repeats is "4"', "a whole number from 1"]),
    "truth value for a number": ("repeats = 4", "repeats = true", ["repeats is true", "a whole number"]),
    "number too small": ("repeats = 4", "repeats = 0", ["repeats is 0", "from 1"]),
    "float for a count": ("repeats = 4", "repeats = 2.5", ["repeats is 2.5", "a whole number"]),
    "word not in the list": ('"openai-chat"', '"openai"', ["[judges.mine]", 'endpoint is "openai"', '"openai-chat"']),
    "wrong order": ('["AB", "BA"]', '["AB", "CD"]', ["[design]", "orders is", '"AB" or "BA"']),
    "order twice": ('["AB", "BA"]', '["AB", "AB"]', ["[design]", "['AB', 'AB']", "once"]),
    "wrong wrapper": ('["none", "markdown"]', '["none", "html"]', ["[prompts]", "census", "html", '"markdown"']),
    "wrapper twice": ('["none", "markdown"]', '["none", "none"]', ["[prompts]", '"none" stands twice']),
    "table for a text": (
        'model    = "Qwen/Qwen3-8B"',
        "model = { a = 1 }",
        ["model is a table", "give text, not empty"],
    ),
    "number for a table": ("[design]\n", "[[design]]\n", ["design is", "a table with the keys repeats"]),
    "negative price": (
        "body     =",
        "price = { input = -1, output = 2 }\nbody =",
        ["[judges.mine.price]", "input is -1"],
    ),
    "infinite timeout": ("body     =", "timeout_s = inf\nbody =", ["timeout_s is inf", "finite"]),
    "date in the body": ("max_tokens = 8", "day = 2026-01-01", ["body.day", "2026-01-01", "quotation marks"]),
    "name with a slash": ('"my-judge"', '"my/judge"', ["audit.toml", 'name is "my/judge"', "letters, digits"]),
    "seed below zero": ("seed   = 1", "seed = -1", ["seed is -1", "from 0 to 2^53"]),
    "seed beyond bounds": ("seed   = 1", "seed = 99999999999999999999", ["seed is 99999999999999999999", "to 2^53"]),
    "name too long": ('name   = "', 'name = "' + 101 * "x", ["name is", "at most 100 letters"]),
    "too much at once": (
        "[judges.mine]",
        "[judges.mine]\nconcurrency = 100000000",
        ["[judges.mine]", "from 1 to 4096"],
    ),
    "level of one": (
        "[verdict]",
        "[analysis]\nlevel = 1.0\n[verdict]",
        ["[analysis]", "level is 1.0", "between 0 and 1"],
    ),
    "number of many digits": ("repeats = 4", "repeats = " + 5000 * "9", ["audit.toml", "not valid TOML"]),
    "nested without end": ("repeats = 4", "repeats = " + 5000 * "[", ["audit.toml", "nested too deep"]),
    "not TOML": ("repeats = 4", "repeats = ", ["audit.toml", "not valid TOML", "line 2"]),
    "no judges": (
        '[judges.mine]\nendpoint = "openai-chat"',
        "[judges]\n[retry]",
        ["[retry]", "'base_url'", "[judges.NAME]"],
    ),
    "address without a host": ('"http://127.0.0.1:8000/v1"', '"127.0.0.1:8000"', ["base_url is", "http://host:port"]),
    "password in the address": ("http://127", "http://me:hush@127", ["base_url holds a key", "key_env"]),
    "key in the address": (":8000/v1", ":8000/v1?api_key=hush", ["base_url holds a key", "key_env"]),
    "key in place of its name": (
        "body     =",
        'key_env = "ab-cd.ef"\nbody =',
        ["key_env is not the name", "JUDGE_KEY"],
    ),
    "header with a key": ("body     =", 'headers = { x-api-key = "hush" }\nbody =', ["'x-api-key'", "key_env"]),
    "header that cannot be sent": ("body     =", 'headers = { "a b" = "c" }\nbody =', ['"a b"', "plain printable"]),
    "body that sets the seed": ("max_tokens = 8", "seed = 8", ["[judges.mine]", "body sets 'seed'", "leave it out"]),
    "body that sets the model": ("max_tokens = 8", 'model = "x"', ["body sets 'model'", "leave it out"]),
    "several answers per call": ("max_tokens = 8", "n = 4", ["n = 4", "design.repeats"]),
    "key in the body": ("max_tokens = 8", 'api_key = "hush"', ["'api_key' looks like a key", "key_env"]),
    "endpoint without an adapter": ('"openai-chat"', '"decisions"', ["[judges.mine]", "decisions", "openai-chat"]),
    "transport without an adapter": ("body     =", 'transport = "batch"\nbody =', ["[judges.mine]", "batch", "direct"]),
    "items of another format": ('"items.jsonl"', '"items.xlsx"', ["[items]", '"items.xlsx"', ".parquet"]),
    "id field twice": ('id   = "id"', 'id = ["a", "a"]', ["[items]", "['a', 'a']", "once"]),
    "no id field": ('id   = "id"', "id = []", ["[items]", "id is []", "not empty"]),
    "pair of one field": ('["output_1", "output_2"]', '["x", "x"]', ["[items]", '"x" twice', "two different"]),
    "pair of three": ('["output_1", "output_2"]', '["x", "y", "z"]', ["[items]", "pair is", "a list of 2"]),
    "per_stratum without strata": ('id   = "id"', 'id = "id"\nper_stratum = 3', ["per_stratum is 3", "stratum"]),
    "per_stratum and limit": (
        'id   = "id"',
        'id = "id"\nstratum = "s"\nper_stratum = 3\nlimit = 2',
        ["[items]", "both given", "one of them"],
    ),
    "pair without orders": ('orders  = ["AB", "BA"]', "", ["[design]", "orders are missing", '["AB", "BA"]']),
    "orders without a pair": ('pair = ["output_1", "output_2"]', "", ["[design]", "['AB', 'BA']", "items.pair"]),
    "no template": ("user = ", "system = ", ["[prompts]", "neither user nor messages", "user ="]),
    "no census": ('census    = ["none", "markdown"]', "", ["[prompts]", "neither census nor variants", "census ="]),
    "census without a criterion": ("criterion = ", "system = ", ["[prompts]", "without a criterion", "formats"]),
    "criterion shown twice": ("{{input}}", "{{criterion}}", ["{{criterion}} 2 times", "exactly once"]),
    "criterion not shown": ("{{criterion}}", "", ["{{criterion}} 0 times", "exactly once"]),
    "candidate not shown": ("B: {{second}}", "", ["does not show {{second}}", "{{first}} and {{second}}"]),
    "candidate shown by its field": ("{{input}}", "{{output_1}}", ["{{output_1}} is a candidate", "{{first}}"]),
    "empty name": ("{{input}}", "{{}}", ["{{}} is no name", "single braces are text"]),
    "census beside variants": (
        "[design]",
        '[[prompts.variants]]\nid = "x"\nuser = "{{first}} {{second}}"\n[design]',
        ["census and variants are both given", "one of them"],
    ),
    "unknown weight": ("[design]", "[prompts.weights]\nhtml = 1\n[design]", ["[prompts]", '"html"', "none, markdown"]),
    "weights off one": (
        "[design]",
        "[prompts.weights]\nnone = 0.5\nmarkdown = 0.6\n[design]",
        ["[prompts]", "sum to 1.1", "sum to 1"],
    ),
    "weight missing": ("[design]", "[prompts.weights]\nnone = 1\n[design]", ['"markdown" has no weight', "each of"]),
    "weights of a sample": (
        "[design]",
        "[prompts.weights]\nnone = 0.5\nmarkdown = 0.5\n[design]",
        ["weights", "random", "equal weights"],
        ("[prompts]", '[prompts]\npolicy = "random"'),
    ),
    "unknown parser": ('parser  = "label"', 'parser = "labels"', ["[verdict]", '"labels"', "'label'"]),
    "pattern for labels": ('parser  = "label"', 'parser = "label"\npattern = "x"', ["pattern is given", '"regex"']),
    "regex without pattern": ('parser  = "label"', 'parser = "regex"', ["'pattern' is missing", "needs it"]),
    "broken pattern": ('parser  = "label"', 'parser = "regex"\npattern = "("', ['"("', "regular expression", "single"]),
    "a name without its end": ("{{input}}", "{{input", ['"{{input" is not closed', "{{field}}"]),
    "two groups": ('parser  = "label"', 'parser = "regex"\npattern = "(A)|(B)"', ["2 groups", "(?P<verdict>"]),
    "json without field": ('parser  = "label"', 'parser = "json"', ["'field' is missing", "needs it"]),
    "score for pairs": ('parser  = "label"', 'parser = "score"', ["[verdict]", '"tie" is no number', "label"]),
    "range for labels": ('parser  = "label"', 'parser = "label"\nrange = [1, 2]', ["range is given", "numbers"]),
    "class twice": ('"2", "tie"]', '"2", "tie", "tie"]', ["[verdict]", '"tie" stands twice', "once"]),
    "bottom as a class": ('"2", "tie"]', '"2", "tie", "⊥"]', ["[verdict]", '"⊥"', "leave it out"]),
    "position as a class": ('"2", "tie"]', '"2", "tie", "first"]', ["[verdict]", '"first"', "1 and 2"]),
    "classes without the candidates": (
        '["1", "2", "tie"]',
        '["a", "2", "tie"]',
        ["[verdict]", 'lack "1"', "items.pair"],
    ),
    "label to nowhere": ('TIE = "tie"', 'TIE = "draw"', ["[verdict]", '"draw"', "first, second, 1, 2, tie"]),
    "label of nothing": ('TIE = "tie"', '"**" = "tie"', ["[verdict]", '"**" is empty', "word"]),
    "label twice": ('TIE = "tie"', '"[A]" = "tie"', ["[verdict]", '"A" and "[A]"', "keep one"]),
    "no label for a position": ('B = "second", ', "", ["[verdict]", 'no label means "second"', "labels = {"]),
    "null with one repeat": (
        "repeats = 4",
        "repeats = 1\n[null]\nitems = 1\nids = 2",
        ["[design]", "repeats is 1", "2 or more"],
    ),
    "one hidden id": ("repeats = 4", "repeats = 4\n[null]\nitems = 1\nids = 1", ["[null]", "ids is 1", "from 2"]),
    "stop while shuffled": (
        "repeats = 4",
        'repeats = 4\n[stop]\ncomponent = "prompt"\ntau = 0.1',
        ["[design]", '"shuffled"', '"by-item"'],
    ),
    "stop on no component": (
        "repeats = 4",
        'repeats = 4\nsend = "by-item"\n[stop]\ncomponent = "wording"\ntau = 0.1',
        ["[stop]", '"wording"', "prompt:order"],
    ),
    "stop with one repeat": (
        "repeats = 4",
        'repeats = 1\nsend = "by-item"\n[stop]\ncomponent = "prompt"\ntau = 0.1',
        ["[design]", "repeats is 1", "2 or more"],
    ),
    "scores for names": (
        "[verdict]",
        "[analysis]\nscores = { tie = 1 }\n[verdict]",
        ["[analysis]", '"nominal"', '"interval"'],
    ),
    "interval of names": ("[verdict]", '[analysis]\nkernel = "interval"\n[verdict]', ["[analysis]", '"tie"', "scores"]),
    "scores incomplete": (
        "[verdict]",
        '[analysis]\nkernel = "interval"\nscores = { "1" = 1, "2" = 2 }\n[verdict]',
        ["[analysis]", '"tie" has no score', "1, 2, tie"],
    ),
    "invalid undeclared": (
        "[verdict]",
        '[analysis]\nkernel = "interval"\nscores = { "1" = 0, "2" = 1, tie = 0.5 }\n[verdict]',
        ["[analysis]", '"class"', "midpoint"],
    ),
    "midpoint of names": (
        "[verdict]",
        '[analysis]\ninvalid = "midpoint"\n[verdict]',
        ["[analysis]", '"midpoint"', '"class"'],
    ),
    "panel of one": (
        "repeats = 4",
        'repeats = 1\n[analysis]\npairs = "panel"',
        ["[analysis]", '"panel"', "repeats = 1", "2 or more"],
    ),
    "unknown key of invalid": (
        "[verdict]",
        "[analysis]\ninvalid = { score = 1, penality = 2 }\n[verdict]",
        ["[analysis.invalid]", "'penality'", "'penalty'"],
    ),
}

WRONG_POINTWISE = {
    "kernel not named": (
        'kernel  = "interval"\ninvalid = "midpoint"',
        "",
        ["[analysis]", "kernel is missing", "nominal"],
    ),
    "position without candidates": (
        'parser  = "score"',
        'parser = "label"\nlabels = { A = "first" }',
        ["[verdict]", '"first"', "items.pair"],
    ),
    "labels of a score": (
        'parser  = "score"',
        'parser = "score"\nlabels = { A = "1" }',
        ["[verdict]", "labels", "leave them out"],
    ),
    "range the wrong way": (
        'parser  = "score"',
        'parser = "score"\nrange = [5, 1]',
        ["[verdict]", "[5, 1]", "lower end first"],
    ),
    "class outside the range": (
        'parser  = "score"',
        'parser = "score"\nrange = [1, 4]',
        ["[verdict]", '"5"', "[1, 4]", "widen"],
    ),
    "one number twice": ('"4", "5"]', '"4", "4.0"]', ["[verdict]", "same number", "once"]),
    "levels not crossed": (
        'levels = { detail = "long", scale = "1-5" }',
        'levels = { detail = "wide", scale = "1-5" }',
        ["levels", "cross"],
    ),
    "levels twice": (
        'levels = { detail = "long", scale = "1-5" }',
        'levels = { detail = "short", scale = "1-5" }',
        ["two variants", "cross"],
    ),
    "levels of other facets": (
        'levels = { detail = "long", scale = "1-5" }',
        'levels = { depth = "long" }',
        ["variant 4", "every variant"],
    ),
    "facet with a taken name": (
        "detail =",
        "repeat =",
        ["[prompts.variants]", '"repeat"', "order"],
        *[("detail =", "repeat =")] * 3,
    ),
    "variant id twice": ('id     = "long-high"', 'id = "long-low"', ['"long-low" stands twice', "its own id"]),
    "variant id of the null block": (
        'id     = "long-high"',
        'id = "null/1"',
        ["[prompts.variants 4]", '"null/1"', "kept"],
    ),
    "variant without a template": ('user   = "Rate: {{text}}"', "", ["[prompts.variants 1]", "neither user", "user ="]),
    "unknown key of a variant": (
        'id     = "long-low"',
        'id = "long-low"\nlevel = 1',
        ["[prompts.variants 2]", "'level'", "'levels'"],
    ),
    "unused criterion": (
        "[design]",
        '[prompts]\ncriterion = "c"\n[design]',
        ["no prompt shows {{criterion}}", "leave it out"],
    ),
    "template beside variants": (
        "[design]",
        '[prompts]\nuser = "c"\n[design]',
        ["user is given beside variants", "into the variants"],
    ),
    "class of one wording only": (
        "[design]",
        '[prompts.variants.verdict]\nclasses = ["1", "6"]\n[design]',
        ["[prompts.variants 4.verdict]", '"6"', "verdict.classes", "all wordings"],
    ),
    "weights that do not factor": (
        "[design]",
        "[prompts.weights]\nshort-low = 0.4\nlong-low = 0.1\nshort-high = 0.1\nlong-high = 0.4\n[design]",
        ["[prompts.weights]", "0.4", "products"],
    ),
    "sample with levels": ("[design]", '[prompts]\npolicy = "random"\n[design]', ["[prompts]", "random", "fixed"]),
}


def _spoil(text: str, old: str, new: str) -> str:
    assert old in text, old
    if new.startswith("[prompts]\n"):  # keys of [prompts] must stand before its variants
        key = new.removeprefix("[prompts]\n").removesuffix("\n[design]")
        return text.replace("[[prompts.variants]]", f"[prompts]\n{key}\n[[prompts.variants]]", 1)
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("base", "case"),
    [(SMALLEST, case) for case in WRONG] + [(POINTWISE, case) for case in WRONG_POINTWISE],
    ids=[*WRONG, *WRONG_POINTWISE],
)
def test_each_wrong_spec_gives_one_line_with_place_value_and_remedy(base, case):
    old, new, wanted, *more = WRONG[case] if base is SMALLEST else WRONG_POINTWISE[case]
    text = _spoil(base, old, new)
    for further in more:
        text = text.replace(*further, 1)
    with pytest.raises(SecondOrderError) as caught:
        parse_spec(text)
    line = str(caught.value)
    assert isinstance(caught.value, SpecError)
    assert caught.value.exit_code == 2
    assert "\n" not in line
    assert line.startswith("audit.toml")
    assert caught.value.remedy
    for part in wanted:
        assert part in line, line
    assert "hush" not in line


@pytest.mark.parametrize(
    "secret",
    [
        'headers = { Authorization = "Bearer hush-hush-hush" }',
        'headers = { Cookie = "hush" }',
        'headers = { X-Note = "Bearer hush-hush-hush" }',
        'headers = { X-Auth-Token = "hush" }',
        'headers = { Ocp-Apim-Subscription-Key = "hush" }',
        'key_env = "sk-hush-hush-hush-hush-hush"',
        'key_env = "hf_hushhushhushhushhushhush"',
        'note = "key sk-hush-hush-hush-hush-hush"',
        'body = { api-key = "hush" }',
        'body = { extra = { nested = "sk-hush-hush-hush-hush-hush" } }',
        'key = "hush"',
    ],
)
def test_what_looks_like_a_key_is_refused_and_never_repeated(secret):
    text = SMALLEST.replace("body     = { temperature = 1.0, max_tokens = 8 }", secret)
    with pytest.raises(SpecError) as caught:
        parse_spec(text)
    assert "hush" not in str(caught.value)
    assert "[judges.mine]" in str(caught.value)


def test_a_long_or_hostile_value_stays_one_short_line():
    text = SMALLEST.replace('"openai-chat"', '"' + "x\\n" * 5000 + '"')
    with pytest.raises(SpecError) as caught:
        parse_spec(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
