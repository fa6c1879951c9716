from typing import Any

from rendering import Container, Format

from axolotl_server import connect

TASKS: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


async def test_a_task() -> None:
    async with connect(Container(), capabilities=TASKS) as client:
        outcome = await client.call("render", {"film": "Newts"})
    assert outcome.text == "Newts is ready"


async def test_a_task_that_asks() -> None:
    capabilities = {**TASKS, "elicitation": {"form": {}}}
    async with connect(Container(), answer=lambda asked: Format(format="cinema"), capabilities=capabilities) as client:
        outcome = await client.call("cut", {"film": "Newts"})
    assert outcome.text == "Newts is cut for cinema"
