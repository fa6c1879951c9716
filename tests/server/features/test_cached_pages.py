"""Cached pages of lists."""

from axolotl_core import ITool, NoArguments, ToolContext
from axolotl_core.protocol.wire import encode_cursor
from tests.support.peers.memory_peer import Peer, container_with, conversing


class Numbered(ITool[NoArguments, str]):
    def __init__(self, number: int) -> None:
        self.name = f"tool-{number}"

    async def execute(self, arguments: NoArguments, context: ToolContext) -> str:
        return self.name


async def test_forged_cursors_are_not_cached() -> None:
    """Forged cursors do not grow the page cache."""
    tools = tuple(map(Numbered, range(40)))
    async with conversing(container_with(tools), settings={"protocol": {"page_size": 10}}) as host:
        peer = Peer(host)
        for position in range(40):
            cursor = encode_cursor("tools", position)
            names = [one["name"] for one in (await peer.ask("tools/list", {"cursor": cursor}))["result"]["tools"]]
            assert names == [f"tool-{number}" for number in range(position, min(position + 10, 40))]
        assert len(host.catalogue._shown[0].pages) == 4
