"""An audit from Python: stages that skip, resume and repair; a cube in which every planned call has its place."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import secondorder as so
from secondorder._audit._calls import acquire_stage
from secondorder._audit._cube import cube_of_run
from secondorder._audit._folder import RunFolder
from secondorder._audit._plan import find_target, planned_folder
from secondorder._audit._run import cube_stage, decompose_stage, report_stage
from secondorder._schema import REASONS, STATUS
from secondorder._statistics._tree import open_estimates
from secondorder.acquire import Fault, SimulatedJudge, is_null, messages_key, read_ledger
from secondorder.errors import CorruptFileError, InputError, SpecError, StorageError

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

PAIRWISE = """
schema = "secondorder.audit/1"
name = "small"
seed = 7

[judges.toy]
endpoint = "openai-chat"
base_url = "{url}"
model = "toy"
concurrency = 8
body = {{ temperature = 1.0, top_p = 1.0, max_tokens = 8 }}

[items]
file = "items.jsonl"
id = "id"
pair = ["one", "two"]
stratum = "topic"
gold = "best"

[prompts]
census = ["none", "xml"]
criterion = "Which is better?"
user = "{{{{criterion}}}} {{{{text}}}} A: {{{{first}}}} B: {{{{second}}}}"

[design]
orders = ["AB", "BA"]
repeats = 2

[verdict]
parser = "label"
labels = {{ A = "first", B = "second", TIE = "tie" }}
classes = ["1", "2", "tie"]

[retry]
attempts = 1
"""

ARTIFACTS = {"manifest.json", "ledger.sqlite", "cube.nc", "estimates.nc", "report.html"}


def lay_out(folder: Path, url: str) -> Path:
    """A small audit in a folder; returns the path of its spec."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in ITEMS), encoding="utf-8")
    spec = folder / "audit.toml"
    spec.write_text(PAIRWISE.format(url=url), encoding="utf-8")
    return spec


def replaced(spec: Path, *pairs: tuple[str, str]) -> Path:
    text = spec.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    spec.write_text(text, encoding="utf-8")
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


@pytest.fixture(scope="module")
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


# -- the whole way ----------------------------------------------------------------------------------------------------


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
    for file in path.iterdir():
        file.chmod(0o444)
    path.chmod(0o555)
    try:
        assert str(so.run_audit(path).decomposition) == finished.shown
    finally:
        path.chmod(0o755)


# -- every planned call has its place ---------------------------------------------------------------------------------

CROSSED = (
    (
        '[prompts]\ncensus = ["none", "xml"]\ncriterion = "Which is better?"\n'
        'user = "{{criterion}} {{text}} A: {{first}} B: {{second}}"\n',
        "[prompts]\n"
        + "".join(
            f'[[prompts.variants]]\nid = "{detail}-{scale}"\nlevels = {{ detail = "{detail}", scale = "{scale}" }}\n'
            f'user = "{detail} {scale} {{{{text}}}} {{{{first}}}} {{{{second}}}}"\n'
            for detail in ("short", "long")
            for scale in ("words", "marks", "letters")
        ),
    ),
)
SECOND_JUDGE = '[judges.abacus]\nendpoint = "openai-chat"\nbase_url = "{url}"\nmodel = "abacus"\n\n[items]'


@pytest.mark.parametrize("send", ["shuffled", "by-item", "by-cell"])
def test_judges_crossed_wordings_hidden_ids_and_warm_ups(tmp_path, send):
    faults = (Fault(kind="status", status=500, rate=0.2), Fault(kind="empty", rate=0.2))
    with judge(*faults) as server:
        spec = lay_out(tmp_path, server.base_url)
        replaced(spec, *CROSSED, ("[items]", SECOND_JUDGE.format(url=server.base_url)))
        replaced(spec, ("repeats = 2", f'repeats = 2\nsend = "{send}"\n[null]\nitems = 2\nids = 3'))
        folder = acquired(spec)
    manifest = folder.read_manifest()
    assert (manifest["warmup_calls"] > 0) == (send == "by-cell")
    cube, null = cube_of_run(folder)
    assert cube.verdict.dims == ("judge", "item", "detail", "scale", "order", "repeat")
    assert cube.verdict.shape == (2, 6, 2, 3, 2, 2)
    assert cube.judge.values.tolist() == ["abacus", "toy"]
    assert cube.item.values.tolist() == [f"q{k}" for k in range(8, 14)]
    assert cube.stratum.values.tolist() == ["even", "odd"] * 3
    assert cube.gold.values.tolist() == ["1", "2", "tie", "", "1", "2"]
    assert null.verdict.dims == ("judge", "item", "prompt", "order", "repeat")
    assert null.verdict.shape == (2, 2, 3, 2, 2)
    levels = {prompt["id"]: prompt["levels"] for prompt in manifest["prompts"]}
    design, hidden = joined_again(folder, levels)
    assert {outcome.status for outcome, _ in design.values()} == {"valid", "invalid", "no_completion"}
    assert_cube_is(cube, design)
    assert_cube_is(null, hidden)
    assert cube.verdict.size + null.verdict.size == manifest["calls"] + manifest["null_calls"]


def test_pointwise_items_have_the_single_order(tmp_path):
    with judge() as server:
        spec = lay_out(tmp_path, server.base_url)
        replaced(
            spec,
            ('pair = ["one", "two"]\n', ""),
            ('gold = "best"\n', ""),
            ('orders = ["AB", "BA"]\n', ""),
            ("A: {{first}} B: {{second}}", "Good (A), bad (B) or fair (TIE)?"),
            ('A = "first", B = "second", TIE = "tie"', 'A = "good", B = "bad", TIE = "fair"'),
            ('classes = ["1", "2", "tie"]', 'classes = ["bad", "fair", "good"]'),
        )
        run = so.run_audit(spec)
    cube = so.open_cube(run.folder / "cube.nc")
    assert cube.order.values.tolist() == ["single"]
    assert "gold" not in cube.coords
    assert run.decomposition.groups[0].facets["order"].kind == "single"
    assert [estimate.component for estimate in run.decomposition.groups[0].estimates] == ["call", "prompt", "total"]
    assert_cube_is(cube, joined_again(RunFolder(run.folder), {})[0])


def test_a_run_midway_counts_what_has_not_ended_as_missing(tmp_path):
    with judge(latency_s=0.05) as server:
        spec = replaced(lay_out(tmp_path, server.base_url), ("attempts = 1", "attempts = 6"))

        def stop(state):
            if state.done >= 8:
                raise RuntimeError("enough")

        target = find_target(replaced(spec, ("concurrency = 8", "concurrency = 2")))
        folder, _ = planned_folder(target.audit)
        with pytest.raises(RuntimeError, match="enough"):
            acquire_stage(folder, target.audit.spec, progress=stop)
        assert cube_stage(folder)
        with so.open_cube(folder.cube) as part:
            statuses = part.status.values
            still_open = (statuses == STATUS.index("no_completion")) & (
                part.reason.values == REASONS.index("interrupted")
            )
        assert 0 < still_open.sum() < statuses.size
        acquire_stage(folder, target.audit.spec)
        assert cube_stage(folder), "another ledger, another cube"
    with so.open_cube(folder.cube) as whole:
        assert (whole.verdict.values >= 0).all()


def test_a_limit_leaves_calls_not_called_and_items_dropped_and_counted(tmp_path):
    with judge() as server:
        spec = replaced(lay_out(tmp_path, server.base_url), ("repeats = 2", 'repeats = 2\nsend = "by-item"'))
        replaced(spec, ("[retry]", "[limits]\ncalls = 41\n\n[retry]"))
        run = so.run_audit(spec)
        assert len(server.server.served) == 41
    cube = so.open_cube(run.folder / "cube.nc")
    assert int((cube.status == STATUS.index("not_called")).sum()) == 7
    assert int((cube.reason == REASONS.index("limit")).sum()) == 7
    assert len(run.decomposition.groups[0].items) == 5
    assert len(run.decomposition.groups[0].items_dropped) == 1


def test_one_call_per_cell_shows_the_plug_in_and_says_why_nothing_else(tmp_path):
    with judge() as server:
        run = so.run_audit(replaced(lay_out(tmp_path, server.base_url), ("repeats = 2", "repeats = 1")))
    prompt = run.decomposition["prompt"]
    assert np.isnan(prompt.estimate)
    assert prompt.plugin >= 0
    assert "R >= 2" in str(run.decomposition)
    assert "R &gt;= 2" in (run.folder / "report.html").read_text(encoding="utf-8")


def test_the_null_block_is_estimated_apart_and_its_change_is_seen(tmp_path):
    with judge() as server:
        spec = replaced(lay_out(tmp_path, server.base_url), ("[retry]", "[null]\nitems = 3\nids = 2\n\n[retry]"))
        run = so.run_audit(spec)
    folder = RunFolder(run.folder)
    null = open_estimates(folder.estimates)["/null"]
    assert null.pairs.values.tolist() == ["across-repeats", "complete"]
    assert run.decomposition.groups[0].n_calls <= 6 * 2 * 2 * 2
    folder.null.unlink()
    assert cube_stage(folder)
    assert folder.null.exists()


# -- what may change, and what may not --------------------------------------------------------------------------------


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
        folder, _ = planned_folder(so.load_audit(spec))
    folder.manifest.unlink()
    replaced(spec, ("seed = 7", "seed = 8"))
    with pytest.raises(SpecError, match="another plan"):
        planned_folder(so.load_audit(spec))
    assert not folder.manifest.exists(), "what did not plan these calls must not be written beside them"
    planned_folder(so.load_audit(replaced(spec, ("seed = 8", "seed = 7"))))


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


# -- reports of whatever there is -------------------------------------------------------------------------------------


def test_write_report_takes_runs_files_cubes_and_results(once, tmp_path):
    run = once.run
    sources = {
        "run": run,
        "file": run.folder / "estimates.nc",
        "cube": so.open_cube(run.folder / "cube.nc").load(),
        "result": run.decomposition,
    }
    texts = {}
    for name, source in sources.items():
        so.write_report(source, tmp_path / f"{name}.html")
        texts[name] = (tmp_path / f"{name}.html").read_text(encoding="utf-8")
    assert len({texts[name] for name in ("run", "file", "cube")}) == 1
    assert "Components, debiased beside plug-in" in texts["result"]
    assert len(texts["result"]) < len(texts["run"])
    with pytest.raises(InputError, match="int"):
        so.write_report(3, tmp_path / "x.html")
    with pytest.raises(StorageError):
        so.write_report(run, tmp_path / "no" / "x.html")


def test_hostile_answers_and_labels_do_no_harm(tmp_path):
    """A script and a megabyte on one line, as answers, item labels, strata and criterion."""
    script = "<script>alert('x')</script>"
    spec = lay_out(tmp_path, "http://127.0.0.1:1/v1")
    hostile = [{**item, "id": f"{script}{item['id']}", "topic": f"{item['topic']}{script}"} for item in ITEMS]
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in hostile), encoding="utf-8")
    replaced(spec, ("Which is better?", f"Which is better? {script}"))
    addresses = {messages_key(json.loads(call.request)["messages"]) for call in so.plan_audit(spec).calls}
    law = {"A": 0.4, "B": 0.3, script: 0.1, "x" * 1_000_000: 0.1, f"\x1b[31m{script}\x00": 0.1}
    with SimulatedJudge(dict.fromkeys(addresses, law), process=False) as server:
        replaced(spec, ("http://127.0.0.1:1/v1", server.base_url))
        run = so.run_audit(spec)
    text = run.report.read_text(encoding="utf-8")
    assert "alert" in text
    assert script not in text
    assert len(text) < 1_000_000
    assert {outcome.reason for outcome, _ in joined_again(RunFolder(run.folder), {})[0].values()} == {"", "unparsed"}
