"""The list of tasks in the console."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from axolotl_core import tool
from tests.support.audited_calls import read_log
from tests.support.peers.session_client import Client
from tests.support.peers.task_peers import Job
from tests.support.peers.task_results import begin
from tests.support.servers.console_server import PAGE, TOKEN, ConsoleServer, ask_directly, serving_console
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.tools import container_of


@tool(task_support="optional")
async def quick() -> str:
    """End at once."""
    return "done"


@pytest_asyncio.fixture(params=["memory", "sqlite"])
async def server(request: pytest.FixtureRequest, tmp_path: Path, job: Job) -> AsyncIterator[ConsoleServer]:
    """A server with tasks in memory or in a file."""
    url = None if request.param == "memory" else f"sqlite:///{tmp_path}/tasks.db"
    tasks = {"url": url, "maximum": 1000}
    settings = {"tasks": tasks, "limits": {"share_per_caller": 1}, "audit": {"jsonl_path": tmp_path / "audit.jsonl"}}
    async with serving_console(container_of(job, quick), settings) as running:
        await running.host.begin()
        yield running


@pytest.fixture
def job() -> Job:
    """A tool that runs until it is released."""
    return Job()


@pytest_asyncio.fixture
async def client(server: ConsoleServer, http: httpx2.AsyncClient) -> Client:
    """A client that begins tasks."""
    client = Client(http, f"{server.url}/mcp")
    await client.begin()
    return client


async def listed(server: ConsoleServer, http: httpx2.AsyncClient) -> list[dict[str, Any]]:
    reply = await http.get(f"{server.url}/console/tasks", headers=PAGE)
    assert reply.status_code == 200, reply.text
    tasks: list[dict[str, Any]] = reply.json()["tasks"]
    return tasks


async def test_the_latest_tasks_are_listed(server: ConsoleServer, client: Client, http: httpx2.AsyncClient) -> None:
    """The latest hundred tasks are listed, the latest first, without IDs and owners."""
    assert await listed(server, http) == []
    ids = [await begin(client, "quick") for _ in range(3)]
    tasks = await listed(server, http)
    assert [task["number"] for task in tasks] == [3, 2, 1]
    assert set(tasks[0]) == {"number", "id", "tool", "status", "runs", "created_at", "message", "open"}
    assert tasks[0]["tool"] == "quick"
    reply = await http.get(f"{server.url}/console/tasks", headers=PAGE)
    assert not [task_id for task_id in ids if task_id in reply.text]
    for _ in range(120):
        await begin(client, "quick")
    assert [task["number"] for task in await listed(server, http)] == list(range(123, 23, -1))


async def test_a_task_is_cancelled(
    server: ConsoleServer, client: Client, job: Job, http: httpx2.AsyncClient, tmp_path: Path
) -> None:
    """A running task is cancelled by its number and digest, which stops its code and is recorded."""
    await begin(client, "job")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await job.started.wait()
    (task,) = await listed(server, http)
    assert (task["status"], task["open"], task["runs"]) == ("working", True, 1)
    address, query = f"{server.url}/console/tasks/cancel", {"number": task["number"], "id": task["id"]}
    for wrong in ({**query, "id": "0" * 8}, {**query, "number": 7}):
        assert (await http.post(address, params=wrong, headers=PAGE)).status_code == 404
    for wrong in ({"id": task["id"]}, {**query, "number": "-1"}, {**query, "number": "9" * 19}):
        assert (await http.post(address, params=wrong, headers=PAGE)).status_code == 400
    assert (await http.get(address, params=query, headers=PAGE)).status_code == 405
    assert (await http.post(address, params=query)).status_code == 403
    cancelled = await http.post(address, params=query, headers=PAGE)
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await job.cancelled.wait()
    assert [(one["status"], one["open"]) for one in await listed(server, http)] == [("cancelled", False)]
    await http.post(address, params=query, headers=PAGE)
    [record] = [one for one in read_log(tmp_path / "audit.jsonl") if one["event"] == "cancelled"]
    assert (record["name"], record["reason"], record["subject"]) == ("job", "operator", "anonymous")


@pytest.mark.parametrize(
    ("changes", "status"),
    [({"client": "192.0.2.7"}, 403), ({"origin": "https://evil.example"}, 403), ({"x_axolotl_console": "other"}, 403)],
)
async def test_strangers_cancel_nothing(server: ConsoleServer, changes: dict[str, Any], status: int) -> None:
    """Only the page of this machine can cancel tasks, with the token."""
    given = {"method": "POST", "x_axolotl_console": TOKEN, **changes}
    assert (await ask_directly(server.app, "/console/tasks/cancel", **given))[0] == status
