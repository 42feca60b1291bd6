"""Reports of whatever there is: runs, files, cubes and results, and answers that mean harm."""

from __future__ import annotations

import json

import pytest

import secondorder as so
from secondorder._audit._folder import RunFolder
from secondorder.acquire import SimulatedJudge, messages_key
from secondorder.errors import InputError, StorageError

from .conftest import ITEMS, joined_again, lay_out, replaced


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
    assert "No call timed out." in " ".join(texts["run"].split())
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
