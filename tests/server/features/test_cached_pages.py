"""Cached pages of lists."""

from typing import Any

import pytest

from axolotl_core import Context, ITool, NoArguments, ToolRegistry
from axolotl_core.protocol.versions import Revision
from axolotl_core.protocol.wire import encode_cursor
from axolotl_server.calls.binding import ToolBinding
from tests.support.peers.memory_peer import Peer, container_with, conversing


class Numbered(ITool[NoArguments, str]):
    def __init__(self, number: int) -> None:
        self.name = f"tool-{number}"

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return self.name


async def test_forged_cursors_are_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page may start after every feature, and nothing is kept for it."""
    tools = tuple(map(Numbered, range(40)))
    monkeypatch.setattr("axolotl_server.features.catalogue.PAGE_SIZE", 10)
    async with conversing(container_with(tools)) as host:
        peer = Peer(host)
        for position in range(40):
            cursor = encode_cursor("tools", position)
            names = [one["name"] for one in (await peer.ask("tools/list", {"cursor": cursor}))["result"]["tools"]]
            assert names == [f"tool-{number}" for number in range(position, min(position + 10, 40))]
        assert len(host.assembly.tools._entries) == 40


async def test_forged_cursors_take_little_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that starts anywhere is joined from entries that are encoded once."""
    described: list[str] = []
    registry = ToolRegistry(map(Numbered, range(40)))
    monkeypatch.setattr("axolotl_server.features.catalogue.PAGE_SIZE", 10)
    async with conversing(container_with(tool_registry=registry)) as host:
        describe = host.assembly.tools.describe

        def counted(binding: ToolBinding, revision: Revision) -> dict[str, Any]:
            described.append(binding.spec.name)
            return describe(binding, revision)

        monkeypatch.setattr(host.assembly.tools, "describe", counted)
        peer = Peer(host)
        for position in (*range(40), *range(40)):
            await peer.ask("tools/list", {"cursor": encode_cursor("tools", position)})
        assert sorted(described) == sorted(f"tool-{number}" for number in range(40))
        registry.unregister("tool-7")
        for position in (5, 6):
            reply = await peer.ask("tools/list", {"cursor": encode_cursor("tools", position)})
            assert "tool-7" not in [one["name"] for one in reply["result"]["tools"]]
        assert len(described) == len(host.assembly.tools._entries) + 1 == 40
