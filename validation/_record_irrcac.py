"""Records what irrCAC answers on the tables of ``agrees_with_other_programs.py``.

irrCAC pins an old scipy, so it lives in an environment of its own::

    python -m venv irrcac && irrcac/bin/pip install irrCAC
    irrcac/bin/python validation/_record_irrcac.py

The output is pasted into the claim, with the versions that it names.
"""

from __future__ import annotations

import json
from importlib.metadata import version

import pandas as pd
from irrCAC.raw import CAC

# Krippendorff's data C (coders as rows), the pair of case 7, and a table of three raters with a rare class.
TABLES = {
    "data C": [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ],
    "pair": [[0, 0, 0, 1, 0], [0, 1, 0, 1, 0]],
    "rare class": [[0, 0, 1, 0, 0, 2, 0, 0], [0, 0, 1, 0, 1, 2, 0, 0], [0, 0, 0, 0, 0, 2, 0, 1]],
}

found = {}
for name, rows in TABLES.items():
    frame = pd.DataFrame(rows, dtype=float).T
    for weights in ("identity", "linear", "quadratic"):
        if weights != "identity" and name != "data C":
            continue
        table = CAC(frame, weights=weights)
        found[f"{name}, {weights}"] = {
            "fleiss": table.fleiss()["est"]["coefficient_value"],
            "gwet": table.gwet()["est"]["coefficient_value"],
            "krippendorff": table.krippendorff()["est"]["coefficient_value"],
        }
print(
    json.dumps({"versions": {n: version(n) for n in ("irrCAC", "scipy", "numpy", "pandas")}, "values": found}, indent=1)
)
