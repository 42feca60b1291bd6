"""What raters, people or models, say about the equivalence of wordings, and how far they agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from secondorder._labels._results import Table
from secondorder._schema import ITEM, PROMPT
from secondorder.errors import InputError
from secondorder.studies._agreement import agreement
from secondorder.studies._disagreement import Array

__all__ = ["Rated", "rated_equivalence"]

RATER = "rater"


@dataclass(frozen=True)
class Rated:
    """Ratings of one kind.

    Attributes
    ----------
    kind : str
    means : array, shape (prompts,)
        Mean rating of each prompt; NaN where nobody rated it, or where ratings are labels.
    table : Table
        Mean of every rater, and the agreement of the raters.
    """

    kind: str
    means: Array
    table: Table


def rated_equivalence(
    kind: str, given: xr.DataArray, names: Sequence[str], *, level: float, draws: int, seed: int
) -> Rated:
    """Means and agreement of ratings over ``prompt`` and ``rater``; numbers are compared by squared differences.

    Raises
    ------
    InputError
        When a dimension is missing, or a prompt is not in the set.
    """
    if set(given.dims) != {PROMPT, RATER} or PROMPT not in given.coords:
        raise InputError(
            f"dimensions {given.dims}", place=f"ratings {kind}", remedy="give prompt (with its names) and rater"
        )
    unknown = [str(name) for name in given[PROMPT].to_numpy() if str(name) not in names]
    if unknown:
        raise InputError(f"there is no prompt {unknown[0]!r}", place=f"ratings {kind}", remedy=", ".join(names))
    raters = [str(name) for name in (given[RATER].to_numpy() if RATER in given.coords else range(given.sizes[RATER]))]
    table = given.transpose(PROMPT, RATER)
    numeric = table.dtype.kind in "iuf"
    found = agreement(
        table.rename({PROMPT: ITEM}),
        raters=RATER,
        coefficients=["overlap", "cohen", "krippendorff"],
        metric="interval" if numeric else "nominal",
        level=level,
        draws=draws,
        seed=seed,
    )
    rows: list[tuple[str | int | float | None, ...]] = []
    means = np.full(len(names), np.nan)
    if numeric:
        values = table.to_numpy().astype(float)
        for place, row in zip(table[PROMPT].to_numpy(), values, strict=True):
            means[names.index(str(place))] = _mean(row)
        rows += [
            (f"mean of {rater}", _mean(column), None, None) for rater, column in zip(raters, values.T, strict=True)
        ]
        rows.append(("mean of all", _mean(values.ravel()), None, None))
    for name, label in (("overlap", "overlap"), ("cohen", "Cohen κ"), ("krippendorff", "Krippendorff α")):
        one = found[name]
        rows.append((f"{label} of the raters", *(float(one[key]) for key in ("estimate", "lower", "upper"))))
    reasons = {str(found[name]["reason"].item()) for name in ("cohen", "krippendorff")} - {""}
    notes = (
        f"{found.data['n_items'].item()} prompts rated by {len(raters)}; bands over prompts; "
        f"κ and α count {'squared differences' if numeric else 'labels as equal or not'}.",
        *(f"– {why}" for why in sorted(reasons)),
    )
    columns = (f"ratings: {kind}", "value", f"lower {100 * level:g} %", "upper")
    return Rated(kind, means, Table("", columns, tuple(rows), notes))


def _mean(values: Array) -> float:
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else float("nan")
