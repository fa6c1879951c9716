# region first
import pytest
from greeter import Container

from axolotl_server import RemoteError, connect


async def test_greet() -> None:
    async with connect(Container()) as client:
        answer = await client.call("greet", {"name": "Ada"})
    assert answer.text == "Hello, Ada!"


async def test_an_unknown_tool() -> None:
    async with connect(Container()) as client:
        with pytest.raises(RemoteError, match="did you mean 'greet'"):
            await client.call("great")


# endregion first


# region more
async def test_what_a_model_reads() -> None:
    async with connect(Container()) as client:
        answer = await client.call("greet", {"nmae": "Ada"})
    assert answer.is_error
    assert answer.text == ("Invalid arguments: name: required, but missing; nmae: unknown argument; it takes name")


async def test_with_other_settings() -> None:
    async with connect(Container(), settings={"server": {"name": "acme"}}) as client:
        [definition] = await client.list_tools()
    assert definition["description"] == "Greet someone by name."


# endregion more
