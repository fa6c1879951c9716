"""A server without tools, to which code that has its registry can add tools at any time."""

from typing import Any

from dependency_injector import containers, providers

from axolotl_core import ToolRegistry, tools_of
from axolotl_examples.dispatch.template_tools import TemplateTools


class Container(containers.DeclarativeContainer):
    """An empty registry."""

    settings = providers.Object(
        {
            "server": {"name": "axolotl-dispatch", "title": "Axolotl dispatch"},
            "protocol": {"unknown_tool": "method_not_found"},  # -32601, also in the newest revision
        }
    )
    tool_registry = providers.Singleton(ToolRegistry)
    tools: providers.Provider[Any] = providers.List()


class Workshop(Container):
    """The same server with two tools, which create and remove other tools."""

    tools = providers.Callable(tools_of, providers.Singleton(TemplateTools, Container.tool_registry))
