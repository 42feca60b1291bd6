"""Plans: the same spec gives the same bytes; seeds, ranks, identities and hashes are the documented formulas."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from secondorder._canon import canonical_json, join_key
from secondorder.acquire import _seeds
from secondorder.acquire._census import WRAPPERS, message_bytes, prove_census
from secondorder.acquire._items import Item, read_items
from secondorder.acquire._load import parse_spec
from secondorder.acquire._manifest import compare_manifests, manifest_bytes
from secondorder.acquire._plan import is_null, make_parse, plan
from secondorder.acquire._prompts import build_prompts, fill, parse_template, render
from secondorder.acquire._types import Outcome
from secondorder.errors import SpecError, TableError

SPECS = Path(__file__).parent / "specs"
SMALLEST = (SPECS / "smallest.toml").read_text(encoding="utf-8")
POINTWISE = (SPECS / "pointwise.toml").read_text(encoding="utf-8")
OTHER = '\n[judges.other]\nmodel = "n"\nbase_url = "http://h/v1"\nendpoint = "openai-chat"\n'
NULL = "\n[null]\nitems = 2\nids = 3\n"
ITEMS = [Item(f"q{n}", {"input": f"task {n}", "output_1": f"one {n}", "output_2": f"two {n}"}) for n in range(5)]


def planned(text: str = SMALLEST, items=ITEMS):
    return plan(parse_spec(text), items)


def with_send(send: str, text: str = SMALLEST) -> str:
    return text.replace("repeats = 4", f'repeats = 4\nsend = "{send}"')


def blake64(value) -> int:
    """The documented hash, written once more with the standard library alone."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


# --- manifest -----------------------------------------------------------------------------------------------------


def test_the_same_spec_gives_the_same_bytes():
    one, two = planned(), planned()
    assert manifest_bytes(one.manifest) == manifest_bytes(two.manifest)
    assert list(one.calls) == list(two.calls) == list(one.calls)
    assert one.calls[7] == list(one.calls)[7]


def test_tables_in_another_order_give_the_same_bytes():
    late = SMALLEST + OTHER + "\n[retry]\nattempts = 2\n"
    head, tables = SMALLEST.split("[judges.mine]", 1)
    early = head + "[retry]\nattempts = 2\n" + OTHER + "\n[judges.mine]" + tables
    assert late != early
    assert manifest_bytes(planned(late).manifest) == manifest_bytes(planned(early).manifest)


def test_the_manifest_hashes_calls_as_documented_and_holds_no_time_or_path():
    whole = planned()
    digest = hashlib.sha256()
    for call in whole.calls:
        assert call.request_sha256 == hashlib.sha256(call.request).hexdigest()
        digest.update(f"{call.id}\t{call.request_sha256}\n".encode())
    assert whole.manifest["calls_sha256"] == digest.hexdigest()
    moved = planned(SMALLEST.replace('"items.jsonl"', '"/home/me/items.jsonl"'))
    assert manifest_bytes(moved.manifest) == manifest_bytes(whole.manifest)
    assert json.loads(manifest_bytes(whole.manifest)) == whole.manifest


def test_the_manifest_lists_the_full_design():
    manifest = planned().manifest
    assert manifest["schema"] == "secondorder.manifest/1"
    assert manifest["calls"] == 5 * 2 * 2 * 4
    assert manifest["facets"] == [
        {"name": "prompt", "kind": "fixed", "levels": ["none", "markdown"], "weights": None},
        {"name": "order", "kind": "fixed", "levels": ["AB", "BA"], "weights": None},
    ]
    assert manifest["items"]["ids"] == ["q0", "q1", "q2", "q3", "q4"]
    assert (manifest["null"], manifest["null_calls"], manifest["warmup_calls"]) == (None, 0, 0)
    assert manifest["parsers"] == {"label": "1"}
    assert manifest["spec"]["analysis"]["draws"] == 20000
    places = {(call.item, call.prompt, call.order, call.repeat) for call in planned().calls}
    assert places == set(itertools.product(manifest["items"]["ids"], ("none", "markdown"), ("AB", "BA"), range(4)))


def test_levels_of_variants_are_facets():
    items = [Item("s", {"text": "t"})]
    manifest = planned(POINTWISE, items).manifest
    assert [(facet["name"], facet["levels"]) for facet in manifest["facets"]] == [
        ("detail", ["short", "long"]),
        ("scale", ["1-3", "1-5"]),
        ("order", ["single"]),
    ]
    assert manifest["prompts"][1]["levels"] == {"detail": "long", "scale": "1-3"}
    weights = "[prompts.weights]\nshort-low = 0.08\nlong-low = 0.12\nshort-high = 0.32\nlong-high = 0.48\n"
    weighted = planned(POINTWISE + weights, items).manifest["facets"]
    assert weighted[0]["weights"] == pytest.approx({"short": 0.4, "long": 0.6})
    assert weighted[1]["weights"] == pytest.approx({"1-3": 0.2, "1-5": 0.8})


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("repeats = 4", "repeats = 8", ["design.repeats: 4 → 8"]),
        ("temperature = 1.0", "temperature = 0.7", ["judges.mine.body.temperature: 1.0 → 0.7"]),
        ("response follows", "answer follows", ["prompts.criterion: "]),
        ("seed   = 1", "seed = 2", ["seed: 1 → 2"]),
        ('"markdown"]', '"xml"]', ["prompts.census: "]),
        ("[verdict]", "[analysis]\ntau = 0.1\n[verdict]", ["analysis.tau: none → 0.1"]),
        ("max_tokens = 8", "max_tokens = 8, top_k = 0", ["judges.mine.body.top_k: none → 0"]),
        ("body     =", "concurrency = 2\nrequests_per_minute = 9\nkey_env = 'K'\nbody =", []),
        ("[verdict]", "[limits]\ncalls = 7\n[verdict]", []),
    ],
)
def test_changed_keys_are_listed_and_the_pace_is_free(old, new, changed):
    lines = compare_manifests(planned().manifest, planned(SMALLEST.replace(old, new, 1)).manifest)
    assert len(lines) == len(changed)
    assert all(line.startswith(start) for line, start in zip(lines, changed, strict=True))


def test_changed_items_are_listed():
    old = planned().manifest
    other = [Item("q9", ITEMS[0].fields), Item("q1", {**ITEMS[1].fields, "input": "new"}), *ITEMS[2:]]
    assert compare_manifests(old, planned(items=other).manifest) == [
        "items: 1 added (q9)",
        "items: 1 removed (q0)",
        "items: 1 changed (q1)",
    ]
    assert compare_manifests(old, planned(items=ITEMS[::-1]).manifest) == ["items: their order"]
    assert compare_manifests(old, old) == []
    assert compare_manifests(old, {**old, "calls_sha256": "0"})[0].startswith("calls_sha256: ")


# --- seeds, identities, order of sending -----------------------------------------------------------------------------


def test_seeds_and_identities_are_the_documented_formulas():
    for call in planned().calls:
        place = ["mine", call.item, call.prompt, call.order, call.repeat]
        assert call.seed == 1 + blake64([1, *place, 0]) % (2**31 - 1)
        assert call.id == hashlib.blake2b(canonical_json(place), digest_size=16).hexdigest()
        assert json.loads(call.request)["seed"] == call.seed


def test_seeds_that_collide_move_on_and_stay_unique(monkeypatch):
    monkeypatch.setattr(_seeds, "SEED_RANGE", 20)
    places = [("p", "AB", repeat) for repeat in range(20)]
    seeds = list(_seeds.unique_seeds(3, "j", "i", places))
    assert sorted(seeds) == list(range(1, 21))
    taken: set[int] = set()
    for (prompt, order, repeat), seed in zip(places, seeds, strict=True):
        tries = (1 + blake64([3, "j", "i", prompt, order, repeat, n]) % 20 for n in itertools.count())
        assert seed == next(value for value in tries if value not in taken)
        taken.add(seed)


@pytest.mark.parametrize("send", ["shuffled", "by-item", "by-cell"])
def test_seeds_are_unique_within_judge_and_item_and_independent_of_sending(send):
    calls = list(planned(with_send(send) + NULL + OTHER).calls)
    assert len({call.id for call in calls}) == len(calls)
    assert [call.rank for call in calls] == list(range(len(calls)))
    for _, group in itertools.groupby(sorted(calls, key=_block), key=_block):
        seeds = [call.seed for call in group]
        assert len(set(seeds)) == len(seeds)
        assert all(0 < seed < 2**31 for seed in seeds)
    alone = {call.id: call.seed for call in planned().calls}
    assert alone.items() <= {call.id: call.seed for call in calls}.items()


def _block(call):
    return call.judge, call.item


def test_a_judge_without_seeds_gets_none():
    calls = planned(SMALLEST.replace("body     =", "seeds = false\nbody =")).calls
    assert {call.seed for call in calls} == {None}
    assert all("seed" not in json.loads(call.request) for call in calls)
    assert len({call.request for call in calls}) == 5 * 2 * 2


def test_shuffled_is_the_rank_of_the_hash():
    calls = list(planned().calls)
    assert calls == sorted(calls, key=lambda call: blake64(["send", 1, call.id]))


def test_by_item_keeps_items_together_in_hash_order():
    calls = list(planned(with_send("by-item") + OTHER).calls)
    assert len(calls) == 2 * 80
    items = [item for item, _ in itertools.groupby(call.item for call in calls)]
    assert items == sorted({call.item for call in calls}, key=lambda item: blake64(["item", 1, item]))
    for _, group in itertools.groupby(calls, key=lambda call: call.item):
        group = list(group)
        assert group == sorted(group, key=lambda call: blake64(["send", 1, call.id]))


def test_by_cell_warms_each_cell_up_and_sends_its_repeats_in_sequence():
    whole = planned(with_send("by-cell"))
    cells = [list(group) for _, group in itertools.groupby(whole.calls, key=lambda c: (c.item, c.prompt, c.order))]
    assert len(cells) == 5 * 2 * 2 == whole.manifest["warmup_calls"]
    for cell in cells:
        assert [(call.warmup, call.repeat) for call in cell] == [(True, -1), *((False, r) for r in range(4))]
        bodies = [{**json.loads(call.request), "seed": None} for call in cell]
        assert all(body == bodies[0] for body in bodies)
    ranks = [blake64(["cell", 1, c[0].judge, c[0].item, c[0].prompt, c[0].order]) for c in cells]
    assert ranks == sorted(ranks)


# --- null block ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("send", ["shuffled", "by-item", "by-cell"])
def test_the_null_block_is_identical_but_for_the_seed(send):
    whole = planned(with_send(send) + NULL)
    hidden = [call for call in whole.calls if is_null(call.prompt) and not call.warmup]
    null = whole.manifest["null"]
    assert len(hidden) == 2 * 3 * 2 * 4 == whole.manifest["null_calls"]
    assert null["prompt"] == "none"
    assert null["ids"] == ["null/1", "null/2", "null/3"]
    assert {call.item for call in hidden} == set(null["items"])
    counts = Counter((call.item, call.prompt, call.order, call.repeat) for call in hidden)
    assert set(counts) == set(itertools.product(null["items"], null["ids"], ("AB", "BA"), range(4)))
    assert set(counts.values()) == {1}
    real = {(call.item, call.order): call.request for call in whole.calls if call.prompt == "none"}
    for call in hidden:
        assert {**json.loads(call.request), "seed": 0} == {**json.loads(real[call.item, call.order]), "seed": 0}
    if send == "by-cell":
        groups = [
            list(g)
            for _, g in itertools.groupby(whole.calls, lambda c: (c.item, is_null(c.prompt) or c.prompt, c.order))
        ]
        assert len(groups) == 5 * 2 * 2 + 2 * 2
        assert all([call.warmup for call in group] == [True] + [False] * (len(group) - 1) for group in groups)


@pytest.mark.parametrize("send", ["shuffled", "by-item", "by-cell"])
def test_hidden_ids_are_assigned_after_seeds_and_ranks(send, monkeypatch):
    """Another assignment changes labels inside item–order–repeat blocks and nothing that the judge can see."""
    from secondorder.acquire import _layout

    text = with_send(send) + NULL
    before = list(planned(text).calls)
    original = _layout.hidden_places
    monkeypatch.setattr(
        _layout, "hidden_places", lambda *key: [place ^ 1 if place < 2 else place for place in original(*key)]
    )
    after = list(planned(text).calls)
    assert [(c.seed, c.request, c.item, c.order, c.repeat) for c in before] == [
        (c.seed, c.request, c.item, c.order, c.repeat) for c in after
    ]
    turned = {"null/1": "null/2", "null/2": "null/1"}
    assert [turned.get(call.prompt, call.prompt) for call in before] == [call.prompt for call in after]
    assert before != after


def test_hidden_ids_are_balanced_over_slots():
    """6 000 blocks of 3: 9 counts within 5 standard errors (a fair hash fails at 5e-6; a bias of 10 % is seen)."""
    counts = Counter(
        (slot, place)
        for block in range(6000)
        for slot, place in enumerate(_seeds.hidden_places(1, "j", f"i{block}", "AB", 0, 3))
    )
    assert all(abs(count - 2000) < 5 * (6000 * 2 / 9) ** 0.5 for count in counts.values())
    assert len(counts) == 9


def test_more_null_items_than_items():
    with pytest.raises(SpecError, match=r"items is 9, and the audit has 5; write 5 or fewer"):
        planned(SMALLEST + "\n[null]\nitems = 9\nids = 2\n")


# --- prompts ---------------------------------------------------------------------------------------------------------


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


# --- items -----------------------------------------------------------------------------------------------------------


def spec_for(name: str, **keys: str):
    items = "".join(f"{key} = {value}\n" for key, value in keys.items())
    return parse_spec(SMALLEST.replace('file = "items.jsonl"\n', f'file = "{name}"\n{items}'))


ROWS = [
    {"id": "007", "input": " spaced ", "output_1": "1.50", "output_2": "", "s": "x", "gold": "1"},
    {"id": "α", "input": 'quote " and, comma', "output_1": "two\nlines", "output_2": "NA", "s": "y", "gold": "tie"},
    {"id": "z", "input": "null", "output_1": "true", "output_2": "\u2028", "s": "x", "gold": ""},
]


def _write(path, rows):
    import csv

    if path.suffix == ".jsonl":
        path.write_text("\n\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n", encoding="utf-8")
    elif path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, rows[0], delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".parquet"])
def test_texts_are_taken_as_they_stand_from_every_format(tmp_path, suffix):
    _write(tmp_path / f"items{suffix}", ROWS)
    items = read_items(spec_for(f"items{suffix}", stratum='"s"', gold='"gold"'), tmp_path)
    assert [item.id for item in items] == ["007", "α", "z"]
    assert [item.fields for item in items] == [
        {key: row[key] for key in ("input", "output_1", "output_2")} for row in ROWS
    ]
    assert [item.stratum for item in items] == ["x", "y", "x"]
    assert [item.gold for item in items] == ["1", "tie", ""]


def test_json_values_keep_their_digits(tmp_path):
    row = '{"id": 1, "input": 1.50, "output_1": true, "output_2": null, "more": [1], "gold": 2}'
    (tmp_path / "items.jsonl").write_text(row)
    (item,) = read_items(spec_for("items.jsonl", gold='"gold"'), tmp_path)
    assert item == Item("1", {"input": "1.50", "output_1": "true", "output_2": ""}, "", "2")


def test_limits_and_strata_keep_file_order(tmp_path):
    _write(tmp_path / "items.jsonl", ROWS)
    assert [i.id for i in read_items(spec_for("items.jsonl", limit="2"), tmp_path)] == ["007", "α"]
    one_each = spec_for("items.jsonl", stratum='"s"', per_stratum="1")
    assert [i.id for i in read_items(one_each, tmp_path)] == ["007", "α"]


def test_composite_ids_never_collide(tmp_path):
    rows = [{**ROWS[0], "a": "x:y", "b": "z"}, {**ROWS[0], "a": "x", "b": "y:z"}]
    _write(tmp_path / "items.jsonl", rows)
    spec = parse_spec(SMALLEST.replace('id   = "id"', 'id = ["a", "b"]'))
    ids = [item.id for item in read_items(spec, tmp_path)]
    assert ids == [join_key(["x:y", "z"]), join_key(["x", "y:z"])]
    assert len(set(ids)) == 2


ROW = '{"id": "a", "input": "i", "output_1": "1", "output_2": "2"}\n'


HEADER = "id,input,output_1,output_2\n"
WRONG_ITEMS = [
    ("jsonl", ROW + ROW, {}, r'items\.jsonl row 2: id "a" stands already in row 1; make ids unique'),
    ("jsonl", ROW.replace('"a"', '""'), {}, r"row 1: id field 'id' is empty; give every item an id"),
    ("jsonl", ROW.replace('"a"', "null"), {}, r"row 1: id field 'id' is empty"),
    ("jsonl", ROW.replace("input", "inptu"), {}, r"'input' is missing \(a prompt shows it\); did you mean 'inptu'"),
    ("jsonl", ROW + ROW.replace('"a"', '"b"').replace("output_2", "o"), {}, r"row 2: field 'output_2' .*\(items.pair"),
    ("jsonl", ROW.replace('"i"', '["i"]'), {}, r"row 1: field 'input' is missing"),
    ("jsonl", ROW, {"stratum": '"x"'}, r"row 1: field 'x' is missing \(items.stratum"),
    (
        "jsonl",
        ROW,
        {"gold": '"input"'},
        r"row 1: gold 'input' is .*; use the words of verdict.classes \(1, 2, tie\)",
    ),
    ("jsonl", ROW.replace('"i"', '""'), {"stratum": '"input"'}, r"row 1: stratum 'input' is empty"),
    ("jsonl", ROW + "{", {}, r"row 2: is not JSON: .*; write one JSON object per line"),
    ("jsonl", ROW + "[1]", {}, r"row 2: is not a JSON object"),
    ("jsonl", ROW.replace('"input"', '"id": "b", "input"'), {}, r"row 1: field 'id' stands twice"),
    ("jsonl", ROW.replace('"i"', '"\\ud800"'), {}, r"row 1: field 'input' holds half"),
    ("jsonl", "", {}, r"items\.jsonl: holds no item"),
    ("jsonl", None, {}, r"items\.jsonl: cannot be read: no such file.*relative to the folder"),
    ("csv", HEADER + "a,b,c\n", {}, r"row 2: has 3 cells, the header has 4; check its separators"),
    ("csv", HEADER + 'a,"b,c,d\n', {}, r"row 2: is not a table row: .*quotation marks"),
    ("csv", "id,id,input\n", {}, r"row 1: column 'id' stands twice"),
    ("parquet", "no parquet", {}, r"items\.parquet: is not a Parquet file"),
]


@pytest.mark.parametrize(("suffix", "text", "keys", "wanted"), WRONG_ITEMS)
def test_wrong_items_give_one_line_with_the_row(tmp_path, suffix, text, keys, wanted):
    name = f"items.{suffix}"
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(TableError, match=wanted) as caught:
        read_items(spec_for(name, **keys), tmp_path)
    assert "\n" not in str(caught.value)
    assert caught.value.remedy
    assert caught.value.exit_code == 2


def test_items_that_are_not_utf_8_and_cells_of_a_megabyte(tmp_path):
    (tmp_path / "items.jsonl").write_bytes(ROW.encode() + b'{"id": "\xff"}')
    with pytest.raises(TableError, match=r"row 2: byte 8 is not UTF-8"):
        read_items(spec_for("items.jsonl"), tmp_path)
    _write(tmp_path / "items.csv", [{**ROWS[0], "input": "x" * 1_000_000}])
    assert len(read_items(spec_for("items.csv"), tmp_path)[0].fields["input"]) == 1_000_000


@pytest.mark.data
def test_llmbar_ten_items_per_stratum(tmp_path, data_dir):
    with (tmp_path / "items.jsonl").open("w", encoding="utf-8") as out:
        for name in ("natural", "neighbor", "gptinst", "gptout", "manual"):
            for number, row in enumerate(
                json.loads((data_dir / "llmbar" / f"{name}.json").read_text(encoding="utf-8"))
            ):
                out.write(json.dumps({"id": f"{name}-{number}", "subset": name, **row}) + "\n")
    spec = spec_for("items.jsonl", stratum='"subset"', gold='"label"', per_stratum="10")
    items = read_items(spec, tmp_path)
    assert Counter(item.stratum for item in items) == dict.fromkeys(
        ("natural", "neighbor", "gptinst", "gptout", "manual"), 10
    )
    assert {item.gold for item in items} == {"1", "2"}
    whole = plan(spec, items)
    assert len(whole.calls) == 50 * 2 * 2 * 4
    assert len({call.request for call in whole.calls}) == len(whole.calls)
