"""An audit with soft verdicts, answers that list log-probabilities, and what its cube must hold."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import secondorder as so
from secondorder._audit._calls import acquire_stage
from secondorder._audit._cube import cube_of_run
from secondorder._audit._plan import planned_folder
from secondorder.acquire import Call, SimulatedJudge, SoftVerdict, make_soft, messages_key
from secondorder.acquire._load import parse_spec
from secondorder.acquire._plan import make_parse
from secondorder.acquire._reading import Completion

from ..small_audits import changed, lay_out

SPEC = """
schema = "secondorder.audit/1"
name   = "soft"
seed   = 1

[judges.toy]
endpoint = "openai-chat"
base_url = "http://127.0.0.1:1/v1"
model    = "toy"
soft     = { token = "verdict" }
body     = { temperature = 1.0, top_p = 1.0, max_tokens = 50 }

[items]
file = "items.jsonl"
id   = "id"
pair = ["one", "two"]

[prompts]
census    = ["none", "markdown"]
criterion = "Which is better?"
user      = "{{criterion}} A: {{first}} B: {{second}}"

[design]
orders  = ["AB", "BA"]
repeats = 2

[verdict]
parser  = "label"
labels  = { A = "first", B = "second", C = "tie" }
classes = ["1", "2", "tie"]
"""

FIRST = ('{ token = "verdict" }', '{ token = "first" }')
LINE = ('"label"', '"last-line"')


def spec_text(*changes: tuple[str, str]) -> str:
    return changed(SPEC, *changes)


def listed(*pairs: tuple[str, float]) -> list[dict[str, Any]]:
    return [{"token": token, "logprob": math.log(p) if p > 0 else -9999.0} for token, p in pairs]


def answer(*tokens: str | tuple[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Entries of an answer: a token alone is sure; with a list, that is what the server lists there."""
    found = []
    for token in tokens:
        name, alternatives = token if isinstance(token, tuple) else (token, listed((token, 1.0)))
        found.append({"token": name, "logprob": 0.0, "top_logprobs": alternatives})
    return found


def read(
    text: str, entries: Any, *changes: tuple[str, str], order: str = "AB", finish: str = "stop", body: bytes = b""
) -> SoftVerdict:
    """The soft verdict of one answer under the spec with these changes."""
    spec = parse_spec(spec_text(*changes))
    call = Call("id", 0, "toy", "1", "none", order, 0, False, 7, b"", "")
    outcome = make_parse(spec)(text, finish, call)
    sent = body or json.dumps({"choices": [{"logprobs": {"content": entries}}]}).encode()
    return make_soft(spec)(call, outcome, Completion(text=text, finish_reason=finish), sent)


def rounded(soft: SoftVerdict) -> dict[str, float]:
    assert not soft.reason
    return {label: round(p, 9) for label, p in soft.probabilities.items()}


HALVES = listed(("A", 0.5), ("B", 0.25), ("Hm", 0.125))

SCORES = [
    ('pair = ["one", "two"]\n', ""),
    ('orders  = ["AB", "BA"]\n', ""),
    (" A: {{first}} B: {{second}}", "{{one}}"),
    ("[verdict]", '[analysis]\nkernel = "interval"\ninvalid = "midpoint"\n\n[verdict]'),
    ('labels  = { A = "first", B = "second", C = "tie" }\nclasses = ["1", "2", "tie"]', 'classes = ["7", "8", "9"]'),
]
Law = Callable[[Call], Mapping[str, float]]

NO_SOFT = (('soft     = { token = "verdict" }\n', ""),)


def plan_of(folder: Path, *changes: tuple[str, str], items: int = 4) -> Any:
    rows = ({"id": f"q{k}", "one": f"one {k}", "two": f"two {k}"} for k in range(items))
    return so.plan_audit(lay_out(folder, spec_text(*changes), rows))


@contextmanager
def judge_of(folder: Path, law: Law, *changes: tuple[str, str], items: int = 4) -> Iterator[Path]:
    """An audit's folder while its simulated judge listens."""
    planned = plan_of(folder, *changes, items=items)
    laws = {messages_key(json.loads(call.request)["messages"]): law(call) for call in planned.calls}
    with SimulatedJudge(laws, process=False) as judge:
        file = folder / "audit.toml"
        file.write_text(file.read_text().replace("http://127.0.0.1:1/v1", judge.base_url))
        yield folder


def cube_of(folder: Path, law: Law, *changes: tuple[str, str], items: int = 4) -> Any:
    """Its cube alone."""
    with judge_of(folder, law, *changes, items=items):
        run, _ = planned_folder(so.load_audit(folder))
        acquire_stage(run)
    return cube_of_run(run)[0]


def one_word(call: Call) -> dict[str, float]:
    """A law over answers of one token, another one in every cell."""
    shift = 0.02 * (int(call.item[1:]) % 4) + 0.1 * (call.prompt == "none") + 0.05 * (call.order == "AB")
    return {"A": 0.3 + shift, "B": 0.4 - shift, "C": 0.2, "Neither": 0.1}


def truth_of(cube: Any) -> Any:
    """The law of `one_word` in the layout of a cube's estimated law."""
    true = so.estimate_law(cube).sel(judge="toy").copy()
    for item, prompt, order in itertools.product(*(true[dim].values for dim in ("item", "prompt", "order"))):
        law = one_word(Call("", 0, "toy", item, prompt, order, 0, False, 1, b"", ""))
        first, second = ("1", "2") if order == "AB" else ("2", "1")
        by_class = {first: law["A"], second: law["B"], "tie": law["C"], "⊥": law["Neither"]}
        true.loc[{"item": item, "prompt": prompt, "order": order}] = [by_class[c] for c in true["class"].values]
    return true


def notes_of(group: Any) -> str:
    return "; ".join(group.all_notes)
