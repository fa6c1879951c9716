"""Waiting for the result of a task over HTTP."""

import asyncio
import json
from typing import Any

from axolotl_server.extensions.tasks.task_followers import Waiter
from tests.support.peers.session_client import Client, EventReader
from tests.support.peers.wire import JSON_HEADERS, message
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer


async def begin(client: Client, name: str, **params: Any) -> str:
    """Request a task and return its id."""
    reply = await client.post(message("tools/call", {"name": name, "task": {}, **params}))
    return str(reply.json()["result"]["task"]["taskId"])


def fetching(task_id: str, id: int = 7) -> bytes:
    """Build a request for the result of a task."""
    return message("tasks/result", {"taskId": task_id}, id=id)


class Waiting:
    """A pending request for a result, and the messages until its end."""

    def __init__(self, client: Client, task_id: str, id: int = 7) -> None:
        self.told: asyncio.Queue[Any] = asyncio.Queue()
        self.last_event_id: str | None = None
        self.request = asyncio.ensure_future(self._run(client, fetching(task_id, id)))

    async def next(self) -> Any:
        """Wait for the next message; None means the end."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.told.get()

    async def rest(self) -> list[Any]:
        """Wait for all remaining messages."""
        messages = []
        while (said := await self.next()) is not None:
            messages.append(said)
        return messages

    async def leave(self) -> None:
        """Close the connection."""
        self.request.cancel()
        await asyncio.wait([self.request])

    async def _run(self, client: Client, body: bytes) -> None:
        headers = {**JSON_HEADERS, **client.headers}
        async with client.http.stream("POST", client.url, content=body, headers=headers) as response:
            if response.headers.get("content-type") == "text/event-stream":
                stream = EventReader(response)
                while (event := await stream.next()) is not None:
                    self.last_event_id = event.id
                    if event.data:
                        self.told.put_nowait(event.message)
            elif response.status_code == 200:
                self.told.put_nowait(json.loads(await response.aread()))
        self.told.put_nowait(None)


def requests_of(server: HttpServer) -> set[Any]:
    """Return the ids of the requests that run in sessions."""
    return {number for session in server.app.sessions._by_id.values() for number in session.calls}


def is_lost(server: HttpServer, number: int) -> bool:
    """Return whether the server has noticed that a waiting client disconnected."""
    (waiter,) = [session.calls[number] for session in server.app.sessions._by_id.values() if number in session.calls]
    assert isinstance(waiter, Waiter)
    return waiter.lost
