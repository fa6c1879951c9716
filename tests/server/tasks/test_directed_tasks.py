"""Tasks that the server creates, an extension of the stateless revision."""

import asyncio
import json
from typing import Any

import pytest
import pytest_asyncio

from axolotl_core import Principal, ProtocolError, tool
from axolotl_server import ServerHost
from axolotl_server.extensions.tasks.engines.memory_engine import MemoryTaskEngine
from tests.support.peers.task_peers import EXTENSION, RELATED, REQUIRED, DirectedPeer, Job, records_of
from tests.support.scenarios.task_tools import content_of
from tests.support.tools import Echo, container_of

ADA = Principal("ada")
LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"


@pytest_asyncio.fixture
async def peer(directed: DirectedPeer) -> DirectedPeer:
    """A client that supports tasks."""
    return directed


@pytest_asyncio.fixture
async def plain(host: ServerHost) -> DirectedPeer:
    """A client that does not."""
    return DirectedPeer(host, capabilities={})


async def test_the_server_tells_of_the_extension(plain: DirectedPeer) -> None:
    """Discovery declares the extension and not the capability of the earlier revision."""
    capabilities = (await plain.result("server/discover"))["capabilities"]
    assert capabilities["extensions"] == {EXTENSION: {}}
    assert "tasks" not in capabilities
    assert not any("execution" in one for one in (await plain.result("tools/list"))["tools"])


async def test_a_server_without_such_tools_has_no_tasks() -> None:
    """Without tools that support tasks there is no extension, and its methods are unknown."""
    async with ServerHost(container_of(Echo())) as host:
        peer = DirectedPeer(host)
        assert "extensions" not in (await peer.result("server/discover"))["capabilities"]
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            assert (await peer.error(method, {"taskId": "x", "inputResponses": {}}))["code"] == -32601
        peer.send("subscriptions/listen", {"notifications": {"taskIds": ["x"]}})
        accepted = await peer.hear("notifications/subscriptions/acknowledged")
        assert accepted["params"]["notifications"] == {}


async def test_a_task_is_created(peer: DirectedPeer) -> None:
    """The result is the task, which can be queried from then on."""
    task = await peer.result("tools/call", {"name": "job", "task": {"ttl": 5}})
    meta = task.pop("_meta")
    assert RELATED not in meta
    assert set(task) == {
        "resultType",
        "taskId",
        "status",
        "createdAt",
        "lastUpdatedAt",
        "ttlMs",
        "pollIntervalMs",
    }
    assert (task["resultType"], task["status"]) == ("task", "working")
    assert (task["ttlMs"], task["pollIntervalMs"]) == (600_000, 1000)
    assert len(task["taskId"]) >= 32
    state = await peer.result("tasks/get", {"taskId": task["taskId"]})
    assert {**task, "resultType": "complete", "_meta": meta} == state


@pytest.mark.parametrize("capabilities", [{}, {"extensions": {}}, {"extensions": {EXTENSION: 1}}, {"tasks": {}}])
async def test_a_client_that_knows_no_tasks(host: ServerHost, job: Job, capabilities: Any) -> None:
    """A client without task support gets a normal result, or an error if the tool requires a task."""
    peer = DirectedPeer(host, capabilities=capabilities)
    result = await peer.result("tools/call", {"name": "greet", "arguments": {"name": "Ada"}, "task": {}})
    assert (result["resultType"], content_of(result)) == ("complete", "Hello, Ada!")
    error = await peer.error("tools/call", {"name": "must"})
    assert (error["code"], error["data"]) == (-32021, REQUIRED)


async def test_a_tool_that_runs_as_no_task(peer: DirectedPeer) -> None:
    """A tool that does not support tasks is answered directly."""
    result = await peer.result("tools/call", {"name": "echo", "arguments": {"text": "x"}, "task": {}})
    assert (result["resultType"], content_of(result)) == ("complete", "x")


async def test_a_tool_that_must(peer: DirectedPeer) -> None:
    """A tool that requires a task becomes one for a client that supports tasks."""
    assert (await peer.start("must"))["status"] == "working"


async def test_an_unknown_tool(host: ServerHost, peer: DirectedPeer) -> None:
    """A call of an unknown tool is rejected immediately."""
    assert (await peer.error("tools/call", {"name": "nobody"}))["code"] == -32602
    assert not records_of(host)


async def test_too_many_tasks_are_refused(job: Job) -> None:
    """Beyond the limit, the result tells when to retry."""
    settings = {"tasks": {"maximum": 1}}
    async with ServerHost(container_of(job), flags=settings) as host:
        peer = DirectedPeer(host)
        await peer.start("job")
        result = await peer.result("tools/call", {"name": "job"})
        assert (result["resultType"], result["isError"]) == ("complete", True)
        assert result["_meta"]["axolotl/retryAfterMs"] == 1000


async def test_a_request_in_rounds_stays_in_them(peer: DirectedPeer, plain: DirectedPeer) -> None:
    """A call that asked in rounds does not become a task later, and a forged state is rejected."""
    plain.capabilities = {"elicitation": {"form": {}}}
    asked = await plain.result("tools/call", {"name": "inquire"})
    assert asked["resultType"] == "input_required"
    answers = {"sure": {"action": "accept", "content": {"confirm": True}}}
    again = {"name": "inquire", "requestState": asked["requestState"], "inputResponses": answers}
    result = await peer.result("tools/call", again)
    assert (result["resultType"], content_of(result)) == ("complete", "confirmed: True")
    assert (await peer.error("tools/call", {**again, "requestState": "x"}))["code"] == -32602


async def test_a_task_completes(peer: DirectedPeer, job: Job) -> None:
    """The state of a completed task contains the result, every time it is queried."""
    task = await peer.start("job")
    before = await peer.result("tasks/get", {"taskId": task["taskId"]})
    assert not {"result", "error", "inputRequests"} & set(before)
    assert await peer.result("tasks/get", {"taskId": task["taskId"]}) == before
    job.release.set()
    state = await peer.until(task["taskId"], "completed")
    assert (state["resultType"], content_of(state["result"])) == ("complete", "done")
    assert "error" not in state
    assert RELATED not in json.dumps(state)
    assert state["lastUpdatedAt"] >= state["createdAt"]
    assert await peer.result("tasks/get", {"taskId": task["taskId"]}) == state


async def test_nothing_is_told_on_the_way(peer: DirectedPeer) -> None:
    """These tasks send neither progress nor log messages."""
    meta = {"progressToken": 1, LOG_LEVEL_KEY: "debug"}
    task = await peer.start("herald", _meta=meta)
    await peer.settle()
    await peer.result("tasks/cancel", {"taskId": task["taskId"]})
    await peer.until(task["taskId"], "cancelled")
    assert peer.heard == []


async def test_a_task_is_cancelled(peer: DirectedPeer, job: Job) -> None:
    """The request is acknowledged, and the tool is stopped."""
    task = await peer.start("job")
    await job.started.wait()
    acknowledged = await peer.result("tasks/cancel", {"taskId": task["taskId"]})
    assert set(acknowledged) == {"resultType", "_meta"}
    assert acknowledged["resultType"] == "complete"
    await job.cancelled.wait()
    state = await peer.until(task["taskId"], "cancelled")
    assert not {"result", "error", "inputRequests"} & set(state)


@pytest.mark.parametrize(("name", "status"), [("refuse", "completed"), ("break_off", "failed"), ("job", "cancelled")])
async def test_what_has_ended_stays(peer: DirectedPeer, name: str, status: str) -> None:
    """Canceling an ended task is acknowledged and changes nothing."""
    task = await peer.start(name)
    if status == "cancelled":
        await peer.result("tasks/cancel", {"taskId": task["taskId"]})
    before = await peer.until(task["taskId"], status)
    for _ in range(2):
        acknowledged = await peer.result("tasks/cancel", {"taskId": task["taskId"]})
        assert acknowledged["resultType"] == "complete"
    assert await peer.result("tasks/get", {"taskId": task["taskId"]}) == before


@pytest.mark.parametrize("method", ["tasks/result", "tasks/list"])
async def test_methods_of_the_other_design(peer: DirectedPeer, method: str) -> None:
    """Task methods of the earlier revision are unknown."""
    assert (await peer.error(method, {"taskId": "x"}))["code"] == -32601


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_tasks_need_the_extension(peer: DirectedPeer, plain: DirectedPeer, method: str) -> None:
    """A request that does not declare the extension gets an error about that, whatever else is wrong."""
    task = await peer.start("job")
    for params in ({"taskId": task["taskId"], "inputResponses": {}}, {"taskId": "nothing"}, {}):
        error = await plain.error(method, params)
        assert (error["code"], error["data"]) == (-32021, REQUIRED)
    assert await peer.status(task["taskId"]) == "working"


async def test_anonymous_tasks_belong_to_no_connection(host: ServerHost, peer: DirectedPeer) -> None:
    """A task of an anonymous caller is known by its id, because the revision has no connections."""
    task = await peer.start("job")
    assert await DirectedPeer(host).status(task["taskId"]) == "working"


async def test_subscribers_are_notified(peer: DirectedPeer, job: Job) -> None:
    """A subscriber is notified of the tasks that it named, with their full state."""
    task, other = await peer.start("job"), await peer.start("must")
    number = peer.send("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"], "nothing"]}})
    accepted = await peer.hear("notifications/subscriptions/acknowledged")
    assert accepted["params"]["notifications"] == {"taskIds": [task["taskId"]]}
    await peer.result("tasks/cancel", {"taskId": other["taskId"]})
    job.release.set()
    told = (await peer.hear("notifications/tasks"))["params"]
    assert told.pop("_meta") == {SUBSCRIPTION_KEY: number}
    state = await peer.result("tasks/get", {"taskId": task["taskId"]})
    assert told == {key: value for key, value in state.items() if key not in ("resultType", "_meta")}
    assert content_of(told["result"]) == "done"
    assert peer.heard == []


async def test_an_error_that_cannot_be_encoded(caplog: pytest.LogCaptureFixture) -> None:
    """An error that cannot be encoded is replaced in notifications."""
    gate = asyncio.Event()

    @tool(task_support="optional")
    async def mumble_later() -> str:
        await gate.wait()
        raise ProtocolError("mumbled", data=object())

    async with ServerHost(container_of(mumble_later)) as host:
        peer = DirectedPeer(host)
        task = await peer.start("mumble_later")
        peer.send("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}})
        await peer.hear("notifications/subscriptions/acknowledged")
        gate.set()
        error = (await peer.hear("notifications/tasks"))["params"]["error"]
    assert (error["code"], error["data"]["reference"] in caplog.text) == (-32603, True)


async def test_listening_needs_the_extension(host: ServerHost, peer: DirectedPeer, plain: DirectedPeer) -> None:
    """Subscribing to tasks needs the extension, and other principals get no notifications."""
    task = await peer.start("job")
    wanted = {"notifications": {"taskIds": [task["taskId"]]}}
    error = await plain.error("subscriptions/listen", wanted)
    assert (error["code"], error["data"]) == (-32021, REQUIRED)
    other = DirectedPeer(host, ADA)
    other.send("subscriptions/listen", wanted)
    accepted = await other.hear("notifications/subscriptions/acknowledged")
    assert accepted["params"]["notifications"] == {}


async def test_tasks_of_a_subscription_are_limited(peer: DirectedPeer) -> None:
    """A subscription names at most 100 tasks."""
    error = await peer.error("subscriptions/listen", {"notifications": {"taskIds": ["x"] * 101}})
    assert error == {
        "code": -32602,
        "message": "Too many subscriptions: a request may name 100 tasks; send more requests",
    }


async def test_a_refused_subscription_reads_no_tasks(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client without room for another subscription gets the refusal before its tasks are looked for."""
    async with ServerHost(container_of(job), flags={"subscriptions": {"maximum": 1}}) as host:
        peer = DirectedPeer(host)
        wanted = {"notifications": {"taskIds": [(await peer.start("job"))["taskId"]]}}
        peer.send("subscriptions/listen", wanted)
        await peer.hear("notifications/subscriptions/acknowledged")
        monkeypatch.setattr(MemoryTaskEngine, "read", None)
        assert (await peer.error("subscriptions/listen", wanted))["data"]["reason"] == "overloaded"


async def test_a_task_expires() -> None:
    """An expired task is stopped and no longer exists, and its subscribers are notified."""
    job = Job()
    async with ServerHost(container_of(job), flags={"tasks": {"ttl_seconds": 0.05}}) as host:
        peer = DirectedPeer(host)
        task = await peer.start("job")
        assert task["ttlMs"] == 50
        peer.send("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}})
        told = (await peer.hear("notifications/tasks"))["params"]
        assert (told["status"], told["statusMessage"]) == ("cancelled", "The task has expired")
        await job.cancelled.wait()
        assert (await peer.error("tasks/get", {"taskId": task["taskId"]}))["code"] == -32602


async def test_the_end_of_the_server_ends_tasks(job: Job) -> None:
    """A shutdown stops running tasks and notifies subscribers."""
    async with ServerHost(container_of(job)) as host:
        peer = DirectedPeer(host)
        task = await peer.start("job")
        peer.send("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}})
        await peer.hear("notifications/subscriptions/acknowledged")
        await job.started.wait()
    assert job.cancelled.is_set()
    assert (await peer.hear("notifications/tasks"))["params"]["statusMessage"] == "The server is shutting down"
    assert job.context is not None
    assert job.context.cancel_reason == "shutdown"
    assert not host.handler.inflight
