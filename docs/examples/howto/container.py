import time

from dependency_injector import containers, providers

from axolotl_core import Breaker, Context, Retry, ToolAnnotations, tool


# region blocking
@tool
def convert(text: str) -> str:
    """Convert a text, with code that blocks."""
    time.sleep(0.01)
    return text.upper()


# endregion blocking


# region resilient
@tool(
    timeout_seconds=5,
    retry=Retry(attempts=3),
    breaker=Breaker(failures=5, open_seconds=30),
    annotations=ToolAnnotations(read_only=True),
)
async def quote(weight_grams: int) -> float:
    """Ask the carrier for a price."""
    return weight_grams * 0.002


# endregion resilient


# region slow
@tool(task_support="optional", timeout_seconds=600)
async def render(pages: int, context: Context) -> int:
    """Render a report."""
    for page in range(pages):
        context.report_progress(page + 1, pages)
    return pages


# endregion slow


# region approval
@tool(requires_approval=True, annotations=ToolAnnotations(destructive=True))
async def delete_report(name: str) -> str:
    """Delete a report."""
    return f"{name} is deleted"


# endregion approval


class Container(containers.DeclarativeContainer):
    tools = providers.Aggregate(
        read=providers.List(providers.Object(convert), providers.Object(quote), providers.Object(render)),
        write=providers.List(providers.Object(delete_report)),
    )
