"""Tools, clients and fixtures for directed tasks."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any

import httpx2
import pytest
import pytest_asyncio
from pydantic import BaseModel, Field

from axolotl_core import ToolContext, tool
from axolotl_server import ServerHost
from tests.support.peers.task_peers import (
    CAPABILITIES_KEY,
    EXTENSION,
    DirectedPeer,
    Herald,
    Job,
)
from tests.support.peers.wire import META, message, mirrored
from tests.support.scenarios.task_tools import break_off, crash, greet, mumble, refuse
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving
from tests.support.tools import Echo, container_of

REQUIRED: Any = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}


class Decision(BaseModel):
    """Whether to go on."""

    confirm: bool


@tool(task_support="optional")
async def inquire(context: ToolContext) -> str:
    """Ask before anything is done."""
    return f"confirmed: {(await context.ask(Decision, 'Sure?', key='sure')).confirm}"


@tool(task_support="optional")
async def routed(tenant: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Tenant"})]) -> str:
    """Take an argument that is repeated in a header."""
    return f"for {tenant}"


@tool(task_support="optional")
async def traced(context: ToolContext) -> str:
    """Say which trace the call belongs to."""
    return "none" if context.trace is None else context.trace.traceparent


@pytest.fixture
def job() -> Job:
    """A tool that runs until it is released."""
    return Job()


@pytest_asyncio.fixture
async def host(job: Job) -> AsyncIterator[ServerHost]:
    """A server with tools for which tasks are optional, forbidden or required."""
    tools = (job, greet, refuse, crash, break_off, mumble, inquire, Echo(), Job("must", "required"), Herald("herald"))
    async with ServerHost(container_of(*tools), flags={"tasks": {"ttl_seconds": 600}}) as host:
        yield host


@pytest_asyncio.fixture
async def plain(host: ServerHost) -> DirectedPeer:
    """A client that does not."""
    return DirectedPeer(host, capabilities={})


def content_of(result: Mapping[str, Any]) -> str:
    return str(result["content"][0]["text"])


@pytest_asyncio.fixture
async def server(job: Job) -> AsyncIterator[HttpServer]:
    """An HTTP server."""
    settings = {"http": {"watch_after_seconds": 0.001}}
    async with serving(container_of(job, greet, routed, traced, Job("must", "required")), settings) as running:
        yield running


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client."""
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as client:
        yield client


class Poster:
    """A client that supports tasks, over HTTP."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self._http = http
        self._url = url

    def written(self, method: str, params: Mapping[str, Any], **capabilities: Any) -> bytes:
        """Encode a request."""
        known = capabilities or {"extensions": {EXTENSION: {}}}
        meta = {**META, CAPABILITIES_KEY: known, **params.get("_meta", {})}
        return message(method, {**params, "_meta": meta})

    async def post(self, method: str, params: Mapping[str, Any], name: str | None = None, **headers: str) -> Any:
        """Send a request with its headers; the name in the header can differ."""
        named = name or params.get("taskId") or params.get("name")
        sent = {**mirrored(method, named), **headers}
        return await self._http.post(self._url, content=self.written(method, params), headers=sent)


@pytest_asyncio.fixture
async def poster(server: HttpServer, http: httpx2.AsyncClient) -> Poster:
    """A client."""
    return Poster(http, server.url)


async def ended(poster: Poster, task_id: str) -> Any:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            state = (await poster.post("tasks/get", {"taskId": task_id})).json()["result"]
            if state["status"] != "working":
                return state
