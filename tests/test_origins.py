"""Where answers came from: several servers, another model, a cache: said with the numbers, never pooled silently."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import secondorder as so
from secondorder._audit._origins import Origin, Origins
from secondorder._schema import STATUS
from secondorder._statistics._origins import origin_notes, regimes_of, shared_ids
from secondorder._statistics._outcomes import integrity
from secondorder.acquire import Call, Record
from secondorder.acquire._spec import JudgeSpec

JUDGE = JudgeSpec(endpoint="openai-chat", base_url="http://127.0.0.1:1/v1", model="asked")


Spec = SimpleNamespace(judges={"toy": JUDGE})


def record(rank: int, model: str, fingerprint: str = "", headers: dict | None = None, result: str = "completed"):
    body = {"id": f"r{rank}", "model": model, "system_fingerprint": fingerprint or None,
            "choices": [{"message": {"content": "A"}, "finish_reason": "stop"}]}  # fmt: skip
    call = Call(str(rank), rank, "toy", "q", "p", "o", rank, False, None, b"", "")
    return Record(
        call=call, number=1, result=result, outcome=None, sent=0.0, latency_ms=1.0, http_status=200,
        headers=headers or {}, response_key=None, prompt_tokens=None, completion_tokens=None,
        response=json.dumps(body).encode(), response_sha256="", error="",
    )  # fmt: skip


def cube_with(origins: Origins, found: list[Origin]):
    rows = [{"q": q, "p": p, "r": r, "v": "A"} for q in "12" for p in "ab" for r in range(len(found) // 4)]
    cube = so.make_cube(rows, item="q", facets=["p"], repeat="r", verdict="v", classes=["A", "B"])
    calls = np.array(found).T.reshape(2, *cube.verdict.shape)
    return cube.assign(
        {name: (cube.verdict.dims, values) for name, values in zip(Origin._fields, calls, strict=True)}
    ).assign_attrs(regimes=json.dumps(origins.regimes))


def test_one_server_that_is_the_one_asked_says_nothing():
    origins = Origins(Spec)
    found = [origins.add(record(rank, "asked")) for rank in range(8)]
    assert origin_notes(cube_with(origins, found)) == ()


def test_servers_are_counted_and_what_changed_is_named():
    origins = Origins(Spec)
    said = [("asked", "f1"), ("asked", "f1"), ("asked", "f2"), ("other", "f1")] * 2
    found = [origins.add(record(rank, *each)) for rank, each in enumerate(said)]
    assert [each.regime for each in found] == [0, 0, 1, 2] * 2
    cube = cube_with(origins, found)
    assert [regime["calls"] for regime in regimes_of(cube)] == [4, 2, 2]
    notes = origin_notes(cube)
    assert notes == (
        "model, fingerprint changed: asked f1 (4), asked f2 (2), other f1 (2); "
        "calls of different servers are not one judge",
        "asked for the model asked, answered by other",
    )
    assert all(note in so.decompose(cube).groups[0].notes for note in notes)
    # Of the items at hand only: the calls of one server are one judge.
    assert len(regimes_of(cube.isel(repeat=[0]))) == 2


@pytest.mark.parametrize("headers", [{"x-cache": "HIT"}, {"cf-aig-cache-status": "HIT"}])
def test_answers_that_say_that_they_are_cached_are_counted(headers):
    origins = Origins(Spec)
    found = [origins.add(record(rank, "asked", headers=headers if rank < 3 else {})) for rank in range(8)]
    cube = cube_with(origins, found)
    (note,) = origin_notes(cube)
    assert note.startswith("3 answers say that they come from a cache")
    assert note in so.decompose(cube).groups[0].notes
    # Of the part at hand only: the first item's first prompt has two of them, its second one, the other item none.
    (note,) = origin_notes(cube.isel(p=[0]))
    assert note.startswith("2 answers")
    assert origin_notes(cube.isel(item=[1])) == ()
    # An item that is left out takes its answers with it.
    lost = {"verdict": -1, "status": STATUS.index("no_completion")}
    short = cube.assign({name: cube[name].where(cube["item"] != "1", code) for name, code in lost.items()})
    assert so.decompose(short, incomplete="drop-item").groups[0].notes == ()


def test_a_call_without_answer_has_no_regime():
    origins = Origins(Spec)
    assert origins.add(record(0, "asked", result="timeout")) == (-1, False)
    assert origins.regimes == []


def test_ids_given_twice_are_counted_the_same_everywhere():
    keys = np.array([5, 5, 7, 0, 0, 7, 7, 9]).reshape(2, 2, 2)  # 0: the server gave none
    cube = cube_with(Origins(Spec), [Origin(0, cached=False)] * 8)
    assert shared_ids(cube) is None
    cube = cube.assign(response_key=(cube.verdict.dims, keys))
    assert shared_ids(cube) == (5, 2, 0)
    assert origin_notes(cube)[0].startswith("5 calls share a response id")
    assert int(integrity(cube)["repeated_ids"][0]) == 5
    assert any(found.note == "5 calls" for found in so.check_independence(cube, draws=99).detectors)


@pytest.mark.parametrize(
    ("keys", "varied", "found"),
    [
        ([3] * 8, 1, (8, 1, 1)),  # a gateway that gives every answer the same id
        ([5, 5, 7, 0, 0, 7, 7, 9], 3, (5, 2, 1)),  # the calls with 7 differ, those with 5 do not
        ([1, 2, 3, 4, 5, 6, 7, 8], 3, (0, 0, 0)),
    ],
)
def test_one_id_under_different_verdicts_is_no_copy(keys, varied, found):
    cube = cube_with(Origins(Spec), [Origin(0, cached=False)] * 8)
    dims, shape = cube["verdict"].dims, cube["verdict"].shape
    codes = (np.arange(8) >= varied).astype(np.int8)
    cube = cube.assign(verdict=(dims, codes.reshape(shape)), response_key=(dims, np.reshape(keys, shape)))
    assert shared_ids(cube) == found
    notes = origin_notes(cube)
    assert not any("copies of an answer" in note for note in notes)
    assert [f"under {found[2]} of these {found[1]} ids the verdicts differ" in note for note in notes] == [True] * bool(
        found[0]
    )
    suspicious = {entry.name for entry in so.check_independence(cube, draws=99).suspicious}
    assert "repeated ids" not in suspicious
