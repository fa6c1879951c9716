"""The role `tool_registry`: a registry from the container."""

from typing import Any

import pytest
from dependency_injector import containers, providers

from axolotl_core import ConfigurationError, ToolRegistry
from axolotl_core.tools.schema_tool import SchemaTool
from axolotl_server import InProcessClient, ServerHost, connect
from axolotl_server.settings.calls import ToolOverrides, ToolsSettings
from tests.support.tools import Echo


class Container(containers.DeclarativeContainer):
    """A tool in the registry, and one that is created at each start."""

    tool_registry = providers.Singleton(ToolRegistry, providers.List(providers.Singleton(Echo)))
    tools = providers.List(providers.Factory(SchemaTool, "measure", {}, len))


async def names(client: InProcessClient) -> list[str]:
    return [tool["name"] for tool in await client.list_tools()]


async def test_the_registry_is_served() -> None:
    """The host uses the container's registry, and adds the tools of the container after existing ones."""
    container = Container()
    async with ServerHost(container) as host:
        assert host.registry is container.tool_registry()
        client = InProcessClient(host.handler)
        assert await names(client) == ["echo", "measure"]
        container.tool_registry().register_tool("later", {}, len)
        assert await names(client) == ["echo", "measure", "later"]
        await client.close()


async def test_the_registry_is_left_as_it_was() -> None:
    """On shutdown, tools that the server added are removed, others stay, and the server can start again."""
    container = Container()
    for expected in (["echo", "measure"], ["echo", "later", "measure"]):
        async with connect(container) as client:
            assert await names(client) == expected
            container.tool_registry().register_tool("later", {}, len)
        assert [tool.name for tool in container.tool_registry().get_all()] == ["echo", "later"]


async def test_a_stopped_server_ignores_changes() -> None:
    """A stopped server ignores changes of the registry."""
    container = Container()
    async with ServerHost(container) as host:
        pass
    container.tool_registry().register_tool("later", {}, len)
    assert [binding.spec.name for binding in host.assembly.tools.bindings()] == ["echo", "measure"]


async def test_a_failed_start_leaves_nothing_behind() -> None:
    """A failed start removes its tools from the registry."""
    container: Any = Container()
    container.tools.override(providers.Object([SchemaTool("bad", {"x-mcp-header": 1}, len)]))
    with pytest.raises(ConfigurationError):
        await ServerHost(container).start()
    assert [tool.name for tool in container.tool_registry().get_all()] == ["echo"]


async def test_tools_are_optional_beside_a_registry() -> None:
    """With a registry, the role `tools` is optional."""
    container: Any = containers.DynamicContainer()
    container.tool_registry = providers.Singleton(ToolRegistry)
    async with connect(container) as client:
        assert await names(client) == []


async def test_a_collision() -> None:
    """A tool must not have the name of a tool in the registry."""
    container: Any = Container()
    container.tools.override(providers.Object([SchemaTool("ECHO", {}, len)]))
    with pytest.raises(ConfigurationError, match=r"Two tools have the same name: 'echo' .* and 'ECHO'"):
        await ServerHost(container).start()


async def test_no_registry() -> None:
    """An object that is not a registry is rejected at the start."""
    container: Any = containers.DynamicContainer()
    container.tool_registry = providers.Object([])
    with pytest.raises(ConfigurationError, match="The role tool_registry returned list; expected ToolRegistry"):
        await ServerHost(container).start()


async def test_many_registrations_look_at_each_tool_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Registering tools one by one does not look at the earlier ones again, and all can be called."""
    looked_at: list[str] = []
    overrides_for = ToolsSettings.overrides_for

    def counting(settings: ToolsSettings, name: str) -> ToolOverrides:
        looked_at.append(name)
        return overrides_for(settings, name)

    container = Container()
    async with connect(container) as client:
        monkeypatch.setattr(ToolsSettings, "overrides_for", counting)
        for number in range(50):
            assert container.tool_registry().register_tool(f"Tool_{number}", {}, len)
        assert len(looked_at) <= 3 * 50
        assert await names(client) == ["echo", "measure", *(f"Tool_{number}" for number in range(50))]
        assert [(await client.call(f"tool_{number}")).text for number in (0, 49)] == ["0", "0"]
        container.tool_registry().unregister("tool_7")
        assert "Tool_7" not in await names(client)
