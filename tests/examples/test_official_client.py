"""All examples with the official client, in both eras, over both transports."""

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from tests.support.commands import ROOT
from tests.support.servers.serving import BackgroundServers

pytestmark = pytest.mark.slow

CALLS: dict[str, tuple[int, str, dict[str, Any], str]] = {
    "starter": (9, "echo", {"text": "hello"}, "hello"),
    "registration": (6, "ECHO", {"text": "hello"}, "hello"),
    "dispatch": (0, "", {}, ""),
    "hub": (8, "conversation.chat", {"session_name": "s", "query": "Hello"}, "Hello"),
    "keyword_search": (1, "keyword_search", {"keyword": "Every example as", "root_paths": ["tests"]}, "test_official"),
    "three_good_sources": (4, "get_sources", {"query": "learn rust"}, "Rust Learning"),
}
"""The number of tools of each example, a tool with arguments, and a part of its result."""


@pytest.fixture(scope="module")
def servers() -> Iterator[BackgroundServers]:
    """HTTP servers that run for the whole test module."""
    running = BackgroundServers()
    yield running
    running.close()


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("example", CALLS)
async def test_example(example: str, transport: str, mode: Any, servers: BackgroundServers) -> None:
    """The client lists the tools of an example and calls one."""
    count, name, arguments, expected = CALLS[example]
    async with Client(_address(example, transport, servers), mode=mode, read_timeout_seconds=20) as client:
        assert len((await client.list_tools()).tools) == count
        if name:
            (block,) = (await client.call_tool(name, arguments)).content
            assert isinstance(block, TextContent)
            assert expected in block.text


def _address(example: str, transport: str, servers: BackgroundServers) -> str | StdioServerParameters:
    module = f"axolotl_examples.{example}"
    if transport == "http":
        return servers.url(importlib.import_module(module).Container)
    arguments = ["-m", "axolotl_cli", "serve", f"{module}:Container"]
    return StdioServerParameters(command=sys.executable, args=arguments, cwd=str(ROOT))
