"""Tools that change the lists of the server."""

from axolotl_core import Context, ITool, NoArguments, PromptRegistry, ToolRegistry, prompt, tool


@tool(name="test_passing_tool")
async def passing_tool() -> str:
    """Be there for a moment."""
    return "still here"


@prompt(name="test_passing_prompt")
async def passing_prompt() -> str:
    """Be there for a moment."""
    return "still here"


class TriggerToolChange(ITool[NoArguments, str]):
    """Adds a tool and removes it again."""

    name = "test_trigger_tool_change"
    description = "Change the list of tools."

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        self._registry.register(passing_tool)
        self._registry.unregister(passing_tool.name)
        return "The list of tools changed"


class TriggerPromptChange(ITool[NoArguments, str]):
    """Adds a prompt and removes it again."""

    name = "test_trigger_prompt_change"
    description = "Change the list of prompts."

    def __init__(self, registry: PromptRegistry) -> None:
        self._registry = registry

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        self._registry.register(passing_prompt)
        self._registry.unregister(passing_prompt.name)
        return "The list of prompts changed"
