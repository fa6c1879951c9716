"""MCP Apps: links from tools to pages."""

from typing import Any

import pytest

from axolotl_core import Context, ITool, NoArguments, tool
from axolotl_core.content import APP_EXTENSION, APP_MIME_TYPE, APP_SCHEME, AppLink, app_link
from axolotl_core.protocol.wire import encode


def test_the_names_are_those_of_the_extension() -> None:
    """The constants of MCP Apps."""
    assert APP_EXTENSION == "io.modelcontextprotocol/ui"
    assert (APP_SCHEME, APP_MIME_TYPE) == ("ui://", "text/html;profile=mcp-app")


@pytest.mark.parametrize(
    ("said", "link"),
    [
        pytest.param(None, None, id="nothing"),
        pytest.param("ui://chart", AppLink("ui://chart"), id="uri"),
        pytest.param(AppLink("ui://chart", ("app",)), AppLink("ui://chart", ("app",)), id="link"),
    ],
)
def test_a_uri_is_a_link(said: Any, link: AppLink | None) -> None:
    """The URI alone is a link without conditions."""
    assert app_link(said) == link


@pytest.mark.parametrize(
    ("link", "written"),
    [
        pytest.param(AppLink("ui://chart"), b'{"resourceUri":"ui://chart"}', id="plain"),
        pytest.param(
            AppLink("ui://chart", ("model", "app")),
            b'{"resourceUri":"ui://chart","visibility":["model","app"]}',
            id="visibility",
        ),
    ],
)
def test_a_link_is_written_as_hosts_read_it(link: AppLink, written: bytes) -> None:
    """Unset fields are left out."""
    assert encode(link) == written


def test_classes_and_functions_have_a_page() -> None:
    """The attribute and the option are the same thing; without it there is none."""

    class Chart(ITool[NoArguments, str]):
        app = "ui://chart"

        async def execute(self, arguments: NoArguments, context: Context) -> str:
            return ""

    @tool(app=AppLink("ui://chart", ("app",)))
    def chart() -> str:
        return ""

    @tool
    def plain() -> str:
        return ""

    assert app_link(Chart().app) == AppLink("ui://chart")
    assert app_link(chart.app) == AppLink("ui://chart", ("app",))
    assert app_link(plain.app) is None
