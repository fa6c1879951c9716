"""Tools, clients and fixtures for requested tasks."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from axolotl_core import ToolResult, tool
from axolotl_core.content import TextContent
from axolotl_server import ServerHost
from tests.support.peers.session_client import Client
from tests.support.peers.task_peers import RELATED, Herald, Job, RequestingPeer
from tests.support.scenarios.task_tools import break_off, crash, greet, mumble, refuse
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving
from tests.support.tools import Echo, container_of


@tool(task_support="optional")
async def whole() -> ToolResult:
    """Return a result with every member, including very large numbers."""
    return ToolResult((TextContent("x"),), {"big": 2**80, "half": 0.5}, meta={"example.com/own": 1})


@tool(task_support="optional", timeout_seconds=0.01)
async def overrun() -> None:
    """Exceed the timeout."""
    await asyncio.Event().wait()


FAILING = (refuse, crash, break_off, mumble, overrun)


@pytest.fixture
def job() -> Job:
    """A tool that runs until it is released."""
    return Job()


@pytest_asyncio.fixture
async def host(job: Job) -> AsyncIterator[ServerHost]:
    """A server with tools for which tasks are optional, forbidden or required."""
    tools = (job, greet, whole, *FAILING, Echo(), Job("must", "required"), Herald("herald"))
    async with ServerHost(container_of(*tools), flags={"tasks": {"ttl_seconds": 600}}) as host:
        yield host


@pytest_asyncio.fixture
async def peer(host: ServerHost) -> RequestingPeer:
    """A client after the handshake."""
    return await RequestingPeer.connect(host)


def has_related(message: Any) -> bool:
    return RELATED in json.dumps(message)


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client."""
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as client:
        yield client


@pytest_asyncio.fixture
async def herald() -> Herald:
    """A tool that sends progress and log messages."""
    return Herald("herald")


@pytest_asyncio.fixture
async def server(herald: Herald, job: Job) -> AsyncIterator[HttpServer]:
    """An HTTP server."""
    async with serving(container_of(herald, job, greet)) as running:
        yield running


@pytest_asyncio.fixture
async def client(server: HttpServer, http: httpx2.AsyncClient) -> Client:
    """A client with a session."""
    client = Client(http, server.url)
    await client.begin()
    return client
