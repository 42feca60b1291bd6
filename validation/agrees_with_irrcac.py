"""Agreement coefficients against irrCAC, whose values are recorded: it needs an environment of its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from secondorder.simulate import Claim, Finding
from secondorder.studies import coefficient

# Raters by items; -1 is missing. Data C counts its classes 1 to 5 from 0 here.
TABLES = {
    "data C": [
        [0, 1, 2, 2, 1, 0, 3, 0, 1, -1, -1, -1],
        [0, 1, 2, 2, 1, 1, 3, 0, 1, 4, -1, 2],
        [-1, 2, 2, 2, 1, 2, 3, 1, 1, 4, 0, -1],
        [0, 1, 2, 2, 1, 3, 3, 0, 1, 4, 0, -1],
    ],
    "pair": [[0, 0, 0, 1, 0], [0, 1, 0, 1, 0]],
    "rare class": [[0, 0, 1, 0, 0, 2, 0, 0], [0, 0, 1, 0, 1, 2, 0, 0], [0, 0, 0, 0, 0, 2, 0, 1]],
}
# irrCAC 0.4.4 with scipy 1.12.0, numpy 1.26.4, pandas 2.3.3, 30 November 2026: validation/_record_irrcac.py.
RECORDED = {
    ("data C", "nominal"): {"fleiss": 0.76117, "gwet": 0.77544, "krippendorff": 0.74342},
    ("data C", "linear"): {"fleiss": 0.81794, "gwet": 0.85874, "krippendorff": 0.80038},
    ("data C", "quadratic"): {"fleiss": 0.86494, "gwet": 0.91400, "krippendorff": 0.84911},
    ("pair", "nominal"): {"fleiss": 0.52381, "gwet": 0.65517, "krippendorff": 0.57143},
    ("rare class", "nominal"): {"fleiss": 0.45038, "gwet": 0.67640, "krippendorff": 0.47328},
}


def check(quick: bool) -> Iterator[Finding]:
    """Every recorded value to its last digit."""
    for (table, weights), values in RECORDED.items():
        ratings = np.array(TABLES[table]).T
        classes = int(ratings.max()) + 1
        scale = np.arange(classes, dtype=float)
        distance = np.abs(scale[:, None] - scale)
        matrix = {"nominal": (distance > 0).astype(float), "linear": distance, "quadratic": distance**2}[weights]
        for name, value in values.items():
            options = {"metric" if name == "krippendorff" else "weights": matrix / matrix.max()}
            found = coefficient(name, ratings=ratings, n_classes=classes, **options)
            yield Finding.close(f"{table}, {weights}: {name}", float(found.estimate), value, 5.01e-6)


CLAIM = Claim(
    name="agrees_with_irrcac",
    statement="Fleiss kappa, Gwet AC1 and AC2, and alpha equal the values of irrCAC, missing ratings included.",
    check=check,
    detectable="the fifth decimal",
)
