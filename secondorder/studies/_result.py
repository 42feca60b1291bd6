"""The result of a study: labelled numbers with their bands, what was counted, and how it looks."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._results import Figure, Section, Table, printed, render_table
from secondorder.errors import InputError
from secondorder.plot._style import to_svg
from secondorder.studies._bands import Band, band, check_draws
from secondorder.studies._disagreement import Array
from secondorder.studies._layout import By, group_labels
from secondorder.studies._parts import Value

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

__all__ = ["Drawn", "StudyResult", "differences", "measure_table", "measured", "reason_notes", "wide_table"]


FEW_ITEMS = 20  # fewer make percentile bands narrower by more than 3 %


@dataclass(frozen=True)
class Drawn:
    """A figure that is drawn when it is asked for: by :meth:`draw`, or by a notebook that shows it.

    Attributes
    ----------
    title, caption : str
    draw : callable
        Makes the matplotlib figure; ``draw().savefig("figure.pdf")`` saves it.
    """

    title: str
    caption: str
    draw: Callable[[], Drawing]

    def _repr_svg_(self) -> str:
        # A figure that pyplot does not know is a line of text in a notebook.
        return to_svg(self.draw(), identity=self.title)


@printed
@dataclass(frozen=True)
class StudyResult:
    """What a study found.

    Attributes
    ----------
    title : str
    data : Dataset
        Over the grouping and ``measure``: ``estimate``, ``se``, ``lower``, ``upper`` (item bootstrap),
        ``undefined_draws`` and ``reason`` (why a number or its band is not there), and what each study adds.
    tables : tuple of Table
    notes : tuple of str
        Conventions used, what was left out, why numbers are undefined.
    draws : DataArray or None
        The bootstrap draws behind the bands, over the grouping, ``measure`` and ``draw``; groups share draws.
    figures : tuple of Drawn
    labels : mapping of str to str
        What measures are called in tables, where that is not their name.
    """

    title: str
    data: xr.Dataset
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    draws: xr.DataArray | None = field(default=None, repr=False)
    figures: tuple[Drawn, ...] = field(default=(), repr=False)
    labels: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        blocks = [self.title, *(render_table(table) for table in self.tables)]
        if notes := self._all_notes:
            wrapped = (textwrap.wrap(note, 80, subsequent_indent="  ", break_on_hyphens=False) for note in notes)
            blocks.append("\n".join(line for note in wrapped for line in note))
        return "\n\n".join(blocks)

    @property
    def _all_notes(self) -> tuple[str, ...]:
        """The notes, and which randomness the bands cover, where there are any."""
        draws = int(self.data.attrs.get("draws", 0))
        if not draws or "lower" not in self.data or not bool(self.data["lower"].notnull().any()):
            return self.notes
        bands = f"Bands: {100 * float(self.data.attrs['level']):g} %, percentiles of {draws} draws of whole items"
        note = f"{bands} with their calls; the choice of prompts and judges is not in them."
        return (*self.notes, note + _narrow(self.data))

    def __getitem__(self, key: str | Mapping[str, str]) -> xr.Dataset:
        """One measure, or one selection of groups and measure: ``result["cohen"]``, ``result[{"judge": "a"}]``."""
        return self.data.sel({"measure": key} if isinstance(key, str) else dict(key))

    def to_dataset(self) -> xr.Dataset:
        """All numbers, labelled."""
        return self.data

    def to_frame(self) -> pd.DataFrame:
        """One row for each group and measure."""
        wanted = [name for name, array in self.data.data_vars.items() if "measure" in array.dims]
        return self.data[wanted].to_dataframe().reset_index()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: every estimate with its band, and what the tables show; None where a number is not."""
        rows = [{str(name): _plain(value) for name, value in row.items()} for row in self.to_frame().to_dict("records")]
        return {
            "title": self.title,
            "level": _plain(self.data.attrs.get("level")),
            "draws": _plain(self.data.attrs.get("draws")),
            "estimates": rows,
            "tables": [
                {
                    "title": table.title,
                    "columns": list(table.columns),
                    "rows": [[_plain(cell) for cell in row] for row in table.rows],
                    "notes": list(table.notes),
                }
                for table in self.tables
            ],
            "notes": list(self._all_notes),
        }

    def section(self) -> Section:
        """The study as plain data for the report, its notes below the last table; figures are drawn here."""
        drawn = tuple(
            Figure(item.title, to_svg(item.draw(), identity=f"{self.title} {item.title}"), item.caption)
            for item in self.figures
        )
        if not self.tables:
            return Section(self.title, "\n\n".join(self._all_notes), (), drawn)
        *first, last = self.tables
        return Section(self.title, "", (*first, replace(last, notes=(*last.notes, *self._all_notes))), drawn)


def _narrow(data: xr.Dataset) -> str:
    """By how much percentile bands of few items are too narrow: resampling takes n for n - 1."""
    sizes = data["n_items"].to_numpy().ravel() if "n_items" in data else np.zeros(0)
    least = int(sizes[sizes > 1].min(initial=FEW_ITEMS))
    short = 100 * (1 - ((least - 1) / least) ** 0.5)
    return f" With {least} items they are some {short:.0f} % too narrow." if least < FEW_ITEMS else ""


def _plain(value: Any) -> Any:
    """A number, text or truth value as JSON knows it."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not np.isfinite(plain) else plain


def measured(
    *,
    by: By,
    measures: Sequence[str],
    values: Sequence[Sequence[Value]],
    draws: Array,
    level: float,
    counts: Mapping[str, NDArray[Any]] | None = None,
    unbanded: Mapping[str, str] | None = None,
) -> tuple[xr.Dataset, xr.DataArray]:
    """Dataset and draws of a study.

    Parameters
    ----------
    by : sequence of (name, levels)
    measures : sequence of str
    values : (groups x measures) of Value
    draws : array, shape (groups, measures, draws)
    level : float
    counts : mapping of str to array, shape (groups,)
    unbanded : mapping of measure to reason
        Measures for which item draws make no band, and why; their draws are passed over.
    """
    shape = tuple(len(levels) for _, levels in by)
    dims = tuple(name for name, _ in by)
    without = {name: Band(np.nan, np.nan, np.nan, 0, why) for name, why in (unbanded or {}).items()}
    bands = [
        [without.get(name) or band(draws[g, m], level=level) for m, name in enumerate(measures)]
        for g in range(len(values))
    ]
    estimate = np.array([[value.estimate for value in row] for row in values], dtype=float)
    there = ~np.isnan(estimate)
    asked = draws.shape[-1] > 0
    reason = [
        [value.reason or (one.reason if asked else "") for value, one in zip(row, ones, strict=True)]
        for row, ones in zip(values, bands, strict=True)
    ]

    def lay(array: Any, *tail: str) -> xr.Variable:
        full = np.asarray(array)
        return xr.Variable((*dims, *tail), full.reshape((*shape, *full.shape[1:])))

    data = xr.Dataset(
        {
            "estimate": lay(estimate, "measure"),
            "se": lay(np.where(there, [[one.se for one in row] for row in bands], np.nan), "measure"),
            "lower": lay(np.where(there, [[one.lower for one in row] for row in bands], np.nan), "measure"),
            "upper": lay(np.where(there, [[one.upper for one in row] for row in bands], np.nan), "measure"),
            "undefined_draws": lay([[one.undefined for one in row] for row in bands], "measure"),
            "reason": lay(np.array(reason, dtype=object), "measure"),
            **{name: lay(array) for name, array in (counts or {}).items()},
        },
        coords={**{name: list(levels) for name, levels in by}, "measure": list(measures)},
        attrs={"level": level, "draws": draws.shape[-1]},
    )
    held = xr.DataArray(
        draws.reshape((*shape, *draws.shape[1:])),
        dims=(*dims, "measure", "draw"),
        coords={**{name: list(levels) for name, levels in by}, "measure": list(measures)},
    )
    return data, held


def measure_table(
    title: str, data: xr.Dataset, *, by: By, labels: Mapping[str, str], counts: Sequence[str] = ()
) -> Table:
    """Rows of groups and measures: estimate, band, draws without a value; reasons as notes below."""
    names = [name for name, _ in by]
    measures = [str(name) for name in data["measure"].to_numpy()]
    lost = bool(((data["undefined_draws"] > 0) & data["estimate"].notnull()).any())
    percent = f"{100 * float(data.attrs['level']):g} %"
    columns = (*names, "measure", "estimate", f"lower {percent}", "upper", *(("draws lost",) if lost else ()))
    rows: list[tuple[str | int | float | None, ...]] = []
    notes: list[str] = []
    for group in group_labels(by):
        here = data.sel(dict(zip(names, group, strict=True)))
        for measure in measures:
            one = here.sel(measure=measure)
            numbers = [float(one[key]) for key in ("estimate", "lower", "upper")]
            gone = None if np.isnan(numbers[0]) else int(one["undefined_draws"])
            rows.append((*group, labels.get(measure, measure), *numbers, *((gone,) * lost)))
        if counts:
            told = ", ".join(f"{int(here[name])} {name.removeprefix('n_').replace('_', ' ')}" for name in counts)
            notes.append(f"{' / '.join(group) or 'all'}: {told}")
    return Table(title, columns, tuple(rows), (*notes, *reason_notes(data, by=by, labels=labels)))


def reason_notes(data: xr.Dataset, *, by: By, labels: Mapping[str, str]) -> tuple[str, ...]:
    """One line for each reason why numbers or bands are not there, with the first places."""
    names = [name for name, _ in by]
    groups = group_labels(by)
    reasons: dict[str, list[str]] = {}
    for measure in map(str, data["measure"].to_numpy()):
        here = data["reason"].sel(measure=measure)
        said = [str(here.sel(dict(zip(names, group, strict=True))).item()) for group in groups]
        label = labels.get(measure, measure)
        for why in dict.fromkeys(filter(None, said)):
            places = [" / ".join((*group, label)) for group, one in zip(groups, said, strict=True) if one == why]
            reasons.setdefault(why, []).extend([label] if len(places) == len(groups) else places)
    return tuple(
        f"– {why} ({'; '.join(places[:3])}{f' and {len(places) - 3} more' if len(places) > 3 else ''})"
        for why, places in reasons.items()
    )


def wide_table(
    title: str,
    data: xr.Dataset,
    *,
    by: By,
    labels: Mapping[str, str],
    banded: Sequence[str],
    notes: Sequence[str] = (),
) -> Table:
    """One row for each group: every measure in a column of its own, those in `banded` with their bands.

    Measures that no group has are named with their reasons alone.
    """
    names = [name for name, _ in by]
    known = [str(name) for name in data["measure"].to_numpy()]
    # Why a band is not there is no news where none is shown.
    told = data["estimate"].isnull() | data["measure"].isin(list(banded))
    reasons = reason_notes(data.assign(reason=data["reason"].where(told, "")), by=by, labels=labels)
    measures = [name for name in known if bool(data["estimate"].sel(measure=name).notnull().any())] or known
    banded = [name for name in banded if bool(data["lower"].sel(measure=name).notnull().any())]
    percent = f"{100 * float(data.attrs['level']):g} %"
    columns = list(names)
    for measure in measures:
        columns += [labels.get(measure, measure), *([f"lower {percent}", "upper"] if measure in banded else [])]
    rows: list[tuple[str | int | float | None, ...]] = []
    for group in group_labels(by):
        here = data.sel(dict(zip(names, group, strict=True)))
        row: list[str | int | float | None] = list(group)
        for measure in measures:
            one = here.sel(measure=measure)
            keys = ("estimate", "lower", "upper") if measure in banded else ("estimate",)
            row += [float(one[key]) for key in keys]
        rows.append(tuple(row))
    return Table(title, tuple(columns), tuple(rows), (*notes, *reasons))


def differences(result: StudyResult, dim: str, *, level: float | None = None) -> Table:
    """Differences between every two levels of a grouping, with bands from draws that the groups share.

    Rows without a value are left out, and counted below.

    Parameters
    ----------
    result : StudyResult
        With draws; the levels of `dim` must share their items for the bands to be those of a paired comparison.
    dim : str
        A dimension of the grouping, for example ``judge``.
    level : float, optional
        Default: the level of the result.

    Examples
    --------
    >>> from secondorder.studies import agreement, differences
    >>> verdict = [[[0, 0], [0, 1], [1, 1], [0, 0]], [[0, 1], [0, 1], [1, 1], [0, 0]]]
    >>> cube = xr.Dataset({"verdict": (("judge", "item", "prompt"), verdict)},
    ...                   coords={"judge": ["a", "b"], "class": ["no", "yes"]})
    >>> found = differences(agreement(cube, coefficients=["overlap"], draws=200), "judge")
    >>> found.rows[0][:4]
    ('a', 'b', 'overlap', 0.25)
    """
    given: object = result
    if not isinstance(given, StudyResult):
        raise InputError(
            f"this is {type(given).__name__}, not the result of a study",
            place="differences",
            remedy="for a decomposition: secondorder.compare or secondorder.paired_test",
        )
    has = [] if result.draws is None else [str(name) for name in result.draws.dims if name not in ("measure", "draw")]
    if result.draws is None or dim not in has:
        raise InputError(f"no grouping {dim!r}", place="differences", remedy=f"groupings of this result: {has}")
    wanted = float(result.data.attrs["level"]) if level is None else level
    check_draws(level=wanted, draws=result.draws.sizes["draw"], seed=0)
    others = [name for name in has if name != dim]
    levels = [str(name) for name in result.data[dim].to_numpy()]
    lost: list[str] = []
    rows: list[tuple[str | int | float | None, ...]] = []
    for i, first in enumerate(levels):
        for second in levels[i + 1 :]:
            gap = result.data["estimate"].sel({dim: first}) - result.data["estimate"].sel({dim: second})
            spread = result.draws.sel({dim: first}) - result.draws.sel({dim: second})
            stacked = gap.stack(row=[*others, "measure"])
            for row in stacked["row"].to_numpy():
                place = dict(zip([*others, "measure"], row, strict=True))
                one = band(spread.sel(place).to_numpy(), level=wanted)
                value, label = float(gap.sel(place)), result.labels.get(str(row[-1]), str(row[-1]))
                if np.isnan(value):
                    lost.append(label)
                else:
                    rows.append((first, second, *map(str, row[:-1]), label, value, one.lower, one.upper))
    columns = ("first", "second", *others, "measure", "difference", f"lower {100 * wanted:g} %", "upper")
    notes = (f"– left out: {len(lost)} rows without a value, of {', '.join(dict.fromkeys(lost))}",) if lost else ()
    return Table(f"Differences by {dim}", columns, tuple(rows), notes)
