"""Server processes that are told to stop, with all that they log."""

import asyncio
import json
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.support.peers.wire import RawReply, call, mirrored, raw_exchange, raw_request
from tests.support.servers.serving import PATIENCE_SECONDS, ROOT

TARGET = "tests.support.containers.shutdown_tools:container"


class Process:
    """A server, what it logs, and how it ends."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._lines: list[str] = []
        self._news = asyncio.Condition()
        self._reading = asyncio.ensure_future(self._read())
        self.port = 0
        self.ended_at = 0.0
        """When it ended, by the monotonic clock."""

    @property
    def log(self) -> str:
        """All that stands in the log so far."""
        return "".join(self._lines)

    @property
    def stdin(self) -> asyncio.StreamWriter:
        """Its standard input."""
        assert self._process.stdin is not None
        return self._process.stdin

    async def until(self, text: str, times: int = 1) -> None:
        """Wait until a text stands in the log so often."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._news:
            await self._news.wait_for(lambda: self.log.count(text) >= times or self._reading.done())
        assert self.log.count(text) >= times, self.log

    async def until_serving(self) -> "Process":
        """Wait until it listens."""
        await self.until("Press Ctrl-C")
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.log)
        assert found is not None
        self.port = int(found[1])
        return self

    def tell(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    async def ended(self) -> int:
        """Wait for its end, and for that of its log, and give the exit code."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            code = await self._process.wait()
            self.ended_at = time.monotonic()
            await self._reading  # which processes that it started may hold open for a moment longer
        return code

    def say(self, *messages: bytes) -> None:
        """Send messages over stdio."""
        self.stdin.write(b"".join(one + b"\n" for one in messages))

    async def hear(self) -> Any:
        """Wait for a message over stdio; None at the end."""
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await self._process.stdout.readline()
        return json.loads(line) if line else None

    async def hear_rest(self) -> list[Any]:
        """Wait for the end of what it says over stdio."""
        said = []
        while (message := await self.hear()) is not None:
            said.append(message)
        return said

    async def close(self) -> None:
        """End it, whatever it is doing."""
        if self._process.returncode is None:
            self._process.kill()
        assert self._process.stdout is not None
        self.stdin.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._process.stdout.read()
            await self._reading
            await self._process.wait()

    async def _read(self) -> None:
        assert self._process.stderr is not None
        async for line in self._process.stderr:
            async with self._news:
                self._lines.append(line.decode())
                self._news.notify_all()
        async with self._news:
            self._news.notify_all()


@asynccontextmanager
async def starting(*words: str, **environment: str) -> AsyncIterator[Process]:
    """Start `axolotl serve` with some words."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("AXOLOTL_")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "axolotl_cli", "serve", *words),
        cwd=ROOT,
        env={**own, **environment},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=2**24,
    )
    server = Process(process)
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def over_http(target: str = TARGET, **environment: str) -> AsyncIterator[Process]:
    """Serve over HTTP at a free port."""
    async with starting(target, "--transport", "http", "--port", "0", **environment) as server:
        yield await server.until_serving()


def posted(name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> bytes:
    """Write a call as an HTTP request."""
    return raw_request(call(name, arguments, **options), mirrored(name=name).items())


async def answer_to(port: int, name: str, arguments: Mapping[str, Any] | None = None, id: int = 1) -> Any:
    """Call a tool on a connection of its own, and give the result."""
    reply = await raw_exchange(port, posted(name, arguments, id=id))
    assert reply.status == 200, reply
    return json.loads(reply.body)["result"]


async def probe(port: int, path: str = "/readyz") -> RawReply:
    """Ask a route as a probe does."""
    return await raw_exchange(port, raw_request(b"", [], method="GET", path=path, host="10.1.2.3"))
