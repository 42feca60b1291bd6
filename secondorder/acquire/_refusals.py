"""What it means when an endpoint refuses, and what to do about it."""

from __future__ import annotations

from secondorder.acquire._reading import Failure
from secondorder.acquire._spec import JudgeSpec
from secondorder.errors import EndpointError, KeyRefusedError

__all__ = ["place_of", "refusal"]

REMEDIES = {402: "settle the account", 404: "check base_url and model", 429: "settle the account"}


def place_of(name: str, judge: JudgeSpec) -> str:
    """A judge as errors name it."""
    return f"judge {name!r} at {judge.base_url}"


def refusal(name: str, judge: JudgeSpec, failure: Failure, status: int | None, *, then: str = "") -> EndpointError:
    """The error for an answer that no further request would change.

    Parameters
    ----------
    name, judge : str, JudgeSpec
    failure : Failure
        What was read, with remedy ``"fatal"``.
    status : int or None
        HTTP status.
    then : str
        What to do after the remedy.

    Examples
    --------
    >>> judge = JudgeSpec(endpoint="openai-chat", base_url="http://127.0.0.1:1/v1", model="m", key_env="KEY")
    >>> print(refusal("mine", judge, Failure("http_error", "fatal", "HTTP 401"), 401))
    judge 'mine' at http://127.0.0.1:1/v1: HTTP 401; check the key in KEY
    """
    after = f", then {then}" if then else ""
    if status in (401, 403):
        remedy = "name the key's variable in key_env" if judge.key_env is None else f"check the key in {judge.key_env}"
        return KeyRefusedError(failure.detail, place=place_of(name, judge), remedy=remedy + after)
    remedy = REMEDIES.get(status or 0, "check base_url")
    return EndpointError(failure.detail, place=place_of(name, judge), remedy=remedy + after)
