"""Tables: text is read exactly as it stands, whatever the format; order and spelling of the file change nothing."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from secondorder._canon import join_key
from secondorder._design import Facet
from secondorder._labels import _scan
from secondorder._labels._attributes import attribute, class_labels, facets_of, parent_of
from secondorder._labels._columns import _natural_key, natural_order, split_key
from secondorder._labels._identity import cube_digest
from secondorder._labels._read import make_cube, read_table

ROLES = {"item": "q", "facets": ["p"], "repeat": "r", "verdict": "v"}

AWKWARD = [
    "007",
    "7",
    " 7",
    "7 ",
    "NA",
    "nan",
    "NULL",
    "None",
    "True",
    "1e3",
    "1.0",
    "#",
    "ü⊥é",
    "a,b",
    'say "A"',
    "two\nlines",
]


def awkward_rows() -> list[dict[str, str]]:
    return [
        {"q": item, "p": prompt, "r": repeat, "v": verdict}
        for item, prompt, (repeat, verdict) in itertools.product(AWKWARD, ["x", ""], [("0", "A"), ("1", " A")])
    ]


def as_csv(rows: list[dict[str, str]], **options) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), **options)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def as_parquet(rows: list[dict[str, str]]) -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame(rows).to_parquet(buffer)
    return buffer.getvalue()


FORMATS = {
    ".csv": as_csv(awkward_rows()),
    "-all-quoted.csv": as_csv(awkward_rows(), quoting=csv.QUOTE_ALL, lineterminator="\n"),
    "-no-last-line-end.csv": as_csv(awkward_rows()).rstrip(b"\r\n"),
    "-blank-lines.csv": as_csv(awkward_rows(), lineterminator="\n\n"),
    "-byte-order-mark.csv": b"\xef\xbb\xbf" + as_csv(awkward_rows()),
    ".tsv": as_csv(awkward_rows(), delimiter="\t"),
    ".jsonl": "".join(json.dumps(row) + "\n" for row in awkward_rows()).encode(),
    "-unicode.jsonl": "".join(json.dumps(row, ensure_ascii=False) + "\r\n\n" for row in awkward_rows()).encode(),
    ".parquet": as_parquet(awkward_rows()),
}


def same_calls(a: xr.Dataset, b: xr.Dataset) -> bool:
    """Equal in every bit but for the file they come from."""
    plain = [cube.assign_attrs(parent="") for cube in (a, b)]
    return plain[0].identical(plain[1]) and all(
        plain[0][name].dtype == plain[1][name].dtype for name in plain[0].variables
    )


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_gives_the_same_text(suffix, zipped, tmp_path):
    path = tmp_path / f"calls{suffix}{'.gz' * zipped}"
    path.write_bytes(gzip.compress(FORMATS[suffix]) if zipped else FORMATS[suffix])
    cube = read_table(path, **ROLES)
    assert sorted(cube["item"].values) == sorted(AWKWARD)
    assert cube["p"].values.tolist() == ["", "x"]
    assert class_labels(cube) == (" A", "A")
    assert (cube["verdict"].values == [1, 0]).all()
    assert same_calls(cube, make_cube(awkward_rows(), **ROLES))
    assert same_calls(cube, make_cube(pd.DataFrame(awkward_rows()), **ROLES))
    assert parent_of(cube).name == path.name
    assert parent_of(cube).rows == parent_of(cube).rows_used == len(awkward_rows())


def test_streams_and_standard_input(monkeypatch, tmp_path):
    expected = make_cube(awkward_rows(), **ROLES)
    text = as_csv(awkward_rows()).decode()
    assert same_calls(read_table(io.StringIO(text, newline=""), **ROLES), expected)
    assert same_calls(read_table(io.BytesIO(text.encode()), **ROLES), expected)
    with gzip.open(tmp_path / "calls.tsv.gz", "wb") as stream:
        stream.write(FORMATS[".tsv"])
    with open(tmp_path / "calls.tsv.gz", "rb") as stream:
        assert same_calls(read_table(stream, **ROLES), expected)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    cube = read_table("-", **ROLES)
    assert same_calls(cube, expected)
    assert parent_of(cube).name == "stdin"


def test_numbers_stay_as_they_stand_in_json():
    lines = '{"q": 1, "p": 1.0, "r": 1e2, "v": true}\n{"q": 1, "p": 1.00, "r": 100, "v": null}\n'
    lines += '{"q": 123456789012345678901234567890, "p": 1.0, "r": -0, "v": false, "x": {"not": ["asked", "for"]}}\n'
    stream = io.BytesIO(lines.encode())
    stream.name = "calls.jsonl"
    cube = read_table(stream, **ROLES, missing="")
    assert cube["item"].values.tolist() == ["1", "123456789012345678901234567890"]
    assert cube["p"].values.tolist() == ["1.0", "1.00"]
    assert cube["repeat"].values.tolist() == ["1e2", "100", "-0"]
    assert class_labels(cube) == ("false", "true")
    assert int((cube["status"] == 0).sum()) == 2


def test_a_frame_and_its_csv_are_the_same_table(tmp_path):
    """Whatever the types of a frame's columns, the cube is that of DataFrame.to_csv."""
    frame = pd.DataFrame(
        {
            "q": pd.Categorical([3, 3, 1, 1], categories=[1, 2, 3]),
            "p": [0.1, -0.0, 0.1, 0.0],
            "f": np.array([0.1, 1e20, 0.1, 1e20], dtype=np.float32),
            "r": [1, 2, 3, 4],
            "n": pd.array([1, None, 1, None], dtype="Int64"),
            "o": [True, "True", 1, None],
            "t": pd.to_datetime(["2026-11-30", None, "2026-11-30", "2026-12-01"]),
            "v": ["A", np.nan, pd.NA, None],
        }
    )
    frame.to_csv(tmp_path / "calls.csv", index=False)
    roles = {"item": ["q", "n"], "facets": ["p", "f", "o"], "repeat": "r", "verdict": "v", "missing": ""}
    expected = read_table(tmp_path / "calls.csv", **roles)
    assert same_calls(make_cube(frame, **roles), expected)
    assert same_calls(
        make_cube(frame.to_dict("records"), **(roles | {"item": "q", "facets": ["p", "o"]})),
        make_cube(frame, **(roles | {"item": "q", "facets": ["p", "o"]})),
    )
    assert expected["item"].values.tolist() == ["1:", "1:1", "3:", "3:1"]
    assert expected["p"].values.tolist() == ["0.0", "0.1", "-0.0"]
    assert expected["o"].values.tolist() == ["", "1", "True"]
    dates = make_cube(frame, **(roles | {"item": "t"}))
    assert dates["item"].values.tolist() == ["", "2026-11-30 00:00:00", "2026-12-01 00:00:00"]


def test_parquet_numbers_and_nulls_are_those_of_the_frame(tmp_path):
    frame = pd.DataFrame(
        {
            "q": pd.array([10, 2, None], dtype="Int64"),
            "p": pd.Categorical(["b", "a", "b"]),
            "r": np.array([0.1, 0.2, 0.3], dtype=np.float32),
            "v": [True, False, True],
        }
    )
    frame.to_parquet(tmp_path / "calls.parquet")
    cube = read_table(tmp_path / "calls.parquet", **ROLES)
    assert same_calls(cube, make_cube(frame, **ROLES))
    assert cube["item"].values.tolist() == ["", "2", "10"]
    assert cube["repeat"].values.tolist() == ["0.1", "0.2", "0.3"]


FIELDS = st.text(alphabet='a1 ,"\n\r\té⊥', max_size=12) | st.sampled_from(["", "x" * 8, "x" * 9, "y" * 129, "0" * 40])
SEPARATORS = st.sampled_from([",", "\t"])


@given(
    st.lists(st.tuples(FIELDS, FIELDS, FIELDS), min_size=1, max_size=12),
    SEPARATORS,
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_well_formed_tables_are_read_as_they_were_written(rows, delimiter, line_end, quote_all):
    """What a writer of the standard library wrote comes back, by whichever of the two readers took it."""
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    if not quote_all:
        # The writer leaves a lone carriage return unquoted, which makes it a line end.
        rows = [tuple(field.replace("\r", "") for field in row) for row in rows]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, lineterminator=line_end, quoting=quoting).writerows([("q", "p", "v"), *rows])
    data = text.getvalue().encode()
    fast = _scan.read_fast(data, delimiter, ["q", "p", "v"], [2, 0, 1])
    exact = _scan.read_exactly(data, delimiter, [2, 0, 1], "calls.csv")
    plain = '"' not in text.getvalue()
    assert plain == (fast is not None)
    for columns in filter(None, (fast, exact)):
        read = [[column.labels[code] for code in column.codes] for column in columns]
        assert list(zip(read[1], read[2], read[0], strict=True)) == rows


TOKENS = ["a", "b", ",", "\n", '"', '""', "\r", "\r\n", " ", "a,b\n", "⊥,\r\n", '"a"', '"a,b",', ',"\n"\n', 'a"b,"c"\n']


@given(st.lists(st.sampled_from(TOKENS), max_size=9).map("".join))
@settings(max_examples=1500, deadline=None)
def test_the_fast_reader_never_differs_from_the_definition(body):
    """On arbitrary text the fast reader gives up or agrees; where the definition refuses, it gives up."""
    data = b"a,b\n" + body.encode()
    fast = _scan.read_fast(data, ",", ["a", "b"], [0, 1])
    if fast is not None:
        exact = _scan.read_exactly(data, ",", [0, 1], "calls.csv")
        assert [column.labels for column in fast] == [column.labels for column in exact]
        assert all((a.codes == b.codes).all() for a, b in zip(fast, exact, strict=True))


@given(
    st.lists(st.text(alphabet="ab01-9é", max_size=6), unique=True, max_size=12),
    st.sampled_from(["", "q", "q0", "item_"]),
)
@settings(max_examples=300, deadline=None)
def test_natural_order_is_one_order(labels, prefix):
    """The shortcut for numbered labels agrees with the definition; runs of digits compare as numbers of any size."""
    labels = [prefix + label for label in labels]
    order = [labels[position] for position in natural_order(labels)]
    assert order == sorted(labels, key=_natural_key)


def test_natural_order_reads_digits_as_numbers():
    labels = ["q10", "q9", "q09", "q2b", "q2a10", "q2a9", "Q1", "10", "9", "", "q" + "9" * 5000, "q" + "1" + "0" * 5000]
    ordered = [labels[position] for position in natural_order(labels)]
    assert ordered == ["", "9", "10", "Q1", "q2a9", "q2a10", "q2b", "q09", "q9", "q10", labels[-2], labels[-1]]


@given(st.lists(st.text(alphabet="a:\\", max_size=4), min_size=1, max_size=3))
@settings(max_examples=200, deadline=None)
def test_composite_keys_come_apart_again(parts):
    assert split_key(join_key(parts), len(parts)) == tuple(parts)


LEVELS = st.sampled_from(["x", "x1", "x10", "x9", "", "⊥", "ü", "a:b", "7", "07"])
TABLES = st.dictionaries(
    st.tuples(LEVELS, LEVELS, LEVELS, st.sampled_from(["0", "1", "10", "2"])),
    st.sampled_from(["A", "B", "tie", "", "x"]),
    min_size=1,
    max_size=25,
)
MEANING = {"classes": ["A", "tie", "B"], "invalid": ["x"], "missing": [""]}


def rows_of(table) -> list[dict[str, str]]:
    return [dict(zip(("q", "p", "o", "r", "v"), (*key, verdict), strict=True)) for key, verdict in table.items()]


@given(TABLES, st.randoms(use_true_random=False), st.sampled_from([None, "o"]))
@settings(max_examples=60, deadline=None)
def test_the_order_of_the_rows_changes_no_bit(table, chance, by):
    roles = {"item": "q", "facets": ["p"] if by else ["p", "o"], "by": by, "repeat": "r", "verdict": "v", **MEANING}
    rows = rows_of(table)
    cube = make_cube(rows, **roles)
    shuffled = make_cube(chance.sample(rows, len(rows)), **roles)
    assert same_calls(cube, shuffled)
    assert cube_digest(cube) == cube_digest(shuffled)


@given(TABLES)
@settings(max_examples=60, deadline=None)
def test_from_table_to_cube_to_table(table):
    """Every row comes back with its meaning, and nothing else does; the table of the cube gives the cube again."""
    cube = make_cube(rows_of(table), item="q", facets=["p", "o"], repeat="r", verdict="v", **MEANING)
    labels = dict(enumerate([*MEANING["classes"], "x"])) | {-1: ""}
    back = cube["verdict"].to_series()
    found = {key: labels[code] for key, code in back.items()}
    assert {key: verdict for key, verdict in found.items() if verdict} == {
        key: verdict for key, verdict in table.items() if verdict
    }
    assert set(table) <= set(found)
    again = make_cube(rows_of(found), item="q", facets=["p", "o"], repeat="r", verdict="v", **MEANING)
    assert same_calls(cube, again)


@given(st.lists(st.sampled_from(["A", "B"]), min_size=2, max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_numbered_repeats_follow_the_rows(verdicts, chance):
    """Counts do not depend on the order of rows that only number themselves; positions do, and the cube says so."""
    rows = [{"q": "1", "p": "a", "v": verdict} for verdict in verdicts]
    cube = make_cube(rows, item="q", facets="p", verdict="v", number_repeats=True, classes=["A", "B"])
    assert cube["verdict"].values.ravel().tolist() == ["AB".index(verdict) for verdict in verdicts]
    assert cube["repeat"].values.tolist() == [str(number) for number in range(len(verdicts))]
    assert attribute(cube, "repeats_numbered")
    other = chance.sample(rows, len(rows))
    shuffled = make_cube(other, item="q", facets="p", verdict="v", number_repeats=True, classes=["A", "B"])
    assert sorted(shuffled["verdict"].values.ravel()) == sorted(cube["verdict"].values.ravel())


def test_where_keeps_rows_and_counts_them():
    rows = awkward_rows()
    cube = make_cube(rows, **ROLES, where=["q!=7", "q!= 7", "p=x"])
    assert parent_of(cube).rows == 64
    assert parent_of(cube).rows_used == 28
    assert parent_of(cube).where == ("q!=7", "q!= 7", "p=x")
    assert set(cube["item"].values) == set(AWKWARD) - {"7", " 7"}
    for wrong, words in (("q=never", "no row has q=never"), ("q!=7=7", "no row is dropped by q!=7=7; its values")):
        with pytest.raises(ValueError, match=words):
            make_cube(rows, **ROLES, where=wrong)


def test_row_numbers_survive_where(tmp_path):
    (tmp_path / "calls.csv").write_text("q,p,r,v\n1,a,0,A\n2,a,0,A\n1,a,1,C\n2,a,0,A\n2,a,1,\n2,b,1,C\n")
    with pytest.raises(ValueError, match=r"line 3 and line 5"):
        read_table(tmp_path / "calls.csv", **ROLES, where="q=2", invalid=["", "C"])
    with pytest.raises(ValueError, match=r"line 6: column 'v' is empty;"):
        read_table(tmp_path / "calls.csv", **ROLES, where="q=2")
    with pytest.raises(ValueError, match=r"line 4: verdict C .*, as in 1 more row;"):
        read_table(tmp_path / "calls.csv", **ROLES, missing="", classes=["A"])


def test_declarations_are_kept():
    rows = [
        {"q": q, "p": p, "o": o, "r": "0", "v": "A", "s": q, "g": ""} for q in "12" for p in "ab" for o in ("AB", "BA")
    ]
    cube = make_cube(
        rows,
        item="q",
        facets=[Facet("o"), Facet("p", weights={"a": 0.25, "b": 0.75})],
        repeat="r",
        verdict="v",
        stratum="q",
        gold="g",
        classes=["B", "A", "⊥"],
        random="o",
    )
    assert cube["verdict"].dims == ("item", "o", "p", "repeat")
    assert facets_of(cube) == (Facet("o", kind="random"), Facet("p", weights={"a": 0.25, "b": 0.75}))
    assert class_labels(cube) == ("B", "A", "⊥")
    assert attribute(cube, "invalid") == ["⊥"]
    assert attribute(cube, "classes_declared") is True
    assert cube["stratum"].values.tolist() == ["1", "2"]
    assert cube["gold"].values.tolist() == ["", ""]
    assert cube.attrs["independence"] == "untestable"
    found = make_cube(rows, item="q", facets=["p", "o"], repeat="r", verdict="v")
    assert attribute(found, "classes_declared") is False
    assert cube["status"].attrs["flag_meanings"] == "valid invalid no_completion not_called"


def test_the_class_of_invalid_verdicts_is_there_when_it_can_occur():
    rows = [{"q": "1", "p": "a", "r": str(r), "v": v} for r, v in enumerate(["A", "B", "⊥"])]
    assert class_labels(make_cube(rows, **ROLES)) == ("A", "B", "⊥")
    assert class_labels(make_cube(rows[:2], **ROLES)) == ("A", "B")
    assert class_labels(make_cube(rows[:2], **ROLES, invalid="x")) == ("A", "B", "⊥")
    assert class_labels(make_cube(rows, **ROLES, missing="⊥")) == ("A", "B")


def test_many_classes_get_wider_codes():
    rows = [{"q": "1", "p": "a", "r": str(r), "v": str(r)} for r in range(300)]
    assert make_cube(rows, **ROLES)["verdict"].dtype == np.int16
    assert make_cube(rows[:128], **ROLES)["verdict"].dtype == np.int8
    assert make_cube(rows[:129], **ROLES)["verdict"].dtype == np.int16
    assert (make_cube(rows, **ROLES)["verdict"].values.ravel() == range(300)).all()
