"""Verdict tables to cubes: the two public verbs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

import pandas as pd
import xarray as xr

from secondorder._design import Facet
from secondorder._labels._frames import rows_in_memory
from secondorder._labels._roles import declare
from secondorder._labels._rows import cube_of_rows
from secondorder._labels._sources import read_rows

__all__ = ["make_cube", "read_table"]


def read_table(
    path: str | os.PathLike[str] | IO[Any],
    *,
    item: str | Sequence[str],
    facets: str | Facet | Sequence[str | Facet],
    repeat: str | None = None,
    verdict: str,
    classes: Sequence[str] | None = None,
    invalid: str | Sequence[str] = (),
    missing: str | Sequence[str] = (),
    stratum: str | None = None,
    gold: str | None = None,
    coords: str | Sequence[str] = (),
    by: str | Sequence[str] | None = None,
    where: str | Sequence[str] = (),
    number_repeats: bool = False,
    random: str | Sequence[str] = (),
    weights: Mapping[str, Mapping[str, float]] | None = None,
) -> xr.Dataset:
    r"""Read a table with one row per judge call as a response-law cube.

    Every column is read as text exactly as it stands in the file: nothing is stripped or cast, ``007`` is not ``7``
    and ``NA`` is a label. JSON null and an empty cell are the empty text. Items, levels and repeats are sorted in
    natural order (runs of digits as numbers), so the order of the rows does not matter.

    Parameters
    ----------
    path : path, ``"-"`` or open file
        ``.csv``, ``.tsv`` (tabs, quoted like CSV), ``.jsonl`` (one object per line) or ``.parquet``, each also
        gzipped as ``.gz``; ``"-"`` is CSV on standard input. Text is UTF-8.
    item : str or sequence of str
        Column that identifies the item; several make a composite key, joined by ``:``.
    facets : str, Facet or sequence of them
        Crossed sources of variation. The order given is the order of the cube's dimensions.
    repeat : str, optional
        Column that tells the calls of a cell apart. Equal labels in different cells are the same repeat.
    verdict : str
        Column of the verdict.
    classes : sequence of str, optional
        Valid labels in order. Default: those found, in natural order (recorded as ``classes_declared: false``).
    invalid, missing : str or sequence of str
        Labels of calls that completed without a valid verdict (the class ``⊥``), and of calls without completion.
        ``""`` is the empty cell. The label ``⊥`` is always invalid.
    stratum, gold : str, optional
        Columns that are constant within an item; `gold` in the words of `classes`, empty where there is none.
    coords : str or sequence of str
        Further columns that are constant within an item, which become coordinates of the items: a task, a length, a
        system. A column of numbers is read as numbers, an empty cell among them as NaN.
    by : str or sequence of str, optional
        Columns that separate groups, such as ``judge``: the cube gets a dimension of that name (joined by ``:``).
    where : str or sequence of str
        ``COLUMN=VALUE`` or ``COLUMN!=VALUE``: keep the rows on which all hold.
    number_repeats : bool
        Number the rows of a cell in file order instead of reading `repeat`. Duplicate rows cannot be seen then, and
        equal numbers in different cells mean nothing.
    random : str or sequence of str
        Facets whose levels are a sample from a policy.
    weights : mapping of facet to mapping of level to float, optional
        Weights of the levels of fixed facets. Default: equal.

    Returns
    -------
    xarray.Dataset
        Variables ``verdict`` (class code, -1 for none), ``status`` and ``reason`` over
        ``([group,] item, facets ..., repeat)``, with coordinate ``class`` (``⊥`` last; it is a class when invalid
        labels are declared or ``⊥`` occurs). A call that the table has no row for is ``no_completion: absent``; an
        item that a group has no row for at all is ``not_called: absent`` there.

    Raises
    ------
    InputError
        When the file cannot be read or its format is unknown.
    TableError
        When it is not such a table: place (file and line), value and remedy are named.
    DesignError
        When a facet's declaration does not fit its levels.

    Examples
    --------
    >>> import io
    >>> table = io.StringIO("question,prompt,run,winner\nq1,short,0,A\nq1,short,1,B\nq1,long,0,A\nq1,long,1,\n")
    >>> cube = read_table(table, item="question", facets=["prompt"], repeat="run", verdict="winner", invalid=[""])
    >>> cube["verdict"].dims, cube["class"].values.tolist()
    (('item', 'prompt', 'repeat'), ['A', 'B', '⊥'])
    >>> cube["verdict"].sel(item="q1", prompt="long").values.tolist()
    [0, 2]
    """
    roles = declare(
        item=item,
        facets=facets,
        repeat=repeat,
        verdict=verdict,
        classes=classes,
        invalid=invalid,
        missing=missing,
        stratum=stratum,
        gold=gold,
        coords=coords,
        by=by,
        where=where,
        number_repeats=number_repeats,
        random=random,
        weights=weights,
    )
    return cube_of_rows(read_rows(path, roles.columns()), roles)


def make_cube(
    rows: pd.DataFrame | Iterable[Mapping[str, Any]],
    *,
    item: str | Sequence[str],
    facets: str | Facet | Sequence[str | Facet],
    repeat: str | None = None,
    verdict: str,
    classes: Sequence[str] | None = None,
    invalid: str | Sequence[str] = (),
    missing: str | Sequence[str] = (),
    stratum: str | None = None,
    gold: str | None = None,
    coords: str | Sequence[str] = (),
    by: str | Sequence[str] | None = None,
    where: str | Sequence[str] = (),
    number_repeats: bool = False,
    random: str | Sequence[str] = (),
    weights: Mapping[str, Mapping[str, float]] | None = None,
) -> xr.Dataset:
    """Make a response-law cube from rows in memory, one row per judge call.

    Values are taken as the text that ``DataFrame.to_csv`` writes for them, so that a frame and its CSV file give the
    same cube; None, NaN and NA are the empty text.

    Parameters
    ----------
    rows : DataFrame or iterable of mappings
    item, facets, repeat, verdict, classes, invalid, missing, stratum, gold, coords, by, where, number_repeats, random,
    weights
        As for :func:`read_table`.

    Returns
    -------
    xarray.Dataset
        As for :func:`read_table`.

    Raises
    ------
    TableError
        When the rows are not such a table: place (position of the row, from 0), value and remedy are named.
    DesignError
        When a facet's declaration does not fit its levels.

    Examples
    --------
    >>> rows = [{"q": q, "order": o, "run": r, "winner": "A"} for q in "12" for o in ("AB", "BA") for r in range(3)]
    >>> make_cube(rows, item="q", facets="order", repeat="run", verdict="winner").sizes["repeat"]
    3
    """
    roles = declare(
        item=item,
        facets=facets,
        repeat=repeat,
        verdict=verdict,
        classes=classes,
        invalid=invalid,
        missing=missing,
        stratum=stratum,
        gold=gold,
        coords=coords,
        by=by,
        where=where,
        number_repeats=number_repeats,
        random=random,
        weights=weights,
    )
    return cube_of_rows(rows_in_memory(rows, roles.columns()), roles)
