"""Stages of an audit: each skips what is there, resumes what has stopped, and repairs what is damaged."""

from __future__ import annotations

import os
import random
import time

import pytest

import secondorder as so
from secondorder._audit._run import cube_stage, decompose_stage, report_stage
from secondorder.errors import CorruptFileError

from .conftest import ARTIFACTS


def test_run_writes_every_artifact_and_says_what_it_did(once):
    run = once.run
    assert run.folder == once.folder / "runs" / "small"
    assert {path.name for path in run.folder.iterdir()} >= ARTIFACTS
    assert once.requests == run.summary.planned == 6 * 2 * 2 * 2
    assert [line.partition(":")[0] for line in once.notes] == ["acquire", "cube", "decompose", "report"]
    assert run.decomposition.groups[0].by == {"judge": "toy"}
    direct = so.decompose(so.open_cube(run.folder / "cube.nc"), incomplete="drop-item")
    assert direct["prompt"].estimate == run.decomposition["prompt"].estimate
    assert f"report: {run.report}" in str(run)


def test_the_same_call_again_writes_nothing(finished):
    before = {name: (finished.folder.path / name).read_bytes() for name in ARTIFACTS}
    times = {name: (finished.folder.path / name).stat().st_mtime_ns for name in ARTIFACTS}
    notes: list[str] = []
    again = so.run_audit(finished.spec, note=notes.append)
    assert {name: (finished.folder.path / name).read_bytes() for name in ARTIFACTS} == before
    assert {name: (finished.folder.path / name).stat().st_mtime_ns for name in ARTIFACTS} == times
    assert all("up to date" in line for line in notes[1:])
    assert str(again.decomposition) == finished.shown
    assert so.run_audit(finished.folder.path).summary.counts == again.summary.counts  # from the manifest alone


def test_stages_make_the_next_artifact_and_only_that(finished):
    folder = finished.folder
    folder.report.unlink()
    assert not cube_stage(folder)
    assert not decompose_stage(folder)[1]
    assert report_stage(folder)
    folder.estimates.unlink()
    assert decompose_stage(folder)[1]
    assert not report_stage(folder), "the same estimates, the same report"


def test_a_damaged_derived_file_is_said_and_made_again(finished):
    for path in (finished.folder.cube, finished.folder.estimates):
        whole = path.read_bytes()
        for damage in (b"", whole[: len(whole) // 2], b"no NetCDF at all"):
            path.write_bytes(damage)
            notes: list[str] = []
            cube_stage(finished.folder, note=notes.append)
            result, _ = decompose_stage(finished.folder, note=notes.append)
            assert len(notes) == 1
            assert notes[0].startswith(str(path))
            assert "made again" in notes[0]
            assert str(result) == finished.shown


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # HDF5's own clean-up of such files
def test_a_flipped_bit_of_the_cube_changes_no_value_unseen(finished):
    folder = finished.folder
    with so.open_cube(folder.cube) as cube:
        truth = cube.load()
    whole, draw = folder.cube.read_bytes(), random.Random(5)
    seen = 0
    for _ in range(8):
        at = draw.randrange(len(whole))
        folder.cube.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << draw.randrange(8))]) + whole[at + 1 :])
        seen += cube_stage(folder)
        with so.open_cube(folder.cube) as cube:
            assert cube.load().drop_attrs().identical(truth.drop_attrs())
    assert seen > 0


def test_a_cube_with_other_values_is_not_decomposed(finished):
    with so.open_cube(finished.folder.cube) as cube:
        other = cube.load()
    other.verdict[0, 0, 0, 0, 0] = (int(other.verdict[0, 0, 0, 0, 0]) + 1) % 3
    other.status[0, 0, 0, 0, 0] = other.reason[0, 0, 0, 0, 0] = 0
    so.save_cube(other, finished.folder.cube)
    with pytest.raises(CorruptFileError, match="not those that were written"):
        decompose_stage(finished.folder)


def test_what_a_killed_writer_left_is_swept_away_once_it_is_old(finished):
    old, young, other = (finished.folder.path / name for name in (".cube.nc.abc", ".report.html.def", ".git.x"))
    for path in (old, young, other):
        path.mkdir()
        (path / "part").touch()
    for path in (old, other):
        os.utime(path, (time.time() - 1000,) * 2)
    so.run_audit(finished.spec)
    assert [path.exists() for path in (old, young, other)] == [False, True, True]


def test_a_finished_run_opens_from_a_read_only_folder(finished):
    path = finished.folder.path

    def times() -> dict[str, int]:
        # SQLite's own index of shared memory is touched by readers who may.
        every = (path, *path.iterdir())
        return {file.name: file.stat().st_mtime_ns for file in every if not file.name.endswith("-shm")}

    for file in path.iterdir():
        file.chmod(0o444)
    path.chmod(0o555)
    before = times()
    try:
        assert str(so.run_audit(path).decomposition) == finished.shown
    finally:
        path.chmod(0o755)
    assert times() == before  # root may write everywhere: that it did would be seen here
