"""Before an audit: does its transport give independent answers, and does everything else fit? No ledger is touched."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from secondorder._audit._plan import Audit
from secondorder._labels._remedies import REMEDIES
from secondorder._labels._results import Table, printed, render_table
from secondorder.acquire import AuditSpec, Call, Plan, make_parse, make_soft, outcome_of, plan, spec_warnings
from secondorder.acquire._cache_signs import cache_signs
from secondorder.acquire._canary import Probe, probe_judge
from secondorder.acquire._http import Exchange, check_judge
from secondorder.acquire._reading import Completion
from secondorder.acquire._spec import JudgeSpec
from secondorder.acquire._verdict import CUT
from secondorder.errors import EndpointError, SpecError

__all__ = ["Checkup", "Finding", "examine"]

Mark = Literal["ok", "note", "problem", "failed"]

TELLING = 20
"""Characters of a random answer that two calls do not share by chance."""
COLD = 0.2
"""Temperature below which equal answers may be the law itself."""
SHOWN = 48
SOFT_REMEDIES = {
    "unaligned": "the listed tokens do not spell the answer: make the server list them as text",
    "several_places": "ask for the verdict once",
    "several_tokens": "choose labels that are one token each",
    "not_first": 'hidden tokens are sampled first: write soft = { token = "verdict" }, or turn reasoning off',
    "no_verdict_token": 'is the first token the verdict? else write soft = { token = "verdict" }',
}
SAMPLE = 200
CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True)
class Finding:
    """One thing that was checked about one judge.

    Attributes
    ----------
    judge : str
        Empty for what concerns the whole audit.
    check : str
    mark : {"ok", "note", "problem", "failed"}
        A note is worth reading; a problem makes the audit's numbers wrong or its answers ⊥.
    seen : str
        What was seen.
    remedy : str
    """

    judge: str
    check: str
    mark: Mark
    seen: str
    remedy: str = ""


@printed
@dataclass(frozen=True)
class Checkup:
    """What was found before an audit.

    Attributes
    ----------
    findings : tuple of Finding
    failures : tuple of EndpointError
        Judges that could not be asked.
    sent : int
        Requests that were sent.
    """

    findings: tuple[Finding, ...]
    failures: tuple[EndpointError, ...]
    sent: int

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Findings that have to be mended before the audit means anything."""
        return tuple(found for found in self.findings if found.mark == "problem")

    def tables(self) -> tuple[Table, ...]:
        """Findings, with the remedies below."""
        rows = tuple((found.judge, found.check, found.mark, found.seen) for found in self.findings)
        notes = [
            f"{found.mark}: {found.judge + ' ' if found.judge else ''}{found.check}: {found.remedy}"
            for found in self.findings
            if found.remedy
        ]
        notes.append(f"{self.sent} requests were sent; none is part of the audit.")
        return (Table("", ("judge", "check", "", "seen"), rows, tuple(notes)),)

    def __str__(self) -> str:
        return render_table(self.tables()[0])


def examine(audit: Audit, *, pause_s: float = 1.0) -> Checkup:
    """Send a few canary calls through the audit's own transport and look at what comes back.

    Four answers per judge: a question with unpredictable answers under two seeds and once more under the first, and one
    call of the audit's own, which also asks for log-probabilities.

    Parameters
    ----------
    audit : Audit
    pause_s : float
        Before a request without completion is sent again.

    Raises
    ------
    SpecError
        When the audit cannot be planned, or a key is not there: nothing was sent.
    """
    planned = plan(audit.spec, audit.items)
    for name, judge in audit.spec.judges.items():
        check_judge(name, judge)
    first = {name: next(call for call in planned.calls if call.judge == name) for name in audit.spec.judges}
    sent = Counter[str]()
    ends = asyncio.run(_probe_all(audit.spec, first, pause_s, sent))
    findings: list[Finding] = []
    failures: list[EndpointError] = []
    for name, judge in audit.spec.judges.items():
        end = ends[name]
        if isinstance(end, EndpointError):
            failures.append(end)
            findings.append(Finding(name, "endpoint", "failed", end.problem, end.remedy or ""))
            continue
        findings += [
            _endpoint(name, end),
            _model(name, judge, end),
            *_copies(name, judge, end),
            _ids(name, judge, end),
            *_parser(name, audit.spec, first[name], end),
            _logprobs(name, judge, end),
            *_soft(name, audit.spec, first[name], end),
            *_cost(name, judge, planned, end),
        ]
    said = (*spec_warnings(audit.spec, file=audit.file.name), *planned.notes)
    findings += [Finding("", "specification", "note", "see below", line) for line in said]
    return Checkup(tuple(findings), tuple(failures), sent.total())


async def _probe_all(
    spec: AuditSpec, first: dict[str, Call], pause_s: float, sent: Counter[str]
) -> dict[str, Probe | EndpointError]:
    async def one(name: str, judge: JudgeSpec) -> Probe | EndpointError:
        try:
            return await probe_judge(name, judge, first[name], spec.seed, sent=sent, pause_s=pause_s)
        except EndpointError as error:
            return error

    ends = await asyncio.gather(*(one(name, judge) for name, judge in spec.judges.items()))
    return dict(zip(spec.judges, ends, strict=True))


def _completion(exchange: Exchange) -> Completion:
    assert isinstance(exchange.reading, Completion)
    return exchange.reading


def _endpoint(name: str, probe: Probe) -> Finding:
    slowest = max(each.latency_ms for each in (*probe.canaries, probe.real))
    return Finding(name, "endpoint", "ok", f"answers, slowest of 4 in {slowest / 1000:.1f} s")


def _model(name: str, judge: JudgeSpec, probe: Probe) -> Finding:
    answers = [_completion(each) for each in (*probe.canaries, probe.real)]
    # An answer of a content filter names nothing: what is absent is no change.
    parts = ("model", "fingerprint", "tier", "provider")
    values = {part: {getattr(answer, part) for answer in answers} - {""} for part in parts}
    changed = [part for part in parts if len(values[part]) > 1]
    served = ", ".join(sorted(values["model"])) or "not named"
    if changed:
        return Finding(
            name,
            "model",
            "problem",
            f"{', '.join(changed)} changed within 4 calls",
            "calls of different servers are not one judge: name a fixed model version, or pin the provider",
        )
    if served not in (judge.model, "not named"):
        seen = f"asked for {judge.model}, served as {served}"
        return Finding(name, "model", "note", seen, "write the served name into model, so that an alias cannot move")
    return Finding(name, "model", "ok", ", ".join([served, *values["fingerprint"]]))


def _copies(name: str, judge: JudgeSpec, probe: Probe) -> list[Finding]:
    """Whether the canaries are answers of their own."""
    first, other, again = (_completion(each) for each in probe.canaries)
    different = "another seed" if judge.seeds else "the same request again"
    found: list[Finding]
    if min(len(answer.text.strip()) for answer in (first, other, again)) < TELLING:
        seen = f"cannot tell: the random answer is too short ({first.text.strip()[:SHOWN]!r})"
        remedy = "look at the repeats of a pilot: secondorder check"
        found = [Finding(name, "independence", "note", seen, remedy)]
    elif first.text == other.text or (not judge.seeds and again.text in (first.text, other.text)):
        found = [_copied(name, judge, probe)]
    else:
        found = [Finding(name, "independence", "ok", f"{different}, another answer")]
    if judge.seeds and first.text != other.text:
        found.append(_seeds(name, probe))
    return found


def _copied(name: str, judge: JudgeSpec, probe: Probe) -> Finding:
    """Two requests got one text: which of the ways that lead there?"""
    first, other, again = (_completion(each) for each in probe.canaries)
    one, two = (probe.first, probe.other) if first.text == other.text else (probe.first, probe.again)
    signs = [sign for each in (two, probe.again) for sign in cache_signs(_completion(each), each.headers)]
    temperature = judge.body.get("temperature")
    remedy = "without independent answers call noise is booked as prompt effect: "
    if one.body == two.body or (_completion(one).id and _completion(one).id == _completion(two).id):
        seen, cure = "response cache: the same answer, to the byte", "switch it off at the server or proxy"
    elif signs:
        seen, cure = f"response cache of a proxy: {signs[0]}", "switch it off, or go round the proxy"
    elif judge.body.get("top_k") == 1 or (isinstance(temperature, int | float) and temperature < COLD):
        seen = f"the same text, as temperature = {temperature} makes it"
        return Finding(name, "independence", "note", seen, "repeats say nothing new at this temperature")
    elif first.text == other.text != again.text:
        seen, cure = "answers are delivered twice: two requests, one text, then another", "mend the server or proxy"
    elif judge.seeds:
        seen, cure = (
            "the text does not depend on the seed: fixed seed, doubled answers, or a cache without a sign",
            "make the server take seeds; is its sampling greedy?",
        )
    else:
        seen, cure = (
            "the same request, the same text: fixed seed or cache",
            "switch the cache off; is its sampling greedy?",
        )
    return Finding(name, "independence", "problem", seen, remedy + cure)


def _seeds(name: str, probe: Probe) -> Finding:
    first, again = _completion(probe.first), _completion(probe.again)
    if first.text != again.text:
        return Finding(name, "seeds", "ok", "same seed, another text: seeds do not fix the answer (best effort)")
    if probe.first.body == probe.again.body or (first.id and first.id == again.id):
        seen = "the same bytes come from a cache"
        return Finding(name, "seeds", "note", seen, "harmless while every call has a seed of its own, as here")
    return Finding(name, "seeds", "ok", "same seed, same text: a call can be made again")


def _ids(name: str, judge: JudgeSpec, probe: Probe) -> Finding:
    # The first request came twice on purpose; with seeds, no other pair of calls is alike.
    own = (probe.first, probe.other, probe.real) if judge.seeds else (*probe.canaries, probe.real)
    ids = [_completion(each).id for each in own]
    if not all(ids):
        return Finding(name, "response ids", "note", "none", "doubled answers cannot be seen in the ledger")
    if len(set(ids)) < len(ids):
        seen = f"{len(ids) - len(set(ids)) + 1} of {len(ids)} answers share an id"
        return Finding(name, "response ids", "problem", seen, "one answer counts as several calls: find the cache")
    return Finding(name, "response ids", "ok", f"{len(ids)} of {len(ids)} are distinct")


def _parser(name: str, spec: AuditSpec, call: Call, probe: Probe) -> list[Finding]:
    answer = _completion(probe.real)
    try:
        outcome = outcome_of(answer, make_parse(spec), call)
    except SpecError as error:
        return [Finding(name, "parser", "problem", error.problem, error.remedy or "")]
    finish = Finding(name, "finish reason", "ok", answer.finish_reason or "not named")
    if answer.finish_reason in CUT:
        seen = f"{answer.finish_reason}: cut at the token limit"
        finish = Finding(name, "finish reason", "problem", seen, REMEDIES["truncated"])
    said = " ".join(answer.text.split())
    said = said if len(said) <= SHOWN else said[: SHOWN - 1] + "…"
    if outcome.status == "valid":
        # Under the other order the same answer may stand for another class.
        shown = f" (order {call.order})" if call.order else ""
        return [finish, Finding(name, "parser", "ok", f"answer {said!r}{shown} = class {outcome.verdict}")]
    remedy = REMEDIES[outcome.reason] if answer.finish_reason not in CUT else "a cut answer is ⊥: see finish reason"
    return [finish, Finding(name, "parser", "problem", f"⊥ {outcome.reason}: {said!r}", remedy)]


def _logprobs(name: str, judge: JudgeSpec, probe: Probe) -> Finding:
    seen = {True: "offered", False: "not offered", None: "this kind of endpoint is not asked"}[probe.logprobs]
    if judge.soft is not None and not probe.logprobs:
        return Finding(name, "logprobs", "problem", seen, "without them no call has a soft verdict: leave soft out")
    return Finding(name, "logprobs", "ok", seen)


def _soft(name: str, spec: AuditSpec, call: Call, probe: Probe) -> list[Finding]:
    """What the one real call says as a soft verdict, where the audit asks for them."""
    if spec.judges[name].soft is None or not probe.logprobs:
        return []
    answer = _completion(probe.real)
    try:
        outcome = outcome_of(answer, make_parse(spec), call)
    except SpecError:
        return []  # said of the parser
    soft = make_soft(spec)(call, outcome, answer, probe.real.body or b"")
    if soft.reason:
        remedy = SOFT_REMEDIES.get(soft.reason, "look at what the server lists")
        return [Finding(name, "soft verdict", "problem", f"none: {soft.reason}", remedy)]
    said = ", ".join(f"{label} {p:.3f}" for label, p in sorted(soft.probabilities.items()))
    return [Finding(name, "soft verdict", "ok", f"{said or '⊥'}; unlisted {soft.unlisted:.3f}")]


def _cost(name: str, judge: JudgeSpec, planned: Plan, probe: Probe) -> list[Finding]:
    """Tokens, money and time of the whole audit, from one answer of its own."""
    calls = len(planned.calls) // len(planned.spec.judges)
    answer = _completion(probe.real)
    ranks = range(0, len(planned.calls), max(1, len(planned.calls) // SAMPLE))
    sizes = [len(call.request) for call in (planned.calls[rank] for rank in ranks) if call.judge == name]
    mean = sum(sizes) / len(sizes) if sizes else len(probe.request)
    share = (answer.prompt_tokens or len(probe.request) / CHARACTERS_PER_TOKEN) / len(probe.request)
    prompt, completion = calls * mean * share, calls * (answer.completion_tokens or 0)
    seen = f"{calls:,} calls, about {_big(prompt)} tokens in, {_big(completion)} out"
    if judge.price is not None:
        usd = (prompt * judge.price.input + completion * judge.price.output) / 1e6
        seen += f": {f'{usd:,.2f}' if usd >= 1 else f'{usd:.2g}'} USD"
    seconds = calls * probe.real.latency_ms / 1000 / judge.concurrency
    if judge.requests_per_minute is not None:
        seconds = max(seconds, 60 * calls / judge.requests_per_minute)
    return [
        Finding(name, "cost", "ok", seen),
        Finding(name, "time", "ok", f"about {_time(seconds)} at {judge.concurrency} calls in flight"),
    ]


def _big(number: float) -> str:
    return f"{number / 1e6:.1f} M" if number >= 1e6 else f"{number / 1e3:.1f} k" if number >= 1e3 else f"{number:.0f}"


def _time(seconds: float) -> str:
    return (
        f"{seconds / 3600:.1f} h"
        if seconds >= 5400
        else f"{seconds / 60:.0f} min"
        if seconds >= 90
        else f"{seconds:.0f} s"
    )
