"""Both containers of the example, served with `axolotl serve`."""

import asyncio
import sys
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from axolotl_core.protocol.versions import Revision
from tests.examples.registration.dialogue import EVERYWHERE, Servers
from tests.support.commands import ROOT
from tests.support.servers.serving import PATIENCE_SECONDS

EMPTY = "axolotl_examples.dispatch:Container"
WORKSHOP = "axolotl_examples.dispatch:Workshop"


def server_of(target: str) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-m", "axolotl_cli", "serve", target], cwd=ROOT)


@pytest.mark.parametrize(("revision", "transport"), EVERYWHERE)
async def test_empty(revision: Revision, transport: str, servers: Servers) -> None:
    """The empty server lists no tools and finds none."""
    async with servers.over(transport, EMPTY, revision) as client:
        assert await client.names() == []
        reply = await client.call("toolName")
    assert reply["error"] == {"code": -32601, "message": "Tool not found: toolName"}


@pytest.mark.parametrize(("revision", "transport"), EVERYWHERE)
async def test_workshop(revision: Revision, transport: str, servers: Servers) -> None:
    """The workshop creates a tool, which can be called, and removes it."""
    async with servers.over(transport, WORKSHOP, revision) as client:
        await client.call("define_tool", {"name": "greet", "text": "Hello, $name!"})
        assert "greet" in await client.names()
        reply = await client.call("greet", {"name": "Ada"})
        await client.call("remove_tool", {"name": "greet"})
        assert "greet" not in await client.names()
    assert reply["result"]["content"] == [{"type": "text", "text": "Hello, Ada!"}]


async def test_official_client() -> None:
    """The official client calls `tools/list` and receives the empty list."""
    async with Client(server_of(EMPTY)) as client:
        assert (await client.list_tools()).tools == []


async def test_official_client_is_notified() -> None:
    """The official client is notified that a tool was defined, and calls it."""
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def listen(message: Any) -> None:
        heard.put_nowait(getattr(message, "method", type(message).__name__))

    async with Client(server_of(WORKSHOP), mode="legacy", message_handler=listen) as client:
        await client.call_tool("define_tool", {"name": "greet", "text": "Hello, $name!"})
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await heard.get() == "notifications/tools/list_changed"
        result = await client.call_tool("greet", {"name": "Ada"})
    assert [block.model_dump(exclude_none=True) for block in result.content] == [
        {"type": "text", "text": "Hello, Ada!"}
    ]
