"""Tasks that clients request, in the last revision with a handshake."""

import asyncio
import json
import signal
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from axolotl_core import ITool, NoArguments, Principal, ProtocolError, ToolContext, ToolError, ToolResult, tool
from axolotl_core.content import TextContent
from axolotl_core.errors import InvalidRequest
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_server import ServerHost
from tests.support.peers.session_client import Client
from tests.support.peers.task_peers import EXTENSION, RELATED, STATUS, Herald, Job, RequestingPeer
from tests.support.peers.task_results import Waiting, begin, fetching, is_lost, requests_of
from tests.support.peers.wire import INITIALIZE, message
from tests.support.servers.server_process import over_http, starting
from tests.support.servers.serving import PATIENCE_SECONDS, HttpServer, serving, until
from tests.support.tools import Echo, container_of

TARGET = "tests/support/containers/stdio_task_tools.py:Container"
ADA, BOB = Principal("ada"), Principal("bob")


@tool(task_support="optional")
async def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


@tool(task_support="optional")
async def whole() -> ToolResult:
    """Return a result with every member, including very large numbers."""
    return ToolResult((TextContent("x"),), {"big": 2**80, "half": 0.5}, meta={"example.com/own": 1})


@tool(task_support="optional")
async def refuse() -> str:
    """Fail with a message for the model."""
    raise ToolError("no such luck")


@tool(task_support="optional")
async def crash() -> str:
    """Fail with a hidden error."""
    raise RuntimeError("secret")


@tool(task_support="optional")
async def break_off() -> str:
    """Fail with a protocol error."""
    raise InvalidRequest("broken off", data={"piece": 3})


@tool(task_support="optional")
async def mumble() -> str:
    """Fail with an error that cannot be encoded."""
    raise ProtocolError("mumbled", data=object())


@tool(task_support="optional", timeout_seconds=0.01)
async def overrun() -> None:
    """Exceed the timeout."""
    await asyncio.Event().wait()


FAILING = (refuse, crash, break_off, mumble, overrun)


class Grinder(ITool[NoArguments, str]):
    """Works in a thread until it is released or stopped."""

    name = "grind"
    execution = "thread"
    task_support = "optional"

    def __init__(self) -> None:
        self.started = threading.Event()
        self.release = threading.Event()
        self.stopped = threading.Event()

    async def execute(self, arguments: NoArguments, context: ToolContext) -> str:
        context.report_progress(1)
        context.cancellation.on_cancel(lambda reason: self.release.set())
        self.started.set()
        self.release.wait(PATIENCE_SECONDS)
        if context.cancelled:
            self.stopped.set()
        return "ground"


@pytest.fixture
def job() -> Job:
    """A tool that runs until it is released."""
    return Job()


@pytest_asyncio.fixture
async def host(job: Job) -> AsyncIterator[ServerHost]:
    """A server with tools for which tasks are optional, forbidden or required."""
    tools = (job, greet, whole, *FAILING, Echo(), Job("must", "required"), Herald("herald"))
    async with ServerHost(container_of(*tools), flags={"tasks": {"ttl_seconds": 600}}) as host:
        yield host


@pytest_asyncio.fixture
async def peer(host: ServerHost) -> RequestingPeer:
    """A client after the handshake."""
    return await RequestingPeer.begun(host)


def has_related(message: Any) -> bool:
    return RELATED in json.dumps(message)


# Capabilities


async def test_the_handshake_tells_of_tasks(host: ServerHost) -> None:
    """Only the revision with tasks declares the capability, and not the extension."""
    told = {}
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        peer = RequestingPeer(host)
        result = await peer.result("initialize", {**INITIALIZE, "protocolVersion": version})
        told[version] = result["capabilities"].get("tasks")
        assert EXTENSION not in json.dumps(result)
    tasks: Any = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    assert told == {"2024-11-05": None, "2025-03-26": None, "2025-06-18": None, "2025-11-25": tasks}


async def test_a_server_without_such_tools_has_no_tasks() -> None:
    """Without tools that support tasks, a request for one is ignored, and the methods are unknown."""
    async with ServerHost(container_of(Echo())) as host:
        peer = RequestingPeer(host)
        assert "tasks" not in (await peer.result("initialize", INITIALIZE))["capabilities"]
        peer.transport.send(message("notifications/initialized", id=None))
        call = {"name": "echo", "arguments": {"text": "x"}, "task": {"ttl": 1}}
        assert (await peer.result("tools/call", call))["content"][0]["text"] == "x"
        for method in ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel"):
            assert (await peer.error(method, {"taskId": "x"}))["code"] == -32601


async def test_tools_say_whether_they_run_as_tasks(host: ServerHost, peer: RequestingPeer) -> None:
    """Only this revision lists whether a tool supports tasks."""
    support = {one["name"]: one.get("execution") for one in (await peer.result("tools/list"))["tools"]}
    assert support["job"] == {"taskSupport": "optional"}
    assert support["must"] == {"taskSupport": "required"}
    assert support["echo"] is None
    older = await RequestingPeer.begun(host, version="2025-06-18")
    assert not any("execution" in one for one in (await older.result("tools/list"))["tools"])


@pytest.mark.parametrize(
    ("name", "wish", "outcome"),
    [
        ("echo", None, "result"),
        ("echo", {}, -32601),
        ("greet", None, "result"),
        ("greet", {}, "task"),
        ("must", None, -32601),
        ("must", {"ttl": 1000}, "task"),
        ("nobody", {}, -32601),
    ],
)
async def test_who_runs_as_a_task(peer: RequestingPeer, name: str, wish: Any, outcome: Any) -> None:
    """A tool without tasks rejects the request for one; a tool that requires tasks rejects a normal call."""
    arguments = {"name": "Ada"} if name == "greet" else {}
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    reply = await peer.ask("tools/call", params if wish is None else {**params, "task": wish})
    if isinstance(outcome, int):
        assert reply["error"]["code"] == outcome
    else:
        assert ("task" in reply["result"]) is (outcome == "task")


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
async def test_older_revisions_know_no_tasks(host: ServerHost, version: str) -> None:
    """Older revisions ignore the request for a task, run every tool directly, and have no task methods."""
    older = await RequestingPeer.begun(host, version=version)
    call = {"name": "greet", "arguments": {"name": "Ada"}, "task": {}}
    assert (await older.result("tools/call", call))["content"][0]["text"] == "Hello, Ada!"
    assert (await older.error("tasks/list"))["code"] == -32601


async def test_the_extension_is_ignored(host: ServerHost) -> None:
    """A client that declares the extension in its handshake still has to request tasks."""
    peer = await RequestingPeer.begun(host, capabilities={"extensions": {EXTENSION: {}}})
    result = await peer.result("tools/call", {"name": "greet", "arguments": {"name": "Ada"}})
    assert result["content"][0]["text"] == "Hello, Ada!"
    assert (await peer.error("tasks/update", {"taskId": "x", "inputResponses": {}}))["code"] == -32601


# Creating tasks


async def test_a_task_is_created(peer: RequestingPeer) -> None:
    """The immediate reply contains only the task, which can be queried from then on."""
    result = await peer.result("tools/call", {"name": "job", "task": {"ttl": 5000}})
    assert list(result) == ["task"]
    task = result["task"]
    assert set(task) == {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"}
    assert (task["status"], task["ttl"], task["pollInterval"]) == ("working", 5000, 1000)
    assert len(task["taskId"]) >= 32
    assert await peer.result("tasks/get", {"taskId": task["taskId"]}) == task


@pytest.mark.parametrize(
    ("wish", "granted"), [({}, 600_000), ({"ttl": None}, 600_000), ({"ttl": 1e15}, 600_000), ({"ttl": 0.6}, 1)]
)
async def test_the_lifetime_is_what_was_granted(peer: RequestingPeer, wish: Any, granted: int) -> None:
    """The task has the granted lifetime, in whole milliseconds."""
    assert (await peer.call("job", task=wish))["ttl"] == granted


@pytest.mark.parametrize("wish", [None, 1, "soon", [], {"ttl": -1}, {"ttl": "long"}])
async def test_a_wish_must_have_the_right_form(peer: RequestingPeer, job: Job, wish: Any) -> None:
    """A malformed request for a task is an error for invalid params, and nothing runs."""
    assert (await peer.error("tools/call", {"name": "job", "task": wish}))["code"] == -32602
    assert not job.started.is_set()
    assert (await peer.result("tasks/list"))["tasks"] == []


async def test_a_malformed_call_creates_no_task(peer: RequestingPeer) -> None:
    """An invalid request is rejected immediately."""
    assert (await peer.error("tools/call", {"name": "greet", "arguments": [], "task": {}}))["code"] == -32602
    assert (await peer.error("tools/call", {"arguments": {}, "task": {}}))["code"] == -32602
    assert (await peer.result("tasks/list"))["tasks"] == []


async def test_too_many_tasks_are_refused(job: Job) -> None:
    """Beyond the limit, the error tells when to retry."""
    settings = {"tasks": {"maximum": 1, "poll_interval_seconds": 0.5}}
    async with ServerHost(container_of(job, greet), flags=settings) as host:
        peer = await RequestingPeer.begun(host)
        await peer.call("job")
        error = await peer.error("tools/call", {"name": "greet", "arguments": {"name": "x"}, "task": {}})
        assert (error["code"], error["data"]) == (-32603, {"reason": "overloaded", "retryAfterMs": 500})
        assert (await peer.result("tools/call", {"name": "greet", "arguments": {"name": "x"}}))["content"]


# The result


async def test_the_result_is_waited_for(peer: RequestingPeer, job: Job) -> None:
    """A request for the result is answered when the task has ended; other requests are answered meanwhile."""
    task = await peer.call("job")
    waiting = peer.send("tasks/result", {"taskId": task["taskId"]})
    await job.started.wait()
    assert await peer.status(task["taskId"]) == "working"
    assert waiting not in peer.replies
    job.release.set()
    result = (await peer.reply(waiting))["result"]
    assert result == {"content": [{"type": "text", "text": "done"}], "_meta": {RELATED: {"taskId": task["taskId"]}}}
    assert await peer.status(task["taskId"]) == "completed"


async def test_the_result_is_the_original_one(peer: RequestingPeer) -> None:
    """The result is that of the call, with the task added to `_meta`."""
    plain = await peer.result("tools/call", {"name": "whole", "arguments": {}})
    task = await peer.call("whole")
    for _ in range(2):
        fetched = (await peer.fetch(task["taskId"]))["result"]
        assert fetched["_meta"].pop(RELATED) == {"taskId": task["taskId"]}
        assert fetched == plain
    assert fetched["structuredContent"] == {"big": 2**80, "half": 0.5}


@pytest.mark.parametrize("name", ["refuse", "overrun"])
async def test_a_tool_that_fails_fails_the_task(peer: RequestingPeer, name: str) -> None:
    """A result with an error fails the task, and is available."""
    task = await peer.call(name)
    result = (await peer.fetch(task["taskId"]))["result"]
    assert result["isError"] is True
    assert RELATED in result["_meta"]
    state = await peer.result("tasks/get", {"taskId": task["taskId"]})
    assert (state["status"], bool(state["statusMessage"])) == ("failed", True)


async def test_wrong_arguments_fail_the_task(peer: RequestingPeer) -> None:
    """Invalid arguments are reported as without a task."""
    task = await peer.call("greet", {"name": 1})
    assert (await peer.fetch(task["taskId"]))["result"]["isError"] is True
    assert await peer.status(task["taskId"]) == "failed"


async def test_the_original_error_is_an_error(peer: RequestingPeer) -> None:
    """A JSON-RPC error is returned for every request for the result."""
    task = await peer.call("break_off")
    for _ in range(2):
        error = (await peer.fetch(task["taskId"]))["error"]
        assert error == {"code": -32600, "message": "broken off", "data": {"piece": 3}}
    state = await peer.result("tasks/get", {"taskId": task["taskId"]})
    assert (state["status"], state["statusMessage"]) == ("failed", "broken off")


async def test_what_broke_is_hidden(peer: RequestingPeer, caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected error is shown as a reference and logged with details."""
    task = await peer.call("crash")
    result = (await peer.fetch(task["taskId"]))["result"]
    assert "secret" not in json.dumps([result, await peer.result("tasks/get", {"taskId": task["taskId"]})])
    assert result["_meta"]["reference"] in caplog.text


async def test_an_error_that_cannot_be_written_is_hidden(
    peer: RequestingPeer, caplog: pytest.LogCaptureFixture
) -> None:
    """An error that cannot be encoded affects neither its task nor the waiting client."""
    task = await peer.call("mumble")
    error = (await peer.fetch(task["taskId"]))["error"]
    assert error["code"] == -32603
    assert error["data"]["reference"] in caplog.text
    assert await peer.status(task["taskId"]) == "failed"


async def test_a_tool_in_a_thread() -> None:
    """A task can run in a thread and be stopped there."""
    grinder = Grinder()
    async with ServerHost(container_of(grinder)) as host:
        peer = await RequestingPeer.begun(host)
        task = await peer.call("grind", _meta={"progressToken": 1})
        progress = await peer.hear("notifications/progress")
        assert progress["params"]["_meta"] == {RELATED: {"taskId": task["taskId"]}}
        grinder.release.set()
        assert (await peer.fetch(task["taskId"]))["result"]["content"][0]["text"] == "ground"
        grinder.release.clear()
        grinder.started.clear()
        second = await peer.call("grind")
        await asyncio.to_thread(grinder.started.wait)
        await peer.result("tasks/cancel", {"taskId": second["taskId"]})
        assert await asyncio.to_thread(grinder.stopped.wait, PATIENCE_SECONDS)
        assert await peer.status(second["taskId"]) == "cancelled"


# Finding and listing


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
async def test_unknown_tasks(peer: RequestingPeer, method: str) -> None:
    """An unknown or invalid task id is an error for invalid params."""
    for params in ({"taskId": "nothing"}, {"taskId": 1}, {"taskId": None}, {}):
        assert (await peer.error(method, params))["code"] == -32602


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
@pytest.mark.parametrize(
    ("creator", "stranger"), [(ANONYMOUS, ANONYMOUS), (ADA, BOB), (ADA, ANONYMOUS), (ANONYMOUS, ADA)]
)
async def test_tasks_of_others(host: ServerHost, method: str, creator: Principal, stranger: Principal) -> None:
    """A task is hidden from other principals, and from other connections of an anonymous caller."""
    mine, other = await RequestingPeer.begun(host, creator), await RequestingPeer.begun(host, stranger)
    task = await mine.call("job")
    assert (await other.error(method, {"taskId": task["taskId"]}))["code"] == -32602
    assert (await other.result("tasks/list"))["tasks"] == []
    assert [one["taskId"] for one in (await mine.result("tasks/list"))["tasks"]] == [task["taskId"]]
    assert await mine.status(task["taskId"]) == "working"


async def test_a_known_caller_finds_its_tasks_anywhere(host: ServerHost, job: Job) -> None:
    """An authenticated caller can access its tasks from any connection."""
    first, second = [await RequestingPeer.begun(host, ADA) for _ in range(2)]
    task = await first.call("job")
    await first.close()
    job.release.set()
    assert (await second.fetch(task["taskId"]))["result"]["content"][0]["text"] == "done"
    assert len((await second.result("tasks/list"))["tasks"]) == 1


async def test_the_list_has_pages(job: Job) -> None:
    """Every accessible task is listed once, even if others expire between two pages."""
    async with ServerHost(container_of(job, greet), flags={"protocol": {"page_size": 2}}) as host:
        peer = await RequestingPeer.begun(host)
        short = await peer.call("job", task={"ttl": 50})
        ids = [(await peer.call("greet", {"name": str(number)}))["taskId"] for number in range(5)]
        first = await peer.result("tasks/list")
        assert [task["taskId"] for task in first["tasks"]] == [short["taskId"], ids[0]]
        await job.cancelled.wait()
        second = await peer.result("tasks/list", {"cursor": first["nextCursor"]})
        third = await peer.result("tasks/list", {"cursor": second["nextCursor"]})
        assert [task["taskId"] for page in (second, third) for task in page["tasks"]] == ids[1:]
        assert "nextCursor" not in third
        assert (await peer.error("tasks/list", {"cursor": "nonsense"}))["code"] == -32602
        assert all(set(task) >= {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl"} for task in third["tasks"])


async def test_an_expired_task_is_gone(peer: RequestingPeer, job: Job) -> None:
    """An expired task is stopped and no longer exists, and waiting clients are answered."""
    task = await peer.call("job", task={"ttl": 30})
    waiting = peer.send("tasks/result", {"taskId": task["taskId"]})
    await job.cancelled.wait()
    error = (await peer.reply(waiting))["error"]
    assert error["code"] == -32602
    assert "expired" in error["message"]
    assert (await peer.error("tasks/get", {"taskId": task["taskId"]}))["code"] == -32602
    assert (await peer.result("tasks/list"))["tasks"] == []


async def test_a_finished_task_expires_too(peer: RequestingPeer, host: ServerHost) -> None:
    """The result is kept for the granted lifetime and no longer."""
    task = await peer.call("greet", {"name": "Ada"}, task={"ttl": 30})
    store = host.assembly.tasks
    (kept,) = store._tasks.values()
    await until(lambda: not store._tasks)
    assert kept.status == "completed"
    assert (await peer.error("tasks/result", {"taskId": task["taskId"]}))["code"] == -32602


# Canceling


async def test_a_task_is_cancelled(peer: RequestingPeer, job: Job) -> None:
    """The reply shows the task as canceled, the tool is stopped, and waiting clients are answered."""
    task = await peer.call("job")
    await job.started.wait()
    waiting = peer.send("tasks/result", {"taskId": task["taskId"]})
    cancelled = await peer.result("tasks/cancel", {"taskId": task["taskId"]})
    assert (cancelled["taskId"], cancelled["status"]) == (task["taskId"], "cancelled")
    await job.cancelled.wait()
    assert (await peer.reply(waiting))["error"]["code"] == -32602
    assert (await peer.fetch(task["taskId"]))["error"]["code"] == -32602
    assert await peer.status(task["taskId"]) == "cancelled"


@pytest.mark.parametrize("name", ["whole", "refuse", "break_off"])
async def test_what_has_ended_cannot_be_cancelled(peer: RequestingPeer, name: str) -> None:
    """A task that has ended or was canceled cannot be canceled."""
    task = await peer.call(name)
    await peer.fetch(task["taskId"])
    before = await peer.result("tasks/get", {"taskId": task["taskId"]})
    assert (await peer.error("tasks/cancel", {"taskId": task["taskId"]}))["code"] == -32602
    assert await peer.result("tasks/get", {"taskId": task["taskId"]}) == before
    stopped = await peer.call("job")
    await peer.result("tasks/cancel", {"taskId": stopped["taskId"]})
    assert (await peer.error("tasks/cancel", {"taskId": stopped["taskId"]}))["code"] == -32602


class Stubborn(Job):
    """Ignores cancellation and sends messages afterwards."""

    async def execute(self, arguments: NoArguments, context: ToolContext) -> str:
        try:
            return await super().execute(arguments, context)
        except asyncio.CancelledError:
            context.report_progress(99)
            context.log("error", "never")
            return "stubborn"


async def test_a_cancelled_task_stays_cancelled() -> None:
    """A tool that ignores cancellation changes nothing, and its messages are dropped."""
    stubborn = Stubborn("stubborn")
    async with ServerHost(container_of(stubborn)) as host:
        peer = await RequestingPeer.begun(host)
        task = await peer.call("stubborn", _meta={"progressToken": 1})
        await stubborn.started.wait()
        await peer.result("tasks/cancel", {"taskId": task["taskId"]})
        await until(lambda: not host.handler.inflight)
        assert await peer.status(task["taskId"]) == "cancelled"
        await peer.settle()
        assert [said["method"] for said in peer.heard] == [STATUS]


async def test_the_notification_does_not_cancel_a_task(peer: RequestingPeer, job: Job) -> None:
    """A cancellation of the request that created a task does not cancel the task."""
    number = peer.send("tools/call", {"name": "job", "task": {}})
    task = (await peer.reply(number))["result"]["task"]
    await job.started.wait()
    peer.transport.send(message("notifications/cancelled", {"requestId": number}, id=None))
    assert await peer.status(task["taskId"]) == "working"
    assert not job.cancelled.is_set()
    job.release.set()
    assert "result" in await peer.fetch(task["taskId"])


async def test_waiting_can_be_cancelled(peer: RequestingPeer, job: Job) -> None:
    """Canceling a request for a result gets no reply, and the task continues."""
    task = await peer.call("job")
    waiting = peer.send("tasks/result", {"taskId": task["taskId"]})
    another = peer.send("tasks/result", {"taskId": task["taskId"]})
    await peer.settle()
    peer.transport.send(message("notifications/cancelled", {"requestId": waiting}, id=None))
    await peer.settle()
    job.release.set()
    assert "result" in await peer.reply(another)
    await peer.settle()
    assert waiting not in peer.replies


async def test_an_id_cannot_wait_twice(peer: RequestingPeer, job: Job) -> None:
    """A second request with the id of a waiting one is rejected."""
    task = await peer.call("job")
    body = message("tasks/result", {"taskId": task["taskId"]}, id=77)
    peer.transport.send(body)
    peer.transport.send(body)
    assert (await peer.reply(77))["error"]["code"] == -32600
    job.release.set()
    assert "result" in await peer.reply(77)


# Messages of a task


async def test_what_a_task_says_names_it(peer: RequestingPeer) -> None:
    """Progress and log messages name their task, and end with it."""
    task = await peer.call("herald", _meta={"progressToken": "t"})
    mark = {RELATED: {"taskId": task["taskId"]}}
    progress, log = await peer.hear("notifications/progress"), await peer.hear("notifications/message")
    assert progress["params"] == {"progressToken": "t", "progress": 1, "total": 2, "_meta": mark}
    assert log["params"] == {"level": "info", "data": "begun", "_meta": mark}
    await peer.result("tasks/cancel", {"taskId": task["taskId"]})
    await peer.settle()
    assert {said["method"] for said in peer.heard} == {STATUS}


async def test_only_what_belongs_to_a_task_is_marked(peer: RequestingPeer) -> None:
    """Task methods and status notifications are not marked with a task in `_meta`."""
    task = await peer.call("greet", {"name": "Ada"})
    await peer.fetch(task["taskId"])
    about = [await peer.result(method, {"taskId": task["taskId"]}) for method in ("tasks/get", "tasks/list")]
    about.append(await peer.hear(STATUS))
    stopped = await peer.call("job")
    about.append(await peer.result("tasks/cancel", {"taskId": stopped["taskId"]}))
    assert not has_related(about)


async def test_a_changed_level_holds_at_once(job: Job) -> None:
    """A changed log level applies to running tasks."""
    herald = Herald("herald")
    async with ServerHost(container_of(herald)) as host:
        peer = await RequestingPeer.begun(host)
        task = await peer.call("herald")
        await peer.hear("notifications/message")
        await peer.result("logging/setLevel", {"level": "error"})
        herald.release.set()
        await peer.fetch(task["taskId"])
        assert [said["method"] for said in peer.heard] == [STATUS]


async def test_changes_are_told(peer: RequestingPeer, job: Job) -> None:
    """The client is notified of the end of a task, with its full state."""
    task = await peer.call("job")
    job.release.set()
    told = await peer.hear(STATUS)
    assert told["params"] == await peer.result("tasks/get", {"taskId": task["taskId"]})
    assert told["params"]["status"] == "completed"
    assert "id" not in told


# Ends of connections and servers


async def test_a_task_outlives_its_connection(host: ServerHost, peer: RequestingPeer, job: Job) -> None:
    """A task survives its connection until its lifetime ends, and its messages are dropped."""
    await peer.call("herald", _meta={"progressToken": 1})
    await peer.call("job")
    await job.started.wait()
    assert not [said for said in await peer.close() if "error" in said]
    (herald,) = [one for one in host.roles.tools if isinstance(one, Herald)]
    assert not job.cancelled.is_set()
    job.release.set()
    herald.release.set()
    await until(lambda: not host.handler.inflight)
    assert sorted(task.status for task in host.assembly.tasks._tasks.values()) == ["completed", "completed"]


async def test_the_end_of_a_connection_ends_waiting(peer: RequestingPeer, job: Job) -> None:
    """Waiting requests are answered when the server closes the connection."""
    task = await peer.call("job")
    waiting = peer.send("tasks/result", {"taskId": task["taskId"]})
    await peer.settle()
    (reply,) = [said for said in await peer.close() if said.get("id") == waiting]
    assert (reply["error"]["code"], reply["error"]["data"]) == (-32603, {"reason": "shutdown"})
    assert not job.cancelled.is_set()


async def test_the_end_of_the_server_ends_tasks(job: Job) -> None:
    """A shutdown stops running tools and answers waiting requests."""
    async with ServerHost(container_of(job)) as host:
        peer = await RequestingPeer.begun(host)
        task = await peer.call("job")
        waiting = peer.send("tasks/result", {"taskId": task["taskId"]})
        await peer.settle()
    assert job.cancelled.is_set()
    assert not host.handler.inflight
    assert "shutting down" in (await peer.reply(waiting))["error"]["message"]
    assert peer.heard == []


# Over HTTP


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    """An HTTP client."""
    async with httpx2.AsyncClient(verify=False, timeout=PATIENCE_SECONDS) as client:
        yield client


@pytest_asyncio.fixture
async def herald() -> Herald:
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
        assert (await client.end()).status_code == 204
        assert [said["error"]["code"] for said in await waiting.rest()] == [-32800]
        assert await stream.next() is None
    assert not job.cancelled.is_set()
    job.release.set()
    herald.release.set()
    await until(lambda: not server.host.handler.inflight)
    assert {task.status for task in server.host.assembly.tasks._tasks.values()} == {"completed"}


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
    assert (reply["id"], reply["result"]["_meta"]["reason"]) == (4, "shutdown")
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
    assert result["_meta"]["reason"] == "shutdown"
    assert await asyncio.to_thread(note.read_text) == "shutdown"
