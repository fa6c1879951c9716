"""`axolotl list`: the tools of a container, a line each."""

from typing import TYPE_CHECKING, Any

from axolotl_cli.options import AsJson, Target, ToolSets

if TYPE_CHECKING:
    from axolotl_cli.description import ToolDescription
    from axolotl_server.host import ServerHost

__all__ = ["list_tools"]


def list_tools(target: Target = None, toolset: ToolSets = None, as_json: AsJson = False) -> None:
    """List the tools of a container."""
    from axolotl_cli.render import print_json
    from axolotl_cli.running import with_host
    from axolotl_cli.targets import choose

    tools = with_host(choose(target, toolset), _describe)
    if as_json:
        print_json([_summary(tool) for tool in tools])
    else:
        _print_table(tools)


async def _describe(host: "ServerHost") -> "list[ToolDescription]":
    from axolotl_cli.description import describe_tools

    return describe_tools(host)


def _summary(tool: "ToolDescription") -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "toolset": tool.toolset,
        "execution": tool.limits.execution,
        "timeout_seconds": tool.limits.timeout_seconds,
    }


def _print_table(tools: "list[ToolDescription]") -> None:
    from axolotl_cli.render import number, seconds, show, table

    rows = [
        (tool.name, tool.headline, tool.toolset or "–", tool.limits.execution, seconds(tool.limits.timeout_seconds))
        for tool in tools
    ]
    if rows:
        show(table(("Tool", "Description", "Tool set", "Runs in", "Timeout"), rows), "")
    show(number(len(rows), "tool"))
