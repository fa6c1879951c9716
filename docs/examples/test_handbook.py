import pytest
from handbook import Container

from axolotl_server import RemoteError, connect


async def test_a_page() -> None:
    async with connect(Container()) as client:
        answer = await client.read_resource("handbook://pages/2")
    assert answer.text == "Feed the axolotls."
    assert answer.contents[0]["mimeType"] == "text/plain"


async def test_nothing_there() -> None:
    async with connect(Container()) as client:
        for uri in ("handbook://pages/9", "handbook://pages/two", "handbook://page/1"):
            with pytest.raises(RemoteError, match="Resource not found") as caught:
                await client.read_resource(uri)
            assert caught.value.data == {"uri": uri}
