"""Claims: the rule by which they are judged, what a planted fault does to them, files and exit codes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from scipy.stats import binomtest

import secondorder as so
from secondorder.cli import main
from secondorder.core import _estimates
from secondorder.errors import SpecError
from secondorder.simulate import Claim, Expect, Finding, Mechanism, Study, laws, load_declared, run_claim
from secondorder.simulate import _estimators as estimators
from secondorder.simulate._validate import _Compared, _interval

ROOT = Path(__file__).resolve().parents[1]
CLAIMS = sorted(path for path in (ROOT / "validation").glob("*.py") if not path.name.startswith("_"))


def load(name: str) -> Claim:
    return load_declared(ROOT / "validation" / f"{name}.py", "CLAIM", Claim)


def mechanism(R: int) -> Mechanism:
    return Mechanism(laws.effects([0.6, 0.4], {"prompt": 3}, {"prompt": 0.02}), repeats=R)


STUDY = Study("tiny", "", {"R": (2,)}, mechanism, replicates=8192, seed=3)


def claim_of(*expects: Expect, **options: Any) -> Claim:
    return Claim("tiny", "It is so.", study=STUDY, expects=expects, quick_replicates=2000, **options)


def run_command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["validate", *arguments])
    return int(ended.value.code or 0)


def test_there_are_claims_enough_and_each_says_what_it_would_see() -> None:
    loaded = [load_declared(path, "CLAIM", Claim) for path in CLAIMS]
    assert len(loaded) >= 12
    assert [claim.name for claim in loaded] == [path.stem for path in CLAIMS]
    for claim in loaded:
        assert claim.statement.endswith(".")
        assert claim.is_exact or claim.false_alarm <= 1e-6


@pytest.mark.parametrize("name", ["kernels_negative_type", "agrees_with_irrcac", "agrees_with_r"])
def test_exact_claims_hold(name: str) -> None:
    verdict = run_claim(load(name), quick=True)
    assert verdict.passed, verdict
    assert verdict.false_alarm == 0


def test_a_true_random_claim_holds_and_says_beforehand_what_it_would_see() -> None:
    said: list[str] = []
    claim = claim_of(Expect("bias", "debiased", equals=0.0), Expect("bias", "plugin", equals="plugin_bias"))
    verdict = run_claim(claim, quick=True, announce=said.append)
    assert verdict.passed, verdict
    assert said == [verdict.detectable]
    assert verdict.replicates == 2000
    # Six numbers and the failures of two estimators.
    assert len(verdict.findings) == 8
    size = float(re.search(r"off by ([0-9.e-]+)", verdict.detectable).group(1))  # type: ignore[union-attr]
    # sd of the largest is about .26: (q + z) sd / sqrt(n) with q = 5.2, z = 2.3.
    assert 0.02 < size < 0.08


@pytest.mark.parametrize(
    ("expect", "holds"),
    [
        (Expect("bias", "plugin", equals=0.0), False),
        (Expect("bias", "plugin", at_least=0.1, estimands=("prompt",)), True),
        (Expect("bias", "plugin", at_most=0.1, estimands=("prompt",)), False),
        (Expect("bias", "debiased", equals=lambda point, name: 0.0 * len(point), where={"R": 2}), True),
        (Expect("bias", "debiased", equals=0.2, tolerance=0.25), True),
        (Expect("negative", "debiased", at_least=0.2, at_most=0.6, estimands=("prompt",)), True),
        (Expect("negative", "plugin", at_least=0.1, estimands=("prompt",)), False),
        (Expect("coverage", "debiased", at_least=0.9, estimands=("call",)), False),
    ],
)
def test_what_is_expected_decides(expect: Expect, holds: bool) -> None:
    # The last: one item has no interval over items, and what is undefined does not hold.
    assert run_claim(claim_of(expect), quick=True).passed is holds


def test_shares_are_judged_by_exact_binomial_limits() -> None:
    for hits, trials in ((0, 50), (3, 50), (50, 50), (400, 1000)):
        number = _Compared(Expect("coverage", "x", equals=0.5), {}, "call", hits / trials, 0.0, trials, (0.5, 0.5))
        exact = binomtest(hits, trials).proportion_ci(0.999, method="exact")
        assert _interval(number, 0.001) == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_a_check_that_breaks_down_has_not_shown_anything() -> None:
    def breaks(quick: bool) -> Iterator[Finding]:
        yield Finding.equal("one", 1, 1)
        raise ValueError("no")

    verdict = run_claim(Claim("broken", "It is so.", breaks, "anything"))
    assert not verdict.passed
    assert "ValueError: no" in str(verdict)
    assert not run_claim(Claim("empty", "It is so.", lambda quick: [], "anything")).passed

    def leaves(quick: bool) -> Iterator[Finding]:
        raise SystemExit(0)

    assert "SystemExit: 0" in str(run_claim(Claim("leaves", "It is so.", leaves, "anything")))
    words: Any = lambda quick: ["it holds"]  # noqa: E731
    assert "gives a str, not a Finding" in str(run_claim(Claim("words", "It is so.", words, "anything")))


def test_undefined_numbers_never_pass() -> None:
    nan = float("nan")
    assert not Finding.close("x", nan, 0.0, 1.0).passed
    assert not Finding.at_least("x", nan, 0.0).passed
    assert not Finding.at_most("x", nan, 0.0).passed
    evidence = run_claim(Claim("nan", "It is so.", lambda quick: [Finding.close("x", nan, 0, 1)], "any")).evidence()
    assert json.loads(json.dumps(evidence, allow_nan=False))["findings"][0]["found"] is None


# --- planted faults -------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh() -> Iterator[None]:
    """Compiled functions forget what they were compiled from, before the fault and after it."""
    jax.clear_caches()
    yield
    jax.clear_caches()


def test_plugin_in_place_of_debiased_fails_the_exact_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(n: Any, mean: Any, self: Any, design: Any, components: Any, kernel: Any) -> Any:
        return _estimates.plugin_from(mean, design, components, kernel)

    monkeypatch.setattr(so.core, "complete_pairs_from", fault, raising=False)
    claim = load("unbiased_exact")
    assert claim.check is not None
    # The first experiment is enough; the whole claim takes as long as it takes.
    first = list(islice(claim.check(True), 3))
    assert [finding.passed for finding in first] == [False] * 3


@pytest.mark.usefixtures("fresh")
def test_a_correction_one_in_a_million_short_leaves_the_values_of_r(monkeypatch: pytest.MonkeyPatch) -> None:
    right = _estimates.self_corrections
    monkeypatch.setattr(
        _estimates, "self_corrections", lambda *args: [(1 - 1e-6) * value for value in right(*args)], raising=False
    )
    check = load("agrees_with_r").check
    assert check is not None
    found = {finding.what: finding.passed for finding in islice(check(True), 9)}
    assert {what for what, passed in found.items() if not passed} == {
        f"aov, census: {name}" for name in ("call", "prompt", "order", "prompt:order")
    }


@pytest.mark.usefixtures("fresh")
def test_a_correction_one_per_cent_short_fails_the_random_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    right = estimators.self_corrections
    monkeypatch.setattr(estimators, "self_corrections", lambda *args: [0.99 * value for value in right(*args)])
    claim = claim_of(Expect("bias", "debiased", equals=0.0))
    study = so.simulate.Study("tiny", "", {"R": (2,)}, mechanism, replicates=3_000_000, seed=3)
    assert not run_claim(Claim("tiny", "It is so.", study=study, expects=claim.expects, quick_replicates=1)).passed


@pytest.mark.usefixtures("fresh")
def test_a_generator_that_is_off_fails_the_draws_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    uniform = jax.random.uniform
    monkeypatch.setattr(jax.random, "uniform", lambda *args, **options: uniform(*args, **options) ** 1.02)
    assert not run_claim(load("draws_follow_the_law"), quick=True).passed


# --- files and commands ---------------------------------------------------------------------------------------------


def write_claim(folder: Path, name: str, found: int) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.py").write_text(
        "from secondorder.simulate import Claim, Finding\n"
        f"CLAIM = Claim({name!r}, 'It is so.', lambda quick: [Finding.equal('x', {found}, 1)], 'any')\n"
    )


def test_the_command_keeps_evidence_and_exits_1_when_a_claim_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_claim(tmp_path / "validation", "good", 1)
    write_claim(tmp_path / "validation", "bad", 2)
    assert run_command("good", "--out", "kept") == 0
    assert run_command("validation/bad.py", "good", "--out", "kept") == 1
    out = capsys.readouterr().out
    assert "1 of 2 claims hold; failed: bad" in out
    evidence = json.loads((tmp_path / "kept" / "bad.json").read_text())
    assert evidence["verdict"] == "fails"
    assert evidence["findings"] == [{"what": "x", "found": "2", "expected": "1", "limit": 0.0, "passed": False}]
    assert json.loads((tmp_path / "kept" / "good.json").read_text())["verdict"] == "holds"
    assert run_command("--list") == 0
    listed = capsys.readouterr().out
    assert "good" in listed
    assert "It is so." in listed
    assert "…" not in listed  # also of the claims that ship
    assert max(map(len, listed.splitlines())) <= 80


def test_wrong_commands_exit_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command("no_such_claim") == 2
    assert "there is no claim 'no_such_claim'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"name": "a b", "check": lambda quick: []}, "letters"),
        ({}, "exactly one"),
        ({"check": lambda quick: []}, "detectable"),
        ({"study": STUDY}, "quick_replicates"),
        ({"check": lambda quick: [], "detectable": "x", "false_alarm": 0.7}, "false alarm"),
    ],
)
def test_incomplete_claims_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        Claim(**{"name": "x", "statement": "It is so.", **options})


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"measure": "speed"}, "bias"),
        ({"measure": "bias"}, "neither or both"),
        ({"measure": "bias", "equals": 0.0, "at_least": 0.0}, "neither or both"),
        ({"measure": "bias", "equals": "zero"}, "plugin_bias"),
    ],
)
def test_incomplete_expectations_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        Expect(**{"estimator": "debiased", **options})


def test_false_alarms_come_at_most_at_the_stated_rate() -> None:
    # 400 true claims at a rate of 20 % shared by three numbers: a binomial with p <= .2 exceeds 118 once in a million.
    rng = np.random.default_rng(1)
    failed = 0
    for _ in range(400):
        values = rng.exponential(1.0, (3, 500))
        numbers = [
            _Compared(Expect("bias", "x", equals=0.0), {}, "call", v.mean() - 1, v.std(ddof=1) / 500**0.5, 500, (0, 0))
            for v in values
        ]
        limits = [_interval(number, 0.2 / 3) for number in numbers]
        failed += any(low > 0 or high < 0 for low, high in limits)
    assert 20 < failed <= 118
