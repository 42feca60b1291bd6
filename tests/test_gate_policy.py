"""A gate as the policy of a run: exactly the calls that it wants, across interruptions and from its folder alone."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from secondorder import plan_audit, run_audit
from secondorder._audit._folder import RunFolder
from secondorder._audit._gated import run_gated
from secondorder._audit._run import decompose_stage
from secondorder.acquire import SimulatedJudge, compare_manifests, read_ledger, run_calls
from secondorder.cli import app
from secondorder.errors import InputError, SchemaError, SpecError
from secondorder.studies import Gate, GatePolicy, fit_gate
from secondorder.studies._signals import Signal

from . import small_run as small
from .small_audits import YES_OR_NO, changed, lay_out
from .small_cubes import PROMPTS, panel

CALLS = small.make_calls(items=30, prompts=("p1", "p2", "p3", "p4", "p5"), repeats=1)


def by_item(calls: list) -> list:
    """The same calls item after item, the first prompt last, which is the hardest order for a gate."""
    ranked = sorted(calls, key=lambda call: (call.item, call.order, call.prompt == "p1", call.prompt))
    return [
        type(call)(**{f: getattr(call, f) for f in call.__struct_fields__} | {"rank": k})
        for k, call in enumerate(ranked)
    ]


def gate_of(stop: str | None = None, threshold: float = 0.5):
    """Opens after a first verdict "1" on an item of even length, and after ⊥."""
    gate = fit_gate(panel(50))
    signals = (Signal("verdict", ("1", "2", "tie", "⊥")), Signal("even", None))
    return replace(
        gate,
        first="p1",
        others=("p2", "p3", "p4", "p5"),
        classes=("1", "2", "tie", "⊥"),
        stop=stop,
        signals=signals,
        coefficients=(4.0, -4.0, -4.0, 40.0, 4.0, -6.0),
        threshold=threshold,
    )


ITEMS = {f"item{i:03d}": {"even": float(i % 2 == 0)} for i in range(30)}


def expected_calls(stop: str | None) -> dict[str, str]:
    """What every call must end as, by the judge's law and the rules, case by case."""
    found = {}
    cases: dict[tuple[str, str], dict[str, object]] = {}
    for call in CALLS:
        cases.setdefault((call.item, call.order), {})[call.prompt] = call
    for (item, _), case in cases.items():
        said = []
        opened = None
        for prompt in PROMPTS:
            call = case[prompt]
            outcome = small.expected(call)
            label = outcome.verdict or "⊥"
            top = [*sorted(Counter(said).values(), reverse=True), 0, 0]
            if prompt == "p1":
                opened = label == "⊥" or (label == "1" and ITEMS[item]["even"] == 1.0)
            elif (
                not opened
                or (stop == "decided" and top[0] - top[1] > 5 - len(said))
                or (stop == "majority" and top[0] >= 3)
            ):
                found[call.id] = "gate"
                continue
            found[call.id] = label
            said.append(label)
    return found


@pytest.mark.parametrize("stop", [None, "decided", "majority"])
@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_gated_run_makes_exactly_the_calls_that_the_gate_wants(
    tmp_path: Path, stop: str | None, concurrency: int
) -> None:
    calls = by_item(CALLS)
    path = small.plan(tmp_path / "ledger.sqlite", calls)
    with SimulatedJudge(process=False) as server:
        judges = {"toy": small.judge(server.base_url, concurrency=concurrency)}
        summary = run_calls(path, judges, parse=small.parse, seed=1, policy=GatePolicy(gate_of(stop), ITEMS))
    with read_ledger(path) as ledger:
        assert ledger.complete()
        ended = {
            r.call.id: r.outcome.reason if r.outcome.status == "not_called" else r.outcome.verdict or "⊥"
            for r in ledger.outcomes()
            if r.outcome is not None
        }
    wanted = expected_calls(stop)
    assert ended == wanted
    called = sum(label != "gate" for label in wanted.values())
    assert sum(summary.attempts.values()) == called
    assert 60 < called < 300


def test_an_interrupted_gated_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path = small.plan(tmp_path / "ledger.sqlite", by_item(CALLS))
    from secondorder.acquire._spec import LimitsSpec

    gate = gate_of("decided")
    with SimulatedJudge(process=False) as server:
        judges = {"toy": small.judge(server.base_url, concurrency=4)}

        class Halting(GatePolicy):
            """Fails in the middle, as a process that is killed does."""

            seen = 0

            def observe(self, call, outcome) -> None:  # type: ignore[no-untyped-def]
                Halting.seen += 1
                if Halting.seen == 40:
                    raise SpecError("stop here")
                super().observe(call, outcome)

        with pytest.raises(SpecError, match="stop here"):
            run_calls(path, judges, parse=small.parse, seed=1, policy=Halting(gate, ITEMS))
        run_calls(path, judges, parse=small.parse, seed=1, policy=GatePolicy(gate, ITEMS), limits=LimitsSpec())
    with read_ledger(path) as ledger:
        ended = {
            r.call.id: r.outcome.reason if r.outcome.status == "not_called" else r.outcome.verdict or "⊥"
            for r in ledger.outcomes()
            if r.outcome is not None
        }
        assert ended == expected_calls("decided")


GATED = changed(
    YES_OR_NO,
    ('"small"', '"gated"'),
    ("seed = 7", "seed = 3"),
    ('id = "id"', 'id = "id"\nstratum = "topic"\ngold = "best"'),
)
GATED += '\n[gate]\nfile = "gate.json"\n'


def gated_audit(folder: Path, url: str) -> Path:
    """An audit behind a gate that opens for short texts, and never after the verdict "no"."""
    items = [
        {"id": f"q{i}", "topic": "even" if i % 2 == 0 else "odd", "text": "word " * (i + 1), "best": "yes"}
        for i in range(12)
    ]
    gate = Gate(
        "prompt", "p1", ("p2", "p3"), ("yes", "no", "unsure"), "class", "decided",
        (Signal("verdict", ("yes", "no", "unsure")), Signal("words:text", None, 6.0, 1.0), Signal("stratum", ("odd",))),
        0.5, (0.0, -100.0, 0.0, -1.0, 0.0, 0.5), None, {},
    )  # fmt: skip
    gate.save(folder / "gate.json")
    return lay_out(folder, GATED.format(url=url), items)


def test_an_audit_with_a_gate_runs_and_resumes_from_its_folder_alone(tmp_path: Path, capsys) -> None:  # type: ignore
    from secondorder.cli import main

    with SimulatedJudge(process=False) as server:
        spec = gated_audit(tmp_path, server.base_url)
        with pytest.raises(SystemExit) as end:
            main(["run", str(spec)])
        assert end.value.code == 0
    shown = capsys.readouterr()
    assert "Aggregation of 3 votes" in shown.out
    assert "decompose: left out" in shown.err
    run = tmp_path / "runs" / "gated"
    with read_ledger(run / "ledger.sqlite") as ledger:
        ended = {(r.call.item, r.call.prompt): r.outcome for r in ledger.outcomes() if r.outcome is not None}
    assert len(ended) == 36
    for i in range(12):
        first = ended[f"q{i}", "p1"]
        assert first.status != "not_called"
        opened = first.verdict != "no" and i + 1 <= 6
        second, third = ended[f"q{i}", "p2"], ended[f"q{i}", "p3"]
        assert (second.reason == "gate") == (not opened)
        assert (third.reason == "gate") == (not opened or (first.verdict or "⊥") == (second.verdict or "⊥"))
    (tmp_path / "audit.toml").rename(tmp_path / "elsewhere.toml")
    (tmp_path / "gate.json").rename(tmp_path / "old.json")
    again = run_gated(run)  # nothing is left to call, and no judge is there
    decided = again.decisions.data["decision"].squeeze()
    for i in range(12):
        votes = [o.verdict or "⊥" for p in ("p1", "p2", "p3") if (o := ended[f"q{i}", p]).status != "not_called"]
        top = Counter(votes).most_common()
        expected = "" if len(top) > 1 and top[0][1] == top[1][1] else top[0][0]
        assert decided.sel(item=f"q{i}").item() == expected
    for wrong, words in ((lambda: run_audit(run), "run_gated"), (lambda: decompose_stage(RunFolder(run)), "aggregate")):
        with pytest.raises(SpecError, match=words):
            wrong()


@pytest.mark.parametrize("command", ["decompose", "budget", "posterior", "study agreement"])
@pytest.mark.parametrize("given", ["audit.toml", "."])
@pytest.mark.parametrize("file", ["items.jsonl", "gate.json", "audit.toml"])
def test_no_output_replaces_what_an_audit_names(command: str, given: str, file: str, tmp_path: Path) -> None:
    gated_audit(tmp_path, "http://127.0.0.1:9/v1")
    suffix = {"budget": ".svg", "posterior": ".nc"}.get(command, ".json")
    before = (tmp_path / file).read_text()
    # What the file is called says nothing: a link has the suffix that the command writes.
    (tmp_path / f"output{suffix}").symlink_to(tmp_path / file)
    line = [*command.split(), str(tmp_path / given), "--output", str(tmp_path / f"output{suffix}")]
    with pytest.raises(InputError, match="what the command reads"):
        app(line)
    assert (tmp_path / file).read_text() == before


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('send = "by-item"', 'send = "shuffled"', "by-item"),
        ('id = "p3"', 'id = "p4"', "it must know the prompts"),
        ('"gate.json"', '"none.json"', "cannot be read"),
        ('"gate.json"', '"items.jsonl"', "no JSON"),
        ('file = "gate.json"', 'file = "gate.json"\ncontent = { a = 1 }', "content"),
        ('stratum = "topic"\n', "", "stratum"),
        ('"yes", "no", "unsure"]', '"yes", "no", "unsure", "maybe"]', "it must know those of this audit"),
    ],
)
def test_gates_that_do_not_fit_their_audit_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    spec = gated_audit(tmp_path, "http://127.0.0.1:9/v1")
    spec.write_text(changed(spec.read_text(), (old, new)))
    with pytest.raises((SpecError, InputError, SchemaError), match=words):
        plan_audit(spec)


def test_another_gate_is_another_audit(tmp_path: Path) -> None:
    spec = gated_audit(tmp_path, "http://127.0.0.1:9/v1")
    before = plan_audit(spec).manifest
    gate = json.loads((tmp_path / "gate.json").read_text())
    (tmp_path / "gate.json").write_text(json.dumps(gate | {"threshold": 0.4}))
    assert "gate.content.threshold: 0.5 → 0.4" in compare_manifests(before, plan_audit(spec).manifest)


def test_a_policy_that_waits_for_nothing_is_refused(tmp_path: Path) -> None:
    class Never:
        def observe(self, call, outcome) -> None:  # type: ignore[no-untyped-def]
            pass

        def wanted(self, call) -> str:  # type: ignore[no-untyped-def]
            return "" if call.prompt == "p1" else "undecided"

    path = small.plan(tmp_path / "ledger.sqlite", by_item(CALLS)[:40])
    with SimulatedJudge(process=False) as server, pytest.raises(SpecError, match="does not decide"):
        run_calls(path, {"toy": small.judge(server.base_url)}, parse=small.parse, seed=1, policy=Never())
    cells = small.make_calls(items=2, shuffled=False, warmups=True)
    path = small.plan(tmp_path / "cells.sqlite", cells)

    class InCell(Never):
        def wanted(self, call) -> str:  # type: ignore[no-untyped-def]
            return "undecided" if call.repeat == 2 else ""

    with SimulatedJudge(process=False) as server, pytest.raises(SpecError, match="by-item"):
        run_calls(path, {"toy": small.judge(server.base_url)}, parse=small.parse, seed=1, policy=InCell())


def test_a_gate_that_cannot_be_a_policy_is_refused() -> None:
    gate = gate_of()
    with pytest.raises(InputError, match="voters='prompt'"):
        GatePolicy(replace(gate, voters="judge"), {})
    first = next(call for call in CALLS if call.prompt == "p1")
    with pytest.raises(InputError, match="has no signal 'even'"):
        GatePolicy(gate, {}).observe(first, small.expected(first))
