"""Start and stop a simulated judge: in a process of its own, or in a thread where a test wants to look inside."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from secondorder.acquire._judge._faults import Fault
from secondorder.acquire._judge._laws import Law, write_laws
from secondorder.errors import WorldError

if TYPE_CHECKING:
    from secondorder.acquire._judge._server import JudgeServer

__all__ = ["SimulatedJudge"]


class SimulatedJudge:
    """A simulated judge on a free port of this machine, for as long as the block lasts.

    Parameters
    ----------
    laws : mapping of str to Law, optional
        Probability by text, by address of the messages (:func:`messages_key`).
    faults : sequence of Fault, optional
        How it fails.
    latency_s : float
        Time that an answer takes.
    key_env : str, optional
        Name of the environment variable whose value requests must carry as their key.
    process : bool
        In a process of its own (fast: it does not share the interpreter), else in a thread.

    Attributes
    ----------
    base_url : str
        For ``[judges.NAME]``.
    server : JudgeServer or None
        The server itself, when it runs in a thread.

    Examples
    --------
    >>> from secondorder.acquire._judge import messages_key
    >>> law = {messages_key([{"role": "user", "content": "A or B?"}]): {"A": 0.75, "B": 0.25}}
    >>> with SimulatedJudge(law, process=False) as judge:
    ...     judge.base_url
    'http://127.0.0.1:...'
    """

    def __init__(
        self,
        laws: Mapping[str, Law] | None = None,
        faults: Sequence[Fault] = (),
        *,
        latency_s: float = 0.0,
        key_env: str | None = None,
        process: bool = True,
    ) -> None:
        self.base_url = ""
        self.server: JudgeServer | None = None
        self._laws = laws or {}
        self._faults = list(faults)
        self._latency_s = latency_s
        self._key_env = key_env
        self._process = process

    def __enter__(self) -> Self:
        port = self._start_process() if self._process else self._start_thread()
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process:
            self._child.communicate()  # closes its standard input: it ends
            self._folder.cleanup()
        else:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def _start_process(self) -> int:
        self._folder = tempfile.TemporaryDirectory(prefix="secondorder-judge-")
        laws, faults = Path(self._folder.name, "laws.json"), Path(self._folder.name, "faults.json")
        write_laws(laws, self._laws)
        faults.write_bytes(msgspec.json.encode(self._faults))
        command = [sys.executable, "-m", "secondorder.acquire._judge", "--until-stdin-closes", "--laws", str(laws)]
        command += ["--faults", str(faults), "--latency-s", str(self._latency_s)]
        command += [] if self._key_env is None else ["--key-env", self._key_env]
        root = str(Path(__file__).resolve().parents[3])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": path},
            text=True,
            start_new_session=True,  # Ctrl-C is for the run, which lets the calls in flight end
        )
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            self._child.communicate()
            self._folder.cleanup()
            raise WorldError("the simulated judge did not start", remedy="its own message stands above")
        return int(line.rsplit(":", 1)[1].split("/")[0])

    def _start_thread(self) -> int:
        ready: list[int] = []
        started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready, started)), name="simulated-judge")
        self._thread.start()
        started.wait()
        return ready[0]

    async def _serve(self, ready: list[int], started: threading.Event) -> None:
        from secondorder.acquire._judge._server import JudgeServer

        key = "" if self._key_env is None else os.environ[self._key_env]
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        self.server = JudgeServer(self._laws, self._faults, latency_s=self._latency_s, key=key)
        runner, port = await self.server.start()
        ready.append(port)
        started.set()
        await self._stop.wait()
        await runner.cleanup()
