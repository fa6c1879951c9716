"""Registries that change while they are served, and tools that change them."""

from typing import Any, Literal

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, ITool, PromptRegistry, ResourceRegistry, ToolRegistry, prompt, resource
from axolotl_core.registry import Registry
from axolotl_core.tools.schema_tool import SchemaTool


@prompt
async def extra_prompt() -> str:
    """Come and go."""
    return "extra"


@resource("extra://resource")
async def extra_resource() -> str:
    """Come and go."""
    return "extra"


def _extra_tool(arguments: dict[str, Any]) -> str:
    return "extra"


extra_tool = SchemaTool("extra_tool", {}, _extra_tool)


class Which(BaseModel):
    kind: Literal["tools", "prompts", "resources"]


class Toggle(ITool[Which, str]):
    name = "toggle"
    description = "Add something to a list, or take it away again"

    def __init__(self, tools: ToolRegistry, prompts: PromptRegistry, resources: ResourceRegistry) -> None:
        self._registries: dict[str, tuple[Registry[Any], Any]] = {
            "tools": (tools, extra_tool),
            "prompts": (prompts, extra_prompt),
            "resources": (resources, extra_resource),
        }

    async def execute(self, arguments: Which, context: Context) -> str:
        registry, item = self._registries[arguments.kind]
        if registry.unregister(registry.name_of(item)):
            return "taken away"
        registry.register(item)
        return "added"


class Where(BaseModel):
    uri: str


class Touch(ITool[Where, str]):
    name = "touch"
    description = "Say that a resource changed"

    def __init__(self, resources: ResourceRegistry) -> None:
        self._resources = resources

    async def execute(self, arguments: Where, context: Context) -> str:
        self._resources.updated(arguments.uri)
        return "touched"


@resource("docs://tree")
async def tree() -> str:
    """Hold others."""
    return "tree"


@resource("docs://note")
async def note() -> str:
    """Stand alone."""
    return "note"


@resource("docs://made/{name}")
async def made(name: str) -> str:
    """Be one of many."""
    return name


@prompt
async def steady() -> str:
    """Stay."""
    return "steady"


def _settings(**sections: Any) -> dict[str, Any]:
    return {"server": {"name": "transcripts", "version": "1"}, **sections}


class Container(containers.DeclarativeContainer):
    """Lists that change."""

    settings = providers.Callable(_settings)
    tool_registry = providers.Singleton(ToolRegistry)
    prompt_registry = providers.Singleton(PromptRegistry)
    resource_registry = providers.Singleton(ResourceRegistry)
    tools = providers.List(
        providers.Singleton(Toggle, tool_registry, prompt_registry, resource_registry),
        providers.Singleton(Touch, resource_registry),
    )
    prompts = providers.List(providers.Object(steady))
    resources = providers.List(providers.Object(tree), providers.Object(note), providers.Object(made))


class Narrow(Container):
    """The same, with limits of one subscription and two resources."""

    settings = providers.Callable(_settings, subscriptions={"maximum": 1})
