"""Plans: the same spec gives the same bytes; seeds, ranks, identities and hashes are the documented formulas."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter

import pytest

from secondorder._canon import canonical_json
from secondorder.acquire import _seeds
from secondorder.acquire._items import Item
from secondorder.acquire._manifest import compare_manifests, manifest_bytes
from secondorder.acquire._plan import is_null
from secondorder.errors import SpecError

from .small_specs import ITEMS, NULL, POINTWISE, SMALLEST, planned

OTHER = '\n[judges.other]\nmodel = "n"\nbase_url = "http://h/v1"\nendpoint = "openai-chat"\n'


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


def test_hidden_ids_are_ranks_of_a_hash():
    for repeat in range(50):
        ranked = sorted(range(4), key=lambda slot, r=repeat: (blake64(["hidden", 3, "j", "i", "BA", r, slot]), slot))
        assert _seeds.hidden_places(3, "j", "i", "BA", repeat, 4) == [ranked.index(slot) for slot in range(4)]


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
