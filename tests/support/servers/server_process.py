"""Server processes: their messages, their logs and their ends."""

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.support.commands import ForkedCommand, constants, environment_with
from tests.support.peers.wire import RawReply, call, mirrored, raw_exchange, raw_request
from tests.support.servers.serving import PATIENCE_SECONDS

TARGET = "tests.support.containers.shutdown_tools:container"


class ServerProcess:
    """A server, its log and its end."""

    def __init__(self, command: ForkedCommand) -> None:
        self._command = command
        self._lines: list[str] = []
        self._news = asyncio.Condition()
        self.port = 0
        self.ended_at = 0.0
        """The time of the end, on the monotonic clock."""
        self.stdin: asyncio.StreamWriter
        """The standard input."""

    async def connect(self) -> "ServerProcess":
        """Connect to its streams."""
        loop = asyncio.get_running_loop()
        pipe = os.fdopen(self._command.stdin, "wb", 0)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
        self.stdin = asyncio.StreamWriter(transport, protocol, None, loop)
        self._stdout = await _reader(self._command.stdout)
        self._reading = asyncio.ensure_future(self._read(await _reader(self._command.stderr)))
        return self

    @property
    def log(self) -> str:
        """The log so far."""
        return "".join(self._lines)

    async def until(self, text: str, times: int = 1) -> None:
        """Wait until the log contains a text a number of times."""
        async with asyncio.timeout(PATIENCE_SECONDS), self._news:
            await self._news.wait_for(lambda: self.log.count(text) >= times or self._reading.done())
        assert self.log.count(text) >= times, self.log

    async def until_serving(self) -> "ServerProcess":
        """Wait until it listens."""
        await self.until("Press Ctrl-C")
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.log)
        assert found is not None
        self.port = int(found[1])
        return self

    def tell(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send a signal."""
        self._command.send_signal(number)

    async def ended(self) -> int:
        """Wait for the end of the process and of its log, and return the exit code."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._end()
            self.ended_at = time.monotonic()
            await self._reading  # child processes may hold it open a moment longer
        return self._command.wait()

    def say(self, *messages: bytes) -> None:
        """Send messages over stdio."""
        self.stdin.write(b"".join(one + b"\n" for one in messages))

    async def hear(self) -> Any:
        """Wait for a message over stdio; None at the end."""
        line = await self.hear_line()
        return json.loads(line) if line else None

    async def hear_line(self) -> bytes:
        """Wait for a message over stdio, and return it as it was sent; empty at the end."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await self._stdout.readline()
        assert line == b"" or line.endswith(b"\n"), line
        return line

    async def hear_rest(self) -> list[Any]:
        """Wait for all remaining messages."""
        said = []
        while (message := await self.hear()) is not None:
            said.append(message)
        return said

    async def end(self) -> tuple[int, list[Any], str]:
        """Close its input, and return the exit code, the remaining messages and the log."""
        self.stdin.close()
        rest = await self.hear_rest()
        return await self.ended(), rest, self.log

    async def close(self) -> None:
        """Kill the process."""
        self.tell(signal.SIGKILL)
        self.stdin.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._stdout.read()
            await self._reading
            await self._end()
        self._command.kill()

    async def _end(self) -> None:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._command.report, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._command.report)

    async def _read(self, stderr: asyncio.StreamReader) -> None:
        async for line in stderr:
            async with self._news:
                self._lines.append(line.decode())
                self._news.notify_all()
        async with self._news:
            self._news.notify_all()


async def _reader(descriptor: int) -> asyncio.StreamReader:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=2**27)
    pipe = os.fdopen(descriptor, "rb", 0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader


async def start_process(*words: str, **environment: str) -> ServerProcess:
    """Start `axolotl serve` with some arguments; the caller closes it."""
    return await ServerProcess(ForkedCommand("serve", *words, environment=environment_with(**environment))).connect()


@asynccontextmanager
async def starting(*words: str, **environment: str) -> AsyncIterator[ServerProcess]:
    """Start `axolotl serve` with some arguments until the block ends."""
    server = await start_process(*words, **environment)
    try:
        yield server
    finally:
        await server.close()


@asynccontextmanager
async def over_http(target: str = TARGET, **environment: str) -> AsyncIterator[ServerProcess]:
    """Serve over HTTP on a free port; no request is refused because the machine is slow."""
    patience = {"axolotl_server.http.admission.MAX_LAG_SECONDS": 1000}
    environment = {**constants(patience), **environment}
    async with starting(target, "--transport", "http", "--port", "0", **environment) as server:
        yield await server.until_serving()


def posted(name: str, arguments: Mapping[str, Any] | None = None, **options: Any) -> bytes:
    """Encode a call as an HTTP request."""
    return raw_request(call(name, arguments, **options), mirrored(name=name).items())


async def answer_to(port: int, name: str, arguments: Mapping[str, Any] | None = None, id: int = 1) -> Any:
    """Call a tool on a new connection and return the result."""
    reply = await raw_exchange(port, posted(name, arguments, id=id))
    assert reply.status == 200, reply
    return json.loads(reply.body)["result"]


async def probe(port: int, path: str = "/readyz") -> RawReply:
    """Request a route like a probe."""
    return await raw_exchange(port, raw_request(b"", [], method="GET", path=path, host="10.1.2.3"))
