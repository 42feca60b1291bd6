"""OpenAI-compatible chat completions: vLLM, llama.cpp, and hosted services that speak the same protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from secondorder.acquire._endpoint import Endpoint
from secondorder.acquire._reading import Completion, Failure, Reading, decode_json, failure_of_status

__all__ = ["ENDPOINT"]

FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"})


def fields(model: str, messages: Sequence[Mapping[str, str]], seed: int | None) -> dict[str, Any]:
    """Fields that the call itself decides; the judge's ``body`` adds the rest and may not touch these."""
    own: dict[str, Any] = {"model": model, "messages": [dict(message) for message in messages]}
    return own if seed is None else own | {"seed": seed}


def read(status: int, body: bytes) -> Reading:
    """Read one HTTP answer of ``/chat/completions``."""
    try:
        answer = decode_json(body)
    except (ValueError, RecursionError):
        answer = None
    if not 200 <= status < 300:
        return _refusal_of_service(status, answer)
    if not isinstance(answer, dict):
        return Failure("malformed", "retry", f"HTTP {status} whose body is not a JSON object")
    if answer.get("error"):
        return Failure("error_body", "retry", f"HTTP {status} with an error body: {_message(answer)}")
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    finish = _text(choice.get("finish_reason")) if isinstance(choice, dict) else ""
    if finish in ("error", "abort"):
        return Failure("error_body", "retry", f"finish_reason {finish!r}: {_message(choice)}")
    if not isinstance(message, dict) and not finish.startswith("content_filter"):
        return Failure("malformed", "retry", f"HTTP {status} without choices[0].message")
    return _completion(answer, message if isinstance(message, dict) else {}, finish)


def ask_logprobs(number: int) -> dict[str, Any]:
    """Fields that ask for the `number` most probable tokens at every position of the answer."""
    return {"logprobs": True, "top_logprobs": number}


def logprobs(body: bytes) -> list[Any]:
    """Entries of ``choices[0].logprobs.content``, as the server wrote them; empty where there are none."""
    try:
        content = decode_json(body)["choices"][0]["logprobs"]["content"]
    except (ValueError, RecursionError, KeyError, IndexError, TypeError):
        return []
    return content if isinstance(content, list) else []


def _completion(answer: dict[str, Any], message: dict[str, Any], finish: str) -> Completion:
    usage = answer.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    refusal = _text(message.get("refusal"))
    text = _content(message.get("content"))
    filtered = finish.startswith("content_filter")
    return Completion(
        text=text or refusal,
        finish_reason=finish,
        bottom="filtered" if filtered else "refusal" if refusal and not text else "",
        id=_text(answer.get("id")),
        model=_text(answer.get("model")),
        fingerprint=_text(answer.get("system_fingerprint")),
        tier=_text(answer.get("service_tier")),
        provider=_text(answer.get("provider")),
        created=_number(answer.get("created")),
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
    )


def _refusal_of_service(status: int, answer: object) -> Reading:
    error = answer.get("error") if isinstance(answer, dict) else None
    error = error if isinstance(error, dict) else {}
    inner = error.get("innererror")
    codes = {_text(error.get("code")), _text(error.get("type"))}
    if isinstance(inner, dict):
        codes.add(_text(inner.get("code")))
    if status == 400 and codes & FILTER_CODES:
        # The filter saw the content and decided: the call has an answer, and the answer is no verdict.
        return Completion(text="", finish_reason="content_filter", bottom="filtered")
    code = "insufficient_quota" if "insufficient_quota" in codes else ""
    return failure_of_status(status, _message(answer), code)


def _message(answer: object) -> str:
    """Find what the server says about an error; servers nest it in several ways."""
    while isinstance(answer, dict):
        answer = next((answer[key] for key in ("error", "message", "detail") if answer.get(key)), "")
    return " ".join(str(answer).split())[:300] if answer else ""


def _content(content: object) -> str:
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(_text(part) for part in parts)
    return _text(content)


def _text(value: object) -> str:
    # A lone surrogate cannot be stored as UTF-8; the replacement character keeps the call completed.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None


ENDPOINT = Endpoint(
    kind="openai-chat",
    path="/chat/completions",
    takes_seed=True,
    fields=fields,
    read=read,
    ask_logprobs=ask_logprobs,
    logprobs=logprobs,
)
