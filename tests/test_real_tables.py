"""Real tables of calls: what their cubes hold."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import xarray as xr

from secondorder._labels._attributes import class_labels, parent_of
from secondorder._labels._cube import groups
from secondorder._labels._read import read_table

# Real files


@pytest.mark.data
def test_judge_consistency(data_dir: Path):
    path = data_dir / "judge_consistency" / "calls.csv"
    roles = {"item": "item", "facets": ["prompt"], "repeat": "repeat", "verdict": "verdict"}
    cube = read_table(path, **roles, invalid=[""], by=["judge"])
    assert dict(cube.sizes) == {"judge": 2, "item": 10, "prompt": 2, "repeat": 20, "class": 4}
    assert class_labels(cube) == ("A", "B", "tie", "⊥")
    assert {by["judge"]: int((part["status"] == 1).sum()) for by, part in groups(cube)} == {
        "gpt-4.1-mini": 46,
        "gpt-4o-mini": 2,
    }
    oracle = pd.read_csv(path, dtype=str, keep_default_na=False)
    for row in oracle.sample(50, random_state=0).itertuples():
        code = int(cube["verdict"].sel(judge=row.judge, item=row.item, prompt=row.prompt, repeat=row.repeat))
        assert class_labels(cube)[code] == (row.verdict or "⊥")
    single = read_table(path, **roles, invalid=[""], where="judge=gpt-4o-mini")
    assert parent_of(single).rows_used == 400
    with pytest.raises(ValueError, match=r"calls\.csv line 19: column 'verdict' is empty, as in 47 more rows"):
        read_table(path, **roles, by="judge")
    with pytest.raises(ValueError, match="400 rows repeat calls"):
        read_table(path, **roles, invalid="")


@pytest.mark.data
def test_position_bias(position_bias: xr.Dataset, data_dir: Path):
    cube = position_bias
    assert dict(cube.sizes) == {"judge": 9, "item": 96, "order": 2, "repeat": 3, "class": 4}
    assert (cube["verdict"].values >= 0).all()
    assert parent_of(cube).rows == 9072
    assert parent_of(cube).rows_used == 9 * 96 * 2 * 3
    oracle = pd.read_csv(data_dir / "position_bias" / "repeats.csv.gz", dtype=str, keep_default_na=False)
    oracle = oracle[oracle["bench"] == "MTBench"]
    assert int((cube["status"] == 1).sum()) == int((oracle["verdict"] == "invalid").sum())
    for code, label in enumerate(["ref", "other", "tie"]):
        assert int((cube["verdict"] == code).sum()) == int((oracle["verdict"] == label).sum())


@pytest.mark.data
@pytest.mark.parametrize("name", ["unique", "shared"])
def test_small_lm(name, data_dir: Path):
    path = data_dir / "small_lm" / f"calls_{name}_seeds.csv.gz"
    cube = read_table(
        path, item="item", facets=["prompt", "order"], repeat="repeat", verdict="verdict", classes=["1", "2", "TIE"]
    )
    assert dict(cube.sizes) == {"item": 6, "prompt": 6, "order": 2, "repeat": 64, "class": 4}
    assert cube["repeat"].values.tolist() == [str(number) for number in range(64)]
    oracle = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert [int((cube["verdict"] == code).sum()) for code in range(4)] == [
        int((oracle["verdict"] == label).sum()) for label in ("1", "2", "TIE", "⊥")
    ]
