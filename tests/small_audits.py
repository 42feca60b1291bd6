"""Small audits: two specs that tests change to what they need, and the folder of an audit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

# All want `.format(url=…)`.
TOY = """
schema = "secondorder.audit/1"
name = "small"
seed = 7

[judges.toy]
endpoint = "openai-chat"
base_url = "{url}"
model = "toy"
concurrency = 8
body = {{ temperature = 1.0, top_p = 1.0, max_tokens = 8 }}

[items]
file = "items.jsonl"
id = "id"
"""

PAIRWISE = (
    TOY
    + """pair = ["one", "two"]

[prompts]
census = ["none", "xml"]
criterion = "Which is better?"
user = "{{{{criterion}}}} {{{{text}}}} A: {{{{first}}}} B: {{{{second}}}}"

[design]
orders = ["AB", "BA"]
repeats = 2

[verdict]
parser = "label"
labels = {{ A = "first", B = "second", TIE = "tie" }}
classes = ["1", "2", "tie"]

[retry]
attempts = 1
"""
)

YES_OR_NO = (
    TOY
    + """
[prompts]
variants = [
  {{ id = "p1", user = "Is it so? {{{{text}}}}" }},
  {{ id = "p2", user = "Would you say so? {{{{text}}}}" }},
  {{ id = "p3", user = "True? {{{{text}}}}" }},
]

[design]
repeats = 1
send = "by-item"

[verdict]
parser = "label"
labels = {{ A = "yes", B = "no", TIE = "unsure" }}
classes = ["yes", "no", "unsure"]
"""
)


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """The text with the first part of every pair, which has to be there, replaced by the second."""
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def lay_out(folder: Path, spec: str, items: Iterable[Mapping[str, object]]) -> Path:
    """An audit's folder with its two files; returns the path of the spec."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    path = folder / "audit.toml"
    path.write_text(spec, encoding="utf-8")
    return path
