"""Small calls as bad input spoils them, and what every refusal must look like."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

from secondorder._labels._read import read_table
from secondorder.errors import SecondOrderError

ROLES: dict[str, Any] = {"item": "q", "facets": ["p"], "repeat": "r", "verdict": "v"}
GOOD = "q,p,r,v\n1,a,0,A\n1,a,1,B\n1,b,0,A\n1,b,1,A\n"

ROW = {"q": "1", "p": "a", "r": "0", "v": "A"}

Case = tuple[type[SecondOrderError], tuple[str, ...], Callable[[Path], Any]]


def read(tmp: Path, content: str | bytes, name: str = "calls.csv", **changed: Any) -> xr.Dataset:
    path = tmp / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(path, **(ROLES | changed))


def lines(*records: Any) -> str:
    return "".join((record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records)


def each_of(catalogue: dict[str, Case]) -> pytest.MarkDecorator:
    """One test for every kind: its class of error, the words that the line must hold, and what brings it about."""
    cases = [pytest.param(*case, id=name) for name, case in catalogue.items()]
    return pytest.mark.parametrize(("kind", "words", "act"), cases)


def assert_refused(
    act: Callable[[], object], kind: type[SecondOrderError], words: tuple[str, ...], exit_code: int
) -> None:
    with pytest.raises(SecondOrderError) as caught:
        act()
    error, line = caught.value, str(caught.value)
    assert type(error) is kind
    assert error.exit_code == exit_code
    assert error.place
    assert error.remedy
    assert "\n" not in line
    assert "\x1b" not in line
    assert len(line) < 1000
    for word in words:
        assert word in line, line
