import pytest
from greeter import Container

from axolotl_server import RemoteError, connect


async def test_greet() -> None:
    async with connect(Container()) as client:
        answer = await client.call("greet", {"name": "Ada"})
        assert answer.text == "Hello, Ada!"


async def test_a_missing_name_is_told_to_the_model() -> None:
    async with connect(Container()) as client:
        answer = await client.call("greet")
        assert answer.is_error
        assert answer.text == "Invalid arguments: name: required, but missing"


async def test_an_unknown_tool_is_an_error() -> None:
    async with connect(Container()) as client:
        with pytest.raises(RemoteError, match="did you mean 'greet'"):
            await client.call("great")
