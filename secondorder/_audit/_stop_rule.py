"""``[stop]``: the rule itself, from items in their order to a certificate. It knows nothing of calls being made.

Items stand in the order of their hashes under the audit seed, fixed before the first call. The target is the value that
the whole audit would report. An item that lost calls counts at the end of its range that is least favourable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._audit._cube import design_grid
from secondorder._audit._options import kernel_options
from secondorder._canon import blake2b_64
from secondorder._design import Component, Design, Facet, standard_components
from secondorder._labels._attributes import attribute, class_labels, facets_of
from secondorder._labels._cells import codes
from secondorder._labels._cube import groups
from secondorder._schema import BOTTOM, CODE_MISSING, ITEM, REASONS, REPEAT, STATUS
from secondorder._statistics._certificate import Certificate, fewest_items, sequential_certificate
from secondorder._statistics._kernel import choose_kernel
from secondorder.core._bounds import Bounds, item_bounds
from secondorder.core._cells import cells_from_codes
from secondorder.core._estimates import across_repeats, complete_pairs
from secondorder.core._precision import double_precision
from secondorder.core._sequential import Side, first_crossing, log_e_process
from secondorder.errors import SpecError

__all__ = ["StopRule", "Stopped", "least_work", "rule_of_manifest", "stop_rule", "stopped_judges"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class StopRule:
    """A stop rule bound to the design of an audit.

    Attributes
    ----------
    component : str
    tau, alpha : float
    items : tuple of str
        In the order in which they are looked at.
    design : Design
        Of the facets with several levels.
    part : Component
    kernel : array, shape (C, C)
    across : bool
        Whether pairs of different repeats are compared.
    dropped : int or None
        Code of ⊥ where it counts as a missing call.
    calls : int
        Calls that a cell needs.
    bounds : Bounds
    """

    component: str
    tau: float
    alpha: float
    items: tuple[str, ...]
    design: Design
    part: Component
    kernel: Floats
    across: bool
    dropped: int | None
    calls: int
    bounds: Bounds

    def values(self, verdicts: NDArray[Any]) -> Floats:
        """Value of every item from codes ``(n, L_1, ..., L_J, R)``; NaN where a cell has too few calls."""
        found = np.where(verdicts == self.dropped, CODE_MISSING, verdicts) if self.dropped is not None else verdicts
        whole = ((found >= 0).sum(-1) >= self.calls).reshape(len(found), -1).all(1)
        filled = np.where(whole.reshape(-1, *(1,) * (found.ndim - 1)), found, 0)
        if self.across:
            vectors = np.vstack([np.eye(len(self.kernel)), np.full(len(self.kernel), np.nan)])[filled]
            values = across_repeats(vectors, self.design, (self.part,), self.kernel)
        else:
            with double_precision():
                cells = cells_from_codes(filled, len(self.kernel))
            values = complete_pairs(cells, self.design, (self.part,), self.kernel)
        return np.where(whole, np.asarray(values)[:, 0], np.nan)

    def sides(self, values: Floats) -> tuple[Floats, Floats]:
        """Values for "below" and for "at least", items that lost calls at the least favourable end."""
        lost = np.isnan(values)
        return np.where(lost, self.bounds.upper, values), np.where(lost, self.bounds.lower, values)

    def decided(self, values: Floats) -> bool:
        """Whether the first items, in their order, decide."""
        below, above = self.sides(values)
        sides: dict[Side, Floats] = {"below": below, "above": above}
        capital = {
            side: log_e_process(part, self.tau, self.bounds, side, n_items=len(self.items))
            for side, part in sides.items()
        }
        return any(int(first_crossing(path, self.alpha)) for path in capital.values())

    def certificate(self, values: Floats) -> Certificate:
        """What the first items, in their order, say."""
        return sequential_certificate(
            self.component, self.tau, *self.sides(values), self.bounds, alpha=self.alpha, n_items=len(self.items)
        )

    @property
    def fewest(self) -> int | None:
        """Fewest items after which "below" can be certified."""
        return fewest_items(self.tau, self.bounds, alpha=self.alpha, n_items=len(self.items))


def stop_rule(
    spec: Mapping[str, Any], items: Sequence[str], facets: Sequence[Facet], levels: Sequence[Sequence[str]],
    classes: Sequence[str],
) -> StopRule:  # fmt: skip
    """The rule of a spec's ``[stop]``.

    Parameters
    ----------
    spec : mapping
        As it stands in the manifest.
    items : sequence of str
    facets : sequence of Facet
        With several levels each.
    levels : sequence of sequence of str
    classes : sequence of str
        ⊥ last.

    Raises
    ------
    SpecError
        When the declared analysis has no proven range.
    """
    stop, analysis, repeats = spec["stop"], spec["analysis"], spec["design"]["repeats"]
    if analysis["pairs"] == "panel":
        raise SpecError(
            "pairs is 'panel' with [stop]",
            place="audit.toml [analysis]",
            remedy='panel estimates have no proven range: write pairs = "complete" or "across-repeats"',
        )
    design = Design.from_facets(list(facets), [list(names) for names in levels])
    part = next(c for c in standard_components(design.names) if c.name == stop["component"])
    chosen = choose_kernel(analysis["kernel"], list(classes), bottom_occurs=True, **kernel_options(analysis))
    across = analysis["pairs"] == "across-repeats"
    dropped = list(classes).index(BOTTOM) if chosen.drop_invalid and BOTTOM in classes else None
    # ⊥ calls that are taken out leave cells of unequal size; every range for two calls holds for more.
    calls = 2 if dropped is not None and not across else repeats
    bounds = item_bounds(design, part, chosen.matrix, calls, pairs="across" if across else "complete")
    ranked = sorted((blake2b_64(["item", spec["seed"], label]), place) for place, label in enumerate(items))
    return StopRule(
        stop["component"],
        float(stop["tau"]),
        float(stop["alpha"]),
        tuple(items[place] for _, place in ranked),
        design,
        part,
        chosen.matrix,
        across,
        dropped,
        calls,
        bounds,
    )


def rule_of_manifest(manifest: Mapping[str, Any]) -> StopRule:
    """The rule of a planned audit."""
    grid = design_grid(manifest)
    crossed = [facet for facet in grid.facets if len(grid.labels[facet.name]) > 1]
    levels = [grid.labels[facet.name] for facet in crossed]
    return stop_rule(manifest["spec"], manifest["items"]["ids"], crossed, levels, grid.classes)


def least_work(manifest: Mapping[str, Any]) -> str:
    """How soon the rule can stop, in words: what a person should know before the first call."""
    rule, judges = rule_of_manifest(manifest), len(manifest["spec"]["judges"])
    items = len(rule.items)
    per_item = manifest["calls"] // items
    fewest = rule.fewest
    what = f"[stop] {rule.component} against {rule.tau:g}"
    if fewest is None or fewest >= items:
        return f"{what}: no evidence can decide before all {items} items are called; a larger tau, or more items, could"
    return (
        f"{what}: 'below' needs {fewest} of {items} items at least, {fewest * per_item:,} of {items * per_item:,} calls"
        + (f" of {judges} judges together" if judges > 1 else "")
    )


@dataclass(frozen=True)
class Stopped:
    """What a stop rule did to one judge.

    Attributes
    ----------
    judge : str
    certificate : Certificate
    planned, saved : int
        Calls of the design, and those of them that the rule did not want.
    """

    judge: str
    certificate: Certificate
    planned: int
    saved: int

    def __str__(self) -> str:
        found = self.certificate
        said = {
            "below": f"{found.component} is below {found.tau:g}",
            "above": f"{found.component} is {found.tau:g} or more",
            "open": f"whether {found.component} is below {found.tau:g} stays open",
        }[found.verdict]
        when = "" if found.stopped_at is None else f" after {found.stopped_at} items"
        return (
            f"{said}{when} (error rate {found.alpha:g}; {found.n_items} items looked at); "
            f"{self.saved:,} of {self.planned:,} calls saved"
        )


def stopped_judges(cube: xr.Dataset) -> tuple[Stopped, ...]:
    """Certificates of an acquired cube that was planned with ``[stop]``, one per judge; empty without."""
    spec = attribute(cube, "asked", {}).get("spec") or {}
    if not spec.get("stop"):
        return ()
    crossed = [facet for facet in facets_of(cube) if cube.sizes[facet.name] > 1]
    names = [facet.name for facet in crossed]
    labels = [str(label) for label in cube[ITEM].values]
    rule = stop_rule(
        spec, labels, crossed, [[str(level) for level in cube[name].values] for name in names], class_labels(cube)
    )
    found = []
    for by, part in groups(cube, [facet.name for facet in facets_of(cube)]):
        status = part["status"].transpose(ITEM, ..., REPEAT).values.reshape(len(labels), -1)
        called = dict(zip(labels, (status != STATUS.index("not_called")).any(1), strict=True))
        order = [labels.index(label) for label in rule.items]
        # Items were begun one after the other: what is looked at ends where calls ended.
        looked = next((k for k, label in enumerate(rule.items) if not called[label]), len(labels))
        values = rule.values(codes(part, names)[order[:looked]]) if looked else np.zeros(0)
        saved = int((part["reason"] == REASONS.index("stop_rule")).sum())
        found.append(Stopped(", ".join(by.values()), rule.certificate(values), status.size, saved))
    return tuple(found)
