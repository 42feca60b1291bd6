"""The frozen request: which bytes are sent where for one call, and which endpoint kinds this version speaks."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from secondorder.acquire._reading import Reading
from secondorder.acquire._spec import JudgeSpec
from secondorder.errors import SpecError

__all__ = ["Endpoint", "build_body", "endpoint_of", "request_url"]

RESERVED = frozenset({"model", "messages", "seed", "stream", "stream_options"})


class Endpoint(NamedTuple):
    """Declaration of one kind of endpoint: all that sending and reading need to know about it.

    Attributes
    ----------
    kind : str
        Value of ``endpoint`` in ``[judges.NAME]``.
    path : str
        Appended to ``base_url``.
    takes_seed : bool
        Whether a call's seed is sent.
    fields : callable
        ``(model, messages, seed) -> dict``: the fields that the call decides, in the order sent.
    read : callable
        ``(status, body) -> Reading``.
    ask_logprobs : callable or None
        ``number -> dict``: the fields that ask for so many listed tokens at every position; None where the kind gives
        no log-probabilities.
    logprobs : callable or None
        ``body -> list``: an entry per sampled token, empty where the answer has none.
    """

    kind: str
    path: str
    takes_seed: bool
    fields: Callable[[str, Sequence[Mapping[str, str]], int | None], dict[str, Any]]
    read: Callable[[int, bytes], Reading]
    ask_logprobs: Callable[[int], dict[str, Any]] | None = None
    logprobs: Callable[[bytes], list[Any]] | None = None


def endpoint_of(judge: JudgeSpec) -> Endpoint:
    """Declaration of a judge's endpoint kind.

    Raises
    ------
    SpecError
        When this version does not speak the kind or the transport yet.

    Examples
    --------
    >>> from secondorder.acquire._spec import JudgeSpec
    >>> endpoint_of(JudgeSpec(endpoint="openai-chat", base_url="http://127.0.0.1:8000/v1", model="m")).takes_seed
    True
    """
    module = f"secondorder.acquire._endpoints.{judge.endpoint.replace('-', '_')}"
    if find_spec(module) is None:
        raise SpecError(f"endpoint {judge.endpoint!r} is not yet in this version", remedy="use 'openai-chat'")
    if judge.transport != "direct":
        raise SpecError(f"transport {judge.transport!r} is not yet in this version", remedy="use 'direct'")
    endpoint: Endpoint = importlib.import_module(module).ENDPOINT
    return endpoint


def build_body(judge: JudgeSpec, messages: Sequence[Mapping[str, str]], seed: int | None) -> bytes:
    """Build the bytes that are sent for one call; every retry sends the same bytes.

    The fields of ``body`` follow in sorted order, so the bytes do not depend on the order of keys in the file. Inside
    a value the written order is kept: in a JSON schema the order of properties is the order in which the judge
    writes them.

    Parameters
    ----------
    judge : JudgeSpec
        Judge configuration.
    messages : sequence of mapping
        Chat messages, each with ``role`` and ``content``.
    seed : int or None
        The call's own seed; None where none is sent.

    Raises
    ------
    SpecError
        When ``body`` sets a field that the call decides, or asks for several answers per call.

    Examples
    --------
    >>> from secondorder.acquire._spec import JudgeSpec
    >>> judge = JudgeSpec(endpoint="openai-chat", base_url="http://127.0.0.1:8000/v1", model="m",
    ...                   body={"temperature": 1.0, "max_tokens": 8})
    >>> build_body(judge, [{"role": "user", "content": "⊥?"}], 7).decode()
    '{"model":"m","messages":[{"role":"user","content":"⊥?"}],"max_tokens":8,"temperature":1.0,"seed":7}'
    """
    taken = RESERVED & judge.body.keys()
    if taken:
        raise SpecError(f"body sets {sorted(taken)[0]!r}, which the program sets itself", remedy="leave it out")
    if judge.body.get("n", 1) != 1:
        # Servers give the answers of one request neighbouring seeds: they are not independent calls.
        raise SpecError(f"body sets n = {judge.body['n']!r}", remedy="leave it out; repeats are separate calls")
    endpoint = endpoint_of(judge)
    own = endpoint.fields(judge.model, messages, seed)
    last = {"seed": own.pop("seed")} if "seed" in own else {}
    asked = endpoint.ask_logprobs(judge.soft.top_logprobs) if judge.soft and endpoint.ask_logprobs else {}
    fields = judge.body | asked
    body = own | {key: fields[key] for key in sorted(fields)} | last
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def request_url(judge: JudgeSpec) -> str:
    """Address that a judge's calls are posted to; a query in ``base_url`` (as in Azure) stays behind the path.

    Examples
    --------
    >>> from secondorder.acquire._spec import JudgeSpec
    >>> request_url(JudgeSpec(endpoint="openai-chat", base_url="http://127.0.0.1:8000/v1/", model="m"))
    'http://127.0.0.1:8000/v1/chat/completions'
    """
    base = urlsplit(judge.base_url)
    return urlunsplit(base._replace(path=base.path.rstrip("/") + endpoint_of(judge).path))
