import pytest
from handbook import Container

from axolotl_server import RemoteError, connect


async def test_a_page() -> None:
    async with connect(Container()) as client:
        answer = await client.read_resource("handbook://pages/2")
    assert answer.text == "Feed the axolotls."
    assert answer.contents[0]["mimeType"] == "text/plain"


@pytest.mark.parametrize("uri", ["handbook://pages/9", "handbook://pages/two", "handbook://page/1"])
async def test_nothing_there(uri: str) -> None:
    async with connect(Container()) as client:
        with pytest.raises(RemoteError, match=f"Resource not found: {uri}") as caught:
            await client.read_resource(uri)
    assert caught.value.data == {"uri": uri}
