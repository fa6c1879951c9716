"""MCP Apps: tools and their pages."""

from typing import Any

import pytest

from axolotl_core import ConfigurationError, Context, ITool, NoArguments, resource
from axolotl_core.content import AppLink
from axolotl_server import ServerHost
from axolotl_server.extension import Extension
from tests.support.peers.memory_peer import Peer, container_with, conversing
from tests.support.tools import Echo

APPS = "io.modelcontextprotocol/ui"


class Chart(ITool[NoArguments, str]):
    name = "chart"

    def __init__(self, app: str | AppLink | None = "ui://chart") -> None:
        self.app = app

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        return "drawn"


@resource("ui://chart")
async def page() -> str:
    """Show the chart."""
    return "<!DOCTYPE html>"


async def extensions(container: Any) -> Any:
    async with conversing(container) as host:
        discovered = await Peer(host).ask("server/discover")
        return discovered["result"]["capabilities"].get("extensions")


@pytest.mark.parametrize("app", ["ui://other", AppLink("ui://other"), "ui://chart/"])
async def test_a_page_that_is_not_there_ends_the_start(app: str | AppLink) -> None:
    """The server does not start if a page is missing; the error names the tool and the page."""
    with pytest.raises(ConfigurationError, match="'chart' names the page 'ui://"):
        await ServerHost(container_with((Chart(app),), resources=(page,))).start()


async def test_a_page_has_the_type_of_pages() -> None:
    """The server does not start if a page has the wrong MIME type."""

    @resource("ui://chart", mime_type="text/html")
    async def wrong() -> str:
        """Be a page of another kind."""
        return ""

    with pytest.raises(ConfigurationError, match="mcp-app"):
        await ServerHost(container_with((Chart(),), resources=(wrong,))).start()


async def test_the_extension_is_announced_where_there_are_pages() -> None:
    """The extension is declared only if there are pages, and can have more settings."""
    assert await extensions(container_with((Chart(),), resources=(page,))) == {APPS: {}}
    assert await extensions(container_with((Chart(None), Echo()), resources=(page,))) is None
    said = Extension(APPS, {"own": True})
    assert await extensions(container_with((Chart(),), resources=(page,), extensions=(said,))) == {APPS: {"own": True}}


async def test_a_list_shows_every_client_the_same() -> None:
    """All clients see the same list, so that it can be cached."""
    async with conversing(container_with((Chart(),), resources=(page,))) as host:
        knowing = {"extensions": {APPS: {"mimeTypes": ["text/html;profile=mcp-app"]}}}
        with_apps = await Peer(host, capabilities=knowing).ask("tools/list")
        without = await Peer(host, capabilities={}).ask("tools/list")
        assert with_apps == without
        assert with_apps["result"]["tools"][0]["_meta"] == {"ui": {"resourceUri": "ui://chart"}}
