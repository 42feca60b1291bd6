"""Folders of runs: what may change between two runs of one, what may not, and what is no run."""

from __future__ import annotations

import sqlite3

import pytest

import secondorder as so
from secondorder._audit._plan import find_target, planned_folder
from secondorder._audit._run import cube_stage
from secondorder.acquire import Ledger, read_ledger, verify_ledger
from secondorder.errors import CorruptFileError, EndpointError, InputError, LockedError, SpecError

from .conftest import ARTIFACTS, acquired, judge, lay_out, replaced


def test_a_changed_spec_is_refused_with_its_changes_and_nothing_is_touched(finished):
    path = finished.folder.path
    before = {name: (path / name).read_bytes() for name in ARTIFACTS}
    replaced(finished.spec, ("repeats = 2", "repeats = 3"), ("temperature = 1.0", "temperature = 0.7"))
    with pytest.raises(SpecError) as caught:
        so.run_audit(finished.spec)
    line = str(caught.value)
    assert "design.repeats: 2 → 3" in line
    assert "judges.toy.body.temperature: 1.0 → 0.7" in line
    assert f"--out {path}-2" in line
    assert {name: (path / name).read_bytes() for name in ARTIFACTS} == before
    assert planned_folder(so.load_audit(finished.spec), f"{path}-2")[1].manifest["calls"] == 72


def test_the_pace_of_sending_may_change_between_two_runs_of_a_folder(tmp_path, monkeypatch):
    with judge() as server:
        spec = lay_out(tmp_path, server.base_url)
        planned_folder(so.load_audit(spec))
        replaced(spec, ("concurrency = 8", 'concurrency = 1\nrequests_per_minute = 60000\nkey_env = "NO_SUCH_KEY"'))
        monkeypatch.delenv("NO_SUCH_KEY", raising=False)
        with pytest.raises(SpecError, match="NO_SUCH_KEY"):  # the name of the key's variable is the spec's of today
            acquired(spec)
        monkeypatch.setenv("NO_SUCH_KEY", "k")
        acquired(spec)
        assert len(server.server.served) == 48


def test_a_ledger_is_not_joined_to_another_plan(tmp_path):
    with judge() as server:
        spec = lay_out(tmp_path, server.base_url)
        acquired(spec)
    folder = find_target(spec).folder
    folder.manifest.unlink()
    replaced(spec, ("seed = 7", "seed = 8"))
    with pytest.raises(SpecError, match="another plan"):
        planned_folder(so.load_audit(spec))
    assert not folder.manifest.exists(), "what did not plan these calls must not be written beside them"
    planned_folder(so.load_audit(replaced(spec, ("seed = 8", "seed = 7"))))


def test_an_edited_audit_is_planned_anew_where_nothing_was_called(tmp_path):
    """No server at the first base_url: refused before anything was announced, so the mended audit may go on there."""
    spec, notes = lay_out(tmp_path, "http://127.0.0.1:1/v1"), []
    with pytest.raises(EndpointError, match="correct base_url, then give the same command again"):
        so.run_audit(spec)
    with judge() as server:
        replaced(spec, ("http://127.0.0.1:1/v1", server.base_url), ("repeats = 2", "repeats = 3"))
        run = so.run_audit(spec, note=notes.append)
        assert notes[0] == "plan: planned anew: nothing had been called"
        assert run.summary.planned == 72
        assert len(server.server.served) == 72
    folder = find_target(spec).folder
    assert verify_ledger(folder.ledger) == []
    assert folder.read_manifest()["spec"]["judges"]["toy"]["base_url"] == server.base_url
    so.run_audit(spec)  # as it is: nothing is planned or called


def test_a_planning_anew_that_was_killed_halfway_is_taken_up(tmp_path, monkeypatch):
    spec = lay_out(tmp_path, "http://127.0.0.1:1/v1")
    folder, first = planned_folder(so.load_audit(spec))
    replaced(spec, ("seed = 7", "seed = 8"))
    for place in ("secondorder.acquire._ledger_create._insert", "secondorder._audit._plan.write_bytes"):
        with monkeypatch.context() as patch:
            patch.setattr(place, raising)
            with pytest.raises(KeyboardInterrupt):
                planned_folder(so.load_audit(spec))
        assert not folder.manifest.exists(), "no command calls from a folder without manifest"
    with read_ledger(folder.ledger) as reader:
        assert reader.meta["calls_sha256"] != first.manifest["calls_sha256"]
    planned = planned_folder(so.load_audit(spec))[1]
    assert folder.read_manifest() == planned.manifest
    assert verify_ledger(folder.ledger) == []


def raising(*_, **__):
    raise KeyboardInterrupt


def test_an_announced_call_and_another_writer_keep_the_plan(tmp_path):
    spec = lay_out(tmp_path, "http://127.0.0.1:1/v1")
    folder, _ = planned_folder(so.load_audit(spec))
    before = folder.manifest.read_bytes()
    replaced(spec, ("repeats = 2", "repeats = 3"))
    with Ledger(folder.ledger) as ledger:
        with pytest.raises(LockedError, match="is writing this ledger"):
            planned_folder(so.load_audit(spec))
        ledger.intend([(0, 1)]).result()
    with pytest.raises(SpecError, match=r"design\.repeats: 2 → 3"):
        planned_folder(so.load_audit(spec))
    assert folder.manifest.read_bytes() == before
    with read_ledger(folder.ledger) as reader:
        assert reader.n_calls == 48


def test_files_that_are_no_run_are_not_written_over(tmp_path):
    spec, folder = lay_out(tmp_path, "http://127.0.0.1:1/v1"), tmp_path / "mine"
    folder.mkdir()
    (folder / "report.html").write_text("my thesis")
    with pytest.raises(SpecError, match=r"mine.*holds report.html and no run.*--out"):
        so.run_audit(spec, folder)
    assert [path.name for path in folder.iterdir()] == ["report.html"]


def test_outcomes_that_were_changed_later_make_no_cube(finished):
    with sqlite3.connect(finished.folder.ledger) as ledger:
        ledger.execute("DROP TRIGGER attempt_no_update")
        assert ledger.execute("UPDATE attempt SET verdict = '1' WHERE verdict = '2'").rowcount > 0
    ledger.close()
    with pytest.raises(CorruptFileError, match=r"outcomes are not those that were stored.*ledger verify"):
        cube_stage(finished.folder)


def test_a_design_without_bounds_is_refused_at_once(tmp_path):
    spec = replaced(lay_out(tmp_path, "http://127.0.0.1:1/v1"), ("repeats = 2", "repeats = 100000000"))
    with pytest.raises(SpecError, match=r"the design has 2,400,000,000 calls.*lower repeats"):
        so.plan_audit(spec)


def test_the_run_beside_its_spec_is_its_own_folder(tmp_path):
    spec = lay_out(tmp_path, "http://127.0.0.1:1/v1")
    assert find_target(spec).folder.path == tmp_path / "runs" / "small"
    planned_folder(so.load_audit(spec), tmp_path)
    assert find_target(spec).folder.path == tmp_path
    assert find_target(tmp_path).folder.path == tmp_path
    assert find_target(tmp_path / "ledger.sqlite").audit is None


@pytest.mark.parametrize(
    ("name", "words"), [("nowhere", "no such file or folder"), ("empty", "no run is here"), ("x.txt", "no file of an")]
)
def test_what_is_no_run_is_said(tmp_path, name, words):
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.txt").touch()
    with pytest.raises(InputError, match=words):
        find_target(tmp_path / name)


def test_plan_is_a_pure_function_of_the_spec(tmp_path):
    spec = lay_out(tmp_path, "http://127.0.0.1:1/v1")
    one, two = so.plan_audit(spec), so.plan_audit(so.load_audit(tmp_path))
    assert one.manifest == two.manifest
    assert not (tmp_path / "runs").exists()
