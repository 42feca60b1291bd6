"""``secondorder study design``: which choices of a judge's design matter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from secondorder.cli._columns import Columns, Source
from secondorder.cli._streams import say
from secondorder.cli._study_flags import STUDY, Bands, Shown, Texts, pair_of, pairs_of, scores_of, show
from secondorder.cli._words import in_flags
from secondorder.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from secondorder.studies import StudyResult

Flag = Annotated[str | None, Parameter(group=STUDY)]


def design(
    source: Source,
    /,
    *,
    columns: Columns = Columns(),  # noqa: B008  (frozen)
    score: Flag = None,
    factor: Texts = None,
    human: Annotated[str, Parameter(group=STUDY)] = "gold",
    scale: Annotated[str, Parameter(group=STUDY)] = "scale",
    bounds: Annotated[list[str] | None, Parameter(group=STUDY, negative="", allow_leading_hyphen=True)] = None,
    to: Annotated[str, Parameter(group=STUDY, allow_leading_hyphen=True)] = "1,7",
    group: Texts = None,
    without: Texts = None,
    vary: Texts = None,
    accept: Flag = None,
    class_score: Texts = None,
    reference: Texts = None,
    incomplete: Annotated[Literal["common", "available"], Parameter(group=STUDY)] = "common",
    permutations: Annotated[int, Parameter(group=STUDY)] = 499,
    bands: Bands = Bands(),  # noqa: B008
    shown: Shown = Shown(),  # noqa: B008
) -> int:
    """Judge designs crossed of factors: bias and error against people, and what each choice changes.

    With scores: every design against the human scores (--gold), impact of each factor, sources of variance, ensembles.
    With --accept, a binary task: accuracy, leniency and switches of verdicts against the right answers (--gold).
    Verdicts of three classes or more (A, B, tie) are neither: score them, such as --class-score A=1 --class-score B=0
    --class-score tie=0.5, and the right answers with them.

    secondorder study design scores.csv --item q --facet detail --facet scale --facet model --score s --gold human

    Parameters
    ----------
    source
        A table of scores (--score) or verdicts (--verdict), a cube (.nc .zarr), or a run folder.
    score
        Column of a score that is no class.
    factor
        Dimension that the designs are crossed of; repeat for several. Default: all facets and groups.
    human
        Item coordinate of the human scores, on the scale of --to.
    scale
        The factor whose levels are rating scales.
    bounds
        LEVEL=LO,HI of a level of that factor; or LO,HI for all scores. Default: what a level such as 1-5 names.
    to
        LO,HI of the common scale.
    group
        Dimension or item coordinate (a task, a subset): one study for each level.
    without
        FACTOR=LEVEL to leave out in a second reading: are the results driven by it?
    vary
        Factor whose levels differ between the members of an ensemble. Default: each in turn.
    accept
        The class that accepts an answer, where there are two.
    class_score
        CLASS=NUMBER for every class of --verdict and of the right answers. Default: the classes as numbers.
    reference
        FACTOR=LEVEL that the other levels are compared with in the table of switches. Default: the first.
    incomplete
        Compare designs on the items that all of them judged, or each on its own.
    permutations
        Relabellings for the tests; 0: none.
    """
    from secondorder.cli._study_input import open_data

    paths = shown.paths(source)
    data = open_data(source, columns, score)
    if class_score and (score or accept is not None):
        flag = "--score" if score else "--accept"
        raise InputError(f"--class-score stands beside {flag}", place=source, remedy="leave one of them out")
    name = "score" if "score" in data and "verdict" not in data else "verdict"
    dims = [str(dim) for dim in data[name].dims if dim not in ("item", "repeat")]
    factors = factor or [dim for dim in dims if dim not in (group or ())]
    common: dict[str, Any] = {"factors": factors, "by": group, "incomplete": incomplete}
    if accept is not None:
        results = [_binary(data, accept, human, reference, permutations, bands, common)]
    else:
        common |= {
            "scale": scale,
            "scales": _scales(bounds),
            "to": pair_of(to, "--to"),
            "scores": scores_of(class_score),
        }
        results = _scalar(data, human, without, vary, permutations, bands, common)
    show("design", source, results, shown, paths, seed=bands.seed)
    return 0


def _binary(
    data: xr.Dataset,
    accept: str,
    gold: str,
    reference: list[str] | None,
    permutations: int,
    bands: Bands,
    common: dict[str, Any],
) -> StudyResult:
    from secondorder import studies

    chosen = pairs_of(reference, "--reference", "FACTOR=LEVEL")
    return studies.binary_designs(
        data, accept=accept, gold=gold, reference=chosen, permutations=permutations, **bands.options(), **common
    )


def _scalar(
    data: xr.Dataset,
    human: str,
    without: list[str] | None,
    vary: list[str] | None,
    permutations: int,
    bands: Bands,
    common: dict[str, Any],
) -> list[StudyResult]:
    from secondorder import studies
    from secondorder.errors import CubeError

    left_out: dict[str, list[str]] = {}
    for text in without or ():
        ((factor, level),) = pairs_of([text], "--without", "FACTOR=LEVEL").items()
        left_out.setdefault(factor, []).append(level)
    results = [
        studies.judge_designs(data, human=human, without=left_out, **bands.options(), **common),
        studies.factor_effects(data, human=human, permutations=permutations, seed=bands.seed, **common),
    ]
    try:
        crossed = {key: value for key, value in common.items() if key != "incomplete"}
        results.append(studies.dominant_source(data, **crossed, **bands.options()))
    except CubeError as error:
        say(f"note: sources of variance are left out: {in_flags(error)}")
    results.append(studies.ensembles(data, human=human, vary=vary, seed=bands.seed, **common))
    return results


def _scales(bounds: list[str] | None) -> dict[str, tuple[float, float]] | tuple[float, float] | None:
    """Bounds of the scales from the flags."""
    if not bounds:
        return None
    if len(bounds) == 1 and "=" not in bounds[0]:
        return pair_of(bounds[0], "--bounds")
    named = pairs_of(bounds, "--bounds", "LEVEL=LO,HI")
    if not all(named.values()):
        raise InputError("--bounds is LEVEL=LO,HI or LO,HI", place="--bounds", remedy="write for instance stars=1,5")
    return {level: pair_of(text, "--bounds") for level, text in named.items()}
