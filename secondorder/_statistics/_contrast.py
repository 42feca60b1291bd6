"""Differences and ratios of components, and bands that hold for several numbers at once, from joint draws of items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._design import listed
from secondorder._labels._results import Table, plain, printed, render_table
from secondorder._statistics._decomposition import Decomposition, required
from secondorder._statistics._group import Group
from secondorder.core._intervals import (
    Interval,
    ItemErrors,
    bca_interval,
    percentile_interval,
    simultaneous_interval,
    t_interval,
)
from secondorder.core._resampling import Resampled, ratios
from secondorder.core._resampling import contrasts as differences
from secondorder.errors import InputError

__all__ = ["Contrasts", "contrasts"]

Floats = NDArray[np.float64]
How = Literal["t", "percentile", "bca", "simultaneous"]


@printed
@dataclass(frozen=True, eq=False)
class Contrasts:
    """Numbers made of components, with bands over items.

    Attributes
    ----------
    names : tuple of str
    estimate, plugin : array, shape (n,)
        Debiased, and of the usual measures.
    se, lower, upper : array, shape (n,)
        Over items as a sample; a ratio's standard error is that of its linearisation.
    undefined_draws : array of int, shape (n,)
        Draws in which a ratio has no value, because its denominator is not positive.
    reasons : tuple of str
        Why a number or its band is undefined; empty otherwise.
    method : str
    level : float
    """

    names: tuple[str, ...]
    estimate: Floats
    plugin: Floats
    se: Floats
    lower: Floats
    upper: Floats
    undefined_draws: NDArray[np.int64]
    reasons: tuple[str, ...]
    method: str
    level: float

    def to_dataset(self) -> xr.Dataset:
        """All numbers along ``contrast``."""
        names = ("estimate", "plugin", "se", "lower", "upper", "undefined_draws")
        return xr.Dataset(
            {name: ("contrast", getattr(self, name)) for name in names} | {"reason": ("contrast", list(self.reasons))},
            coords={"contrast": list(self.names)},
            attrs={"method": self.method, "level": self.level},
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values: NaN is None, with its reason."""
        return {
            "method": self.method,
            "level": self.level,
            "contrasts": [
                {
                    "contrast": name,
                    **{
                        key: plain(float(getattr(self, key)[k]))
                        for key in ("estimate", "plugin", "se", "lower", "upper")
                    },
                    "undefined_draws": int(self.undefined_draws[k]),
                    "reason": self.reasons[k],
                }
                for k, name in enumerate(self.names)
            ],
        }

    def table(self) -> Table:
        """One row per contrast."""
        rows = tuple(
            (
                name,
                float(self.estimate[k]),
                float(self.plugin[k]),
                float(self.se[k]),
                float(self.lower[k]),
                float(self.upper[k]),
            )
            for k, name in enumerate(self.names)
        )
        together = " together" if self.method == "simultaneous" else ""
        notes = [f"lower, upper: {100 * self.level:g}% bands over items{together} ({self.method})"]
        notes.extend(f"– {name}: {why}" for name, why in zip(self.names, self.reasons, strict=True) if why)
        lost = [f"{name} {n}" for name, n in zip(self.names, self.undefined_draws, strict=True) if n]
        if lost:
            notes.append(f"draws without a value: {', '.join(lost)}")
        return Table("", ("contrast", "debiased", "plug-in", "SE", "lower", "upper"), rows, tuple(notes))

    def __str__(self) -> str:
        return render_table(self.table())


def contrasts(
    decomposition: Decomposition,
    expressions: str | Sequence[str] | None = None,
    *,
    method: How = "t",
    level: float | None = None,
) -> Contrasts:
    """Differences and ratios of components, or several components at once, with bands from the same draws of items.

    Parameters
    ----------
    decomposition : Decomposition
        With one group; its settings say how many draws and by which seed.
    expressions : str or sequence of str, optional
        Components, differences and ratios of two: ``"prompt"``, ``"prompt - order"``,
        ``"prompt / total"``. Default: every component.
    method : {"t", "percentile", "bca", "simultaneous"}
        ``simultaneous``: t bands wide enough to hold for all expressions together.
    level : float, optional
        Default: that of the decomposition.

    Returns
    -------
    Contrasts

    Raises
    ------
    InputError
        When an expression names no component.

    Examples
    --------
    >>> import secondorder as so
    >>> rows = [
    ...     {"item": str(item), "prompt": prompt, "run": str(r), "verdict": "AB"[(item * k + r * k) % 3 % 2]}
    ...     for item in range(9) for k, prompt in enumerate("pqs") for r in range(4)
    ... ]
    >>> cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=["A", "B"])
    >>> found = so.contrasts(so.decompose(cube), ["call - prompt", "prompt / total"])
    >>> found.names, found.estimate.round(3).tolist()
    (('call - prompt', 'prompt / total'), [0.367, 0.008])
    """
    group = required(decomposition, "contrasts")._only
    asked = listed(expressions) if expressions is not None else group.names
    if not asked:
        raise InputError("no expression", place="contrasts", remedy=f"name components: {', '.join(group.names)}")
    width = decomposition.settings.level if level is None else level
    if not 0 < width < 1:
        raise InputError(f"{width} is not between 0 and 1", place="level", remedy="say for instance 0.95")
    size = len(group.components)
    parsed = [_parse(text, group) for text in asked]
    debiased = _joined([_evaluate(group.resampled, operator, left, right) for operator, left, right in parsed])
    usual = [_evaluate(group.resampled, op, left + size, right + size) for op, left, right in parsed]
    band = _band(debiased, method, width)
    own = [group.reasons[left] or group.reasons[right] for _, left, right in parsed]
    reasons = tuple(first or second for first, second in zip(own, band.reason, strict=True))
    return Contrasts(
        asked,
        debiased.errors.estimate,
        np.concatenate([part.errors.estimate for part in usual]),
        debiased.errors.se,
        band.lower,
        band.upper,
        np.isnan(debiased.draws).sum(0) if not any(own) else np.zeros(len(asked), dtype=np.int64),
        reasons,
        method,
        width,
    )


def _parse(text: str, group: Group) -> tuple[str, int, int]:
    """Operator and columns of an expression; a component alone stands on both sides of an empty operator."""
    if text in group.names:
        return "", group.index(text), group.index(text)
    # A facet's own name may hold either sign: every place where one stands is tried.
    for place, operator in enumerate(text):
        left, right = text[:place].strip(), text[place + 1 :].strip()
        if operator in "-/" and left in group.names and right in group.names:
            return operator, group.index(left), group.index(right)
    raise InputError(
        f"{text!r} is no component, difference or ratio",
        place="contrasts",
        remedy=f"write 'a - b' or 'a / b' with two of {', '.join(group.names)}",
    )


def _evaluate(base: Resampled, operator: str, left: int, right: int) -> Resampled:
    if operator == "/":
        return ratios(base, [left], [right])
    weights = np.zeros((len(base.scale), 1))
    weights[left] += 1.0
    if operator == "-":
        weights[right] -= 1.0
    # Other columns may be undefined, and nothing times NaN is NaN: only the columns at hand take part.
    used = sorted({left, right})
    return differences(_columns(base, used), weights[used])


def _columns(base: Resampled, used: list[int]) -> Resampled:
    errors = ItemErrors(
        base.errors.estimate[used],
        base.errors.se[used],
        base.errors.df[used],
        tuple(base.errors.reason[j] for j in used),
    )
    return Resampled(errors, base.draws[:, used], base.influence[:, used], base.strata, base.scale[used], None)


def _joined(parts: Sequence[Resampled]) -> Resampled:
    errors = ItemErrors(
        np.concatenate([part.errors.estimate for part in parts]),
        np.concatenate([part.errors.se for part in parts]),
        np.concatenate([part.errors.df for part in parts]),
        tuple(reason for part in parts for reason in part.errors.reason),
    )
    draws, influence = (np.concatenate([getattr(part, name) for part in parts], 1) for name in ("draws", "influence"))
    return Resampled(errors, draws, influence, parts[0].strata, np.concatenate([part.scale for part in parts]), None)


def _band(drawn: Resampled, method: How, level: float) -> Interval:
    if method == "t":
        return t_interval(drawn.errors, level)
    if method == "percentile":
        return percentile_interval(drawn.errors, drawn.draws, level)
    if method == "bca":
        return bca_interval(drawn.errors, drawn.draws, drawn.influence, level, drawn.scale)
    if method == "simultaneous":
        return simultaneous_interval(drawn.errors, drawn.draws, level)
    raise InputError(f"{method!r} is not a method", place="method", remedy="choose t, percentile, bca or simultaneous")
