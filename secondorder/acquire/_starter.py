"""What ``secondorder init DIR`` writes: a commented ``audit.toml`` that plans as it stands, and four items."""

from __future__ import annotations

import json
import os
from pathlib import Path

from secondorder.errors import SpecError, StorageError

__all__ = ["AUDIT_TOML", "ITEMS_JSONL", "write_template"]

AUDIT_TOML = '''\
schema = "secondorder.audit/1"
name   = "my-judge"
seed   = 1                            # the only source of chance: call seeds, send order, hidden ids

# --- The judge: one table each; its name is a level of the dimension `judge` --------------------------------------

[judges.mine]
endpoint = "openai-chat"
flavour  = "vllm"                     # generic | vllm | llama.cpp: which sampling fields the server would fill itself
base_url = "http://127.0.0.1:8000/v1"
model    = "Qwen/Qwen3-8B"
# key_env = "JUDGE_KEY"               # the NAME of an environment variable; a key is never written here
# headers = { X-Title = "audit" }
# seeds   = true                      # false for a service that refuses the field `seed`
concurrency = 32                      # calls in flight
# requests_per_minute = 600
timeout_s = 600
# price   = { input = 0.25, output = 2.0 }         # USD per million tokens
# soft    = { token = "verdict" }                   # verdicts as probabilities, from log-probabilities of their token
# note    = "vLLM 0.33, chat template at 1f3c2ab"  # kept with the results, never sent

[judges.mine.body]                    # sent as written; what is left out is the server's choice
temperature = 1.0
top_p = 1.0
top_k = 0
min_p = 0.0
repetition_penalty = 1.0
max_tokens = 8

# --- What is judged -----------------------------------------------------------------------------------------------

[items]
file    = "items.jsonl"               # .jsonl .csv .tsv .parquet, beside this file; its fields are {{names}} below
id      = "id"                        # or several fields: ["question", "opponent"]
pair    = ["output_1", "output_2"]    # the two candidates; leave out for pointwise judging
stratum = "subset"                    # optional
gold    = "label"                     # optional; in the words of verdict.classes, empty where unknown
# limit = 50                          # the first in file order; or per_stratum = 10

# --- How it is asked: one template in several formats, or explicit wordings ------------------------------------------

[prompts]
policy    = "fixed"                   # fixed: these prompts are the target | random: they are a sample
criterion = "Which response follows the instruction better?"
census    = ["none", "upper", "title", "brackets", "xml", "markdown"]
user = """
{{criterion}}

Instruction: {{input}}

Response A: {{first}}

Response B: {{second}}

Answer with one word: A, B or TIE."""

# [[prompts.variants]]                # in the place of census and user; criterion and {{criterion}} stay optional
# id   = "short"
# user = "…"
# levels = { detail = "short" }       # facets of the wordings, fully crossed

# --- How often, in which order ----------------------------------------------------------------------------------------

[design]
orders  = ["AB", "BA"]                # leave out for pointwise judging
repeats = 4                           # 2 or more: with 1, call noise cannot be told from the rest
send    = "shuffled"                  # shuffled | by-item | by-cell

# --- What an answer means ---------------------------------------------------------------------------------------------

[verdict]
parser    = "label"                   # label | last-line | regex | json | score | package.module:function
labels    = { A = "first", B = "second", TIE = "tie" }
classes   = ["1", "2", "tie"]         # an invalid verdict is the further class ⊥
truncated = "invalid"                 # an answer cut at max_tokens: invalid | parse

[retry]                               # only for calls that brought no completion; the same bytes again
attempts = 6
give_up_after_s = 3600

# [limits]                            # reaching one stops the run and keeps everything
# calls    = 10000
# cost_usd = 25.0

# [null]                              # hidden ids on otherwise identical calls: here the true prompt effect is 0
# items = 10
# ids   = 6

# [stop]                              # stop early, validly; needs send = "by-item"
# component = "prompt"
# tau   = 0.02
# alpha = 0.05

# [gate]                              # ask the other prompts only where the first verdict needs it; send = "by-item"
# file = "gate.json"                  # from: secondorder study gate … --save gate.json

[analysis]                            # frozen before the first call
kernel  = "nominal"                   # nominal | ordinal | interval; required where all classes are numbers
invalid = "class"                     # class | missing; for kernel interval: missing | midpoint | { score, penalty }
pairs   = "complete"                  # complete | across-repeats | panel
level   = 0.95
draws   = 20000
'''

_FIELDS = ("id", "subset", "input", "output_1", "output_2", "label")
_ITEMS = (
    ("sum", "plain", "Add 17 and 25. Give the number only.", "42", "17 and 25 make 43.", "1"),
    (
        "haiku",
        "plain",
        "Write a haiku about rain.",
        "Rain is water that falls from clouds.",
        "Grey sky, patient roof / a thousand small drums begin / the street shines again",
        "2",
    ),
    (
        "no-list",
        "tricky",
        "Name three rivers in one sentence, without a list.",
        "- Nile\n- Rhine\n- Mekong",
        "The Nile, the Rhine and the Mekong are three rivers.",
        "2",
    ),
    ("greeting", "tricky", "Translate 'Guten Abend' into English.", "Good evening.", "Good evening!", "tie"),
)
ITEMS_JSONL = "".join(json.dumps(dict(zip(_FIELDS, row, strict=True))) + "\n" for row in _ITEMS)


def write_template(folder: str | os.PathLike[str]) -> list[Path]:
    """Write ``audit.toml`` and ``items.jsonl`` into a folder, which is made where it is missing.

    Returns
    -------
    list of Path
        The files written.

    Raises
    ------
    SpecError
        When one of them is already there: nothing is overwritten.
    StorageError
        When the folder cannot be made or written.
    """
    files = {Path(folder) / "audit.toml": AUDIT_TOML, Path(folder) / "items.jsonl": ITEMS_JSONL}
    for path in files:
        if path.exists():
            raise SpecError("is already there", place=str(path), remedy="give another folder, or move it away")
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise StorageError(
            f"cannot be written: {(error.strerror or str(error)).lower()}",
            place=str(folder),
            remedy="give a folder that you may write to",
        ) from error
    return list(files)
