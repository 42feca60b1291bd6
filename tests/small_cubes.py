"""Small cubes of verdicts."""

from __future__ import annotations

import numpy as np
import xarray as xr


def cube_of(verdict: object, dims: tuple[str, ...], classes: list[str], **coords: object) -> xr.Dataset:
    return xr.Dataset({"verdict": (dims, np.asarray(verdict))}, coords={"class": classes, **coords})


PROMPTS = [f"p{k}" for k in range(1, 6)]


def panel(n: int = 400, seed: int = 0, **coords: object) -> xr.Dataset:
    """Five prompts; an item is easy, or hard for all of them; the coordinate says so with some error."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.3
    right = rng.integers(0, 3, n)
    said = np.where(rng.random((n, 5)) < np.where(hard, 0.6, 0.02)[:, None], rng.integers(0, 3, (n, 5)), right[:, None])
    return xr.Dataset(
        {"verdict": (("item", "prompt"), said)},
        coords={
            "class": ["A", "B", "C"],
            "prompt": PROMPTS,
            "item": [f"q{i}" for i in range(n)],
            "gold": ("item", np.array(["A", "B", "C"])[right]),
            "hard": ("item", hard + rng.normal(0, 0.3, n)),
            "task": ("item", np.array(["qa", "chat", "code"])[rng.integers(0, 3, n)]),
            **coords,
        },
    )
