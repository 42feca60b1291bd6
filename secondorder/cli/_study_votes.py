"""``secondorder study aggregate | gate``: several votes to one decision, and when one vote is enough."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from secondorder._schema import JUDGE, PROMPT
from secondorder.cli._columns import Columns, Source
from secondorder.cli._soft import say_sampled
from secondorder.cli._study_flags import STUDY, Bands, Shown, Texts, show
from secondorder.cli._study_roles import Roles, roles_of
from secondorder.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Ties = Annotated[Literal["abstain", "ordered", "random"], Parameter(group=STUDY)]
Flag = Annotated[str | None, Parameter(group=STUDY)]
InvalidAs = Annotated[Literal["class", "missing"], Parameter(group=STUDY)]

WORDS = "words:"


def aggregate(
    source: Source,
    /,
    *,
    columns: Columns = Columns(),  # noqa: B008  (frozen)
    voters: Texts = None,
    judge: Flag = None,
    prompt: Flag = None,
    rule: Texts = None,
    ties: Ties = "abstain",
    default: Flag = None,
    group: Texts = None,
    order: Annotated[Literal["declared", "any"], Parameter(group=STUDY)] = "declared",
    calls: Annotated[list[int] | None, Parameter(group=STUDY, negative="")] = None,
    budget_rule: Annotated[Literal["plurality", "majority", "mean", "median"], Parameter(group=STUDY)] = "plurality",
    incomplete: Annotated[Literal["refuse", "drop-item"], Parameter(group=STUDY)] = "refuse",
    invalid_as: InvalidAs = "class",
    bands: Bands = Bands(),  # noqa: B008
    shown: Shown = Shown(),  # noqa: B008
) -> int:
    """Aggregate several votes under several rules, say when they settle, and compare sources at equal calls.

    With repeats: m repeats of one prompt against one call of m prompts and one call of m judges.

    secondorder study aggregate calls.csv --item q --facet prompt --repeat run --verdict v --gold right

    Parameters
    ----------
    source
        A table of verdicts, a cube (.nc .zarr), a run folder, or - for CSV on stdin.
    voters
        Dimension whose verdicts are votes; several make composite voters. Default: that of --prompt.
    judge
        Dimension of the judges. Default: the one called judge, or what --by names.
    prompt
        Dimension of the wordings. Default: the facet called prompt, or the first facet (not order).
    rule
        single, plurality, majority, mean, median, dawid_skene or weighted. Default: all that fit.
    ties
        What plurality does where several classes lead: abstain, the first declared class (a bias), or draw one.
    default
        The voter that would be asked alone. Default: the first.
    group
        Dimension or item coordinate: one set of numbers for each level. Default: what --by names, or judge.
    order
        Votes come in the declared order, or in any (exact averages).
    calls
        Numbers of calls of the comparison at equal calls. Default: 1, 3 and 5.
    budget_rule
        How these calls become one decision; ties are drawn.
    incomplete
        Items that lack calls in that comparison: refuse, or leave them out.
    invalid_as
        Whether ⊥ is a class that can win, or no vote.
    """
    from secondorder import studies

    paths = shown.paths(source)
    cube = columns.open(source)
    say_sampled(cube)
    roles = roles_of(cube, judge=judge, prompt=prompt)
    asked = voters or [_default_voters(roles)]
    options: dict[str, Any] = {"by": group, "invalid": invalid_as, **bands.options()}
    results = [
        studies.aggregate(cube, voters=asked, rules=rule, ties=ties, default=default, **options),
        studies.convergence(cube, voters=asked, default=default, order=order, **options),
    ]
    if cube.sizes.get("repeat", 1) > 1:
        options |= {"judge": roles.judge or JUDGE, "prompt": roles.prompt or PROMPT}
        options |= {"calls": calls or (1, 3, 5), "rule": budget_rule, "incomplete": incomplete}
        results.append(studies.match_budget(cube, **options))
    elif calls:
        raise InputError("--calls needs repeats", place=source, remedy="leave it out, or give a table with repeats")
    show("aggregate", source, results, shown, paths, seed=bands.seed)
    return 0


def gate(
    source: Source,
    /,
    *,
    columns: Columns = Columns(),  # noqa: B008
    voters: Flag = None,
    first: Flag = None,
    signal: Texts = None,
    features: Annotated[Path | None, Parameter(group=STUDY)] = None,
    split: Annotated[str, Parameter(group=STUDY)] = "item",
    folds: Annotated[int, Parameter(group=STUDY)] = 5,
    threshold: Annotated[float | None, Parameter(group=STUDY)] = None,
    stop: Annotated[Literal["decided", "majority"] | None, Parameter(group=STUDY)] = None,
    ties: Ties = "abstain",
    invalid_as: InvalidAs = "class",
    save: Annotated[Path | None, Parameter(group=STUDY)] = None,
    bands: Bands = Bands(),  # noqa: B008
    shown: Shown = Shown(),  # noqa: B008
) -> int:
    """Train a gate that looks at the first verdict and says whether the other voters are asked; judge it on others.

    A logistic regression. A saved gate is the [gate] of an audit.toml: the run then makes the calls that it wants.

    secondorder study gate calls.csv --item q --facet prompt --repeat run --verdict v --save gate.json

    Parameters
    ----------
    source
        A table of verdicts, a cube, the folder of a run or its audit.toml, or - for CSV on stdin.
    voters
        Dimension of the voters. Default: the facet called prompt, or the first facet (not order).
    first
        The voter that is always asked. Default: the first.
    signal
        What the gate sees: verdict, soft, a dimension (order, judge), an item coordinate (--coord); with an audit.toml
        also a field of the items, or words:FIELD for its number of words. Default: verdict.
    features
        Table of items (first column) and further signals.
    split
        item, or an item coordinate whose levels (data sets) are kept apart.
    folds
        Of the split by items.
    threshold
        Probability from which on the gate opens. Default: the largest Matthews correlation in training.
    stop
        When full aggregation stops asking. Default: it asks everybody.
    ties
        A tied case needs aggregation (abstain), or its decision is the first class or drawn.
    invalid_as
        Whether ⊥ is a class that can win, or no vote.
    save
        Also train on all items, and write the gate to this .json file.
    """
    from secondorder import studies
    from secondorder.cli._write import check_outputs

    paths = shown.paths(source, features)
    if save is not None:
        check_outputs([save], [".json"], [source, features], flag="--save")
    cube = columns.open(source)
    say_sampled(cube)
    signals = signal or ["verdict"]
    options: dict[str, Any] = {
        "voters": voters or _default_voters(roles_of(cube)),
        "first": first,
        "signals": tuple(name for name in signals if not _of_items(name, cube)),
        "features": _features(source, features, [name for name in signals if _of_items(name, cube)]),
        "threshold": threshold,
        "stop": stop,
        "ties": ties,
        "invalid": invalid_as,
        "seed": bands.seed,
    }
    found = studies.evaluate_gate(cube, split=split, folds=folds, level=bands.level, draws=bands.draws, **options)
    if save is not None:
        studies.fit_gate(cube, **options).save(save)
    show("gate", source, [found], shown, paths, seed=bands.seed)
    return 0


def _default_voters(roles: Roles) -> str:
    if roles.compared is None:
        raise InputError("there are no voters", place="--voters", remedy="name a facet, or --voters repeat")
    return roles.compared


def _of_items(name: str, cube: xr.Dataset) -> bool:
    """Whether a signal has to be read from the items of an audit."""
    return name not in ("verdict", "soft") and name not in cube["verdict"].dims and name not in cube.coords


def _features(source: str, path: Path | None, names: list[str]) -> pd.DataFrame | None:
    """Signals beside the cube: a table of items, and fields of an audit's items."""
    import pandas as pd

    from secondorder._labels._plain import read_side_table

    frames = [] if path is None else [read_side_table(path)]
    if names:
        from secondorder._audit._plan import load_audit
        from secondorder.acquire import gate_signals

        file = Path(source) / "audit.toml" if Path(source).is_dir() else Path(source)
        if file.suffix != ".toml" or not file.is_file():
            raise InputError(
                f"there is no signal {names[0]!r}",
                place=source,
                remedy="name an item coordinate, or give its audit.toml",
            )
        items = load_audit(file).items
        for name in names:
            field = name.removeprefix(WORDS)
            if not all(field in item.fields for item in items):
                shown = ", ".join(items[0].fields)
                raise InputError(f"the items have no field {field!r}", place=str(file), remedy=f"fields: {shown}")
        content = {"signals": [{"name": name} for name in names]}
        found = gate_signals(content, [item.fields for item in items], [item.stratum for item in items])
        frames.append(pd.DataFrame(found, index=[item.id for item in items]))
    return pd.concat(frames, axis=1) if frames else None
