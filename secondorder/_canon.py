"""Canonical bytes and their hashes: the identity of manifests, ledgers and cubes.

Identity is the SHA-256 of canonical *content*, never of file bytes: the same content written by another version of a
library, or on another day, has the same identity.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

__all__ = ["blake2b_64", "canonical_json", "join_key", "sha256_hex", "sha256_lines"]


def canonical_json(value: Any) -> bytes:
    """Encode as JSON with sorted keys, no insignificant space, UTF-8, and no NaN or infinity.

    Examples
    --------
    >>> canonical_json({"b": 1, "a": "⊥"}).decode()
    '{"a":"⊥","b":1}'
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def sha256_hex(data: bytes) -> str:
    """SHA-256 of bytes, as 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def sha256_lines(lines: Iterable[bytes]) -> str:
    """SHA-256 over lines, each ended by LF, without building the whole text."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line)
        digest.update(b"\n")
    return digest.hexdigest()


def blake2b_64(value: Any) -> int:
    """BLAKE2b with an 8-byte digest over the canonical JSON of `value`, as an unsigned 64-bit integer.

    The program's only source of chance outside the estimators: call seeds, send order and hidden ids are functions
    of the audit seed through this hash, so they do not depend on a library's generator or on the order of a loop.
    """
    return int.from_bytes(hashlib.blake2b(canonical_json(value), digest_size=8).digest(), "big")


def join_key(parts: Iterable[str]) -> str:
    r"""One label for a composite key, such that different keys never get the same label.

    Parts are joined by ``:``; inside the parts of a composite key, ``:`` and the backslash are escaped by a backslash.

    Examples
    --------
    >>> join_key(["q1", "gpt-4"]), join_key(["a:b"]), join_key(["a:b", "c"])
    ('q1:gpt-4', 'a:b', 'a\\:b:c')
    """
    parts = list(parts)
    if len(parts) == 1:
        return parts[0]
    return ":".join(part.replace("\\", "\\\\").replace(":", "\\:") for part in parts)
