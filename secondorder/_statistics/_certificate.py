"""Certificates: is a component below a threshold, or above it, with an error rate that optional stopping keeps?"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secondorder._labels._results import Table, format_number, printed, render_table
from secondorder._statistics._checked import finite, whole
from secondorder._statistics._decomposition import Decomposition, required
from secondorder.core._bounds import Bounds, item_bounds
from secondorder.core._sequential import Side, first_crossing, least_items, log_e_process
from secondorder.core._sequential import confidence_sequence as band_of
from secondorder.errors import InputError, UndefinedError

__all__ = ["Certificate", "certify", "confidence_sequence"]

Target = Literal["full-audit", "population"]
KNOWN = (
    "every item of this audit is known already, so nothing is left to infer for this target: the verdict compares the "
    "audit's own estimate with the threshold. For other items of the same source: --target population"
)


@printed
@dataclass(frozen=True)
class Certificate:
    """Verdict on a threshold.

    Attributes
    ----------
    component : str
    tau : float
    verdict : {"below", "above", "open"}
        ``below``: the component is less than `tau`. ``above``: it is at least `tau`. Exactly one of the two is false,
        so looking for both costs nothing: a false certificate has probability at most `alpha` in all.
    target : str
        ``full-audit``: the value that this audit reports on all of its items. ``population``: the mean over the
        source that items were drawn from.
    alpha : float
        Largest probability of a false certificate, whenever one stops.
    n_items : int
        Items looked at.
    stopped_at : int or None
        Items after which the verdict was reached, in the random order of the seed.
    least_items : int or None
        Fewest items after which "below" can be certified, if every item shows 0.
    lower, upper : float
        Anytime-valid band after all items looked at.
    audit_items : int or None
        Items of the whole audit; None for the target ``population``.
    """

    component: str
    tau: float
    verdict: str
    target: str
    alpha: float
    n_items: int
    stopped_at: int | None
    least_items: int | None
    lower: float
    upper: float
    audit_items: int | None = None

    @property
    def about(self) -> str:
        """What the verdict speaks of, in words."""
        if self.audit_items is None:
            return "population: the mean over the source that the items were drawn from, one by one"
        return (
            f"full-audit: the value that this audit reports (all {self.audit_items} items of it); says nothing of "
            "other items"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values of every field, with what the verdict is about."""
        return {**asdict(self), "about": self.about, "notes": list(self._cautions)}

    @property
    def _cautions(self) -> tuple[str, ...]:
        return (KNOWN,) if self.audit_items == self.n_items else ()

    def table(self) -> Table:
        """The certificate as a table of two columns."""
        level = f"{100 * (1 - self.alpha):g}%"
        words = {
            "below": f"{self.component} is below {self.tau:g}",
            "above": f"{self.component} is {self.tau:g} or more",
        }
        rows = (
            ("verdict", words.get(self.verdict, "open: not decided")),
            ("about", "source of the items" if self.audit_items is None else f"{self.audit_items} items of this audit"),
            ("target", self.target),
            ("error rate", f"{self.alpha:g}, under optional stopping"),
            ("items looked at", self.n_items),
            ("decided after", "–" if self.stopped_at is None else self.stopped_at),
            ("least items for 'below'", "–" if self.least_items is None else self.least_items),
            (f"{level} band, valid at any time", f"[{format_number(self.lower)}, {format_number(self.upper)}]"),
        )
        notes = (self.about, *self._cautions)
        return Table(f"Certificate: {self.component} against {self.tau:g}", ("", ""), rows, notes)

    def __str__(self) -> str:
        return render_table(self.table())


def certify(
    decomposition: Decomposition,
    component: str,
    tau: float,
    *,
    alpha: float = 0.05,
    target: Target = "full-audit",
    n_items: int | None = None,
    seed: int = 0,
) -> Certificate:
    """One-sided certificate that a component is below, or above, a threshold.

    A betting e-process over the items in a random order: capital grows on evidence against the hypothesis, by at most
    what the proven range of an item's debiased value allows, so that it reaches ``1 / alpha`` with probability at most
    `alpha` when the hypothesis holds, whenever one stops. A t bound has no such guarantee.

    Parameters
    ----------
    decomposition : Decomposition
        With one group, complete or across-repeats pairs.
    component : str
    tau : float
        Threshold, in the kernel's units.
    alpha : float
    target : {"full-audit", "population"}
        ``full-audit`` says nothing of other items, and where every item is known it has nothing left to infer: ask for
        ``population`` then.
    n_items : int, optional
        Items of the whole audit, when the decomposition holds a random part of them. Default: its items.
    seed : int
        Fixes the order of the items; it must be chosen before the values are seen.

    Returns
    -------
    Certificate

    Raises
    ------
    UndefinedError
        When the component is undefined, or its estimator has no proven range (panels; across-repeats pairs with missing
        calls); for the target
        ``population``, when items are a stratified sample: in no order are they independent draws from one source.
    InputError
        When `alpha`, `target` or `n_items` makes no sense, or the component cannot reach `tau`.

    Examples
    --------
    >>> import secondorder as so
    >>> rows = [
    ...     {"item": str(item), "prompt": prompt, "run": str(r), "verdict": "A"}
    ...     for item in range(60) for prompt in ("a", "b") for r in range(4)
    ... ]
    >>> cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=["A", "B"])
    >>> so.certify(so.decompose(cube), "prompt", tau=0.1).verdict
    'below'
    """
    group = required(decomposition, "certify")._only
    j = group.index(component)
    tau = finite(tau, "tau")
    whole(seed, "seed")
    if group.reasons[j]:
        raise UndefinedError(group.reasons[j], place=f"certify {component}")
    _check(alpha, target, n_items, len(group.items))
    if target == "population" and len(set(group.strata or ())) > 1:
        raise UndefinedError(
            "the items are a stratified sample, not independent draws from one source",
            place=f"certify {component}",
            remedy="certify one stratum at a time, or the value of the audit (target='full-audit')",
        )
    bounds = _bounds(decomposition, component)
    if tau > bounds.upper:
        raise InputError(
            f"{tau:g} is beyond what {component} can reach, {bounds.upper:.4g}, under the kernel "
            f"{decomposition.settings.kernel}",
            place="tau",
            remedy="below such a threshold every judge is: give a smaller one",
        )
    order = np.random.Generator(np.random.Philox(seed)).permutation(len(group.items))
    values = group.values[order, j]
    size = (n_items or len(values)) if target == "full-audit" else None
    return sequential_certificate(component, tau, values, values, bounds, alpha=alpha, n_items=size)


def sequential_certificate(
    component: str,
    tau: float,
    below: NDArray[np.float64],
    above: NDArray[np.float64],
    bounds: Bounds,
    *,
    alpha: float,
    n_items: int | None,
) -> Certificate:
    """Certificate from item values in their order.

    Parameters
    ----------
    below, above : array, shape (n,)
        Values for the certificates "below" and "at least": the same, but for items that lost calls, which count at the
        end of the range that is least favourable to each.
    n_items : int or None
        Items of the whole audit; None: the target is the population.
    """
    stops: dict[str, int] = {}
    sides: dict[Side, NDArray[np.float64]] = {"below": below, "above": above}
    for side, values in sides.items():
        crossed = int(first_crossing(log_e_process(values, tau, bounds, side, n_items=n_items), alpha))
        if crossed:
            stops[side] = crossed
    verdict = min(stops, key=lambda side: stops[side]) if stops else "open"
    lower = band_of(above, bounds, alpha=alpha, n_items=n_items).lower
    upper = band_of(below, bounds, alpha=alpha, n_items=n_items).upper
    return Certificate(
        component=component,
        tau=tau,
        verdict=verdict,
        target="population" if n_items is None else "full-audit",
        alpha=alpha,
        n_items=len(below),
        stopped_at=stops.get(verdict),
        least_items=fewest_items(tau, bounds, alpha=alpha, n_items=n_items),
        lower=float(lower[-1]) if len(lower) else bounds.lower,
        upper=float(upper[-1]) if len(upper) else bounds.upper,
        audit_items=n_items,
    )


def fewest_items(tau: float, bounds: Bounds, *, alpha: float, n_items: int | None) -> int | None:
    """Fewest items after which "below" can be certified, if every item shows 0; None: never."""
    if tau <= 0:
        return None
    found = least_items(tau, bounds, alpha=alpha, n_items=n_items) if tau < bounds.upper else 1
    # Whatever the bets, the value of an audit is known once all of its items are.
    return n_items if found is None else found


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise InputError(f"{alpha} is not between 0 and 1", place="alpha", remedy="say for instance 0.05")


def _check(alpha: float, target: str, n_items: int | None, looked_at: int) -> None:
    _check_alpha(alpha)
    if n_items is not None:
        whole(n_items, "n_items")
    if target not in ("full-audit", "population"):
        raise InputError(f"{target!r} is not a target", place="target", remedy="choose full-audit or population")
    if n_items is not None and (target == "population" or n_items < looked_at):
        raise InputError(
            f"n_items is {n_items} with {looked_at} items looked at and target {target!r}",
            place="n_items",
            remedy="it is the number of items of the whole audit, for target='full-audit'",
        )


def _bounds(decomposition: Decomposition, component: str) -> Bounds:
    group = decomposition._only
    if decomposition.settings.pairs == "panel":
        raise UndefinedError(
            "panel estimates have no proven range", place=f"certify {component}", remedy="use pairs='complete'"
        )
    counts = (group.calls.codes >= 0).sum(-1)
    if decomposition.settings.pairs == "across-repeats" and counts.min() != counts.max():
        raise UndefinedError(
            "across-repeats estimates with missing calls have no proven range",
            place=f"certify {component}",
            remedy="use pairs='complete', or incomplete='drop-item' on a cube without those items",
        )
    fewest = counts.min(axis=0)
    return item_bounds(
        group.design, group.components[group.index(component)], group.calls.kernel, fewest,
        pairs="across" if decomposition.settings.pairs == "across-repeats" else "complete",
        soft=group.calls.soft is not None,
    )  # fmt: skip


def confidence_sequence(
    values: ArrayLike, bounds: tuple[float, float], *, alpha: float = 0.05, n_items: int | None = None
) -> NDArray[np.float64]:
    """Anytime-valid band for a mean of bounded item values, after each item.

    Parameters
    ----------
    values : array, shape (n,)
        Item values in the order drawn.
    bounds : (float, float)
        Proven range of a value.
    alpha : float
    n_items : int, optional
        Length of the list that items come from without replacement. Default: an unlimited source.

    Returns
    -------
    array, shape (n, 2)
        Lower and upper end after each item; with probability ``1 - alpha`` all of them hold.

    Examples
    --------
    >>> lower, upper = confidence_sequence([0.0] * 150, (-0.1, 0.72))[-1]
    >>> bool(-0.01 < lower <= 0 < upper < 0.03)
    True
    """
    low, high = bounds
    if not -math.inf < low < high < math.inf:
        raise InputError(f"({low}, {high}) is no range", place="bounds", remedy="give two numbers, the lower first")
    _check_alpha(alpha)
    band = band_of(values, Bounds(*bounds), alpha=alpha, n_items=n_items)
    return np.stack([band.lower, band.upper], axis=-1)
