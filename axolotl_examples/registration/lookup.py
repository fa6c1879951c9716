"""Tools that find and list the tools that their caller may use, also those registered later."""

from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, NoArguments, ToolError


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

    async def execute(self, arguments: ToolName, context: Context) -> FoundTool:
        name = arguments.name.casefold()
        tool = next((one for one in await context.visible_tools() if one.name.casefold() == name), None)
        if tool is None:
            raise ToolError(f"没有名为 {arguments.name} 的工具")
        return FoundTool(
            name=tool.name, description=tool.description, required=list(tool.input_schema.get("required", ()))
        )


class ToolNames(ITool[NoArguments, list[str]]):
    """Lists the names of the tools in the order of registration."""

    name = "tool_names"
    description = "列出所有已注册工具的名称"

    async def execute(self, arguments: NoArguments, context: Context) -> list[str]:
        return [tool.name for tool in await context.visible_tools()]
