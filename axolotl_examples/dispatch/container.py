"""A server without tools: whoever is given its registry can add some at any time."""

from typing import Any, Final

from dependency_injector import containers, providers

from axolotl_core import ToolRegistry

SETTINGS: Final[dict[str, Any]] = {
    "server": {"name": "axolotl-dispatch", "title": "Axolotl dispatch"},
    "protocol": {"unknown_tool": "method_not_found"},  # -32601, in the newest revision too
}


class Container(containers.DeclarativeContainer):
    """Nothing to call yet."""

    settings = providers.Object(SETTINGS)
    tool_registry = providers.Singleton(ToolRegistry)
    tools = providers.List()
