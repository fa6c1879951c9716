from dependency_injector import containers, providers

from axolotl_core import Context, tool


@tool
async def count_down(start: int, context: Context) -> str:
    """Count down and report progress."""
    context.log("info", {"start": start}, logger="rocket")
    for done in range(1, start + 1):
        context.report_progress(done, start, f"{start - done} to go")
    return "lift-off"


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(count_down))
