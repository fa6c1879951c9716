"""What a server says of itself that it can do; it says nothing that is not so."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from axolotl_core.app_link import APP_EXTENSION
from axolotl_core.extension import IExtension
from axolotl_core.registry import AnyTool

__all__ = ["TASKS_CAPABILITY", "TASKS_EXTENSION", "capabilities_of", "runs_tasks"]

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""What the stateless revision has tasks by."""

TASKS_CAPABILITY: Final[Mapping[str, Any]] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
"""What the revision that has tasks without an extension is told."""


def capabilities_of(
    offers: Collection[str], extensions: Iterable[IExtension], tools: Iterable[AnyTool]
) -> dict[str, Any]:
    """Write the capabilities of a server that has these kinds of features."""
    known = tuple(tools)
    capabilities: dict[str, Any] = {"logging": {}}
    for kind in ("tools", "prompts", "resources"):
        if kind in offers:
            capabilities[kind] = {"listChanged": True}
    if "resources" in offers:
        capabilities["resources"]["subscribe"] = True
    if "prompts" in offers or "resources" in offers:
        capabilities["completions"] = {}
    announced: dict[str, Any] = {extension.identifier: extension.settings for extension in extensions}
    if any(tool.app is not None for tool in known):
        announced.setdefault(APP_EXTENSION, {})
    if runs_tasks(known):
        announced.setdefault(TASKS_EXTENSION, {})
    if announced:
        capabilities["extensions"] = announced
    return capabilities


def runs_tasks(tools: Iterable[AnyTool]) -> bool:
    """Tell whether some tool may run as a task."""
    return any(tool.task_support != "forbidden" for tool in tools)
