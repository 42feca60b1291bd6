"""What two wordings of one prompt share: placeholders, the answers they ask for, words, and embeddings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from secondorder.errors import InputError
from secondorder.studies._disagreement import Array

__all__ = [
    "PLACEHOLDER",
    "Embed",
    "absent_answers",
    "cosines",
    "differing_placeholders",
    "embedder",
    "jaccard",
    "words_of",
]

Embed = Callable[[Sequence[str]], ArrayLike]
"""Texts to their embeddings, (texts, dimensions)."""

PLACEHOLDER = r"\{\{\s*([^{}]+?)\s*\}\}"
"""``{{name}}``, the template language of audits; the name is the first group."""

_WORD = re.compile(r"\w+")


def words_of(text: str, placeholder: str) -> frozenset[str]:
    """Different words and numbers of a template without regard to case, its placeholders left out.

    Examples
    --------
    >>> sorted(words_of("Is {{answer}} clear? Say yes or no: yes", PLACEHOLDER))
    ['clear', 'is', 'no', 'or', 'say', 'yes']
    """
    return frozenset(_WORD.findall(re.sub(placeholder, " ", text).casefold()))


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """Words in both over words in either; NaN where neither has a word."""
    either = len(first | second)
    return len(first & second) / either if either else float("nan")


def differing_placeholders(text: str, reference: str, placeholder: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Placeholders of the reference that a template lacks, and those that it adds.

    Examples
    --------
    >>> differing_placeholders("{{a}} {{c}}", "{{a}} {{b}} {{a}}", PLACEHOLDER)
    (('b',), ('c',))
    """
    found, wanted = set(_names(text, placeholder)), set(_names(reference, placeholder))
    return tuple(sorted(wanted - found)), tuple(sorted(found - wanted))


def _names(text: str, placeholder: str) -> list[str]:
    return [match.group(1) for match in re.finditer(placeholder, text)]


def absent_answers(text: str, answers: Sequence[str]) -> tuple[str, ...]:
    """Declared answers that a text does not name as whole words; of a scale, its two ends suffice.

    Examples
    --------
    >>> absent_answers("Rate from 1 to 5.", ["1", "2", "3", "4", "5"]), absent_answers("A or B?", ["A", "TIE"])
    ((), ('TIE',))
    """
    absent = tuple(answer for answer in answers if not re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", text))
    try:
        scale = sorted(answers, key=float)
    except ValueError:
        return absent
    return () if len(scale) > 1 and scale[0] not in absent and scale[-1] not in absent else absent


def embedder(embed: Embed | str) -> Embed:
    """The callable itself, or a model of sentence-transformers by its name or folder.

    Raises
    ------
    InputError
        When the library is not installed or does not know the model.
    """
    if not isinstance(embed, str):
        return embed
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise InputError(
            "sentence-transformers is not installed",
            place=f"embed={embed!r}",
            remedy="pip install sentence-transformers, or give a callable: texts to an array (texts, dimensions)",
        ) from None
    try:
        model = SentenceTransformer(embed)
    except (OSError, ValueError) as error:
        raise InputError(
            f"there is no such model ({error})", place=f"embed={embed!r}", remedy="give its name or folder"
        ) from None
    return lambda texts: np.asarray(model.encode(list(texts)))


def cosines(texts: Sequence[str], embed: Embed) -> Array:
    """Cosine of every two texts' embeddings, (texts, texts); NaN for an embedding of length 0.

    Raises
    ------
    InputError
        When the embeddings are not one row of finite numbers for each text.
    """
    vectors = np.asarray(embed(texts), dtype=float)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise InputError(
            f"it gave an array of shape {vectors.shape} for {len(texts)} texts",
            place="embed",
            remedy="return finite numbers, one row for each text",
        )
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, length, out=np.full_like(vectors, np.nan), where=length > 0)
    return np.asarray(unit @ unit.T)
