"""Requests per second of acquisition, every row durable, against a bare aiohttp loop and against the ``openai`` SDK.

    python benchmarks/acquire.py [--calls 6000] [--rounds 3]

One simulated judge in a process of its own answers after 50 ms; 64 requests are in flight. The three clients send the
same bytes, in turn, and the best of the rounds counts. The bare loop posts, reads and decodes, and stores nothing: it
is the ceiling of what a client in one Python process can do here. Wanted: at least 85 % of the loop, and five times
the SDK. The latency caps every client at 1,280 requests/s, so the processor time per request is shown too: it is
what decides once the latency does not.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import platform
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp

from secondorder._canon import sha256_lines
from secondorder.acquire._endpoint import build_body
from secondorder.acquire._judge import SimulatedJudge
from secondorder.acquire._ledger_create import create_ledger
from secondorder.acquire._ledger_verify import verify_ledger
from secondorder.acquire._scheduler import run_calls
from secondorder.acquire._seeds import call_id
from secondorder.acquire._spec import JudgeSpec
from secondorder.acquire._types import Call, Outcome

LATENCY_S = 0.05
IN_FLIGHT = 64


def planned(judge: JudgeSpec, count: int) -> Iterator[Call]:
    for rank in range(count):
        item, repeat = f"item {rank // 4}", rank % 4
        question = f"Which response follows the instruction better?\n\n{item}\n\n" + "A short text to judge. " * 20
        request = build_body(judge, [{"role": "user", "content": question}], rank + 1)
        identity = call_id("bench", item, "none", "AB", repeat)
        digest = hashlib.sha256(request).hexdigest()
        yield Call(identity, rank, "bench", item, "none", "AB", repeat, False, rank + 1, request, digest)


def parse(text: str, finish_reason: str, call: Call) -> Outcome:
    return Outcome("valid", verdict=text) if text in ("A", "B", "TIE") else Outcome("invalid", "unparsed")


Cost = tuple[float, float]
"""Seconds, and seconds of processor time, of one client for all calls."""


class Watch:
    """Measures what happens inside its block."""

    def __enter__(self) -> Watch:
        self._wall, self._cpu = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self.cost = time.perf_counter() - self._wall, time.process_time() - self._cpu


def ours(judge: JudgeSpec, calls: list[Call]) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.sqlite")
        digest = sha256_lines(f"{call.id}\t{call.request_sha256}".encode() for call in calls)
        create_ledger(path, calls, calls_sha256=digest, manifest_sha256="")
        with Watch() as watch:
            summary = run_calls(path, {"bench": judge}, parse=parse, seed=1, progress=lambda state: None)
        assert summary.open == summary.missing == 0
        assert verify_ledger(path) == []
    return watch.cost


def bare_loop(judge: JudgeSpec, calls: list[Call]) -> Cost:
    async def main() -> None:
        todo = iter(calls)
        connector = aiohttp.TCPConnector(limit=IN_FLIGHT)
        async with aiohttp.ClientSession(connector=connector) as session:

            async def worker() -> None:
                for call in todo:
                    headers = {"Content-Type": "application/json"}
                    url = f"{judge.base_url}/chat/completions"
                    async with session.post(url, data=call.request, headers=headers) as response:
                        json.loads(await response.read())["choices"][0]["message"]["content"]

            await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))

    with Watch() as watch:
        asyncio.run(main())
    return watch.cost


def openai_sdk(judge: JudgeSpec, calls: list[Call]) -> Cost:
    import openai

    async def main() -> None:
        todo = iter(calls)
        async with openai.AsyncOpenAI(base_url=judge.base_url, api_key="none", max_retries=0) as client:

            async def worker() -> None:
                for call in todo:
                    answer = await client.chat.completions.create(**json.loads(call.request))
                    assert answer.choices[0].message.content is not None

            await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))

    with Watch() as watch:
        asyncio.run(main())
    return watch.cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=6000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    clients: dict[str, tuple[Callable[[JudgeSpec, list[Call]], Cost], int]] = {
        "bare aiohttp loop": (bare_loop, options.calls),
        "secondorder": (ours, options.calls),
        "openai SDK": (openai_sdk, max(200, options.calls // 6)),
    }
    rate = dict.fromkeys(clients, 0.0)
    cpu_ms = dict.fromkeys(clients, float("inf"))
    with SimulatedJudge(latency_s=LATENCY_S) as server:
        body = {"temperature": 1.0, "max_tokens": 8}
        judge = JudgeSpec(
            endpoint="openai-chat", base_url=server.base_url, model="bench", body=body, concurrency=IN_FLIGHT
        )
        calls = list(planned(judge, options.calls))
        for _ in range(options.rounds):
            for name, (client, count) in clients.items():
                seconds, processor = client(judge, calls[:count])
                rate[name] = max(rate[name], count / seconds)
                cpu_ms[name] = min(cpu_ms[name], processor / count * 1000)
    print(f"{platform.machine()}, Python {platform.python_version()}, aiohttp {aiohttp.__version__}")
    print(f"{LATENCY_S * 1000:.0f} ms latency, {IN_FLIGHT} in flight: at most {IN_FLIGHT / LATENCY_S:.0f} requests/s")
    for name in clients:
        print(f"{name:<18} {rate[name]:7.0f} requests/s   {cpu_ms[name]:6.2f} ms of processor time per request")
    loop, own, sdk = clients
    print(
        f"rate: {rate[own] / rate[loop]:.2f} of the loop's (wanted 0.85), {rate[own] / rate[sdk]:.1f} times the SDK's"
    )
    shares = cpu_ms[own] / cpu_ms[loop], cpu_ms[sdk] / cpu_ms[own]
    print(f"processor time: {shares[0]:.1f} times the loop's; the SDK needs {shares[1]:.1f} times ours")


if __name__ == "__main__":
    main()
