"""The result of a decomposition: groups, their comparison, and its forms as table, JSON, CSV and dataset."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from secondorder._design import standard_components
from secondorder._labels._cube import by_text, with_labels
from secondorder._labels._results import Table, printed, render_table, wrapped_lines
from secondorder._schema import DECOMPOSITION_SCHEMA
from secondorder._statistics._compare import Comparison, compare_groups
from secondorder._statistics._errors import require_levels
from secondorder._statistics._group import SE_KEYS, Estimate, Group
from secondorder._statistics._group_table import above, group_table
from secondorder._statistics._settings import Covers, Method, Settings
from secondorder._version import __version__
from secondorder.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr
    from numpy.typing import NDArray

__all__ = ["Decomposition", "required"]

FEW_GROUPS = 3
"""Up to this many groups print with all their differences."""


@printed
@dataclass(frozen=True, eq=False)
class Decomposition:
    """Components of a judge's verdict variation, debiased beside plug-in.

    With one group ``d["prompt"]``, ``d.se``, ``d.interval``, ``d.agreement`` and ``d.items`` speak of it. With several
    (judges, or the values of ``--by``) take one first: ``d.select(judge="gpt-4o-mini")["prompt"]``.

    Attributes
    ----------
    settings : Settings
        What was asked.
    groups : tuple of Group
        One per judge, in natural order; a single one without groups.
    source : mapping
        Name, digest and row counts of the input.
    """

    settings: Settings
    groups: tuple[Group, ...]
    source: Mapping[str, Any] = field(default_factory=dict)

    @property
    def _only(self) -> Group:
        if len(self.groups) != 1:
            choices = "; ".join(by_text(group.by) for group in self.groups[:4])
            raise InputError(
                f"there are {len(self.groups)} groups", place="decomposition", remedy=f"select one of them: {choices}"
            )
        return self.groups[0]

    def select(self, **by: str) -> Decomposition:
        """The decomposition of the one group with these labels, e.g. ``select(judge="qwen")``.

        Raises
        ------
        InputError
            When no group, or more than one, has them.
        """
        found = [group for group in self.groups if all(group.by.get(name) == value for name, value in by.items())]
        if len(found) != 1:
            choices = "; ".join(by_text(group.by) for group in self.groups[:8])
            raise InputError(f"{len(found)} groups match {by_text(by)}", place="select", remedy=f"there are: {choices}")
        return replace(self, groups=(found[0],))

    def __getitem__(self, component: str) -> Estimate:
        group = self._only
        return group.estimates[group.index(component)]

    def __iter__(self) -> Iterator[str]:
        """Names of the components, as of a mapping: ``{name: d[name].estimate for name in d}``."""
        return iter(self._only.names)

    def __contains__(self, component: object) -> bool:
        return component in self._only.names

    def __len__(self) -> int:
        return len(self._only.names)

    def __bool__(self) -> bool:
        # Several groups have no one length, and are as true as one.
        return True

    def se(self, component: str, *, covers: Covers | None = None) -> float:
        """Standard error of a component for a randomness: items, calls, prompts or items+prompts."""
        group = self._only
        require_levels(group, covers)
        return float(group.errors(covers or self.settings.covers).se[group.index(component)])

    def interval(
        self,
        component: str,
        *,
        covers: Covers | None = None,
        method: Method | None = None,
        level: float | None = None,
    ) -> tuple[float, float]:
        """Band of a component: which randomness it covers, how it is made, at which level; NaN where undefined.

        Without a random facet ``prompts`` is refused, and ``items+prompts`` is items: the levels are the whole target.
        """
        group = self._only
        require_levels(group, covers)
        band = group.band(covers, method, level)
        j = group.index(component)
        return float(band.lower[j]), float(band.upper[j])

    @property
    def agreement(self) -> Mapping[str, float]:
        """Mean agreement of two calls by what they share: see :attr:`Group.agreement`."""
        return self._only.agreement

    @property
    def items(self) -> NDArray[np.float64]:
        """Debiased value of every item and component, shape (n_items, n_components)."""
        return self._only.values

    @cached_property
    def comparison(self) -> Comparison | None:
        """Groups compared on shared items; None with one group or without a shared item."""
        compared = self._compared
        return compared if isinstance(compared, Comparison) else None

    @property
    def comparison_reason(self) -> str | None:
        """Why there is no comparison of several groups."""
        compared = self._compared
        return compared if isinstance(compared, str) else None

    @cached_property
    def _compared(self) -> Comparison | str | None:
        return compare_groups(self.groups) if len(self.groups) > 1 else None

    # -- forms -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the schema ``secondorder.decomposition/1``: NaN is None and stands in ``undefined``."""
        plain: dict[str, Any] = {
            "schema": DECOMPOSITION_SCHEMA,
            "version": __version__,
            "input": dict(self.source),
            "settings": self.settings.to_dict(),
            "groups": [self._group_dict(group) for group in self.groups],
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
        }
        if self.comparison_reason is not None:
            plain["comparison_reason"] = self.comparison_reason
        return plain

    def _group_dict(self, group: Group) -> dict[str, Any]:
        plain: dict[str, Any] = {
            "by": dict(group.by),
            "n_items": len(group.items),
            "n_calls": group.n_calls,
            "n_invalid": group.n_invalid,
            "n_missing": group.n_missing,
            "items_dropped": [dict(entry) for entry in group.items_dropped],
            "repeats": {"min": group.repeats[0], "max": group.repeats[1]},
            "facets": {name: info.to_dict() for name, info in group.facets.items()},
            "components": self._component_dicts(group),
            "strata": [],
            "undefined": [entry.to_dict() for entry in group.undefined],
        }
        for label, part in group.by_stratum().items():
            plain["strata"].append(
                {"stratum": label, "n_items": len(part.items), "components": self._component_dicts(part)}
            )
            plain["undefined"].extend(replace(entry, stratum=label).to_dict() for entry in part.undefined)
        if group.all_notes:
            plain["notes"] = list(group.all_notes)
        return plain

    def _component_dicts(self, group: Group) -> list[dict[str, Any]]:
        found = []
        covers = self.settings.covers
        errors = None if covers == "items" else group.errors(covers)
        for j, estimate in enumerate(group.estimates):
            plain: dict[str, Any] = {
                "component": estimate.component,
                "estimate": _number(estimate.estimate),
                "plugin": _number(estimate.plugin),
                "inflation": _number(estimate.inflation),
                "se_items": _number(estimate.se_items),
            }
            if errors is not None:
                plain[SE_KEYS[covers]] = _number(float(errors.se[j]))
            plain["lower"] = _number(estimate.lower)
            plain["upper"] = _number(estimate.upper)
            if group.parts:
                plain["parts"] = {name: _number(float(values[:, j].mean())) for name, values in group.parts.items()}
            if self.settings.tau is not None:
                plain["tau"] = {
                    "debiased_above": above(estimate.estimate, self.settings.tau),
                    "plugin_above": above(estimate.plugin, self.settings.tau),
                }
            found.append(plain)
        return found

    def rows(self) -> list[dict[str, Any]]:
        """One flat record per group, stratum and component: the CSV form. A whole group has the stratum ``""``."""
        found = []
        for group in self.groups:
            for stratum, part in {"": group, **group.by_stratum()}.items():
                for plain in self._component_dicts(part):
                    flat = {key: value for key, value in plain.items() if key not in ("tau", "parts")}
                    flat.update({f"part_{name}": value for name, value in plain.get("parts", {}).items()})
                    flat.update(plain.get("tau", {}))
                    flat["reason"] = part.estimates[part.index(plain["component"])].reason
                    found.append({**group.by, "stratum": stratum, "n_items": len(part.items), **flat})
        return found

    def to_dataset(self) -> xr.Dataset:
        """Components by group as a labelled dataset (dims ``group, component``), e.g. ``.sel(judge="qwen")``."""
        import xarray as xr

        fields = ("estimate", "plugin", "inflation", "se_items", "lower", "upper", "reason")
        first = self.groups[0]
        dataset = xr.Dataset(
            {
                label: (
                    ("group", "component"),
                    [[getattr(estimate, label) for estimate in group.estimates] for group in self.groups],
                )
                for label in fields
            },
            coords={"group": [by_text(group.by) for group in self.groups], "component": list(first.names)},
        )
        for label, counts in (
            ("n_items", [len(group.items) for group in self.groups]),
            ("n_calls", [group.n_calls for group in self.groups]),
            ("n_invalid", [group.n_invalid for group in self.groups]),
            ("n_missing", [group.n_missing for group in self.groups]),
        ):
            dataset[label] = ("group", counts)
        settings = self.settings
        dataset.attrs.update(
            kernel=settings.kernel,
            pairs=settings.pairs,
            covers=settings.covers,
            interval=settings.interval,
            level=settings.level,
        )
        standard = {component.name for component in standard_components(first.design.names)}
        dataset["standard"] = ("component", [name in standard for name in first.names])
        return with_labels(dataset, [group.by for group in self.groups])

    def items_dataset(self) -> xr.Dataset:
        """Debiased and plug-in value of every item (dims ``group, item, component``), NaN where a group lacks it."""
        import numpy as np
        import xarray as xr

        items = list(dict.fromkeys(item for group in self.groups for item in group.items))
        row = {item: k for k, item in enumerate(items)}
        shape = (len(self.groups), len(items), len(self.groups[0].names))
        value, plugin = np.full(shape, np.nan), np.full(shape, np.nan)
        for k, group in enumerate(self.groups):
            rows = [row[item] for item in group.items]
            value[k, rows], plugin[k, rows] = group.values, group.plugin_values
        dims = ("group", "item", "component")
        dataset = xr.Dataset(
            {"value": (dims, value), "plugin": (dims, plugin)},
            coords={
                "group": [by_text(group.by) for group in self.groups],
                "item": items,
                "component": list(self.groups[0].names),
            },
        )
        return with_labels(dataset, [group.by for group in self.groups])

    def tables(self) -> tuple[Table, ...]:
        """One table per group."""
        return tuple(group_table(group, self.settings) for group in self.groups)

    def __str__(self) -> str:
        parts = [render_table(table) for table in self.tables()]
        if self.comparison is not None:
            orderings, differences = self.comparison.tables()
            parts.append(render_table(orderings))
            if len(self.groups) <= FEW_GROUPS:
                parts.append(render_table(differences))
        elif self.comparison_reason is not None:
            parts.extend(wrapped_lines(f"No comparison: {self.comparison_reason}."))
        return "\n\n".join(parts)


def required(given: Any, place: str) -> Decomposition:
    """What is given, where it is a decomposition; cubes are named most often in its place."""
    if not isinstance(given, Decomposition):
        raise InputError(
            f"this is {type(given).__name__}, not a decomposition",
            place=place,
            remedy="decompose the cube first: secondorder.decompose(cube, …)",
        )
    return given


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
