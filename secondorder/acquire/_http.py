"""One attempt over HTTP: the call's bytes out, the answer's bytes back, and nothing of the key anywhere else."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import ssl
import time
from types import TracebackType
from typing import Self
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import msgspec

from secondorder._version import __version__
from secondorder.acquire._endpoint import endpoint_of, request_url
from secondorder.acquire._reading import Failure, Reading
from secondorder.acquire._retry import retry_after_s
from secondorder.acquire._spec import JudgeSpec
from secondorder.errors import EndpointError, SpecError

__all__ = ["Exchange", "JudgeLine", "check_judge"]

MAX_BODY = 64 * 2**20
LARGE = 2**20  # a larger request is written in pieces, so that it does not hold up the others
CONNECT_S = 20.0

NO_CACHE = {
    "": {"Cache-Control": "no-cache, no-store", "Pragma": "no-cache"},
    "gateway.ai.cloudflare.com": {"cf-aig-skip-cache": "true", "cf-skip-cache": "true"},
    "helicone.ai": {"Helicone-Cache-Enabled": "false"},
    "portkey.ai": {"x-portkey-cache-force-refresh": "true"},
}
"""Headers that ask a cache to stand aside, by the end of the host's name: a cached answer is no new draw."""

KEPT_HEADERS = (
    *("age", "cf-aig-cache-status", "cf-cache-status", "cf-ray", "helicone-cache", "openai-organization-tier"),
    *("openai-processing-ms", "openai-version", "request-id", "retry-after", "retry-after-ms", "via", "x-cache"),
    *("x-cache-hit", "x-cache-status", "x-litellm-cache-key", "x-litellm-model-id", "x-portkey-cache-status"),
    "x-request-id",
)
"""Response headers that the ledger keeps; no other header is stored."""


class Exchange(msgspec.Struct, frozen=True):
    """What one attempt brought back.

    Attributes
    ----------
    reading : Completion or Failure
        What it means.
    status : int or None
        HTTP status; None when no answer came.
    headers : dict
        Those of :data:`KEPT_HEADERS`.
    body : bytes or None
        As received, the key blotted out should the server have sent it back.
    sent, latency_ms : float
        Unix time of sending; milliseconds to the last byte.
    asked_s : float or None
        Seconds that the server asks to wait.
    """

    reading: Reading
    status: int | None
    headers: dict[str, str]
    body: bytes | None
    sent: float
    latency_ms: float
    asked_s: float | None = None


def check_judge(name: str, judge: JudgeSpec) -> None:
    """Check what only the machine that sends can know: that the key is there, that the address can be one.

    Raises
    ------
    SpecError
        Naming the judge, what is wrong and the remedy; never the key.
    """
    place = f"[judges.{name}]"
    try:
        address = urlsplit(request_url(judge))
        reachable = address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:  # of a port that is no number
        reachable = False
    if not reachable:
        raise SpecError(f"base_url is {judge.base_url!r}", place=place, remedy="write http://host:port/v1 or https://…")
    key = _key(judge)
    if judge.key_env is not None and not key:
        raise SpecError(f"environment variable {judge.key_env} is not set", place=place, remedy="put the key into it")
    if not all(33 <= ord(letter) <= 126 for letter in key):
        problem = f"the key in {judge.key_env} holds a character that no header may hold"
        raise SpecError(problem, place=place, remedy="remove spaces and line ends from it")


class JudgeLine:
    """Connections to one judge; an asynchronous context manager.

    Parameters
    ----------
    name : str
        Name of the judge, for messages.
    judge : JudgeSpec
        Where it is and how many calls may be in flight.
    """

    def __init__(self, name: str, judge: JudgeSpec) -> None:
        self.name = name
        self._judge = judge
        self._read = endpoint_of(judge).read
        self._url = request_url(judge)
        self._address = urlsplit(self._url)
        self._proxy = _proxy(self._address)
        self._headers = _headers(judge, self._address.hostname or "")

    async def __aenter__(self) -> Self:
        seconds = self._judge.timeout_s
        self._session = aiohttp.ClientSession(
            # Idle connections go before a usual server closes them (5 s): a send never races with that.
            connector=aiohttp.TCPConnector(limit=self._judge.concurrency, ttl_dns_cache=300, keepalive_timeout=4.0),
            timeout=aiohttp.ClientTimeout(total=seconds, sock_connect=min(seconds, CONNECT_S)),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def reach(self, *, tries: int = 3, pause_s: float = 0.5) -> None:
        """Open one connection and close it, so that a wrong address ends here and costs no call an attempt.

        Raises
        ------
        EndpointError
            When nothing can be reached there.
        """
        address = self._address if self._proxy is None else urlsplit(self._proxy)
        host, port = address.hostname or "", address.port or (443 if address.scheme == "https" else 80)
        for left in reversed(range(tries)):
            try:
                _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), CONNECT_S)
            except OSError as error:
                if left == 0:
                    raise EndpointError(
                        _why_unreachable(error, host, port),
                        place=f"judge {self.name!r}",
                        remedy="start the server or correct base_url, then give the same command again",
                    ) from None
                await asyncio.sleep(pause_s)
            else:
                writer.close()
                return

    async def send(self, request: bytes) -> Exchange:
        """Send the bytes of one call once and read the answer; every failure is a reading, none is raised."""
        key = _key(self._judge)
        headers = {**self._headers, "Authorization": f"Bearer {key}"} if key else self._headers
        sent, clock = time.time(), time.perf_counter()
        status: int | None = None
        body: bytes | None = None
        kept: dict[str, str] = {}
        asked: float | None = None
        try:
            async with self._session.post(
                self._url,
                data=io.BytesIO(request) if len(request) > LARGE else request,
                headers=headers,
                proxy=self._proxy,
                allow_redirects=False,
            ) as response:
                status = response.status
                kept = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
                asked = retry_after_s(response.headers, time.time()) if status >= 400 else None
                body = await _read_body(response)
            reading = self._read(status, body)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reading = _failure_of(error)
        latency_ms = (time.perf_counter() - clock) * 1000.0
        if len(key) >= 8:  # shorter ones are placeholders for servers that take any key
            body = body and body.replace(key.encode(), _BLOT.encode())
            kept = {name: value.replace(key, _BLOT) for name, value in kept.items()}
            if isinstance(reading, Failure):
                reading = Failure(reading.reason, reading.remedy, reading.detail.replace(key, _BLOT))
        return Exchange(reading, status, kept, body, sent, latency_ms, asked)


_BLOT = "[key]"


def _key(judge: JudgeSpec) -> str:
    """Read the key where it is used; it is kept nowhere."""
    return "" if judge.key_env is None else os.environ.get(judge.key_env, "").strip()


def _headers(judge: JudgeSpec, host: str) -> dict[str, str]:
    fixed = {"Content-Type": "application/json", "Accept": "application/json"}
    fixed["User-Agent"] = f"secondorder/{__version__}"
    for end, headers in NO_CACHE.items():
        if not end or host == end or host.endswith("." + end):
            fixed |= headers
    own = {name.lower() for name in judge.headers}
    return {name: value for name, value in fixed.items() if name.lower() not in own} | judge.headers


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_BODY:
            raise aiohttp.ClientPayloadError(f"the answer is longer than {MAX_BODY} bytes")
    return b"".join(chunks)


def _failure_of(error: Exception) -> Failure:
    detail = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    if isinstance(error, (ssl.SSLError, aiohttp.ClientSSLError)):
        return Failure("connection", "fatal", detail)
    if isinstance(error, TimeoutError) and not isinstance(error, aiohttp.ConnectionTimeoutError):
        return Failure("timeout", "retry", "no answer within timeout_s")
    if isinstance(error, aiohttp.ClientResponseError):
        return Failure("malformed", "retry", f"not an HTTP answer: {error.message}"[:300])
    return Failure("connection", "retry", detail)


def _proxy(address: SplitResult) -> str | None:
    """Proxy that the environment names for this address; never for this machine itself.

    aiohttp could read the environment too, but then it also takes passwords from ``.netrc``.
    """
    host = address.hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1" or proxy_bypass(host):
        return None
    return getproxies().get(address.scheme)


def _why_unreachable(error: OSError, host: str, port: int) -> str:
    if isinstance(error, socket.gaierror):
        return f"host {host!r} is not known ({error.strerror})"
    if isinstance(error, TimeoutError):
        return f"{host}:{port} does not answer within {CONNECT_S:g} s"
    return f"cannot connect to {host}:{port} ({error.strerror or error})"
