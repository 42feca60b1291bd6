"""promptfoo: the ``.json`` or ``.jsonl`` that ``promptfoo eval --output`` writes.

Read from promptfoo 0.121.20 (``EvaluateResult``, ``GradingResult``, ``OutputFile``; the evaluator and its graders), and
issue #360 on repeats from the cache. Files of versions 2 and 3 hold the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from secondorder._canon import join_key
from secondorder.errors import TableError
from secondorder.interop._files import (
    ABSENT,
    Paths,
    Source,
    as_list,
    as_object,
    digest,
    json_lines,
    json_value,
    needed,
    pick,
    pick_or,
    record_of,
    short,
)
from secondorder.interop._files import sources as open_all
from secondorder.interop._finish import SINGLE, Cached, Call, finish
from secondorder.interop._log import Log
from secondorder.interop._verdicts import Parse, Read, Said, failure, invalid, reader

__all__ = ["read_promptfoo"]

Verdict = Literal["pass", "score", "output"]

ERROR = 2
"""``failureReason`` of a row whose request failed."""

NO_GRADE = re.compile(
    r"no output$|could not (extract|parse)|error parsing output|(model grader|[\w-]+) produced (a )?malformed response",
    re.I,
)
"""How the reason begins of a grader that answered without a grade."""

NO_GRADER = re.compile(r"api (call |response )?error|could not perform remote grading|remote grading failed", re.I)
"""How it begins of a grader that did not answer; older files have no other sign of either."""


NO_ASSERTIONS = "No assertions"
"""Reason of a row that passed because nothing was asked of it."""


class _Row(NamedTuple):
    place: str
    fields: Mapping[str, Any]
    item: str
    varied: tuple[str, ...]
    turn: tuple[int, int] | None


def read_promptfoo(
    path: Paths,
    *,
    verdict: Verdict = "pass",
    assertion: str | Sequence[str] | None = None,
    item: str | Sequence[str] | None = None,
    prompt: str | None = None,
    order: str | None = None,
    judge: str | None = None,
    labels: Mapping[str, str] | None = None,
    classes: Sequence[str] | None = None,
    parse: Parse | None = None,
    cached: Cached = "refuse",
) -> Log:
    """Judgements of a promptfoo evaluation.

    Two uses are read. Where a model grades answers (``llm-rubric`` and the like), the verdict is the ``pass`` or the
    ``score`` of that assertion, and the item is the answer: provider, prompt and variables. Where the provider itself
    is the judge, the verdict is its ``output``, and the item is the variables. A failed request, and a grader that gave
    no grade, are written by promptfoo as failed assertions of score 0: here they are missing or ⊥.

    Parameters
    ----------
    path : path or sequence of paths
        Several files are further repeats.
    verdict : {"pass", "score", "output"}
    assertion : str or sequence of str, optional
        Type or metric of the assertion; needed where a row has several. Several of them are wordings of one question:
        levels of the prompt.
    item : str or sequence of str, optional
        Variables that identify the item. Default: all but those of `prompt` and `order`.
    prompt, order : str, optional
        Dotted path in a row of the prompt (default: the label of its prompt, or the assertion) and of the order shown
        (``AB``, ``BA``), such as ``vars.order``.
    judge : str, optional
        Default: the provider for ``output``, the assertion's own provider for a grade where the file names it.
    labels, classes, parse
        As for :func:`read_lm_eval`.
    cached : {"refuse", "drop", "keep"}
        Answers that promptfoo took from its cache. Until April 2026 ``--repeat`` was served from one entry; since then
        there is one entry per repeat, so that a file that was made again from a full cache can be kept.

    Returns
    -------
    Log
        With columns ``vars.NAME`` and ``text``.

    Raises
    ------
    TableError
        Naming file and row.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "output.json")
    >>> row = {"testIdx": 0, "promptIdx": 0, "promptId": "p", "provider": {"id": "judge"}, "vars": {"text": "t"}}
    >>> answer = {**row, "response": {"output": "A", "cached": False}, "success": True, "failureReason": 0}
    >>> _ = path.write_text(json.dumps({"results": {"version": 3, "results": [answer]}}))
    >>> [(row["judge"], row["verdict"]) for row in read_promptfoo(path, verdict="output")]
    [('judge', 'A')]
    """
    files = open_all(path)
    graded = verdict != "output"
    rows = _rows(files, item, graded, prompt, order)
    read = reader(labels, classes, parse)
    names = _prompt_names(rows)
    wanted = [assertion] if assertion is None or isinstance(assertion, str) else list(assertion)
    calls: list[Call] = []
    mislabelled = 0
    for row, repeat in zip(rows, _repeats(rows), strict=True):
        place, fields = row.place, row.fields
        with record_of("promptfoo", place):
            shown = SINGLE if order is None else short(needed(fields, order, place))
            for wording in wanted if graded else [None]:
                grade = _grade(fields, wording, place) if graded else None
                if grade is None:
                    said, failed = _output(fields, read, shown), False
                    name = names[short(fields.get("promptId"))]
                else:
                    said, failed = _graded(fields, grade, verdict, read, shown, place)
                    name = wording or "default"
                mislabelled += failed
                calls.append(
                    Call(
                        place,
                        judge or _judge(fields, grade),
                        row.item,
                        said,
                        prompt=name if prompt is None else short(needed(fields, prompt, place)),
                        order=shown,
                        repeat=repeat,
                        cached=_cached(fields, grade),
                        more={**_vars(fields), "text": _text(fields, grade), **_latency(fields, grade)},
                    )
                )
    notes = []
    if mislabelled:
        notes.append(
            f"Failures of the grader that the file has as failed assertions, ⊥ or missing here: {mislabelled}."
        )
    if graded and _answers_differ(rows):
        notes.append("Repeats grade answers that differ: call noise is that of the answers and the judge together.")
    return finish("promptfoo", files, calls, cached=cached, classes=classes, notes=notes)


def _rows(files: Sequence[Source], item: str | Sequence[str] | None, graded: bool, *paths: str | None) -> list[_Row]:
    given = [path for path in paths if path]
    taken = {path.removeprefix("vars.") for path in given}
    names = None if item is None else [item] if isinstance(item, str) else list(item)
    rows = []
    for number, source in enumerate(files):
        for place, fields in _results(source):
            values = as_object(needed(fields, "vars", place), f"{place} vars")
            answer = [_provider(fields), short(fields.get("promptId"))] if graded else []
            if names is None:
                label = digest([answer, {name: value for name, value in values.items() if name not in taken}], 12)
            else:
                label = join_key([*(short(needed(values, name, f"{place} vars")) for name in names), *answer])
            test = fields.get("testIdx")
            turn = (number, test) if isinstance(test, int) else None
            rows.append(_Row(place, fields, label, tuple(short(pick_or(fields, path, "")) for path in given), turn))
    return rows


def _results(source: Source) -> list[tuple[str, dict[str, Any]]]:
    if source.name.removesuffix(".gz").endswith(".jsonl"):
        return list(json_lines(source))
    value = as_object(json_value(source), source.name)
    listed = pick(value, "results.results")
    if listed is ABSENT:
        listed = value.get("results")
    listed = as_list(listed, f"{source.name} results")
    return [
        (place, as_object(row, place))
        for k, row in enumerate(listed)
        for place in [f"{source.name} result {k} (from 0)"]
    ]


def _repeats(rows: Sequence[_Row]) -> list[str | None]:
    """Each repeat of a test is a test number of its own, which all prompts and providers of that repeat share."""
    turns: dict[tuple[str, ...], set[tuple[int, int]]] = {}
    for row in rows:
        if row.turn is None:
            return [None] * len(rows)
        turns.setdefault((row.item, *row.varied), set()).add(row.turn)
    rank = {(test, turn): str(k) for test, found in turns.items() for k, turn in enumerate(sorted(found))}
    return [rank[(row.item, *row.varied), row.turn] for row in rows if row.turn is not None]


def _prompt_names(rows: Sequence[_Row]) -> dict[str, str]:
    """Prompt id to its label, or to the id itself where two prompts share a label."""
    labels = {short(row.fields.get("promptId")): short(pick_or(row.fields, "prompt.label", "")) for row in rows}
    distinct = len(set(labels.values())) == len(labels)
    return {name: (label if distinct and label else name or "default") for name, label in labels.items()}


def _provider(fields: Mapping[str, Any]) -> str:
    provider = fields.get("provider")
    if isinstance(provider, Mapping):
        provider = provider.get("label") or provider.get("id")
    return short(provider) or "default"


def _judge(fields: Mapping[str, Any], grade: Mapping[str, Any] | None) -> str:
    if grade is None:
        return _provider(fields)
    named = pick_or(grade, "assertion.provider", None)
    return short(named.get("id") if isinstance(named, Mapping) else named) or "default"


def _grade(fields: Mapping[str, Any], assertion: str | None, place: str) -> dict[str, Any]:
    """The result of the chosen assertion; empty where the row has none."""
    whole = fields.get("gradingResult")
    if not isinstance(whole, dict):
        return {}
    parts = [part for part in whole.get("componentResults") or [] if isinstance(part, dict)]
    if assertion is not None:
        parts = [part for part in parts if assertion in (pick(part, "assertion.type"), pick(part, "assertion.metric"))]
    if len(parts) == 1:
        return parts[0]
    if not parts and assertion is None:
        return whole
    kinds = ", ".join(sorted({short(pick_or(part, "assertion.type", "?")) for part in parts}))
    raise TableError(
        f"{len(parts)} assertions{f' ({kinds})' if kinds else ''} stand in the grade",
        place=place,
        remedy="name the one whose grade is the verdict in assertion=, by its type or its metric",
    )


def _graded(
    fields: Mapping[str, Any], grade: Mapping[str, Any], verdict: Verdict, read: Read, order: str, place: str
) -> tuple[Said, bool]:
    """What the grader said, and whether its failure was written as a failed assertion."""
    if not grade or fields.get("failureReason") == ERROR:
        return failure(short(fields.get("error"))), False
    reason = short(grade.get("reason"))
    marked = pick(grade, "metadata.graderError") is True
    if reason == NO_ASSERTIONS:
        remedy = "read verdict='output' where the provider is the judge"
        raise TableError("no assertion judged this row", place=place, remedy=remedy)
    if grade.get("pass") is False and (marked or NO_GRADER.match(reason) or NO_GRADE.match(reason)):
        if NO_GRADE.match(reason):
            return invalid("empty" if reason.lower() == "no output" else "unparsed"), True
        return failure(reason), True
    value = needed(grade, verdict, place)
    if verdict == "pass":
        value = "pass" if value else "fail"
    return read(short(value), order, place), False


def _output(fields: Mapping[str, Any], read: Read, order: str) -> Said:
    error = pick_or(fields, "response.error", None)
    if error or fields.get("failureReason") == ERROR:
        return failure(short(error or fields.get("error")))
    return read(short(pick_or(fields, "response.output", "")), order, "")


def _cached(fields: Mapping[str, Any], grade: Mapping[str, Any] | None) -> bool:
    if grade is None:
        return pick(fields, "response.cached") is True
    tokens = pick(grade, "tokensUsed.cached")
    return isinstance(tokens, int | float) and tokens > 0


def _text(fields: Mapping[str, Any], grade: Mapping[str, Any] | None) -> str:
    return short(pick_or(fields, "response.output", "") if grade is None else grade.get("reason"))


def _vars(fields: Mapping[str, Any]) -> dict[str, str]:
    return {f"vars.{name}": short(value) for name, value in fields["vars"].items()}


def _latency(fields: Mapping[str, Any], grade: Mapping[str, Any] | None) -> dict[str, float]:
    """Time of the judge's call, which promptfoo keeps for providers only."""
    time = fields.get("latencyMs")
    return {"latency_ms": float(time)} if grade is None and isinstance(time, int | float) else {}


def _answers_differ(rows: Sequence[_Row]) -> bool:
    answers: dict[tuple[str, str, str], set[str]] = {}
    for row in rows:
        output = pick(row.fields, "response.output")
        key = (row.item, short(row.fields.get("promptId")), _provider(row.fields))
        if output is not ABSENT:
            answers.setdefault(key, set()).add(short(output))
    return any(len(found) > 1 for found in answers.values())
