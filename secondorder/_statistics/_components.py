"""The components of an analysis: the standard ones, and the user's own after them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from secondorder._design import Component, standard_components
from secondorder.errors import DesignError

__all__ = ["all_components"]


def all_components(facets: Sequence[str], own: Component | Sequence[Component]) -> tuple[Component, ...]:
    """Standard components of the facets, followed by the user's own.

    Raises
    ------
    DesignError
        When two components have one name.

    Examples
    --------
    >>> [component.name for component in all_components(["prompt"], [Component("mine", (((), 1),))])]
    ['call', 'prompt', 'total', 'mine']
    """
    found = (*standard_components(facets), *((own,) if isinstance(own, Component) else own))
    ((name, times),) = Counter(component.name for component in found).most_common(1)
    if times > 1:
        raise DesignError(f"{times} components are called {name!r}", place="components", remedy="rename yours")
    return found
