"""The official Python client, in both eras of the protocol, over both transports."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp_types import Implementation, TextContent

from tests.support.servers.serving import serving
from tests.support.tools import Probe, container_of

MODES = ["legacy", "auto", "2026-07-28"]
NEGOTIATED = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}


@asynccontextmanager
async def connected(transport: str, mode: Any, url: str, command: Any) -> AsyncIterator[Client]:
    program, arguments, directory = command
    server = StdioServerParameters(command=program, args=arguments, cwd=directory) if transport == "stdio" else url
    info = Implementation(name="tester", version="7")
    async with Client(server, mode=mode, read_timeout_seconds=20, client_info=info) as client:
        yield client


def text_of(result: Any) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_the_official_client(transport: str, mode: str, url: str, command: Any) -> None:
    """The client connects, lists, calls, receives progress, parses errors and is identified by its name."""
    async with connected(transport, mode, url, command) as client:
        assert client.session.protocol_version == NEGOTIATED[mode]

        listed = (await client.list_tools()).tools
        by_name = {tool.name: tool for tool in listed}
        assert listed[0].name == "echo"
        assert by_name["add"].title == "Adder"
        assert by_name["add"].output_schema is not None

        assert text_of(await client.call_tool("echo", {"text": "hällo"})) == "hällo"
        added = await client.call_tool("add", {"a": 40})
        assert added.structured_content == {"total": 42}
        assert not added.is_error
        squares = await client.call_tool("squares")
        assert squares.structured_content == ([1, 4, 9] if NEGOTIATED[mode] == "2026-07-28" else {"result": [1, 4, 9]})
        kinds = [block.type for block in (await client.call_tool("gallery")).content]
        assert kinds == ["text", "image", "audio", "resource", "resource", "resource_link"]

        heard: list[tuple[float, float | None, str | None]] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, total, message))

        climbed = await client.call_tool("climb", {"values": [1, 2, 3]}, progress_callback=hear)
        assert text_of(climbed) == "there"
        assert heard == [(1, 10, "at 1"), (2, 10, "at 2"), (3, 10, "at 3")]

        refused = await client.call_tool("refuse")
        assert refused.is_error
        assert text_of(refused) == "The moon is not made of cheese"
        crashed = await client.call_tool("crash")
        assert crashed.is_error
        assert "swordfish" not in text_of(crashed)
        invalid = await client.call_tool("add", {"a": "x"})
        assert invalid.is_error
        assert text_of(invalid).startswith("Invalid arguments: a: ")

        with pytest.raises(MCPError, match="Tool not found: ecko") as caught:
            await client.call_tool("ecko")
        assert caught.value.error.code == (-32602 if NEGOTIATED[mode] == "2026-07-28" else -32601)

        assert text_of(await client.call_tool("who_am_i")) == "tester 7"


async def test_the_official_client_leaves_after_a_cancelled_call() -> None:
    """The client gets no reply to the cancelled call while it leaves: one in JSON would end it with an error."""
    for _ in range(10):
        probe = Probe()
        async with (
            serving(container_of(probe)) as server,
            connected("http", "legacy", server.url, ("", [], "")) as client,
        ):
            calling = asyncio.create_task(client.call_tool("probe"))
            await probe.started.wait()
            calling.cancel()
            await asyncio.wait([calling])
