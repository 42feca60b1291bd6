"""Cubes of drawn verdicts: items, prompts, orders and repeats of three classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from secondorder._design import Facet
from secondorder._labels._cube import new_cube

LAW = np.array([0.5, 0.3, 0.2])


def cube_of(codes: np.ndarray, strata: list[str] | None = None) -> Any:
    """A cube of ``(item, prompt, order, repeat)`` codes of three classes."""
    items, prompts, orders, repeats = codes.shape
    return new_cube(
        codes.astype(np.int8),
        labels={
            "item": [str(i) for i in range(items)],
            "prompt": [f"p{k}" for k in range(prompts)],
            "order": [f"o{k}" for k in range(orders)],
            "repeat": [str(r) for r in range(repeats)],
        },
        classes=["a", "b", "c"],
        facets=[Facet("prompt"), Facet("order")],
        stratum=strata,
    )


def draw(shape: tuple[int, ...], seed: int, law: np.ndarray = LAW) -> np.ndarray:
    uniform = np.random.default_rng(seed).random(shape)
    return (uniform[..., None] > np.cumsum(law, -1)[..., :-1]).sum(-1)
