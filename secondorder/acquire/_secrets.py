"""What must never be stored: anything in a spec that looks like a key is refused, and no message repeats it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from secondorder.acquire._spec import JudgeSpec
from secondorder.errors import SpecError

__all__ = ["check_no_secret", "looks_like_key"]

_WORDS = frozenset(
    {
        *("key", "apikey", "token", "secret", "credential", "credentials"),
        *("pass", "password", "passwd", "passphrase", "passcode", "pwd", "pin", "otp"),
        *("auth", "authorization", "authentication", "bearer", "cookie", "session", "signature", "jwt"),
    }
)
_BODY = frozenset({"key", "api_key", "apikey", "token", "access_token", "auth_token", "secret", "password"})
_VALUE = re.compile(
    r"\b(?:bearer|basic)\s+[\w.~+/=-]{8,}|\b(?:sk|pk|rk|gsk|hf|xai|ghp|github_pat|r8|nvapi)[-_][\w-]{16,}|\bAIza[\w-]{20,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{5,}",
    re.IGNORECASE,
)

_REMEDY = 'put the key into an environment variable and name it: key_env = "JUDGE_KEY"'


def looks_like_key(name: str) -> bool:
    """Whether a header or query name is one that carries a secret.

    Examples
    --------
    >>> names = ("Authorization", "x-goog-api-key", "X-My-Pass", "X-Title", "anthropic-version")
    >>> [looks_like_key(name) for name in names]
    [True, True, True, False, False]
    """
    return not _WORDS.isdisjoint(re.split(r"[^a-z0-9]+", name.lower()))


def check_no_secret(judge: JudgeSpec, place: str) -> None:
    """Refuse a judge whose table holds a key.

    Raises
    ------
    SpecError
        Naming the place, never the value.
    """
    for header in judge.headers:
        if looks_like_key(header):
            raise SpecError(f"header '{header}' looks like a key", place=place, remedy=_REMEDY)
    for key in judge.body:
        if key.lower().replace("-", "_") in _BODY:
            raise SpecError(f"body field '{key}' looks like a key", place=place, remedy=_REMEDY)
    for path, text in _texts(msgspec.structs.asdict(judge), ""):
        if _VALUE.search(text):
            raise SpecError(f"{path} holds what looks like a key", place=place, remedy=_REMEDY)


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, path)
