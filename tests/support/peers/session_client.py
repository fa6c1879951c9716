"""An HTTP client with a session, and a reader of event streams."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY
from tests.support.peers.wire import INITIALIZE, JSON_HEADERS, META, message, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS

INITIALIZED = message("notifications/initialized", id=None)


@dataclass
class Event:
    """A server-sent event."""

    id: str | None = None
    name: str | None = None
    data: str | None = None
    retry: int | None = None

    @property
    def message(self) -> Any:
        """The JSON message of the event."""
        assert self.data, f"{self} holds no message"
        return json.loads(self.data)

    @property
    def is_priming(self) -> bool:
        """Whether the event has only an id."""
        return self.id is not None and self.data == ""


class EventReader:
    """Reads the events of a response and skips comments."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> Event | None:
        """Wait for the next event; None means the end of the stream."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE_SECONDS):
            async for line in self._lines:
                if line and not line.startswith(":"):
                    name, _, value = line.partition(":")
                    fields[name] = value.removeprefix(" ")
                elif fields:
                    retry = fields.get("retry")
                    return Event(fields.get("id"), fields.get("event"), fields.get("data"), retry and int(retry))  # type: ignore[arg-type]
        assert not fields, f"the stream ended within {fields}"
        return None

    async def take(self) -> Event:
        """Wait for the next event, which must exist."""
        event = await self.next()
        assert event is not None, "the stream ended"
        return event

    async def rest(self) -> list[Event]:
        """Read to the end."""
        events = []
        while (event := await self.next()) is not None:
            events.append(event)
        return events


class Client:
    """A client with a session, or with an envelope in every request."""

    def __init__(self, http: httpx2.AsyncClient, url: str, **capabilities: Any) -> None:
        self.http = http
        self.url = url
        self.headers: dict[str, str] = {}
        self.capabilities = capabilities
        """What a stateless client supports."""

    async def post(self, body: bytes, **headers: str) -> httpx2.Response:
        """Send a message and read the whole reply."""
        return await self.http.post(self.url, content=body, headers={**JSON_HEADERS, **self.headers, **headers})

    async def begin(self, version: str = "2025-11-25", **capabilities: Any) -> httpx2.Response:
        """Perform the handshake."""
        params = {**INITIALIZE, "protocolVersion": version, "capabilities": capabilities}
        reply = await self.post(message("initialize", params))
        if "mcp-session-id" in reply.headers:
            self.headers = {"Mcp-Session-Id": reply.headers["mcp-session-id"]}
            assert (await self.post(INITIALIZED)).status_code == 202
        return reply

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Any:
        """Send a request in the session and return its result."""
        reply = await self.post(message(method, params))
        assert reply.status_code == 200, reply.text
        return reply.json()["result"]

    async def answer(self, question: Any, result: Any) -> int:
        """Answer a question of the server and return the HTTP status."""
        body = json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}).encode()
        return (await self.post(body)).status_code

    def stateless(self, method: str, params: Mapping[str, Any]) -> bytes:
        """Encode a stateless request."""
        meta = {**META, CLIENT_CAPABILITIES_KEY: self.capabilities, **params.get("_meta", {})}
        return message(method, {**params, "_meta": meta})

    async def request(self, method: str, params: Mapping[str, Any], **headers: str) -> httpx2.Response:
        """Send a stateless request with the headers that repeat parts of it."""
        name = params.get("taskId") or params.get("uri") or params.get("name")
        return await self.post(self.stateless(method, params), **{**mirrored(method, name), **headers})

    async def end(self) -> httpx2.Response:
        """End the session."""
        return await self.http.delete(self.url, headers=self.headers)

    def listen(self, **headers: str) -> Any:
        """Open a stream with GET."""
        return self.http.stream("GET", self.url, headers={"Accept": "text/event-stream", **self.headers, **headers})

    @asynccontextmanager
    async def calling(self, body: bytes) -> AsyncIterator[EventReader]:
        """Post a request whose reply is a stream, and disconnect when the block ends."""
        headers = {**JSON_HEADERS, **self.headers}
        async with self.http.stream("POST", self.url, content=body, headers=headers) as response:
            assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream")
            yield EventReader(response)

    @asynccontextmanager
    async def hearing(self, last_event_id: str | None = None) -> AsyncIterator[EventReader]:
        """Open a stream, or resume it after an event."""
        async with self.listen(**({} if last_event_id is None else {"Last-Event-ID": last_event_id})) as response:
            assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream")
            yield EventReader(response)
