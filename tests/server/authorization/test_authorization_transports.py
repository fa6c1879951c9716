"""The same policy on every transport, with the official client in both eras."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

from tests.support.commands import ROOT
from tests.support.servers.restricted_servers import Served, ServedToAll
from tests.support.servers.serving import PATIENCE_SECONDS, serving

pytestmark = pytest.mark.slow

SETTINGS = {"http": {"sse_path": "/sse"}}
WAYS = [("stdio", "legacy"), ("stdio", "auto"), ("http", "legacy"), ("http", "auto"), ("sse", "legacy")]


@asynccontextmanager
async def reached(transport: str, mode: Any, container: type[Served]) -> AsyncIterator[Client]:
    if transport == "stdio":
        arguments = ["-m", "axolotl_cli", "serve", f"tests/support/servers/restricted_servers.py:{container.__name__}"]
        parameters = StdioServerParameters(command=sys.executable, args=arguments, cwd=str(ROOT))
        async with Client(parameters, mode=mode, read_timeout_seconds=PATIENCE_SECONDS) as client:
            yield client
        return
    async with serving(container(), SETTINGS) as server:
        place: Any = server.url if transport == "http" else sse_client(server.url.replace("/mcp", "/sse"))
        async with Client(place, mode=mode, read_timeout_seconds=PATIENCE_SECONDS) as client:
            yield client


@pytest.mark.parametrize(("transport", "mode"), WAYS)
async def test_an_anonymous_client_sees_and_uses_little(transport: str, mode: str) -> None:
    """An anonymous client sees and uses only public features."""
    async with reached(transport, mode, ServedToAll) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["look"]
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["greet"]
        assert [str(one.uri) for one in (await client.list_resources()).resources] == ["notes://open"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == ["files://{+path}"]
        called: Any = await client.call_tool("look", {"text": "it"})
        assert called.content[0].text == "saw it"
        with pytest.raises(MCPError, match=r"^Tool not found: refund$"):
            await client.call_tool("refund", {"amount": 1})
        with pytest.raises(MCPError, match=r"^Prompt not found: grieve \(did you mean 'greet'\?\)$"):
            await client.get_prompt("grieve")
        with pytest.raises(MCPError, match=r"^Resource not found: vault://gold$"):
            await client.read_resource("vault://gold")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_principal_of_the_standard_streams(mode: str) -> None:
    """Over stdio, the client acts as the configured principal."""
    async with reached("stdio", mode, Served) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["look", "refund", "note", "refurbish"]
        called: Any = await client.call_tool("refund", {"amount": 1})
        assert called.content[0].text == "paid 1"


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_the_stdio_principal_does_not_apply_to_http(transport: str) -> None:
    """The stdio principal does not apply to HTTP."""
    async with reached(transport, "legacy", Served) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["look"]
