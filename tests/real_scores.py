"""Scores of HANNA: judges, criteria, prompts, systems and stories, with what people said."""

from __future__ import annotations

import ast
import csv
from pathlib import Path

import numpy as np
import xarray as xr

JUDGES = ("Beluga-13B", "OrcaPlatypus", "Mistral-7B", "Llama-13B", "ChatGPT")
CRITERIA = ("RE", "CH", "EM", "SU", "EG", "CX")


def read_hanna(data_dir: Path) -> xr.Dataset:
    """Scores of 5 judges x 6 criteria x 4 prompts x 11 systems x 96 stories, and the mean of three people."""
    csv.field_size_limit(10**8)
    with open(data_dir / "hanna" / "scores.csv", encoding="utf-8", newline="") as file:
        rows = {row["Model"]: row for row in csv.DictReader(file)}
    systems = list(rows)

    def cell(system: str, column: str) -> list[float]:
        return ast.literal_eval(rows[system][column])

    score = [
        [[[cell(s, f"{judge} {criterion} {p}") for s in systems] for p in range(1, 5)] for criterion in CRITERIA]
        for judge in JUDGES
    ]
    human = [[np.mean([cell(s, f"Human {k} {c}") for k in (1, 2, 3)], axis=0) for s in systems] for c in CRITERIA]
    return xr.Dataset(
        {
            "score": (("judge", "criterion", "prompt", "system", "item"), np.array(score)),
            "human": (("criterion", "system", "item"), np.array(human)),
        },
        coords={
            "judge": list(JUDGES),
            "criterion": list(CRITERIA),
            "prompt": ["1", "2", "3", "4"],
            "system": systems,
            "item": [f"story{i}" for i in range(96)],
        },
    )
