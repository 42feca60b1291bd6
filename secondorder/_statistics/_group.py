"""One decomposition: the per-item values of one judge (or of any other group), and what its numbers say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secondorder._design import Component, Design
from secondorder._labels._columns import natural_order
from secondorder._statistics._calls import Calls
from secondorder._statistics._settings import COVERS, METHODS, Covers, Method, Settings, one_of
from secondorder.core._intervals import (
    Interval,
    ItemErrors,
    bca_interval,
    item_errors,
    percentile_interval,
    simultaneous_interval,
    studentised_interval,
    t_interval,
)
from secondorder.core._resampling import Resampled, resample
from secondorder.errors import InputError, UndefinedError

__all__ = ["SE_KEYS", "Estimate", "FacetInfo", "Group", "Undefined"]

Floats = NDArray[np.float64]
SE_KEYS: Mapping[str, str] = {
    "items": "se_items",
    "calls": "se_calls",
    "prompts": "se_prompts",
    "items+prompts": "se_items_prompts",
}


@dataclass(frozen=True)
class FacetInfo:
    """A facet as it stands in a result.

    Attributes
    ----------
    kind : {"fixed", "random", "single"}
        ``single``: one level, left out of the decomposition.
    levels : tuple of str
    weights : tuple of float or None
        None for a random facet.
    population : int or None
    """

    kind: str
    levels: tuple[str, ...]
    weights: tuple[float, ...] | None
    population: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values in the order of the JSON schema."""
        plain: dict[str, Any] = {"kind": self.kind, "levels": list(self.levels)}
        if self.weights is not None:
            plain["weights"] = list(self.weights)
        if self.population is not None:
            plain["population"] = self.population
        return plain


@dataclass(frozen=True)
class Undefined:
    """A number that does not exist for these data, and why."""

    component: str
    field: str
    reason: str
    stratum: str | None = None

    def to_dict(self) -> dict[str, str]:
        """Plain values; the stratum only where there is one."""
        plain = {"component": self.component, "field": self.field, "reason": self.reason}
        return plain if self.stratum is None else {"stratum": self.stratum, **plain}


@dataclass(frozen=True)
class Estimate:
    """A component of one group, macroaveraged over items.

    Attributes
    ----------
    component : str
    estimate : float
        Debiased; NaN where undefined.
    plugin : float
        What the usual measure reports.
    inflation : float
        ``plugin - estimate``.
    se_items : float
        Standard error over items as a sample (it includes call noise).
    lower, upper : float
        Band by the settings' method, covering the settings' randomness.
    reason : str
        Why something above is undefined; empty otherwise.
    """

    component: str
    estimate: float
    plugin: float
    inflation: float
    se_items: float
    lower: float
    upper: float
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Group:
    """Decomposition of one judge, or of the whole cube.

    Attributes
    ----------
    by : mapping of str to str
        What sets this group apart; empty without groups.
    items : tuple of str
        Labels of the items used, in natural order.
    strata : tuple of str or None
        Stratum of every item.
    design : Design
    facets : mapping of str to FacetInfo
    components : tuple of Component
    values, plugin_values : array, shape (n_items, n_components)
        Debiased and plug-in value of every item; NaN where undefined.
    reasons : tuple of str
        Per component: why the debiased value is undefined, else empty.
    parts : mapping of str to array
        For a kernel that is a sum: each part's debiased values.
    n_calls, n_invalid, n_missing : int
        Calls used; ⊥ among the calls of the items used (they are set aside under ``invalid="missing"``); planned calls
        without completion, those of dropped items included.
    n_absent : int
        Those of the missing for which an imported table has no row, or its label for missing: unequal numbers of calls
        in the cells, or calls that were lost; the table does not say which.
    items_dropped : tuple of mapping
        Items left out, each with its reason.
    repeats : (int, int)
        Least and most completed calls in a cell.
    notes : tuple of str
        What else a reader has to know.
    """

    by: Mapping[str, str]
    items: tuple[str, ...]
    strata: tuple[str, ...] | None
    design: Design
    facets: Mapping[str, FacetInfo]
    components: tuple[Component, ...]
    values: Floats
    plugin_values: Floats
    reasons: tuple[str, ...]
    n_calls: int
    n_invalid: int
    n_missing: int
    n_absent: int
    items_dropped: tuple[Mapping[str, str], ...]
    repeats: tuple[int, int]
    settings: Settings
    calls: Calls
    parts: Mapping[str, Floats] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Component names, in the order of every table."""
        return tuple(component.name for component in self.components)

    def index(self, component: str) -> int:
        """Position of a component.

        Raises
        ------
        InputError
            Naming the components there are.
        """
        if component not in self.names:
            raise InputError(
                f"there is no component {component!r}", place="component", remedy=f"choose {', '.join(self.names)}"
            )
        return self.names.index(component)

    @property
    def scale(self) -> float:
        """Largest disagreement of the kernel: differences far below it are rounding."""
        return float(self.calls.kernel.max(initial=0.0))

    @cached_property
    def strata_codes(self) -> NDArray[np.int64] | None:
        """Stratum of every item as a number."""
        if self.strata is None:
            return None
        _, codes = np.unique(np.asarray(self.strata, dtype=object).astype(str), return_inverse=True)
        return codes.astype(np.int64)

    @cached_property
    def item_errors(self) -> ItemErrors:
        """Mean and standard error over items of every component (debiased)."""
        return item_errors(self.values, self.strata_codes, self.scale)

    @cached_property
    def _errors(self) -> dict[Covers, ItemErrors]:
        return {}

    @cached_property
    def resampled(self) -> Resampled:
        """Joint whole-item draws of the debiased and the plug-in values, under the settings' seed."""
        return self._resample(studentised=False)

    @cached_property
    def resampled_studentised(self) -> Resampled:
        """The same draws with a standard error for each."""
        return self._resample(studentised=True)

    def _resample(self, *, studentised: bool) -> Resampled:
        return resample(
            np.concatenate([self.values, self.plugin_values], axis=1),
            self.strata_codes,
            seed=self.settings.seed,
            n_draws=self.settings.draws,
            scale=self.scale,
            studentised=studentised,
        )

    def errors(self, covers: Covers) -> ItemErrors:
        """Estimate, standard error, degrees of freedom and reasons for the randomness that is to be covered."""
        one_of("covers", covers, COVERS)
        if covers not in self._errors:
            from secondorder._statistics._errors import group_errors

            self._errors[covers] = group_errors(self, covers)
        return self._errors[covers]

    def band(self, covers: Covers | None = None, method: Method | None = None, level: float | None = None) -> Interval:
        """Band of every component (debiased) for a randomness, by a method; defaults are the settings'."""
        covers = covers or self.settings.covers
        method = method or self.settings.interval
        one_of("interval", method, METHODS)
        level = self.settings.level if level is None else level
        if not 0 < level < 1:
            raise InputError(f"{level} is not between 0 and 1", place="level", remedy="say for instance 0.95")
        errors = self.errors(covers)
        if method == "t":
            band = t_interval(errors, level)
        elif covers != "items":
            raise UndefinedError(
                f"a {method} band covers resampled items, not {covers}",
                place="interval",
                remedy=f"use interval='t' with covers={covers!r}",
            )
        else:
            band = self._bootstrap_band(method, level)
        reasons = tuple(own or other for own, other in zip(self.reasons, band.reason, strict=True))
        return band._replace(reason=reasons)

    @cached_property
    def own_band(self) -> Interval:
        """The band that the settings ask for."""
        return self.band()

    def _bootstrap_band(self, method: Method, level: float) -> Interval:
        size = len(self.components)
        drawn = self.resampled_studentised if method == "studentised" else self.resampled
        errors = self.item_errors
        if method == "percentile":
            return percentile_interval(errors, drawn.draws[:, :size], level)
        if method == "bca":
            return bca_interval(errors, drawn.draws[:, :size], drawn.influence[:, :size], level, self.scale)
        if drawn.se_draws is None:
            raise UndefinedError("the draws carry no standard errors", place="interval='studentised'")
        return studentised_interval(errors, drawn.draws[:, :size], drawn.se_draws[:, :size], level)

    def simultaneous_band(self, level: float | None = None) -> Interval:
        """Bands over items that hold for all components together."""
        size = len(self.components)
        return simultaneous_interval(
            self.item_errors, self.resampled.draws[:, :size], self.settings.level if level is None else level
        )

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """Every component with its band, under the settings."""
        band = self.own_band
        debiased, plugin = self.values.mean(0), self.plugin_values.mean(0)
        return tuple(
            Estimate(
                name,
                float(debiased[j]),
                float(plugin[j]),
                float(plugin[j] - debiased[j]),
                float(self.item_errors.se[j]),
                float(band.lower[j]),
                float(band.upper[j]),
                self.reasons[j] or band.reason[j],
            )
            for j, name in enumerate(self.names)
        )

    @cached_property
    def undefined(self) -> tuple[Undefined, ...]:
        """Every number of this group that does not exist, with its reason."""
        found: list[Undefined] = []
        item_reasons = self.item_errors.reason
        band_reasons = self.own_band.reason
        covers = self.settings.covers
        cover_reasons = item_reasons if covers == "items" else self.errors(covers).reason
        for j, name in enumerate(self.names):
            if self.reasons[j]:
                fields = ["estimate", "inflation", "se_items", "lower", "upper"]
                if covers != "items":
                    fields.insert(3, SE_KEYS[covers])
                if np.isnan(self.plugin_values[:, j]).any():
                    fields.insert(1, "plugin")
                fields.extend(f"parts.{part}" for part in self.parts)
                found.extend(Undefined(name, label, self.reasons[j]) for label in fields)
                continue
            if item_reasons[j]:
                found.append(Undefined(name, "se_items", item_reasons[j]))
            if covers != "items" and cover_reasons[j]:
                found.append(Undefined(name, SE_KEYS[covers], cover_reasons[j]))
            if band_reasons[j]:
                found.extend(Undefined(name, label, band_reasons[j]) for label in ("lower", "upper"))
        return tuple(found)

    @cached_property
    def agreement(self) -> Mapping[str, float]:
        """Mean agreement ``H_S = 1 - D_S`` of two calls, by what they share (nominal kernel).

        One equally weighted facet: ``A_within`` and ``A_across``, of calls that share its level and of calls on
        distinct levels. Otherwise ``H_`` followed by the shared facets, where a facet that is not shared is drawn
        independently (the same level may come up twice); for prompt and order in the paper's words ``H_XO, H_X, H_O,
        H_0``.

        Raises
        ------
        UndefinedError
            Under another kernel than nominal.
        """
        from secondorder._statistics._agreement import pair_agreement

        return pair_agreement(self)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """Notes of the group, and of the errors and bands that its settings ask for."""
        notes = list(self.notes)
        band = self.own_band
        lost = {
            name: n
            for name, n, reason in zip(self.names, band.undefined_draws, band.reason, strict=True)
            if n and not reason
        }
        if lost:
            counts = ", ".join(f"{name} {number}" for name, number in lost.items())
            notes.append(f"of {self.settings.draws} draws these have no value and are left out of the band: {counts}")
        if self.settings.covers != "items":
            from secondorder._statistics._errors import call_note, fixed_note

            note = call_note(self) if self.settings.covers == "calls" else fixed_note(self)
            notes.extend([] if note is None else [note])
        return tuple(notes)

    def subset(self, keep: NDArray[np.bool_]) -> Group:
        """The same decomposition on some of the items (a stratum, or the items shared with another judge)."""
        from dataclasses import replace

        chosen = np.flatnonzero(keep)
        return replace(
            self,
            items=tuple(self.items[i] for i in chosen),
            strata=None if self.strata is None else tuple(self.strata[i] for i in chosen),
            values=self.values[chosen],
            plugin_values=self.plugin_values[chosen],
            parts={name: values[chosen] for name, values in self.parts.items()},
            calls=self.calls.of(chosen),
        )

    def by_stratum(self) -> dict[str, Group]:
        """One group per stratum, each with its items as a simple sample."""
        from dataclasses import replace

        if self.strata is None:
            return {}
        labels = np.asarray(self.strata, dtype=object)
        distinct = list(dict.fromkeys(self.strata))
        return {distinct[k]: replace(self.subset(labels == distinct[k]), strata=None) for k in natural_order(distinct)}
