"""The role `tool_registry`: a container that brings the registry it wants to be served."""

from typing import Any

import pytest
from dependency_injector import containers, providers

from axolotl_core import ConfigurationError, SchemaTool, ToolRegistry
from axolotl_server import InProcessClient, ServerHost, connect
from tests.support.tools import Echo


class Container(containers.DeclarativeContainer):
    """One tool in the registry, and one beside it that is made anew at each start."""

    tool_registry = providers.Singleton(ToolRegistry, providers.List(providers.Singleton(Echo)))
    tools = providers.List(providers.Factory(SchemaTool, "measure", {}, len))


async def names(client: InProcessClient) -> list[str]:
    return [tool["name"] for tool in await client.list_tools()]


async def test_the_registry_is_served() -> None:
    """The host serves the container's registry itself, with the container's tools behind those that are in it."""
    container = Container()
    async with ServerHost(container) as host:
        assert host.registry is container.tool_registry()
        client = InProcessClient(host.handler)
        assert await names(client) == ["echo", "measure"]
        container.tool_registry().register_tool("later", {}, len)
        assert await names(client) == ["echo", "measure", "later"]
        await client.close()


async def test_the_registry_is_left_as_it_was() -> None:
    """What the server added is gone when it stops, what the application added stays, and it can start again."""
    container = Container()
    for expected in (["echo", "measure"], ["echo", "later", "measure"]):
        async with connect(container) as client:
            assert await names(client) == expected
            container.tool_registry().register_tool("later", {}, len)
        assert [tool.name for tool in container.tool_registry().get_all()] == ["echo", "later"]


async def test_a_stopped_server_hears_nothing() -> None:
    """A change of the registry is nothing to a server that has stopped."""
    container = Container()
    async with ServerHost(container) as host:
        pass
    container.tool_registry().register_tool("later", {}, len)
    assert [binding.spec.name for binding in host.catalogue.bindings()] == ["echo", "measure"]


async def test_a_failed_start_leaves_nothing_behind() -> None:
    """A start that fails takes its tools out of the registry again."""
    container: Any = Container()
    container.tools.override(providers.Object([SchemaTool("bad", {"x-mcp-header": 1}, len)]))
    with pytest.raises(ConfigurationError):
        await ServerHost(container).start()
    assert [tool.name for tool in container.tool_registry().get_all()] == ["echo"]


async def test_tools_are_optional_beside_a_registry() -> None:
    """A container that brings a registry needs no role tools."""
    container: Any = containers.DynamicContainer()
    container.tool_registry = providers.Singleton(ToolRegistry)
    async with connect(container) as client:
        assert await names(client) == []


async def test_a_collision() -> None:
    """A tool must not have the name of one that is in the registry."""
    container: Any = Container()
    container.tools.override(providers.Object([SchemaTool("ECHO", {}, len)]))
    with pytest.raises(ConfigurationError, match=r"Two tools have the same name: 'echo' .* and 'ECHO'"):
        await ServerHost(container).start()


async def test_no_registry() -> None:
    """What is no registry is refused at the start."""
    container: Any = containers.DynamicContainer()
    container.tool_registry = providers.Object([])
    with pytest.raises(ConfigurationError, match="The role tool_registry gives list, which is no ToolRegistry"):
        await ServerHost(container).start()
