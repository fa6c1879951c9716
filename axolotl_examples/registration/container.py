"""The container, in which every tool is registered when the server starts."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

from dependency_injector import containers, providers

from axolotl_core import ITool, ToolRegistry, scan
from axolotl_examples.registration.call_log import CallLogLayer, LoggingCallLog
from axolotl_examples.registration.echo import Echo
from axolotl_examples.registration.lookup import FindTool, ToolNames


def build_registry(echo: Echo, scanned: Iterable[ITool[Any, Any]]) -> ToolRegistry:
    """Create a registry: register one tool, then all scanned tools together."""
    registry = ToolRegistry()
    registry.register(echo)
    registry.register_range(scanned)
    return registry


class Container(containers.DeclarativeContainer):
    """The tool registry, two tools that list its content, and a layer around all tools."""

    settings = providers.Object({"server": {"name": "axolotl-registration", "title": "工具注册与调用"}})

    pause = providers.Object(asyncio.sleep)
    logger = providers.Callable(logging.getLogger, "axolotl_examples.calls")
    call_log = providers.Singleton(LoggingCallLog, logger)

    tool_registry = providers.Singleton(
        build_registry,
        echo=providers.Singleton(Echo),
        scanned=providers.Callable(scan, "axolotl_examples.registration.text", pause=pause),
    )
    tools = providers.List(
        providers.Singleton(FindTool),
        providers.Singleton(ToolNames),
    )
    layers = providers.List(providers.Singleton(CallLogLayer, call_log))
