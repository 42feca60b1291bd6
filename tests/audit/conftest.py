"""A small audit, a finished run of it, and its cube joined the slow way."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import secondorder as so
from secondorder._audit._calls import acquire_stage
from secondorder._audit._folder import RunFolder
from secondorder._audit._plan import find_target, planned_folder
from secondorder._schema import REASONS, STATUS
from secondorder.acquire import Fault, SimulatedJudge, is_null, read_ledger

from .. import small_audits
from ..small_audits import PAIRWISE, changed

ITEMS = [
    {
        "id": f"q{k}",
        "topic": "even" if k % 2 == 0 else "odd",
        "text": f"question {k}",
        "one": "x",
        "two": "y",
        "best": b,
    }
    for k, b in enumerate(["1", "2", "tie", "", "1", "2"], start=8)  # q8 … q13: natural order is not that of text
]

SPEC = changed(PAIRWISE, ('pair = ["one", "two"]', 'pair = ["one", "two"]\nstratum = "topic"\ngold = "best"'))

ARTIFACTS = {"manifest.json", "ledger.sqlite", "cube.nc", "estimates.nc", "report.html"}


def lay_out(folder: Path, url: str) -> Path:
    """A small audit in a folder; returns the path of its spec."""
    return small_audits.lay_out(folder, SPEC.format(url=url), ITEMS)


def replaced(spec: Path, *pairs: tuple[str, str]) -> Path:
    spec.write_text(changed(spec.read_text(encoding="utf-8"), *pairs), encoding="utf-8")
    return spec


@contextmanager
def judge(*faults: Fault, **options):
    with SimulatedJudge(faults=faults, process=False, **options) as server:
        yield server


def acquired(spec: Path) -> RunFolder:
    target = find_target(spec)
    folder, _ = planned_folder(target.audit)
    acquire_stage(folder, target.audit.spec)
    return folder


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """One finished audit, never touched: its spec, and what running it gave."""
    folder = tmp_path_factory.mktemp("once")
    notes: list[str] = []
    with judge() as server:
        run = so.run_audit(lay_out(folder, server.base_url), note=notes.append)
        requests = len(server.server.served)
    return SimpleNamespace(folder=folder, run=run, notes=notes, requests=requests)


@pytest.fixture
def finished(once, tmp_path):
    """A copy of it, whose judge does not listen any more: nothing is left to call."""
    shutil.copytree(once.folder, tmp_path, dirs_exist_ok=True)
    return SimpleNamespace(
        spec=tmp_path / "audit.toml", folder=RunFolder(tmp_path / "runs" / "small"), shown=str(once.run.decomposition)
    )


def joined_again(folder: RunFolder, levels: dict[str, dict[str, str]]) -> tuple[dict, dict]:
    """Design and null block of a ledger as plain mappings: what a cube has to hold, joined the slow way."""
    design, null = {}, {}
    with read_ledger(folder.ledger) as reader:
        for record in reader.outcomes():
            call, outcome = record.call, record.outcome
            facets = levels.get(call.prompt, {"prompt": call.prompt}) | {"order": call.order}
            place = (call.judge, call.item, *sorted(facets.items()), str(call.repeat))
            if not call.warmup:
                (null if is_null(call.prompt) else design)[place] = (outcome, record)
    return design, null


def assert_cube_is(cube, expected: dict) -> None:
    facets = [str(dim) for dim in cube.verdict.dims if dim not in ("judge", "item", "repeat")]
    assert cube.verdict.size == len(expected)
    classes = cube["class"].values.tolist()
    for (name, item, *levels, repeat), (outcome, record) in expected.items():
        assert sorted(facets) == [facet for facet, _ in levels]
        call = cube.sel(judge=name, item=item, repeat=repeat, **dict(levels))
        code = int(call.verdict)
        assert (None if code < 0 else classes[code]) == (
            "⊥" if outcome.status == "invalid" else outcome.verdict if outcome.status == "valid" else None
        )
        assert STATUS[int(call.status)] == outcome.status
        assert REASONS[int(call.reason)] == outcome.reason
        assert int(call.attempts) == record.number
        assert int(call.send_rank) == record.call.rank
        assert float(call.sent) == record.sent or (record.sent is None and np.isnan(call.sent))
