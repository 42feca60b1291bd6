"""AlpacaEval: ``annotations.json`` and the annotators' own ``annotations_seed*.json``.

Read from ``alpaca_eval`` 0.6.6: ``annotators/base.py``, ``annotators/pairwise_evaluator.py``, ``processors.py``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Literal

from secondorder.errors import TableError
from secondorder.interop._files import Paths, as_object, digest, json_value, needed, pick, record_of, short, sources
from secondorder.interop._finish import Call, finish
from secondorder.interop._log import P_SECOND, Log
from secondorder.interop._verdicts import Said, invalid, missing

__all__ = ["read_alpaca_eval"]

NONE = -1
"""Preference that the tool stores for an annotation that failed, besides null."""

CLASSES = {1.0: "1", 2.0: "2", 1.5: "tie", 0.0: "tie"}
"""Preferences of hard annotators; 0 is the tie of old versions."""

SWITCHES = ("is_switched_outputs", "is_switch_output_1_output_2")
Failed = Literal["invalid", "missing"]


def read_alpaca_eval(
    path: Paths, *, error: Failed | None = None, judge: str | None = None, switch_seed: int | None = None
) -> Log:
    """Preferences of AlpacaEval's annotators.

    ``1`` is ``output_1`` and ``2`` is ``output_2``: the tool undoes its random switch before it stores a preference. An
    item is an instruction with its two outputs. Each annotator is a judge, or, with `judge`, a prompt of that judge. A
    file holds a pair once per annotator, so that repeats are several files: give them together.

    A preference between 1 and 2 (the weighted annotators) is the probability of ``output_2`` plus one. It becomes a
    soft verdict: :meth:`Log.to_cube` keeps it as it is, and no row rounds it to a label.

    Parameters
    ----------
    path : path or sequence of paths
        In the order of the repeats.
    error : {"invalid", "missing"}, optional
        What a null preference means where the log has no answer beside it: an answer without verdict, or a failed call.
    judge : str, optional
        Name of the model that all annotators are prompts of.
    switch_seed : int, optional
        Seed of the annotators (the tool's default is 0). The order that was shown is seldom stored, and follows from
        this seed and the instruction.

    Returns
    -------
    Log
        With columns ``instruction``, ``generator_1``, ``generator_2`` and ``text``.

    Raises
    ------
    TableError
        Naming file and annotation.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "annotations.json")
    >>> line = {"instruction": "Hi", "output_1": "a", "output_2": "b", "annotator": "gpt4", "preference": 2}
    >>> _ = path.write_text(json.dumps([line]))
    >>> [row["verdict"] for row in read_alpaca_eval(path)]
    ['2']
    """
    files = sources(path)
    calls: list[Call] = []
    left_out = {"same": 0, "noise": 0}
    for repeat, source in enumerate(files):
        listed = json_value(source)
        if not isinstance(listed, list):
            raise TableError("this is not a list of annotations", place=source.name, remedy="give an annotations.json")
        for position, entry in enumerate(listed):
            place = f"{source.name} annotation {position} (from 0)"
            line = as_object(entry, place)
            if needed(line, "output_1", place) == needed(line, "output_2", place):
                left_out["same"] += 1  # the tool writes a tie without asking the judge
            elif line.get("is_noisy_label"):
                left_out["noise"] += 1
            else:
                with record_of("AlpacaEval", place):
                    calls.append(_call(line, place, str(repeat), error, judge, switch_seed))
    return finish("AlpacaEval", files, calls, classes=["1", "2", "tie"], notes=_notes(calls, left_out))


def _call(
    line: Mapping[str, Any], place: str, repeat: str, error: Failed | None, judge: str | None, seed: int | None
) -> Call:
    instruction, annotator = short(needed(line, "instruction", place)), short(needed(line, "annotator", place))
    outputs = [needed(line, "output_1", place), needed(line, "output_2", place)]
    raw = line.get("raw_completion")
    text = _answer(raw)
    said, soft = _said(needed(line, "preference", place), text, error, f"{place} preference")
    if soft is None and said.status != "valid" and pick(raw, "finish_reason") == "content_filter":
        said = invalid("filtered")
    generators = {name: short(line.get(name)) for name in ("generator_1", "generator_2")}
    return Call(
        place,
        judge or annotator,
        digest([instruction, *outputs]),
        said,
        prompt=annotator,
        order=_order(line, instruction, seed),
        repeat=repeat,
        more={"instruction": instruction, **generators, "text": text, **({P_SECOND: soft} if soft is not None else {})},
    )


def _said(preference: object, text: str, error: Failed | None, place: str) -> tuple[Said, float | None]:
    if preference is None or preference == NONE or preference != preference:
        if text:
            return invalid("unparsed"), None
        if error is None:
            raise TableError(
                "a null preference without the judge's answer: it may be a failed call or an answer without verdict",
                place=place,
                remedy="declare it: error='invalid' (⊥) or error='missing'",
            )
        return (missing() if error == "missing" else invalid("unparsed")), None
    if isinstance(preference, bool) or not isinstance(preference, int | float) or not 0 <= preference <= 2:
        raise TableError(f"it is {short(preference)}", place=place, remedy="AlpacaEval writes 1, 2, 1.5 or null")
    if preference in CLASSES:
        return Said(CLASSES[float(preference)]), None
    if preference < 1:
        raise TableError(f"it is {short(preference)}", place=place, remedy="a weighted preference lies between 1 and 2")
    # No label: whoever takes the rows without their probabilities gets a call without verdict, never a rounded one.
    return Said("", "valid"), float(preference) - 1.0


def _answer(raw: object) -> str:
    """Text of the judge's answer; the tool stores it as text, or as the choice that the endpoint sent."""
    if isinstance(raw, Mapping):
        message = raw.get("message")
        inner = message.get("content") if isinstance(message, Mapping) else None
        return short(raw.get("text") or inner)
    return short(raw)


def _order(line: Mapping[str, Any], instruction: str, seed: int | None) -> str:
    switched = next((line[name] for name in SWITCHES if isinstance(line.get(name), bool)), None)
    if switched is None and seed is not None:
        # The tool's own draw, which only shuffles candidates: one choice by a generator seeded with this text.
        switched = random.Random(f"{SWITCHES[0]}{instruction}{seed}").choices([False, True], k=1)[0]
    return "unknown" if switched is None else "BA" if switched else "AB"


def _notes(calls: list[Call], left_out: Mapping[str, int]) -> list[str]:
    notes = []
    if left_out["same"]:
        notes.append(
            f"Left out, pairs of identical outputs (AlpacaEval writes a tie without a call): {left_out['same']}."
        )
    if left_out["noise"]:
        notes.append(f"Left out, labels that AlpacaEval drew at random (p_label_flip): {left_out['noise']}.")
    if any(P_SECOND in call.more for call in calls):
        notes.append(
            "Weighted preferences are soft verdicts, and to_cube() keeps them. AlpacaEval divides the probabilities of "
            "its two labels by their sum: what the judge might have said otherwise is not in them."
        )
    if any(call.order == "unknown" for call in calls):
        notes.append("The order shown was random per instruction and is not in the log: it is part of call noise here.")
    return notes
