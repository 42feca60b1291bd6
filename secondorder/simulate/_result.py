"""What a study found: a grid of performance measures with their Monte Carlo standard errors."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd
import xarray as xr
from numpy.typing import NDArray

from secondorder._atomic import replacing
from secondorder._labels._results import Table, format_number, printed, render_table
from secondorder._schema import check_schema
from secondorder._version import __version__
from secondorder.errors import CorruptFileError
from secondorder.simulate._files import make_folder
from secondorder.simulate._measures import MEASURES, SUMS, measures_from
from secondorder.simulate._methods import method_names
from secondorder.simulate._prepared import Prepared
from secondorder.simulate._study import Study

__all__ = ["STUDY_SCHEMA", "StudyResult", "assemble", "open_study_result"]

STUDY_SCHEMA = "secondorder.study/1"

RESULTS = "results.nc"
# Bytes below which compression costs more than it saves.
SMALL = 1 << 14
ROUNDING = 1e-9
WIDTH = 100
NO_INTERVAL = "interval_failure"


@printed
@dataclass(frozen=True)
class StudyResult:
    """Result of a simulation study; prints as a table.

    Attributes
    ----------
    data : Dataset, dims (factors..., estimator, estimand)
        Every measure and its standard error (``<measure>_mcse``), ``truth``, ``plugin_bias`` (the closed form, NaN
        where there is none), ``published`` numbers, and the raw ``sums``.
    factors : tuple of str
    """

    data: xr.Dataset
    factors: tuple[str, ...]

    def table(self) -> pd.DataFrame:
        """One row per point, estimator, estimand and shown measure: value, mcse, truth, published, source."""
        rows = []
        shown = json.loads(self.data.attrs["measures"])
        published = {tuple(key): (value, source) for *key, value, source in json.loads(self.data.attrs["published"])}
        shape = {str(dim): self.data.sizes[dim] for dim in (*self.factors, "estimator", "estimand")}
        for place in np.ndindex(*shape.values()):
            labels = [self.data[dim].values[i] for dim, i in zip(shape, place, strict=True)]
            truth = float(self.data["truth"].values[(*place[:-2], place[-1])])
            for measure in shown:
                value = float(self.data[measure].values[place])
                if np.isnan(value):
                    continue
                mcse = float(self.data[f"{measure}_mcse"].values[place])
                key = (*(str(label) for label in labels), measure)
                printed, source = published.get(key, (np.nan, ""))
                rows.append([*labels, measure, value, mcse, truth, printed, source])
        columns = [*shape, "measure", "value", "mcse", "truth", "published", "source"]
        return pd.DataFrame(rows, columns=columns)

    def save(self, folder: Path | str) -> list[Path]:
        """Write ``results.nc`` and ``summary.csv``, each whole or not at all."""
        place = Path(folder)
        paths = [place / RESULTS, place / "summary.csv"]
        table = self.table()
        if not table["published"].notna().any():
            table = table.drop(columns=["published", "source"])
        make_folder(place)
        # Committed results of large grids stay small: counts, and measures that do not exist, repeat themselves.
        large = [str(name) for name, array in self.data.items() if array.nbytes > SMALL]
        packed = {name: {"zlib": True, "shuffle": True} for name in large}
        with replacing(paths[0]) as fresh:
            self.data.to_netcdf(fresh, engine="h5netcdf", encoding=packed)
        with replacing(paths[1]) as fresh:
            table.to_csv(fresh, index=False, float_format="%.8g", lineterminator="\n")
        return paths

    def __str__(self) -> str:
        """One table per estimand, and two where the measures do not fit beside each other."""
        attrs = self.data.attrs
        table = self.table()
        shown = [name for name in json.loads(attrs["measures"]) if (table["measure"] == name).any()]
        # What never has a value but decides is an event, such as "certified": no estimate of it has failed.
        answers = self.data["sums"].sel(sum=["values", "decisions"], drop=True)
        event = (answers.isel(sum=0) == 0) & (answers.isel(sum=1) > 0)
        notes = [
            f"failed replicates: {int(self.data.failed.where(~event, 0).sum())}",
            "in brackets: Monte Carlo standard error, in units of the last digit",
        ]
        if NO_INTERVAL in shown and (table.loc[table["measure"] == NO_INTERVAL, "value"] == 1).all():
            shown.remove(NO_INTERVAL)
            notes.insert(1, "intervals: none, of no method in any replicate")
        title = f"{attrs['study']}: {attrs['replicates']} replicates per point"
        tables = [
            render_table(part, width=WIDTH)
            for estimand, rows in table.groupby("estimand", sort=False)
            for part in _beside(_table(str(estimand), rows, [*self.factors, "estimator"], shown), len(shown))
        ]
        return "\n\n".join([title, *tables, "\n".join(notes)])


def _table(title: str, rows: pd.DataFrame, place: list[str], measures: Sequence[str]) -> Table:
    """Measures of one estimand, a row per point and method."""
    found = []
    for key, group in rows.groupby(place, sort=False):
        numbers = zip(group["measure"], group["value"].astype(float), group["mcse"].astype(float), strict=True)
        cells = {str(name): with_error(value, error) for name, value, error in numbers}
        truth = float(group["truth"].iloc[0])
        found.append((*map(_plain, key), truth, *(cells.get(name, "") for name in measures)))
    return Table(title, (*place, "truth", *measures), tuple(found))


def _beside(table: Table, n_measures: int) -> list[Table]:
    """The table in parts of as many measures as fit beside each other."""
    first = len(table.columns) - n_measures
    cells = [[format_number(row[k]) for row in table.rows] for k in range(len(table.columns))]
    heads = [name if k < first else max(name.split("_"), key=len) + "_" for k, name in enumerate(table.columns)]
    widths = [2 + max(map(len, [head, *column])) for head, column in zip(heads, cells, strict=True)]
    parts: list[list[int]] = [[]]
    for k in range(first, len(widths)):
        if parts[-1] and sum(widths[:first]) + sum(widths[j] for j in (*parts[-1], k)) > WIDTH + 2:
            parts.append([])
        parts[-1].append(k)

    def taken(cells: tuple[Any, ...], part: list[int]) -> tuple[Any, ...]:
        return (*cells[:first], *(cells[k] for k in part))

    return [
        replace(table, columns=taken(table.columns, p), rows=tuple(taken(row, p) for row in table.rows)) for p in parts
    ]


def _plain(cell: Any) -> Any:
    return cell.item() if isinstance(cell, np.generic) else cell


def with_error(value: float, error: float) -> str:
    """A number with its standard error in units of its last digit.

    Examples
    --------
    >>> with_error(0.145832, 0.000091), with_error(5.1312, 0.0134), with_error(0.0, 0.0)
    ('0.14583(9)', '5.131(13)', '0.0000')
    """
    # What rounding leaves of an error of 0 is none.
    if not np.isfinite(error) or error <= ROUNDING * abs(value):
        return f"{value:.4f}"
    digits = max(0, -math.floor(math.log10(error)))
    # Two digits of an error that starts with 1, where rounding to one would change it by a third.
    digits += round(error * 10**digits) == 1
    return f"{value:.{digits}f}({round(error * 10**digits)})"


def assemble(
    study: Study, digest: str, replicates: int, prepared: Sequence[Prepared], sums: Sequence[NDArray[np.float64]]
) -> StudyResult:
    """Sums per point to a labelled grid of measures."""
    factors = tuple(study.factors)
    shape = tuple(len(levels) for levels in study.factors.values())
    methods = method_names(study.methods)
    stacked = np.stack(sums).reshape(*shape, len(methods), len(prepared[0].names), len(SUMS))
    truth = np.stack([point.truth for point in prepared]).reshape(*shape, -1)
    bias = np.stack([point.plugin_bias for point in prepared]).reshape(*shape, -1)
    measures = measures_from(stacked, truth[..., None, :])
    grid = (*factors, "estimator", "estimand")
    variables: dict[str, Any] = {}
    for name, measured in measures.items():
        variables[name] = (grid, measured.value, {"long_name": MEASURES[name]})
        variables[f"{name}_mcse"] = (grid, measured.mcse, {"long_name": f"Monte Carlo standard error of {name}"})
    per_estimand = (*factors, "estimand")
    variables["truth"] = (per_estimand, truth, {"long_name": "true value"})
    variables["plugin_bias"] = (per_estimand, bias, {"long_name": "bias of the plug-in in closed form"})
    variables["failed"] = (grid, stacked[..., 0] - stacked[..., 1], {"long_name": "replicates without an estimate"})
    variables["sums"] = ((*grid, "sum"), stacked)
    coordinates: dict[str, Any] = {
        name: [str(level) if isinstance(level, bool) else level for level in levels]
        for name, levels in study.factors.items()
    }
    shown = list(study.measures) or [name for name in MEASURES if np.isfinite(measures[name].value).any()]
    published = [
        [
            *(str(entry.point[name]) for name in factors),
            *(entry.estimator, entry.estimand, entry.measure, entry.value, entry.source),
        ]
        for entry in study.published
    ]
    data = xr.Dataset(
        variables,
        coords={**coordinates, "estimator": methods, "estimand": list(prepared[0].names), "sum": list(SUMS)},
        attrs={
            "schema": STUDY_SCHEMA, "study": study.name, "aims": study.aims, "digest": digest,
            "replicates": replicates, "seed": str(study.seed), "level": study.level, "factors": json.dumps(factors),
            "measures": json.dumps(shown), "published": json.dumps(published),
            "version": __version__, "jax": jax.__version__,
        },
    )  # fmt: skip
    return StudyResult(data, factors)


def open_study_result(path: Path | str) -> StudyResult:
    """A result that :meth:`StudyResult.save` wrote.

    Parameters
    ----------
    path : path
        Its ``results.nc``, or the folder.

    Raises
    ------
    SchemaError
        When the file is something else, or of a newer version.
    CorruptFileError
        When it cannot be read.
    """
    place = Path(path)
    file = place / RESULTS if place.is_dir() else place
    try:
        data = xr.load_dataset(file, engine="h5netcdf")
    except (OSError, ValueError) as error:
        raise CorruptFileError(f"it cannot be read ({error})", place=str(file)) from error
    check_schema(data.attrs.get("schema"), STUDY_SCHEMA, place=str(file))
    return StudyResult(data, tuple(json.loads(data.attrs["factors"])))
