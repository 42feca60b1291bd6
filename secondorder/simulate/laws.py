"""Response laws with known truth: what a simulated judge says, cell by cell.

A law is a labelled array ``(item, facets..., class)`` of class probabilities (:class:`xarray.DataArray`), the form
that ``secondorder.estimate_law`` gives for a real cube: a fitted law and a made-up one are used alike. An optional
coordinate ``weight`` on the items makes them a population to draw items from, and an optional coordinate ``stratum``
splits it.

Functions make a law (:func:`exchangeable`, :func:`effects`, :func:`dirichlet`, :func:`scores`, :func:`deterministic`,
:func:`position_bias`, :func:`rare_flips`), change one (:func:`dial`, :func:`mix`, :func:`lazy`, :func:`with_invalid`),
or join several into a population of items (:func:`population`, :func:`sparse`).
"""

from __future__ import annotations

from secondorder.simulate._changed_laws import components, dial, lazy, mix, population, sparse, with_invalid
from secondorder.simulate._made_laws import (
    deterministic,
    dirichlet,
    effects,
    exchangeable,
    position_bias,
    rare_flips,
    scores,
)

__all__ = [
    "components",
    "deterministic",
    "dial",
    "dirichlet",
    "effects",
    "exchangeable",
    "lazy",
    "mix",
    "population",
    "position_bias",
    "rare_flips",
    "scores",
    "sparse",
    "with_invalid",
]
