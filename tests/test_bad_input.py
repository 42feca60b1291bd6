"""Bad input: every kind ends in one line that names the place, the value and the remedy, and in exit code 2."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from secondorder._design import Facet
from secondorder._labels._cells import codes, count, require_cells
from secondorder._labels._checks import check_cube, check_values
from secondorder._labels._cube import new_cube
from secondorder._labels._files import open_cube, save_cube
from secondorder._labels._identity import cube_digest
from secondorder._labels._read import make_cube, read_table
from secondorder.errors import (
    CorruptFileError,
    CubeError,
    DesignError,
    InputError,
    SchemaError,
    SecondOrderError,
    TableError,
)

ROLES: dict[str, Any] = {"item": "q", "facets": ["p"], "repeat": "r", "verdict": "v"}
GOOD = "q,p,r,v\n1,a,0,A\n1,a,1,B\n1,b,0,A\n1,b,1,A\n"


def read(tmp: Path, content: str | bytes, name: str = "calls.csv", **changed: Any) -> xr.Dataset:
    path = tmp / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(path, **(ROLES | changed))


def lines(*records: Any) -> str:
    return "".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records)


ROW = {"q": "1", "p": "a", "r": "0", "v": "A"}

Case = tuple[type[SecondOrderError], tuple[str, ...], Callable[[Path], Any]]

FILES: dict[str, Case] = {
    "no such file": (
        InputError,
        ("cals.csv", "no such file", "did you mean 'calls.csv'"),
        lambda tmp: read(tmp, GOOD) and read_table(tmp / "cals.csv", **ROLES),
    ),
    "no such file, and none like it": (
        InputError,
        ("okk.csv", "no such file", "check the path"),
        lambda tmp: read(tmp, GOOD, "bom.csv") and read_table(tmp / "okk.csv", **ROLES),
    ),
    "no such folder": (
        InputError,
        ("nowhere", "no such file", "check the path"),
        lambda tmp: read_table(tmp / "nowhere" / "calls.csv", **ROLES),
    ),
    "a folder": (
        InputError,
        ("x.csv", "folder", "give a file"),
        lambda tmp: (tmp / "x.csv").mkdir() or read_table(tmp / "x.csv", **ROLES),
    ),
    "a spreadsheet": (InputError, ("calls.xlsx", ".xlsx", "save it as CSV"), lambda tmp: read(tmp, "", "calls.xlsx")),
    "plain JSON": (InputError, ("calls.json", ".json", "name it .jsonl"), lambda tmp: read(tmp, "[]", "calls.json")),
    "no suffix": (InputError, ("calls", "without a suffix", ".parquet"), lambda tmp: read(tmp, GOOD, "calls")),
    "not a path": (InputError, ("path", "int", "make_cube"), lambda tmp: read_table(7, **ROLES)),  # type: ignore[arg-type]
    "empty file": (TableError, ("calls.csv", "empty", "one row per call"), lambda tmp: read(tmp, "")),
    "blank lines only": (TableError, ("calls.csv", "empty", "one row per call"), lambda tmp: read(tmp, " \n\r\n\n")),
    "empty JSON lines": (TableError, ("calls.jsonl", "empty", "one row"), lambda tmp: read(tmp, "\n", "calls.jsonl")),
    "header only": (TableError, ("calls.csv", "no rows", "one row per call"), lambda tmp: read(tmp, "q,p,r,v\n")),
    "UTF-16": (
        TableError,
        ("calls.csv", "UTF-16", "save it as UTF-8"),
        lambda tmp: read(tmp, GOOD.encode("utf-16")),
    ),
    "UTF-32": (
        TableError,
        ("calls.csv", "UTF-32", "save it as UTF-8"),
        lambda tmp: read(tmp, GOOD.encode("utf-32")),
    ),
    "UTF-16 without a mark": (
        TableError,
        ("calls.csv line 1", "byte 1 is NUL", "looks like UTF-16 or UTF-32: save it as UTF-8"),
        lambda tmp: read(tmp, GOOD.encode("utf-16-le")),
    ),
    "Latin-1": (
        TableError,
        ("calls.csv line 3", "byte 16 (0xe9)", "save the file as UTF-8"),
        lambda tmp: read(tmp, "q,p,r,v\n1,a,0,A\n\xe9,a,0,B\n".encode("latin-1")),
    ),
    "NUL byte": (
        TableError,
        ("calls.csv line 2", "byte 13 is NUL", "remove"),
        lambda tmp: read(tmp, "q,p,r,v\n1,a,0\0,A\n"),
    ),
    "gzip cut short": (
        TableError,
        ("calls.csv.gz", "ends early", "again"),
        lambda tmp: read(tmp, gzip.compress(GOOD.encode())[:-9], "calls.csv.gz"),
    ),
    "not gzip": (
        TableError,
        ("calls.csv.gz", "not a gzip file", "drop .gz"),
        lambda tmp: read(tmp, GOOD, "calls.csv.gz"),
    ),
    "gzip damaged": (
        TableError,
        ("calls.csv.gz", "stream is damaged", "again"),
        lambda tmp: read(tmp, gzip.compress(GOOD.encode())[:-8] + b"\xff" * 8, "calls.csv.gz"),
    ),
    "gzip that fills the memory": (
        TableError,
        ("calls.csv.gz", "bytes unpack to more than", "unpack it first"),
        lambda tmp: read(tmp, gzip.compress(b"\0" * (1 << 24)) * 20, "calls.csv.gz"),
    ),
    "gzip without .gz": (
        TableError,
        ("calls.csv", "gzip", "suffix of its real format"),
        lambda tmp: read(tmp, gzip.compress(GOOD.encode())),
    ),
    "zip archive": (TableError, ("calls.csv", "zip archive", "suffix"), lambda tmp: read(tmp, b"PK\x03\x04...")),
    "damaged Parquet": (
        TableError,
        ("calls.parquet", "not a readable Parquet file", "export it again"),
        lambda tmp: read(tmp, b"PAR1 and nothing", "calls.parquet"),
    ),
    "Parquet of lists": (
        TableError,
        ("calls.parquet column v", "list", "single value"),
        lambda tmp: parquet(tmp, [[1]]),
    ),
    "Parquet of bytes": (
        TableError,
        ("calls.parquet column v", "binary", "single value"),
        lambda tmp: parquet(tmp, [b"A"]),
    ),
    "misspelt column": (
        TableError,
        ("calls.csv", "no column 'verdict'", "did you mean 'verdicts'", "q, p, r, verdicts"),
        lambda tmp: read(tmp, GOOD.replace("v\n", "verdicts\n", 1), verdict="verdict"),
    ),
    "semicolons": (
        TableError,
        ("calls.csv", "no column 'q'", "separated by ';'"),
        lambda tmp: read(tmp, GOOD.replace(",", ";")),
    ),
    "a comma file called .tsv": (
        TableError,
        ("calls.tsv", "no column 'q'", "separated by ','"),
        lambda tmp: read(tmp, GOOD, "calls.tsv"),
    ),
    "column twice": (
        TableError,
        ("calls.csv", "two columns are called 'v'", "rename"),
        lambda tmp: read(tmp, "q,p,r,v,v\n1,a,0,A,A\n"),
    ),
    "short row": (
        TableError,
        ("calls.csv line 3", "3 fields where the header has 4", "complete the row"),
        lambda tmp: read(tmp, "q,p,r,v\n1,a,0,A\n1,a,1\n"),
    ),
    "long row": (
        TableError,
        ("calls.csv line 3", "5 fields", "quote the fields"),
        lambda tmp: read(tmp, "q,p,r,v\n1,a,0,A\n1,a,1,A,B\n1,a\n"),
    ),
    "short and long rows cancel": (
        TableError,
        ("calls.csv line 2", "3 fields", "complete the row"),
        lambda tmp: read(tmp, "q,p,r,v\n1,a,0\n1,a,1,A,B\n"),
    ),
    "row after quoted line ends": (
        TableError,
        ("calls.csv line 6", "1 field ", "complete the row"),
        lambda tmp: read(tmp, 'q,p,r,v\n1,"a\nb\nc",0,A\n\nx\n'),
    ),
    "open quote": (
        TableError,
        ("calls.csv line 3", "quotes do not close", "double a quote"),
        lambda tmp: read(tmp, 'q,p,r,v\n1,a,0,A\n1,"a,1,A\n1,b,0,A\n'),
    ),
    "text after a quote": (
        TableError,
        ("calls.csv line 2", "quotes do not close", "double a quote"),
        lambda tmp: read(tmp, 'q,p,r,v\n1,"a"b,0,A\n'),
    ),
    "not JSON": (
        TableError,
        ("calls.jsonl line 2", "not JSON", "one complete JSON object per line"),
        lambda tmp: read(tmp, lines(ROW, '{"q": 1,'), "calls.jsonl"),
    ),
    "not an object": (
        TableError,
        ("calls.jsonl line 3", "a list, not an object", "one object per line"),
        lambda tmp: read(tmp, lines(ROW, "", [1]), "calls.jsonl"),
    ),
    "nested value": (
        TableError,
        ("calls.jsonl line 1", "'v' holds an object", "single value"),
        lambda tmp: read(tmp, lines(ROW | {"v": {"winner": "A"}}), "calls.jsonl"),
    ),
    "key absent": (
        TableError,
        ("calls.jsonl line 2", "no 'v'", "write null"),
        lambda tmp: read(tmp, lines(ROW, {"q": "1", "p": "a", "r": "1"}), "calls.jsonl"),
    ),
    "key absent at once": (
        TableError,
        ("calls.jsonl line 1", "no column 'v'", "its columns: q, p, r"),
        lambda tmp: read(tmp, lines({"q": "1", "p": "a", "r": "1"}), "calls.jsonl"),
    ),
    "key twice": (
        TableError,
        ("calls.jsonl line 1", "'v' stands twice", "one complete JSON object"),
        lambda tmp: read(tmp, '{"q": 1, "p": 1, "r": 1, "v": 1, "v": 2}\n', "calls.jsonl"),
    ),
    "NaN in JSON": (
        TableError,
        ("calls.jsonl line 1", "NaN is not a JSON value", "one complete JSON object"),
        lambda tmp: read(tmp, '{"q": 1, "p": 1, "r": 1, "v": NaN}\n', "calls.jsonl"),
    ),
    "bottomless JSON": (
        TableError,
        ("calls.jsonl line 1", "not JSON", "one complete JSON object"),
        lambda tmp: read(tmp, "[" * 200_000 + "\n", "calls.jsonl"),
    ),
    "escaped NUL": (
        TableError,
        ("calls.jsonl line 2", "'A\\x00'", "remove NUL"),
        lambda tmp: read(tmp, lines(ROW, ROW | {"r": "1", "v": "A\0"}), "calls.jsonl"),
    ),
    "half a character": (
        TableError,
        ("calls.jsonl line 1", "'\\ud83d'", "unpaired surrogates"),
        lambda tmp: read(tmp, lines(ROW | {"v": "\ud83d"}), "calls.jsonl"),
    ),
}


def parquet(tmp: Path, values: list[Any]) -> xr.Dataset:
    pd.DataFrame([ROW]).assign(v=pd.Series(values, dtype=object)).to_parquet(tmp / "calls.parquet")
    return read_table(tmp / "calls.parquet", **ROLES)


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
        ("calls.csv line 3", "' B'", "the classes are A, B"),
        lambda tmp: read(tmp, GOOD.replace("1,B", "1, B"), classes=["A", "B"]),
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


def cube(**changed: Any) -> xr.Dataset:
    return make_cube(pd.read_csv(io.StringIO(GOOD), dtype=str), **(ROLES | changed))


def with_attr(name: str, value: Any) -> xr.Dataset:
    return cube().assign_attrs({name: value})


def with_verdict(value: int) -> xr.Dataset:
    changed = cube()
    changed["verdict"].values[0, 1, 1] = value
    return changed


def without_a_b() -> xr.Dataset:
    """The one call that said B has no verdict."""
    return cube().assign(verdict=cube()["verdict"].where(cube()["verdict"] == 0, -1))


def truncated(tmp: Path, size: int = 2000) -> xr.Dataset:
    save_cube(cube(), tmp / "cube.nc")
    (tmp / "cube.nc").write_bytes((tmp / "cube.nc").read_bytes()[:size])
    return open_cube(tmp / "cube.nc")


def stored(tmp: Path, dataset: xr.Dataset) -> xr.Dataset:
    dataset.to_netcdf(tmp / "cube.nc", engine="h5netcdf")
    return open_cube(tmp / "cube.nc")


CUBES: dict[str, Case] = {
    "not a dataset": (CubeError, ("cube", "DataArray", "read_table"), lambda tmp: check_cube(cube()["verdict"])),  # type: ignore[arg-type]
    "no schema": (
        CubeError,
        ("cube", "no attribute 'schema'", "make_cube"),
        lambda tmp: check_cube(cube().drop_attrs()),
    ),
    "another schema": (
        SchemaError,
        ("DataFrame", "secondorder.law/1", "give a file"),
        lambda tmp: check_cube(with_attr("schema", "secondorder.law/1")),
    ),
    "newer schema": (
        SchemaError,
        ("DataFrame", "secondorder.cube/2", "install a newer"),
        lambda tmp: check_cube(with_attr("schema", "secondorder.cube/2")),
    ),
    "no verdict": (
        CubeError,
        ("DataFrame", "'verdict'", "class code"),
        lambda tmp: check_cube(cube().drop_vars("verdict")),
    ),
    "no repeat dimension": (
        CubeError,
        ("DataFrame", "no dimension 'repeat'", "rename or expand"),
        lambda tmp: check_cube(cube().isel(repeat=0)),
    ),
    "verdicts as floats": (
        CubeError,
        ("DataFrame", "float64", "class codes"),
        lambda tmp: check_cube(cube().astype(float)),
    ),
    "no labels": (
        CubeError,
        ("DataFrame", "'p' has no labels", "assign"),
        lambda tmp: check_cube(cube().drop_vars("p")),
    ),
    "no class labels": (
        CubeError,
        ("DataFrame", "'class'", "assign"),
        lambda tmp: check_cube(cube().drop_vars("class")),
    ),
    "empty dimension": (
        CubeError,
        ("DataFrame", "'q' is empty".replace("q", "item"), "keep"),
        lambda tmp: check_cube(cube().isel(item=[])),
    ),
    "labels as numbers": (
        CubeError,
        ("DataFrame", "label 0 of dimension 'repeat'", "as text"),
        lambda tmp: check_cube(cube().assign_coords(repeat=[0, 1])),
    ),
    "label twice": (
        CubeError,
        ("DataFrame", "'a' of dimension 'p' stands twice", "rename"),
        lambda tmp: check_cube(cube().assign_coords(p=["a", "a"])),
    ),
    "⊥ not last": (
        CubeError,
        ("DataFrame", "'⊥' is not the last", "put it last"),
        lambda tmp: check_cube(cube().assign_coords({"class": ["⊥", "A"]})),
    ),
    "status of another shape": (
        CubeError,
        ("DataFrame", "'status' has dimensions", "one code per call"),
        lambda tmp: check_cube(cube().assign(status=cube()["status"].isel(p=0))),
    ),
    "stratum per call": (
        CubeError,
        ("DataFrame", "'stratum' has dimensions", "one per item"),
        lambda tmp: check_cube(cube().assign_coords(stratum=("p", ["x", "y"]))),
    ),
    "facets not JSON": (
        CubeError,
        ("DataFrame", "'facets' is 'prompt'", "json.dumps"),
        lambda tmp: check_cube(with_attr("facets", "prompt")),
    ),
    "facets not declarations": (
        CubeError,
        ("DataFrame", "'facets' is '[\"p\"]'", "{name:"),
        lambda tmp: check_cube(with_attr("facets", '["p"]')),
    ),
    "two groups": (
        CubeError,
        ("DataFrame", "['p', 'o']", "at most one"),
        lambda tmp: check_cube(with_attr("facets", "{}").expand_dims(o=["x"], axis=2)),
    ),
    "class code too high": (
        CubeError,
        ("DataFrame", "item=1, p=b, repeat=1 has a class code outside", "make the cube"),
        lambda tmp: check_values(with_verdict(2)),
    ),
    "class code too low": (
        CubeError,
        ("DataFrame", "item=1, p=b, repeat=1 has a class code outside", "make the cube"),
        lambda tmp: codes(with_verdict(-2), ["p"]),
    ),
    "verdict lost": (
        CubeError,
        ("DataFrame", "item=1, p=b, repeat=1 has no verdict and its status is valid", "make the cube"),
        lambda tmp: count(with_verdict(-1)),
    ),
    "unknown facet": (
        CubeError,
        ("DataFrame", "no facet 'x'", "item, p, repeat"),
        lambda tmp: codes(cube(), ["p", "x"]),
    ),
    "facet left out": (CubeError, ("DataFrame", "'p' has 2 levels", "select one"), lambda tmp: codes(cube(), [])),
    "parts do not fit": (
        CubeError,
        ("new_cube", "conflicting sizes", "one label per position"),
        lambda tmp: new_cube(
            np.zeros((1, 2, 2), np.int8),
            labels={"item": ["1"], "p": ["a"], "repeat": ["0", "1"]},
            classes=["A"],
            facets=[Facet("p")],
        ),
    ),
    "counts of soft verdicts": (
        CubeError,
        ("DataFrame", "soft verdicts", "estimate_law"),
        lambda tmp: count(cube().assign(soft=cube()["verdict"].astype(float).expand_dims({"class": 2}, axis=-1))),
    ),
    "too few calls": (
        CubeError,
        ("DataFrame", "1 cell of 1 item (of 1) has fewer than 2 calls: item=1, p=a has 1", "no item is complete"),
        lambda tmp: require_cells(without_a_b(), need=2),
    ),
    "one call per cell": (
        CubeError,
        ("DataFrame", "call noise is not identifiable", "repeat the calls"),
        lambda tmp: require_cells(cube().isel(repeat=[0]), need=2),
    ),
    "incomplete misspelt": (
        CubeError,
        ("incomplete", "'drop'", "drop-item"),
        lambda tmp: require_cells(cube(), need=2, incomplete="drop"),
    ),
    "digest of complex numbers": (
        CubeError,
        ("cube", "'z' of type complex128", "store text"),
        lambda tmp: cube_digest(cube().assign(z=1j)),
    ),
    "cube not there": (InputError, ("cube.nc", "no such file", "check"), lambda tmp: open_cube(tmp / "cube.nc")),
    "cube of another suffix": (InputError, ("cube.csv", ".csv", ".zarr"), lambda tmp: open_cube(tmp / "cube.csv")),
    "cube saved as text": (InputError, ("cube.txt", ".txt", ".nc"), lambda tmp: save_cube(cube(), tmp / "cube.txt")),
    "folder absent": (
        InputError,
        ("nowhere", "does not exist", "make it"),
        lambda tmp: save_cube(cube(), tmp / "nowhere" / "c.nc"),
    ),
    "saved no cube": (CubeError, ("cube", "'schema'", "make_cube"), lambda tmp: save_cube(xr.Dataset(), tmp / "c.nc")),
    "saved a slash": (
        CubeError,
        ("save_cube", "'a/b'", "rename"),
        lambda tmp: save_cube(cube().assign({"a/b": 1}), tmp / "c.nc"),
    ),
    "opened no cube": (CubeError, ("cube", "'schema'", "make_cube"), lambda tmp: stored(tmp, xr.Dataset({"x": 1}))),
    "opened newer cube": (
        SchemaError,
        ("DataFrame", "secondorder.cube/2", "install a newer"),
        lambda tmp: stored(tmp, with_attr("schema", "secondorder.cube/2")),
    ),
}

DAMAGED: dict[str, Case] = {
    "cut short": (CorruptFileError, ("cube.nc", "does not read as a cube", "make it again"), truncated),
    "emptied": (
        CorruptFileError,
        ("cube.nc", "does not read as a cube", "make it again"),
        lambda tmp: truncated(tmp, 0),
    ),
    "a table": (
        CorruptFileError,
        ("cube.nc", "does not read as a cube", "make it again"),
        lambda tmp: (tmp / "cube.nc").write_text(GOOD) and open_cube(tmp / "cube.nc"),
    ),
}


def check_line(error: SecondOrderError, kind: type[SecondOrderError], words: tuple[str, ...], exit_code: int) -> None:
    line = str(error)
    assert type(error) is kind
    assert error.exit_code == exit_code
    assert error.place
    assert error.remedy
    assert "\n" not in line
    assert len(line) < 1000
    for word in words:
        assert word in line, line


@pytest.mark.parametrize(
    ("kind", "words", "act"), [pytest.param(*case, id=name) for name, case in (FILES | TABLES | MEMORY | CUBES).items()]
)
def test_bad_input_is_one_line_with_place_value_and_remedy(kind, words, act, tmp_path):
    with pytest.raises(SecondOrderError) as caught:
        act(tmp_path)
    check_line(caught.value, kind, words, 2)


@pytest.mark.parametrize(
    ("kind", "words", "changed"), [pytest.param(*case, id=name) for name, case in DECLARATIONS.items()]
)
def test_bad_declarations_are_refused_before_the_file_is_looked_at(kind, words, changed, tmp_path):
    with pytest.raises(SecondOrderError) as caught:
        read_table(tmp_path / "nowhere.csv", **(ROLES | changed))
    check_line(caught.value, kind, words, 2)


@pytest.mark.parametrize(("kind", "words", "act"), [pytest.param(*case, id=name) for name, case in DAMAGED.items()])
def test_a_damaged_cube_is_the_world_that_failed(kind, words, act, tmp_path):
    with pytest.raises(SecondOrderError) as caught:
        act(tmp_path)
    check_line(caught.value, kind, words, 3)


def test_a_hostile_label_does_not_reach_the_terminal(tmp_path):
    """A megabyte of text with line ends and escape sequences stays one short line."""
    hostile = '"\x1b[31m<script>\n' + "x" * 1_000_000 + '"'
    with pytest.raises(TableError) as caught:
        read(tmp_path, f"q,p,r,v\n1,a,0,{hostile}\n", classes=["A"])
    assert "\x1b" not in str(caught.value)
    check_line(caught.value, TableError, ("calls.csv line 2", "characters)"), 2)


def test_every_kind_is_listed_once():
    assert len(FILES | TABLES | DECLARATIONS | MEMORY | CUBES | DAMAGED) >= 100
