"""Names and descriptions that could deceive people or models are refused before they are served."""

from typing import Annotated, Any

import pytest
from pydantic import Field

from axolotl_core import ConfigurationError, ToolRegistry, prompt, resource, tool
from axolotl_server import InProcessClient, ServerHost
from tests.support.peers.memory_peer import container_with, conversing


async def greet() -> str:
    return "hello"


@pytest.mark.parametrize(
    ("text", "character"),
    [
        pytest.param("Pay\u202e them", "U+202E at position 3", id="bidirectional"),
        pytest.param("\u200bPay", "U+200B at position 0", id="zero-width"),
        pytest.param("Pay\u200d", "U+200D at position 3", id="joiner-at-the-end"),
        pytest.param("ü\u200d\u200dü", "U+200D at position 1", id="joiners"),
        pytest.param("Pay\U000e0041", "U+E0041 at position 3", id="tag"),
        pytest.param("Pay\x1b[2J", "U+001B at position 3", id="escape"),
        pytest.param("Pay\x00", "U+0000 at position 3", id="null"),
    ],
)
@pytest.mark.parametrize(
    ("make", "place"),
    [
        pytest.param(lambda text: {"tools": (tool(description=text)(greet),)}, "Tool 'greet': description", id="tool"),
        pytest.param(lambda text: {"tools": (tool(title=text)(greet),)}, "Tool 'greet': title", id="title"),
        pytest.param(lambda text: {"prompts": (prompt(description=text)(greet),)}, "Prompt 'greet'", id="prompt"),
        pytest.param(
            lambda text: {"resources": (resource("a://b", description=text)(greet),)}, "Resource 'a://b'", id="resource"
        ),
    ],
)
async def test_invisible_characters(make: Any, place: str, text: str, character: str) -> None:
    """A description with an invisible character is refused, with the feature, the place and the character."""
    with pytest.raises(ConfigurationError) as error:
        await ServerHost(container_with(**make(text))).__aenter__()
    assert place in str(error.value)
    assert f"it contains the invisible character {character}" in str(error.value)


async def test_descriptions_of_arguments() -> None:
    """Descriptions inside of schemas are checked too."""

    async def pay(amount: Annotated[int, Field(description="How\u2066 much")]) -> str:
        return str(amount)

    with pytest.raises(ConfigurationError, match=r"Tool 'pay': inputSchema.properties.amount.description: .*U\+2066"):
        await ServerHost(container_with((tool(pay),))).__aenter__()


async def test_long_descriptions() -> None:
    """A description has at most 8 KiB."""
    async with conversing(container_with((tool(description="é" * 4096)(greet),))):
        pass
    with pytest.raises(ConfigurationError, match="description: it has 8193 bytes; at most 8192 are allowed"):
        await ServerHost(container_with((tool(description="é" * 4096 + "a")(greet),))).__aenter__()


@pytest.mark.parametrize(
    "text", ["按名称查询工具", "می\u200cخواهم", "👩\u200d🔧 repairs ✂️", "line\n\tline\r\n", "naïve – “ok” §"]
)
async def test_other_languages(text: str) -> None:
    """Visible text of any language is accepted, with the joiners that it needs."""
    async with conversing(container_with((tool(description=text)(greet),))) as host:
        assert [one.spec.name for one in host.assembly.tools.bindings()] == ["greet"]


@pytest.mark.parametrize("name", ["pаy", "ｐａｙ", "größe", "支付"])
async def test_names_are_ascii(name: str) -> None:
    """Names of tools and prompts are ASCII, unless the settings allow others."""
    for container in (container_with((tool(name=name)(greet),)), container_with(prompts=(prompt(name=name)(greet),))):
        with pytest.raises(
            ConfigurationError, match=f"'{name}' has a name that is not ASCII: rename it, or set protocol"
        ):
            await ServerHost(container).__aenter__()


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("pаy", "it mixes letters that look alike: CYRILLIC, LATIN"),
        ("ｐａｙ", "write it as 'pay', which looks the same"),
        ("größe", None),
        ("支付pay", None),
        ("заплатить", None),
    ],
)
async def test_other_names(name: str, fault: str | None) -> None:
    """Where other names are allowed, they must not look like another one."""
    host = ServerHost(container_with((tool(name=name)(greet),)), flags={"protocol": {"ascii_names": False}})
    if fault is None:
        async with host:
            return
    with pytest.raises(ConfigurationError, match=f"could be taken for another one: {fault}"):
        await host.__aenter__()


async def test_a_running_server() -> None:
    """A tool that is registered later is checked as well, and nothing changes if it is refused."""
    registry = ToolRegistry([tool(greet)])
    async with conversing(container_with(tool_registry=registry)):
        with pytest.raises(ConfigurationError, match="invisible character"):
            registry.register(tool(name="other", description="a\u200bb")(greet))
        assert "other" not in registry


async def test_a_tool_that_is_registered_later_is_found_in_any_case() -> None:
    """Tools are found by their exact name and in any case, whenever they were registered."""
    registry = ToolRegistry([tool(greet)])
    async with ServerHost(container_with(tool_registry=registry)) as host:
        registry.register(tool(name="wave")(greet))
        client = InProcessClient(host.handler)
        for name in ("greet", "GREET", "wave", "WAVE"):
            assert not (await client.call(name)).is_error
