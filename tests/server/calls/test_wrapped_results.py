"""Structured results of tools whose output is no object: wrapped for revisions that know nothing else."""

from typing import Any

import pytest
from pydantic import BaseModel

from axolotl_core import TextContent, ToolResult, tool
from tests.support.peers.memory_peer import Peer, container_with, conversing


class Found(BaseModel):
    name: str


@tool
async def look(whole: bool) -> Found | list[Found]:
    """Look for something."""
    return ToolResult((TextContent("one"),), {"name": "one"}) if whole else Found(name="one")  # type: ignore[return-value]


@pytest.mark.parametrize("whole", [True, False])
async def test_unions(whole: bool) -> None:
    """An object that is one of several outputs is wrapped as the published schema says, also in a whole result."""
    async with conversing(container_with([look])) as host:
        handshake, stateless = await Peer(host).shake_hands(), Peer(host)
        said: dict[str, Any] = {"name": "look", "arguments": {"whole": whole}}
        assert (await handshake.ask("tools/call", said))["result"]["structuredContent"] == {"result": {"name": "one"}}
        assert (await stateless.ask("tools/call", said))["result"]["structuredContent"] == {"name": "one"}
        [listed] = (await handshake.ask("tools/list", {}))["result"]["tools"]
        assert list(listed["outputSchema"]["properties"]) == ["result"]
