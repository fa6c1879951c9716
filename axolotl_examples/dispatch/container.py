"""A server without tools: code that has its registry can add tools at any time."""

from typing import Any, Final

from dependency_injector import containers, providers

from axolotl_core import ToolRegistry

SETTINGS: Final[dict[str, Any]] = {
    "server": {"name": "axolotl-dispatch", "title": "Axolotl dispatch"},
    "protocol": {"unknown_tool": "method_not_found"},  # -32601, also in the newest revision
}


class Container(containers.DeclarativeContainer):
    """An empty registry."""

    settings = providers.Object(SETTINGS)
    tool_registry = providers.Singleton(ToolRegistry)
    tools = providers.List()
