"""Tables beside the data: read as every table is, and numbers only where no two labels become one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from secondorder._labels._columns import as_numbers
from secondorder._labels._plain import read_side_table
from secondorder.cli._study_agreement import _similarity
from secondorder.cli._study_prompts import _of_table, _ratings
from secondorder.errors import InputError, TableError
from secondorder.studies import make_scores


def table(folder: Path, *lines: str, name: str = "side.jsonl") -> Path:
    file = folder / name
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def test_json_values_stay_as_they_stand(tmp_path: Path) -> None:
    first = '{"id": "001", "created_at": 1700000000, "date": "2024-01-01", "modified": "007", "price": 1.50, "x": 1e2}'
    second = '{"id": "1", "created_at": 1700000001, "date": "2024-1-1", "modified": "8", "price": null, "x": true}'
    frame = read_side_table(table(tmp_path, first, second))
    assert frame.index.tolist() == ["001", "1"]
    assert frame["created_at"].tolist() == [1700000000, 1700000001]
    assert frame["date"].tolist() == ["2024-01-01", "2024-1-1"]
    assert frame["modified"].tolist() == ["007", "8"]
    assert frame["price"].isna().tolist() == [False, True]
    assert frame["x"].tolist() == ["1e2", "true"]


def test_a_word_of_pandas_is_a_word(tmp_path: Path) -> None:
    frame = read_side_table(table(tmp_path, "id,role", "NA,None", "null,nan", name="side.csv"))
    assert frame["role"].to_dict() == {"NA": "None", "null": "nan"}


def test_ratings_and_labels_do_not_depend_on_how_their_column_is_written(tmp_path: Path) -> None:
    lines = ["prompt,ann,ben", "p,4,4.0", "q,,4", "r,3,3.0"]
    found = _ratings(table(tmp_path, *lines, name="numbers.csv"))
    assert found.values[[0, 2]].tolist() == [[4, 4], [3, 3]]
    assert np.isnan(found.values[1, 0])
    # One word, and all are words as they stand: a column of numbers with a gap does not become 4.0.
    found = _ratings(table(tmp_path, *lines[:2], "q,,none", name="words.csv"))
    assert found.values.tolist() == [["4", "4.0"], ["", "none"]]
    prompts = table(tmp_path, "id,text,family", "p,1.50,1.0", "q,2e3,2.0", name="prompts.csv")
    assert _of_table(str(prompts), None, "text", "family")[::2] == (
        {"p": "1.50", "q": "2e3"},
        {"p": "1.0", "q": "2.0"},
    )


@pytest.mark.parametrize("second", ['{"id": "b"}', '{"id": "b", "x": 1, "late": 2}', '{"id": "b", "x": [1]}', "{"])
def test_rows_of_other_columns_are_refused_by_line(tmp_path: Path, second: str) -> None:
    with pytest.raises(TableError, match="line 2"):
        read_side_table(table(tmp_path, '{"id": "a", "x": 1}', second))


@pytest.mark.parametrize(
    "labels",
    [
        ["9007199254740993", "9007199254740992", ""],
        ["12345678901234567890", "12345678901234567891"],
        ["1234567890123456789012"],
        ["1.1", "1.10"],
        ["1.00000000000000001", "1.0"],
        ["0", "-0"],
        ["1e999", "2"],
        ["inf", "1"],
        ["nan", "1"],
    ],
)
def test_labels_are_no_numbers_where_digits_would_be_lost(labels: list[str]) -> None:
    assert as_numbers(labels).tolist() == labels


@pytest.mark.parametrize("score", ["inf", "-Infinity", "1e999"])
def test_a_score_is_finite(score: str) -> None:
    rows = {"item": ["a", "b"], "prompt": ["x", "x"], "score": ["1.5", score]}
    with pytest.raises(TableError, match="is no number"):
        make_scores(pd.DataFrame(rows), item="item", score="score", facets=["prompt"])


def test_a_file_of_similarities_holds_every_pair_once(tmp_path: Path) -> None:
    file = tmp_path / "similar.csv"
    for rows, said in (("a,b,0.5\na,b,0.7\n", "'a' and 'b' stand there twice"), ("a,b,near\n", "holds numbers")):
        file.write_text(f"one,other,cosine\n{rows}", encoding="utf-8")
        with pytest.raises(InputError, match=said):
            _similarity(file)
    file.write_text("one,other,cosine\na,b,0.5\nb,a,0.5\n", encoding="utf-8")
    assert _similarity(file) == {("a", "b"): 0.5, ("b", "a"): 0.5}
