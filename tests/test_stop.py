"""``[stop]`` end to end: judges of known law are called until the certificate is there, and not further."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import secondorder as so
from secondorder._audit._calls import acquire_stage
from secondorder._audit._cube import cube_of_run
from secondorder._audit._plan import planned_folder
from secondorder._audit._stop import StopPolicy
from secondorder._audit._stop_rule import rule_of_manifest, stopped_judges
from secondorder._schema import REASONS, STATUS
from secondorder._statistics._tree import open_estimates
from secondorder.acquire import Fault, Outcome, SimulatedJudge, is_null, messages_key, read_ledger
from secondorder.cli import main
from secondorder.core._bounds import Bounds
from secondorder.core._sequential import first_crossing, log_e_process
from secondorder.errors import EndpointError, SpecError

from . import small_audits
from .small_audits import PAIRWISE, changed

ITEMS = 60
STEADY = changed(
    PAIRWISE, ('"small"', '"stopped"'), ("seed = 7", "seed = 11"), ("toy", "steady"),
    ("concurrency = 8", "concurrency = 6"), ("repeats = 2", 'repeats = 2\nsend = "by-item"'),
)  # fmt: skip
JUDGE = STEADY[STEADY.index("[judges.steady]") : STEADY.index("[items]")]
STOP = """
[stop]
component = "prompt"
tau = 0.15
"""
SPEC = changed(STEADY, (JUDGE, JUDGE + changed(JUDGE, ("steady", "fickle")))) + STOP


def lay_out(folder: Path, url: str, *changes: tuple[str, str]) -> Path:
    rows = [{"id": f"q{k}", "text": f"question {k}", "one": "x", "two": "y"} for k in range(ITEMS)]
    return small_audits.lay_out(folder, changed(SPEC.format(url=url), *changes), rows)


def laws_of(spec: Path) -> dict[str, dict[str, float]]:
    """Whatever is asked, "TIE" under one wording; under the other too if the item's number ends in 0."""
    found = {}
    for call in so.plan_audit(spec).calls:
        same = call.judge == "steady" or call.item.endswith("0")
        said = "TIE" if same or call.prompt == "none" else "A"
        found[messages_key(json.loads(call.request)["messages"])] = {said: 1.0}
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One judge that does not care for wording, one that does on nine items of ten: both with the same endpoint."""
    folder = tmp_path_factory.mktemp("stop")
    spec = lay_out(folder, "http://127.0.0.1:1/v1")
    # The two judges get the same messages: servers of their own.
    plan = so.plan_audit(spec)
    laws: dict[str, dict[str, dict[str, float]]] = {"steady": {}, "fickle": {}}
    for call in plan.calls:
        moved = call.judge == "fickle" and call.prompt == "xml" and not call.item.endswith("0")
        laws[call.judge][messages_key(json.loads(call.request)["messages"])] = {"A" if moved else "TIE": 1.0}
    with SimulatedJudge(laws["steady"], process=False) as one, SimulatedJudge(laws["fickle"], process=False) as two:
        text = spec.read_text(encoding="utf-8")
        first, second = text.split("[judges.fickle]")
        spec.write_text(
            first.replace("http://127.0.0.1:1/v1", one.base_url)
            + "[judges.fickle]"
            + second.replace("http://127.0.0.1:1/v1", two.base_url),
            encoding="utf-8",
        )
        notes: list[str] = []
        done = so.run_audit(spec, note=notes.append)
        asked = len(one.server.served), len(two.server.served)
    with so.open_cube(done.folder / "cube.nc") as cube:
        loaded = cube.load()
    return SimpleNamespace(spec=spec, done=done, cube=loaded, asked=asked, notes=notes, plan=so.plan_audit(spec))


def test_calls_end_when_the_certificate_is_there(run: Any) -> None:
    fickle, steady = stopped_judges(run.cube)
    assert (fickle.judge, steady.judge) == ("fickle", "steady")
    assert (fickle.certificate.verdict, steady.certificate.verdict) == ("above", "below")
    for found, requests in zip((steady, fickle), run.asked, strict=True):
        assert found.planned == ITEMS * 8
        assert requests == found.planned - found.saved
        assert found.saved > 0
        # At most the items that were out when the last decisive one ended: 6 calls of 8 an item, announced ahead.
        looked = found.certificate.n_items
        assert found.certificate.stopped_at <= looked <= found.certificate.stopped_at + 12
        assert found.saved == (ITEMS - looked) * 8


def test_the_certificate_is_that_of_the_items_in_their_order(run: Any) -> None:
    rule = rule_of_manifest(run.plan.manifest)
    # K = 2 prompts, nominal, two calls a cell, four classes: spread of two levels 1/2; all cells as spread as can be.
    assert rule.bounds.upper == pytest.approx(0.5)
    assert rule.bounds.lower == pytest.approx(-4 * 0.25 * 0.25 * 0.5)
    order = [call.item for call in run.plan.calls if call.judge == "steady"]
    assert list(dict.fromkeys(order)) == list(rule.items)
    for found in stopped_judges(run.cube):
        # "A" is candidate 1 in one order, 2 in the other: .625 of any two calls differ, .25 on one wording.
        moved = [found.judge == "fickle" and not item.endswith("0") for item in rule.items]
        values = np.where(moved, 0.375, 0.0)
        side = found.certificate.verdict
        path = log_e_process(values, 0.15, Bounds(*rule.bounds), side, n_items=ITEMS)
        assert found.certificate.stopped_at == int(first_crossing(path))
    steady = stopped_judges(run.cube)[1].certificate
    assert steady.least_items <= steady.stopped_at
    assert steady.upper < 0.15


def test_no_item_is_half_called_and_every_call_has_its_outcome(run: Any) -> None:
    reason = run.cube.reason.transpose("judge", "item", ...).values.reshape(2, ITEMS, -1)
    stopped = reason == REASONS.index("stop_rule")
    assert (stopped.all(-1) | ~stopped.any(-1)).all()
    assert stopped.any()
    with read_ledger(run.done.folder / "ledger.sqlite") as ledger:
        assert ledger.complete()


def test_the_report_says_what_holds(run: Any) -> None:
    said = str(run.done.decomposition)
    assert "calls saved" in " ".join(said.split())
    assert "bands of an audit that stops by its own numbers do not" in " ".join(said.split())
    # Items that no judge was called on are not listed one by one.
    called = [found.certificate.n_items for found in stopped_judges(run.cube)]
    assert [len(group.items) for group in run.done.decomposition.groups] == called
    assert all(len(group.items_dropped) <= max(called) for group in run.done.decomposition.groups)
    tree = open_estimates(run.done.folder / "estimates.nc")
    assert tree["stop"].verdict.values.tolist() == ["above", "below"]
    assert "<h2>Stop rule</h2>" in run.done.report.read_text(encoding="utf-8")
    assert int(tree["outcomes"].to_dataset().to_array().notnull().sum()) > 0
    (needed,) = [note for note in run.plan.notes if note.startswith("[stop] prompt against 0.15: 'below' needs")]
    assert needed.endswith(f"of {2 * ITEMS * 8} calls of 2 judges together")


def test_the_same_command_again_changes_nothing(run: Any) -> None:
    before = (run.done.folder / "estimates.nc").read_bytes()
    again = so.run_audit(run.spec)
    assert (run.done.folder / "estimates.nc").read_bytes() == before
    assert str(again.decomposition) == str(run.done.decomposition)


def test_lost_calls_count_against_the_certificate(tmp_path: Path) -> None:
    spec = lay_out(tmp_path, "http://127.0.0.1:1/v1")
    only = spec.read_text(encoding="utf-8")
    start, end = only.index("[judges.fickle]"), only.index("[items]")
    spec.write_text(only[:start] + only[end:], encoding="utf-8")
    laws = laws_of(spec)
    with SimulatedJudge(laws, process=False, faults=[Fault(kind="status", status=504, rate=0.01)]) as server:
        spec.write_text(
            spec.read_text(encoding="utf-8").replace("http://127.0.0.1:1/v1", server.base_url), encoding="utf-8"
        )
        audit = so.load_audit(spec)
        folder, _ = planned_folder(audit)
        acquire_stage(folder, audit.spec)
    cube, _ = cube_of_run(folder)
    found = stopped_judges(cube)[0]
    assert (cube.status == STATUS.index("no_completion")).any()
    clean = rule_of_manifest(so.plan_audit(spec).manifest)
    zeros = log_e_process(np.zeros(ITEMS), 0.15, clean.bounds, "below", n_items=ITEMS)
    assert (found.certificate.stopped_at or ITEMS) > int(first_crossing(zeros))


def test_a_policy_that_has_seen_the_past_decides_as_one_that_was_there(run: Any) -> None:
    manifest = run.plan.manifest
    with read_ledger(run.done.folder / "ledger.sqlite") as ledger:
        records = list(ledger.outcomes())
    whole, late = StopPolicy(manifest), StopPolicy(manifest)
    for record in records:
        whole.observe(record.call, record.outcome)
    half = len(records) // 2
    for record in sorted(records, key=lambda r: r.call.repeat)[:half]:
        late.observe(record.call, record.outcome)
    for record in sorted(records, key=lambda r: r.call.repeat)[half:]:
        late.observe(record.call, record.outcome)
    last = run.plan.calls[len(run.plan.calls) - 1]
    assert whole.wanted(last) == late.wanted(last) == "stop_rule"
    # An item that has begun is finished.
    begun = next(record.call for record in records if record.outcome.status == "valid")
    assert whole.wanted(begun) == ""


def test_invalid_verdicts_that_count_as_missing(tmp_path: Path) -> None:
    change = ("[stop]", '[analysis]\ninvalid = "missing"\n\n[stop]')
    manifest = so.plan_audit(
        lay_out(tmp_path, "http://127.0.0.1:1/v1", change, ("repeats = 2", "repeats = 3"))
    ).manifest
    rule = rule_of_manifest(manifest)
    assert rule.calls == 2
    codes = np.zeros((2, 2, 2, 3), dtype=int)
    codes[0, 0, 0, 0] = 3  # ⊥ once: two calls are left
    codes[1, 0, 0, :2] = 3  # ⊥ twice: one call is left
    values = rule.values(codes)
    assert values[0] == 0
    assert np.isnan(values[1])
    below, above = rule.sides(values)
    assert below[1] == rule.bounds.upper
    assert above[1] == rule.bounds.lower


def test_what_cannot_stop_says_so_before_the_first_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = lay_out(tmp_path, "http://127.0.0.1:1/v1", ("tau = 0.15", "tau = 0.001"))
    with pytest.raises(SystemExit) as stop:
        main(["plan", str(spec)])
    assert stop.value.code == 0
    out = capsys.readouterr()
    assert f"no evidence can decide before all {ITEMS} items" in " ".join((out.out + out.err).split())
    panel = lay_out(tmp_path, "http://127.0.0.1:1/v1", ("[stop]", '[analysis]\npairs = "panel"\n\n[stop]'))
    with pytest.raises(SpecError, match="no proven range"):
        so.plan_audit(panel)


def test_null_calls_are_not_stopped(tmp_path: Path) -> None:
    spec = lay_out(tmp_path, "http://127.0.0.1:1/v1", ("[stop]", "[null]\nitems = 3\nids = 2\n\n[stop]"))
    plan = so.plan_audit(spec)
    policy = StopPolicy(plan.manifest)
    steady = [call for call in plan.calls if call.judge == "steady"]
    first = set(rule_of_manifest(plan.manifest).items[: ITEMS // 2])
    for call in steady:
        if call.item in first and not call.prompt.startswith("null/"):
            policy.observe(call, Outcome("valid", verdict="tie"))
    wanted = {
        hidden: {policy.wanted(call) for call in steady if call.item not in first and hidden is is_null(call.prompt)}
        for hidden in (True, False)
    }
    # The certificate is there: items that have not begun are not called, but for the null block.
    assert wanted == {True: {""}, False: {"stop_rule"}}
    other = next(call for call in plan.calls if call.judge == "fickle")
    assert policy.wanted(other) == ""


def one_judge(folder: Path, url: str, *changes: tuple[str, str]) -> Path:
    """Only the steady one."""
    spec = lay_out(folder, url, *changes)
    text = spec.read_text(encoding="utf-8")
    start, end = text.index("[judges.fickle]"), text.index("[items]")
    spec.write_text(text[:start] + text[end:], encoding="utf-8")
    return spec


@pytest.mark.parametrize(("concurrency", "most"), [(1, 2), (6, 4), (64, 33)])
def test_few_items_are_under_way_at_once(tmp_path: Path, concurrency: int, most: int) -> None:
    """An item has 8 calls. While one of them waits, calls do not run ahead over all items."""
    planned = so.plan_audit(one_judge(tmp_path, "http://127.0.0.1:1/v1"))
    policy, calls = StopPolicy(planned.manifest, {"steady": concurrency}), list(planned.calls)
    said = [policy.wanted(call) for call in calls]
    assert said == [""] * (8 * most) + ["later"] * (len(calls) - 8 * most)
    for call in calls[1:16]:  # the first item lacks a call still, the second has ended
        policy.observe(call, Outcome("valid", "", "tie"))
    assert policy.wanted(calls[8 * most]) == "later"
    policy.observe(calls[0], Outcome("valid", "", "tie"))
    assert [policy.wanted(call) for call in calls[8 * most :]][:17] == [""] * 16 + ["later"]


def test_calls_that_fail_once_do_not_make_others_run_ahead(tmp_path: Path) -> None:
    """One request in fifty fails once and is asked again after a while."""
    spec = one_judge(tmp_path, "http://127.0.0.1:1/v1", ("attempts = 1", "attempts = 4"))
    laws, fault = laws_of(spec), Fault(kind="status", status=503, rate=0.02, per_call=1)
    with SimulatedJudge(laws, process=False, faults=[fault]) as server:
        spec.write_text(spec.read_text(encoding="utf-8").replace("http://127.0.0.1:1/v1", server.base_url), "utf-8")
        audit = so.load_audit(spec)
        folder, _ = planned_folder(audit)
        acquire_stage(folder, audit.spec)
    cube, _ = cube_of_run(folder)
    found = stopped_judges(cube)[0]
    begun = int((cube.status != STATUS.index("not_called")).any(["prompt", "order", "repeat"]).sum())
    assert found.certificate.stopped_at is not None
    assert begun <= found.certificate.stopped_at + 4


def test_a_judge_that_goes_away_loses_no_call_to_the_cap(tmp_path: Path) -> None:
    """With two items under way fewer calls are out than silence is told by: further ones are asked, one by one."""
    spec = one_judge(tmp_path, "http://127.0.0.1:1/v1", ("concurrency = 6", "concurrency = 1"))
    first = so.plan_audit(spec).calls[0].item.removeprefix("q")
    others = [k for k in range(ITEMS) if str(k) != first]
    faults = [Fault(kind="status", status=503, contains=f"question {k} A:") for k in others]
    with SimulatedJudge(laws_of(spec), process=False, faults=faults) as server:
        spec.write_text(spec.read_text(encoding="utf-8").replace("http://127.0.0.1:1/v1", server.base_url), "utf-8")
        audit = so.load_audit(spec)
        folder, _ = planned_folder(audit)
        with pytest.raises(EndpointError):
            acquire_stage(folder, audit.spec)
        with read_ledger(folder.ledger) as ledger:
            assert {row.status: row.count for row in ledger.counts()} == {None: 8 * len(others), "valid": 8}
