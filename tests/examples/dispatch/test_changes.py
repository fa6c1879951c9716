"""Notifications about added and removed tools, on every transport."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from axolotl_core.protocol.versions import HANDSHAKE_REVISIONS, LATEST_HANDSHAKE_REVISION, Revision
from axolotl_examples.dispatch import Container
from tests.examples.registration.dialogue import Servers, in_memory
from tests.support.peers.wire import INITIALIZE, JSON_HEADERS, message
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving

CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}

every_handshake = pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS, ids=lambda revision: revision.name)


def nothing(arguments: dict[str, Any]) -> None:
    return None


@every_handshake
async def test_in_memory(revision: Revision) -> None:
    """A ready client gets one notification per change."""
    container = Container()
    async with in_memory(container, revision) as client:
        registry = container.tool_registry()
        registry.register_tool("first", {}, nothing)
        assert await client.hear() == CHANGED
        registry.register_tool("FIRST", {}, nothing)
        registry.unregister("first")
        assert await client.hear() == CHANGED
        assert await client.names() == []
        assert client.notices == []


@every_handshake
async def test_on_stdio(revision: Revision, servers: Servers) -> None:
    """A tool that is defined over stdio is announced and can be called."""
    async with servers.over("stdio", "axolotl_examples.dispatch:Workshop", revision) as client:
        await client.call("define_tool", {"name": "greet", "text": "Hello, $name!"})
        if not client.notices:
            client.notices.append(await client.hear())
        assert client.notices == [CHANGED]
        assert await client.names() == ["define_tool", "remove_tool", "greet"]
        reply = await client.call("greet", {"name": "Ada"})
    assert reply["result"] == {"content": [{"type": "text", "text": "Hello, Ada!"}]}


@asynccontextmanager
async def listening(server: HttpServer) -> AsyncIterator[AsyncIterator[Any]]:
    """Start a session and open its GET stream."""
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as http:
        begun = await http.post(server.url, content=message("initialize", INITIALIZE), headers=JSON_HEADERS)
        session = {
            "Mcp-Session-Id": begun.headers["mcp-session-id"],
            "MCP-Protocol-Version": LATEST_HANDSHAKE_REVISION.name,
        }
        ready = message("notifications/initialized", id=None)
        await http.post(server.url, content=ready, headers={**JSON_HEADERS, **session})
        async with http.stream("GET", server.url, headers={"Accept": "text/event-stream", **session}) as response:
            assert response.status_code == 200
            lines = response.aiter_lines()
            yield (json.loads(line.removeprefix("data: ")) async for line in lines if line.startswith("data: "))


async def test_over_http() -> None:
    """The GET stream delivers a notification when a tool is registered."""
    container = Container()
    async with serving(container) as server, listening(server) as messages:
        container.tool_registry().register_tool("first", {}, nothing)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await anext(messages) == CHANGED


async def test_from_a_thread() -> None:
    """A tool can be registered from any thread."""
    container = Container()
    async with in_memory(container, LATEST_HANDSHAKE_REVISION) as client:
        assert await asyncio.to_thread(container.tool_registry().register_tool, "first", {}, nothing)
        assert await client.hear() == CHANGED
        assert (await client.call("first"))["result"] == {"content": []}
