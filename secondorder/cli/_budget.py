"""``secondorder budget``: how many items and repeats to ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from secondorder.cli._columns import Columns, Source, Verdicts
from secondorder.cli._streams import show, show_json
from secondorder.errors import InputError

_GOAL = Group("What is wanted", sort_key=3)


def budget(
    source: Source,
    /,
    *,
    columns: Columns = Columns(),  # noqa: B008  (frozen)
    verdicts: Verdicts = Verdicts(),  # noqa: B008
    calls: Annotated[int | None, Parameter(group=_GOAL)] = None,
    component: Annotated[str | None, Parameter(group=_GOAL)] = None,
    se: Annotated[list[str] | None, Parameter(group=_GOAL, negative="")] = None,
    power: Annotated[list[str] | None, Parameter(group=_GOAL, negative="")] = None,
    least_items: Annotated[int, Parameter(group=_GOAL)] = 10,
    alpha: Annotated[float, Parameter(group=_GOAL)] = 0.05,
    population: Annotated[int | None, Parameter(group=_GOAL)] = None,
    format: Annotated[Literal["table", "json"], Parameter(group=_GOAL)] = "table",
    output: Annotated[Path | None, Parameter(group=_GOAL)] = None,
) -> int:
    """Plan items, repeats and levels of a random facet from a pilot with four or more calls in every cell.

    Calls are items x cells x repeats, for one judge; standard errors cover other items and their calls.

    Parameters
    ----------
    source
        The pilot: a table, a cube (.nc .zarr), a run folder, or - for CSV on stdin.
    calls
        Budget of calls: the design of least standard error within it.
    component
        Component that the calls are spent on. Default: the first facet.
    se
        COMPONENT=SE: the design with the fewest calls that reaches this standard error. Repeat for several.
    power
        COMPONENT=EFFECT,POWER: the design with the fewest calls that finds an effect of that size with that
        probability.
    alpha
        Level of the one-sided test of --power.
    population
        Length of the list that items are drawn from. Default: unlimited.
    least_items
        No fewer items than these.
    format
        What stdout carries.
    output
        Also write a figure: contours of the standard error over items and repeats, as .svg.
    """
    from secondorder.cli._write import check_outputs, write_text

    outputs = check_outputs([] if output is None else [output], [".svg"], [source])
    from secondorder._statistics._planning import budget as plan

    # A component that exists: the first facet, where the table's flags name one, else call noise.
    named = (columns.facet or columns.random or ["call"])[0]
    wanted = {name: _number(value, "--se") for name, value in _pairs(se or [], "--se", f"{named}=0.01").items()}
    chances = {}
    for name, value in _pairs(power or [], "--power", f"{named}=0.02,0.8").items():
        effect, comma, chance = value.partition(",")
        if not comma:
            raise InputError(f"{value!r} is not EFFECT,POWER", place="--power", remedy=f"write {name}=0.02,0.8")
        chances[name] = (_number(effect, "--power"), _number(chance, "--power"))
    cube = columns.open(source)
    result = plan(
        cube, calls=calls, se=wanted, power=chances, component=component, population=population,
        least_items=least_items, alpha=alpha, **verdicts.options(cube),
    )  # fmt: skip
    for path in outputs:
        from secondorder import plot

        # What is planned for, else the first component after call noise: the first facet's.
        shown = component or (result.plans[0].component if result.plans else result.components[1])
        write_text(path, plot.to_svg(plot.budget(result, shown)))
    if format == "json":
        show_json(result.to_dict())
    else:
        show(result)
    return 0


def _pairs(texts: list[str], flag: str, example: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise InputError(f"{text!r} is not COMPONENT=VALUE", place=flag, remedy=f"write {flag} {example}")
        if name in found:
            raise InputError(f"{name!r} is given twice", place=flag, remedy="give it once, or plan twice")
        found[name] = value
    return found


def _number(text: str, flag: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{text!r} is not a number", place=flag, remedy="write for instance 0.005") from None
