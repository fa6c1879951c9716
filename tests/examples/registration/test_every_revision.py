"""The example, served with `axolotl serve`."""

import sys
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from axolotl_core.protocol.versions import Revision
from tests.examples.registration.dialogue import EVERYWHERE, Servers
from tests.support.commands import ROOT

TARGET = "axolotl_examples.registration:Container"
NAMES = ["echo", "delayed_echo", "repeat", "reverse", "find_tool", "tool_names"]


@pytest.mark.parametrize(("revision", "transport"), EVERYWHERE)
async def test_served(revision: Revision, transport: str, servers: Servers) -> None:
    """Every tool works in every revision, over stdio and HTTP."""
    calls: dict[str, dict[str, Any]] = {
        "echo": {"text": "你好"},
        "delayed_echo": {"text": "later", "seconds": 0},
        "repeat": {"text": "ha", "times": 3, "separator": ""},
        "reverse": {"text": "abc"},
        "find_tool": {"name": "REPEAT"},
        "tool_names": {},
    }
    async with servers.over(transport, TARGET, revision) as client:
        assert await client.names() == NAMES
        replies = [await client.call(name, arguments) for name, arguments in calls.items()]
    texts = [reply["result"]["content"][0]["text"] for reply in replies]
    assert texts[:4] == ["你好", "later", "hahaha", "cba"]
    assert texts[4] == '{"name":"repeat","description":"重复输入文本","required":["text","times"]}'
    assert texts[5] == '["echo","delayed_echo","repeat","reverse","find_tool","tool_names"]'


async def test_official_client() -> None:
    """The official client lists and calls the tools over stdio."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "axolotl_cli", "serve", TARGET], cwd=ROOT)
    async with Client(server) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
        result = await client.call_tool("Echo", {"text": "hello"})
    assert [block.model_dump(exclude_none=True) for block in result.content] == [{"type": "text", "text": "hello"}]
