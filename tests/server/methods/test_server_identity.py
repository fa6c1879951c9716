"""The identity of the server."""

import pytest

from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.tools import Echo

ICONS = [{"src": "https://example.com/a.png", "mime_type": "image/png", "sizes": ["48x48"]}]
SHOWN = [{"src": "https://example.com/a.png", "mimeType": "image/png", "sizes": ["48x48"]}]


@pytest.mark.parametrize(("version", "shown"), [("2025-11-25", SHOWN), ("2025-06-18", None)])
async def test_icons_of_the_server(version: str, shown: object) -> None:
    """Icons are included in revisions that support them."""
    async with conversing(container_with((Echo(),)), settings={"server": {"icons": ICONS}}) as host:
        peer = Peer(host)
        hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        peer._stateless = False
        reply = await peer.ask("initialize", hello)
        assert reply["result"]["serverInfo"].get("icons") == shown
        found = (await Peer(host).ask("server/discover"))["result"]["_meta"]
        assert found["io.modelcontextprotocol/serverInfo"]["icons"] == SHOWN
