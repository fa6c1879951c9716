import time

from dependency_injector import containers, providers
from pydantic import BaseModel, Field

from axolotl_core import Context, ITool, tool
from axolotl_core.calls.cancellation import CancelReason


class Pages(BaseModel):
    pages: int = Field(ge=1, description="The number of pages.")


# region progress
class Translate(ITool[Pages, str]):
    name = "translate"
    description = "Translate a document."
    timeout_seconds = 60.0

    async def execute(self, arguments: Pages, context: Context) -> str:
        for page in range(1, arguments.pages + 1):
            await self._translate(page)
            context.report_progress(page, arguments.pages, f"page {page}")
        return f"{arguments.pages} pages"

    async def _translate(self, page: int) -> None: ...


# endregion progress


# region thread
@tool(timeout_seconds=0.2)
def crunch(rounds: int, context: Context) -> int:
    """Work in a thread and check for cancellation between steps."""
    for _ in range(rounds):
        context.raise_if_cancelled()
        time.sleep(0.01)
    return rounds


# endregion thread


# region callback
class Query:
    """Stands for a database query that another thread can stop."""

    stopped: CancelReason | None = None

    def stop(self, reason: CancelReason) -> None:
        self.stopped = reason


@tool
async def run_query(context: Context) -> str:
    """Run a query that stops when the call is cancelled."""
    query = Query()
    context.cancellation.on_cancel(query.stop)
    return "done"


# endregion callback


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Singleton(Translate), providers.Object(crunch), providers.Object(run_query))
