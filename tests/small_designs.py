"""Scores of a planted factorial of judge designs."""

from __future__ import annotations

import numpy as np
import xarray as xr

DETAILS, SCALES, MODELS = ["base", "short", "long"], ["1-7", "-3-3", "0-1"], ["m1", "m2", "m3", "m4"]
BOUNDS = {"1-7": (1, 7), "-3-3": (-3, 3), "0-1": (0, 1)}
MODEL_BIAS = np.array([-0.4, 0.0, 0.2, 0.6])
DETAIL_BIAS = np.array([0.0, 0.0, 0.3])
FACTORS = ["detail", "scale", "model"]


def planted(n: int = 400, noise: float = 0.5, seed: int = 0, wide: float = 0.5) -> xr.Dataset:
    """Scores on three scales: model and detail move every item alike, the scale -3-3 moves toxicity alone."""
    rng = np.random.default_rng(seed)
    human = rng.uniform(3, 4.5, n)
    toxic = np.arange(n) % 2 == 1
    score = (
        human
        + noise * rng.uniform(-(3**0.5), 3**0.5, (3, 3, 4, n))
        + MODEL_BIAS[:, None]
        + DETAIL_BIAS[:, None, None, None]
    )
    score[:, 1] += wide * toxic
    low, high = np.array([BOUNDS[s] for s in SCALES], dtype=float).T
    shown = low[:, None, None] + (score - 1) / 6 * (high - low)[:, None, None]
    return xr.Dataset(
        {"score": (("detail", "scale", "model", "item"), shown), "gold": ("item", human)},
        coords={
            "detail": DETAILS,
            "scale": SCALES,
            "model": MODELS,
            "item": [f"q{i}" for i in range(n)],
            "task": ("item", np.where(toxic, "toxicity", "sentiment")),
        },
    )
