"""Limits per principal: nobody can use up the sessions, streams, tasks and calls of all others."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from axolotl_core import tool
from axolotl_core.protocol.messages import CLIENT_CAPABILITIES_KEY
from axolotl_server import connect
from axolotl_server.access.api_keys import hash_key
from axolotl_server.extensions.tasks.engines.task_statements import TaskStatements
from axolotl_server.extensions.tasks.engines.task_states import ENDED_BYTES
from tests.support.peers.session_client import EventReader
from tests.support.peers.task_peers import EXTENSION
from tests.support.peers.wire import INITIALIZE, JSON_HEADERS, META, call, message, mirrored
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.tools import Echo, Probe, container_of

GREEDY, QUIET = "axk_key-of-a-greedy-caller", "axk_key-of-a-quiet-caller"
AUTH: Mapping[str, Any] = {"api_keys": {"greedy": {"hash": hash_key(GREEDY)}, "quiet": {"hash": hash_key(QUIET)}}}
OPEN: Mapping[str, Any] = {"http": {"allowed_hosts": ["server"]}}
ADDRESSES = ["192.0.2.1", "192.0.2.2"]


@tool(task_support="required")
async def write(length: int) -> str:
    """Write a text as a task."""
    return "x" * length


TWO_OF_THREE = {"share_per_caller": 0.67}


class Caller:
    """Sends requests of one principal."""

    def __init__(self, http: httpx2.AsyncClient, url: str, token: str | None = None) -> None:
        self.http = http
        self._url = url
        self._token = {} if token is None else {"Authorization": f"Bearer {token}"}

    async def post(self, body: bytes, headers: Mapping[str, str]) -> httpx2.Response:
        return await self.http.post(self._url, content=body, headers={**headers, **self._token})

    async def handshake(self) -> httpx2.Response:
        return await self.post(message("initialize", INITIALIZE), JSON_HEADERS)

    async def end(self, begun: httpx2.Response) -> httpx2.Response:
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
        return await self.http.delete(self._url, headers={**session, **self._token})

    async def call(self, name: str) -> Any:
        return (await self.post(call(name), mirrored(name=name))).json()["result"]

    async def task(self, method: str, **params: Any) -> Any:
        meta = {**META, CLIENT_CAPABILITIES_KEY: {"extensions": {EXTENSION: {}}}}
        reply = await self.post(
            message(method, {**params, "_meta": meta}), mirrored(method, params.get("name") or params["taskId"])
        )
        return reply.json()

    async def begin_task(self, length: int = 1) -> Any:
        return (await self.task("tools/call", name="write", arguments={"length": length}))["result"]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[Any]:
        """Open a subscription, and give its first message."""
        body = message("subscriptions/listen", {"notifications": {"toolsListChanged": True}, "_meta": META})
        headers = {**mirrored("subscriptions/listen"), **self._token}
        async with self.http.stream("POST", self._url, content=body, headers=headers) as response:
            if response.headers["content-type"] == "application/json":
                await response.aread()
                yield response.json()
            else:
                reader = EventReader(response)  # the response is closed when it is collected
                yield (await reader.take()).message


@asynccontextmanager
async def callers(*tools: Any, **settings: Any) -> AsyncIterator[tuple[Caller, Caller, HttpServer]]:
    """Serve tools to a greedy and a quiet caller."""
    limits = httpx2.Limits(max_connections=None)
    container = container_of(*tools, Echo())
    async with (
        serving(container, {"auth": AUTH, **settings}) as server,
        httpx2.AsyncClient(limits=limits, timeout=PATIENCE_SECONDS) as http,
    ):
        yield Caller(http, server.url, GREEDY), Caller(http, server.url, QUIET), server


async def test_sessions() -> None:
    """A principal with too many sessions gets 429 with a hint, others begin one; an ended session makes room."""
    async with callers(sessions={"maximum": 3}, limits=TWO_OF_THREE) as (greedy, quiet, _):
        begun = [await greedy.handshake() for _ in range(2)]
        refused = await greedy.handshake()
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
        assert refused.json()["error"]["message"] == (
            "Too many sessions of one caller, which may have 2: end one with DELETE, or try again later"
        )
        assert refused.json()["error"]["data"] == {"reason": "overloaded", "retryAfterMs": 10_000}
        assert (await quiet.handshake()).status_code == 200
        await greedy.end(begun[0])
        assert (await greedy.handshake()).status_code == 200


async def test_shared_sessions(tmp_path: Path) -> None:
    """Sessions that several processes share are limited, too."""
    sessions = {"directory": str(tmp_path), "maximum": 20}
    async with callers(sessions=sessions) as (greedy, quiet, _):
        assert [(await greedy.handshake()).status_code for _ in range(3)] == [200, 200, 503]
        assert (await quiet.handshake()).status_code == 200


async def test_subscriptions() -> None:
    """A principal with too many open subscriptions is refused, others are not."""
    async with callers(subscriptions={"maximum": 3}, limits=TWO_OF_THREE) as (greedy, quiet, server):
        async with AsyncExitStack() as stack:
            for _ in range(2):
                await stack.enter_async_context(greedy.listening())
            error = (await stack.enter_async_context(greedy.listening()))["error"]
            assert error["message"] == "Too many subscriptions: one caller may have 2 open; end one first"
            assert error["data"] == {"reason": "overloaded", "retryAfterMs": 1000}
            assert "method" in await stack.enter_async_context(quiet.listening())
        await until(lambda: not server.host.handler.subscriptions.listeners)


async def test_running_calls() -> None:
    """A principal with too many running calls is refused, others are not; afterwards nothing is counted."""
    probe = Probe()
    limits = {"max_inflight": 4, "share_per_caller": 0.5}
    async with callers(probe, limits=limits) as (greedy, quiet, server):
        inflight = server.host.handler.inflight
        running = [asyncio.create_task(greedy.call("probe")) for _ in range(2)]
        await until(lambda: len(inflight) == 2)
        refused = await greedy.call("echo")
        assert refused["isError"]
        assert refused["_meta"]["axolotl/reason"] == "overloaded"
        assert refused["_meta"]["axolotl/retryAfterMs"] == 1000
        assert refused["content"][0]["text"] == "Too many calls are running: one caller may run 2 at once; try again"
        assert inflight.refused == 1
        assert "isError" not in await quiet.call("echo")
        running += [asyncio.create_task(quiet.call("probe")) for _ in range(2)]
        await until(lambda: len(inflight) == 4)
        assert (await quiet.call("echo"))["content"][0]["text"] == "The server is busy; try again"
        probe.release.set()
        assert [result["content"][0]["text"] for result in await asyncio.gather(*running)] == ["done"] * 4
        assert "isError" not in await greedy.call("echo")


async def test_tasks() -> None:
    """A principal with too many open tasks is refused, others are not; those that have ended do not count."""
    release = asyncio.Event()

    @tool(name="write", task_support="required")
    async def wait(length: int) -> int:
        """Wait."""
        await release.wait()
        return length

    async with callers(wait, tasks={"maximum": 3}, limits=TWO_OF_THREE) as (greedy, quiet, _):
        for _ in range(2):
            assert (await greedy.begin_task())["resultType"] == "task"
        refused = await greedy.begin_task()
        assert refused["isError"]
        assert refused["content"][0]["text"] == (
            "Too many tasks: one caller may have 2 open; try again when one has ended"
        )
        assert refused["_meta"]["axolotl/reason"] == "overloaded"
        assert (await quiet.begin_task())["resultType"] == "task"
        release.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await greedy.begin_task()).get("isError"):
                pass


async def test_large_arguments_of_tasks_are_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The arguments of open tasks may take a number of bytes in all, half of it for one caller; small ones are free."""
    release = asyncio.Event()

    @tool(task_support="required")
    async def keep(text: str) -> int:
        """Keep a text."""
        await release.wait()
        return len(text)

    async def begin(caller: Caller, size: int) -> Any:
        return (await caller.task("tools/call", name="keep", arguments={"text": "x" * size}))["result"]

    monkeypatch.setattr(TaskStatements, "max_bytes", 1_000_000)
    async with callers(keep) as (greedy, quiet, _):
        assert (await begin(greedy, 400_000))["resultType"] == "task"
        refused = await begin(greedy, 400_000)
        assert refused["content"][0]["text"] == "There are too many tasks with large arguments; try again later"
        assert refused["_meta"]["axolotl/reason"] == "overloaded"
        assert (await begin(greedy, 1_000))["resultType"] == "task"
        assert (await begin(quiet, 400_000))["resultType"] == "task"
        release.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await begin(greedy, 400_000)).get("isError"):
                pass


async def test_results_of_tasks_are_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the results of tasks take too much memory, the caller with the largest results loses its oldest task."""

    async def finished(caller: Caller, length: int) -> str:
        task_id = str((await caller.begin_task(length))["taskId"])
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await caller.task("tasks/get", taskId=task_id))["result"]["status"] == "working":
                pass
        return task_id

    monkeypatch.setattr(TaskStatements, "max_bytes", 6_500 + 3 * ENDED_BYTES + 100)
    async with callers(write) as (greedy, quiet, _):
        kept = await finished(quiet, 1000)
        first, second, third = [await finished(greedy, 2000) for _ in range(3)]
        lost = await greedy.task("tasks/get", taskId=first)
        assert lost["error"]["message"] == (
            "The result of the task was dropped: newer results of its caller took its place"
        )
        for caller, task_id in ((greedy, second), (greedy, third), (quiet, kept)):
            assert (await caller.task("tasks/get", taskId=task_id))["result"]["status"] == "completed"


@pytest.mark.parametrize(
    ("one", "other", "refused"),
    [
        pytest.param("192.0.2.1", "192.0.2.1", True, id="same"),
        pytest.param("192.0.2.1", "192.0.2.2", False, id="different"),
        pytest.param("192.0.2.1", "::ffff:192.0.2.1", True, id="mapped"),
        pytest.param("2001:db8::1", "2001:db8::ffff:2", True, id="same-network"),
        pytest.param("2001:db8::1", "2001:db8:0:1::1", False, id="different-network"),
        pytest.param("127.0.0.1", "127.0.0.1", False, id="loopback"),
        pytest.param("::1", "::1", False, id="loopback-6"),
        pytest.param("/run/proxy.sock", "/run/proxy.sock", False, id="socket"),
    ],
)
async def test_anonymous_callers_are_told_apart_by_address(one: str, other: str, refused: bool) -> None:
    """Anonymous callers of one address share a limit, except on the same machine, where a proxy may stand for many."""
    settings = {"sessions": {"maximum": 10}, **OPEN}
    async with serving(container_of(Echo()), settings) as server:
        statuses = []
        for address in (one, other):
            transport = httpx2.ASGITransport(server.app, client=(address, 1))
            async with httpx2.AsyncClient(transport=transport) as http:
                statuses.append((await Caller(http, "http://server/mcp").handshake()).status_code)
        assert statuses == [200, 429 if refused else 200]


async def test_a_limit_can_be_turned_off() -> None:
    """With 1, one principal may have all sessions."""
    async with callers(sessions={"maximum": 3}, limits={"share_per_caller": 1}) as (greedy, _, _):
        assert [(await greedy.handshake()).status_code for _ in range(4)] == [200, 200, 200, 503]


async def test_a_client_that_is_alone_has_everything() -> None:
    """On stdio and in memory there is one client, which is not limited."""
    probe = Probe()
    settings = {"limits": {"max_inflight": 10}}
    async with connect(container_of(probe, Echo()), settings=settings) as client:
        calls = [asyncio.create_task(client.call("probe")) for _ in range(3)]
        await probe.started.wait()
        assert not (await client.call("echo", {"text": "hello"})).is_error
        probe.release.set()
        assert not any(outcome.is_error for outcome in await asyncio.gather(*calls))
