"""Gates: the paper's cost derivation, disjoint splits, saved files, and the gate as the policy of a run."""

from __future__ import annotations

import json
import runpy
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from secondorder import load_audit, plan_audit, run_audit
from secondorder._audit._folder import RunFolder
from secondorder._audit._gated import run_gated
from secondorder._audit._plan import planned_folder
from secondorder._audit._run import decompose_stage
from secondorder.acquire import SimulatedJudge, read_ledger, run_calls
from secondorder.cli import app
from secondorder.errors import CorruptFileError, CubeError, InputError, SchemaError, SpecError
from secondorder.studies import Gate, GatePolicy, evaluate_gate, fit_gate, gate_costs, open_gate
from secondorder.studies._gate_cases import make_cases
from secondorder.studies._gate_fit import best_threshold, folds_of, matthews, out_of_fold
from secondorder.studies._signals import Signal

small = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("small_run.py"))))
PROMPTS = [f"p{k}" for k in range(1, 6)]


def panel(n: int = 400, seed: int = 0, **coords: object) -> xr.Dataset:
    """Five prompts; an item is easy, or hard for all of them; the coordinate says so with some error."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.3
    right = rng.integers(0, 3, n)
    said = np.where(rng.random((n, 5)) < np.where(hard, 0.6, 0.02)[:, None], rng.integers(0, 3, (n, 5)), right[:, None])
    return xr.Dataset(
        {"verdict": (("item", "prompt"), said)},
        coords={
            "class": ["A", "B", "C"],
            "prompt": PROMPTS,
            "item": [f"q{i}" for i in range(n)],
            "gold": ("item", np.array(["A", "B", "C"])[right]),
            "hard": ("item", hard + rng.normal(0, 0.3, n)),
            "task": ("item", np.array(["qa", "chat", "code"])[rng.integers(0, 3, n)]),
            **coords,
        },
    )


def value(found: object, name: str) -> float:
    return float(found[name].estimate)  # type: ignore[index]


# Costs ----------------------------------------------------------------------------------------------------------------


def test_costs_are_those_of_the_paper() -> None:
    found = gate_costs(tpr=0.8506, tnr=0.6942, stable=0.44, cost_stable=4.247)
    assert found.calls_stable == pytest.approx(1.993, abs=5e-4)
    assert found.saved_stable == pytest.approx(0.601, abs=5e-4)
    assert found.calls == pytest.approx(2.98, abs=5e-3)
    assert found.saved == pytest.approx(0.40, abs=5e-3)
    assert gate_costs(tpr=1, tnr=1, stable=1, cost_stable=5).calls == 1
    assert gate_costs(tpr=1, tnr=0, stable=0.3, cost_stable=4, cost_needs=5).calls == pytest.approx(0.3 * 4 + 0.7 * 5)
    for wrong in ({"tpr": 1.2}, {"stable": -0.1}, {"cost_stable": 6.0}, {"cost_needs": 0.5}):
        with pytest.raises(InputError):
            gate_costs(**{"tpr": 0.5, "tnr": 0.5, "stable": 0.5, "cost_stable": 4.0, **wrong})


def test_calls_follow_from_the_error_rates_by_the_derivation() -> None:
    found = evaluate_gate(panel(), signals=("verdict", "hard"), draws=0)
    derived = gate_costs(
        tpr=value(found, "tpr"), tnr=value(found, "tnr"), stable=1 - value(found, "needs"), cost_stable=5
    )
    for name in ("calls", "calls_stable", "calls_needs", "saved"):
        assert value(found, name) == pytest.approx(getattr(derived, name), abs=1e-12)


# Evaluation -----------------------------------------------------------------------------------------------------------


def test_measures_are_those_of_the_cases_one_by_one() -> None:
    cube = panel()
    found = evaluate_gate(cube, signals=("verdict", "hard"), threshold=0.4, stop="decided", draws=0)
    asked = {"voters": "prompt", "first": None, "signals": ("verdict", "hard"), "features": None, "split": "item"}
    cases = make_cases(cube, **asked, stop="decided", ties="abstain", gold="gold", invalid="class", seed=0)
    rows = np.arange(len(cases.item))
    judged = out_of_fold(cases, rows, None, 0.4, by_group=False, folds=5, seed=0)
    totals: Counter[str] = Counter()
    for i, said in enumerate(cube["verdict"].to_numpy().tolist()):
        counts = Counter(said)
        most = max(counts.values())
        leaders = [c for c, k in counts.items() if k == most]
        full = leaders[0] if len(leaders) == 1 else None
        votes = next(
            (
                m
                for m in range(1, 6)
                if (top := [*sorted(Counter(said[:m]).values(), reverse=True), 0])[0] - top[1] > 5 - m
            ),
            5,
        )
        opens, needs = bool(judged.probability[i] >= 0.4), said[0] != full
        decision = full if opens else said[0]
        right = {"A": 0, "B": 1, "C": 2}[str(cube["gold"][i].item())]
        totals.update(
            needs=needs, hit=needs and opens, shut=not needs and not opens, recovered=decision == full,
            calls=votes if opens else 1, full=votes, right=decision == right, alone=said[0] == right,
        )  # fmt: skip
    n = len(rows)
    assert value(found, "needs") == pytest.approx(totals["needs"] / n)
    assert value(found, "tpr") == pytest.approx(totals["hit"] / totals["needs"])
    assert value(found, "tnr") == pytest.approx(totals["shut"] / (n - totals["needs"]))
    assert value(found, "recovered") == pytest.approx(totals["recovered"] / n)
    assert value(found, "calls") == pytest.approx(totals["calls"] / n)
    assert value(found, "calls_full") == pytest.approx(totals["full"] / n)
    assert value(found, "accuracy") == pytest.approx(totals["right"] / n)
    assert value(found, "accuracy_alone") == pytest.approx(totals["alone"] / n)
    # A hard item fails .3 x .4 of first votes; a gate that sees hardness must beat the first voter alone.
    assert value(found, "recovered") > value(found, "recovered_alone") + 0.03


def test_matthews_and_thresholds_equal_scikit_learn() -> None:
    from sklearn.metrics import matthews_corrcoef

    rng = np.random.default_rng(1)
    needs = rng.random(80) < 0.4
    probability = np.round(np.clip(needs * 0.2 + rng.random(80) * 0.8, 0, 1), 2)
    for limit in (0.2, 0.5, 0.7):
        opens = probability >= limit
        parts = [(needs & opens).sum(), (needs & ~opens).sum(), (~needs & opens).sum(), (~needs & ~opens).sum()]
        ours = matthews(*(np.array(float(x)) for x in parts))
        assert float(ours) == pytest.approx(matthews_corrcoef(needs, opens), abs=1e-12)
    every = np.unique(probability)
    best = max(matthews_corrcoef(needs, probability >= cut) for cut in (every[1:] + every[:-1]) / 2)
    found = best_threshold(probability, needs)
    assert matthews_corrcoef(needs, probability >= found) == pytest.approx(best, abs=1e-12)
    assert best_threshold(np.full(5, 0.3), np.array([1, 0, 1, 0, 1], dtype=bool)) == 0.5


def test_no_item_and_no_data_set_is_on_both_sides() -> None:
    cube = panel(60).expand_dims(order=["AB", "BA"])
    asked = {"voters": "prompt", "first": "p2", "signals": ("verdict", "order"), "features": None}
    cases = make_cases(cube, **asked, split="task", stop=None, ties="abstain", gold="", invalid="class", seed=0)
    assert cases.voters == ("p2", "p1", "p3", "p4", "p5")
    rows = np.arange(len(cases.item))
    assert len(rows) == 120
    for by_group, key in ((False, cases.item), (True, cases.group)):
        masks = folds_of(cases, rows, by_group=by_group, folds=5, seed=3)
        assert np.sum(masks, axis=0).tolist() == [1] * 120
        for test in masks:
            assert not set(key[test].tolist()) & set(key[~test].tolist())
    found = evaluate_gate(panel(), signals=("verdict", "hard"), split="task", draws=50)
    assert found.data.attrs["folds"] == 3
    assert "whole levels of task" in str(found)
    assert bool(found["calls"].lower < found["calls"].estimate)


def test_a_leak_would_show() -> None:
    """Labels of the items carry no signal across items: on unseen ones the gate is no better than chance."""
    rng = np.random.default_rng(7)
    cube = panel(300).drop_vars(["hard", "gold"])
    noise = pd.DataFrame({f"e{k}": rng.normal(size=300) for k in range(150)}, index=cube["item"].to_numpy())
    found = evaluate_gate(cube, signals=(), features=noise, threshold=0.3, draws=0)
    # Under no signal the Matthews correlation has sd 1/sqrt(300) = .058 or so: .25 is beyond 4 sd; trained and judged
    # on the same cases the same gate has more than .9.
    assert abs(value(found, "mcc")) < 0.25
    gate = fit_gate(cube, signals=(), features=noise, threshold=0.3)
    needs = make_cases(
        cube, voters="prompt", first=None, signals=(), features=noise, split="item", stop=None, ties="abstain",
        gold="", invalid="class", seed=0,
    ).needs  # fmt: skip
    opens = gate.opens({name: noise[name].to_numpy() for name in noise})
    parts = [(needs & opens).sum(), (needs & ~opens).sum(), (~needs & opens).sum(), (~needs & ~opens).sum()]
    assert matthews(*(np.array(float(x)) for x in parts)) > 0.9


def test_any_classifier_and_soft_verdicts() -> None:
    from sklearn.ensemble import RandomForestClassifier

    cube = panel(200)
    soft = np.full((200, 5, 3), 0.1)
    np.put_along_axis(soft, cube["verdict"].to_numpy()[..., None], 0.8, axis=2)
    cube = cube.assign(soft=(("item", "prompt", "class"), soft))
    forest = RandomForestClassifier(20, random_state=0)
    found = evaluate_gate(cube, signals=("soft", "hard"), classifier=forest, draws=0)
    assert value(found, "recovered") > value(found, "recovered_alone")
    gate = fit_gate(cube, signals=("soft", "hard"), classifier=forest)
    with pytest.raises(InputError, match="RandomForestClassifier cannot be written"):
        gate.save("gate.json")
    for wrong, words in (
        ({"folds": 0}, "folds: 0 is not a whole number >= 2"),
        ({"threshold": np.nan}, "no probability"),
    ):
        with pytest.raises(InputError, match=words):
            evaluate_gate(cube, signals=("soft", "hard"), draws=0, **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no signal 'length'"):
        fit_gate(cube, signals=("length",))
    with pytest.raises(InputError, match="all 200 cases are stable"):
        fit_gate(cube.assign(verdict=cube["verdict"] * 0))
    with pytest.raises(CubeError, match="no case has a vote"):
        fit_gate(cube.assign(verdict=cube["verdict"] * 0 - 1))


# Files ----------------------------------------------------------------------------------------------------------------


def test_a_saved_gate_is_the_same_gate_and_holds_no_code(tmp_path: Path) -> None:
    cube = panel()
    gate = fit_gate(cube, signals=("verdict", "hard", "task"), stop="decided")
    gate.save(tmp_path / "gate.json")
    again = open_gate(tmp_path / "gate.json")
    assert again == gate
    values = {
        "verdict": np.array(["A", "C", "⊥"]),
        "hard": np.array([0.1, 0.9, 0.5]),
        "task": np.array(["qa", "qa", "?"]),
    }
    np.testing.assert_array_equal(again.probability(values), gate.probability(values))
    stored = json.loads((tmp_path / "gate.json").read_text())
    assert stored["schema"] == "secondorder.gate/1"
    assert stored["others"] == PROMPTS[1:]
    assert stored["training"]["items"] == 400
    from sklearn.linear_model import LogisticRegression

    other = fit_gate(
        cube,
        signals=("verdict", "hard", "task"),
        stop="decided",
        classifier=LogisticRegression(max_iter=1000),
        threshold=gate.threshold,
    )
    np.testing.assert_allclose(other.probability(values), gate.probability(values), atol=1e-12)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"schema": "secondorder.cube/1"}, SchemaError),
        ({"schema": "secondorder.gate/9"}, SchemaError),
        ({"signals": [{"name": "verdict"}]}, CorruptFileError),
        ({"coefficients": [1.0]}, CorruptFileError),
        ({"threshold": "high"}, CorruptFileError),
        ({"stop": "never"}, CorruptFileError),
    ],
)
def test_damaged_gates_are_refused(tmp_path: Path, change: dict[str, object], error: type[Exception]) -> None:
    path = tmp_path / "gate.json"
    fit_gate(panel(100)).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(error):
        open_gate(path)
    path.write_text("{")
    with pytest.raises(CorruptFileError):
        open_gate(path)
    with pytest.raises(InputError):
        open_gate(tmp_path / "none.json")


# As a policy ----------------------------------------------------------------------------------------------------------

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
    from dataclasses import replace

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


GATED = """
schema = "secondorder.audit/1"
name = "gated"
seed = 3

[judges.toy]
endpoint = "openai-chat"
base_url = "{url}"
model = "toy"
concurrency = 8
body = {{ temperature = 1.0, top_p = 1.0, max_tokens = 8 }}

[items]
file = "items.jsonl"
id = "id"
stratum = "topic"
gold = "best"

[prompts]
variants = [
  {{ id = "p1", user = "Is it so? {{{{text}}}}" }},
  {{ id = "p2", user = "Would you say so? {{{{text}}}}" }},
  {{ id = "p3", user = "True? {{{{text}}}}" }},
]

[design]
repeats = 1
send = "by-item"

[verdict]
parser = "label"
labels = {{ A = "yes", B = "no", TIE = "unsure" }}
classes = ["yes", "no", "unsure"]

[gate]
file = "gate.json"
"""


def gated_audit(folder: Path, url: str) -> Path:
    """An audit behind a gate that opens for short texts, and never after the verdict "no"."""
    items = [
        {"id": f"q{i}", "topic": "even" if i % 2 == 0 else "odd", "text": "word " * (i + 1), "best": "yes"}
        for i in range(12)
    ]
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items))
    gate = Gate(
        "prompt", "p1", ("p2", "p3"), ("yes", "no", "unsure"), "class", "decided",
        (Signal("verdict", ("yes", "no", "unsure")), Signal("words:text", None, 6.0, 1.0), Signal("stratum", ("odd",))),
        0.5, (0.0, -100.0, 0.0, -1.0, 0.0, 0.5), None, {},
    )  # fmt: skip
    gate.save(folder / "gate.json")
    spec = folder / "audit.toml"
    spec.write_text(GATED.format(url=url))
    return spec


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
        ('"word"', '"word"', ""),
    ],
)
def test_gates_that_do_not_fit_their_audit_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    spec = gated_audit(tmp_path, "http://127.0.0.1:9/v1")
    spec.write_text(spec.read_text().replace(old, new))
    if words:
        with pytest.raises((SpecError, InputError, SchemaError), match=words):
            plan_audit(spec)
        return
    gate = json.loads((tmp_path / "gate.json").read_text())
    planned_folder(load_audit(spec))
    gate["threshold"] = 0.4
    (tmp_path / "gate.json").write_text(json.dumps(gate))
    with pytest.raises(SpecError, match=r"gate.content.threshold: 0.5 → 0.4"):
        planned_folder(load_audit(spec))


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
    from dataclasses import replace

    gate = gate_of()
    with pytest.raises(InputError, match="voters='prompt'"):
        GatePolicy(replace(gate, voters="judge"), {})
    first = next(call for call in CALLS if call.prompt == "p1")
    with pytest.raises(InputError, match="has no signal 'even'"):
        GatePolicy(gate, {}).observe(first, small.expected(first))
