"""Laws of the simulated judge: probabilities over answer texts, addressed by the content of the messages."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from secondorder._canon import blake2b_64, canonical_json, sha256_hex
from secondorder._schema import check_schema
from secondorder.errors import InputError

__all__ = ["Law", "derived_law", "draw", "messages_key", "read_laws", "uniform_of_seed", "write_laws"]

LAWS_SCHEMA = "secondorder.laws/1"

UNKNOWN_TEXTS = ("A", "B", "TIE", "I cannot decide.")

Law = Mapping[str, float]
"""Probability by answer text; they sum to one."""


def messages_key(messages: Sequence[Mapping[str, object]]) -> str:
    """Address of a law: SHA-256 of the canonical JSON of the ``messages`` array of a request.

    Examples
    --------
    >>> messages_key([{"role": "user", "content": "A or B?"}])[:16]
    '048446eeba3a2144'
    """
    return sha256_hex(canonical_json([dict(message) for message in messages]))


def derived_law(key: str) -> dict[str, float]:
    """Law of messages that no law file names: uniform on the simplex over four texts, by a hash of the address.

    The last text is no verdict, so that invalid answers occur.

    Examples
    --------
    >>> law = derived_law(messages_key([{"role": "user", "content": "A or B?"}]))
    >>> list(law), round(sum(law.values()), 12)
    (['A', 'B', 'TIE', 'I cannot decide.'], 1.0)
    """
    weights = [-math.log((blake2b_64(["law", key, text]) + 1) / (2**64 + 1)) for text in UNKNOWN_TEXTS]
    total = math.fsum(weights)
    return {text: weight / total for text, weight in zip(UNKNOWN_TEXTS, weights, strict=True)}


def uniform_of_seed(seed: int) -> float:
    """Number in [0, 1) that a seeded request draws with: BLAKE2b(seed) / 2⁶⁴, of the seed's low 32 bits.

    A function of the seed alone, as on real servers: two cells called with the same seed draw with the same number.

    Examples
    --------
    >>> uniform_of_seed(7) == uniform_of_seed(7 + 2**32)
    True
    """
    return blake2b_64(seed & 0xFFFFFFFF) / 2**64


def draw(law: Law, u: float) -> str:
    """Answer at `u` by the inverse cumulative distribution, texts in the order of the law.

    Examples
    --------
    >>> [draw({"A": 0.5, "B": 0.0, "C": 0.5}, u) for u in (0.0, 0.499, 0.5, 0.999)]
    ['A', 'A', 'C', 'C']
    """
    total = 0.0
    last = ""
    for text, probability in law.items():
        if probability > 0.0:
            last = text
            total += probability
            if u < total:
                return text
    return last  # rounding left the sum a hair below one


def write_laws(path: str | Path, laws: Mapping[str, Law]) -> None:
    """Write a law file: address to probability by text.

    Raises
    ------
    InputError
        When the probabilities of a law are not a distribution.
    """
    for key, law in laws.items():
        _check(law, f"law {key}")
    path = Path(path)
    part = path.with_name(path.name + ".part")
    part.write_bytes(msgspec.json.encode({"schema": LAWS_SCHEMA, "laws": laws}))
    os.replace(part, path)


def read_laws(path: str | Path) -> dict[str, dict[str, float]]:
    """Read a law file.

    Raises
    ------
    InputError
        When it is missing, not JSON, or holds something that is no distribution.
    SchemaError
        When it is another or a newer kind of file.
    """
    place = str(path)
    try:
        content = msgspec.json.decode(Path(path).read_bytes())
    except OSError as error:
        raise InputError(error.strerror or str(error), place=place) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not JSON: {error}", place=place) from error
    check_schema(content.get("schema") if isinstance(content, dict) else None, LAWS_SCHEMA, place=place)
    try:
        laws = msgspec.convert(content.get("laws"), dict[str, dict[str, float]])
    except msgspec.ValidationError as error:
        raise InputError(f"not a law file: {error}", place=place, remedy='"laws": {address: {text: p}}') from error
    for key, law in laws.items():
        _check(law, f"{place} law {key}")
    return laws


def _check(law: Law, place: str) -> None:
    total = math.fsum(law.values())
    if not law or not all(0.0 <= p <= 1.0 for p in law.values()) or abs(total - 1.0) > 1e-9:
        raise InputError(f"probabilities sum to {total!r}", place=place, remedy="give numbers in [0, 1] that sum to 1")
