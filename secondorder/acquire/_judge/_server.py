"""The simulated judge's server: chat completions over HTTP, drawn from a known law."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from aiohttp import web

from secondorder._canon import sha256_hex
from secondorder.acquire._judge._faults import FAULT_HEADER, Fault, fault_of_header
from secondorder.acquire._judge._laws import Law, derived_law, draw, messages_key, uniform_of_seed
from secondorder.acquire._judge._tokens import logprob_entries
from secondorder.errors import InputError

__all__ = ["JudgeServer"]

RANDOM_SEEDS = (-1, 2**32 - 1)
LARGEST_REQUEST = 64 * 2**20  # real servers are bounded by their context, not at aiohttp's one megabyte


class JudgeServer:
    """State and handler of one simulated judge; start it with :meth:`start` inside an event loop.

    Parameters
    ----------
    laws : mapping of str to Law
        By address (:func:`messages_key`); other messages get a law derived from their address.
    faults : sequence of Fault
        For every request, in order.
    latency_s : float
        Time that an answer takes.
    key : str
        When not empty, requests without it are refused (401).

    Attributes
    ----------
    served : list of str
        SHA-256 of the bytes of every chat request let in, in order of arrival.
    """

    def __init__(
        self, laws: Mapping[str, Law], faults: Sequence[Fault] = (), *, latency_s: float = 0.0, key: str = ""
    ) -> None:
        self.served: list[str] = []
        self._laws = laws
        self._faults = tuple(faults)
        self._latency_s = latency_s
        self._key = key
        self._received = 0
        self._times: Counter[str] = Counter()
        self._asked: Counter[str] = Counter()
        self._first: dict[str, bytes] = {}
        self._twin: dict[str, str] = {}

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> tuple[web.ServerRunner, int]:
        """Listen; returns the runner (to clean up) and the port."""
        server = web.Server(self._handle, request_factory=_roomy_request, access_log=None)
        runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, host, port, backlog=1024, reuse_address=True)
        await site.start()
        return runner, runner.addresses[0][1]

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/health":
            return _json({"status": "ok", "requests": self._received})
        if request.path == "/v1/models":
            return _json(
                {"object": "list", "data": [{"id": "simulated", "object": "model", "owned_by": "secondorder"}]}
            )
        if request.path != "/v1/chat/completions" or request.method != "POST":
            return _error(404, f"no such path: {request.path}")
        if self._key and request.headers.get("Authorization") != f"Bearer {self._key}":
            return _error(401, "Incorrect API key provided.")
        return await self._answer(request, await request.read())

    async def _answer(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        sha256 = sha256_hex(body)
        self.served.append(sha256)
        try:
            faults = self._striking(body, sha256, request.headers.get(FAULT_HEADER))
        except InputError as error:
            return _error(400, str(error))
        delay = self._latency_s + sum(fault.seconds for fault in faults if fault.kind == "slow")
        fault = next((fault for fault in faults if fault.kind != "slow"), None)
        if delay > 0:
            await asyncio.sleep(delay)
        response = _failure(fault) if fault is not None else None
        if fault is not None and fault.kind == "reset":
            return _abort(request)
        if response is None:
            try:
                content = self._complete(msgspec.json.decode(body), fault.kind if fault is not None else "")
            except (msgspec.DecodeError, KeyError, TypeError, ValueError, AttributeError) as error:
                return _error(400, f"not a chat request: {type(error).__name__}: {error}")
            if fault is not None and fault.kind == "cut":
                return await _cut(request, content)
            malformed = fault is not None and fault.kind == "malformed"
            response = web.Response(body=content[: len(content) // 2] if malformed else content, content_type=_JSON)
        return response

    def _striking(self, body: bytes, sha256: str, header: str | None) -> list[Fault]:
        received, self._received = self._received, self._received + 1
        times = self._times[sha256]
        self._times[sha256] += 1
        faults = [fault for fault in self._faults if fault.strikes(body, sha256, received, times)]
        return faults if header is None else [fault_of_header(header), *faults]

    def _complete(self, request: dict[str, Any], fault: str) -> bytes:
        key = messages_key(request["messages"])
        if fault == "cached" and key in self._first:
            return self._first[key]
        law = self._laws.get(key) or derived_law(key)
        seed = 0 if fault == "fixed_seed" else request.get("seed")
        texts = [self._text(law, seed, index, request) for index in range(request.get("n") or 1)]
        if fault in ("duplicated", "proxy_cached"):
            texts = [self._again(key, texts[0], forever=fault == "proxy_cached")]
        content = _completion(request, law, texts, fault, fresh=self._asked[key] == 0)
        self._asked[key] += 1
        if fault == "cached":
            self._first[key] = content
        return content

    def _text(self, law: Law, seed: int | None, index: int, request: dict[str, Any]) -> str:
        if request.get("temperature") == 0:
            return max(law, key=lambda text: law[text])
        if seed is None or seed in RANDOM_SEEDS:
            return draw(law, int.from_bytes(os.urandom(7), "big") / 2**56)
        # Neighbouring choices take neighbouring seeds, as in vLLM and llama.cpp.
        return draw(law, uniform_of_seed(seed + index))

    def _again(self, key: str, text: str, *, forever: bool) -> str:
        twin = self._twin.get(key)
        if twin is None:
            self._twin[key] = text
            return text
        if not forever:
            del self._twin[key]
        return twin


_JSON = "application/json"


def _roomy_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=LARGEST_REQUEST)


def _completion(request: dict[str, Any], law: Law, texts: list[str], fault: str, *, fresh: bool) -> bytes:
    finish, refusal = "stop", None
    if fault == "truncated":
        texts, finish = [text[: len(text) // 2] for text in texts], "length"
    elif fault == "empty":
        texts = [""] * len(texts)
    elif fault == "refusal":
        texts, refusal = [""] * len(texts), "I can't help with that."
    number = int(request.get("top_logprobs") or 0)
    words = sum(len(str(message.get("content", ""))) for message in request["messages"]) // 4
    usage = (0, 0) if fault == "proxy_cached" and not fresh else (words, sum(len(text) // 4 + 1 for text in texts))
    return msgspec.json.encode(
        {
            "id": f"chatcmpl-{os.urandom(12).hex()}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": request.get("model", "simulated"),
            "choices": [
                {
                    "index": index,
                    "message": {"role": "assistant", "content": text, "refusal": refusal},
                    "logprobs": {"content": logprob_entries(law, text, number)} if request.get("logprobs") else None,
                    "finish_reason": finish,
                }
                for index, text in enumerate(texts)
            ],
            "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)},
            "system_fingerprint": "simulated",
        }
    )


def _failure(fault: Fault) -> web.Response | None:
    if fault.kind == "status":
        response = _error(fault.status, f"simulated HTTP {fault.status}")
        if fault.retry_after is not None:
            wait = fault.retry_after
            response.headers["Retry-After"] = f"{wait:g}" if isinstance(wait, (int, float)) else wait
        return response
    if fault.kind == "error_body":
        return _json({"error": {"message": "simulated error", "type": "server_error"}})
    if fault.kind == "filtered":
        return _json({"error": {"message": "simulated filter", "code": "content_filter", "status": 400}}, status=400)
    return None


def _json(content: object, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(content), content_type=_JSON, status=status)


def _error(status: int, message: str) -> web.Response:
    return _json({"error": {"message": message, "type": "simulated", "code": None}}, status)


def _abort(request: web.BaseRequest) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _cut(request: web.BaseRequest, content: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Length": str(len(content)), "Content-Type": _JSON})
    await response.prepare(request)
    await response.write(content[: len(content) // 2])
    if request.transport is not None:
        request.transport.close()
    return response
