"""The role `name_rule`: stricter rules for tool names."""

from typing import Any

import pytest
from dependency_injector import providers

from axolotl_core import ConfigurationError
from axolotl_core.names import INameRule
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server import InProcessClient, RemoteError, ServerHost, connect
from tests.support.tools import Echo, container_of


class Lowercase(INameRule):
    """Requires lowercase letters."""

    def fault_of(self, name: str) -> str | None:
        return None if name.islower() else f"Write {name!r} in small letters"


def ruled(*tools: Any, rule: Any = None, settings: Any = None) -> Any:
    container = container_of(*tools, settings=settings)
    container.name_rule = providers.Object(rule or Lowercase())
    return container


@pytest.mark.parametrize("unknown_tool", ["by_revision", "method_not_found", "invalid_params"])
async def test_a_name_that_no_tool_can_have(unknown_tool: str) -> None:
    """A call with an invalid name is an error for invalid params that explains the problem."""
    async with connect(ruled(Echo()), settings={"protocol": {"unknown_tool": unknown_tool}}) as client:
        with pytest.raises(RemoteError, match="Write 'Teleport' in small letters") as caught:
            await client.call("Teleport")
    assert caught.value.code == -32602


async def test_a_name_that_a_tool_could_have() -> None:
    """A valid but unknown name is not found."""
    async with connect(ruled(Echo())) as client:
        with pytest.raises(RemoteError, match="Tool not found: ecko"):
            await client.call("ecko")


async def test_a_known_name_is_not_judged() -> None:
    """The rule applies only to unknown names, so names stay case-insensitive."""
    async with connect(ruled(Echo())) as client:
        assert (await client.call("ECHO", {"text": "hi"})).text == "hi"


async def test_a_tool_that_breaks_the_rule() -> None:
    """The server does not start with a tool that breaks the rule."""
    with pytest.raises(ConfigurationError, match="Tool 'Bad' breaks the server's rule for names: Write 'Bad'"):
        await ServerHost(ruled(Echo(), SchemaTool("Bad", {}, print))).start()


async def test_a_tool_that_breaks_the_rule_later() -> None:
    """Registering a tool that breaks the rule fails, and the server keeps running."""
    async with ServerHost(ruled(Echo())) as host:
        with pytest.raises(ConfigurationError, match="Write 'Bad' in small letters"):
            host.registry.register_tool("Bad", {}, print)
        client = InProcessClient(host.handler)
        assert [tool["name"] for tool in await client.list_tools()] == ["echo"]
        await client.close()


async def test_no_rule() -> None:
    """An object that is not a name rule is rejected at the start."""
    with pytest.raises(ConfigurationError, match="The role name_rule returned str; expected INameRule"):
        await ServerHost(ruled(Echo(), rule="lower")).start()
