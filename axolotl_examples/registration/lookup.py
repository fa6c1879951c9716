"""Tools that read the server's tool registry and see every change to it."""

from pydantic import BaseModel, Field

from axolotl_core import ITool, NoArguments, ToolContext, ToolError, ToolRegistry


class ToolName(BaseModel):
    name: str = Field(description="工具名称，不区分大小写", examples=["Echo"])


class FoundTool(BaseModel):
    name: str = Field(description="注册时的名称")
    description: str = Field(description="工具描述")
    required: list[str] = Field(description="必填参数")


class FindTool(ITool[ToolName, FoundTool]):
    """Finds a tool by its name, ignoring case."""

    name = "find_tool"
    description = "按名称查询工具"

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    async def execute(self, arguments: ToolName, context: ToolContext) -> FoundTool:
        tool = self._registry.try_get(arguments.name)
        if tool is None:
            raise ToolError(f"没有名为 {arguments.name} 的工具")
        return FoundTool(
            name=tool.name, description=tool.description, required=list(tool.input_schema.get("required", ()))
        )


class ToolNames(ITool[NoArguments, list[str]]):
    """Lists the names of all tools in the order of registration."""

    name = "tool_names"
    description = "列出所有已注册工具的名称"

    def __init__(self, registry: ToolRegistry) -> None:
        self._registry = registry

    async def execute(self, arguments: NoArguments, context: ToolContext) -> list[str]:
        return [tool.name for tool in self._registry.get_all()]
