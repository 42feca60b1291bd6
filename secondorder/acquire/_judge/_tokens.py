"""Log-probabilities of the simulated judge's tokens: those that follow from its law over whole answers, exactly."""

from __future__ import annotations

import math
import re
from typing import Any

from secondorder.acquire._judge._laws import Law

__all__ = ["END", "logprob_entries", "tokens_of"]

END = "<|end|>"
"""The token with which an answer ends; as on real servers it is listed as an alternative and never written."""

_TOKEN = re.compile(r"\n| ?\w+| ?[^\w\s]|\s")


def tokens_of(text: str) -> list[str]:
    r"""Tokens of a text: words with the space before them, single signs, line ends.

    Examples
    --------
    >>> tokens_of("A is short.\n[[B]]")
    ['A', ' is', ' short', '.', '\n', '[', '[', 'B', ']', ']']
    """
    return _TOKEN.findall(text)


def logprob_entries(law: Law, text: str, number: int) -> list[dict[str, Any]]:
    """An entry per token of an answer: its own log-probability and the `number` most probable tokens in its place.

    The law of the next token is the share of the answers that go on with it among those that begin as this one does.

    Examples
    --------
    >>> entries = logprob_entries({"A": 0.5, "B": 0.25, "A or B": 0.25}, "A", 2)
    >>> [(e["token"], [(t["token"], round(math.exp(t["logprob"]), 2)) for t in e["top_logprobs"]]) for e in entries]
    [('A', [('A', 0.75), ('B', 0.25)])]
    """
    answers = [([*tokens_of(answer), END], p) for answer, p in law.items() if p > 0]
    entries = []
    drawn = tokens_of(text)
    for place, token in enumerate(drawn):
        weights: dict[str, float] = {}
        for tokens, p in answers:
            if tokens[:place] == drawn[:place]:
                weights[tokens[place]] = weights.get(tokens[place], 0.0) + p
        total = math.fsum(weights.values())
        ranked = sorted(weights.items(), key=lambda entry: (-entry[1], entry[0]))
        listed = [_named(name, math.log(weight / total)) for name, weight in ranked[:number]]
        own = math.log(weights[token] / total) if token in weights else -math.inf
        entries.append({**_named(token, max(own, -9999.0)), "top_logprobs": listed})
    return entries


def _named(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": list(token.encode())}
