"""What every reader of logs holds to: flat rows, one cube, and no wrong file read in silence."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

import secondorder as so
from secondorder import interop
from secondorder._labels._identity import cube_digest
from secondorder.errors import InputError, TableError

from .logs import (
    annotation,
    choice,
    grade,
    graded,
    helm,
    inspect_log,
    inspected,
    lines,
    oaieval,
    one,
    pair,
    promptfoo,
    result,
    sample,
    state,
)

READERS = {
    "read_fastchat": ("x.jsonl", lambda path: lines(path, pair())),
    "read_alpaca_eval": ("x.json", lambda path: one(path, [annotation(1)])),
    "read_lm_eval": ("x.jsonl", lambda path: lines(path, sample(0, ["A"], "A"))),
    "read_promptfoo": ("x.json", lambda path: promptfoo(path, result(0, grade=graded(grade(True))))),
    "read_helm": ("x.json", lambda path: helm(path, state())),
    "read_openai_evals": ("x.jsonl", lambda path: oaieval(path, ("s", choice("Yes", 1.0)))),
    "read_inspect": ("x.json", lambda path: inspect_log(path, inspected("q", 1, "A"))),
}


COLUMNS = ["judge", "item", "prompt", "order", "repeat", "verdict", "status", "reason", "cached", "place"]


@pytest.fixture(params=READERS)
def tool(request, tmp_path):
    name, write = READERS[request.param]
    return getattr(interop, request.param), write(tmp_path / name)


def test_rows_are_flat_and_the_declaration_makes_the_same_cube(tool):
    read, path = tool
    log = read(path)
    for row in log:
        assert list(row)[: len(COLUMNS)] == COLUMNS
        assert all(isinstance(value, str | bool | float) for value in row.values())
        assert row["place"].startswith(path.name)
    cube = log.to_cube()
    by_hand = so.make_cube(log.rows, **log.declaration)
    np.testing.assert_array_equal(cube.verdict, by_hand.verdict)
    assert cube.attrs["independence"] == "untestable"
    parent = json.loads(cube.attrs["parent"])
    assert parent["name"] == path.name
    assert parent["sha256"] == log.sha256
    so.save_cube(cube, path.with_suffix(".nc"))
    assert cube_digest(so.open_cube(path.with_suffix(".nc"))) == cube_digest(cube)
    assert str(log).startswith("log")


def test_a_gzipped_log_is_the_same_log(tool):
    read, path = tool
    zipped = path.with_name(path.name + ".gz")
    zipped.write_bytes(gzip.compress(path.read_bytes()))
    assert [{**row, "place": ""} for row in read(zipped)] == [{**row, "place": ""} for row in read(path)]


def test_a_file_that_is_something_else_is_refused_with_its_name(tool, tmp_path):
    read, path = tool
    stored = path.read_bytes()
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "absent.json")
    wrong = {
        "cut": stored[: len(stored) // 2],
        "empty": b"",
        "other": b'{"hello": 1}\n',
        "list": b"[]",
        "number": b"7\n",
        "binary": b"\xff\xfe\x00",
        "deep": b"[" * 100_000,
    }
    for content in wrong.values():
        path.write_bytes(content)
        with pytest.raises(TableError) as caught:
            read(path)
        assert path.name in str(caught.value)
        assert caught.value.remedy
    with pytest.raises(InputError, match="no file is given"):
        read([])


def places_in(value, at=()):
    yield at
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places_in(value[key], (*at, key))


def with_junk(value, at, junk):
    if not at:
        return junk
    copy = json.loads(json.dumps(value))
    inner = copy
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = junk
    return copy


def test_a_record_with_junk_anywhere_is_read_or_refused_with_its_place(tool):
    read, path = tool
    is_lines = path.suffix == ".jsonl"
    text = path.read_text(encoding="utf-8")
    value = [json.loads(line) for line in text.splitlines()] if is_lines else json.loads(text)
    refused = []
    for at in places_in(value):
        for junk in (None, 7, "x", [], {}):
            spoiled = with_junk(value, at, junk)
            if is_lines and isinstance(spoiled, list):
                lines(path, *spoiled)
            else:
                one(path, spoiled)
            try:
                str(read(path))
            except TableError as error:
                refused.append(str(error))
    assert refused
    assert all(path.name in message for message in refused)
