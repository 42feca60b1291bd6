"""``secondorder test``: does a facet matter, on any item or on the benchmark as a whole? Do judges differ?"""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Group, Parameter

from secondorder.cli._columns import Columns, Source, Verdicts
from secondorder.cli._progress import working
from secondorder.cli._soft import say_soft
from secondorder.cli._streams import show, show_json

_TEST = Group("Test", sort_key=3)


def permute(
    source: Source,
    /,
    *,
    columns: Columns = Columns(),  # noqa: B008  (frozen)
    verdicts: Verdicts = Verdicts(),  # noqa: B008
    effect: Annotated[list[str] | None, Parameter(group=_TEST, negative="")] = None,
    hypothesis: Annotated[Literal["calls", "labels", "benchmark", "judges"], Parameter(group=_TEST)] = "calls",
    draws: Annotated[int, Parameter(group=_TEST)] = 999,
    seed: Annotated[int, Parameter(group=_TEST)] = 0,
    format: Annotated[Literal["table", "json"], Parameter(group=_TEST)] = "table",
) -> int:
    """Test by shuffling that a facet has no effect, or that judges do not differ; exact at any number of calls.

    Exit code 0 whatever the p values: how small one has to be is not for the command to say.

    Parameters
    ----------
    source
        A table, a cube (.nc .zarr), a run folder, or - for CSV on stdin.
    effect
        Facet to test. Repeat for several. Default: every facet with several levels. With --hypothesis judges: component
        to compare, such as call or prompt:order; fewer, named before the values are seen, leave less to adjust for.
    hypothesis
        calls: no effect on any item, calls independent. labels: the same when calls of one repeat may depend on each
        other. benchmark: no effect on the benchmark as a whole; with it, how effects split into those on the benchmark
        and those on single items. judges: the groups of --by answer every item alike; every pair of them, and every
        component, by sign flips of the items' differences, adjusted for the number of tests.
    draws
        Shuffles. To find single items at false discovery rate q, at least items / q.
    seed
        Seed of the shuffles.
    format
        What stdout carries.
    """
    from secondorder._statistics._benchmark import benchmark_effects
    from secondorder._statistics._decompose import decompose
    from secondorder._statistics._permutation import permutation_test

    with working("reading"):
        cube = columns.open(source)
    say_soft(cube)
    options = verdicts.options(cube)
    if hypothesis == "judges":
        from secondorder._statistics._paired import paired_test

        with working("decomposing"):
            found = paired_test(decompose(cube, **options), components=effect, draws=draws, seed=seed)
        if format == "json":
            show_json(found.to_dict())
        else:
            show(str(found))
        return 0
    with working("shuffling"):
        result = decompose(cube, **options)
        facets = effect or list(result.groups[0].design.names)
        tests = [
            permutation_test(cube, facet, hypothesis=hypothesis, draws=draws, seed=seed, **options) for facet in facets
        ]
        parts = []
        if hypothesis == "benchmark":
            parts = [benchmark_effects(result.select(**dict(group.by))) for group in result.groups]
    if format == "json":
        plain: dict[str, object] = {"schema": "secondorder.tests/1", "tests": [test.to_dict() for test in tests]}
        if parts:
            pairs = zip(result.groups, parts, strict=True)
            plain["effects"] = [{"by": dict(group.by), **part.to_dict()} for group, part in pairs]
        show_json(plain)
        return 0
    titled = (
        f"{', '.join(group.by.values())}\n{part}" if group.by else str(part)
        for group, part in zip(result.groups, parts, strict=False)
    )
    show("\n\n".join([*map(str, tests), *titled]))
    return 0
