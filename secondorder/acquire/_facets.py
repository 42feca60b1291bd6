"""The facets of an audit within one judge: names, levels in planned order, weights."""

from __future__ import annotations

import itertools
import math

from secondorder.acquire._spec import AuditSpec
from secondorder.errors import SpecError

__all__ = ["SINGLE_ORDER", "facet_levels", "facet_weights"]

SINGLE_ORDER = "single"
"""The one order of pointwise judging."""


def facet_levels(spec: AuditSpec) -> dict[str, list[str]]:
    """Facets and their levels: ``prompt``, or the facets that the variants' levels name (by name), then ``order``."""
    variants = [variant for variant in spec.prompts.variants if variant.levels]
    facets: dict[str, list[str]] = {}
    if variants:
        for name in sorted(variants[0].levels):
            facets[name] = list(dict.fromkeys(variant.levels[name] for variant in variants))
    else:
        facets["prompt"] = [*(variant.id for variant in spec.prompts.variants), *spec.prompts.census]
    facets["order"] = [*spec.design.orders] if spec.design.orders else [SINGLE_ORDER]
    return facets


def facet_weights(spec: AuditSpec, *, file: str = "audit.toml") -> dict[str, dict[str, float]]:
    """Declared weights of each facet's levels; empty where all are equal.

    Raises
    ------
    SpecError
        When the variants' weights are not products of one weight per level: then no facet has weights of its own.
    """
    weights = spec.prompts.weights
    if weights is None:
        return {}
    levels = facet_levels(spec)
    if "prompt" in levels:
        return {"prompt": {name: weights[name] for name in levels["prompt"]}}
    variants = spec.prompts.variants
    found: dict[str, dict[str, float]] = {name: {} for name in levels if name != "order"}
    for name, variant in itertools.product(found, variants):
        level = variant.levels[name]
        found[name][level] = found[name].get(level, 0.0) + weights[variant.id]
    for variant in variants:
        product = math.prod(found[name][level] for name, level in variant.levels.items())
        if abs(product - weights[variant.id]) > 1e-9:
            raise SpecError(
                f"weight of '{variant.id}' is {weights[variant.id]:g}, that of its levels together is {product:g}",
                place=f"{file} [prompts.weights]",
                remedy="weights of crossed facets are products of one weight per level",
            )
    return found
