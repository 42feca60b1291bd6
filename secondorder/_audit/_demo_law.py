"""The law of the demo's judge: what it would say how often, for any item, format and order; no table of numbers.

Items are draws from a population: five topics, in each of which the clearness of a pair, and whether its judgement
hangs on the format of the prompt, are random. They are drawn by hash from the item's label, so the law is the same on
every machine, and other labels give other items of the same population.

The judge prefers the better answer, but not by much (calls differ), favours what is shown first (order), and heeds the
format of the prompt on a few items alone (prompt).
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import NamedTuple

from secondorder._canon import blake2b_64

__all__ = ["TOPICS", "Topic", "cell_law"]


class Topic(NamedTuple):
    """What the pairs of a topic have in common.

    Attributes
    ----------
    clear, spread : float
        Mean and standard deviation, over pairs, of the log odds of the better answer.
    first : float
        Log odds in favour of the answer that is shown first.
    tie : float
        Log weight of a tie.
    touchy : float
        Share of pairs on which the format of the prompt matters.
    """

    clear: float
    spread: float
    first: float
    tie: float
    touchy: float


TOPICS = {
    "facts": Topic(2.6, 0.8, 0.8, -1.0, 0.15),
    "arithmetic": Topic(2.4, 0.8, 0.8, -1.2, 0.15),
    "style": Topic(0.8, 0.5, 1.4, -0.3, 0.15),
    "format": Topic(1.6, 0.6, 1.0, -0.8, 0.5),
    "advice": Topic(1.8, 0.6, 1.0, -0.8, 0.15),
}

FORMAT = 1.5
"""Standard deviation of a format's log odds on a touchy pair."""

UNCLEAR = {"It depends on what you value.": 0.02, "A or B": 0.01}
"""Answers that are no verdict, and how often they come."""

DIGITS = 4


def cell_law(item: str, topic: str, better: str, prompt: str, order: str) -> dict[str, float]:
    """Probability of each answer of the demo's judge to one question.

    Parameters
    ----------
    item : str
        Label, from which the pair is drawn.
    topic : str
        One of :data:`TOPICS`.
    better : {"1", "2", "tie"}
        Candidate that is better.
    prompt : str
        Format of the prompt.
    order : {"AB", "BA"}
        ``AB`` shows candidate 1 first.

    Examples
    --------
    >>> cell_law("facts-01", "facts", "1", "none", "AB")
    {'A': 0.8255, 'B': 0.0616, 'TIE': 0.0829, 'It depends on what you value.': 0.02, 'A or B': 0.01}
    """
    about = TOPICS[topic]
    clearness = about.clear + about.spread * _normal("clear", item)
    lean = {"1": clearness, "2": -clearness, "tie": 0.0}[better]
    if _uniform("touchy", item) < about.touchy:
        lean += FORMAT * _normal("format", item, prompt)
    shown_first = lean if order == "AB" else -lean
    weights = {
        "A": math.exp((shown_first + about.first) / 2),
        "B": math.exp(-(shown_first + about.first) / 2),
        "TIE": math.exp(about.tie + (1.0 if better == "tie" else 0.0)),
    }
    share = (1.0 - sum(UNCLEAR.values())) / sum(weights.values())
    law = {text: round(share * weight, DIGITS) for text, weight in weights.items()}
    law["A"] = round(1.0 - law["B"] - law["TIE"] - sum(UNCLEAR.values()), DIGITS)
    return law | UNCLEAR


def _uniform(*names: str) -> float:
    return (blake2b_64(["simulated", *names]) + 0.5) / 2**64


def _normal(*names: str) -> float:
    return NormalDist().inv_cdf(_uniform(*names))
