"""Inspect AI: ``.json`` logs, and ``.eval`` logs by Inspect's own reader (``pip install 'secondorder[inspect]'``).

Read from ``inspect_ai`` 0.3.285: ``log/_log.py`` (log version 2), ``scorer/_metric.py``, ``scorer/_model.py``,
``event/_model.py``, and logs that it wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from secondorder.errors import InputError, TableError
from secondorder.interop._files import (
    ABSENT,
    Paths,
    Source,
    as_list,
    as_object,
    json_value,
    listed,
    needed,
    pick,
    pick_or,
    record_of,
    short,
)
from secondorder.interop._finish import SINGLE, Cached, Call, finish
from secondorder.interop._log import Log
from secondorder.interop._verdicts import Parse, Read, Said, failure, invalid, missing, reader

__all__ = ["read_inspect"]

NO_GRADE = "Grade not found in model output"
"""How the explanation begins of a grader's answer without a grade, which older versions scored as incorrect."""

REASONS = {"refusal": "refusal", "no_response": "empty"}
"""Inspect's words for why a sample is unscored, where a cube has a better one than ``unparsed``."""


def read_inspect(
    path: Paths,
    *,
    scorer: str | None = None,
    value: str | None = None,
    prompt: str | None = None,
    order: str | None = None,
    judge: str | None = None,
    labels: Mapping[str, str] | None = None,
    classes: Sequence[str] | None = None,
    parse: Parse | None = None,
    cached: Cached = "refuse",
) -> Log:
    """Scores of an Inspect evaluation.

    A sample is an item, an epoch a repeat. A score of NaN (unscored), and an ``I`` of older versions whose explanation
    says that no grade was found, are ⊥; a sample with an error, or one that was invalidated, is missing.

    Parameters
    ----------
    path : path or sequence of paths
        Several logs are the prompts of one study (see `prompt`) or several judges.
    scorer : str, optional
        Needed where samples have scores of several.
    value : str, optional
        Key of the verdict where a score's value is a mapping.
    prompt : str, optional
        Dotted path of the prompt: ``task_args.NAME`` in the evaluation, or ``metadata.NAME`` of a sample. Default: the
        task.
    order : str, optional
        Likewise, of the order shown, ``AB`` or ``BA``.
    judge : str, optional
        Default: the model bound to the role ``grader``, else the evaluated model.
    labels, classes, parse
        As for :func:`read_lm_eval`.
    cached : {"refuse", "drop", "keep"}
        Judge's answers that came from Inspect's cache, which by default holds one entry per epoch.

    Returns
    -------
    Log
        With columns ``text``, ``target``, and the time of the judge's call as ``sent``.

    Raises
    ------
    TableError
        Naming file and sample.
    InputError
        When a ``.eval`` log is given and Inspect is not installed.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "log.json")
    >>> sample = {"id": "q1", "epoch": 1, "scores": {"pick": {"value": "A"}}, "target": "A"}
    >>> _ = path.write_text(json.dumps({"version": 2, "eval": {"task": "t", "model": "m"}, "samples": [sample]}))
    >>> [(row["judge"], row["repeat"], row["verdict"]) for row in read_inspect(path)]
    [('m', '1', 'A')]
    """
    logs = [_open(entry) for entry in listed(path)]
    read = reader(labels, classes, parse)
    calls: list[Call] = []
    unread = 0
    for source, log in logs:
        spec = as_object(needed(log, "eval", source.name), source.name)
        for number, sample in enumerate(as_list(log.get("samples") or [], f"{source.name} samples")):
            sample = as_object(sample, f"{source.name} sample {number} (from 0)")
            name = short(needed(sample, "id", source.name))
            place = f"{source.name} sample {name} epoch {short(sample.get('epoch'))}"
            with record_of("Inspect", place):
                shown = SINGLE if order is None else short(_at(spec, sample, order, place))
                said, old = _said(sample, scorer, value, read, shown, place)
                unread += old
                event = _last_model_event(sample)
                calls.append(
                    Call(
                        place,
                        judge or _judge(spec),
                        name,
                        said,
                        prompt=short(spec.get("task")) if prompt is None else short(_at(spec, sample, prompt, place)),
                        order=shown,
                        repeat=short(needed(sample, "epoch", place)),
                        cached=event.get("cache") == "read",
                        more={"target": short(sample.get("target")), "text": _text(sample), **_time(event)},
                    )
                )
    notes = [f"Answers without a grade that the log scores as incorrect, ⊥ here: {unread}."] if unread else []
    return finish("Inspect", [source for source, _ in logs], calls, cached=cached, classes=classes, notes=notes)


def _open(path: Path) -> tuple[Source, dict[str, Any]]:
    if path.suffix != ".eval":
        source = Source(path)
        return source, as_object(json_value(source), source.name)
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        raise InputError(
            "reading .eval logs needs Inspect",
            place=str(path),
            remedy="pip install 'secondorder[inspect]', or convert it: inspect log convert --to json",
        ) from None
    source = Source(path, text=False)
    return source, read_eval_log(str(path)).model_dump()


def _at(spec: Mapping[str, Any], sample: Mapping[str, Any], path: str, place: str) -> Any:
    """A field of the evaluation, or of the sample."""
    value = pick(spec, path)
    return value if value is not ABSENT else needed(sample, path, place)


def _judge(spec: Mapping[str, Any]) -> str:
    grader = pick(spec, "model_roles.grader.model")
    return short(spec.get("model")) if grader is ABSENT else short(grader)


def _said(
    sample: Mapping[str, Any], scorer: str | None, key: str | None, read: Read, order: str, place: str
) -> tuple[Said, bool]:
    """What a sample's score says, and whether an answer without a grade was scored as incorrect."""
    if sample.get("error"):
        return failure(short(pick_or(sample, "error.message", sample["error"]))), False
    if sample.get("invalidation"):
        return missing(), False
    scores = sample.get("scores") or {}
    if scorer is None and len(scores) > 1:
        raise TableError(
            f"it has scores of {', '.join(scores)}",
            place=place,
            remedy=f"name one, as in scorer={next(iter(scores))!r}",
        )
    score = next(iter(scores.values()), None) if scorer is None else scores.get(scorer)
    if score is None:
        if scores:
            raise TableError(f"no score of {scorer!r}", place=place, remedy=f"its scorers: {', '.join(scores)}")
        return missing(), False
    value = score.get("value")
    if isinstance(value, Mapping) and key is not None:
        value = needed(value, key, place)
    if isinstance(value, Mapping | list):
        remedy = "name the key of the verdict in value=" if isinstance(value, Mapping) else "read another scorer"
        raise TableError("the score has parts", place=place, remedy=remedy)
    if value is None or value != value:
        return invalid(_reason(score)), False
    if value == "I" and short(score.get("explanation")).startswith(NO_GRADE):
        return invalid("unparsed"), True
    return read(short(value), order, place), False


def _reason(score: Mapping[str, Any]) -> str:
    word = score.get("reason") or pick(score, "metadata.unscored_reason")
    return REASONS.get(word, "unparsed") if isinstance(word, str) else "unparsed"


def _last_model_event(sample: Mapping[str, Any]) -> Mapping[str, Any]:
    """The judge's call: a grader's comes after the answers that it grades."""
    events = [event for event in sample.get("events") or [] if event.get("event") == "model"]
    return events[-1] if events else {}


def _text(sample: Mapping[str, Any]) -> str:
    return short(pick_or(sample, "output.completion", ""))


def _time(event: Mapping[str, Any]) -> dict[str, float]:
    stamp = event.get("timestamp")
    if isinstance(stamp, str):
        try:
            stamp = datetime.fromisoformat(stamp)
        except ValueError:
            return {}
    if not isinstance(stamp, datetime):
        return {}
    return {"sent": (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()}
