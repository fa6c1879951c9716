import asyncio
from typing import Any

from rendering import Container

from axolotl_server import InProcessClient, connect

CAPABILITIES: dict[str, Any] = {"elicitation": {"form": {}}, "extensions": {"io.modelcontextprotocol/tasks": {}}}


async def next_state(client: InProcessClient, task: dict[str, Any]) -> dict[str, Any]:
    while True:
        state: dict[str, Any] = await client.request("tasks/get", {"taskId": task["taskId"]})
        if state["status"] != "working":
            return state
        await asyncio.sleep(state["pollIntervalMs"] / 1000)


async def main() -> None:
    async with connect(Container(), capabilities=CAPABILITIES) as client:
        task = await client.request("tools/call", {"name": "cut", "arguments": {"film": "Newts"}})
        print(task["resultType"], task["status"])
        task = await next_state(client, task)
        print(task["status"], task["inputRequests"]["format"]["params"]["message"])
        answers = {"format": {"action": "accept", "content": {"format": "cinema"}}}
        await client.request("tasks/update", {"taskId": task["taskId"], "inputResponses": answers})
        task = await next_state(client, task)
        print(task["status"], task["result"]["content"])


if __name__ == "__main__":
    asyncio.run(main())
