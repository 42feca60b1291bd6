"""What an answer itself says about coming from a cache."""

from __future__ import annotations

from collections.abc import Mapping

from secondorder.acquire._reading import Completion

__all__ = ["cache_signs"]

_HITS = {
    "cf-aig-cache-status": ("hit",),
    "cf-cache-status": ("hit",),
    "helicone-cache": ("hit", "true"),
    "x-cache": ("hit",),
    "x-cache-hit": ("true", "1", "hit"),
    "x-cache-status": ("hit",),
    "x-portkey-cache-status": ("hit", "semantic hit"),
}


def cache_signs(completion: Completion, headers: Mapping[str, str]) -> list[str]:
    """Signs of a cache: the headers that came with an answer, and usage of nothing.

    Examples
    --------
    >>> answer = Completion(text="A", prompt_tokens=0, completion_tokens=0)
    >>> cache_signs(answer, {"x-cache": "HIT from proxy"})
    ['x-cache: HIT from proxy', 'usage 0']
    """
    signs = [
        f"{name}: {value}"
        for name, value in headers.items()
        if any(value.strip().lower().startswith(word) for word in _HITS.get(name, ()))
    ]
    if completion.text and (completion.prompt_tokens, completion.completion_tokens) == (0, 0):
        signs.append("usage 0")
    return signs
