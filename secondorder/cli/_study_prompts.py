"""``secondorder study paraphrase``: do these wordings ask for the same?"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from secondorder.cli._study_flags import STUDY, Bands, Shown, Texts, pairs_of, show
from secondorder.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Flag = Annotated[str | None, Parameter(group=STUDY)]


class _Prompts(NamedTuple):
    texts: dict[str, str]
    answers: Mapping[str, list[str]] | list[str]
    family: dict[str, str] | None


def paraphrase(
    source: Annotated[str, Parameter(name="INPUT")],
    /,
    *,
    prompt: Flag = None,
    text: Annotated[str, Parameter(group=STUDY)] = "text",
    family: Flag = None,
    answer: Texts = None,
    placeholder: Flag = None,
    embed: Flag = None,
    control: Annotated[Path | None, Parameter(group=STUDY)] = None,
    rating: Texts = None,
    bands: Bands = Bands(),  # noqa: B008  (frozen)
    shown: Shown = Shown(),  # noqa: B008
) -> int:
    """Check that wordings keep their placeholders and answers, and say how alike they are.

    The exit code is 1 when a prompt does not keep the contract of its reference, the first of its family.

    secondorder study paraphrase prompts.csv --answer 1 --answer 5

    Parameters
    ----------
    source
        An audit.toml, or a table (.csv .tsv .jsonl) with one row per prompt.
    prompt
        Column of the prompt's name. Default: the first.
    text
        Column of its template.
    family
        Column that says which prompts reword one another. Default: all.
    answer
        An answer that the judge may give; repeat for all. An audit declares its own.
    placeholder
        Regular expression of a placeholder, its name the first group. Default: {{name}}.
    embed
        Model of sentence-transformers, by name or folder.
    control
        Table of prompts (first column) and a text of each that is known to mean something else (second).
    rating
        KIND=FILE: table of prompts (first column) and one column of ratings for each rater. Repeat for several.
    """
    from secondorder import studies
    from secondorder.studies._wordings import PLACEHOLDER

    paths = shown.paths(source, control, *(text.partition("=")[2] for text in rating or ()))
    prompts = _of_audit(source) if source.endswith(".toml") else _of_table(source, prompt, text, family)
    found = studies.validate_paraphrases(
        prompts.texts,
        family=prompts.family,
        answers=answer or prompts.answers,
        placeholder=placeholder or PLACEHOLDER,
        embed=embed,
        controls=None if control is None else _controls(control),
        ratings={kind: _ratings(Path(path)) for kind, path in pairs_of(rating, "--rating", "KIND=FILE").items()},
        **bands.options(),
    )
    show("paraphrase", source, [found], shown, paths, seed=bands.seed)
    kept = bool((found.data["placeholders_ok"] & found.data["answers_ok"]).all())
    return 0 if kept else 1


def _of_audit(source: str) -> _Prompts:
    """Wordings and answers of an audit, as they are sent."""
    from secondorder.acquire import load_spec, prompt_texts

    spec = load_spec(source)
    texts, answers = prompt_texts(spec)
    return _Prompts(texts, answers, None)


def _of_table(source: str, prompt: str | None, text: str, family: str | None) -> _Prompts:
    from secondorder._labels._plain import read_side_table

    frame = read_side_table(source, index=prompt, numbers=False)
    for name in (text, *([family] if family else [])):
        if name not in frame.columns:
            raise InputError(f"there is no column {name!r}", place=source, remedy=", ".join(map(str, frame.columns)))
    return _Prompts(_as_mapping(frame[text]), [], None if family is None else _as_mapping(frame[family]))


def _controls(path: Path) -> dict[str, str]:
    from secondorder._labels._plain import read_side_table

    frame = read_side_table(path, numbers=False)
    if frame.shape[1] < 1:
        raise InputError("it needs prompts and texts", place=str(path), remedy="give two columns")
    return _as_mapping(frame.iloc[:, 0])


def _as_mapping(column: pd.Series[str]) -> dict[str, str]:
    return {str(name): text for name, text in column.items()}


def _ratings(path: Path) -> xr.DataArray:
    import numpy as np
    import xarray as xr

    from secondorder._labels._plain import read_side_table

    frame = read_side_table(path, numbers=False)
    values: Any = frame.to_numpy(dtype=object)
    # Numbers where all raters give numbers: 4 and 4.0 are one rating.
    with suppress(ValueError):
        values = np.array([[float(cell) if cell else np.nan for cell in row] for row in values])
    names = np.array([str(name) for name in frame.index], dtype=object)
    raters = np.array([str(name) for name in frame.columns], dtype=object)
    return xr.DataArray(values, dims=("prompt", "rater"), coords={"prompt": names, "rater": raters})
