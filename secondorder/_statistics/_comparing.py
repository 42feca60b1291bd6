"""The verb for judges that were decomposed apart: one comparison of all of them."""

from __future__ import annotations

from dataclasses import replace

from secondorder._statistics._comparable import told_apart
from secondorder._statistics._compare import Comparison, compare_groups
from secondorder._statistics._decomposition import Decomposition, required
from secondorder._statistics._settings import Settings
from secondorder.errors import InputError

__all__ = ["compare"]


def compare(a: Decomposition, b: Decomposition, *more: Decomposition) -> Comparison:
    """Compare judges on the items that they share, by the difference that each item shows.

    Parameters
    ----------
    a, b, *more : Decomposition
        Under the same facets, classes and kernel. Groups without labels of their own are called by their position.
        The band's level, method and seed are those of `a`; it covers items. Other levels of a fixed facet, or other
        pairs of calls, are noted.

    Returns
    -------
    Comparison
        Differences of every component for every pair, orderings by both measures, and the share of draws in which
        the two measures put different judges first.

    Raises
    ------
    InputError
        When the declarations differ, no item is shared, or something else than decompositions is given.

    Examples
    --------
    >>> import secondorder as so
    >>> rows = [
    ...     {"judge": judge, "item": item, "prompt": prompt, "run": str(r), "verdict": verdict}
    ...     for judge, answers in {"x": ["AA", "AB", "BB", "AB"], "y": ["AB", "BA", "AB", "BB"]}.items()
    ...     for (item, prompt), calls in zip([("q1", "p"), ("q1", "q"), ("q2", "p"), ("q2", "q")], answers)
    ...     for r, verdict in enumerate(calls)
    ... ]
    >>> cubes = [
    ...     so.make_cube([row for row in rows if row["judge"] == judge], item="item", facets=["prompt"], repeat="run",
    ...                  verdict="verdict", classes=["A", "B"])
    ...     for judge in "xy"
    ... ]
    >>> comparison = so.compare(*map(so.decompose, cubes))
    >>> comparison.n_items, comparison.differences[0].component, comparison.differences[0].estimate
    (2, 'call', -0.25)
    """
    groups = told_apart([group for given in (a, b, *more) for group in required(given, "compare").groups])
    groups = [replace(group, settings=_bands_of(group.settings, a.settings)) for group in groups]
    found = compare_groups(groups)
    if isinstance(found, str):
        raise InputError(found, place="compare", remedy="give decompositions of the same items")
    return found


def _bands_of(settings: Settings, other: Settings) -> Settings:
    """The settings with another's bands."""
    return replace(
        settings,
        covers=other.covers,
        interval=other.interval,
        level=other.level,
        draws=other.draws,
        seed=other.seed,
    )
