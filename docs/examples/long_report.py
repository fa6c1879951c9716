import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dependency_injector import containers, providers
from pydantic import BaseModel

from axolotl_core import Context, tool
from axolotl_server import InProcessClient, connect

CLIENT: dict[str, Any] = {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}


# region tool
class Figures(BaseModel):
    total: int


class Review(BaseModel):
    publish: bool


async def collect(quarter: str) -> Figures:
    print("collecting", quarter)
    return Figures(total=42)


@tool(task_support="required", task_restart="resume", timeout_seconds=3600)
async def report(quarter: str, context: Context) -> str:
    """Collect figures for a report, and publish it after a review."""
    figures = await context.step("collect", lambda once: collect(quarter), model=Figures)
    answer = await context.ask(Review, f"The total is {figures.total}. Publish it?", key="publish")
    return f"{quarter}: {figures.total}, {'published' if answer.publish else 'kept'}"


# endregion tool


class Container(containers.DeclarativeContainer):
    tools = providers.List(providers.Object(report))


async def until(client: InProcessClient, task_id: str, status: str) -> dict[str, Any]:
    while True:
        state: dict[str, Any] = await client.request("tasks/get", {"taskId": task_id})
        if state["status"] == status:
            return state
        await asyncio.sleep(state["pollIntervalMs"] / 1000)


# region restart
async def main(url: str) -> None:
    settings = {"tasks": {"url": url}}
    async with connect(Container(), capabilities=CLIENT, settings=settings) as client:
        task = await client.request("tools/call", {"name": "report", "arguments": {"quarter": "Q3"}})
        print((await until(client, task["taskId"], "input_required"))["status"])
    print("the server is restarted")
    async with connect(Container(), capabilities=CLIENT, settings=settings) as client:
        answers = {"publish": {"action": "accept", "content": {"publish": True}}}
        await until(client, task["taskId"], "input_required")
        await client.request("tasks/update", {"taskId": task["taskId"], "inputResponses": answers})
        state = await until(client, task["taskId"], "completed")
        print(state["result"]["content"][0]["text"])


# endregion restart


if __name__ == "__main__":
    with TemporaryDirectory() as directory:
        asyncio.run(main(sys.argv[1] if sys.argv[1:] else f"sqlite:///{Path(directory) / 'tasks.db'}"))
