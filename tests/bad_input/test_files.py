"""Files that are no tables of calls: each is one line that names the place, the value and the remedy."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from secondorder._labels._read import read_table
from secondorder.errors import InputError, TableError

from .refusals import GOOD, ROLES, ROW, Case, assert_refused, each_of, lines, read


def parquet(tmp: Path, values: list[Any]) -> xr.Dataset:
    pd.DataFrame([ROW]).assign(v=pd.Series(values, dtype=object)).to_parquet(tmp / "calls.parquet")
    return read_table(tmp / "calls.parquet", **ROLES)


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


@each_of(FILES)
def test_bad_input_is_one_line_with_place_value_and_remedy(kind, words, act, tmp_path):
    assert_refused(lambda: act(tmp_path), kind, words, 2)
