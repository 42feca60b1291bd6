"""Items: texts as they stand in every format, and one line with the row for each thing that is wrong."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from secondorder._canon import join_key
from secondorder.acquire._items import Item, read_items
from secondorder.acquire._load import parse_spec
from secondorder.acquire._plan import plan
from secondorder.errors import TableError

from .small_specs import SMALLEST


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
