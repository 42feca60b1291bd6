"""Canary calls: a few requests before an audit that show whether its transport gives independent answers.

Nothing here writes a ledger. The requests differ from an audit's in what they ask, not in where and how they are sent.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from secondorder._canon import blake2b_64
from secondorder.acquire._endpoint import build_body
from secondorder.acquire._http import Exchange, JudgeLine
from secondorder.acquire._reading import Completion, Failure
from secondorder.acquire._refusals import place_of, refusal
from secondorder.acquire._spec import JudgeSpec
from secondorder.acquire._types import Call
from secondorder.errors import EndpointError

__all__ = ["CANARY", "Probe", "canary_requests", "probe_judge"]

CANARY: tuple[Mapping[str, str], ...] = (
    {
        "role": "user",
        "content": "Write 32 letters and digits in a random order that nobody could guess. Write nothing else.",
    },
)
"""A question whose answers hardly ever coincide, unless they are copies."""

ROOM = 128
"""Tokens that the canary may use at least: a judge's own limit may leave room for one label."""

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "n_predict")
_SHAPING = frozenset(
    (
        *("response_format", "structured_outputs", "text", "stop", "stop_sequences", "logit_bias", "tools"),
        *("tool_choice", "grammar", "json_schema", "guided_json", "guided_regex", "guided_choice", "guided_grammar"),
    )
)
"""Fields that hold answers to a form which a random text cannot have."""

TRIES = 3
LONGEST_WAIT_S = 10.0


class Probe(msgspec.Struct, frozen=True):
    """What came back from one judge.

    Attributes
    ----------
    first, other, again : Exchange
        Canary; the same question with another seed; the first request once more, to the byte. All three are the same
        bytes where the endpoint takes no seed.
    real : Exchange
        A call as the audit makes it, with a seed of its own.
    request : bytes
        Its request.
    logprobs : bool or None
        Whether the endpoint gave log-probabilities; None where it was not asked.
    """

    first: Exchange
    other: Exchange
    again: Exchange
    real: Exchange
    request: bytes
    logprobs: bool | None

    @property
    def canaries(self) -> tuple[Exchange, Exchange, Exchange]:
        """The three answers to the canary, in the order sent."""
        return self.first, self.other, self.again


def canary_requests(name: str, judge: JudgeSpec, seed: int) -> tuple[bytes, bytes]:
    """The canary of a judge under two seeds that no call of the audit has to have.

    Sampling fields are the judge's own; only its token limit is raised and fields that shape an answer are left out.

    Examples
    --------
    >>> from secondorder.acquire._spec import JudgeSpec
    >>> judge = JudgeSpec(endpoint="openai-chat", base_url="http://127.0.0.1:1/v1", model="m", seeds=True,
    ...                   body={"temperature": 1.0, "max_tokens": 8, "stop": ["X"]})
    >>> one, two = (json.loads(request) for request in canary_requests("mine", judge, 7))
    >>> one["max_tokens"], "stop" in one, one["seed"] == two["seed"], one["messages"] == two["messages"]
    (128, False, False, True)
    """
    body = {key: value for key, value in judge.body.items() if key not in _SHAPING}
    for limit in _LIMITS:
        if isinstance(body.get(limit), int):
            body[limit] = max(body[limit], ROOM)
    asked = msgspec.structs.replace(judge, body=body)
    seeds = [_seed(seed, name, k) if judge.seeds else None for k in range(2)]
    one, two = (build_body(asked, CANARY, each) for each in seeds)
    return one, two


async def probe_judge(
    name: str, judge: JudgeSpec, call: Call, seed: int, *, sent: Counter[str], pause_s: float = 1.0
) -> Probe:
    """Send the canaries and one call of the audit's, one after another.

    Parameters
    ----------
    name : str
    judge : JudgeSpec
    call : Call
        A planned call of this judge; its bytes are sent with another seed, so that the audit's own call stays new.
    seed : int
        The audit's.
    sent : Counter
        Requests sent, by judge, failed ones included: counted up here, also where this ends with an error.
    pause_s : float
        Before a request that brought no completion is sent again.

    Raises
    ------
    KeyRefusedError, EndpointError
        When the endpoint cannot be reached, refuses the key or the request, or keeps failing.
    """
    one, two = canary_requests(name, judge, seed)
    request = call.request
    if judge.seeds:
        request = _edited(request, {"seed": _seed(seed, name, 2)})
    async with JudgeLine(name, judge) as line:
        await line.reach()
        sender = _Sender(line, name, judge, pause_s, sent)
        answers = [await sender.send(each) for each in (one, two, one)]
        real, logprobs = await _ask_logprobs(sender, judge, request)
    return Probe(answers[0], answers[1], answers[2], real, request, logprobs)


class _Sender:
    """Sends one request at a time, again where no completion came, and says what is wrong where that is no use."""

    def __init__(self, line: JudgeLine, name: str, judge: JudgeSpec, pause_s: float, sent: Counter[str]) -> None:
        self._line, self._name, self._judge, self._pause_s = line, name, judge, pause_s
        self._sent = sent

    async def send(self, request: bytes) -> Exchange:
        """An exchange with a completion."""
        exchange = await self.attempt(request)
        if isinstance(exchange.reading, Failure):
            raise self._error(exchange.reading, exchange.status)
        return exchange

    async def attempt(self, request: bytes) -> Exchange:
        """An exchange with a completion, or with the failure after the last try."""
        for left in reversed(range(TRIES)):
            self._sent[self._name] += 1
            exchange = await self._line.send(request)
            reading = exchange.reading
            if isinstance(reading, Completion) or reading.remedy != "retry" or left == 0:
                break
            await asyncio.sleep(min(exchange.asked_s or self._pause_s, LONGEST_WAIT_S))
        return exchange

    def _error(self, failure: Failure, status: int | None) -> EndpointError:
        name, judge = self._line.name, self._judge
        if failure.remedy == "fatal":
            return refusal(name, judge, failure, status)
        problem, remedy = f"{failure.detail} ({TRIES} tries)", "mend the server"
        if failure.remedy == "rejected":
            problem, remedy = f"it rejects the request: {failure.detail}", "mend the judge's body or model"
        return EndpointError(problem, place=place_of(name, judge), remedy=remedy)


async def _ask_logprobs(sender: _Sender, judge: JudgeSpec, request: bytes) -> tuple[Exchange, bool | None]:
    """A real call that also asks for log-probabilities, where the endpoint has a field for them."""
    if judge.endpoint != "openai-chat":
        return await sender.send(request), None
    if judge.soft is not None:
        # The audit's own calls ask; a server that refuses the field refuses the audit.
        asked = await sender.send(request)
        return asked, _has_logprobs(asked.body or b"")
    asked = await sender.attempt(_edited(request, {"logprobs": True, "top_logprobs": 5}))
    if isinstance(asked.reading, Failure):
        # Refused for the field, or for a reason that shows again without it.
        return await sender.send(request), False
    return asked, _has_logprobs(asked.body or b"")


def _has_logprobs(body: bytes) -> bool:
    try:
        choice = json.loads(body)["choices"][0]
        return bool((choice.get("logprobs") or {}).get("content"))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        return False


def _edited(request: bytes, fields: Mapping[str, Any]) -> bytes:
    body = json.loads(request) | fields
    return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _seed(seed: int, name: str, number: int) -> int:
    return 1 + blake2b_64(["canary", seed, name, number]) % (2**31 - 1)
