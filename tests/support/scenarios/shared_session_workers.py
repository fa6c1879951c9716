"""Tools, clients and fixtures for shared sessions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from pydantic import BaseModel

from axolotl_core import Context, ITool, resource, tool
from axolotl_core.policies.access import ITokenVerifier
from tests.support.peers.memory_peer import ABLE, container_with
from tests.support.peers.session_client import Client, EventReader
from tests.support.peers.wire import call
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving
from tests.support.stores.redis_server import RedisServer
from tests.support.tools import ask_name

GONE = (404, "Session not found: it has ended, initialize again")


class Told(BaseModel):
    name: str = ""


class Talker(ITool[Told, str]):
    """Sends messages as the test requests, then ends."""

    name = "talker"

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget earlier calls."""
        self.contexts: list[Context] = []
        self.end = asyncio.Event()
        self.stopped = asyncio.Event()

    async def execute(self, arguments: Told, context: Context) -> str:
        self.contexts.append(context)
        context.report_progress(1)
        try:
            await self.end.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return "done"

    def say(self, progress: int) -> None:
        """Report progress in the latest call."""
        self.contexts[-1].report_progress(progress)


@tool
async def mutter(context: Context) -> str:
    """Log something."""
    context.log("debug", "well")
    return "done"


@resource("note://one")
async def note() -> str:
    """Give a note."""
    return "note"


@dataclass
class Worker:
    """One of the processes."""

    server: HttpServer
    talker: Talker


@asynccontextmanager
async def working(
    redis: RedisServer,
    prefix: str,
    verifier: ITokenVerifier | None = None,
    store_timeout_seconds: float = PATIENCE_SECONDS,
    **sessions: Any,
) -> AsyncIterator[Worker]:
    """Serve like a separate process."""
    talker = Talker()
    container = container_with((talker, ask_name, mutter), resources=(note,))
    settings = {"redis": {"url": redis.url, "prefix": prefix}, "sessions": sessions}
    roles: dict[str, Any] = {} if verifier is None else {"token_verifier": verifier}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("axolotl_server.sessions.sessions.STORE_TIMEOUT_SECONDS", store_timeout_seconds)
        patch.setattr("axolotl_server.protocol.request.PROGRESS_PER_SECOND", 1_000_000)
        async with serving(container, settings, **roles) as server:
            yield Worker(server, talker)


@pytest_asyncio.fixture(loop_scope="module")
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client."""
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as client:
        yield client


class Traveller(Client):
    """A client with a session whose requests can go to any process."""

    def at(self, worker: Worker) -> "Traveller":
        """The same client, connected to another process."""
        same = Traveller(self.http, worker.server.url)
        same.headers = self.headers
        return same


async def begun(http: httpx2.AsyncClient, worker: Worker, version: str = "2025-11-25") -> Traveller:
    client = Traveller(http, worker.server.url)
    await client.begin(version, **ABLE)
    return client


def refusal(reply: httpx2.Response) -> tuple[int, str]:
    return reply.status_code, reply.json()["error"]["message"]


def talk(id: int = 1) -> bytes:
    return call("talker", {}, id=id, token="token", handshake=True)


async def progress(stream: EventReader) -> int:
    """Read the next progress event, skipping events without data."""
    event = await stream.take()
    event = await stream.take() if event.is_priming else event
    told: int = event.message["params"]["progress"]
    return told
