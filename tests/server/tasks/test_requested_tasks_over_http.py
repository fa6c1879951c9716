"""Tasks that the client requests, over HTTP and stdio."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from tests.support.peers.session_client import Client
from tests.support.peers.task_peers import RELATED, STATUS, Herald, Job, records_of
from tests.support.peers.task_results import Waiting, begin, fetching, is_lost, requests_of
from tests.support.peers.wire import INITIALIZE, message
from tests.support.scenarios.task_tools import greet
from tests.support.servers.server_process import over_http, starting
from tests.support.servers.serving import HttpServer, serving, until
from tests.support.tools import container_of

TARGET = "tests/support/containers/stdio_task_tools.py:Container"


@pytest.fixture
def herald() -> Herald:
    """A tool that sends progress and log messages."""
    return Herald("herald")


@pytest_asyncio.fixture
async def server(herald: Herald, job: Job) -> AsyncIterator[HttpServer]:
    """An HTTP server."""
    async with serving(container_of(herald, job, greet)) as running:
        yield running


@pytest_asyncio.fixture
async def client(server: HttpServer, http: httpx2.AsyncClient) -> Client:
    """A client with a session."""
    client = Client(http, server.url)
    await client.begin()
    return client


def has_related(message: Any) -> bool:
    return RELATED in json.dumps(message)


async def test_a_result_over_http_is_plain(client: Client, job: Job) -> None:
    """The result of a task without messages is plain JSON."""
    task_id = await begin(client, "job")
    waiting = asyncio.ensure_future(client.post(fetching(task_id)))
    await job.started.wait()
    job.release.set()
    reply = await waiting
    assert reply.headers["content-type"] == "application/json"
    assert reply.json()["result"]["_meta"] == {RELATED: {"taskId": task_id}}


async def test_a_task_speaks_where_somebody_waits(server: HttpServer, client: Client, herald: Herald) -> None:
    """Messages of a task go to the latest request that waits for it, and then to an earlier one."""
    task_id = await begin(client, "herald", _meta={"progressToken": 1})
    await herald.started.wait()
    assert herald.context is not None
    first = Waiting(client, task_id, 7)
    await until(lambda: 7 in requests_of(server))
    second = Waiting(client, task_id, 8)
    await until(lambda: 8 in requests_of(server))
    herald.context.report_progress(1.25)
    assert (await second.next())["params"]["progress"] == 1.25
    await client.post(message("notifications/cancelled", {"requestId": 8}, id=None))
    assert [said["error"]["code"] for said in await second.rest()] == [-32800]
    herald.context.report_progress(1.5)
    assert (await first.next())["params"]["progress"] == 1.5
    herald.release.set()
    rest = await first.rest()
    assert [said.get("method") for said in rest] == ["notifications/progress", "notifications/message", None]
    assert all(has_related(said) for said in rest)


async def test_a_task_speaks_to_its_session(client: Client, herald: Herald) -> None:
    """While no request waits, messages of a task go to the GET stream of the session."""
    async with client.hearing() as stream:
        assert (await stream.take()).is_priming
        task_id = await begin(client, "herald", _meta={"progressToken": 1})
        herald.release.set()
        told = [(await stream.take()).message for _ in range(5)]
    assert [said["method"].removeprefix("notifications/") for said in told] == [
        "progress",
        "message",
        "progress",
        "message",
        "tasks/status",
    ]
    assert [has_related(said) for said in told] == [True, True, True, True, False]
    assert told[4]["params"]["taskId"] == task_id


async def test_a_client_that_takes_no_stream(server: HttpServer, client: Client, herald: Herald) -> None:
    """For a client that does not accept streams, messages go to its session."""
    async with client.hearing() as stream:
        assert (await stream.take()).is_priming
        task_id = await begin(client, "herald", _meta={"progressToken": 1})
        await herald.started.wait()
        waiting = asyncio.ensure_future(client.post(fetching(task_id), Accept="application/json"))
        await until(lambda: 7 in requests_of(server))
        herald.release.set()
        assert (await waiting).json()["result"]["content"][0]["text"] == "done"
        told = [(await stream.take()).message["method"] for _ in range(4)]
    assert told.count("notifications/progress") == 2


async def test_a_lost_connection_ends_nothing(server: HttpServer, client: Client, job: Job) -> None:
    """A client that loses its connection while waiting can ask again; the lost request is dropped."""
    task_id = await begin(client, "job")
    lost = Waiting(client, task_id)
    await until(lambda: 7 in requests_of(server))
    await lost.leave()
    await until(lambda: 7 not in requests_of(server))
    assert not job.cancelled.is_set()
    again = Waiting(client, task_id, 8)
    await until(lambda: 8 in requests_of(server))
    job.release.set()
    (reply,) = await again.rest()
    assert (reply["id"], reply["result"]["content"][0]["text"]) == (8, "done")


async def test_a_lost_stream_can_be_resumed(server: HttpServer, client: Client, herald: Herald) -> None:
    """A broken result stream can be resumed, including the result."""
    task_id = await begin(client, "herald", _meta={"progressToken": 1})
    await herald.started.wait()
    assert herald.context is not None
    lost = Waiting(client, task_id)
    await until(lambda: 7 in requests_of(server))
    herald.context.report_progress(1.5)
    assert (await lost.next())["params"]["progress"] == 1.5
    await lost.leave()
    await until(lambda: is_lost(server, 7))
    herald.release.set()
    async with client.hearing(lost.last_event_id) as resumed:
        told = [event.message for event in await resumed.rest() if event.data]
    assert [said.get("method") for said in told] == ["notifications/progress", "notifications/message", None]
    assert told[-1]["id"] == 7


async def test_another_session_finds_nothing(server: HttpServer, client: Client, http: httpx2.AsyncClient) -> None:
    """For anonymous callers, no other session can see, fetch, cancel or list a task."""
    task_id = await begin(client, "job")
    other = Client(http, server.url)
    await other.begin()
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        assert (await other.post(message(method, {"taskId": task_id}))).json()["error"]["code"] == -32602
    assert (await other.post(message("tasks/list"))).json()["result"]["tasks"] == []
    assert len((await client.post(message("tasks/list"))).json()["result"]["tasks"]) == 1


async def test_the_end_of_a_session(server: HttpServer, client: Client, job: Job, herald: Herald) -> None:
    """Ending a session ends waiting requests but not tasks, and later messages are dropped."""
    task_id = await begin(client, "job")
    await begin(client, "herald", _meta={"progressToken": 1})
    async with client.hearing() as stream:
        assert (await stream.take()).is_priming
        waiting = Waiting(client, task_id)
        await until(lambda: 7 in requests_of(server))
        assert (await client.end()).status_code == 200
        assert [said["error"]["code"] for said in await waiting.rest()] == [-32800]
        assert await stream.next() is None
    assert not job.cancelled.is_set()
    job.release.set()
    herald.release.set()
    await until(lambda: not server.host.handler.inflight)
    assert {task.status for task in records_of(server.host)} == {"completed"}


async def test_waiting_keeps_a_session_alive(http: httpx2.AsyncClient, job: Job) -> None:
    """A session is not idle while its client waits for a result."""
    async with serving(container_of(job), {"sessions": {"idle_seconds": 0.5}}) as server:
        client = Client(http, server.url)
        await client.begin()
        waiting = Waiting(client, await begin(client, "job"))
        await until(lambda: 7 in requests_of(server))
        (session,) = server.app.sessions._by_id.values()
        used = session.last_used
        await until(lambda: session.last_used > used + 0.05)
        job.release.set()
        assert [reply["id"] for reply in await waiting.rest()] == [7]


async def test_tasks_over_stdio(tmp_path: Path) -> None:
    """Over stdio, a task runs, is fetched, and is stopped when the client disconnects."""
    async with starting(TARGET) as server:
        server.say(message("initialize", INITIALIZE, id=0))
        server.say(message("notifications/initialized", id=None))
        await server.hear()
        server.say(message("tools/call", {"name": "greet", "arguments": {"name": "Ada"}, "task": {}}, id=1))
        created, ended = await server.hear(), await server.hear()
        task_id = created["result"]["task"]["taskId"]
        assert (ended["method"], ended["params"]["status"]) == (STATUS, "completed")
        server.say(fetching(task_id, 2))
        assert (await server.hear())["result"]["content"][0]["text"] == "Hello, Ada!"
        linger = {"name": "linger", "arguments": {"path": str(tmp_path / "end")}, "task": {}}
        server.say(message("tools/call", {**linger, "_meta": {"progressToken": 1}}, id=3))
        lingering = (await server.hear())["result"]["task"]["taskId"]
        assert has_related(await server.hear())
        server.say(fetching(lingering, 4))
        code, (told, reply), _ = await server.end()
    assert code == 0
    assert (told["method"], told["params"]["status"]) == (STATUS, "failed")
    assert (reply["id"], reply["result"]["_meta"]["axolotl/reason"]) == (4, "shutdown")
    assert (tmp_path / "end").read_text() == "shutdown"


async def test_a_server_over_http_is_told_to_stop(http: httpx2.AsyncClient, tmp_path: Path) -> None:
    """A shutdown stops tasks after the grace period, and waiting clients get the reply of a stopped call."""
    async with over_http(TARGET) as server:
        client = Client(http, f"http://127.0.0.1:{server.port}/mcp")
        await client.begin()
        note = tmp_path / "end"
        task_id = await begin(client, "linger", arguments={"path": str(note)}, _meta={"progressToken": 1})
        waiting = Waiting(client, task_id)
        await client.post(message("ping"))
        server.tell(signal.SIGTERM)
        (reply,) = await waiting.rest()
        assert (await server.ended(), "Traceback" in server.log) == (0, False)
    result = reply["result"]
    assert (result["isError"], result["_meta"][RELATED]) == (True, {"taskId": task_id})
    assert result["_meta"]["axolotl/reason"] == "shutdown"
    assert await asyncio.to_thread(note.read_text) == "shutdown"
