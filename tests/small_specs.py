"""Two small specs, and the plan of a few items under them."""

from __future__ import annotations

from pathlib import Path

from secondorder.acquire._items import Item
from secondorder.acquire._load import parse_spec
from secondorder.acquire._plan import plan

SPECS = Path(__file__).parent / "specs"
SMALLEST = (SPECS / "smallest.toml").read_text(encoding="utf-8")
POINTWISE = (SPECS / "pointwise.toml").read_text(encoding="utf-8")
NULL = "\n[null]\nitems = 2\nids = 3\n"
ITEMS = [Item(f"q{n}", {"input": f"task {n}", "output_1": f"one {n}", "output_2": f"two {n}"}) for n in range(5)]


def planned(text: str = SMALLEST, items=ITEMS):
    return plan(parse_spec(text), items)
