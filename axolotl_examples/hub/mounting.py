"""Objects as parts of the hub, and the rule for their tool names."""

from copy import copy
from typing import Any

from axolotl_core import tools_of
from axolotl_core.names import INameRule
from axolotl_core.tools.tool import FunctionTool


def mount(namespace: str, activation: object) -> tuple[FunctionTool[..., Any], ...]:
    """Give the `@tool` methods of an object names of the form `namespace.method`."""
    tools = tuple(map(copy, tools_of(activation)))
    for tool in tools:
        tool.name = f"{namespace}.{tool.name}"
    return tools


class NamespacedNames(INameRule):
    """Requires names of the form `namespace.method`."""

    def fault_of(self, name: str) -> str | None:
        namespace, _, method = name.partition(".")
        return None if namespace and method else f"Invalid tool name format: '{name}'"
