"""lm-evaluation-harness: ``samples_<task>_<date>.jsonl``.

Read from ``lm_eval`` 0.4.13: ``evaluator.py``, ``loggers/evaluation_tracker.py``, ``result_schema.py``, ``filters``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from secondorder._schema import BOTTOM
from secondorder.errors import TableError
from secondorder.interop._files import Paths, Source, json_lines, needed, record_of, short, sources
from secondorder.interop._finish import SINGLE, Call, finish
from secondorder.interop._log import Log
from secondorder.interop._verdicts import Parse, reader

__all__ = ["read_lm_eval"]

NO_MATCH = "[invalid]"
"""What the harness's regex filters give where nothing matches."""

TASK = re.compile(r"samples_(?P<task>.+)_[^_]+\.jsonl(\.gz)?")


def read_lm_eval(
    path: Paths | Mapping[str, Paths],
    *,
    judge: str | None = None,
    filter: str | None = None,
    order: str | None = None,
    labels: Mapping[str, str] | None = None,
    classes: Sequence[str] | None = None,
    parse: Parse | None = None,
) -> Log:
    """Answers of a judging task of the language model evaluation harness.

    A document is an item; the task is the prompt; ``repeats: K`` in the task gives K repeats. The verdict is the
    filtered response, and where the filter keeps one of K responses (``take_first``, ``majority_vote``) the responses
    themselves, read by `parse` or `labels`.

    Parameters
    ----------
    path : path, sequence of paths, or mapping of prompt to paths
        One file per task. A mapping names the prompts; else they are called as their tasks.
    judge : str, optional
        Default: the folder of the file, which the harness names after the model.
    filter : str, optional
        Which filter's responses; needed where the log has several, which are not repeats.
    order : str, optional
        Dotted path in ``doc`` of the order shown, ``AB`` or ``BA``.
    labels : mapping of str to str, optional
        What the judge says, to a class, or to ``first`` or ``second`` where `order` is known.
    classes : sequence of str, optional
        Any other answer is ⊥.
    parse : callable, optional
        From the text of an answer to the label in it, None where there is none.

    Returns
    -------
    Log
        With columns ``text``, ``target`` and ``prompt_hash``.

    Raises
    ------
    TableError
        Naming file and line.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "samples_pick_2026-11-30T12-00-00.jsonl")
    >>> line = {"doc_id": 0, "doc": {"shown": "BA"}, "resps": [["A", "B"]], "filtered_resps": ["A"], "filter": "none"}
    >>> _ = path.write_text(json.dumps(line))
    >>> log = read_lm_eval(path, order="shown", labels={"A": "first", "B": "second"})
    >>> [(row["prompt"], row["repeat"], row["verdict"]) for row in log]
    [('pick', '0', '2'), ('pick', '1', '1')]
    """
    named: list[tuple[str | None, Source]] = (
        [(name, source) for name, one in path.items() for source in sources(one)]
        if isinstance(path, Mapping)
        else [(None, source) for source in sources(path)]
    )
    read = reader(labels, classes, parse)
    calls: list[Call] = []
    documents: dict[str, tuple[str, str]] = {}
    for name, source in named:
        prompt = name or _task(source)
        lines = list(json_lines(source))
        chosen = _filter(lines, filter, source)
        for place, line in lines:
            if str(line.get("filter", chosen)) != chosen:
                continue
            with record_of("the harness", place):
                item = short(needed(line, "doc_id", place))
                _same_document(documents, item, line, place)
                shown = SINGLE if order is None else short(needed(line, f"doc.{order}", place))
                more = {"target": short(line.get("target")), "prompt_hash": short(line.get("prompt_hash"))}
                for repeat, (verdict, text) in enumerate(
                    _answers(line, place, parsed=parse is not None or labels is not None)
                ):
                    said = read(BOTTOM if verdict == NO_MATCH else verdict, shown, place)
                    if verdict == NO_MATCH:
                        said = said._replace(reason="unparsed")
                    calls.append(
                        Call(
                            place,
                            judge or source.path.resolve().parent.name,
                            item,
                            said,
                            prompt=prompt,
                            order=shown,
                            repeat=str(repeat),
                            more={**more, "text": text},
                        )
                    )
    notes = ["The harness gives repeats one cache entry: with its --use_cache they are copies, which no field shows."]
    files = [source for _, source in named]
    return finish("lm-evaluation-harness", files, calls, classes=classes, notes=notes if _repeated(calls) else [])


def _task(source: Source) -> str:
    found = TASK.fullmatch(source.name)
    return found["task"] if found else source.name.removesuffix(".gz").removesuffix(".jsonl")


def _filter(lines: Sequence[tuple[str, Mapping[str, Any]]], wanted: str | None, source: Source) -> str:
    found = sorted({str(line["filter"]) for _, line in lines if "filter" in line})
    if wanted is None and len(found) > 1:
        raise TableError(
            f"the responses of {len(found)} filters stand in it ({', '.join(found)})",
            place=source.name,
            remedy=f"they are no repeats: choose one, as in filter={found[0]!r}",
        )
    if wanted is not None and wanted not in found:
        raise TableError(f"there is no filter {wanted!r}", place=source.name, remedy=f"there are {', '.join(found)}")
    return wanted or (found[0] if found else "")


def _same_document(documents: dict[str, tuple[str, str]], item: str, line: Mapping[str, Any], place: str) -> None:
    """A document number means the same document in every file, or the prompts are not crossed with the items."""
    digest = short(line.get("doc_hash"))
    before, where = documents.setdefault(item, (digest, place))
    if before != digest:
        raise TableError(
            f"document {item} is not the one of {where}", place=place, remedy="give logs of one data set and split"
        )


def _answers(line: Mapping[str, Any], place: str, *, parsed: bool) -> list[tuple[str, str]]:
    """Verdict and text of every repeat."""
    responses, filtered = needed(line, "resps", place), needed(line, "filtered_resps", place)
    if len(responses) != 1 or any(isinstance(response, list) for response in responses[0]):
        raise TableError(
            f"the line holds {len(responses)} requests or log-likelihoods: no sampled verdict",
            place=place,
            remedy="read the samples of a task with output_type generate_until",
        )
    texts, kept = [short(text) for text in responses[0]], filtered[0]
    if isinstance(kept, list) and len(kept) == len(texts):
        return list(zip(map(short, kept), texts, strict=True))
    if len(texts) == 1:
        return [(short(kept[0] if isinstance(kept, list) and len(kept) == 1 else kept), texts[0])]
    if not parsed:
        raise TableError(
            f"{len(texts)} responses, and the filter kept {len(kept) if isinstance(kept, list) else 1}",
            place=place,
            remedy="say how to read a response: labels={...} or parse=..., or use a filter that keeps all of them",
        )
    return [(text, text) for text in texts]


def _repeated(calls: Sequence[Call]) -> bool:
    return any(call.repeat != "0" for call in calls)
