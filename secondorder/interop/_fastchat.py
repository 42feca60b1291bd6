"""FastChat's LLM judge (MT-bench): ``*_pair.jsonl`` and ``*_single.jsonl``.

Read from ``fastchat/llm_judge/common.py`` at commit 007ecd07 (``play_a_match_pair``, ``play_a_match_single``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from secondorder._canon import join_key
from secondorder.errors import TableError
from secondorder.interop._files import Paths, json_lines, needed, record_of, short, sources
from secondorder.interop._finish import Call, finish
from secondorder.interop._log import Log
from secondorder.interop._verdicts import Said, invalid, missing

__all__ = ["read_fastchat"]

API_ERROR = "$ERROR$"
"""What the tool stores as the judge's answer when every attempt failed."""

GAMES = {"g1": "AB", "g2": "BA"}
MARKS = ("[[A]]", "[[B]]", "[[C]]")
Failed = Literal["invalid", "missing"]


def read_fastchat(path: Paths, *, error: Failed | None = None, scale: tuple[float, float] = (1, 10)) -> Log:
    """Calls of an MT-bench judge, pairwise or single.

    Game 1 shows ``model_1`` first (order ``AB``), game 2 ``model_2``; verdicts are ``1`` (``model_1``), ``2``, ``tie``.
    A pair that occurs both ways round is one pair. An item is a question, a turn and its candidates. Lines that judge
    the same again are further repeats, in the order of their time stamps.

    Parameters
    ----------
    path : path or sequence of paths
    error : {"invalid", "missing"}, optional
        What ``error`` (a score of -1) means where the judge's answer is not in the log. FastChat writes it for an
        answer without verdict as well as for a failed request; the answer tells them apart: ``$ERROR$`` is a failure.
    scale : tuple of float
        Ends of the scale of single scores; a score outside is ⊥.

    Returns
    -------
    Log
        With columns ``question``, ``turn``, ``candidate_1`` and ``candidate_2`` (or ``model``), and ``text``.

    Raises
    ------
    TableError
        Naming file and line.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "gpt-4_single.jsonl")
    >>> line = {"question_id": 81, "model": "a", "judge": ["gpt-4", "single-v1"], "turn": 1, "tstamp": 0.5}
    >>> _ = path.write_text(json.dumps({**line, "score": -1, "judgment": "No rating."}))
    >>> [row["verdict"] for row in read_fastchat(path)]
    ['⊥']
    """
    files = sources(path)
    lines = [entry for source in files for entry in json_lines(source)]
    single = {place: "score" in line for place, line in lines}
    if len(set(single.values())) > 1:
        place = next(place for place, kind in single.items() if kind != next(iter(single.values())))
        raise TableError("pairwise and single judgements are mixed", place=place, remedy="read them one by one")
    lines.sort(key=lambda entry: _moment(entry[1]))
    _refuse_copies(lines)
    notes = ["FastChat judges at temperature 0: call noise is that of the server alone."]
    if lines and "score" in lines[0][1]:
        calls = []
        for place, line in lines:
            with record_of("FastChat", place):
                calls.append(_single(line, place, error, scale))
        low, high = scale
        whole = (
            [f"{score}" for score in range(int(low), int(high) + 1)] if low == int(low) and high == int(high) else []
        )
        between = sorted({call.said.verdict for call in calls if call.said.status == "valid"} - set(whole), key=float)
        classes = sorted([*whole, *between], key=float)
        if between and whole:
            notes.append(f"Scores between whole numbers are classes of their own: {', '.join(between)}.")
        return finish("FastChat single", files, calls, classes=classes, notes=notes)
    turned = _both_ways(lines)
    calls = []
    for place, line in lines:
        with record_of("FastChat", place):
            calls += _pair(line, place, error, turned)
    conflicting = sum(sum(mark in call.more["text"] for mark in MARKS) > 1 for call in calls)
    if conflicting:
        notes.append(
            f"Answers with marks of more than one verdict: {conflicting}. FastChat took the first of "
            f"{', '.join(MARKS)} that stands anywhere in them; column 'text' has them."
        )
    return finish("FastChat pair", files, calls, classes=["1", "2", "tie"], notes=notes)


def _moment(line: Mapping[str, Any]) -> float:
    stamp = line.get("tstamp")
    return float(stamp) if isinstance(stamp, int | float) else 0.0


def _refuse_copies(lines: list[tuple[str, dict[str, Any]]]) -> None:
    first: dict[str, str] = {}
    for place, line in lines:
        before = first.setdefault(short(line), place)
        if before != place:
            raise TableError(f"the line is the same as {before}", place=place, remedy="remove the copy")


def _judge(line: Mapping[str, Any], place: str) -> tuple[str, str]:
    judge = needed(line, "judge", place)
    if not isinstance(judge, list) or len(judge) != 2:
        raise TableError(f"judge is {short(judge)}", place=place, remedy='FastChat writes ["model", "prompt"]')
    return short(judge[0]), short(judge[1])


def _pair(line: Mapping[str, Any], place: str, error: Failed | None, turned: set[frozenset[str]]) -> list[Call]:
    if "m1_score" in line:
        raise TableError(
            "the winner was made of two single scores, not judged in both orders",
            place=place,
            remedy="read the single judgements (*_single.jsonl)",
        )
    if "winner" in line:
        raise TableError("there is one winner and no order", place=place, remedy="give a log with g1_winner, g2_winner")
    judge, prompt = _judge(line, place)
    question, turn = short(needed(line, "question_id", place)), short(line.get("turn", 1))
    one, two = (short(needed(line, name, place)) for name in ("model_1", "model_2"))
    swap = frozenset((one, two)) in turned and two < one
    pair = (two, one) if swap else (one, two)
    calls = []
    for game, order in GAMES.items():
        text = line.get(f"{game}_judgment")
        said = _winner(short(needed(line, f"{game}_winner", place)), text, swap, error, f"{place} {game}_winner")
        calls.append(
            Call(
                f"{place} {game}",
                judge,
                join_key([question, turn, *pair]),
                said,
                prompt=prompt,
                order={"AB": "BA", "BA": "AB"}[order] if swap else order,
                more={
                    "question": question,
                    "turn": turn,
                    "candidate_1": pair[0],
                    "candidate_2": pair[1],
                    **_text(text),
                },
            )
        )
    return calls


def _winner(winner: str, text: object, swap: bool, error: Failed | None, place: str) -> Said:
    if winner == "error":
        return _failed(text, error, place)
    classes = {"model_1": "2" if swap else "1", "model_2": "1" if swap else "2", "tie": "tie"}
    if winner not in classes:
        raise TableError(
            f"the winner is {winner!r}", place=place, remedy="FastChat writes model_1, model_2, tie or error"
        )
    return Said(classes[winner])


def _single(line: Mapping[str, Any], place: str, error: Failed | None, scale: tuple[float, float]) -> Call:
    judge, prompt = _judge(line, place)
    question, turn, model = (short(needed(line, name, place)) for name in ("question_id", "turn", "model"))
    score, text = needed(line, "score", place), line.get("judgment")
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise TableError(f"the score is {short(score)}", place=place, remedy="FastChat writes a number, -1 for none")
    if score == -1:
        said = _failed(text, error, f"{place} score")
    else:
        said = Said(short(float(score))) if scale[0] <= score <= scale[1] else invalid("out_of_range")
    more = {"question": question, "turn": turn, "model": model, **_text(text)}
    return Call(place, judge, join_key([question, turn, model]), said, prompt=prompt, more=more)


def _failed(text: object, error: Failed | None, place: str) -> Said:
    if isinstance(text, str) and text.strip():
        return missing() if text.strip() == API_ERROR else invalid("unparsed")
    if error is None:
        raise TableError(
            "a failed judgement without the judge's answer: it may be a failed request or an answer without verdict",
            place=place,
            remedy="declare it: error='invalid' (⊥) or error='missing'",
        )
    return missing() if error == "missing" else invalid("unparsed")


def _text(text: object) -> dict[str, str]:
    return {"text": text if isinstance(text, str) else ""}


def _both_ways(lines: list[tuple[str, dict[str, Any]]]) -> set[frozenset[str]]:
    """Pairs of models that occur in both orientations."""
    seen = {(short(line.get("model_1")), short(line.get("model_2"))) for _, line in lines}
    return {frozenset(pair) for pair in seen if pair[::-1] in seen and pair[0] != pair[1]}
