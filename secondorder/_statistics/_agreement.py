"""Mean agreement of two calls by what they share: the words of the defining paper for the nominal kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from secondorder._design import standard_components
from secondorder.errors import UndefinedError

if TYPE_CHECKING:
    from secondorder._statistics._group import Group

__all__ = ["pair_agreement"]


def pair_agreement(group: Group) -> Mapping[str, float]:
    """``H_S = 1 - D_S`` for every set of shared facets; ``A_within`` and ``A_across`` for one equally weighted facet.

    Raises
    ------
    UndefinedError
        Under another kernel than nominal.
    """
    if group.settings.kernel != "nominal":
        raise UndefinedError(
            f"agreement is the complement of nominal disagreement; the kernel is {group.settings.kernel}",
            place="agreement",
            remedy="decompose with kernel='nominal'",
        )
    facets = group.design.names
    # Components of the user's own are no part of the identity, whatever they are called.
    standard = {component.name for component in standard_components(facets)}
    mean = {name: value for name, value in zip(group.names, group.values.mean(0), strict=True) if name in standard}
    if len(facets) == 1 and len(set(group.design.weights[0])) == 1:
        # A census draws the same level twice with probability 1/K (a list of M with 1/M): A_across leaves that out.
        population = group.design.populations[0]
        distinct = 1 - 1 / (len(group.design.weights[0]) if population is None else population)
        within = float(1 - mean["call"])
        return {"A_within": within, "A_across": float(within - mean[facets[0]] / distinct)}
    # Moebius inversion: D_S is the total less every component inside S.
    found = {}
    for mask in range((1 << len(facets)) - 1, -1, -1):
        shared = [name for j, name in enumerate(facets) if mask >> j & 1]
        inside = sum(
            value
            for name, value in mean.items()
            if name not in ("call", "total") and set(name.split(":")) <= set(shared)
        )
        found[_name(shared, facets)] = float(1 - (mean["total"] - inside))
    return found


def _name(shared: Sequence[str], facets: Sequence[str]) -> str:
    if set(facets) == {"prompt", "order"}:
        letters = {"prompt": "X", "order": "O"}
        return "H_" + ("".join(letters[name] for name in ("prompt", "order") if name in shared) or "0")
    return "H_" + (":".join(shared) or "0")
