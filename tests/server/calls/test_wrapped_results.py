"""Structured results that are not objects: wrapped for revisions that allow only objects."""

from typing import Any

import pytest
from pydantic import BaseModel

from axolotl_core import tool
from axolotl_core.content import TextContent, ToolResult
from tests.support.peers.memory_peer import Peer, container_with, conversing


class Found(BaseModel):
    name: str


@tool
async def look(whole: bool) -> Found | list[Found]:
    """Return one of several types."""
    return ToolResult((TextContent("one"),), {"name": "one"}) if whole else Found(name="one")  # type: ignore[return-value]


@pytest.mark.parametrize("whole", [True, False])
async def test_unions(whole: bool) -> None:
    """An object of a union is wrapped as in the published schema, also in a complete result."""
    async with conversing(container_with([look])) as host:
        handshake, stateless = await Peer(host).shake_hands(), Peer(host)
        said: dict[str, Any] = {"name": "look", "arguments": {"whole": whole}}
        assert (await handshake.ask("tools/call", said))["result"]["structuredContent"] == {"result": {"name": "one"}}
        assert (await stateless.ask("tools/call", said))["result"]["structuredContent"] == {"name": "one"}
        [listed] = (await handshake.ask("tools/list", {}))["result"]["tools"]
        assert list(listed["outputSchema"]["properties"]) == ["result"]
