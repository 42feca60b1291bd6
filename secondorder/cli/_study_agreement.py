"""``secondorder study agreement | lottery``: do judges, prompts and people agree, and does a prompt win?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from secondorder.cli._columns import Columns, Source
from secondorder.cli._soft import say_sampled
from secondorder.cli._streams import say
from secondorder.cli._study_flags import STUDY, Bands, Shown, Texts, pair_of, pairs_of, scores_of, show
from secondorder.cli._study_roles import Roles, roles_of
from secondorder.cli._words import in_flags
from secondorder.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from secondorder.studies import StudyResult

Flag = Annotated[str | None, Parameter(group=STUDY)]
File = Annotated[Path | None, Parameter(group=STUDY)]


def agreement(
    source: Source,
    /,
    *,
    columns: Columns = Columns(),  # noqa: B008  (frozen)
    raters: Texts = None,
    order: Flag = None,
    group: Texts = None,
    coefficient: Texts = None,
    metric: Annotated[Literal["nominal", "ordinal", "interval", "ratio"], Parameter(group=STUDY)] = "nominal",
    weights: Annotated[
        Literal["nominal", "linear", "quadratic", "interval", "ratio"] | None, Parameter(group=STUDY)
    ] = None,
    invalid_as: Annotated[Literal["class", "missing"], Parameter(group=STUDY)] = "class",
    incomplete: Annotated[Literal["refuse", "drop-item"], Parameter(group=STUDY)] = "refuse",
    human: File = None,
    first: Texts = None,
    length: Flag = None,
    control: Texts = None,
    class_score: Texts = None,
    bands: Bands = Bands(),  # noqa: B008
    shown: Shown = Shown(),  # noqa: B008
) -> int:
    """Agreement of prompts, judges, people or repeats, with bands over items.

    With repeats, also how much of the disagreement is call noise; with both orders, position bias; with --length,
    verbosity bias.

    secondorder study agreement calls.csv --item q --facet prompt --repeat run --verdict v --by judge

    Parameters
    ----------
    source
        A table of verdicts, a cube (.nc .zarr), a run folder, or - for CSV on stdin.
    raters
        Dimension whose levels are compared; several make composite raters. Default: the facet called prompt,
        or the first facet (not order).
    order
        Dimension of the two orders of the candidates, for position bias. Default: the facet called order.
    group
        Dimension or item coordinate: one set of numbers for each level. Default: what --by names, or judge.
    coefficient
        overlap, cohen, fleiss, krippendorff, gwet or scott. Default: all.
    metric
        Disagreement of two classes for α.
    weights
        Disagreement for κ, π and AC. Default: what belongs to the metric.
    invalid_as
        Whether ⊥ is a class, or set aside and counted.
    incomplete
        Cells with too few calls in the comparison with repeats: refuse, or leave their items out.
    human
        A cube of people's verdicts (annotators of one wording as repeats): how many times more a judge loses.
    first
        ORDER=CLASS, the class of the candidate that stands first in an order. Default: AB=1st class, BA=2nd.
    length
        Item coordinate (--coord) with the length of the answer, or the difference of lengths.
    control
        Numeric item coordinate held fixed beside the length.
    class_score
        CLASS=NUMBER for every class, where a metric or --length needs scores. Default: the classes as numbers.
    """
    from secondorder import studies
    from secondorder.errors import CubeError
    from secondorder.studies._agreement import WEIGHTS_OF

    paths = shown.paths(source, human)
    cube = columns.open(source)
    say_sampled(cube)
    roles = roles_of(cube, order=order)
    compared = raters or _default_raters(roles)
    options: dict[str, Any] = {"by": group, **bands.options()}
    scores = scores_of(class_score)
    repeated = cube.sizes.get("repeat", 1) > 1
    if human is not None and (not repeated or len(compared) > 1 or compared[0] in ("repeat", roles.judge)):
        raise InputError("--human needs repeats and one facet as raters", place=source, remedy="leave it out")
    results = [
        studies.agreement(
            cube,
            raters=compared,
            coefficients=coefficient or tuple(studies.COEFFICIENTS),
            metric=metric,
            weights=weights,
            invalid=invalid_as,
            scores=scores,
            **options,
        )
    ]
    if repeated and len(compared) == 1 and compared[0] != "repeat":
        aware: dict[str, Any] = {"facet": compared[0], "weights": weights or WEIGHTS_OF[metric]}
        aware |= {"invalid": invalid_as, "incomplete": incomplete, "scores": scores, **options}
        try:
            results.append(studies.repeat_agreement(cube, **aware))
        except CubeError as error:
            if compared[0] != roles.judge:
                raise
            say(f"note: agreement within judges is left out: {in_flags(error)}")
        if human is not None:
            results.append(studies.degradation_ratio(results[-1], _of_people(human, aware)))
    if roles.order is not None and cube.sizes[roles.order] == 2 and roles.order not in compared:
        said = pairs_of(first, "--first", "ORDER=CLASS") or None
        try:
            results.append(studies.position_bias(cube, order=roles.order, first=said, **options))
        except CubeError as error:
            if first:
                raise
            say(f"note: position bias is left out: {in_flags(error)}")
    elif first:
        remedy = "name it with --order, or leave --first out"
        raise InputError("--first needs a facet `order` with two levels", place=source, remedy=remedy)
    elif order:
        raise InputError(f"{order!r} is a rater, or has not two levels", place="--order", remedy="name another facet")
    if length is not None:
        held = control or ()
        results.append(studies.verbosity_bias(cube, length=length, controls=held, scores=scores, **options))
    show("agreement", source, results, shown, paths, seed=bands.seed)
    return 0


def _default_raters(roles: Roles) -> list[str]:
    if roles.compared is None:
        raise InputError("there is nothing to compare", place="--raters", remedy="name a facet, or --raters repeat")
    return [roles.compared]


def _of_people(path: Path, options: dict[str, Any]) -> StudyResult:
    from secondorder import studies
    from secondorder._labels._files import open_cube

    return studies.repeat_agreement(open_cube(path), **options)


def lottery(
    source: Source,
    /,
    *,
    columns: Columns = Columns(),  # noqa: B008
    score: Flag = None,
    prompt: Flag = None,
    group: Texts = None,
    system: Flag = None,
    match: Flag = None,
    valid: Annotated[str | None, Parameter(group=STUDY, allow_leading_hyphen=True)] = None,
    incomplete: Annotated[Literal["common", "available"], Parameter(group=STUDY)] = "common",
    splits: Annotated[int, Parameter(group=STUDY)] = 50,
    class_score: Texts = None,
    similarity: File = None,
    features: File = None,
    outcomes: File = None,
    family: Flag = None,
    bands: Bands = Bands(),  # noqa: B008
    shown: Shown = Shown(),  # noqa: B008
) -> int:
    """Does a prompt win, do rankings reverse, and do similar prompts agree?

    What is done follows from what is given: human scores (--gold) compare the prompts, systems (--system) are ranked
    under each of them, similarities and traits of the wordings are held against their agreement.

    secondorder study lottery scores.csv --item q --facet prompt --facet system --score s --system system --gold human

    Parameters
    ----------
    source
        A table of verdicts (--verdict) or scores (--score), a cube, or a run folder; - where --features is all.
    score
        Column of a score that is no class: a mean of calls, a 0-100 scale, a metric.
    prompt
        Dimension of the wordings. Default: the facet called prompt, or the first facet (not order or --system).
    group
        Dimension or item coordinate: one study for each level. Default: what --by names, or judge.
    system
        Dimension or item coordinate (--coord) of the systems whose answers are scored.
    match
        Item coordinate that says which items of different systems answer the same thing.
    valid
        LO,HI: scores outside are invalid, set aside and counted.
    incomplete
        Compare prompts on the answers that have a score under all of them, or each on what it has.
    splits
        Random splits of the calls for the reversals that call noise alone gives.
    class_score
        CLASS=NUMBER for every class of --verdict. Default: the classes as numbers; words have an accuracy instead.
    similarity
        Table with two columns of prompts and one of their similarity.
    features
        Table of prompts (first column) and their traits, with --outcomes.
    outcomes
        Table of prompts and an outcome of each.
    family
        Column of --features that says which prompts reword one another.
    """
    from secondorder import studies
    from secondorder.cli._study_input import mapping_of, open_data

    paths = shown.paths(source, similarity, features, outcomes)
    results: list[StudyResult] = []
    data: xr.Dataset | None = None
    options: dict[str, Any] = {"by": group, "incomplete": incomplete, **bands.options()}
    options["scores"] = scores_of(class_score)
    if score and class_score:
        raise InputError("--class-score stands beside --score", place=source, remedy="it belongs to --verdict")
    options["valid"] = None if valid is None else pair_of(valid, "--valid")
    if score or columns.item or Path(source).suffix in (".nc", ".zarr", ".toml") or Path(source).is_dir():
        data = open_data(source, columns, score)
        say_sampled(data)
        options["prompt"] = _wordings(roles_of(data, prompt=prompt, taken=system), source)
        if "gold" in data.variables:
            results.append(studies.prompt_winners(data, system=system, match=match, **options))
        if system is not None:
            results.append(studies.rank_reversals(data, system=system, match=match, splits=splits, **options))
        if similarity is not None:
            asked: dict[str, Any] = {"prompt": options["prompt"], "by": group, **bands.options()}
            results.append(studies.similarity_stability(data, _similarity(similarity), **asked))
    if (features is None) != (outcomes is None):
        raise InputError("--features and --outcomes belong together", place=source, remedy="give both")
    if features is not None and outcomes is not None:
        results.append(_features(features, mapping_of(outcomes), family, bands))
    if not results:
        raise InputError(
            "there is nothing to study", place=source, remedy="give --gold, --system, --similarity, or --features"
        )
    show("lottery", source, results, shown, paths, seed=bands.seed)
    return 0


def _wordings(roles: Roles, source: str) -> str:
    if roles.prompt is None:
        raise InputError(
            "it has no dimension of wordings",
            place=source,
            remedy="declare it (--facet COL), or name it (--prompt COL)",
        )
    return roles.prompt


def _similarity(path: Path) -> dict[tuple[str, str], float]:
    from secondorder._labels._plain import read_frame

    frame = read_frame(path)
    if frame.shape[1] < 3:
        raise InputError("it needs two columns of prompts and one of numbers", place=f"--similarity {path}")
    if (again := frame.iloc[:, :2].duplicated()).any():
        pair = " and ".join(map(repr, frame[again].iloc[0, :2]))
        raise InputError(f"{pair} stand there twice", place=f"--similarity {path}", remedy="give every pair once")
    try:
        return {(a, b): float(x) for a, b, x in frame.iloc[:, :3].itertuples(index=False)}
    except ValueError as error:
        raise InputError(str(error), place=f"--similarity {path}", remedy="its third column holds numbers") from None


def _features(path: Path, outcomes: dict[str, Any], family: str | None, bands: Bands) -> StudyResult:
    from secondorder import studies
    from secondorder._labels._plain import read_side_table

    traits = read_side_table(path)
    if family is not None and family not in traits.columns:
        raise InputError(f"there is no column {family!r}", place=str(path), remedy=", ".join(map(str, traits.columns)))
    of = None if family is None else {str(name): str(label) for name, label in traits[family].items()}
    kept = traits.drop(columns=[] if family is None else [family])
    return studies.feature_effects(outcomes, kept, family=of, level=bands.level, seed=bands.seed)
