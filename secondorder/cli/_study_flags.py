"""Flags that the studies share, and how they read what a flag says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from secondorder.cli._streams import show as show_text
from secondorder.errors import InputError

if TYPE_CHECKING:
    from secondorder.studies import StudyResult

__all__ = ["STUDY", "Bands", "Shown", "Texts", "pair_of", "pairs_of", "scores_of", "show"]

STUDY = Group("Study", sort_key=3)
BANDS = Group("Bands", sort_key=4)
OUTPUT = Group("Output", sort_key=5)

Texts = Annotated[list[str] | None, Parameter(group=STUDY, negative="")]


@Parameter(name="*")
@dataclass(frozen=True)
class Bands:
    """Percentile bands over items.

    Parameters
    ----------
    level
        Level of the bands.
    draws
        Item draws; 0: no bands.
    seed
        Seed of everything that is drawn.
    """

    level: Annotated[float, Parameter(group=BANDS)] = 0.95
    draws: Annotated[int, Parameter(group=BANDS)] = 2000
    seed: Annotated[int, Parameter(group=BANDS)] = 0

    def options(self) -> dict[str, Any]:
        """Arguments of a study."""
        from secondorder._statistics._checked import whole

        whole(self.seed, "--seed")
        return {"level": self.level, "draws": self.draws, "seed": self.seed}


@Parameter(name="*")
@dataclass(frozen=True)
class Shown:
    """What is written where.

    Parameters
    ----------
    format
        What stdout carries.
    output
        Also write to a file, by suffix: .json .csv .html (with figures). Repeat for several.
    differences
        Also compare every two levels of this group dimension (judge, prompt, rule, …), with bands from shared draws.
    """

    format: Annotated[Literal["table", "json", "csv"], Parameter(group=OUTPUT)] = "table"
    output: Annotated[list[Path] | None, Parameter(group=OUTPUT, negative="")] = None
    differences: Annotated[str | None, Parameter(group=OUTPUT)] = None

    def paths(self, *inputs: str | Path | None) -> list[Path]:
        """Files to write, refused before any work where one cannot be, or is one of the files that are read."""
        from secondorder.cli._write import check_outputs

        return check_outputs(self.output or [], (".json", ".csv", ".html"), inputs)


def show(
    study: str, source: str, results: Sequence[StudyResult], shown: Shown, paths: Sequence[Path], *, seed: int
) -> None:
    """Print the results of a study, and write them to files."""
    from secondorder.cli._write import write_text

    if shown.differences is not None:
        results = _with_differences(results, shown.differences)
    makers: dict[str, Callable[[str, str, Sequence[StudyResult]], str]] = {
        ".json": partial(_json, seed=seed),
        ".csv": _csv,
        ".html": _html,
    }
    for path in paths:
        write_text(path, makers[path.suffix](study, source, results))
    if shown.format == "table":
        show_text("\n\n\n".join(map(str, results)))
    else:
        print(makers[f".{shown.format}"](study, source, results), end="")


def _with_differences(results: Sequence[StudyResult], dim: str) -> list[StudyResult]:
    """The results, those that have the dimension among their groups with the differences of its levels."""
    from secondorder.studies import differences

    having = [dim in _grouped(result) for result in results]
    if not any(having):
        known = dict.fromkeys(name for result in results for name in _grouped(result))
        raise InputError(
            f"no group dimension {dim!r}",
            place="--differences",
            remedy=f"one of {', '.join(known)}" if known else "these results have no groups with bands",
        )
    return [
        replace(result, tables=(*result.tables, differences(result, dim))) if has else result
        for result, has in zip(results, having, strict=True)
    ]


def _grouped(result: StudyResult) -> list[str]:
    dims = () if result.draws is None or not result.draws.sizes["draw"] else result.draws.dims
    return [str(dim) for dim in dims if dim not in ("measure", "draw")]


def _json(study: str, source: str, results: Sequence[StudyResult], *, seed: int) -> str:
    import json

    from secondorder._version import __version__

    plain = {
        "schema": "secondorder.study/1",
        "version": __version__,
        "study": study,
        "input": Path(source).name,
        "seed": seed,
        "results": [result.to_dict() for result in results],
    }
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _csv(study: str, source: str, results: Sequence[StudyResult]) -> str:
    import pandas as pd

    frames = [result.to_frame().assign(study=result.title) for result in results]
    whole = pd.concat(frames, ignore_index=True)
    tail = ["measure", *(name for name in frames[0].columns if name in ("estimate", "se", "lower", "upper"))]
    first = [name for name in whole.columns if name not in (*tail, "study")]
    keys = [name for name in first if name not in ("undefined_draws", "reason")]
    return whole[["study", *keys, *tail, "undefined_draws", "reason"]].to_csv(index=False, lineterminator="\n")


def _html(study: str, source: str, results: Sequence[StudyResult]) -> str:
    from secondorder.report import sections_html

    parts = {f"part-{number}": result.section() for number, result in enumerate(results, 1)}
    return sections_html(f"Study: {study}", Path(source).name, parts)


def pair_of(text: str, flag: str) -> tuple[float, float]:
    """Two numbers, ``LO,HI``.

    Examples
    --------
    >>> pair_of("-3,3", "--to")
    (-3.0, 3.0)
    """
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise InputError(f"{text!r} is not LO,HI", place=flag, remedy="write for instance 1,7") from None
    return low, high


def pairs_of(texts: Sequence[str] | None, flag: str, form: str) -> dict[str, str]:
    """``KEY=VALUE`` of a repeated flag; the first ``=`` splits.

    Examples
    --------
    >>> pairs_of(["AB=1", "BA=2"], "--first", "ORDER=CLASS")
    {'AB': '1', 'BA': '2'}
    """
    found: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"{text!r} is not {form}", place=flag, remedy=f"write {flag} {form}")
        if key in found:
            raise InputError(f"{key!r} is given twice", place=flag, remedy="give it once")
        found[key] = value
    return found


def scores_of(given: list[str] | None) -> dict[str, float] | None:
    """Scores of classes from ``--class-score``; None where it is not given."""
    try:
        return {name: float(text) for name, text in pairs_of(given, "--class-score", "CLASS=NUMBER").items()} or None
    except ValueError as error:
        raise InputError(str(error), place="--class-score", remedy="write CLASS=NUMBER, such as tie=0.5") from None
