"""Are these wordings paraphrases? Same placeholders and answers, and what words, embeddings and raters say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from secondorder._labels._results import Table
from secondorder._schema import PROMPT
from secondorder.errors import InputError
from secondorder.studies._disagreement import Array
from secondorder.studies._layout import By
from secondorder.studies._parts import Value
from secondorder.studies._result import Drawn, StudyResult, measured
from secondorder.studies._wording_figure import draw_overlap
from secondorder.studies._wording_ratings import Rated, rated_equivalence
from secondorder.studies._wordings import (
    PLACEHOLDER,
    Embed,
    absent_answers,
    cosines,
    differing_placeholders,
    embedder,
    jaccard,
    words_of,
)

__all__ = ["validate_paraphrases"]

MEASURES = ("jaccard", "jaccard_least", "jaccard_most", "cosine", "cosine_least", "cosine_most", "cosine_control")
ONE_WORDING = "one wording: there is no pair"
NO_MODEL = "no embedding model was given"
NO_WORDS = "a wording has no words"
NO_LENGTH = "an embedding has length 0"
NO_CONTROL = "no control was given"
NO_EMBEDDING = "No cosines: no model of embeddings was given (embed=)."
FLIPS = (
    "A cosine flags gross drift and cannot certify a paraphrase: wordings that say the opposite (better, worse) have "
    "cosines like those of paraphrases."
)


@dataclass(frozen=True)
class _Set:
    """Prompts with their families; the first of a family is its reference."""

    texts: dict[str, str]
    family: dict[str, str]
    placeholder: str

    @property
    def names(self) -> list[str]:
        return list(self.texts)

    @property
    def families(self) -> list[str]:
        return list(dict.fromkeys(self.family.values()))

    def reference(self, name: str) -> str:
        return next(other for other in self.texts if self.family[other] == self.family[name])

    def inside(self, family: str) -> NDArray[np.bool_]:
        return np.array([self.family[name] == family for name in self.texts])


def validate_paraphrases(
    prompts: Mapping[str, str],
    *,
    family: Mapping[str, str] | None = None,
    answers: Sequence[str] | Mapping[str, Sequence[str]] = (),
    placeholder: str = PLACEHOLDER,
    embed: Embed | str | None = None,
    controls: Mapping[str, str] | None = None,
    ratings: Mapping[str, xr.DataArray] | None = None,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> StudyResult:
    """Check a set of prompts that are meant to say the same, and describe how alike they are.

    Parameters
    ----------
    prompts : mapping of prompt to template
        The first of each family is its reference: the default wording.
    family : mapping of prompt to family, optional
        Which prompts reword one another; pairs are formed within families. Default: all are one family.
    answers : sequence of str, or mapping of prompt to sequence of str
        The answers that a judge may give. Every prompt must name them (of a numeric scale, its two ends); where prompts
        declare their own, these must be those of the reference.
    placeholder : str
        Regular expression of a placeholder, its name the first group. Default: ``{{name}}``.
    embed : callable or str, optional
        Texts to embeddings ``(texts, dimensions)``; or the name of a model of sentence-transformers.
    controls : mapping of prompt to text, optional
        For a prompt: a wording of it that is known to mean something else. A cosine is of use only where paraphrases
        lie closer together than a prompt and its control.
    ratings : mapping of kind to DataArray, optional
        For example ``{"llm": …, "human": …}``: numbers or labels over ``prompt`` and ``rater``, each saying how
        equivalent a prompt is to its reference. NaN or the empty text where there is none.
    level, draws, seed
        Of the bands of the raters' agreement, over prompts.

    Returns
    -------
    StudyResult
        For each family (a dimension where there are several) the mean, least and largest ``jaccard`` and ``cosine``
        over its pairs, and the largest ``cosine_control``. ``overlap`` and ``similarity`` of every two prompts of a
        family (``similarity.to_pandas()`` is what :func:`similarity_stability` reads); ``placeholders_ok`` and
        ``answers_ok`` of each prompt; for each kind of rating its mean for each prompt, in ``rating_<kind>``.

    Raises
    ------
    InputError
        When there is no prompt, or a family, control, rating or answer belongs to none.

    Notes
    -----
    Lexical overlap is the Jaccard index of the sets of words (letters and digits, without case, placeholders left out).
    A broken contract is a finding, not an error.

    Examples
    --------
    >>> found = validate_paraphrases(
    ...     {"P1": "Is {{answer}} understandable? Say Yes or No.",
    ...      "P2": "Is {{answer}} clear and easy to comprehend? Say Yes or No.",
    ...      "P3": "Is the reply understandable? Answer with Yes."},
    ...     answers=["Yes", "No"])
    >>> found.data["placeholders_ok"].to_numpy().tolist(), found.data["answers_ok"].to_numpy().tolist()
    ([True, True, False], [True, True, False])
    >>> round(float(found["jaccard"].estimate), 3)
    0.296
    """
    words = _prompt_set(prompts, family, placeholder)
    names, families = words.names, words.families
    breaches = _breaches(words, _declared(answers, names))
    own = [words_of(text, placeholder) for text in words.texts.values()]
    related = np.array([[words.family[a] == words.family[b] for b in names] for a in names])
    overlap = np.where(related, [[jaccard(a, b) for b in own] for a in own], np.nan)
    similarity, control = _embedded(words, controls or {}, embed)
    similarity = np.where(related, similarity, np.nan)
    rated = [
        rated_equivalence(kind, given, names, level=level, draws=draws, seed=seed)
        for kind, given in (ratings or {}).items()
    ]

    lacking = NO_MODEL if embed is None else NO_LENGTH
    values = [
        [
            *_over_pairs(overlap[np.ix_(inside, inside)], NO_WORDS),
            *_over_pairs(similarity[np.ix_(inside, inside)], lacking),
            _largest(control[inside], NO_MODEL if embed is None else NO_CONTROL),
        ]
        for inside in map(words.inside, families)
    ]
    by: By = (("family", tuple(families)),) if len(families) > 1 else ()
    found, _ = measured(
        by=by, measures=MEASURES, values=values, draws=np.zeros((len(families), len(MEASURES), 0)), level=level
    )
    found = found.assign(
        overlap=((PROMPT, "other"), overlap),
        similarity=((PROMPT, "other"), similarity),
        control=(PROMPT, control),
        placeholders_ok=(PROMPT, np.array([not placeholders for placeholders, _ in breaches])),
        answers_ok=(PROMPT, np.array([not absent for _, absent in breaches])),
    ).assign({f"rating_{one.kind}": (PROMPT, one.means) for one in rated})
    found = found.assign_coords({PROMPT: names, "other": names, "family_of": (PROMPT, list(words.family.values()))})
    return StudyResult(
        f"Paraphrase validation of {len(names)} prompts",
        found,
        (_prompt_table(words, found, breaches, rated), _family_table(families, values), *(one.table for one in rated)),
        _notes(breaches, values, similarity),
        None,
        (Drawn("Overlap of words and embeddings", _CAPTION, lambda: draw_overlap(found)),),
    )


_CAPTION = (
    "One mark for each pair of wordings of one prompt; dotted lines: cosines of controls, which mean something else."
)


def _prompt_set(prompts: Mapping[str, str], family: Mapping[str, str] | None, placeholder: str) -> _Set:
    if not prompts:
        raise InputError("no prompt", place="prompts", remedy="give {name: template}")
    texts = {str(name): str(text) for name, text in prompts.items()}
    if family is None:
        return _Set(texts, dict.fromkeys(texts, ""), placeholder)
    _check_known("family", family, texts)
    for name in texts:
        if name not in family:
            raise InputError(f"prompt {name!r} has no family", place="family", remedy="give every prompt one")
    return _Set(texts, {name: str(family[name]) for name in texts}, placeholder)


def _check_known(what: str, given: Iterable[str], names: Iterable[str]) -> None:
    for name in given:
        if name not in names:
            raise InputError(f"there is no prompt {name!r}", place=what, remedy=f"prompts: {', '.join(names)}")


def _declared(answers: Sequence[str] | Mapping[str, Sequence[str]], names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    if not isinstance(answers, Mapping):
        return {name: tuple(map(str, answers)) for name in names}
    _check_known("answers", answers, names)
    return {name: tuple(map(str, answers.get(name, ()))) for name in names}


def _breaches(words: _Set, answers: Mapping[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    """Of each prompt: how its placeholders and its answers differ from its reference's; empty where they do not."""
    found = []
    for name, text in words.texts.items():
        first = words.reference(name)
        lacks, adds = differing_placeholders(text, words.texts[first], words.placeholder)
        absent = absent_answers(text, answers[name])
        said = [f"lacks {', '.join(lacks)}"] * bool(lacks) + [f"adds {', '.join(adds)}"] * bool(adds)
        asked = [f"does not name {', '.join(absent)}"] * bool(absent)
        if set(answers[name]) != set(answers[first]):
            asked.append(f"asks for {', '.join(answers[name]) or 'nothing'}")
        found.append(("; ".join(said), "; ".join(asked)))
    return found


def _embedded(words: _Set, controls: Mapping[str, str], embed: Embed | str | None) -> tuple[Array, Array]:
    """Cosines of every two prompts, and of each prompt with its control."""
    size = len(words.texts)
    _check_known("controls", controls, words.texts)
    if embed is None:
        return np.full((size, size), np.nan), np.full(size, np.nan)
    every = cosines([*words.texts.values(), *controls.values()], embedder(embed))
    place = {name: size + index for index, name in enumerate(controls)}
    own = [every[index, place[name]] if name in place else np.nan for index, name in enumerate(words.texts)]
    return every[:size, :size], np.array(own)


def _over_pairs(matrix: Array, why: str) -> list[Value]:
    pairs = matrix[np.triu_indices(len(matrix), 1)]
    if not len(pairs) or np.isnan(pairs).any():
        return [Value(float("nan"), why if len(pairs) else ONE_WORDING)] * 3
    return [Value(float(number)) for number in (pairs.mean(), pairs.min(), pairs.max())]


def _largest(control: Array, why: str) -> Value:
    there = control[~np.isnan(control)]
    return Value(float(there.max())) if len(there) else Value(float("nan"), why)


def _prompt_table(words: _Set, found: xr.Dataset, breaches: Sequence[tuple[str, str]], rated: Sequence[Rated]) -> Table:
    several = len(words.families) > 1
    rows: list[tuple[str | int | float | None, ...]] = []
    for (name, text), (placeholders, absent) in zip(words.texts.items(), breaches, strict=True):
        first = words.reference(name)
        pair = {PROMPT: name, "other": first}
        rows.append(
            (
                *([words.family[name]] if several else []),
                name,
                "differ" if placeholders else "same",
                "differ" if absent else "same",
                len(words_of(text, words.placeholder)),
                *(None if name == first else float(found[key].sel(pair)) for key in ("overlap", "similarity")),
                *(float(one.means[words.names.index(name)]) for one in rated),
            )
        )
    columns = (*(["family"] if several else []), "prompt", "placeholders", "answers", "words", "Jaccard", "cosine")
    notes = ["Words: different ones. Jaccard and cosine: with the first wording of the family."]
    for name, (placeholders, absent) in zip(words.names, breaches, strict=True):
        if placeholders or absent:
            notes.append(f"– {name}: {'; '.join(filter(None, (placeholders, absent)))}")
    return Table("Wordings", (*columns, *(f"rated: {one.kind}" for one in rated)), tuple(rows), tuple(notes))


def _family_table(families: Sequence[str], values: Sequence[Sequence[Value]]) -> Table:
    several = len(families) > 1
    rows: list[tuple[str | int | float | None, ...]] = [
        (*([name] if several else []), *(value.estimate for value in row))
        for name, row in zip(families, values, strict=True)
    ]
    columns = ("Jaccard", "least", "most", "cosine", "least", "most", "control")
    return Table("Pairs of wordings", (*(["family"] if several else []), *columns), tuple(rows))


def _notes(
    breaches: Sequence[tuple[str, str]], values: Sequence[Sequence[Value]], similarity: Array
) -> tuple[str, ...]:
    notes = []
    broken = sum(bool(placeholders or absent) for placeholders, absent in breaches)
    if broken:
        notes.append(f"{broken} of {len(breaches)} prompts do not keep the contract of their reference.")
    notes.append(NO_EMBEDDING if np.isnan(similarity).all() else FLIPS)
    least, control = (MEASURES.index(name) for name in ("cosine_least", "cosine_control"))
    judged = [row for row in values if not np.isnan(row[control].estimate + row[least].estimate)]
    lost = sum(row[control].estimate >= row[least].estimate for row in judged)
    if judged:
        told = f"{lost} of {len(judged)} families have a control as close as a paraphrase: this embedding tells nothing"
        notes.append(f"Controls: {told if lost else 'every paraphrase is closer than every control'}.")
    return tuple(notes)
