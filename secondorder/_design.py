"""Declarations of a design: facets, components, and the weights with which pairs of calls enter a component.

Everything is one idea: a component is a signed sum of mean disagreements ``D_S`` over pairs of distinct calls that
share the levels of the facets in ``S`` and draw the levels of all other facets independently.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from numbers import Real
from typing import Any, Literal, TypeVar

import msgspec

from secondorder._schema import RESERVED_FACETS
from secondorder.errors import DesignError

__all__ = ["Component", "Design", "Facet", "Factor", "listed", "standard_components"]

FacetKind = Literal["fixed", "random"]
Factor = Literal["shared", "indep", "effect"]


class Facet(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=False):
    """A crossed source of variation.

    Parameters
    ----------
    name : str
        Name of the facet; the reserved words ``call total item repeat class`` and the character ``:`` are refused.
    kind : {"fixed", "random"}
        ``fixed``: the declared levels with their weights are the whole target (a census). ``random``: the levels are
        an independent sample from a policy, and the target is the policy.
    weights : mapping of level to float, optional
        Weights of the levels of a fixed facet; all levels, sum 1. Default: equal.
    population : int, optional
        For a random facet whose levels were drawn without replacement from a list: the length of that list. Default:
        independent draws from the policy.

    Examples
    --------
    >>> Facet("prompt")
    Facet(name='prompt', kind='fixed', weights=None, population=None)
    """

    name: str
    kind: FacetKind = "fixed"
    weights: Mapping[str, float] | None = None
    population: int | None = None

    def __post_init__(self) -> None:
        if not self.name or ":" in self.name or self.name in RESERVED_FACETS:
            raise DesignError(
                f"a facet cannot be called {self.name!r}",
                place="facets",
                remedy=f"rename the column; reserved: {', '.join(sorted(RESERVED_FACETS))} and every name with ':'",
            )
        if self.kind not in ("fixed", "random"):
            raise DesignError(f"kind is {self.kind!r}", place=f"facet {self.name}", remedy="say 'fixed' or 'random'")
        if self.kind == "random" and self.weights is not None:
            raise DesignError(
                "weights are declared for a random facet",
                place=f"facet {self.name}",
                remedy="a random facet's levels are an equally weighted sample: leave the weights out",
            )
        given: Any = self.weights or {}
        for level, weight in given.items():
            if not isinstance(weight, Real) or not 0 < float(weight) < math.inf:
                raise DesignError(
                    f"the weight of {level!r} is {weight}",
                    place=f"facet {self.name}",
                    remedy="give finite numbers above 0 that sum to 1",
                )
        if self.population is not None and self.kind != "random":
            raise DesignError(
                f"population={self.population} is declared for a fixed facet",
                place=f"facet {self.name}",
                remedy="say kind='random' when the levels are a sample from a list",
            )
        if self.population is not None and self.population < 2:
            raise DesignError(
                f"population={self.population}", place=f"facet {self.name}", remedy="give the length of the list, >= 2"
            )

    def bind(self, levels: Sequence[str]) -> tuple[tuple[float, ...], float | None]:
        """Weights in the order of `levels`, and the population (None: fixed; ``inf``: independent draws).

        Raises
        ------
        DesignError
            When the declared weights do not name exactly these levels, are not positive, or do not sum to 1; when a
            random facet has fewer than two levels, or more than its list.
        """
        size = len(levels)
        if self.kind == "random":
            if size < 2:
                raise DesignError(
                    f"{size} level", place=f"facet {self.name}", remedy="a random facet needs at least two levels"
                )
            if self.population is not None and size > self.population:
                raise DesignError(
                    f"{size} levels from a list of {self.population}",
                    place=f"facet {self.name}",
                    remedy="give the length of the list that the levels were drawn from",
                )
            return (1.0 / size,) * size, math.inf if self.population is None else float(self.population)
        if self.weights is None:
            return (1.0 / size,) * size, None
        unknown = [level for level in self.weights if level not in levels]
        absent = [level for level in levels if level not in self.weights]
        if unknown or absent:
            wrong = f"unknown levels {unknown}" if unknown else f"levels without a weight: {absent}"
            raise DesignError(
                f"weights name {wrong}", place=f"facet {self.name}", remedy=f"give one weight to each of {list(levels)}"
            )
        values = tuple(float(self.weights[level]) for level in levels)
        if abs(math.fsum(values) - 1) > 1e-9:
            raise DesignError(
                f"weights sum to {math.fsum(values):.12g}", place=f"facet {self.name}", remedy="make them sum to 1"
            )
        return values, None


class Design(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Facets bound to the levels of a cube: what the array code needs, hashable, in the order of the cell axes.

    Attributes
    ----------
    names : tuple of str
        Facet names.
    weights : tuple of tuple of real
        Weights of each facet's levels (floats, or fractions in exact checks).
    populations : tuple of (None or real)
        None for a fixed facet; for a random one the length of the list it was drawn from, ``inf`` for a policy.
    """

    names: tuple[str, ...]
    weights: tuple[tuple[Any, ...], ...]
    populations: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.names:
            raise DesignError("no facet has two levels", place="design", remedy="name at least one crossed facet")
        if len(set(self.names)) != len(self.names):
            raise DesignError(f"facet names repeat: {list(self.names)}", place="design")
        if not len(self.names) == len(self.weights) == len(self.populations):
            raise DesignError("names, weights and populations differ in length", place="design")

    @classmethod
    def from_facets(cls, facets: Sequence[Facet], levels: Sequence[Sequence[str]]) -> Design:
        """Bind declared facets to their levels, checking both."""
        bound = [facet.bind(names) for facet, names in zip(facets, levels, strict=True)]
        return cls(
            tuple(facet.name for facet in facets),
            tuple(weights for weights, _ in bound),
            tuple(population for _, population in bound),
        )

    @classmethod
    def balanced(
        cls, sizes: Mapping[str, int], *, random: Iterable[str] = (), populations: Mapping[str, Real] | None = None
    ) -> Design:
        """Equal weights for facets of the given sizes.

        Examples
        --------
        >>> Design.balanced({"prompt": 2, "order": 2}).weights
        ((0.5, 0.5), (0.5, 0.5))
        """
        lists = dict(populations or {})
        sampled = {name: lists.get(name, math.inf) for name in random}
        return cls(
            tuple(sizes),
            tuple((1.0 / size,) * size for size in sizes.values()),
            tuple(sampled.get(name) for name in sizes),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of levels of each facet."""
        return tuple(len(weights) for weights in self.weights)

    @property
    def n_cells(self) -> int:
        """Cells per item."""
        return math.prod(self.shape)

    @property
    def all_fixed(self) -> bool:
        """Whether every facet is a census."""
        return all(population is None for population in self.populations)

    def mask(self, shared: Iterable[str]) -> int:
        """Index of ``D_S`` for the subset of facets `shared`: bit j stands for facet j."""
        bits = 0
        for name in shared:
            if name not in self.names:
                raise DesignError(
                    f"facet {name!r} is not in the design", place="component", remedy=f"facets: {', '.join(self.names)}"
                )
            bits |= 1 << self.names.index(name)
        return bits

    def census(self) -> Design:
        """The same levels and weights with every facet fixed."""
        return Design(self.names, self.weights, (None,) * len(self.names))


class Component(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signed sum of pair disagreements ``D_S``.

    Parameters
    ----------
    name : str
        Name in tables.
    terms : tuple of (tuple of str, float)
        Each term is the set of facets that the two calls of a pair share, and its coefficient.

    Examples
    --------
    The disagreement added by drawing a new prompt while the order is kept:

    >>> new_prompt = Component("new prompt, same order", ((("order",), 1), (("prompt", "order"), -1)))
    >>> new_prompt.terms[0]
    (('order',), 1)
    """

    name: str
    terms: tuple[tuple[tuple[str, ...], Any], ...]

    def coefficients(self, design: Design) -> tuple[Any, ...]:
        """Coefficient of every ``D_S`` in the order of :meth:`Design.mask`, length ``2**J``."""
        values: list[Any] = [0] * (1 << len(design.names))
        for shared, value in self.terms:
            values[design.mask(shared)] += value
        return tuple(values)

    def products(self, design: Design) -> tuple[tuple[Any, tuple[Factor, ...]], ...]:
        """The component's pair weights as signed Kronecker products, one small matrix per facet.

        A standard component is one product (``shared``, ``indep`` or ``effect = shared - indep`` per facet); any other
        signed sum is one product of ``shared`` and ``indep`` per non-zero coefficient. See :func:`pair_factor` of the
        core for the matrices.
        """
        wanted = self.coefficients(design)
        for standard, kinds in _standard(design.names):
            if standard.coefficients(design) == wanted:
                sign = 1 if standard.name in ("call", "total") else -1
                return ((sign, kinds),)
        return tuple(
            (value, tuple("shared" if mask >> j & 1 else "indep" for j in range(len(design.names))))
            for mask, value in enumerate(wanted)
            if value != 0
        )


T = TypeVar("T")


def listed(given: str | T | Iterable[str | T]) -> tuple[str | T, ...]:
    """Several names (or facets, or components) as a tuple; a lone one is a list of one, not of its letters.

    Examples
    --------
    >>> listed("prompt"), listed(["prompt", "order"])
    (('prompt',), ('prompt', 'order'))
    """
    return tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)


def _standard(names: Sequence[str]) -> list[tuple[Component, tuple[Factor, ...]]]:
    names = tuple(names)
    shared: Factor = "shared"
    indep: Factor = "indep"
    effect: Factor = "effect"
    found: list[tuple[Component, tuple[Factor, ...]]] = [(Component("call", ((names, 1),)), (shared,) * len(names))]
    for size in range(1, len(names) + 1):
        for subset in combinations(names, size):
            terms = tuple(
                (inner, -((-1) ** (size - depth))) for depth in range(size + 1) for inner in combinations(subset, depth)
            )
            kinds = tuple(effect if name in subset else indep for name in names)
            found.append((Component(":".join(subset), terms), kinds))
    found.append((Component("total", (((), 1),)), (indep,) * len(names)))
    return found


def standard_components(names: str | Sequence[str]) -> tuple[Component, ...]:
    """``call``, every facet, every interaction by rising order, ``total`` (the order of every table and file).

    Parameters
    ----------
    names : str or sequence of str
        Facets, in the order that names their interactions.

    Examples
    --------
    >>> [component.name for component in standard_components(["prompt", "order"])]
    ['call', 'prompt', 'order', 'prompt:order', 'total']
    """
    return tuple(component for component, _ in _standard(listed(names)))
