"""The pages about migration: the same calls, made to all three frameworks, have the same results."""

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import fastmcp
import mcp
import pytest

from axolotl_server import connect
from tests.support.docs.pages import EXAMPLES

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test imports the examples anew, because their orders change."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "migration"))
    yield
    for name in ("with_axolotl", "with_fastmcp", "with_sdk"):
        sys.modules.pop(name, None)


def load(name: str) -> Any:
    return importlib.import_module(name)


async def results_of_axolotl() -> dict[str, Any]:
    async with connect(load("with_axolotl").Container()) as client:
        missing = await client.call("track_order", {"number": 9})
        prompt = await client.get_prompt("apology", {"name": "Ada"})
        page = await client.read_resource("orders://2")
        return {
            "tools": sorted(tool["name"] for tool in await client.list_tools()),
            "order": (await client.call("track_order", {"number": 1})).structured,
            "missing": missing.text,
            "page": page.contents[0]["text"],
            "packed": (await client.call("pack_orders", {"numbers": [1, 2]})).text,
            "prompt": prompt.messages[0]["content"]["text"],
        }


async def results_of_peer(client: Any, **lenient: Any) -> dict[str, Any]:
    """Ask FastMCP's client or the official one, whose methods have the same names."""
    tools = await client.list_tools()
    missing = await client.call_tool("track_order", {"number": 9}, **lenient)
    page = await client.read_resource("orders://2")
    prompt = await client.get_prompt("apology", {"name": "Ada"})
    return {
        "tools": sorted(tool.name for tool in getattr(tools, "tools", tools)),
        "order": (await client.call_tool("track_order", {"number": 1})).structured_content,
        "missing": missing.content[0].text,
        "page": getattr(page, "contents", page)[0].text,
        "packed": (await client.call_tool("pack_orders", {"numbers": [1, 2]})).content[0].text,
        "prompt": prompt.messages[0].content.text,
    }


async def test_from_fastmcp() -> None:
    """Both columns of the page about FastMCP behave alike."""
    async with fastmcp.Client(load("with_fastmcp").mcp) as client:
        theirs = await results_of_peer(client, raise_on_error=False)
        assert (await client.call_tool("count_orders", {})).data == 2
    assert await results_of_axolotl() == theirs


async def test_from_the_official_sdk() -> None:
    """Both columns of the page about the official SDK behave alike, except for the prefix of errors."""
    async with mcp.Client(load("with_sdk").mcp) as client:
        theirs = await results_of_peer(client)
    ours = await results_of_axolotl()
    assert theirs.pop("missing") == f"Error executing tool track_order: {ours.pop('missing')}"
    assert [tool for tool in ours.pop("tools") if tool != "count_orders"] == theirs.pop("tools")
    assert ours == theirs
