"""The page with short recipes: its container and settings work together."""

import importlib

import pytest

from axolotl_core import Principal
from axolotl_server import connect
from tests.support.docs.pages import EXAMPLES

pytestmark = pytest.mark.slow

CLERK = Principal(subject="ada", roles=frozenset({"clerk"}))


async def test_recipes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clerk sees the tools that read, and calls them."""
    place = EXAMPLES / "howto"
    monkeypatch.syspath_prepend(str(place))
    container = importlib.import_module("container").Container()
    async with connect(container, settings=str(place / "axolotl.toml"), principal=CLERK) as client:
        assert [tool["name"] for tool in await client.list_tools()] == ["convert", "quote", "render"]
        assert (await client.call("convert", {"text": "a"})).text == "A"
        assert (await client.call("quote", {"weight_grams": 500})).text == "1.0"
