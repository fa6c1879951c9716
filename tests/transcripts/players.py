"""The client's side of a transcript, over each transport."""

import asyncio
import base64
import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import httpx2

from axolotl_core.protocol.versions import Revision
from axolotl_server import ServerHost
from tests.support.peers.memory_transport import MemoryTransport
from tests.support.servers.server_process import ServerProcess, start_process
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.transcripts.transcript import Act, Transcript


@dataclass(frozen=True)
class Received:
    """A message of the server, with its HTTP status."""

    message: Any
    status: int | None = None


class Player(ABC):
    """Plays the client; after the end of the connection, it still returns the server's last messages."""

    @abstractmethod
    async def send(self, data: bytes) -> int | None:
        """Send a message; returns the HTTP status of a reply without a body."""

    @abstractmethod
    async def receive(self) -> Received:
        """Wait for the server's next message."""

    @abstractmethod
    async def do(self, act: Act) -> None:
        """Perform an action that is not a message."""

    @abstractmethod
    async def finish(self) -> list[Received]:
        """End the connection and return all unexpected messages."""

    async def give_up(self) -> None:
        """Stop a failed play."""
        await self.finish()


class StreamPlayer(Player):
    """Plays over one stream in each direction."""

    def __init__(self) -> None:
        self._last_words: list[Received] | None = None

    async def do(self, act: Act) -> None:
        if act.name == "end":
            self._last_words = await self.close()

    async def receive(self) -> Received:
        if self._last_words is None:
            return await self.next()
        assert self._last_words, "the server says no more"
        return self._last_words.pop(0)

    async def finish(self) -> list[Received]:
        return await self.close() if self._last_words is None else self._last_words

    @abstractmethod
    async def next(self) -> Received:
        """Wait for the next message of an open connection."""

    @abstractmethod
    async def close(self) -> list[Received]:
        """End the connection and return the server's last messages."""


class MemoryPlayer(StreamPlayer):
    """Plays against a handler in this process."""

    def __init__(self, host: ServerHost) -> None:
        super().__init__()
        self._host = host
        self._transport = MemoryTransport(host.handler)

    @classmethod
    async def start(cls, transcript: Transcript) -> "MemoryPlayer":
        host = ServerHost(transcript.container_class()())
        await host.start()
        return cls(host)

    async def send(self, data: bytes) -> int | None:
        self._transport.send(data)
        return None

    async def next(self) -> Received:
        return Received(_decoded(await self._transport.receive()))

    async def close(self) -> list[Received]:
        await asyncio.sleep(0)  # so that sent messages have arrived
        rest = await self._transport.close(PATIENCE_SECONDS)
        assert not len(self._host.handler.inflight), "a call is still in flight"
        await self._host.stop()
        return [Received(_decoded(message)) for message in rest]


class StdioPlayer(StreamPlayer):
    """Plays against a process."""

    def __init__(self, server: ServerProcess) -> None:
        super().__init__()
        self._server = server

    @classmethod
    async def start(cls, target: str, **environment: str) -> "StdioPlayer":
        return cls(await start_process(target, **environment))

    async def send(self, data: bytes) -> int | None:
        self._server.say(data)
        return None

    async def next(self) -> Received:
        line = await self._server.hear_line()
        assert line, "the server has ended"
        return Received(_decoded(line))

    async def close(self) -> list[Received]:
        self._server.stdin.close()
        rest = []
        try:
            while line := await self._server.hear_line():
                rest.append(Received(_decoded(line)))
            code = await self._server.ended()
        finally:
            await self._server.close()
        assert code == 0, f"the server ended with {code}: {self._server.log}"
        return rest


class HttpPlayer(Player):
    """Plays against an HTTP server: keeps the session of a handshake, and mirrors stateless requests in headers."""

    def __init__(self, url: str, revision: Revision) -> None:
        self._client = httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS)
        self._url = url
        self._revision = revision
        self._session: dict[str, str] = {}
        self._inbox: asyncio.Queue[Received | BaseException] = asyncio.Queue()
        self._posts: list[tuple[Any, asyncio.Task[int | None]]] = []
        self._news: asyncio.Task[None] | None = None

    async def send(self, data: bytes) -> int | None:
        """Post a message; only requests are answered later."""
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            message = None
        post = asyncio.ensure_future(self._post(data, message))
        if _is_request(message):
            self._posts.append((message, post))
            post.add_done_callback(self._note_failure)
            return None
        return await post

    async def receive(self) -> Received:
        received = await self._inbox.get()
        if isinstance(received, BaseException):
            raise received
        return received

    async def do(self, act: Act) -> None:
        if act.name == "listen":
            listening = asyncio.Event()
            self._news = asyncio.ensure_future(self._listen(listening))
            await listening.wait()
        elif act.name == "leave":
            await self._leave(act.request_id)

    async def finish(self) -> list[Received]:
        await asyncio.gather(*(post for _, post in self._posts))
        if self._session:
            assert (await self._client.delete(self._url, headers=self._session)).status_code == 200
        if self._news is not None:
            await self._news
        await self._client.aclose()
        rest = [self._inbox.get_nowait() for _ in range(self._inbox.qsize())]
        return [received for received in rest if isinstance(received, Received)]

    async def give_up(self) -> None:
        for task in filter(None, (*(post for _, post in self._posts), self._news)):
            await _ended(task)
        await self._client.aclose()

    def _note_failure(self, post: "asyncio.Task[int | None]") -> None:
        """Wake up a waiting reader when a request fails."""
        error = None if post.cancelled() else post.exception()
        if error is not None:
            self._inbox.put_nowait(error)

    async def _leave(self, request_id: Any) -> None:
        entry = next(one for one in reversed(self._posts) if isinstance(one[0], dict) and one[0]["id"] == request_id)
        self._posts.remove(entry)
        await _ended(entry[1])

    async def _listen(self, listening: asyncio.Event) -> None:
        headers = {"Accept": "text/event-stream", **self._session}
        async with self._client.stream("GET", self._url, headers=headers) as response:
            assert response.status_code == 200, f"GET has the status {response.status_code}"
            listening.set()
            await self._read_events(response)

    async def _post(self, data: bytes, message: Any) -> int | None:
        headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        headers |= self._session | self._mirrored(message)
        async with self._client.stream("POST", self._url, content=data, headers=headers) as response:
            self._keep_session(response, message)
            if response.headers.get("content-type") == "text/event-stream":
                await self._read_events(response)
                return None
            body = await response.aread()
            if not body:
                return response.status_code
            assert response.headers["content-type"] == "application/json"
            received = Received(_decoded(body), response.status_code)
            self._negotiated(received.message)
            self._inbox.put_nowait(received)
            return None

    async def _read_events(self, response: httpx2.Response) -> None:
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                self._inbox.put_nowait(Received(_decoded(line[6:]), response.status_code))

    def _keep_session(self, response: httpx2.Response, message: Any) -> None:
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
            case {"method": "tools/call" | "prompts/get", "params": {"name": str() as name}}:
                mirrored["Mcp-Name"] = _header_value(name)
            case {"method": "resources/read", "params": {"uri": str() as uri}}:
                mirrored["Mcp-Name"] = _header_value(uri)
        match message:
            case {"method": str() as method}:
                mirrored["Mcp-Method"] = _header_value(method)
        return mirrored


def _decoded(data: bytes | str) -> Any:
    """Decode a message of the server and reject repeated members."""
    return json.loads(data, object_pairs_hook=_members)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    assert len(members) == len(pairs), f"a member stands twice among {[name for name, _ in pairs]}"
    return members


def _header_value(text: str) -> str:
    if text.isascii() and text.isprintable() and text == text.strip():
        return text
    encoded = base64.b64encode(text.encode(errors="replace")).decode()
    return f"=?base64?{encoded}?="


def _is_request(message: Any) -> bool:
    if isinstance(message, list):
        return any(map(_is_request, message))
    return isinstance(message, dict) and "method" in message and "id" in message


async def _ended(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
