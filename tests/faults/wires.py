"""The same client over every transport and in both eras."""

import asyncio
import collections
import contextlib
import itertools
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from dependency_injector import containers

from axolotl_server import ServerHost
from tests.faults.tools import let_go
from tests.support.peers.memory_transport import MemoryTransport
from tests.support.peers.wire import INITIALIZE, JSON_HEADERS, META, message, mirrored
from tests.support.servers.server_process import starting
from tests.support.servers.serving import PATIENCE_SECONDS, serving

WAYS = [f"{transport}, {era}" for transport in ("memory", "stdio", "http") for era in ("stateless", "handshake")]


class Wire(ABC):
    """A client that calls tools and cancels calls."""

    def __init__(self, *, handshake: bool) -> None:
        self.handshake = handshake
        self.answers: collections.Counter[Any] = collections.Counter()
        """The number of replies per request."""
        self._ids = itertools.count(1)

    async def call(self, name: str, arguments: Any = None) -> Any:
        """Call a tool and wait for the result."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return (await self.begin(name, arguments)[1])["result"]

    def begin(self, name: str, arguments: Any = None) -> "tuple[int, asyncio.Future[Any]]":
        """Call a tool and return the id of the request with its future reply, or None if there is none."""
        number = next(self._ids)
        meta = {"progressToken": number} if self.handshake else {**META, "progressToken": number}
        body = message("tools/call", {"name": name, "arguments": arguments or {}, "_meta": meta}, id=number)
        return number, self.send(number, name, body)

    @abstractmethod
    def send(self, number: int, name: str, body: bytes) -> "asyncio.Future[Any]":
        """Send a call."""

    @abstractmethod
    async def cancel(self, number: int) -> None:
        """Cancel a call."""

    def note(self, reply: Any) -> Any:
        """Count a reply."""
        self.answers[reply["id"]] += 1
        return reply


class StreamWire(Wire):
    """A client with one stream for all messages."""

    def __init__(
        self, say: Callable[[bytes], object], hear: Callable[[], Awaitable[bytes]], *, handshake: bool
    ) -> None:
        super().__init__(handshake=handshake)
        self._say = say
        self._hear = hear
        self._pending: dict[Any, asyncio.Future[Any]] = {}
        self._reading: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start reading, after the handshake if there is one."""
        self._reading = asyncio.ensure_future(self._read())
        if self.handshake:
            initialize = self.send(0, "", message("initialize", INITIALIZE, id=0))
            await asyncio.wait_for(initialize, PATIENCE_SECONDS)
            self._say(message("notifications/initialized", id=None))

    def send(self, number: int, name: str, body: bytes) -> "asyncio.Future[Any]":
        reply = self._pending[number] = asyncio.get_running_loop().create_future()
        self._say(body)
        return reply

    async def cancel(self, number: int) -> None:
        """Send a cancellation, which gets no reply."""
        self._say(message("notifications/cancelled", {"requestId": number}, id=None))
        reply = self._pending.get(number)
        if reply is not None and not reply.done():
            reply.set_result(None)

    async def close(self) -> None:
        assert self._reading is not None
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading

    async def _read(self) -> None:
        while True:
            said = json.loads(await self._hear())
            if "id" in said and "method" not in said:
                self.note(said)
                reply = self._pending.pop(said["id"])
                if not reply.done():
                    reply.set_result(said)


class HttpWire(Wire):
    """A client with one HTTP request per call."""

    def __init__(self, http: httpx2.AsyncClient, url: str, *, handshake: bool) -> None:
        super().__init__(handshake=handshake)
        self._http = http
        self._url = url
        self._session: dict[str, str] = {}
        self._running: dict[int, asyncio.Task[Any]] = {}

    async def open(self) -> None:
        """Start a session if the era has one."""
        if self.handshake:
            reply = await self._post(message("initialize", INITIALIZE, id=0), JSON_HEADERS)
            self._session = {"Mcp-Session-Id": reply.headers["mcp-session-id"]}
            await self._post(message("notifications/initialized", id=None), JSON_HEADERS)

    def send(self, number: int, name: str, body: bytes) -> "asyncio.Future[Any]":
        headers = JSON_HEADERS if self.handshake else mirrored(name=name)
        running = self._running[number] = asyncio.ensure_future(self._ask(body, headers))
        return running

    async def cancel(self, number: int) -> None:
        """Send a cancellation in a session; otherwise close the connection."""
        if self.handshake:
            await self._post(message("notifications/cancelled", {"requestId": number}, id=None), JSON_HEADERS)
        else:
            self._running[number].cancel()

    async def _ask(self, body: bytes, headers: Any) -> Any:
        try:
            text = (await self._post(body, headers)).text
        except asyncio.CancelledError:
            return None
        replies = [json.loads(part) for part in _messages(text)]
        answers = [self.note(reply) for reply in replies if "id" in reply]
        return answers[0] if answers else None

    async def _post(self, body: bytes, headers: Any) -> httpx2.Response:
        return await self._http.post(self._url, content=body, headers={**headers, **self._session})


def _messages(text: str) -> list[str]:
    if not text.startswith(("event:", "id:", ":", "data:")):
        return [text] if text else []
    return [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]


@asynccontextmanager
async def wire_to(way: str, container: type[containers.DeclarativeContainer]) -> AsyncIterator[Wire]:
    """Serve a container over a transport and connect to it."""
    transport, _, era = way.partition(", ")
    handshake = era == "handshake"
    if transport == "memory":
        opened = _by_memory(container, handshake)
    elif transport == "http":
        opened = _by_http(container, handshake)
    else:
        opened = _by_stdio(f"{container.__module__}:{container.__name__}", handshake)
    async with opened as wire:
        try:
            yield wire
        finally:
            let_go()


@asynccontextmanager
async def _by_memory(container: type[containers.DeclarativeContainer], handshake: bool) -> AsyncIterator[Wire]:
    async with ServerHost(container()) as host:
        transport = MemoryTransport(host.handler)
        wire = StreamWire(transport.send, transport.receive, handshake=handshake)
        await wire.open()
        yield wire
        await transport.close()
        await wire.close()


@asynccontextmanager
async def _by_stdio(target: str, handshake: bool) -> AsyncIterator[Wire]:
    async with starting(target) as server:
        wire = StreamWire(server.say, server.hear_line, handshake=handshake)
        await wire.open()
        yield wire
        await wire.close()
        code, rest, _ = await server.end()
        assert (code, rest) == (0, [])


@asynccontextmanager
async def _by_http(container: type[containers.DeclarativeContainer], handshake: bool) -> AsyncIterator[Wire]:
    limits = httpx2.Limits(max_connections=None)
    async with serving(container()) as server, httpx2.AsyncClient(timeout=PATIENCE_SECONDS, limits=limits) as http:
        wire = HttpWire(http, server.url, handshake=handshake)
        await wire.open()
        yield wire
