"""``python -m secondorder.acquire._judge``: serve a simulated judge until interrupted."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys

from secondorder.acquire._judge._faults import Fault, read_faults
from secondorder.acquire._judge._laws import Law, read_laws
from secondorder.acquire._judge._server import JudgeServer
from secondorder.errors import SecondOrderError


def main() -> int:
    """Parse the command line and serve; prints the address once it listens."""
    parser = argparse.ArgumentParser(
        prog="python -m secondorder.acquire._judge", description="Serve a simulated judge."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    parser.add_argument("--laws", help="law file (JSON); messages that it does not name get a law from their hash")
    parser.add_argument("--faults", help="fault file (JSON)")
    parser.add_argument("--latency-s", type=float, default=0.0, help="time that an answer takes")
    parser.add_argument("--key-env", help="environment variable whose value requests must carry as their key")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end when standard input does")
    options = parser.parse_args()
    try:
        laws = read_laws(options.laws) if options.laws else {}
        faults = read_faults(options.faults) if options.faults else []
    except SecondOrderError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(options, laws, faults))
    return 0


async def _serve(options: argparse.Namespace, laws: dict[str, dict[str, float]], faults: list[Fault]) -> None:
    known: dict[str, Law] = dict(laws)
    key = os.environ.get(options.key_env, "") if options.key_env else ""
    server = JudgeServer(known, faults, latency_s=options.latency_s, key=key)
    runner, port = await server.start(options.host, options.port)
    print(f"http://{options.host}:{port}/v1", flush=True)
    try:
        if options.until_stdin_closes:
            await asyncio.to_thread(sys.stdin.read)
        else:
            await asyncio.Event().wait()
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    sys.exit(main())
