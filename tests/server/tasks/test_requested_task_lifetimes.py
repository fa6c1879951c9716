"""Expiry, cancellation and messages of tasks that the client requests."""

import asyncio
import json

import pytest
import pytest_asyncio

from axolotl_core import Context, NoArguments
from axolotl_server import ServerHost
from tests.support.peers.task_peers import RELATED, STATUS, Herald, Job, RequestingPeer, records_of
from tests.support.peers.wire import message
from tests.support.servers.serving import until
from tests.support.tools import container_of


@pytest_asyncio.fixture
async def peer(requesting: RequestingPeer) -> RequestingPeer:
    """A client after the handshake."""
    return requesting


async def test_an_expired_task_is_gone(peer: RequestingPeer, job: Job) -> None:
    """An expired task is stopped and no longer exists, and waiting clients are answered."""
    task = await peer.start("job", task={"ttl": 300})
    waiting = peer.send("tasks/result", {"taskId": task["taskId"]})
    await job.cancelled.wait()
    error = (await peer.reply(waiting))["error"]
    assert error["code"] == -32602
    assert "expired" in error["message"]
    assert (await peer.error("tasks/get", {"taskId": task["taskId"]}))["code"] == -32602
    assert (await peer.result("tasks/list"))["tasks"] == []


@pytest.mark.parametrize(("asked", "granted"), [({}, 600_000), ({"ttl": 10_000}, 10_000), ({"ttl": 1e300}, 600_000)])
async def test_a_lifetime_has_a_limit(peer: RequestingPeer, asked: dict[str, float], granted: float) -> None:
    """A task has the requested lifetime, up to the configured maximum."""
    assert (await peer.start("job", task=asked))["ttl"] == granted


async def test_a_finished_task_expires_too(peer: RequestingPeer, host: ServerHost) -> None:
    """The result is kept for the granted lifetime and no longer."""
    task = await peer.start("greet", {"name": "Ada"}, task={"ttl": 30})
    await until(lambda: [kept.status for kept in records_of(host)] == ["completed"])
    await until(lambda: not records_of(host))
    assert (await peer.error("tasks/result", {"taskId": task["taskId"]}))["code"] == -32602


async def test_a_task_is_cancelled(peer: RequestingPeer, job: Job) -> None:
    """The reply shows the task as canceled, the tool is stopped, and waiting clients are answered."""
    task = await peer.start("job")
    await job.started.wait()
    waiting = peer.send("tasks/result", {"taskId": task["taskId"]})
    cancelled = await peer.result("tasks/cancel", {"taskId": task["taskId"]})
    assert (cancelled["taskId"], cancelled["status"]) == (task["taskId"], "cancelled")
    await job.cancelled.wait()
    assert (await peer.reply(waiting))["error"]["code"] == -32602
    assert (await peer.outcome(task["taskId"]))["error"]["code"] == -32602
    assert await peer.status(task["taskId"]) == "cancelled"


@pytest.mark.parametrize("name", ["whole", "refuse", "break_off"])
async def test_what_has_ended_cannot_be_cancelled(peer: RequestingPeer, name: str) -> None:
    """A task that has ended or was canceled cannot be canceled."""
    task = await peer.start(name)
    await peer.outcome(task["taskId"])
    before = await peer.result("tasks/get", {"taskId": task["taskId"]})
    assert (await peer.error("tasks/cancel", {"taskId": task["taskId"]}))["code"] == -32602
    assert await peer.result("tasks/get", {"taskId": task["taskId"]}) == before
    stopped = await peer.start("job")
    await peer.result("tasks/cancel", {"taskId": stopped["taskId"]})
    assert (await peer.error("tasks/cancel", {"taskId": stopped["taskId"]}))["code"] == -32602


class Stubborn(Job):
    """Ignores cancellation and sends messages afterwards."""

    async def execute(self, arguments: NoArguments, context: Context) -> str:
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
        peer = await RequestingPeer.connect(host)
        task = await peer.start("stubborn", _meta={"progressToken": 1})
        await stubborn.started.wait()
        await peer.result("tasks/cancel", {"taskId": task["taskId"]})
        await until(lambda: not host.handler.inflight)
        assert await peer.status(task["taskId"]) == "cancelled"
        await peer.settle()
        assert [said["method"] for said in peer.heard] == [STATUS]


async def test_waiting_can_be_cancelled(peer: RequestingPeer, job: Job) -> None:
    """Canceling a request for a result gets no reply, and the task continues."""
    task = await peer.start("job")
    waiting = peer.send("tasks/result", {"taskId": task["taskId"]})
    another = peer.send("tasks/result", {"taskId": task["taskId"]})
    await peer.settle()
    peer.cancel(waiting)
    await peer.settle()
    job.release.set()
    assert "result" in await peer.reply(another)
    await peer.settle()
    assert waiting not in [said.get("id") for said in peer.unread]


async def test_an_id_cannot_wait_twice(peer: RequestingPeer, job: Job) -> None:
    """A second request with the id of a waiting one is rejected."""
    task = await peer.start("job")
    body = message("tasks/result", {"taskId": task["taskId"]}, id=77)
    peer.transport.send(body)
    peer.transport.send(body)
    assert (await peer.reply(77))["error"]["code"] == -32600
    job.release.set()
    assert "result" in await peer.reply(77)


async def test_what_a_task_says_names_it(peer: RequestingPeer) -> None:
    """Progress and log messages name their task, and end with it."""
    task = await peer.start("herald", _meta={"progressToken": "t"})
    mark = {RELATED: {"taskId": task["taskId"]}}
    progress, log = await peer.hear("notifications/progress"), await peer.hear("notifications/message")
    assert progress["params"] == {"progressToken": "t", "progress": 1, "total": 2, "_meta": mark}
    assert log["params"] == {"level": "info", "data": "begun", "_meta": mark}
    await peer.result("tasks/cancel", {"taskId": task["taskId"]})
    await peer.settle()
    assert {said["method"] for said in peer.heard} == {STATUS}


async def test_only_what_belongs_to_a_task_is_marked(peer: RequestingPeer) -> None:
    """Task methods and status notifications are not marked with a task in `_meta`."""
    task = await peer.start("greet", {"name": "Ada"})
    await peer.outcome(task["taskId"])
    about = [await peer.result(method, {"taskId": task["taskId"]}) for method in ("tasks/get", "tasks/list")]
    about.append(await peer.hear(STATUS))
    stopped = await peer.start("job")
    about.append(await peer.result("tasks/cancel", {"taskId": stopped["taskId"]}))
    assert RELATED not in json.dumps(about)


async def test_a_changed_level_holds_at_once(job: Job) -> None:
    """A changed log level applies to running tasks."""
    herald = Herald("herald")
    async with ServerHost(container_of(herald)) as host:
        peer = await RequestingPeer.connect(host)
        task = await peer.start("herald")
        await peer.hear("notifications/message")
        await peer.result("logging/setLevel", {"level": "error"})
        herald.release.set()
        await peer.outcome(task["taskId"])
        assert [said["method"] for said in peer.heard] == [STATUS]


async def test_changes_are_told(peer: RequestingPeer, job: Job) -> None:
    """The client is notified of the end of a task, with its full state."""
    task = await peer.start("job")
    job.release.set()
    told = await peer.hear(STATUS)
    assert told["params"] == await peer.result("tasks/get", {"taskId": task["taskId"]})
    assert told["params"]["status"] == "completed"
    assert "id" not in told


async def test_a_task_outlives_its_connection(host: ServerHost, peer: RequestingPeer, job: Job) -> None:
    """A task survives its connection until its lifetime ends, and its messages are dropped."""
    await peer.start("herald", _meta={"progressToken": 1})
    await peer.start("job")
    await job.started.wait()
    assert not [said for said in await peer.close() if "error" in said]
    (herald,) = [one for one in host.roles.tools if isinstance(one, Herald)]
    assert not job.cancelled.is_set()
    job.release.set()
    herald.release.set()
    await until(lambda: not host.handler.inflight)
    assert sorted(task.status for task in records_of(host)) == ["completed", "completed"]


async def test_the_end_of_a_connection_ends_waiting(peer: RequestingPeer, job: Job) -> None:
    """Waiting requests are answered when the server closes the connection."""
    task = await peer.start("job")
    waiting = peer.send("tasks/result", {"taskId": task["taskId"]})
    await peer.settle()
    (reply,) = [said for said in await peer.close(0) if said.get("id") == waiting]
    assert (reply["error"]["code"], reply["error"]["data"]) == (-32603, {"reason": "shutdown"})
    assert not job.cancelled.is_set()


async def test_the_end_of_the_server_ends_tasks(job: Job) -> None:
    """A shutdown stops running tools and answers waiting requests."""
    async with ServerHost(container_of(job)) as host:
        peer = await RequestingPeer.connect(host)
        task = await peer.start("job")
        waiting = peer.send("tasks/result", {"taskId": task["taskId"]})
        await peer.settle()
    assert job.cancelled.is_set()
    assert not host.handler.inflight
    assert "shutting down" in (await peer.reply(waiting))["error"]["message"]
    assert peer.heard == []
