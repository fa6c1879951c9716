"""Objects mounted as activations, the rule for their tool names, and the activation `hub`, which lists them."""

from collections.abc import AsyncIterator
from copy import copy
from typing import Annotated, Any

from pydantic import BaseModel, Field

from axolotl_core import Context, ToolAnnotations, ToolError, tool, tools_of
from axolotl_core.names import INameRule
from axolotl_core.tools.tool import FunctionTool


def mount(namespace: str, activation: object) -> tuple[FunctionTool[..., Any], ...]:
    """Give the `@tool` methods of an object names of the form `namespace.method`."""
    methods = tuple(map(copy, tools_of(activation)))
    for method in methods:
        method.name = f"{namespace}.{method.name}"
    return methods


class NamespacedNames(INameRule):
    """Requires names of the form `namespace.method`."""

    def fault_of(self, name: str) -> str | None:
        namespace, _, method = name.partition(".")
        return None if namespace and method else f"Invalid tool name format: '{name}'"


Namespace = Annotated[str, Field(description="The namespace of the activation.", examples=["conversation"])]


class Method(BaseModel):
    """A method of an activation."""

    name: str = Field(description="The full name of the method.")
    description: str = Field(description="What it does.")


class Directory:
    """Lists the methods that the caller may use; a registry would also contain those that are denied to the caller."""

    @tool(title="Activations", annotations=ToolAnnotations(read_only=True))
    async def activations(self, context: Context) -> list[str]:
        """List the namespaces of the hub."""
        namespaces = (mounted.name.partition(".")[0] for mounted in await context.visible_tools())
        return list(dict.fromkeys(namespaces))

    @tool(title="Methods", annotations=ToolAnnotations(read_only=True))
    async def methods(self, namespace: Namespace, context: Context) -> AsyncIterator[Method]:
        """Stream the methods of an activation."""
        prefix = f"{namespace}.".casefold()
        found = [mounted for mounted in await context.visible_tools() if mounted.name.casefold().startswith(prefix)]
        if not found:
            raise ToolError(f"Activation '{namespace}' not found")
        for mounted in found:
            yield Method(name=mounted.name, description=mounted.description)
