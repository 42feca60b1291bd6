"""The demo: its law, its truth, its digits; and a run of its size that is killed again and again."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import secondorder as so
from secondorder._audit._demo import demo_laws, law_of_plan
from secondorder._audit._demo_law import TOPICS, UNCLEAR, cell_law
from secondorder._statistics._tree import open_estimates
from secondorder.acquire import Outcome, SimulatedJudge, make_parse, messages_key, read_laws, read_ledger, verify_ledger
from secondorder.acquire._judge import draw, uniform_of_seed
from secondorder.cli import _run as command

SHIPPED = Path(so.__file__).parent / "_shipped_data" / "demo"
ITEMS = [json.loads(line) for line in (SHIPPED / "items.jsonl").read_text(encoding="utf-8").splitlines()]
ARTIFACTS = {"manifest.json", "ledger.sqlite", "cube.nc", "estimates.nc", "report.html"}
KILLS = int(os.environ.get("SECONDORDER_KILLS", "4"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo as a user runs it, once: its folder, and what it printed."""
    folder = tmp_path_factory.mktemp("demo") / "secondorder-demo"
    done = subprocess.run(
        [sys.executable, "-m", "secondorder", "demo", str(folder)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return SimpleNamespace(folder=folder, out=done.stdout, err=done.stderr)


def expected(planned, laws) -> dict[str, Outcome]:
    """Outcome of every call, by its law and its seed alone."""
    parse = make_parse(planned.spec)
    return {
        call.id: parse(
            draw(laws[messages_key(json.loads(call.request)["messages"])], uniform_of_seed(call.seed)), "stop", call
        )
        for call in planned.calls
    }


# -- items and law ----------------------------------------------------------------------------------------------------


def test_items_are_five_topics_of_ten_with_balanced_answers():
    assert Counter(item["topic"] for item in ITEMS) == dict.fromkeys(TOPICS, 10)
    for topic in TOPICS:
        assert Counter(item["better"] for item in ITEMS if item["topic"] == topic) == {"1": 4, "2": 4, "tie": 2}
    assert len({item["instruction"] for item in ITEMS}) == len({item["id"] for item in ITEMS}) == 50
    assert all(item["answer_1"] != item["answer_2"] for item in ITEMS)


def test_law_is_a_distribution_in_four_digits_and_favours_what_is_better_and_what_is_first():
    better = 0
    for item in ITEMS:
        for prompt in ("none", "xml"):
            both = {o: cell_law(item["id"], item["topic"], item["better"], prompt, o) for o in ("AB", "BA")}
            for law in both.values():
                assert sum(round(p * 10_000) for p in law.values()) == 10_000
                assert min(law.values()) > 0
                assert {text: law[text] for text in UNCLEAR} == UNCLEAR
            assert both["AB"]["A"] > both["BA"]["B"], "the same answer has better chances in the first place"
            good = {"1": "A", "2": "B"}.get(item["better"])
            better += good is not None and both["AB"][good] > both["AB"]["B" if good == "A" else "A"]
    assert better > 60, "of 80"


def test_law_is_the_same_in_every_process(demo):
    """Also written by a process with another hash seed: the law file of the demo is that of this process."""
    planned = so.plan_audit(SHIPPED)
    laws = demo_laws(so.load_audit(SHIPPED), planned)
    assert len(laws) == 600
    assert read_laws(demo.folder / "laws.json") == laws


def test_truth_is_that_of_the_laws_as_the_parser_reads_them():
    planned = so.plan_audit(SHIPPED)
    law = law_of_plan(planned, demo_laws(so.load_audit(SHIPPED), planned))
    assert law.dims == ("item", "prompt", "order", "class")
    for item in ITEMS[::7]:
        said = cell_law(item["id"], item["topic"], item["better"], "title", "BA")
        read = law.sel(item=item["id"], prompt="title", order="BA")
        assert read.values.tolist() == pytest.approx([said["B"], said["A"], said["TIE"], sum(UNCLEAR.values())])
    true = so.decompose_law(law).value
    plugin = true + so.plugin_bias(law, repeats=4).bias
    at = {name: (float(true.sel(component=name)), float(plugin.sel(component=name))) for name in ("prompt", "order")}
    assert at["order"][0] > 3 * at["prompt"][0], "the order is what matters"
    assert at["prompt"][1] > at["order"][1], "and the plug-in says the prompt, in expectation"


# -- what it does -----------------------------------------------------------------------------------------------------


def test_it_prints_the_estimate_beside_the_truth(demo):
    lines = demo.out.splitlines()
    # The last line ends with a path, as long as its folder's.
    assert max(len(line) for line in lines if not line.startswith("report: ")) <= 80
    rows = {
        line.split()[0]: line.split()[1:]
        for line in lines
        if re.match(r"(call|prompt|order|prompt:order|total) ", line)
    }
    assert list(rows) == ["call", "prompt", "order", "prompt:order", "total"]
    for name, row in rows.items():
        truth, debiased, lower, upper, _ = map(float, row)
        assert lower <= truth <= upper, name
        assert lower <= debiased <= upper
    said = [line.split()[0] for line in lines if re.match(r"  (plug-in|truth|debiased) ", line)]
    first = {line.split()[0]: line.split()[1] for line in lines if line.startswith("  ")}
    assert said == ["plug-in", "truth", "debiased"]
    assert (first["plug-in"], first["truth"], first["debiased"]) == ("prompt", "order", "order")
    assert lines[-1] == f"report: {demo.folder / 'report.html'}"
    assert [line.partition(":")[0] for line in demo.err.splitlines()] == ["acquire", "cube", "decompose", "report"]


def test_readme_shows_what_the_demo_prints(demo):
    readme = Path(__file__).resolve().parents[1] / "README.md"
    (block,) = re.findall(r"```text\n(.*?)```", readme.read_text(encoding="utf-8"), re.S)
    assert demo.out.startswith(block)


def test_it_leaves_everything_and_every_answer_is_the_laws(demo):
    assert {path.name for path in demo.folder.iterdir()} >= ARTIFACTS | {"audit.toml", "items.jsonl", "laws.json"}
    assert verify_ledger(demo.folder / "ledger.sqlite") == []
    planned = so.plan_audit(demo.folder)
    with read_ledger(demo.folder / "ledger.sqlite") as reader:
        found = {record.call.id: record.outcome for record in reader.outcomes()}
    assert found == expected(planned, read_laws(demo.folder / "laws.json"))
    assert len(found) == 2400
    estimates = open_estimates(demo.folder / "estimates.nc")
    assert {"components", "strata", "prefixes", "gold", "integrity", "outcomes"} <= set(estimates.children)
    assert json.loads(estimates["/provenance"].attrs["duplicates"]) == dict.fromkeys(
        ("response_id", "response_id_inside_cell", "body", "body_inside_cell"), 0
    )


def test_again_it_calls_nothing_and_says_the_same(demo, capsys):
    before = {name: (demo.folder / name).read_bytes() for name in ARTIFACTS}
    assert command(["demo", str(demo.folder)]) == 0
    captured = capsys.readouterr()
    assert captured.out == demo.out
    assert captured.err.count("up to date") == 3
    assert {name: (demo.folder / name).read_bytes() for name in ARTIFACTS} == before


def test_nobody_elses_folder_is_touched(tmp_path, capsys):
    (tmp_path / "audit.toml").write_text("# mine\n", encoding="utf-8")
    assert command(["demo", str(tmp_path)]) == 2
    assert "it is not the demo's; give another folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["audit.toml"]
    assert command(["demo", str(tmp_path / "audit.toml")]) == 2


# -- killed again and again -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_killed_and_resumed_it_is_exactly_the_planned_outcomes(demo, tmp_path):
    """kill -9 at random moments of a run of 2,400 calls; SECONDORDER_KILLS=10 for the full number.

    No outcome is lost or doubled, no completed call is called again, retries are the same bytes, and the ledger has
    the identity of the run that nobody killed.
    """
    (tmp_path / "items.jsonl").write_bytes((SHIPPED / "items.jsonl").read_bytes())
    spec = (SHIPPED / "audit.toml").read_text(encoding="utf-8")
    laws = read_laws(demo.folder / "laws.json")
    moments = sorted(random.Random(time.time_ns()).sample(range(1, 2300), KILLS))
    print("kills after so many requests:", *moments)
    with SimulatedJudge(laws, latency_s=0.02, process=False) as server:
        log = server.server.served
        text = spec.replace("http://127.0.0.1:8642/v1", server.base_url)
        (tmp_path / "audit.toml").write_text(f"{text}\n[retry]\nattempts = 30\n", encoding="utf-8")
        planned = so.plan_audit(tmp_path)
        digests = {call.request_sha256: call for call in planned.calls}
        assert len(digests) == 2400, "every call has its own bytes, so the server's log tells them apart"
        ledger = tmp_path / "runs" / "demo" / "ledger.sqlite"
        finished: dict[str, int] = {}
        for moment in [*moments, None]:
            child = subprocess.Popen(
                [sys.executable, "-m", "secondorder", "acquire", str(tmp_path)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            while moment is not None and len(log) < moment and child.poll() is None:
                time.sleep(0.0005)
            if moment is not None and child.poll() is None:
                child.send_signal(signal.SIGKILL)
            _, err = child.communicate(timeout=120)
            assert child.returncode in ((-signal.SIGKILL, 0) if moment is not None else (0,)), err
            time.sleep(0.1)  # requests that were in flight reach the log
            served = Counter(log)
            assert {digest: served[digest] for digest in finished} == finished, "a completed call was called again"
            if ledger.exists():
                with read_ledger(ledger) as reader:
                    for record in reader.outcomes():
                        finished.setdefault(record.call.request_sha256, served[record.call.request_sha256])
        served = Counter(log)
    assert set(served) == set(digests), "the bytes on the wire are the planned ones, all of them and no others"
    with read_ledger(ledger) as reader, read_ledger(demo.folder / "ledger.sqlite") as undisturbed:
        found = {record.call.id: record.outcome for record in reader.outcomes()}
        assert reader.digest() == undisturbed.digest()
    assert found == expected(planned, laws)
    assert verify_ledger(ledger) == []
    assert sum(served.values()) < 2400 + (KILLS + 1) * 200, "few calls were announced and lost at each kill"


def test_cube_of_the_demo_gives_the_counts_of_its_answers(demo):
    """Counts by cell, from the cube and from the answers alone."""
    cube = so.open_cube(demo.folder / "cube.nc")
    counts = so.count(cube).sel(judge="simulated")
    assert counts.shape == (50, 6, 2, 4)
    planned = so.plan_audit(demo.folder)
    said = expected(planned, read_laws(demo.folder / "laws.json"))
    slow = np.zeros(counts.shape, dtype=int)
    labels = {dim: counts[dim].values.tolist() for dim in counts.dims}
    for call in planned.calls:
        verdict = said[call.id].verdict or "⊥"
        at = (call.item, call.prompt, call.order, verdict)
        slow[tuple(labels[dim].index(label) for dim, label in zip(counts.dims, at, strict=True))] += 1
    assert counts.values.tolist() == slow.tolist()
