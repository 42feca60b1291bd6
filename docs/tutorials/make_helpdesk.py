"""Write helpdesk.csv, the table of the tutorial: two judges compare two support assistants, with known truth.

A shop asks which of its assistants, the old or the new one, answers a customer better. Judge *kestrel* is steady, but
on some questions one wording of the judging prompt turns it. Judge *plover* wavers from call to call and takes no
notice of the wording. Both lean to the answer shown first. Every verdict is drawn from laws written down here.

    python docs/tutorials/make_helpdesk.py [OUTPUT]
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

SEED = 20261130
TABLE = Path(__file__).parents[2] / "secondorder" / "_shipped_data" / "helpdesk.csv"
COLUMNS = ("judge", "question", "topic", "prompt", "order", "run", "winner")
CLASSES = ("old", "new", "tie", "")
PROMPTS = ("plain", "rubric", "steps", "strict")
ORDERS = ("new-first", "old-first")
RUNS = 4
QUESTIONS = {
    "delivery": (
        "parcel-says-delivered",
        "change-the-address",
        "courier-rang-nobody",
        "two-parcels-one-came",
        "customs-fee-who-pays",
        "leave-with-neighbour",
    ),
    "returns": (
        "lost-the-receipt",
        "worn-once-too-small",
        "label-will-not-print",
        "gift-sender-must-not-know",
        "day-31-of-30",
        "swap-the-colour",
    ),
    "billing": (
        "charged-twice",
        "voucher-refused",
        "invoice-with-company-name",
        "refund-to-closed-card",
        "price-dropped-next-day",
        "split-over-two-cards",
    ),
    "product": (
        "kettle-smells-new",
        "does-it-fit-model-b",
        "manual-in-portuguese",
        "allergic-to-wool",
        "battery-lasts-an-hour",
        "screw-is-missing",
    ),
}

Law = dict[tuple[str, str], tuple[float, ...]]


def shifted(law: list[float], source: int, target: int, mass: float) -> list[float]:
    """Move up to `mass` of probability from one class to another."""
    moved = min(mass, law[source])
    return [p - moved if c == source else p + moved if c == target else p for c, p in enumerate(law)]


def by_order(law: list[float], lean: float) -> dict[str, tuple[float, ...]]:
    """The same law under both orders, leaning to the answer shown first."""
    return {"new-first": tuple(shifted(law, 0, 1, lean)), "old-first": tuple(shifted(law, 1, 0, lean))}


def kestrel(chance: random.Random) -> Law:
    """A steady judge: .9 on its favourite; on a third of the questions one wording moves .4 to the other answer."""
    favourite = 1 if chance.random() < 0.65 else 0
    law = [0.04, 0.04, 0.05, 0.01]
    law[favourite] = 0.90
    turned = chance.choice(PROMPTS) if chance.random() < 0.35 else None
    turn = shifted(law, favourite, 1 - favourite, 0.4)
    return {
        (prompt, order): cell
        for prompt in PROMPTS
        for order, cell in by_order(turn if prompt == turned else law, 0.03).items()
    }


def plover(chance: random.Random) -> Law:
    """A wavering judge: a spread-out law of its own on every question, the same under every wording."""
    draws = [chance.gammavariate(shape, 1) for shape in (4.0, 5.0, 3.0)]
    law = [0.97 * draw / sum(draws) for draw in draws] + [0.03]
    return {(prompt, order): cell for prompt in PROMPTS for order, cell in by_order(law, 0.08).items()}


def laws() -> dict[tuple[str, str], Law]:
    """The law of every cell by judge and question."""
    chance = random.Random(SEED)
    return {
        (judge, question): draw(chance)
        for judge, draw in (("kestrel", kestrel), ("plover", plover))
        for questions in QUESTIONS.values()
        for question in questions
    }


def rows() -> list[tuple[str, ...]]:
    """Every call, in the order of the file."""
    chance = random.Random(SEED + 1)
    topics = {question: topic for topic, questions in QUESTIONS.items() for question in questions}
    return [
        (judge, question, topics[question], prompt, order, str(run + 1), chance.choices(CLASSES, law)[0])
        for (judge, question), cells in laws().items()
        for (prompt, order), law in cells.items()
        for run in range(RUNS)
    ]


def main(path: Path = TABLE) -> None:
    """Write the table."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
