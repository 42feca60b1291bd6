"""The judge studies that a cube supports, as the part ``/studies`` of the estimates tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

import xarray as xr

from secondorder._labels._attributes import group_dim
from secondorder._labels._results import Section
from secondorder._schema import BOTTOM, ITEM, ORDER, PROMPT, REPEAT
from secondorder._statistics._settings import Settings
from secondorder._statistics._soft import has_sampled
from secondorder.errors import SecondOrderError
from secondorder.report import section_text
from secondorder.studies import (
    StudyResult,
    aggregate,
    agreement,
    position_bias,
    prompt_winners,
    repeat_agreement,
)

__all__ = ["study_parts"]

GOLD = "gold"
FEWEST_VOTERS = 3
RULES = ("single", "plurality", "majority")
SCALES = {"ordinal": ("ordinal", "linear"), "interval": ("interval", "interval")}
SAMPLED = "Of the verdicts that the calls sampled, not of the soft ones."
ASIDE = f"{BOTTOM} has no place on the scale: it is set aside in this study, and counted."

APART = "Verdicts on the same item and under the same conditions are compared; κ and its kin take off chance agreement."
WITHIN = (
    "Two calls on an item under one of the {levels} (within), and under two of them (across). κ takes off the "
    "agreement of calls on different items. The call-noise share is the part of the disagreement across that is the "
    "judge's disagreement with itself."
)
SLOTS = (
    "Verdicts for the candidate that was shown first and second, both orders weighing alike, so that the candidates' "
    "quality cancels; and how often two calls in different orders disagree, beside two calls in the same order."
)
WINS = "Each of the {levels} against the right answers, with bands from the same resampled items."
VOTES = "Decisions of the whole panel of {levels}, one for every item and condition, against the right answers."


class _Study(NamedTuple):
    """A question, what a reader of the answer has to know, the study, and the command that asks for more."""

    name: str
    question: str
    lead: str
    make: Callable[[], StudyResult]
    command: str


def study_parts(cube: xr.Dataset, settings: Settings) -> dict[str, xr.Dataset]:
    """Every study that the dimensions of a cube support, by its name below ``/studies``.

    Judges are compared with each other; prompts, or the facets in their place, with each other and with themselves;
    the two orders of a pair with each other; verdicts with the right answers. A study that turns out to be undefined
    for these calls keeps its place in the report and says why.

    Parameters
    ----------
    cube : Dataset
    settings : Settings
        Of the decomposition that the report shows: kernel, scores, level, and what ⊥ means.

    Returns
    -------
    dict of str to Dataset
        Numbers over ``measure``, and the section of the report as JSON text in the variable ``section``.
    """
    # Under the nominal kernel classes are names, though they be written in digits.
    found = enumerate(_supported(cube.assign_attrs(kernel=settings.kernel), settings))
    said = f" {SAMPLED}" if has_sampled(cube) else ""
    return {
        study.name: _part(study._replace(lead=study.lead + said)).assign_attrs(place=place) for place, study in found
    }


def _supported(cube: xr.Dataset, settings: Settings) -> Iterator[_Study]:
    sizes = {str(dim): cube.sizes[dim] for dim in cube["verdict"].dims}
    judges = group_dim(cube)
    wordings = [dim for dim, size in sizes.items() if dim not in (judges, ORDER, ITEM, REPEAT) and size > 1]
    metric, weights = SCALES.get(settings.kernel, ("nominal", "nominal"))
    scaled = settings.kernel in SCALES
    invalid: Literal["class", "missing"] = "missing" if scaled or settings.invalid_as == "missing" else "class"
    aside = f" {ASIDE}" if scaled and BOTTOM in settings.classes else ""
    scale: dict[str, Any] = {"scores": settings.scores, "level": settings.level}
    rated: dict[str, Any] = {**scale, "invalid": invalid, "weights": weights}

    if judges is not None and sizes[judges] > 1:
        make = partial(agreement, cube, raters=judges, metric=metric, **rated)
        yield _Study("judges", f"Do the {judges}s agree?", APART + aside, make, f"agreement INPUT --raters {judges}")
    for number, facet in enumerate(wordings, 1):
        command = f"agreement INPUT --raters {facet}"
        if sizes.get(REPEAT, 1) > 1:
            make = partial(repeat_agreement, cube, facet=facet, incomplete="drop-item", **rated)
            question, lead = f"Agreement within and across {_levels(facet)}", WITHIN.format(levels=_levels(facet))
        else:
            make = partial(agreement, cube, raters=facet, metric=metric, **rated)
            question, lead = f"Agreement across {_levels(facet)}", APART
        yield _Study(f"agreement-{number}", question, lead + aside, make, command)
    if sizes.get(ORDER) == 2:
        make = partial(position_bias, cube, level=settings.level)
        yield _Study("position", "Position bias", SLOTS, make, "agreement INPUT")
    if GOLD not in cube.coords:
        return
    for facet in wordings[:1]:
        lead = WINS.format(levels=_levels(facet)) + aside
        make = partial(prompt_winners, cube, prompt=facet, **scale)
        yield _Study("winners", f"Does one {facet} win?", lead, make, f"lottery INPUT --prompt {facet}")
        if sizes[facet] >= FEWEST_VOTERS:
            related = ("pearson",) if scaled else ()
            make = partial(aggregate, cube, voters=facet, rules=RULES, correlations=related, invalid=invalid, **scale)
            question, lead = f"Would a vote of the {_levels(facet)} help?", VOTES.format(levels=_levels(facet))
            yield _Study("votes", question, lead + aside, make, f"aggregate INPUT --voters {facet}")


def _levels(facet: str) -> str:
    return "prompts" if facet == PROMPT else f"levels of {facet}"


def _part(study: _Study) -> xr.Dataset:
    more = f"More: secondorder study {study.command}"
    try:
        found = study.make()
    except SecondOrderError as error:
        section = Section(study.question, f"{study.lead}\n\nUndefined for these calls: {error}")
        return xr.Dataset({"section": ((), section_text(section))})
    section = found.section()
    *tables, last = section.tables
    last = replace(last, notes=(*last.notes, more))
    section = replace(section, title=study.question, text=study.lead, tables=(*tables, last))
    measured = [name for name, array in found.data.data_vars.items() if "measure" in array.dims]
    return found.data[measured].assign(section=((), section_text(section)))
