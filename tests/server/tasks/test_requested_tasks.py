"""Tasks that clients request, in the last revision with a handshake."""

import asyncio
import json
import threading
from typing import Any

import pytest
import pytest_asyncio

from axolotl_core import Context, ITool, NoArguments, Principal
from axolotl_core.protocol.identity import ANONYMOUS
from axolotl_server import ServerHost
from tests.support.peers.task_peers import EXTENSION, RELATED, Job, RequestingPeer
from tests.support.scenarios.task_tools import greet
from tests.support.servers.serving import PATIENCE_SECONDS
from tests.support.tools import Echo, container_of

ADA, BOB = Principal("ada"), Principal("bob")


@pytest_asyncio.fixture
async def peer(requesting: RequestingPeer) -> RequestingPeer:
    """A client after the handshake."""
    return requesting


class Grinder(ITool[NoArguments, str]):
    """Works in a thread until it is released or stopped."""

    name = "grind"
    execution = "thread"
    task_support = "optional"

    def __init__(self) -> None:
        self.started = threading.Event()
        self.release = threading.Event()
        self.stopped = threading.Event()

    async def execute(self, arguments: NoArguments, context: Context) -> str:
        context.report_progress(1)
        context.cancellation.on_cancel(lambda reason: self.release.set())
        self.started.set()
        self.release.wait(PATIENCE_SECONDS)
        if context.cancelled:
            self.stopped.set()
        return "ground"


async def test_the_handshake_tells_of_tasks(host: ServerHost) -> None:
    """Only the revision with tasks declares the capability, and not the extension."""
    told = {}
    for version in ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        peer = await RequestingPeer(host).shake_hands(version)
        told[version] = peer.handshake["capabilities"].get("tasks")
        assert EXTENSION not in json.dumps(peer.handshake)
    tasks: Any = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    assert told == {"2024-11-05": None, "2025-03-26": None, "2025-06-18": None, "2025-11-25": tasks}


async def test_a_server_without_such_tools_has_no_tasks() -> None:
    """Without tools that support tasks, a request for one is ignored, and the methods are unknown."""
    async with ServerHost(container_of(Echo())) as host:
        peer = await RequestingPeer.connect(host)
        assert "tasks" not in peer.handshake["capabilities"]
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
    older = await RequestingPeer(host).shake_hands("2025-06-18")
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
    older = await RequestingPeer(host).shake_hands(version)
    call = {"name": "greet", "arguments": {"name": "Ada"}, "task": {}}
    assert (await older.result("tools/call", call))["content"][0]["text"] == "Hello, Ada!"
    assert (await older.error("tasks/list"))["code"] == -32601


async def test_the_extension_is_ignored(host: ServerHost) -> None:
    """A client that declares the extension in its handshake still has to request tasks."""
    peer = await RequestingPeer.connect(host, capabilities={"extensions": {EXTENSION: {}}})
    result = await peer.result("tools/call", {"name": "greet", "arguments": {"name": "Ada"}})
    assert result["content"][0]["text"] == "Hello, Ada!"
    assert (await peer.error("tasks/update", {"taskId": "x", "inputResponses": {}}))["code"] == -32601


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
    assert (await peer.start("job", task=wish))["ttl"] == granted


@pytest.mark.parametrize("wish", [1, "soon", [], {"ttl": -1}, {"ttl": "long"}])
async def test_a_wish_must_have_the_right_form(peer: RequestingPeer, job: Job, wish: Any) -> None:
    """A malformed request for a task is an error for invalid params, and nothing runs."""
    assert (await peer.error("tools/call", {"name": "job", "task": wish}))["code"] == -32602
    assert not job.started.is_set()
    assert (await peer.result("tasks/list"))["tasks"] == []


async def test_too_many_tasks_are_refused(job: Job) -> None:
    """Beyond the limit, the error tells when to retry."""
    settings = {"tasks": {"maximum": 1}}
    async with ServerHost(container_of(job, greet), flags=settings) as host:
        peer = await RequestingPeer.connect(host)
        await peer.start("job")
        error = await peer.error("tools/call", {"name": "greet", "arguments": {"name": "x"}, "task": {}})
        assert (error["code"], error["data"]) == (-32603, {"reason": "overloaded", "retryAfterMs": 1000})
        assert (await peer.result("tools/call", {"name": "greet", "arguments": {"name": "x"}}))["content"]


async def test_the_result_is_waited_for(peer: RequestingPeer, job: Job) -> None:
    """A request for the result is answered when the task has ended; other requests are answered meanwhile."""
    task = await peer.start("job")
    waiting = peer.send("tasks/result", {"taskId": task["taskId"]})
    await job.started.wait()
    assert await peer.status(task["taskId"]) == "working"
    assert peer.unread == []
    job.release.set()
    result = (await peer.reply(waiting))["result"]
    assert result == {"content": [{"type": "text", "text": "done"}], "_meta": {RELATED: {"taskId": task["taskId"]}}}
    assert await peer.status(task["taskId"]) == "completed"


async def test_the_result_is_the_original_one(peer: RequestingPeer) -> None:
    """The result is that of the call, with the task added to `_meta`."""
    plain = await peer.result("tools/call", {"name": "whole", "arguments": {}})
    task = await peer.start("whole")
    for _ in range(2):
        fetched = (await peer.outcome(task["taskId"]))["result"]
        assert fetched["_meta"].pop(RELATED) == {"taskId": task["taskId"]}
        assert fetched == plain
    assert fetched["structuredContent"] == {"big": 2**80, "half": 0.5}


async def test_a_tool_in_a_thread() -> None:
    """A task can run in a thread and be stopped there."""
    grinder = Grinder()
    async with ServerHost(container_of(grinder)) as host:
        peer = await RequestingPeer.connect(host)
        task = await peer.start("grind", _meta={"progressToken": 1})
        progress = await peer.hear("notifications/progress")
        assert progress["params"]["_meta"] == {RELATED: {"taskId": task["taskId"]}}
        grinder.release.set()
        assert (await peer.outcome(task["taskId"]))["result"]["content"][0]["text"] == "ground"
        grinder.release.clear()
        grinder.started.clear()
        second = await peer.start("grind")
        await asyncio.to_thread(grinder.started.wait)
        await peer.result("tasks/cancel", {"taskId": second["taskId"]})
        assert await asyncio.to_thread(grinder.stopped.wait, PATIENCE_SECONDS)
        assert await peer.status(second["taskId"]) == "cancelled"


@pytest.mark.parametrize(
    ("creator", "stranger"), [(ANONYMOUS, ANONYMOUS), (ADA, BOB), (ADA, ANONYMOUS), (ANONYMOUS, ADA)]
)
async def test_lists_of_others(host: ServerHost, creator: Principal, stranger: Principal) -> None:
    """Lists do not show tasks of other principals, or of other connections of an anonymous caller."""
    mine, other = await RequestingPeer.connect(host, creator), await RequestingPeer.connect(host, stranger)
    task = await mine.start("job")
    assert (await other.result("tasks/list"))["tasks"] == []
    assert [one["taskId"] for one in (await mine.result("tasks/list"))["tasks"]] == [task["taskId"]]


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel"])
async def test_anonymous_tasks_belong_to_a_connection(host: ServerHost, method: str) -> None:
    """A task of an anonymous caller is hidden from other connections."""
    mine, other = await RequestingPeer.connect(host), await RequestingPeer.connect(host)
    task = await mine.start("job")
    assert (await other.error(method, {"taskId": task["taskId"]}))["code"] == -32602
    assert await mine.status(task["taskId"]) == "working"


async def test_the_list_has_pages(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every accessible task is listed once, even if others expire between two pages."""
    monkeypatch.setattr("axolotl_server.extensions.tasks.requested_tasks.PAGE_SIZE", 2)
    async with ServerHost(container_of(job, greet)) as host:
        peer = await RequestingPeer.connect(host)
        short = await peer.start("job", task={"ttl": 50})
        ids = [(await peer.start("greet", {"name": str(number)}))["taskId"] for number in range(5)]
        first = await peer.result("tasks/list")
        assert [task["taskId"] for task in first["tasks"]] == [short["taskId"], ids[0]]
        await job.cancelled.wait()
        second = await peer.result("tasks/list", {"cursor": first["nextCursor"]})
        third = await peer.result("tasks/list", {"cursor": second["nextCursor"]})
        assert [task["taskId"] for page in (second, third) for task in page["tasks"]] == ids[1:]
        assert "nextCursor" not in third
        assert (await peer.error("tasks/list", {"cursor": "nonsense"}))["code"] == -32602
        assert all(set(task) >= {"taskId", "status", "createdAt", "lastUpdatedAt", "ttl"} for task in third["tasks"])
