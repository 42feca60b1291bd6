"""Tables that are no cubes, and wrong declarations: one line that names the place, the value and the remedy."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from secondorder._labels._read import make_cube, read_table
from secondorder.errors import DesignError, SecondOrderError, TableError

from .refusals import GOOD, ROLES, ROW, Case, assert_refused, each_of, lines, read

TABLES: dict[str, Case] = {
    "duplicate rows": (
        TableError,
        (
            "calls.csv",
            "7 rows repeat calls",
            "line 2 and line 3 (item=1, p=a, repeat=0);",
            "and 2 more",
            "number_repeats=True",
        ),
        lambda tmp: read(tmp, "q,p,r,v\n" + "1,a,0,A\n" * 8),
    ),
    "one duplicate row": (
        TableError,
        ("calls.csv", "1 row repeats a call", "line 2 and line 4 (item=1, p=a, repeat=0)", "keep one outcome per call"),
        lambda tmp: read(tmp, "q,p,r,v\n1,a,0,A\n1,b,0,A\n1,a,0,B\n"),
    ),
    "undeclared verdict": (
        TableError,
        ("calls.csv line 3", "verdict C is not a declared class;", "the classes are A, B", "invalid"),
        lambda tmp: read(tmp, GOOD.replace("1,B", "1,C"), classes=["A", "B"]),
    ),
    "verdict with a space": (
        TableError,
        ("calls.csv line 3", "' B'", "it differs from the class B in case or blanks only: mend the file"),
        lambda tmp: read(tmp, GOOD.replace("1,B", "1, B"), classes=["A", "B"]),
    ),
    "verdict in small letters": (
        TableError,
        ("calls.csv line 3", "verdict b ", "it differs from the class B in case or blanks only: mend the file"),
        lambda tmp: read(tmp, GOOD.replace("1,B", "1,b"), classes=["A", "B"]),
    ),
    "score off the scale": (
        TableError,
        ("calls.csv line 4", "verdict -1 is not a declared class", "invalid=[...]"),
        lambda tmp: read(tmp, "q,p,r,v\n1,a,0,8\n1,a,1,9\n1,a,2,-1\n", classes=range(1, 11)),
    ),
    "empty verdict": (
        TableError,
        ("calls.csv line 3", "column 'v' is empty", 'invalid=[""]', 'missing=[""]'),
        lambda tmp: read(tmp, GOOD.replace("1,B", "1,")),
    ),
    "null verdict": (
        TableError,
        ("calls.jsonl line 1", "column 'v' is empty", 'missing=[""]'),
        lambda tmp: read(tmp, lines(ROW | {"v": None}), "calls.jsonl"),
    ),
    "free text as verdict": (
        TableError,
        ("calls.csv", "column 'v' has 1001 different values", "name the valid labels"),
        lambda tmp: read(tmp, "q,p,r,v\n" + "".join(f"1,a,{r},text {r}\n" for r in range(1001))),
    ),
    "nothing valid": (
        TableError,
        ("calls.csv column 'v'", "every verdict is declared invalid", "name the valid labels"),
        lambda tmp: read(tmp, "q,p,r,v\n1,a,0,x\n", invalid="x"),
    ),
    "call ids as repeats": (
        TableError,
        ("calls.csv", "column 'r' has 6000 values", "name other columns"),
        lambda tmp: read(tmp, "q,p,r,v\n" + "".join(f"{i % 3000},{i % 2},{i},A\n" for i in range(6000))),
    ),
    "stratum varies": (
        TableError,
        ("calls.csv line 3", "stratum 'g' of item 1 is y here and x in line 2", "constant within an item"),
        lambda tmp: read(tmp, "q,p,r,v,g\n1,a,0,A,x\n1,a,1,A,y\n", stratum="g"),
    ),
    "gold varies": (
        TableError,
        ("calls.csv line 3", "gold 'g' of item 1", "constant within an item"),
        lambda tmp: read(tmp, "q,p,r,v,g\n1,a,0,A,A\n1,a,1,A,B\n", gold="g"),
    ),
    "gold in other words": (
        TableError,
        ("calls.csv line 2", "gold label model_a is not a declared class", "the classes are A, B"),
        lambda tmp: read(tmp, "q,p,r,v,g\n1,a,0,A,model_a\n", gold="g", classes=["A", "B"]),
    ),
    "where names no column": (
        TableError,
        ("calls.csv", "no column 'x'", "its columns: q, p, r, v"),
        lambda tmp: read(tmp, GOOD, where=["x=1"]),
    ),
    "where without value": (TableError, ("where", "'q'", "COLUMN=VALUE"), lambda tmp: read(tmp, GOOD, where=["q"])),
    "where matches nothing": (
        TableError,
        ("calls.csv column 'p'", "no row has p=c", "its values: a, b"),
        lambda tmp: read(tmp, GOOD, where=["p=c"]),
    ),
    "where drops nothing": (
        TableError,
        ("calls.csv column 'p'", "no row is dropped by p!=c", "its values: a, b"),
        lambda tmp: read(tmp, GOOD, where=["p!=c"]),
    ),
    "where contradicts itself": (
        TableError,
        ("calls.csv", "no row is left where p=a and p=b", "drop a condition"),
        lambda tmp: read(tmp, GOOD, where=["p=a", "p=b"]),
    ),
    "weight of an unknown level": (
        DesignError,
        ("facet p", "unknown levels ['c']", "one weight to each"),
        lambda tmp: read(tmp, GOOD, weights={"p": {"a": 0.5, "c": 0.5}}),
    ),
    "weights that do not sum to 1": (
        DesignError,
        ("facet p", "sum to 0.9", "sum to 1"),
        lambda tmp: read(tmp, GOOD, weights={"p": {"a": 0.5, "b": 0.4}}),
    ),
}

MEMORY: dict[str, Case] = {
    "rows are a path": (TableError, ("rows", "str", "read_table"), lambda tmp: make_cube("calls.csv", **ROLES)),  # type: ignore[arg-type]
    "rows are one record": (TableError, ("rows", "dict", "iterable"), lambda tmp: make_cube(ROW, **ROLES)),  # type: ignore[arg-type]
    "no rows": (
        TableError,
        ("DataFrame", "no rows", "one row"),
        lambda tmp: make_cube(pd.DataFrame([ROW])[:0], **ROLES),
    ),
    "no records": (TableError, ("records", "no rows", "one row"), lambda tmp: make_cube([], **ROLES)),
    "record is a list": (
        TableError,
        ("record 1 (from 0)", "list, not a mapping", "one mapping"),
        lambda tmp: make_cube([ROW, ["1"]], **ROLES),  # type: ignore[list-item]
    ),
    "record lacks a key": (
        TableError,
        ("record 1 (from 0)", "no column 'v'", "its columns: q"),
        lambda tmp: make_cube([ROW, {"q": "1", "p": "a", "r": 1}], **ROLES),
    ),
    "record holds a list": (
        TableError,
        ("record 0 (from 0)", "'v' holds a list", "single value"),
        lambda tmp: make_cube([ROW | {"v": ["A"]}], **ROLES),
    ),
    "frame lacks a column": (
        TableError,
        ("DataFrame", "no column 'v'", "its columns: q, p, r"),
        lambda tmp: make_cube(pd.DataFrame([ROW]).drop(columns="v"), **ROLES),
    ),
    "frame has a column twice": (
        TableError,
        ("DataFrame", "two columns are called 'v'", "rename"),
        lambda tmp: make_cube(pd.DataFrame([[1, 2, 3, 4, 5]], columns=list("qprvv")), **ROLES),
    ),
    "frame holds a dict": (
        TableError,
        ("DataFrame row 1", "'v' holds a dict", "single value"),
        lambda tmp: make_cube(pd.DataFrame([ROW, ROW | {"v": {}}]), **ROLES),
    ),
    "frame holds bytes": (
        TableError,
        ("DataFrame row 0", "'v' holds a bytes", "single value"),
        lambda tmp: make_cube(pd.DataFrame([ROW | {"v": b"A"}]), **ROLES),
    ),
    "frame holds a NUL": (
        TableError,
        ("DataFrame row 1", "'A\\x00'", "remove NUL"),
        lambda tmp: make_cube(pd.DataFrame([ROW, ROW | {"r": "1", "v": "A\0"}]).astype(object), **ROLES),
    ),
    "frame repeats a call": (
        TableError,
        ("DataFrame", "row 0 (from 0) and row 2 (from 0)", "one outcome per call"),
        lambda tmp: make_cube(pd.DataFrame([ROW, ROW | {"p": "b"}, ROW]), **ROLES),
    ),
}

DECLARATIONS: dict[str, tuple[type[SecondOrderError], tuple[str, ...], dict[str, Any]]] = {
    "no item": (TableError, ("item", "no column identifies the item", "name one column"), {"item": []}),
    "no facet": (TableError, ("facets", "no facet is named", "such as prompt"), {"facets": []}),
    "no repeat": (TableError, ("repeat", "no column numbers the repeats", "number_repeats=True"), {"repeat": None}),
    "repeat twice": (TableError, ("repeat", "'r'", "not both"), {"number_repeats": True}),
    "column in two roles": (TableError, ("columns", "'q' is both item and a facet", "its own"), {"facets": ["p", "q"]}),
    "facet twice": (TableError, ("columns", "'p' is both a facet and a facet", "its own"), {"facets": ["p", "p"]}),
    "stratum is a facet": (TableError, ("columns", "'p'", "constant within it"), {"stratum": "p"}),
    "reserved facet": (DesignError, ("facets", "'total'", "rename the column"), {"facets": ["total"]}),
    "facet with a colon": (DesignError, ("facets", "'a:b'", "rename the column"), {"facets": ["a:b"]}),
    "facet named as a variable": (TableError, ("columns", "'status'", "rename the column"), {"facets": ["status"]}),
    "facet with a slash": (TableError, ("columns", "'a/b'", "rename the column"), {"facets": ["a/b"]}),
    "group named item": (TableError, ("columns", "'item'", "rename the column"), {"by": "item"}),
    "number as a name": (TableError, ("item", "3 is a int", "as text"), {"item": [3]}),
    "random no facet": (DesignError, ("random", "'x' is not a facet", "the facets are p"), {"random": ["x"]}),
    "weights of no facet": (DesignError, ("weights", "'x' is not a facet", "are p"), {"weights": {"x": {}}}),
    "weights of a random facet": (
        DesignError,
        ("facet p", "random", "leave the weights out"),
        {"random": "p", "weights": {"p": {"a": 1.0}}},
    ),
    "classes in one text": (TableError, ("classes", "'A,B'", "give a list"), {"classes": "A,B"}),
    "class twice": (TableError, ("classes", "'A' stands twice", "one meaning"), {"classes": ["A", "A"]}),
    "class and invalid": (TableError, ("invalid", "'A'", "one meaning"), {"classes": ["A"], "invalid": "A"}),
    "invalid and missing": (TableError, ("missing", "''", "one meaning"), {"invalid": "", "missing": ""}),
    "empty class": (TableError, ("classes", "empty text", 'invalid=[""]'), {"classes": ["A", ""]}),
    "no valid class": (TableError, ("classes", "no valid class", "list the labels"), {"classes": ["⊥"]}),
    "⊥ before others": (TableError, ("classes", "'⊥' is not the last", "put ⊥ last"), {"classes": ["⊥", "A"]}),
    "fractional class": (TableError, ("classes", "1.5 is a float", "as text"), {"classes": [1.5, 2]}),
}


@each_of(TABLES | MEMORY)
def test_bad_input_is_one_line_with_place_value_and_remedy(kind, words, act, tmp_path):
    assert_refused(lambda: act(tmp_path), kind, words, 2)


@pytest.mark.parametrize(
    ("kind", "words", "changed"), [pytest.param(*case, id=name) for name, case in DECLARATIONS.items()]
)
def test_bad_declarations_are_refused_before_the_file_is_looked_at(kind, words, changed, tmp_path):
    assert_refused(lambda: read_table(tmp_path / "nowhere.csv", **(ROLES | changed)), kind, words, 2)


def test_a_hostile_label_does_not_reach_the_terminal(tmp_path):
    """A megabyte of text with line ends and escape sequences stays one short line."""
    hostile = '"\x1b[31m<script>\n' + "x" * 1_000_000 + '"'
    table = f"q,p,r,v\n1,a,0,{hostile}\n"
    assert_refused(lambda: read(tmp_path, table, classes=["A"]), TableError, ("calls.csv line 2", "characters)"), 2)
