"""OpenAI evals: the event log that ``oaieval`` writes (``LocalRecorder``), JSON lines.

Read from ``evals`` 3.0.1.post1: ``record.py``, ``base.py``, ``elsuite/modelgraded/classify.py``,
``classify_utils.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from secondorder.errors import TableError
from secondorder.interop._files import (
    ABSENT,
    Paths,
    as_object,
    json_lines,
    needed,
    pick,
    pick_or,
    record_of,
    short,
    sources,
)
from secondorder.interop._finish import SINGLE, Call, finish
from secondorder.interop._log import Log
from secondorder.interop._verdicts import Parse, Read, failure, invalid, reader

__all__ = ["read_openai_evals"]

INVALID = "__invalid__"
"""Choice of an answer without verdict; the tool's own score counts it as the lowest one."""

MODEL_GRADED = "run_config.eval_spec.args.modelgraded_spec"
Repeated = Literal["refuse", "last", "repeats"]


def read_openai_evals(
    path: Paths,
    *,
    field: str = "choice",
    event: str = "metrics",
    repeated: Repeated = "refuse",
    order: str | None = None,
    judge: str | None = None,
    prompt: str | None = None,
    labels: Mapping[str, str] | None = None,
    classes: Sequence[str] | None = None,
    parse: Parse | None = None,
) -> Log:
    r"""Choices of a model-graded evaluation.

    A sample is an item, the last completion function is the judge, the model-graded specification is the prompt, and
    every file (run) is a repeat. The answer ``__invalid__`` is ⊥, where the tool's score makes it the lowest choice.

    Parameters
    ----------
    path : path or sequence of paths
        Runs of the same samples are further repeats.
    field : str
        Key of the verdict in the event's data. The ``score`` of an invalid choice is ⊥ too.
    event : str
        Type of the events: ``metrics``, or ``match`` with field ``picked`` or ``correct``.
    repeated : {"refuse", "last", "repeats"}
        What several judgements of one sample in one run are. The tool judges a sample once; after a rate limit it has
        done so twice and counted both: ``last`` keeps the last and counts the others as attempts. ``repeats`` takes
        them as calls of their own.
    order : str, optional
        Dotted path in the event's data of the order shown, ``AB`` or ``BA``.
    judge, prompt : str, optional
        In place of the names in the log.
    labels, classes, parse
        As for :func:`read_lm_eval`.

    Returns
    -------
    Log
        With column ``run``, and the times of the events as ``sent``.

    Raises
    ------
    TableError
        Naming file and line.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "run.jsonl")
    >>> spec = {"spec": {"completion_fns": ["gpt-4"], "eval_name": "joke.dev.v0", "run_id": "r", "run_config": {}}}
    >>> event = {"sample_id": "joke.dev.0", "type": "metrics", "data": {"choice": "__invalid__", "score": 0.0}}
    >>> _ = path.write_text(f"{json.dumps(spec)}\n{json.dumps(event)}\n")
    >>> [(row["judge"], row["verdict"]) for row in read_openai_evals(path)]
    [('gpt-4', '⊥')]
    """
    files = sources(path)
    read = reader(labels, classes, parse)
    calls: list[Call] = []
    attempts = 0
    for number, source in enumerate(files):
        spec: Mapping[str, Any] = {}
        judged: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        failed: dict[str, tuple[str, dict[str, Any]]] = {}
        for place, line in json_lines(source):
            if "spec" in line:
                spec = as_object(line["spec"], place)
            elif line.get("type") == event and field in as_object(line.get("data") or {}, place):
                judged.setdefault(short(needed(line, "sample_id", place)), []).append((place, line))
            elif line.get("type") == "error":
                failed[short(line.get("sample_id"))] = (place, line)
        if not spec:
            raise TableError("there is no line with the run's spec", place=source.name, remedy="give a log of oaieval")
        names = (judge or _judge(spec), prompt or _prompt(spec))
        for sample, found in judged.items():
            if len(found) > 1 and repeated == "refuse":
                raise TableError(
                    f"sample {sample} is judged {len(found)} times in one run",
                    place=", ".join(place for place, _ in found),
                    remedy="say repeated='last' (one outcome, the others are attempts) or repeated='repeats' (calls)",
                )
            kept = found[-1:] if repeated == "last" else found
            attempts += len(found) - len(kept)
            for again, (place, line) in enumerate(kept):
                repeat = f"{number}.{again}" if again else str(number)
                with record_of("OpenAI evals", place):
                    calls.append(_call(line, place, names, sample, repeat, field, order, read, spec))
        for sample, (place, line) in failed.items():
            if sample not in judged:
                said = failure(short(pick_or(line, "data.message", "")))
                more = {"run": short(spec.get("run_id")), **_time(line)}
                calls.append(Call(place, names[0], sample, said, prompt=names[1], repeat=str(number), more=more))
    notes = []
    if attempts:
        notes.append(f"Left out as attempts, judgements of samples that were judged again in the same run: {attempts}.")
    return finish("OpenAI evals", files, calls, classes=classes, notes=notes)


def _call(
    line: Mapping[str, Any],
    place: str,
    names: tuple[str, str],
    sample: str,
    repeat: str,
    field: str,
    order: str | None,
    read: Read,
    spec: Mapping[str, Any],
) -> Call:
    data = line["data"]
    shown = SINGLE if order is None else short(needed(data, order, place))
    if INVALID in (data.get("choice"), data[field]):
        said = invalid("unparsed")
    elif data[field] is None:
        raise TableError(f"{field} is null", place=place, remedy="read another field, such as field='choice'")
    else:
        said = read(short(data[field]), shown, place)
    more = {"run": short(spec.get("run_id")), **_time(line)}
    return Call(place, names[0], sample, said, prompt=names[1], order=shown, repeat=repeat, more=more)


def _judge(spec: Mapping[str, Any]) -> str:
    functions = spec.get("completion_fns")
    return short(functions[-1]) if isinstance(functions, list) and functions else "default"


def _prompt(spec: Mapping[str, Any]) -> str:
    named = pick(spec, MODEL_GRADED)
    return short(spec.get("eval_name")) if named is ABSENT or not named else short(named)


def _time(line: Mapping[str, Any]) -> dict[str, float]:
    try:
        moment = datetime.fromisoformat(short(line.get("created_at")))
    except ValueError:
        return {}
    return {"sent": (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()}
