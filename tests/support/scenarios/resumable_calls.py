"""Tools, clients and fixtures for resumption."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from pydantic import BaseModel

from axolotl_core import Context, ITool
from axolotl_server.stores.memory_events import MemoryEventStore
from tests.support.peers.session_client import Client, Event
from tests.support.peers.wire import call
from tests.support.servers.serving import HttpServer, serving
from tests.support.tools import container_of


class Told(BaseModel):
    name: str = ""


class Talker(ITool[Told, str]):
    """Sends messages as the test requests, then ends."""

    name = "talker"

    def __init__(self) -> None:
        self.calls: dict[str, tuple[Context, asyncio.Event]] = {}

    async def execute(self, arguments: Told, context: Context) -> str:
        context.report_progress(1)
        end = asyncio.Event()
        self.calls[arguments.name] = context, end
        await end.wait()
        return f"done {arguments.name}"

    def say(self, progress: int, name: str = "") -> None:
        """Report progress in a call."""
        self.calls[name][0].report_progress(progress)

    def end(self, name: str = "") -> None:
        """End a call."""
        self.calls[name][1].set()


def talk(name: str = "", id: int = 1) -> bytes:
    return call("talker", {"name": name}, id=id, token=f"token {name}", handshake=True)


def said(events: Sequence[Event]) -> list[Any]:
    """Return the progress or text of each event."""
    told = []
    for event in events:
        body = event.message
        told.append(body["params"]["progress"] if "params" in body else body["result"]["content"][0]["text"])
    return told


@pytest.fixture
def talker() -> Talker:
    """A tool that sends messages on request."""
    return Talker()


@pytest.fixture
def store() -> MemoryEventStore:
    """The event store."""
    return MemoryEventStore(1000, 1_000_000)


@pytest_asyncio.fixture
async def server(talker: Talker, store: MemoryEventStore) -> AsyncIterator[HttpServer]:
    """A server with that store."""
    async with serving(container_of(talker), event_store=store) as running:
        yield running


@pytest_asyncio.fixture
async def client(server: HttpServer, http: httpx2.AsyncClient) -> Client:
    """A client with a session."""
    client = Client(http, server.url)
    await client.begin()
    return client
