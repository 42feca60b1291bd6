"""HELM: ``scenario_state.json`` of a run.

Read from ``crfm-helm`` 0.5.16: ``adaptation/request_state.py``, ``adaptation/adapter_spec.py``, ``common/request.py``,
``executor.py`` and ``annotation/model_as_judge.py``. Null fields are left out of the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from secondorder.errors import TableError
from secondorder.interop._files import (
    ABSENT,
    Paths,
    as_list,
    as_object,
    digest,
    json_value,
    needed,
    pick,
    pick_or,
    record_of,
    short,
    sources,
)
from secondorder.interop._finish import SINGLE, Cached, Call, finish
from secondorder.interop._log import Log
from secondorder.interop._verdicts import Parse, Read, Said, failure, invalid, missing, reader

__all__ = ["read_helm"]

WORDING = (
    *("method", "global_prefix", "global_suffix", "instructions", "input_prefix", "input_suffix", "reference_prefix"),
    *("reference_suffix", "output_prefix", "output_suffix", "instance_prefix", "substitutions", "max_train_instances"),
)
"""Fields of an adapter that decide what the request says besides the instance."""

Failed = Literal["invalid", "missing"]


def read_helm(
    path: Paths,
    *,
    verdict: str = "completion",
    error: Failed | None = None,
    order: str | None = None,
    judge: str | None = None,
    labels: Mapping[str, str] | None = None,
    classes: Sequence[str] | None = None,
    parse: Parse | None = None,
    cached: Cached = "refuse",
) -> Log:
    """Completions of HELM runs, or the annotations that judges gave to them.

    An instance is an item; the adapter's wording is the prompt (a hash of it, where there are several); perturbations
    and sets of examples in the prompt are further facets, where an instance has several. Repeats are the trials
    (``request.random``) and the completions of a request.

    Parameters
    ----------
    path : path or sequence of paths
    verdict : str
        ``completion``: the text that the model gave is the verdict. Else the dotted path of a judge's verdict in the
        ``annotations``, such as ``omni_math.gpt_equivalence_judgement``; the judge is called so.
    error : {"invalid", "missing"}, optional
        What an absent annotation means: HELM leaves it out for an answer that it cannot read as well as for a failed
        request.
    order : str, optional
        Dotted path in a request state of the order shown (``AB``, ``BA``), such as ``instance.extra_data.order``.
    judge, labels, classes, parse, cached
        As for :func:`read_promptfoo`.

    Returns
    -------
    Log
        With columns ``text``, ``perturbation``, ``examples`` and the time of the request as ``sent``.

    Raises
    ------
    TableError
        Naming file and request state.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "scenario_state.json")
    >>> result = {"success": True, "cached": False, "completions": [{"text": " A", "logprob": 0, "tokens": []}]}
    >>> state = {"instance": {"id": "id1"}, "request": {"model": "org/m"}, "train_trial_index": 0, "result": result}
    >>> _ = path.write_text(json.dumps({"adapter_spec": {"method": "generation"}, "request_states": [state]}))
    >>> [(row["judge"], row["verdict"]) for row in read_helm(path)]
    [('org/m', 'A')]
    """
    files = sources(path)
    read = reader(labels, classes, parse)
    states: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
    for source in files:
        value = as_object(json_value(source), source.name)
        adapter = as_object(needed(value, "adapter_spec", source.name), source.name)
        for k, state in enumerate(as_list(needed(value, "request_states", source.name), source.name)):
            place = f"{source.name} request_states[{k}]"
            states.append((place, as_object(state, place), adapter))
    wordings = {_wording(adapter) for _, _, adapter in states}
    trials = sorted({short(pick_or(state, "request.random", "")) for _, state, _ in states}, key=lambda t: (len(t), t))
    calls: list[Call] = []
    unasked = 0
    for place, state, adapter in states:
        with record_of("HELM", place):
            prompt = _wording(adapter) if len(wordings) > 1 else "default"
            shown = SINGLE if order is None else short(needed(state, order, place))
            trial = short(pick_or(state, "request.random", ""))
            for k, said, text in _ends(state, place, verdict, error, read, shown):
                if said is None:
                    unasked += 1
                    continue
                calls.append(
                    Call(
                        place,
                        judge or _judge(state, adapter, verdict),
                        short(needed(state, "instance.id", place)),
                        said,
                        prompt=prompt,
                        order=shown,
                        repeat=f"{trials.index(trial)}" + (f".{k}" if k else ""),
                        cached=verdict == "completion" and pick(state, "result.cached") is True,
                        request=trial,
                        more={**_facets(state), "text": text, **_time(state)},
                    )
                )
    notes = []
    if unasked:
        notes.append(f"Left out, empty answers about which HELM asked no judge: {unasked}.")
    if verdict != "completion" and len(trials) > 1:
        notes.append("Trials grade answers that differ: call noise is that of the answers and the judge together.")
    facets = ["perturbation", "examples"]
    return finish("HELM", files, calls, cached=cached, classes=classes, facets=facets, notes=notes)


def _wording(adapter: Mapping[str, Any]) -> str:
    return "wording-" + digest({name: adapter.get(name) for name in WORDING}, 8)


def _judge(state: Mapping[str, Any], adapter: Mapping[str, Any], verdict: str) -> str:
    if verdict != "completion":
        return verdict
    return short(pick_or(state, "request.model", None) or adapter.get("model")) or "default"


def _ends(
    state: Mapping[str, Any], place: str, verdict: str, error: Failed | None, read: Read, order: str
) -> list[tuple[int, Said | None, str]]:
    """What each completion of a request came to; None where no judge was asked about it."""
    result = pick(state, "result")
    if result is ABSENT:
        return [(0, missing(), "")]
    if needed(result, "success", place) is not True:
        # HELM gives an error that is not fatal an empty completion: no answer came, whatever the list says.
        return [(0, failure(short(result.get("error"))), "")]
    completions = needed(result, "completions", place)
    if verdict == "completion":
        return [
            (k, _completion(entry, read, order, place), short(entry.get("text"))) for k, entry in enumerate(completions)
        ]
    if len(completions) != 1:
        remedy = "read the annotations of runs with num_outputs = 1"
        raise TableError(f"the request has {len(completions)} completions", place=place, remedy=remedy)
    text = short(completions[0].get("text"))
    return [(0, _annotation(state, place, verdict, error, read, order), text)]


def _completion(entry: Mapping[str, Any], read: Read, order: str, place: str) -> Said:
    text = short(needed(entry, "text", place))
    if short(pick_or(entry, "finish_reason.reason", "")) == "length" and not text.strip():
        return invalid("truncated")
    return read(text, order, place)


def _annotation(
    state: Mapping[str, Any], place: str, verdict: str, error: Failed | None, read: Read, order: str
) -> Said | None:
    annotator, _, field = verdict.partition(".")
    found = pick(state, f"annotations.{annotator}")
    if found is ABSENT or not field:
        have = ", ".join(state.get("annotations") or {}) or "none"
        raise TableError(
            f"there is no annotation {verdict!r}", place=place, remedy=f"write ANNOTATOR.FIELD; the annotators: {have}"
        )
    found = found[0] if isinstance(found, list) and found else found
    value = pick(found, field)
    if value is not ABSENT and value is not None:
        return read(short(value), order, place)
    if isinstance(found, Mapping) and "prompt_text" not in found:
        return None
    if error is None:
        raise TableError(
            f"annotation {verdict!r} is absent: an answer that HELM could not read, or a failed request",
            place=place,
            remedy="declare it: error='invalid' (⊥) or error='missing'",
        )
    return missing() if error == "missing" else invalid("unparsed")


def _facets(state: Mapping[str, Any]) -> dict[str, str]:
    perturbation = pick_or(state, "instance.perturbation", None)
    name = "none" if perturbation is None else short(pick_or(perturbation, "name", perturbation))
    return {"perturbation": name, "examples": short(state.get("train_trial_index", 0))}


def _time(state: Mapping[str, Any]) -> dict[str, float]:
    sent, took = pick(state, "result.request_datetime"), pick(state, "result.request_time")
    times = {"sent": float(sent)} if isinstance(sent, int | float) else {}
    return {**times, "latency_ms": 1000.0 * took} if isinstance(took, int | float) else times
