"""How many times more agreement a judge loses under rewording than people do."""

from __future__ import annotations

import warnings

import numpy as np
import xarray as xr

from secondorder.errors import InputError
from secondorder.studies._figures import drawn_measures
from secondorder.studies._layout import By
from secondorder.studies._parts import Value
from secondorder.studies._result import StudyResult, measure_table, measured

__all__ = ["degradation_ratio"]

LABELS = {"judge": "judge: κ within − κ across", "human": "people: κ within − κ across", "ratio": "judge / people"}
NO_LOSS = "people lose no agreement under rewording"
UNBOUNDED = "too many draws without a human degradation above 0: the ratio has no upper bound"


def degradation_ratio(judge: StudyResult, human: StudyResult) -> StudyResult:
    """Kappa that a judge loses under rewording, over the kappa that people lose.

    Parameters
    ----------
    judge, human : StudyResult
        Of :func:`repeat_agreement`. Groupings that both have are matched by level; the others are broadcast.

    Returns
    -------
    StudyResult
        ``judge`` and ``human`` (kappa within minus kappa across) and their ``ratio``. Where both studies have the same
        items and seed their draws are joint; otherwise they are paired at random.

    Raises
    ------
    InputError
        When a result is of another study, or the two have other levels or numbers of draws.

    Notes
    -----
    A ratio exists only above a positive denominator. Draws with a human degradation of 0 or less are counted as
    undefined; the band holds them beyond every number, so that they widen it, and where they reach into its tail there
    is no band.

    Examples
    --------
    >>> from secondorder.studies import repeat_agreement
    >>> def cube(verdict):
    ...     return xr.Dataset({"verdict": (("item", "prompt", "repeat"), verdict)}, coords={"class": ["A", "B"]})
    >>> judge = cube([[[0, 0], [1, 1]], [[1, 1], [1, 1]], [[0, 0], [0, 1]]])
    >>> human = cube([[[0, 0], [0, 0]], [[1, 1], [1, 1]], [[0, 0], [0, 0]]])
    >>> found = degradation_ratio(repeat_agreement(judge, draws=0), repeat_agreement(human, draws=0))
    >>> found["ratio"].reason.item()
    'people lose no agreement under rewording'
    """
    for name, result in (("judge", judge), ("human", human)):
        if "degradation" not in result.data["measure"] or result.draws is None:
            raise InputError("not a result of repeat_agreement", place=name, remedy="give repeat_agreement(cube)")
    points = [one.data[["estimate"]].sel(measure="degradation", drop=True) for one in (judge, human)]
    draws = [
        one.draws.sel(measure="degradation", drop=True).rename("draws")
        for one in (judge, human)
        if one.draws is not None
    ]
    if draws[0].sizes["draw"] != draws[1].sizes["draw"]:
        sizes = " and ".join(str(one.sizes["draw"]) for one in draws)
        raise InputError(f"{sizes} draws", place="draws", remedy="use the same number in both studies")
    items = [one.data["item"].to_numpy().tolist() for one in (judge, human)]
    if items[0] != items[1] or judge.data.attrs["seed"] != human.data.attrs["seed"]:
        # Equal seeds make draws of different items move together by accident of their order: break that.
        draws[1] = draws[1].isel(draw=np.random.default_rng(0).permutation(draws[1].sizes["draw"]))
    try:
        top, bottom = xr.broadcast(*xr.align(*(one["estimate"] for one in points), join="exact"))
        above, below = xr.broadcast(*xr.align(*draws, join="exact"))
    except ValueError as fault:
        raise InputError(
            "the two studies have other levels of a grouping", place="degradation_ratio", remedy=str(fault)
        ) from None
    by: By = tuple((str(dim), tuple(str(level) for level in top[dim].to_numpy())) for dim in top.dims)
    below = below.transpose(*(name for name, _ in by), "draw")
    above = above.transpose(*below.dims)
    ratio, drawn_ratio = top / bottom.where(bottom > 0), above / below.where(below > 0)

    values = [
        [Value(float(a)), Value(float(b)), Value(float(c), "" if float(b) > 0 else NO_LOSS)]
        for a, b, c in zip(top.to_numpy().ravel(), bottom.to_numpy().ravel(), ratio.to_numpy().ravel(), strict=True)
    ]
    held = np.stack([one.to_numpy().reshape(len(values), -1) for one in (above, below, drawn_ratio)], axis=1)
    level = float(judge.data.attrs["level"])
    found, drawn = measured(by=by, measures=list(LABELS), values=values, draws=held, level=level)
    found = _with_open_ends(found, above, below, level)
    table = measure_table("", found, by=by, labels=LABELS)
    facet = str(judge.data.attrs.get("facet", "wording"))
    note = f"κ within − κ across: agreement lost when the {facet} changes, on one chance scale; ratio of the two."
    losses = found.sel(measure=["judge", "human"])
    figure = drawn_measures(losses, LABELS, title=f"Agreement that judge and people lose to another {facet}")
    return StudyResult("Degradation of the judge against people", found, (table,), (note,), drawn, (figure,))


def _with_open_ends(found: xr.Dataset, above: xr.DataArray, below: xr.DataArray, level: float) -> xr.Dataset:
    """Bands of the ratio in which a draw without a human degradation lies beyond every number."""
    if not above.sizes["draw"]:
        return found
    placed = (above / below.where(below > 0)).where(~(below <= 0), np.copysign(np.inf, above))
    with np.errstate(invalid="ignore"), warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        # Between two infinities, and of no draw at all, there is no quantile.
        lower, upper = np.nanquantile(placed.to_numpy(), [(1 - level) / 2, (1 + level) / 2], axis=-1)
    banded = found["lower"].notnull() & (found["measure"] == "ratio")
    dims = [dim for dim in above.dims if dim != "draw"]
    bounded = xr.DataArray(np.isfinite(lower) & np.isfinite(upper), dims=dims)
    for name, ends in (("lower", lower), ("upper", upper)):
        found[name] = found[name].where(~banded, xr.DataArray(ends, dims=dims))
    for name in ("se", "lower", "upper"):
        found[name] = found[name].where(~banded | bounded)
    found["reason"] = found["reason"].where(~banded | bounded, UNBOUNDED)
    return found
