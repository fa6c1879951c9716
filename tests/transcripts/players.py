"""The client's side of a transcript, over each transport."""

import asyncio
import base64
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import httpx

from axolotl_core.protocol.versions import Revision
from axolotl_server import ServerHost
from axolotl_server.transports.memory import MemoryTransport
from tests.server.serving import PATIENCE_SECONDS, StdioServer, StdioServers
from tests.transcripts import tools


@dataclass(frozen=True)
class Received:
    """A message of the server, with the HTTP status it came with."""

    message: Any
    status: int | None = None


class Player(ABC):
    """Speaks for the client."""

    @abstractmethod
    async def send(self, data: bytes) -> int | None:
        """Send a message; gives the HTTP status where the reply to it has no body."""

    @abstractmethod
    async def receive(self) -> Received:
        """Wait for the server's next message."""

    @abstractmethod
    async def finish(self) -> list[Received]:
        """End the connection; gives what the server said and nobody asked for."""


class MemoryPlayer(Player):
    """Plays against a handler in this process."""

    def __init__(self, host: ServerHost) -> None:
        self._host = host
        self._transport = MemoryTransport(host.handler)

    @classmethod
    async def start(cls, container: str) -> "MemoryPlayer":
        host = ServerHost(getattr(tools, container)())
        await host.start()
        return cls(host)

    async def send(self, data: bytes) -> int | None:
        self._transport.send(data)
        return None

    async def receive(self) -> Received:
        return Received(json.loads(await self._transport.receive()))

    async def finish(self) -> list[Received]:
        rest = await self._transport.close(PATIENCE_SECONDS)
        assert not len(self._host.handler.inflight), "a call is still in flight"
        await self._host.stop()
        return [Received(json.loads(message)) for message in rest]


class StdioPlayer(Player):
    """Plays against a process."""

    def __init__(self, process: StdioServer) -> None:
        self._process = process

    @classmethod
    async def start(cls, container: str, servers: StdioServers) -> "StdioPlayer":
        return cls(await servers.start(f"tests/transcripts/tools.py:{container}"))

    async def send(self, data: bytes) -> int | None:
        self._process.send(data)
        return None

    async def receive(self) -> Received:
        return Received(json.loads(await self._process.receive()))

    async def finish(self) -> list[Received]:
        code, rest = await self._process.close()
        assert code == 0, f"the server ended with {code}"
        return [Received(json.loads(line)) for line in rest.splitlines()]


class HttpPlayer(Player):
    """Plays against a server that listens: keeps the session of a handshake, mirrors what a stateless request says."""

    def __init__(self, url: str, revision: Revision) -> None:
        self._client = httpx.AsyncClient(verify=False, timeout=PATIENCE_SECONDS)
        self._url = url
        self._revision = revision
        self._session: dict[str, str] = {}
        self._inbox: asyncio.Queue[Received] = asyncio.Queue()
        self._posts: list[asyncio.Task[int | None]] = []

    async def send(self, data: bytes) -> int | None:
        """Post a message; only requests are answered later, anything else at once."""
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            message = None
        post = asyncio.ensure_future(self._post(data, message))
        if _is_request(message):
            self._posts.append(post)
            return None
        return await post

    async def receive(self) -> Received:
        return await self._inbox.get()

    async def finish(self) -> list[Received]:
        await asyncio.gather(*self._posts)
        if self._session:
            assert (await self._client.delete(self._url, headers=self._session)).status_code == 204
        await self._client.aclose()
        return [self._inbox.get_nowait() for _ in range(self._inbox.qsize())]

    async def _post(self, data: bytes, message: Any) -> int | None:
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        headers |= self._session | self._mirrored(message)
        async with self._client.stream("POST", self._url, content=data, headers=headers) as response:
            self._keep_session(response, message)
            if response.headers.get("content-type") == "text/event-stream":
                async for line in response.aiter_lines():
                    if line.startswith("data: "):
                        self._inbox.put_nowait(Received(json.loads(line[6:]), response.status_code))
                return None
            body = await response.aread()
            if not body:
                return response.status_code
            assert response.headers["content-type"] == "application/json"
            received = Received(json.loads(body), response.status_code)
            self._negotiated(received.message)
            self._inbox.put_nowait(received)
            return None

    def _keep_session(self, response: httpx.Response, message: Any) -> None:
        begun = response.headers.get("mcp-session-id")
        if begun is not None:
            assert message["method"] == "initialize", "only a handshake begins a session"
            self._session["Mcp-Session-Id"] = begun

    def _negotiated(self, message: Any) -> None:
        match message:
            case {"result": {"protocolVersion": "2025-06-18" | "2025-11-25" as version}}:
                self._session["MCP-Protocol-Version"] = version

    def _mirrored(self, message: Any) -> dict[str, str]:
        match message:
            case {"params": {"_meta": {"io.modelcontextprotocol/protocolVersion": str() as claim}}}:
                mirrored = {"MCP-Protocol-Version": claim}
            case _ if self._revision.stateless:
                mirrored = {"MCP-Protocol-Version": self._revision.name}
            case _:
                return {}
        match message:
            case {"method": "tools/call", "params": {"name": str() as name}}:
                mirrored["Mcp-Name"] = _header_value(name)
        match message:
            case {"method": str() as method}:
                mirrored["Mcp-Method"] = _header_value(method)
        return mirrored


def _header_value(text: str) -> str:
    if text.isascii() and text.isprintable() and text == text.strip():
        return text
    encoded = base64.b64encode(text.encode(errors="replace")).decode()
    return f"=?base64?{encoded}?="


def _is_request(message: Any) -> bool:
    if isinstance(message, list):
        return any(map(_is_request, message))
    return isinstance(message, dict) and "method" in message and "id" in message
