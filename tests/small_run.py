"""A small audit's calls without an audit: what the tests of ledger, endpoint and scheduler plan, run and kill.

``python tests/small_run.py run LEDGER URL`` resumes a run. ``python tests/small_run.py kill --calls 2400 --kills 10``
plans a run of that size against a simulated judge, kills it that often with SIGKILL at random moments, resumes it
each time, and checks that nothing is lost, doubled or called again after it was completed.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from secondorder._canon import blake2b_64, sha256_hex, sha256_lines
from secondorder.acquire._endpoint import build_body
from secondorder.acquire._judge import SimulatedJudge, derived_law, draw, messages_key, uniform_of_seed
from secondorder.acquire._ledger_create import create_ledger
from secondorder.acquire._ledger_read import read_ledger
from secondorder.acquire._ledger_verify import verify_ledger
from secondorder.acquire._scheduler import run_calls
from secondorder.acquire._seeds import call_id
from secondorder.acquire._spec import JudgeSpec, RetrySpec
from secondorder.acquire._types import Call, Outcome
from secondorder.errors import SecondOrderError


def judge(base_url: str, **fields) -> JudgeSpec:
    body = {"temperature": 1.0, "max_tokens": 8}
    return JudgeSpec(**{"endpoint": "openai-chat", "base_url": base_url, "model": "toy", "body": body, **fields})


def messages(item: str, prompt: str, order: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"{prompt}: which is better for {item}, shown {order}?"}]


def make_calls(
    *, items=3, prompts=("p1", "p2"), orders=("AB", "BA"), repeats=4, judges=("toy",), shuffled=True, warmups=False
) -> list[Call]:
    """Planned calls; their bytes do not depend on where the judge listens."""
    spec = judge("http://127.0.0.1:1/v1")
    cells = [(j, f"item{i:03d}", p, o) for j in judges for i in range(items) for p in prompts for o in orders]
    places = [(*cell, repeat) for cell in cells for repeat in ([-1] if warmups else []) + list(range(repeats))]
    if shuffled:
        places.sort(key=lambda place: blake2b_64(["send", place]))
    calls = []
    for rank, (name, item, prompt, order, repeat) in enumerate(places):
        seed = 1 + blake2b_64(["seed", name, item, prompt, order, repeat]) % (2**31 - 1)
        request = build_body(spec, messages(item, prompt, order), seed)
        identity = call_id(name, item, prompt, order, repeat)
        place = (name, item, prompt, order, repeat)
        calls.append(Call(identity, rank, *place, repeat < 0, seed, request, sha256_hex(request)))
    return calls


def plan(path: Path, calls: list[Call]) -> Path:
    digest = sha256_lines(f"{call.id}\t{call.request_sha256}".encode() for call in calls)
    create_ledger(path, calls, calls_sha256=digest, manifest_sha256="0" * 64)
    return path


def parse(text: str, finish_reason: str, call: Call) -> Outcome:
    if finish_reason == "length":
        return Outcome("invalid", "truncated")
    if not text.strip():
        return Outcome("invalid", "empty")
    verdict = {"A": "1", "B": "2", "TIE": "tie"}.get(text.strip())
    return Outcome("invalid", "unparsed") if verdict is None else Outcome("valid", verdict=verdict)


def expected(call: Call) -> Outcome:
    """Outcome that the simulated judge's law and the call's seed determine."""
    law = derived_law(messages_key(messages(call.item, call.prompt, call.order)))
    return parse(draw(law, uniform_of_seed(call.seed)), "stop", call)


def kill_and_resume(folder: Path, *, n_calls: int, kills: int, concurrency: int = 16, latency_s: float = 0.02) -> dict:
    """Run, kill −9 at random moments, resume; every check is an assertion, the counts are returned."""
    calls = make_calls(items=-(-n_calls // 16))[:n_calls]
    path = plan(folder / "ledger.sqlite", calls)
    by_digest = {call.request_sha256: call for call in calls}
    assert len(by_digest) == n_calls  # every call has its own bytes: the server's log tells them apart
    moments = sorted(random.Random(time.time_ns()).sample(range(1, n_calls), kills))
    print("kills after so many requests:", *moments, file=sys.stderr)
    finished: dict[str, int] = {}
    with SimulatedJudge(latency_s=latency_s, process=False) as server:
        log = server.server.served
        for moment in [*moments, None]:
            command = [sys.executable, __file__, "run", str(path), server.base_url, "--concurrency", str(concurrency)]
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            while moment is not None and len(log) < moment and child.poll() is None:
                time.sleep(0.001)
            if moment is not None and child.poll() is None:
                child.send_signal(signal.SIGKILL)
            _, err = child.communicate(timeout=120)
            assert moment is not None or child.returncode == 0, err
            time.sleep(3 * latency_s)  # requests that were in flight reach the log
            served = Counter(log)
            for digest, times in finished.items():
                assert served[digest] == times, "a completed call was called again"
            with read_ledger(path) as ledger:
                for record in ledger.outcomes():
                    finished.setdefault(record.call.request_sha256, served[record.call.request_sha256])
        served = Counter(log)
    assert set(served) == set(by_digest), "requests on the wire are the planned bytes, all of them and no others"
    with read_ledger(path) as ledger:
        outcomes = {record.call.id: record.outcome for record in ledger.outcomes()}
        counted = "SELECT c.request_sha256, count(*) FROM call c JOIN intent i ON i.call = c.rank GROUP BY 1"
        announced = dict(ledger.query(counted))
        attempts = ledger.attempt_counts()
    assert outcomes == {call.id: expected(call) for call in calls}, "exactly the planned outcomes"
    assert all(times <= announced[bytes.fromhex(digest)] for digest, times in served.items())
    assert verify_ledger(path) == []
    return {"calls": n_calls, "requests": len(log), "attempts": {result: n for (_, result), n in attempts.items()}}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run")
    run.add_argument("ledger", type=Path)
    run.add_argument("url")
    run.add_argument("--concurrency", type=int, default=16)
    run.add_argument("--key-env")
    kill = commands.add_parser("kill")
    kill.add_argument("--calls", type=int, default=2400)
    kill.add_argument("--kills", type=int, default=10)
    options = parser.parse_args(argv)
    if options.command == "kill":
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(kill_and_resume(Path(folder), n_calls=options.calls, kills=options.kills)))
        return 0
    toy = judge(options.url, concurrency=options.concurrency, key_env=options.key_env)
    try:
        print(run_calls(options.ledger, {"toy": toy}, parse=parse, seed=1, retry=RetrySpec(attempts=30)))
    except SecondOrderError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
