"""The client of FastMCP over both transports."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from fastmcp.exceptions import ToolError
from mcp import MCPError
from mcp_types import TextContent


@asynccontextmanager
async def connected(transport: str, mode: Any, url: str, command: Any) -> AsyncIterator[Client[Any]]:
    program, arguments, directory = command
    way = (
        StdioTransport(program, arguments, cwd=directory, keep_alive=False)
        if transport == "stdio"
        else StreamableHttpTransport(url)
    )
    async with Client(way, mode=mode, timeout=20) as client:
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_the_fastmcp_client(transport: str, mode: str, url: str, command: Any) -> None:
    """The client connects, lists, calls, receives progress and parses errors."""
    async with connected(transport, mode, url, command) as client:
        names = [tool.name for tool in await client.list_tools()]
        assert names[:2] == ["echo", "add"]

        (block,) = (await client.call_tool("echo", {"text": "hällo"})).content
        assert isinstance(block, TextContent)
        assert block.text == "hällo"
        added = await client.call_tool("add", {"a": 40})
        assert added.structured_content == {"total": 42}

        heard: list[float] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append(progress)

        await client.call_tool("climb", {"values": [1, 2, 3]}, progress_handler=hear)
        assert heard == [1, 2, 3]

        with pytest.raises(ToolError, match="The moon is not made of cheese"):
            await client.call_tool("refuse")
        outcome = await client.call_tool("crash", raise_on_error=False)
        assert outcome.is_error
        with pytest.raises((ToolError, MCPError), match="Tool not found: ecko"):
            await client.call_tool("ecko")
        assert (await client.call_tool("nothing")).content == []
