"""Datasets and files that are no cubes: one line that names the place, the value and the remedy."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from secondorder._design import Facet
from secondorder._labels._cells import codes, count, require_cells
from secondorder._labels._checks import check_cube, check_values
from secondorder._labels._cube import new_cube
from secondorder._labels._files import open_cube, save_cube
from secondorder._labels._identity import cube_digest
from secondorder._labels._read import make_cube
from secondorder.errors import CorruptFileError, CubeError, InputError, SchemaError

from .refusals import GOOD, ROLES, Case, assert_refused, each_of


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


@each_of(CUBES)
def test_bad_input_is_one_line_with_place_value_and_remedy(kind, words, act, tmp_path):
    assert_refused(lambda: act(tmp_path), kind, words, 2)


@each_of(DAMAGED)
def test_a_damaged_cube_is_the_world_that_failed(kind, words, act, tmp_path):
    assert_refused(lambda: act(tmp_path), kind, words, 3)
