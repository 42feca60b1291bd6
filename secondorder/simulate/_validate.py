"""Running a claim: what it could see is computed first, then it is run, then judged; the evidence is kept."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from scipy.special import betaincinv, ndtri

from secondorder._labels._results import Table, printed, render_table
from secondorder._version import __version__
from secondorder.simulate._claim import Claim, Expect, Finding
from secondorder.simulate._measures import SHARES, SUMS
from secondorder.simulate._result import StudyResult
from secondorder.simulate._runner import Progress, run_study
from secondorder.simulate._study import Point, Study, point_label

__all__ = ["EVIDENCE_SCHEMA", "Verdict", "run_claim"]

EVIDENCE_SCHEMA = "secondorder.evidence/1"
PILOT_REPLICATES = 2048
# Rounding of sums over replicates: what a spread of exactly 0 leaves between a mean and its closed form.
ROUNDING = 1e-11
SHOWN_FINDINGS = 60


@printed
@dataclass(frozen=True)
class Verdict:
    """What came of a claim; prints as a table of the numbers nearest to failing.

    Attributes
    ----------
    claim, statement : str
    passed : bool
    false_alarm : float
        Largest probability that it fails although the claim is true; 0 for exact checks.
    detectable : str
        The discrepancy that it would find, computed before the run.
    power : float
        With which probability; 1 for exact checks.
    findings : tuple of Finding
    quick : bool
    study : str
        Digest of the study; empty for exact checks.
    replicates : int
    """

    claim: str
    statement: str
    passed: bool
    false_alarm: float
    detectable: str
    power: float
    findings: tuple[Finding, ...]
    quick: bool
    study: str = ""
    replicates: int = 0

    def evidence(self) -> dict[str, Any]:
        """Plain data for the evidence file: every failed finding, and the first of the others."""
        failed = [finding for finding in self.findings if not finding.passed]
        others = [finding for finding in self.findings if finding.passed]
        kept = [*failed, *others[: max(0, SHOWN_FINDINGS - len(failed))]]
        return {
            "schema": EVIDENCE_SCHEMA,
            "claim": self.claim,
            "statement": self.statement,
            "verdict": "holds" if self.passed else "fails",
            "false_alarm": self.false_alarm,
            "detectable": self.detectable,
            "power": self.power,
            "quick": self.quick,
            "numbers": len(self.findings),
            "failed": len(failed),
            "findings": [_plain(finding) for finding in kept],
            "study": {"digest": self.study, "replicates": self.replicates} if self.study else None,
            "versions": {
                "secondorder": __version__,
                "python": platform.python_version(),
                **{name: version(name) for name in ("numpy", "scipy", "jax")},
            },
        }

    def __str__(self) -> str:
        failed = [finding for finding in self.findings if not finding.passed]
        rows = tuple((f.what, f.found, f.expected, f.limit) for f in failed[:12])
        head = f"{self.claim}: {'holds' if self.passed else 'FAILS'} ({len(self.findings)} numbers)\n{self.statement}"
        notes = [f"false alarm <= {self.false_alarm:g}; would see: {self.detectable}"]
        if not rows:
            return f"{head}\n{notes[0]}"
        if len(failed) > len(rows):
            notes.append(f"and {len(failed) - len(rows)} more")
        return render_table(Table(head, ("number", "found", "expected", "limit"), rows, tuple(notes)), width=110)


def _plain(finding: Finding) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(finding)
    # JSON has no NaN.
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in plain.items()}


def run_claim(
    claim: Claim,
    *,
    quick: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
    announce: Callable[[str], None] | None = None,
    source: Path | str | None = None,
) -> Verdict:
    """Run a claim and judge it.

    For a random check, the accepted values of every compared number must meet its confidence interval of level
    ``1 - false_alarm / m``, with m the number of comparisons (Clopper-Pearson for shares, normal otherwise).

    Parameters
    ----------
    claim : Claim
    quick : bool
        Fewer replicates, fewer cases.
    executor : concurrent.futures.Executor, optional
    progress : callable, optional
        Called with (replicates done, in all).
    announce : callable, optional
        Called with the detectable discrepancy before the run.
    source : path, optional
        File that the claim was loaded from.

    Returns
    -------
    Verdict

    Examples
    --------
    >>> claim = Claim("sum", "One and one make two.", lambda quick: [Finding.equal("1 + 1", 1 + 1, 2)], "any error")
    >>> print(run_claim(claim))
    sum: holds (1 numbers)
    One and one make two.
    false alarm <= 0; would see: any error
    """
    if claim.study is None:
        if announce is not None:
            announce(claim.detectable)
        findings = tuple(_checked(claim, quick))
        passed = bool(findings) and all(finding.passed for finding in findings)
        return Verdict(claim.name, claim.statement, passed, 0.0, claim.detectable, 1.0, findings, quick)
    replicates = claim.quick_replicates if quick else claim.study.replicates
    study = msgspec.structs.replace(claim.study, replicates=replicates)
    options: dict[str, Any] = {"executor": executor, "source": source}
    detectable = _detectable(claim, study, options)
    if announce is not None:
        announce(detectable)
    result = run_study(study, progress=progress, **options)
    findings = tuple(_judged(claim, study, result))
    passed = bool(findings) and all(finding.passed for finding in findings)
    digest = str(result.data.attrs["digest"])
    return Verdict(
        claim.name,
        claim.statement,
        passed,
        claim.false_alarm,
        detectable,
        claim.power,
        findings,
        quick,
        digest,
        replicates,
    )


def _checked(claim: Claim, quick: bool) -> Iterator[Finding]:
    assert claim.check is not None
    try:
        for finding in claim.check(quick):
            if not isinstance(finding, Finding):
                raise TypeError(f"check gives a {type(finding).__name__}, not a Finding")
            yield finding
    except (Exception, SystemExit) as error:  # Whatever stops a check, the claim has not been shown to hold.
        yield Finding("the check runs to its end", f"{type(error).__name__}: {error}", "no error", 0.0, False)


class _Compared(NamedTuple):
    """One number of the study with the values that the claim accepts."""

    expect: Expect
    point: Point
    estimand: str
    value: float
    mcse: float
    trials: float
    accepted: tuple[float, float]


def _compared(expects: Sequence[Expect], study: Study, result: StudyResult) -> Iterator[_Compared]:
    data = result.data
    for expect in expects:
        estimands = list(expect.estimands) or [str(name) for name in data["estimand"].values]
        counted = SUMS.index(SHARES.get(expect.measure, "values"))
        for point in study.points():
            if any(point[factor] != level for factor, level in expect.where.items()):
                continue
            place = {name: str(level) if isinstance(level, bool) else level for name, level in point.items()}
            for estimand in estimands:
                cell = data.sel({**place, "estimator": expect.estimator, "estimand": estimand})
                value = float(cell[expect.measure])
                if math.isnan(value) and not expect.estimands:
                    continue
                closed = float(cell["plugin_bias"])
                yield _Compared(
                    expect, point, estimand, value, float(cell[f"{expect.measure}_mcse"]),
                    float(cell["sums"].values[counted]), expect.accepted(point, estimand, closed),
                )  # fmt: skip


def _judged(claim: Claim, study: Study, result: StudyResult) -> Iterator[Finding]:
    numbers = list(_compared(claim.expects, study, result))
    rate = claim.false_alarm / max(1, len(numbers))
    for number in numbers:
        low, high = _interval(number, rate)
        first, last = number.accepted
        what = f"{number.expect.measure} of {number.expect.estimator} {number.estimand} at {point_label(number.point)}"
        expected = first if first == last else f"in [{first:g}, {last:g}]"
        # NaN compares false: an undefined number never passes.
        yield Finding(what, number.value, expected, (high - low) / 2, low <= last and high >= first)
    named = {expect.estimator for expect in claim.expects}
    if not any(expect.measure == "failure" for expect in claim.expects):
        for estimator in sorted(named):
            failed = float(result.data["failed"].sel(estimator=estimator, estimand=_defined(result, estimator)).sum())
            yield Finding.equal(f"failed replicates of {estimator}", failed, 0.0)


def _defined(result: StudyResult, estimator: str) -> list[str]:
    # Built-in methods have no value for estimands that are not components: that is no failure.
    values = result.data["sums"].sel(estimator=estimator, sum="values")
    factors = [dim for dim in values.dims if dim != "estimand"]
    return [str(name) for name in values["estimand"].values[(values > 0).any(factors).values]]


def _interval(number: _Compared, rate: float) -> tuple[float, float]:
    if math.isnan(number.value):
        return math.nan, math.nan
    if number.expect.measure in SHARES:
        trials, hits = number.trials, round(number.value * number.trials)
        low = float(betaincinv(hits, trials - hits + 1, rate / 2)) if hits > 0 else 0.0
        high = float(betaincinv(hits + 1, trials - hits, 1 - rate / 2)) if hits < trials else 1.0
        return low, high
    half = -float(ndtri(rate / 2)) * number.mcse + ROUNDING
    return number.value - half, number.value + half


def _detectable(claim: Claim, study: Study, options: dict[str, Any]) -> str:
    # From a pilot with its own random numbers: the verdict's replicates are not looked at before the rule is fixed.
    pilot_study = msgspec.structs.replace(
        study, name=f"{study.name}-pilot", replicates=min(PILOT_REPLICATES, study.replicates)
    )
    result = run_study(pilot_study, **options)
    numbers = list(_compared(claim.expects, pilot_study, result))
    rate = claim.false_alarm / max(1, len(numbers))
    reach = -float(ndtri(rate / 2)) + float(ndtri(claim.power))
    largest: dict[str, float] = {}
    for number in numbers:
        if number.trials < 2 or math.isnan(number.value):
            continue
        shrink = math.sqrt(pilot_study.replicates / study.replicates)
        spread = number.mcse * shrink
        if number.expect.measure in SHARES:
            # A share of 0 or 1 in the pilot does not mean that it has no spread.
            share = min(max(number.value, 1 / number.trials), 1 - 1 / number.trials)
            spread = math.sqrt(share * (1 - share) / number.trials) * shrink
        size = reach * spread + number.expect.tolerance
        largest[number.expect.measure] = max(largest.get(number.expect.measure, 0.0), size)
    sizes = ", ".join(f"{measure} off by {size:.2g}" for measure, size in largest.items())
    return f"{sizes} (power {claim.power:g}, {len(numbers)} numbers)"
