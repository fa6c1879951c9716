"""Connecting a client over a route, with a simulated user."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import fastmcp
import mcp
from fastmcp.client.transports import ClientTransport, SSETransport, StdioTransport, StreamableHttpTransport
from mcp import StdioServerParameters
from mcp.client import ClientRequestContext, Transport, advertise
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    CreateMessageRequestParams,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    ListRootsResult,
    Root,
    SamplingCapability,
    SamplingToolsCapability,
)

from tests.support.clients.client_adapters import FastPeer, IPeer, OfficialPeer
from tests.support.clients.client_routes import Way
from tests.support.clients.http_recorder import Wire
from tests.support.clients.simulated_user import Person, Written
from tests.support.clients.task_extension import TaskExtension
from tests.support.servers.serving import PATIENCE_SECONDS

APPS = {"mimeTypes": ["text/html;profile=mcp-app"]}
_CLIENT = Implementation(name="tester", version="7")
_SAMPLING = SamplingCapability(tools=SamplingToolsCapability())


@dataclass(frozen=True)
class Places:
    """The addresses of a server, by transport."""

    url: str
    sse_url: str
    command: tuple[str, list[str], str]
    """A program, its arguments and its working directory."""


@asynccontextmanager
async def connected(way: Way, places: Places) -> AsyncIterator[IPeer]:
    """Connect; over HTTP, wait until the server can send notifications."""
    wire, person, tasks = Wire(), Person(), TaskExtension()
    async with AsyncExitStack() as stack:
        peer: IPeer
        if way.library == "official":
            opened = await _official_transport(way, places, wire, stack)
            client = mcp.Client(opened, **_official_options(way, person, tasks))
            peer = OfficialPeer(way, person, wire, tasks, await stack.enter_async_context(client))
        else:
            fast = fastmcp.Client(_fast_transport(way, places, wire), **_fast_options(way, person, tasks))
            peer = FastPeer(way, person, wire, tasks, await stack.enter_async_context(fast))
        if way.transport == "http" and not way.stateless:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await wire.listening.wait()
        yield peer


async def _official_transport(
    way: Way, places: Places, wire: Wire, stack: AsyncExitStack
) -> Transport | StdioServerParameters:
    if way.transport == "sse":
        return sse_client(places.sse_url)
    if way.transport == "http":
        http_client = await stack.enter_async_context(wire.http_client())
        return streamable_http_client(places.url, http_client=http_client)
    program, arguments, directory = places.command
    return StdioServerParameters(command=program, args=arguments, cwd=directory)


def _fast_transport(way: Way, places: Places, wire: Wire) -> ClientTransport:
    if way.transport == "sse":
        return SSETransport(places.sse_url)
    if way.transport == "http":
        return StreamableHttpTransport(places.url, httpx_client_factory=wire.http_client)
    program, arguments, directory = places.command
    return StdioTransport(program, arguments, cwd=directory, keep_alive=False)


def _official_options(way: Way, person: Person, tasks: TaskExtension) -> Mapping[str, Any]:
    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return await person.elicit(params)

    async def sample(context: ClientRequestContext, params: CreateMessageRequestParams) -> Written:
        return await person.sample(params)

    async def roots(context: ClientRequestContext) -> ListRootsResult:
        return ListRootsResult(roots=list(await person.show_roots()))

    return {
        "mode": way.mode,
        "read_timeout_seconds": PATIENCE_SECONDS,
        "client_info": _CLIENT,
        "elicitation_callback": elicit,
        "sampling_callback": sample,
        "sampling_capabilities": _SAMPLING,
        "list_roots_callback": roots,
        "logging_callback": person.hear_log,
        "message_handler": person.hear,
        "extensions": [advertise("io.modelcontextprotocol/ui", APPS), tasks],
    }


def _fast_options(way: Way, person: Person, tasks: TaskExtension) -> Mapping[str, Any]:
    async def elicit(message: str, form: Any, params: ElicitRequestParams, context: Any) -> ElicitResult:
        return await person.elicit(params)

    async def sample(messages: Any, params: CreateMessageRequestParams, context: Any) -> Written:
        return await person.sample(params)

    async def roots(context: Any) -> Sequence[Root]:
        return list(await person.show_roots())

    return {
        "mode": way.mode,
        "timeout": PATIENCE_SECONDS,
        "client_info": _CLIENT,
        "elicitation_handler": elicit,
        "sampling_handler": sample,
        "sampling_capabilities": _SAMPLING,
        "roots": roots,
        "log_handler": person.hear_log,
        "message_handler": person.hear,
        "extensions": [advertise("io.modelcontextprotocol/ui", APPS), tasks],
    }
